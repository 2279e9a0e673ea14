//! What the columns of a CSV file mean: by the names that headers use, and by the user's choice.

use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;

/// The most columns of a line.
pub(crate) const MAX_FIELDS: usize = 256;

/// Unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Time {
    /// Nanoseconds per unit.
    #[inline]
    pub(crate) fn nanoseconds(self) -> u64 {
        match self {
            Time::Seconds => 1_000_000_000,
            Time::Milliseconds => 1_000_000,
            Time::Microseconds => 1000,
            Time::Nanoseconds => 1,
        }
    }

    /// Decimal digits down to nanoseconds.
    pub(crate) fn digits(self) -> u32 {
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
pub(crate) enum Column {
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

const HINT: &str = "write `time=1,id=2,size=3`: a meaning (time, id, offset, size, op, latency, stream; with a unit such \
                    as time_us, latency_ms, offset_sectors), `=`, a column by number from 1 or by its name in the header";

impl Column {
    /// The meaning of a name, as headers of many origins and users write it.
    pub(crate) fn from_name(name: &str) -> Option<Column> {
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

/// The columns of a CSV file as the user gives them: `time=1,id=2,size=3` by number from 1, or by the names of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec(pub(crate) Given);

/// How columns are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// All columns of a line, in order.
    Numbers(Vec<Column>),
    /// Meanings of the names in the header.
    Names(Vec<(Column, String)>),
}

impl ColumnSpec {
    /// Reads the value of an option. Whether a header has the names is known only with the file.
    ///
    /// # Errors
    /// An unknown meaning, a column given twice, number 0 or beyond 256, neither an id nor an offset.
    pub fn parse(option: &str, text: &str) -> Result<ColumnSpec, Problem> {
        let refuse = |why: String| refused_value(option, text, &why, HINT);
        let mut pairs = Vec::new();
        for pair in text.split(',') {
            let (meaning, place) =
                pair.split_once('=').ok_or_else(|| refuse(format!("`{pair}` has no `=`")))?;
            let column =
                Column::from_name(meaning).ok_or_else(|| refuse(format!("`{meaning}` is no meaning")))?;
            pairs.push((column, place.trim().to_owned()));
        }
        let is_asked_for = |column| matches!(column, Column::Id | Column::Offset | Column::OffsetSectors);
        if !pairs.iter().any(|(column, _)| is_asked_for(*column)) {
            return Err(refuse("neither `id` nor `offset` is given".to_owned()));
        }
        let numbers: Option<Vec<usize>> = pairs.iter().map(|(_, place)| place.parse().ok()).collect();
        let Some(numbers) = numbers else { return Ok(ColumnSpec(Given::Names(pairs))) };
        let mut list = Vec::new();
        for ((column, _), number) in pairs.iter().zip(numbers) {
            if number == 0 || number > MAX_FIELDS {
                return Err(refuse(format!("columns count from 1 to {MAX_FIELDS}, not {number}")));
            }
            if list.len() < number {
                list.resize(number, Column::Skip);
            }
            if list[number - 1] != Column::Skip {
                return Err(refuse(format!("column {number} is given twice")));
            }
            list[number - 1] = *column;
        }
        Ok(ColumnSpec(Given::Numbers(list)))
    }

    /// The names of the header that are asked for; empty where columns are given by number.
    pub(crate) fn names(&self) -> Vec<&str> {
        match &self.0 {
            Given::Numbers(_) => Vec::new(),
            Given::Names(pairs) => pairs.iter().map(|(_, name)| name.as_str()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_columns_is_named() {
        let parse = |text: &str| ColumnSpec::parse("--columns", text);
        assert_eq!(parse("id=when").unwrap().names(), ["when"]);
        assert!(parse("id=1,size=2").unwrap().names().is_empty());
        for (bad, why) in [
            ("time", "has no `=`"),
            ("colour=1", "no meaning"),
            ("id=0", "count from 1"),
            ("id=257", "count from 1"),
            ("id=1,size=1", "given twice"),
            ("size=1", "neither `id` nor"),
            ("time=when", "neither `id` nor"),
            ("", "has no `=`"),
        ] {
            let problem = parse(bad).unwrap_err();
            assert!(problem.message.starts_with(&format!("--columns `{bad}`: ")), "{problem}");
            assert!(problem.message.contains(why) && problem.hint.is_some(), "{problem}");
        }
    }
}
