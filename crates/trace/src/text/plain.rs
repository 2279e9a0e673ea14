//! One id a line. There are no times and no sizes: every request is at 0 and counts one byte.

use iowhy_core::request::Request;

use super::{LineParser, Refusal, whole_lines};
use crate::fit::Fit;
use crate::reader::Sink;
use crate::{hash, number};

/// The parser.
pub(super) struct Ids;

impl LineParser for Ids {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        let id = line.trim_ascii();
        if id.is_empty() || id.starts_with(b"#") {
            return Ok(());
        }
        let object = match number::whole(id) {
            Some(number) => number,
            None if id.iter().any(u8::is_ascii_whitespace) => return Err("more than one word: left out"),
            None => hash::of_name(id),
        };
        sink.push(Request { object, bytes: 1, ..Request::default() });
        Ok(())
    }

    fn has_times(&self) -> bool {
        false
    }

    fn has_sizes(&self) -> bool {
        false
    }
}

/// Only numbers are taken for ids unasked: a list of words may be anything.
pub(super) fn fits(head: &[u8], complete: bool) -> Fit {
    let mut lines = whole_lines(head, complete)
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .peekable();
    match lines.peek() {
        None if !complete => Fit::More,
        None => Fit::No,
        Some(_) => match lines.take(64).all(|line| number::whole(line).is_some()) {
            true => Fit::Yes,
            false => Fit::No,
        },
    }
}
