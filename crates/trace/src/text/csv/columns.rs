//! The columns of a CSV file, from its header or from the user.

use iowhy_core::request::Request;

use crate::columns::{Column, ColumnSpec, Given, MAX_FIELDS};
use crate::format::Kind;

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

    /// The columns that the user gave by number; `None`: by name.
    pub(super) fn by_number(spec: &ColumnSpec) -> Option<Columns> {
        match &spec.0 {
            Given::Numbers(list) => Columns::new(list.clone(), b',', None),
            Given::Names(_) => None,
        }
    }

    /// The columns that the user gave by the names of the header. `None`: it does not have them.
    pub(super) fn by_header_name(spec: &ColumnSpec, line: &[u8]) -> Option<Columns> {
        let Given::Names(wanted) = &spec.0 else { return None };
        let (names, separator) = split(line)?;
        let mut list = vec![Column::Skip; names.len()];
        for (column, wanted) in wanted {
            let at =
                names.iter().position(|name| name.trim().trim_matches('"').eq_ignore_ascii_case(wanted))?;
            list[at] = *column;
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
    use crate::columns::Time;

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
        let spec = |text: &str| ColumnSpec::parse("--columns", text).unwrap();
        let columns = Columns::by_number(&spec("time_ms=1,id=3,size=4")).unwrap();
        assert_eq!(columns.list, [Column::Time(Time::Milliseconds), Column::Skip, Column::Id, Column::Size]);
        let columns = Columns::by_header_name(&spec("id=b,size=c"), b"a,b,c").unwrap();
        assert_eq!(columns.list, [Column::Skip, Column::Id, Column::Size]);
        assert!(Columns::by_header_name(&spec("id=z"), b"a,b,c").is_none());
    }
}
