//! Messages of Protocol Buffers: a writer for the few wire types that Perfetto's messages need.
//! <https://protobuf.dev/programming-guides/encoding/>

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// An unsigned number, an enumeration or a flag.
    pub(super) fn uint(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// A signed number of the types `int32` and `int64`.
    pub(super) fn int(self, field: u64, value: i64) -> Message {
        self.uint(field, value.cast_unsigned())
    }

    /// A text.
    pub(super) fn text(mut self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes());
        self
    }

    /// A message within this one.
    pub(super) fn message(mut self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0);
        self
    }

    /// The bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_bytes_of_the_published_examples() {
        // From the page above: `a: 150`, `b: "testing"`, a message within one, and -2.
        assert_eq!(Message::default().uint(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").as_bytes(), b"\x12\x07testing");
        let within = Message::default().message(3, &Message::default().uint(1, 150));
        assert_eq!(within.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus = Message::default().int(1, -2);
        assert_eq!(minus.as_bytes()[1..], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
