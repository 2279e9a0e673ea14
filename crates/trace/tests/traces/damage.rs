//! Damaged files: whatever the bytes, there is an answer or an error, no panic and no more memory than the file is long.
//!
//! A short fuzz with a fixed seed: every golden file is cut, changed, repeated and joined with others some thousands of
//! times, read as what it seems to be and as every format by force.

use std::io::Write as _;

use iowhy_core::rng::Rng;
use iowhy_trace::survey::Survey;
use iowhy_trace::{BlockAction, ColumnSpec, Format, Kind, Options};
use proptest::prelude::*;

use crate::common::{all_golden, open, to_end};

/// Changed copies of each golden file; `IOWHY_FUZZ_ROUNDS` asks for another number, `IOWHY_FUZZ_SEED` for another seed.
const ROUNDS: u64 = 1500;
const SEED: u64 = 20;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Reads bytes in every way; what comes out is summed up, too.
fn survives(bytes: &[u8], options: &Options) {
    let Ok(trace) = open(bytes.to_vec(), options) else { return };
    if let Ok(read) = to_end(trace, 64) {
        // Two requests a line at most, and a line has a byte at least.
        assert!(read.requests.len() <= 2 * bytes.len() + 1);
        let mut survey = Survey::new(read.kind);
        survey.add(&read.requests[..read.requests.len().min(200)]);
        let _ = (
            survey.objects(),
            survey.footprint_bytes(),
            survey.size_quantile(0.5),
            survey.rate(),
            survey.sequential_share(),
        );
    }
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    const NUMBERS: [&[u8]; 8] = [
        b"18446744073709551615",
        b"18446744073709551616",
        b"-1",
        b"0",
        b"99999999999999999999999",
        b"1.5",
        b"\"",
        b"<",
    ];
    for _ in 0..=rng.below(4) {
        let length = bytes.len() as u64;
        let at = rng.below(length + 1) as usize;
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 if length > 0 => {
                let i = rng.below(length) as usize;
                bytes[i] ^= 1 << rng.below(8);
            }
            2 if length > 0 => bytes[rng.below(length) as usize] = rng.next_u64() as u8,
            3 => {
                let number = NUMBERS[rng.below(NUMBERS.len() as u64) as usize];
                bytes.splice(at..at, number.iter().copied());
            }
            4 => {
                let end = (at + rng.below(64) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + rng.below(200) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            6 => {
                let from = rng.below(other.len() as u64 + 1) as usize;
                let end = (from + rng.below(200) as usize).min(other.len());
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            // Eight bytes of ones: the largest number of a record.
            _ => bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = 0xff),
        }
    }
}

#[test]
fn changed_files_of_every_format_are_read_or_refused() {
    let all = all_golden();
    let seed = from_environment("IOWHY_FUZZ_SEED", SEED);
    let mut rng = Rng::new(seed);
    for (name, golden) in &all {
        let format = open(golden.clone(), &Options::default()).unwrap().format();
        for round in 0..from_environment("IOWHY_FUZZ_ROUNDS", ROUNDS) {
            let mut bytes = golden.clone();
            // Large headers and long captures: most of the work is on the part that varies.
            let other = &all[rng.below(all.len() as u64) as usize].1;
            change(&mut bytes, other, &mut rng);
            let action = if round % 2 == 0 { BlockAction::Queue } else { BlockAction::Issue };
            let action = matches!(format, Format::Blktrace | Format::Blkparse).then_some(action);
            let found = Options { action, ..Options::default() };
            let forced = Options { format: Some(format), action, ..Options::default() };
            let result = std::panic::catch_unwind(|| {
                survives(&bytes, &found);
                survives(&bytes, &forced);
            });
            assert!(result.is_ok(), "{name}, seed {seed}, round {round}: {}", bytes.escape_ascii());
        }
    }
}

#[test]
fn every_file_read_as_every_format() {
    for (name, bytes) in all_golden() {
        for format in Format::all() {
            let options = Options { format: Some(format), ..Options::default() };
            let result = std::panic::catch_unwind(|| survives(&bytes, &options));
            assert!(result.is_ok(), "{name} as {format:?}");
        }
    }
}

/// Records have no end mark: a file that ends inside one is told by the records before, plain or compressed.
#[test]
fn records_cut_in_two_are_still_told_by_those_before() {
    const COUNT: u64 = 6000;
    let record = |i: u64| {
        // Each object comes again five requests on, counted from 1.
        let next = if i + 5 < COUNT { i + 6 } else { u64::MAX };
        let (time, id, size) = ((i as u32).to_le_bytes(), (i % 5).to_le_bytes(), 4096u32.to_le_bytes());
        [&time[..], &id, &size, &next.to_le_bytes()].concat()
    };
    let whole: Vec<u8> = (0..COUNT).flat_map(record).collect();
    for bytes in [whole.len(), whole.len() - 1, 24 * 12 + 7, 24 * 4 + 13] {
        let trace = open(whole[..bytes].to_vec(), &Options::default()).unwrap();
        assert_eq!(trace.format(), Format::OracleGeneral, "{bytes}");
        let read = to_end(trace, 7).unwrap();
        assert_eq!(
            (read.requests.len(), read.lost("inside a record")),
            (bytes / 24, u64::from(bytes % 24 > 0))
        );
    }
    // So few prove nothing.
    assert!(open(whole[..24 * 2 + 7].to_vec(), &Options::default()).is_err());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(&whole).unwrap();
    let trace = open(packed.finish().unwrap()[..100_003].to_vec(), &Options::default()).unwrap();
    assert_eq!(trace.format(), Format::OracleGeneral);
    let read = to_end(trace, 1000).unwrap();
    assert!((2000..COUNT as usize).contains(&read.requests.len()), "{}", read.requests.len());
    assert_eq!(read.lost("cut off"), 1);
}

#[test]
fn a_file_that_is_cut_anywhere_gives_the_beginning() {
    for (name, bytes) in all_golden() {
        let format = open(bytes.clone(), &Options::default()).unwrap().format();
        let options = Options { format: Some(format), ..Options::default() };
        let whole = to_end(open(bytes.clone(), &options).unwrap(), 100).unwrap();
        let step = (bytes.len() / 40).max(1);
        for cut in (0..bytes.len()).step_by(step) {
            let Ok(trace) = open(bytes[..cut].to_vec(), &options) else { continue };
            let Ok(read) = to_end(trace, 100) else { continue };
            assert!(read.requests.len() <= whole.requests.len(), "{name} cut at {cut}");
            if !format.is_text() && !read.requests.is_empty() {
                let n = read.requests.len();
                assert_eq!(read.requests[..n], whole.requests[..n], "{name} cut at {cut}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        survives(&bytes, &Options::default());
        for format in Format::all() {
            survives(&bytes, &Options { format: Some(format), ..Options::default() });
        }
        survives(&bytes, &Options { columns: Some(ColumnSpec::parse("--columns", "id=1,size=2").unwrap()), ..Options::default() });
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-zR,:;. \"()<>=\\[\\]+\n-]{0,300}") {
        survives(text.as_bytes(), &Options::default());
        for format in Format::all().filter(|format| format.is_text()) {
            survives(text.as_bytes(), &Options { format: Some(format), ..Options::default() });
        }
    }

    #[test]
    fn any_compressed_rubbish_is_refused(gzip: bool, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let magic: &[u8] = if gzip { &[0x1f, 0x8b, 8] } else { &[0x28, 0xb5, 0x2f, 0xfd] };
        survives(&[magic, &bytes].concat(), &Options { format: Some(Format::Txt), ..Options::default() });
    }
}

#[test]
fn a_kind_has_a_survey_even_of_extremes() {
    for kind in Kind::ALL {
        assert_eq!(Survey::new(kind).transfers().requests, 0);
    }
}
