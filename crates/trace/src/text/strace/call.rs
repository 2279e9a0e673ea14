//! One line of strace's output as a call: process, time, name, arguments, result, duration.
//!
//! The effect of a call on files is not known here.

use crate::number;

/// A line, cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// 0 where strace ran without `-f`.
    pub(super) pid: u32,
    pub(super) time_ns: u64,
    pub(super) what: What<'a>,
}

/// Content of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// `name(arguments) = result <duration>`
    Whole { name: &'a [u8], rest: &'a [u8] },
    /// `name(arguments <unfinished ...>`
    Begun { name: &'a [u8], arguments: &'a [u8] },
    /// `<... name resumed>arguments) = result <duration>`
    Resumed { name: &'a [u8], rest: &'a [u8] },
    /// `+++ exited with 0 +++`
    Ended,
    /// A signal, or `+++ superseded by execve +++`.
    Aside,
}

const UNFINISHED: &[u8] = b" <unfinished ...>";

/// Cuts a line. `None`: it is none of strace's with `-ttt`.
pub(super) fn cut(line: &[u8]) -> Option<Line<'_>> {
    let line = line.trim_ascii();
    let (pid, line) = match line.strip_prefix(b"[pid ") {
        Some(rest) => {
            let (pid, rest) = number::leading(rest.trim_ascii_start())?;
            (pid, rest.strip_prefix(b"]")?)
        }
        None => match number::leading(line)? {
            // A number with a point is the time already: strace without `-f`.
            (_, [b'.', ..]) => (0, line),
            (pid, rest @ [b' ', ..]) => (pid, rest),
            _ => return None,
        },
    };
    let line = line.trim_ascii_start();
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let time = &line[..blank];
    if !time.contains(&b'.') {
        return None;
    }
    let time_ns = number::scaled(time, 9)?;
    let what = what(line[blank..].trim_ascii_start())?;
    Some(Line { pid: u32::try_from(pid).ok()?, time_ns, what })
}

/// Whether a line is one of strace's that lacks the time, or has a time of day, as without `-ttt`.
pub(super) fn lacks_time(line: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = line.trim_ascii();
    if let Some(inside) = rest.strip_prefix(b"[pid ") {
        let Some(end) = inside.iter().position(|byte| *byte == b']') else { return false };
        rest = inside[end + 1..].trim_ascii_start();
    } else if let n @ 1.. = digits(rest)
        && rest.get(n) == Some(&b' ')
    {
        rest = rest[n..].trim_ascii_start();
    }
    // `12:59:01` of `-t`, `12:59:01.123456` of `-tt`.
    if let (Some(blank), 2) = (rest.iter().position(|byte| *byte == b' '), digits(rest))
        && rest[..blank].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
        && rest[..blank].contains(&b':')
    {
        rest = rest[blank..].trim_ascii_start();
    }
    match what(rest) {
        Some(What::Whole { rest, .. }) => finish(rest).is_some() || rest.ends_with(b"= ?"),
        Some(What::Begun { .. } | What::Resumed { .. } | What::Ended) => true,
        Some(What::Aside) | None => false,
    }
}

fn what(text: &[u8]) -> Option<What<'_>> {
    if let Some(rest) = text.strip_prefix(b"<... ") {
        let end = memchr::memmem::find(rest, b" resumed>")?;
        return Some(What::Resumed { name: &rest[..end], rest: &rest[end + b" resumed>".len()..] });
    }
    if text.starts_with(b"+++ exited") || text.starts_with(b"+++ killed") {
        return Some(What::Ended);
    }
    if text.starts_with(b"---") || text.starts_with(b"+++") {
        return Some(What::Aside);
    }
    let open = text.iter().position(|byte| *byte == b'(')?;
    let name = &text[..open];
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    let rest = &text[open + 1..];
    Some(match rest.strip_suffix(UNFINISHED).or(rest.strip_suffix(b"<unfinished ...>")) {
        Some(arguments) => What::Begun { name, arguments },
        None => What::Whole { name, rest },
    })
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// `None`: `?`, the call was broken off by a signal or the end of the program.
    pub(super) result: Option<i64>,
    /// Without `-T`: 0.
    pub(super) duration_ns: u64,
}

/// Arguments and outcome of `arguments) = result ... <duration>`.
pub(super) fn finish(rest: &[u8]) -> Option<(&[u8], Outcome)> {
    // Text in the arguments may hold the same characters, text behind the result does not: the last one counts.
    let equals = memchr::memmem::rfind(rest, b" = ")?;
    let arguments = rest[..equals].trim_ascii_end().strip_suffix(b")")?;
    let after = rest[equals + 3..].trim_ascii();
    let (negative, digits) = match after.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, after),
    };
    let result = if after.first() == Some(&b'?') {
        None
    } else {
        let value = match digits.strip_prefix(b"0x") {
            Some(hex) => {
                let end = hex.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(hex.len());
                number::hexadecimal(&hex[..end])?
            }
            None => number::leading(digits)?.0,
        };
        // Addresses above 2^63 are no results that matter.
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        Some(if negative { -value } else { value })
    };
    let duration_ns = match (memchr::memrchr(b'<', after), after.strip_suffix(b">")) {
        (Some(open), Some(inside)) if open < inside.len() => {
            number::scaled(&inside[open + 1..], 9).unwrap_or(0)
        }
        _ => 0,
    };
    Some((arguments, Outcome { result, duration_ns }))
}

/// The arguments one by one: commas in text, brackets and braces do not count.
pub(super) fn arguments(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut quoted, mut escaped) = (0u32, false, false);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    rest = Some(&text[at + 1..]);
                    return Some(text[..at].trim_ascii());
                }
                _ => {}
            }
        }
        rest = None;
        Some(text.trim_ascii())
    })
}

/// A descriptor, and its path where strace ran with `-y`: `3</etc/passwd>`.
pub(super) fn descriptor(text: &[u8]) -> Option<(i32, Option<&[u8]>)> {
    let (number, rest) = number::leading(text)?;
    let number = i32::try_from(number).ok()?;
    let path = match rest {
        [] => None,
        [b'<', inside @ ..] => Some(&inside[..memchr::memrchr(b'>', inside)?]),
        _ => return None,
    };
    Some((number, path))
}

/// Text in quotes, escapes undone; `None` for anything else (NULL, an address). A text that strace cut (`"..."...`) is
/// what is there.
pub(super) fn text(argument: &[u8]) -> Option<Vec<u8>> {
    let inside = argument.strip_prefix(b"\"")?;
    let mut out = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return Some(out),
            b'\\' => match bytes.next()? {
                b'n' => out.push(b'\n'),
                b't' => out.push(b'\t'),
                b'r' => out.push(b'\r'),
                b'v' => out.push(0x0b),
                b'f' => out.push(0x0c),
                b'x' => {
                    let mut value = 0u8;
                    for _ in 0..2 {
                        let digit = char::from(bytes.next()?).to_digit(16)?;
                        value = value << 4 | digit as u8;
                    }
                    out.push(value);
                }
                first @ b'0'..=b'7' => {
                    let mut value = u32::from(first - b'0');
                    for _ in 0..2 {
                        match bytes.peek() {
                            Some(next @ b'0'..=b'7') => value = value * 8 + u32::from(next - b'0'),
                            _ => break,
                        }
                        bytes.next();
                    }
                    out.push(value as u8);
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind() {
        let line = cut(b"1234  1700000000.000123 read(3, \"a) = 5\\\" <x>\", 10) = 7 <0.000042>").unwrap();
        assert_eq!((line.pid, line.time_ns), (1234, 1_700_000_000_000_123_000));
        let What::Whole { name, rest } = line.what else { panic!("{line:?}") };
        let (found, outcome) = finish(rest).unwrap();
        assert_eq!((name, outcome), (&b"read"[..], Outcome { result: Some(7), duration_ns: 42_000 }));
        let list: Vec<&[u8]> = arguments(found).collect();
        assert_eq!(list, [&b"3"[..], b"\"a) = 5\\\" <x>\"", b"10"]);
        assert_eq!(cut(b"[pid  12] 1.5 close(3) = 0").unwrap().pid, 12);
        assert_eq!(cut(b"1.5 close(3) = 0").unwrap().pid, 0);
        let begun = cut(b"7 1.0 read(3,  <unfinished ...>").unwrap().what;
        assert_eq!(begun, What::Begun { name: b"read", arguments: b"3, " });
        let resumed = cut(b"7 1.0 <... read resumed>\"x\", 1) = 1 <0.1>").unwrap().what;
        assert_eq!(resumed, What::Resumed { name: b"read", rest: b"\"x\", 1) = 1 <0.1>" });
        assert_eq!(cut(b"7 1.0 +++ exited with 0 +++").unwrap().what, What::Ended);
        assert_eq!(cut(b"7 1.0 --- SIGCHLD {si_signo=SIGCHLD} ---").unwrap().what, What::Aside);
        for none in ["", "7", "hello world", "7 8 read(3) = 0", "1,2,3", "7 1.0 what is this"] {
            assert_eq!(cut(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn outcomes() {
        for (rest, result, duration_ns) in [
            ("3, 4) = -1 EAGAIN (Resource temporarily unavailable) <0.000001>", Some(-1), 1000),
            ("0) = ? ERESTARTSYS (To be restarted)", None, 0),
            ("0) = 0x7f0000000000 <0.5>", Some(0x7f00_0000_0000), 500_000_000),
            ("\"/x\", O_RDONLY) = 3</x> <0.1>", Some(3), 100_000_000),
        ] {
            let (_, outcome) = finish(rest.as_bytes()).unwrap();
            assert_eq!(outcome, Outcome { result, duration_ns }, "{rest}");
        }
        assert_eq!(finish(b"no end"), None);
    }

    #[test]
    fn texts_and_descriptors() {
        assert_eq!(text(br#""a\"b\\\n\x41\101\0""#), Some(b"a\"b\\\nAA\0".to_vec()));
        assert_eq!(text(br#""cut"..."#), Some(b"cut".to_vec()));
        assert_eq!((text(b"NULL"), text(b"\"open")), (None, None));
        assert_eq!(descriptor(b"3</a b>"), Some((3, Some(&b"/a b"[..]))));
        assert_eq!(
            (descriptor(b"3"), descriptor(b"AT_FDCWD"), descriptor(b"-1")),
            (Some((3, None)), None, None)
        );
    }
}
