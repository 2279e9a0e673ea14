//! CSV with named columns: by a header, or by `--columns`. Our own CSV, which keeps everything we know, is one of them.
//!
//! The usual line has no quotes and is read in one pass without allocation; a line with a quote takes the slow way.
//! Columns that are not named mean nothing and are skipped. Published formats without a header have their own files.

mod columns;

use iowhy_core::request::{Marks, Op, Request};
use memchr::memchr;

use columns::Columns;
pub(crate) use columns::OWN_HEADER;

use super::{LineParser, Refusal, whole_lines};
use crate::columns::{Column, ColumnSpec, Time};
use crate::error::TraceError;
use crate::fit::Fit;
use crate::format::Kind;
use crate::reader::Sink;
use crate::{hash, number, op_code};

/// Prefix of the comment with the address space in iowhy's own CSV.
pub(crate) const KIND_COMMENT: &str = "# iowhy trace, kind=";

/// The parser.
pub(super) struct Csv {
    wanted: Option<ColumnSpec>,
    columns: Option<Columns>,
    kind: Option<Kind>,
    /// Columns by number: the separator is detected at the first line.
    separator_open: bool,
}

impl Csv {
    /// `spec`: the user's columns. Those by number are known at once; those by name need the header.
    pub(super) fn new(spec: Option<&ColumnSpec>) -> Csv {
        let columns = spec.and_then(Columns::by_number);
        Csv { wanted: spec.cloned(), separator_open: columns.is_some(), columns, kind: None }
    }

    /// The first line that is no comment: a header, unless columns are known by number.
    fn begin(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let found = match &self.wanted {
            Some(spec) => Columns::by_header_name(spec, line),
            None => Columns::of_header(line),
        };
        match found {
            Some(columns) => {
                self.columns = Some(columns);
                Ok(())
            }
            None => Err("no header with the names of columns: name them with `--columns time=1,id=2,size=3`"),
        }
    }

    fn comment(&mut self, line: &[u8]) {
        if let Some(rest) = line.strip_prefix(KIND_COMMENT.as_bytes()) {
            self.kind = std::str::from_utf8(rest.trim_ascii()).ok().and_then(Kind::from_id);
        }
    }
}

impl LineParser for Csv {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        match line.first() {
            None => return Ok(()),
            Some(b'#') => {
                self.comment(line);
                return Ok(());
            }
            Some(_) => {}
        }
        let Some(columns) = &mut self.columns else { return self.begin(line) };
        if self.separator_open {
            self.separator_open = false;
            columns.separate_as(line);
        }
        let request = match plain(line, columns, sink) {
            Ok(request) => request,
            Err(_) if memchr(b'"', line).is_some() => quoted(line, columns, sink)?,
            Err(_) if columns.is_header(line) => return Ok(()),
            Err(why) => return Err(why),
        };
        if request.bytes == 0 && !columns.own && matches!(request.op, Op::Read | Op::Write) {
            sink.lose(super::block_csv::SIZE_ZERO);
        } else {
            sink.push(request);
        }
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.kind.or_else(|| self.columns.as_ref().and_then(Columns::kind))
    }

    fn level_known(&self) -> bool {
        self.kind.is_some()
    }

    fn has_times(&self) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.has_times)
    }

    fn has_sizes(&self) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.has_sizes)
    }
}

const REFUSED: Refusal = "a field is no number: left out";
const MISSING: Refusal = "a field is missing or empty: left out";
const NEGATIVE: Refusal = "a negative number: left out";
const NOT_WHOLE: Refusal = "not a whole number: left out";
const EXPONENT: Refusal = "a number with an exponent, as 1e6: left out; write all its digits";
const HEXADECIMAL: Refusal = "a hexadecimal number: left out; write it in decimal";
const TOO_LARGE: Refusal = "a number too large for its column: left out";

/// Why a field is not a valid number.
#[cold]
fn no_number(field: &[u8]) -> Refusal {
    let hexadecimal = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    if let [b'0', b'x' | b'X', digits @ ..] = field
        && hexadecimal(digits)
    {
        return HEXADECIMAL;
    }
    if !field.is_empty() && field.iter().all(u8::is_ascii_digit) {
        return TOO_LARGE;
    }
    // As Rust parses numbers, without `inf` and `nan`.
    let number = field.iter().any(u8::is_ascii_digit)
        && std::str::from_utf8(field).is_ok_and(|text| text.parse::<f64>().is_ok());
    match field {
        _ if !number => REFUSED,
        [b'-', ..] => NEGATIVE,
        _ if field.iter().any(|byte| matches!(byte, b'e' | b'E')) => EXPONENT,
        _ if field.contains(&b'.') => NOT_WHOLE,
        _ => REFUSED,
    }
}

const BEYOND: Refusal = "time beyond 584 years: left out; if it is in milli-, micro- or nanoseconds, say so with \
                         `--columns time_us=...`";

/// A line without quotes; one with quotes is refused.
#[inline]
fn plain(line: &[u8], columns: &Columns, sink: &mut Sink<'_>) -> Result<Request, Refusal> {
    let mut request = columns.default;
    let mut rest = line;
    for column in &columns.list {
        // Numbers end by themselves; everything else is cut at the separator first.
        let (field, unit) = match column {
            Column::Time(unit) => (&mut request.time_ns, unit.nanoseconds()),
            Column::Id => (&mut request.object, 1),
            Column::Size => (&mut request.bytes, 1),
            Column::Offset => (&mut request.offset, 1),
            other => {
                rest = cut(*other, rest, columns.separator, &mut request, sink)?;
                continue;
            }
        };
        let (number, digits) = number::digits(rest);
        let ends = match rest.get(digits) {
            None => true,
            Some(byte) => *byte == columns.separator,
        };
        match number.checked_mul(unit) {
            Some(value) if ends && digits > 0 && digits < 20 => {
                *field = value;
                rest = rest.get(digits + 1..).unwrap_or(&[]);
            }
            _ => rest = cut(*column, rest, columns.separator, &mut request, sink)?,
        }
    }
    Ok(request)
}

/// Takes a field up to the next separator; returns the rest.
fn cut<'a>(
    column: Column,
    rest: &'a [u8],
    separator: u8,
    request: &mut Request,
    sink: &mut Sink<'_>,
) -> Result<&'a [u8], Refusal> {
    let (field, after) = match memchr(separator, rest) {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (rest, &[][..]),
    };
    if field.first() == Some(&b'"') {
        return Err(REFUSED);
    }
    value(column, field.trim_ascii(), request, sink)?;
    Ok(after)
}

/// A line with quotes (RFC 4180): a field in quotes may hold separators, and a quote written twice.
#[cold]
fn quoted(line: &[u8], columns: &Columns, sink: &mut Sink<'_>) -> Result<Request, Refusal> {
    let mut request = columns.default;
    let mut rest = line;
    for column in &columns.list {
        let mut text = Vec::new();
        if let [b'"', inside @ ..] = rest {
            rest = inside;
            loop {
                let end = memchr(b'"', rest).ok_or("a quote is not closed: left out")?;
                text.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                match rest {
                    [b'"', more @ ..] => {
                        text.push(b'"');
                        rest = more;
                    }
                    _ => break,
                }
            }
            let end = memchr(columns.separator, rest).map_or(rest.len(), |end| end + 1);
            rest = &rest[end..];
        } else {
            let end = memchr(columns.separator, rest);
            text.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
        }
        value(*column, text.trim_ascii(), &mut request, sink)?;
    }
    Ok(request)
}

/// Puts one field into the request. An empty one leaves what the column says by default.
fn value(column: Column, field: &[u8], request: &mut Request, sink: &mut Sink<'_>) -> Result<(), Refusal> {
    if field.is_empty() {
        return match column {
            Column::Id => Err(MISSING),
            Column::Size if request.bytes == 0 => Err(MISSING),
            _ => Ok(()),
        };
    }
    let number = |field| number::integer(field).ok_or_else(|| no_number(field));
    match column {
        Column::Skip => {}
        Column::Time(unit) => request.time_ns = time(field, unit)?,
        Column::Latency(unit) => request.latency_ns = time(field, unit)?,
        Column::Id => request.object = number::whole(field).unwrap_or_else(|| hash::of_name(field)),
        Column::Offset => request.offset = number(field)?,
        Column::OffsetSectors => request.offset = number(field)?.checked_mul(512).ok_or(TOO_LARGE)?,
        Column::Size => request.bytes = number(field)?,
        Column::SizeSectors => request.bytes = number(field)?.checked_mul(512).ok_or(TOO_LARGE)?,
        Column::Op => request.op = op_code::from_word(field).ok_or("unknown operation: left out")?,
        Column::Stream => request.stream = u32::try_from(number(field)?).map_err(|_| TOO_LARGE)?,
        Column::NextUse => request.next_use = number(field)?,
        Column::Marks => request.marks = Marks(u8::try_from(number(field)?).map_err(|_| TOO_LARGE)?),
        // The id precedes the name in iowhy's own CSV.
        Column::Name => sink.names.put(request.object, field),
    }
    Ok(())
}

/// A time in nanoseconds. One that does not fit is most often in a smaller unit than the column says.
fn time(field: &[u8], unit: Time) -> Result<u64, Refusal> {
    number::scaled(field, unit.digits()).ok_or(match number::leading(field) {
        Some((_, [] | [b'.', ..])) => BEYOND,
        _ => no_number(field),
    })
}

/// A header that names an id, or columns of the user's: then any first line with a separator.
pub(super) fn fits(head: &[u8], complete: bool, spec: Option<&ColumnSpec>) -> Result<Fit, TraceError> {
    let Some(line) = whole_lines(head, complete).find(|line| !line.is_empty() && line[0] != b'#') else {
        return Ok(if complete { Fit::No } else { Fit::More });
    };
    Ok(match spec {
        Some(spec) if Columns::by_number(spec).or_else(|| Columns::by_header_name(spec, line)).is_some() => {
            Fit::Yes
        }
        Some(spec) => {
            return Err(TraceError::new(format!(
                "`--columns`: the header does not have these names: {}",
                spec.names().join(", ")
            ))
            .hint("columns can also be given by number from 1: `time=1,id=2,size=3`"));
        }
        None if Columns::of_header(line).is_some() => Fit::Yes,
        None => Fit::No,
    })
}

/// Whether a file without any format looks like CSV, for the hint.
pub(crate) fn looks_like_csv(head: &[u8]) -> bool {
    let line = whole_lines(head, true).find(|line| !line.is_empty()).unwrap_or(b"");
    line.len() < 4096 && line.iter().filter(|byte| matches!(byte, b',' | b';' | b'\t')).count() >= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_number_is_named() {
        for (field, why) in [
            (&b"-4096"[..], NEGATIVE),
            (b"-1.5", NEGATIVE),
            (b"1e6", EXPONENT),
            (b"0x1000", HEXADECIMAL),
            (b"4096.5", NOT_WHOLE),
            (b"99999999999999999999", TOO_LARGE),
            (b"nan", REFUSED),
            (b"abc", REFUSED),
            (b"0xyz", REFUSED),
            (b"-", REFUSED),
        ] {
            assert_eq!(no_number(field), why, "{}", String::from_utf8_lossy(field));
        }
    }
}
