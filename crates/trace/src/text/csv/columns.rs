//! The columns of a CSV file, from its header or from the user.

use iowhy_core::request::Request;

use super::MAX_FIELDS;
use crate::error::TraceError;
use crate::format::Kind;

/// Unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Time {
    /// Nanoseconds per unit.
    #[inline]
    pub(super) fn nanoseconds(self) -> u64 {
        match self {
            Time::Seconds => 1_000_000_000,
            Time::Milliseconds => 1_000_000,
            Time::Microseconds => 1000,
            Time::Nanoseconds => 1,
        }
    }

    /// Decimal digits down to nanoseconds.
    pub(super) fn digits(self) -> u32 {
        match self {
            Time::Seconds => 9,
            Time::Milliseconds => 6,
            Time::Microseconds => 3,
            Time::Nanoseconds => 0,
        }
    }
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Skip,
    Time(Time),
    Latency(Time),
    Id,
    Offset,
    OffsetSectors,
    Size,
    SizeSectors,
    Op,
    Stream,
    NextUse,
    Marks,
    Name,
}

/// The columns of a file, in order.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) list: Vec<Column>,
    pub(super) separator: u8,
    /// The request before its line is read.
    pub(super) default: Request,
    pub(super) has_times: bool,
    pub(super) has_sizes: bool,
    /// It was written by us: nothing is left out.
    pub(super) own: bool,
    header: Option<Vec<u8>>,
}

/// The header of our own CSV.
pub(crate) const OWN_HEADER: &str = "time_ns,stream,op,object,offset,bytes,latency_ns,next_use,marks,name";

const HINT: &str = "write `time=1,id=2,size=3`: a meaning (time, id, offset, size, op, latency, stream; with a unit such \
                    as time_us, latency_ms, offset_sectors), `=`, a column by number from 1 or by its name in the header";

impl Column {
    /// The meaning of a name, as headers of many origins and users write it.
    fn from_name(name: &str) -> Option<Column> {
        use Time::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        let name = name.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-'], "_");
        Some(match name.as_str() {
            "time" | "timestamp" | "ts" | "time_s" | "timestamp_s" | "seconds" | "clock_time"
            | "real_time" => Column::Time(Seconds),
            "time_ms" | "timestamp_ms" => Column::Time(Milliseconds),
            "time_us" | "timestamp_us" => Column::Time(Microseconds),
            "time_ns" | "timestamp_ns" => Column::Time(Nanoseconds),
            "latency" | "response" | "response_time" | "latency_s" | "response_s" => Column::Latency(Seconds),
            "latency_ms" | "response_ms" => Column::Latency(Milliseconds),
            "latency_us" | "response_us" => Column::Latency(Microseconds),
            "latency_ns" | "response_ns" => Column::Latency(Nanoseconds),
            "id" | "object" | "obj" | "obj_id" | "object_id" | "key" | "device" | "device_id" | "file"
            | "lun" | "volume" | "inode" => Column::Id,
            "offset" | "offset_bytes" | "address" | "addr" | "pos" => Column::Offset,
            "lba" | "lbn" | "sector" | "offset_sectors" | "block" => Column::OffsetSectors,
            "size" | "bytes" | "length" | "len" | "obj_size" | "object_size" | "size_bytes" => Column::Size,
            "size_sectors" | "sectors" | "blocks" => Column::SizeSectors,
            "op" | "operation" | "opcode" | "type" | "rw" | "iotype" | "io_type" => Column::Op,
            "stream" | "pid" | "tid" | "thread" | "client" | "tenant" | "client_id" => Column::Stream,
            "next_use" => Column::NextUse,
            "marks" => Column::Marks,
            "name" => Column::Name,
            _ => return None,
        })
    }
}

impl Columns {
    fn new(mut list: Vec<Column>, separator: u8, header: Option<Vec<u8>>) -> Option<Columns> {
        while list.last() == Some(&Column::Skip) {
            list.pop();
        }
        let addresses = list.iter().any(|c| matches!(c, Column::Offset | Column::OffsetSectors));
        // Without an id or an address there is nothing to ask for.
        if !addresses && !list.contains(&Column::Id) {
            return None;
        }
        let has_sizes = list.iter().any(|c| matches!(c, Column::Size | Column::SizeSectors));
        let own = header.as_deref() == Some(OWN_HEADER.as_bytes());
        Some(Columns {
            separator,
            default: Request { bytes: u64::from(!has_sizes), ..Request::default() },
            has_times: list.iter().any(|c| matches!(c, Column::Time(_))),
            has_sizes,
            own,
            list,
            header,
        })
    }

    /// The columns that a header names. `None`: the line is no header, or has neither an id nor an offset.
    pub(super) fn of_header(line: &[u8]) -> Option<Columns> {
        let (names, separator) = split(line)?;
        let list: Vec<Column> =
            names.iter().map(|name| Column::from_name(name).unwrap_or(Column::Skip)).collect();
        // One name alone could be an id that happens to read like one.
        if list.iter().filter(|c| **c != Column::Skip).count() < 2 {
            return None;
        }
        Columns::new(list, separator, Some(line.to_vec()))
    }

    /// Columns by number; `Ok(None)` where the user gave names of a header.
    ///
    /// # Errors
    /// An unknown meaning, a column given twice, number 0 or beyond 256, neither an id nor an offset.
    pub(super) fn by_number(spec: &str) -> Result<Option<Columns>, TraceError> {
        let refuse = |why: String| TraceError::new(format!("`--columns {spec}`: {why}")).hint(HINT);
        let mut list = Vec::new();
        for (column, place) in meanings(spec)? {
            let Ok(number) = place.parse::<usize>() else { return Ok(None) };
            if number == 0 || number > MAX_FIELDS {
                return Err(refuse(format!("columns count from 1 to {MAX_FIELDS}, not {number}")));
            }
            if list.len() < number {
                list.resize(number, Column::Skip);
            }
            if list[number - 1] != Column::Skip {
                return Err(refuse(format!("column {number} is given twice")));
            }
            list[number - 1] = column;
        }
        match Columns::new(list, b',', None) {
            Some(columns) => Ok(Some(columns)),
            None => Err(refuse("neither `id` nor `offset` is given".to_owned())),
        }
    }

    /// The user's columns by the names of the header. `None`: it does not have them.
    pub(super) fn by_header_name(spec: &str, line: &[u8]) -> Option<Columns> {
        let (names, separator) = split(line)?;
        let mut list = vec![Column::Skip; names.len()];
        for (column, wanted) in meanings(spec).ok()? {
            let at =
                names.iter().position(|name| name.trim().trim_matches('"').eq_ignore_ascii_case(wanted))?;
            list[at] = column;
        }
        Columns::new(list, separator, Some(line.to_vec()))
    }

    /// Address space, as far as columns tell: sectors are those of devices, other offsets may be those of
    /// files.
    pub(super) fn kind(&self) -> Option<Kind> {
        let has = |wanted: &[Column]| self.list.iter().any(|column| wanted.contains(column));
        if has(&[Column::OffsetSectors, Column::SizeSectors]) {
            Some(Kind::Blocks)
        } else {
            has(&[Column::Offset]).then_some(Kind::Files)
        }
    }

    /// Takes the separator from a line of data: a comma, a semicolon, a tabulator or a blank.
    pub(super) fn separate_as(&mut self, line: &[u8]) {
        let present = [b',', b';', b'\t', b' '].into_iter().find(|separator| line.contains(separator));
        self.separator = present.unwrap_or(b',');
    }

    /// Whether a line that did not read as data is the header, perhaps come again where files were joined, or a first
    /// line of names above columns that were given by number.
    #[cold]
    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        match &self.header {
            Some(header) => header == line,
            None => {
                line.first().is_some_and(u8::is_ascii_alphabetic)
                    && split(line)
                        .is_some_and(|(names, _)| names.iter().any(|n| Column::from_name(n).is_some()))
            }
        }
    }
}

/// `meaning=column` pairs.
fn meanings(spec: &str) -> Result<Vec<(Column, &str)>, TraceError> {
    let refuse = |why: String| TraceError::new(format!("`--columns {spec}`: {why}")).hint(HINT);
    spec.split(',')
        .map(|pair| {
            let (meaning, place) =
                pair.split_once('=').ok_or_else(|| refuse(format!("`{pair}` has no `=`")))?;
            let column =
                Column::from_name(meaning).ok_or_else(|| refuse(format!("`{meaning}` is no meaning")))?;
            Ok((column, place.trim()))
        })
        .collect()
}

/// The fields of a header, and their separator: a comma, a semicolon or a tabulator.
fn split(line: &[u8]) -> Option<(Vec<&str>, u8)> {
    let text = std::str::from_utf8(line).ok()?;
    let separator = [b',', b';', b'\t'].into_iter().find(|separator| line.contains(separator))?;
    let names: Vec<&str> = text.split(char::from(separator)).take(MAX_FIELDS).collect();
    Some((names, separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_many_origins() {
        for (header, list) in [
            ("time,id,size", vec![Column::Time(Time::Seconds), Column::Id, Column::Size]),
            (
                "Timestamp_us;foo;LBA;op",
                vec![Column::Time(Time::Microseconds), Column::Skip, Column::OffsetSectors, Column::Op],
            ),
            ("\"obj_id\"\tbytes\tx", vec![Column::Id, Column::Size]),
        ] {
            assert_eq!(Columns::of_header(header.as_bytes()).unwrap().list, list, "{header}");
        }
        for none in ["1,2,3", "id", "time,size", "", "hello, world", "id,hello"] {
            assert!(Columns::of_header(none.as_bytes()).is_none(), "{none}");
        }
        assert!(Columns::of_header(OWN_HEADER.as_bytes()).unwrap().own);
    }

    #[test]
    fn columns_of_the_user() {
        let columns = Columns::by_number("time_ms=1,id=3,size=4").unwrap().unwrap();
        assert_eq!(columns.list, [Column::Time(Time::Milliseconds), Column::Skip, Column::Id, Column::Size]);
        assert!(Columns::by_number("id=when").unwrap().is_none());
        for bad in ["time", "colour=1", "id=0", "id=257", "id=1,size=1", "size=1", ""] {
            let error = Columns::by_number(bad).unwrap_err();
            assert!(error.what.contains("--columns") && error.hint.is_some(), "{bad}");
        }
        let columns = Columns::by_header_name("id=b,size=c", b"a,b,c").unwrap();
        assert_eq!(columns.list, [Column::Skip, Column::Id, Column::Size]);
        assert!(Columns::by_header_name("id=z", b"a,b,c").is_none());
    }
}
