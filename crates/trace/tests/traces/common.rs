//! Reading files to their end. No assertion about content: those are the tests'.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;
use iowhy_trace::{Kind, Losses, Names, Options, Trace};

/// All that a trace gave.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) requests: Vec<Request>,
    pub(crate) losses: Losses,
    pub(crate) names: Names,
    pub(crate) kind: Kind,
    pub(crate) below_page_cache: Option<bool>,
}

impl Read {
    /// Counts of losses whose reason holds these words.
    pub(crate) fn lost(&self, words: &str) -> u64 {
        self.losses.list().iter().filter(|loss| loss.reason.contains(words)).map(|loss| loss.count).sum()
    }
}

/// Where golden files are.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Every golden file with its content.
pub(crate) fn all_golden() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// Opens bytes as a trace.
pub(crate) fn open(bytes: Vec<u8>, options: &Options) -> Result<Trace, Problem> {
    iowhy_trace::from_reader("test", Box::new(Cursor::new(bytes)), options)
}

/// Reads to the end, `most` requests at a time.
pub(crate) fn to_end(mut trace: Trace, most: usize) -> Result<Read, Problem> {
    let mut requests = Vec::new();
    loop {
        let before = requests.len();
        let n = trace.fill(&mut requests, most)?;
        assert_eq!(requests.len() - before, n);
        assert!(n <= most, "{n} of {most}");
        if n == 0 {
            break;
        }
    }
    // The end is the end.
    assert_eq!(trace.fill(&mut requests, 10)?, 0);
    assert_eq!(trace.requests(), requests.len() as u64);
    Ok(Read {
        requests,
        losses: trace.losses().clone(),
        names: trace.names().clone(),
        kind: trace.kind(),
        below_page_cache: trace.below_page_cache(),
    })
}

/// Reads a golden file, whose format is found out.
pub(crate) fn read_golden(name: &str, options: &Options) -> Read {
    let trace = iowhy_trace::open(&golden(name), options).unwrap();
    to_end(trace, 3).unwrap()
}
