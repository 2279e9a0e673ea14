//! Detects the format of a file from its first bytes: each format says that it fits, that it does not, or that it
//! must see more. Several fits are an error that lists them.
//!
//! Invariant: nothing is guessed. A file that could be two things is neither until the user says so.

use crate::error::TraceError;
use crate::fit::{self, Fit};
use crate::format::Format;
use crate::reader::Options;
use crate::{binary, text};

const LIST: &str =
    "`iowhy trace formats` lists the formats; name the right one with `--format` (or `--from`)";

/// The format; `None`: more bytes are needed. `complete`: nothing follows `head`, or no more will be shown. `cut`: the end
/// is missing, so that the last record may be partial.
pub(crate) fn detect(
    head: &[u8],
    complete: bool,
    cut: bool,
    options: &Options,
) -> Result<Option<Format>, TraceError> {
    if head.is_empty() && complete {
        return Err(TraceError::new("it is empty").hint("name a trace file that holds requests"));
    }
    let text = fit::is_text(head);
    let mut fitting = Vec::new();
    let mut more = false;
    for format in Format::all().filter(|format| format.is_text() == text) {
        let fit = match text {
            true => text::fits(format, head, complete, options)?,
            false => binary::fits(format, head, complete, cut),
        };
        match fit {
            Fit::Yes => fitting.push(format),
            Fit::More => more = true,
            Fit::No => {}
        }
    }
    if more && !complete {
        return Ok(None);
    }
    // Records of no format fill the file: perhaps its end is missing, which its reader counts.
    if fitting.is_empty() && !text && complete && !cut {
        return detect(head, true, true, options);
    }
    // The user's columns settle it.
    if options.columns.is_some() && fitting.contains(&Format::Csv) {
        return Ok(Some(Format::Csv));
    }
    // A published format whose header reads as named columns is that format, not any CSV.
    if fitting.len() > 1 {
        fitting.retain(|format| *format != Format::Csv);
    }
    match fitting.as_slice() {
        [one] => Ok(Some(*one)),
        [] if text && text::is_strace_without_times(head) => {
            Err(TraceError::new("it is output of strace without times").hint(text::RECORD_STRACE))
        }
        [] if text && text::looks_like_csv(head) => Err(TraceError::new(
            "it looks like CSV, but no header says which column is what",
        )
        .hint("name the columns: `--columns time=1,id=2,size=3` (also op, offset, latency, stream; units as in `time_us`)")),
        [] => Err(TraceError::new("it is of no format that is known").hint(LIST)),
        several => {
            let names: Vec<String> = several.iter().map(|format| format!("`{}`", format.id())).collect();
            Err(TraceError::new(format!("it could be of several formats: {}", names.join(", "))).hint(format!(
                "say which: `--format {}` (or `--from`)",
                several.iter().map(|format| format.id()).collect::<Vec<_>>().join("` or `--format ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &[u8]) -> Result<Option<Format>, TraceError> {
        detect(head, true, false, &Options::default())
    }

    #[test]
    fn one_line_of_a_text_is_enough() {
        for (text, format) in [
            ("128166372003061629,hm,0,Read,383496192,32768,413\n", Format::Msr),
            ("419,W,26624,4096,1577808000000046\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n", Format::Twitter),
            ("1456095145.133076000,0.000806000,R,0,899056122368,131072\n", Format::Systor17),
            ("fio version 2 iolog\n", Format::FioIolog2),
            ("fio version 3 iolog\n", Format::FioIolog3),
            ("  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n", Format::Blkparse),
            ("0.5 0 1234 8 1\n", Format::DiskSim),
            ("7 1700000000.000001 close(3) = 0 <0.000002>\n", Format::Strace),
            ("1 7000 READ 12 4096 0 4096 HIT\n", Format::Fiu),
            ("17\n4\n", Format::Txt),
            ("time,id,size\n", Format::Csv),
        ] {
            assert_eq!(of(text.as_bytes()).unwrap(), Some(format), "{text}");
        }
    }

    #[test]
    fn what_is_nothing_says_so_and_what_to_do() {
        for (text, words) in [
            (&b""[..], "empty"),
            (b"hello world, this is a letter\n", "looks like CSV"),
            (b"hello\nworld\n", "no format that is known"),
            (b"1,2,3\n", "looks like CSV"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", "no format that is known"),
            (b"\xff\xfe\xfd", "no format that is known"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.what.contains(words) && error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn strace_without_times_is_told_how_to_record() {
        for trace in [
            // strace -f, to a terminal and to a file; without -f; -t and -tt; joined lines; the end of the beginning cut off.
            &b"openat(AT_FDCWD, \"a,b\", O_RDONLY) = 3\nread(3, \"x\", 4096) = 1\n+++ exited with 0 +++\n"[..],
            b"[pid  7] openat(AT_FDCWD, \"a\", O_RDONLY|O_CLOEXEC) = 3\n[pid  7] close(3) = 0\n",
            b"7 execve(\"/bin/cat\", [\"cat\"], 0x7ffd /* 9 vars */) = 0\n7 brk(NULL) = 0x55\n7 exit_group(0) = ?\n",
            b"12:59:01 close(3) = 0\n",
            b"7 12:59:01.123456 close(3) = 0 <0.000002>\n7 12:59:01.123499 read(3, <unfinished ...>\n",
            b"7 <... read resumed>\"\", 4096) = -1 EIO (Input/output error)\n--- SIGCHLD {si_signo=SIGCHLD} ---\n",
        ] {
            let error = of(trace).unwrap_err();
            let hint = error.hint.as_deref().unwrap_or_default();
            assert!(error.what.contains("without times"), "{error}: {}", String::from_utf8_lossy(trace));
            assert!(hint.contains("strace -f -ttt -T -o FILE CMD"), "{error}");
        }
        for other in [&b"f(x) is a function\n"[..], b"12:59 close\n", b"1,2,3\n", b"7 (x) = 1\n"] {
            assert!(!of(other).unwrap_err().what.contains("strace"), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_beginning_that_is_too_short_asks_for_more() {
        assert_eq!(detect(b"17", false, false, &Options::default()).unwrap(), None);
        assert_eq!(detect(&[7, 0x74], false, false, &Options::default()).unwrap(), None);
    }
}
