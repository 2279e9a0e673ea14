//! The layout of a tracepoint's record, read from its `format` file. Pure: no files here.

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Offset from the start of the raw record, in bytes.
    pub offset: usize,
    /// Size in bytes; of an array, of the whole array.
    pub size: usize,
    /// Whether an integer in it is signed.
    pub signed: bool,
}

/// The fields of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    fields: Vec<Field>,
}

impl Format {
    /// Reads the text of a `format` file. Lines that do not describe a field are passed over.
    pub fn parse(text: &str) -> Self {
        Format { fields: text.lines().filter_map(field).collect() }
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Whether no field was found.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

impl Field {
    /// The bytes of the field; `None` if the record is too short.
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        raw.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// An integer of 1 to 8 bytes, extended by its sign if it has one (so that `as i64` is right).
    pub fn integer(&self, raw: &[u8]) -> Option<u64> {
        let bytes = self.bytes(raw)?;
        let value = match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => return Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => return None,
        };
        let unused = 64 - 8 * bytes.len() as u32;
        Some(if self.signed { (((value << unused) as i64) >> unused) as u64 } else { value })
    }

    /// Text up to the first NUL; what is not UTF-8 ends it too.
    pub fn text<'a>(&self, raw: &'a [u8]) -> Option<&'a str> {
        self.bytes(raw).map(text)
    }
}

/// Text up to the first NUL or the first byte that is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs between the parts.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse::<usize>().ok(),
            Some(("size", value)) => size = value.parse::<usize>().ok(),
            Some(("signed", value)) => signed = value.parse::<u8>().ok(),
            _ => {}
        }
    }
    // The name is the last word, without the length of an array: `char rwbs[10]`.
    let word = declaration.rsplit([' ', '\t', '*']).next()?;
    let name = word.split('[').next().filter(|n| !n.is_empty())?;
    Some(Field { name: name.to_owned(), offset: offset?, size: size?, signed: signed? != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "name: sample\nID: 12\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:44;\tsize:4;\tsigned:0;\n\
        \tfield:long pause;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:const char * name;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:int error;\toffset:24;\tsize:4;\tsigned:1;\n\
        \nprint fmt: \"%d; field:x\", REC->error\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(TEXT);
        let rwbs = format.field("rwbs").expect("an array");
        assert_eq!((rwbs.offset, rwbs.size, rwbs.signed), (34, 10, false));
        assert_eq!(format.field("cmd").map(|f| f.offset), Some(44));
        assert_eq!(format.field("name").map(|f| f.offset), Some(16));
        assert!(format.field("pause").is_some_and(|f| f.signed));
        assert_eq!(format.field("nothing"), None);
    }

    #[test]
    fn integers_keep_their_sign_and_short_records_give_nothing() {
        let mut raw = vec![0u8; 48];
        raw[24..28].copy_from_slice(&(-5i32).to_ne_bytes());
        raw[34..37].copy_from_slice(b"WS\0");
        let format = Format::parse(TEXT);
        assert_eq!(format.field("error").and_then(|f| f.integer(&raw)), Some(-5i64 as u64));
        assert_eq!(format.field("rwbs").and_then(|f| f.text(&raw)), Some("WS"));
        assert_eq!(format.field("rwbs").and_then(|f| f.integer(&raw)), None);
        assert_eq!(format.field("error").and_then(|f| f.integer(&raw[..27])), None);
    }

    #[test]
    fn text_ends_where_utf8_ends() {
        assert_eq!(text(b"ab\xffcd"), "ab");
        assert_eq!(text(b""), "");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*", raw in prop::collection::vec(any::<u8>(), 0..64)) {
            let line = format!("field:{text}\nfield:int x; offset:{}; size:4; signed:1;", usize::MAX);
            let format = Format::parse(&line);
            if let Some(field) = format.field("x") {
                prop_assert_eq!(field.integer(&raw), None);
            }
        }
    }
}
