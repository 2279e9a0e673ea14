//! From the bytes that a terminal sends to keys (ECMA-48, and the sequences of xterm's function keys). Pure; what it does not know is
//! dropped, however it is cut into reads.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Escape,
    /// Ctrl-C, or Ctrl-\.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    Char(char),
}

const ESCAPE: u8 = 0x1b;
/// A sequence of a key has no more parameters; what is longer is cut there.
const MAX_PARAMETERS: usize = 16;

/// Reads keys out of what a terminal sends.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a sequence whose rest has not come yet.
    pending: Vec<u8>,
}

impl Decoder {
    /// The keys of these bytes. None came (since some time): a lone Escape is the key, not the beginning of a sequence.
    pub(crate) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        if bytes.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            return if pending == [ESCAPE] { vec![Key::Escape] } else { Vec::new() };
        }
        self.pending.extend(bytes);
        let mut keys = Vec::new();
        let mut rest = self.pending.as_slice();
        while let Some(used) = next(rest, &mut keys) {
            rest = &rest[used..];
        }
        self.pending = rest.to_vec();
        keys
    }
}

/// Reads one key; gives the bytes that it took. `None`: there is none, or not all of it.
fn next(bytes: &[u8], keys: &mut Vec<Key>) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    let key = match *first {
        ESCAPE => return sequence(rest, keys),
        b'\r' | b'\n' => Some(Key::Enter),
        0x03 | 0x1c => Some(Key::Interrupt),
        0x1a => Some(Key::Suspend),
        byte => (byte == b' ' || byte.is_ascii_graphic()).then_some(Key::Char(char::from(byte))),
    };
    keys.extend(key);
    Some(1)
}

/// What follows an Escape: `[` or `O`, parameters, a final byte. Else it is the key itself.
fn sequence(rest: &[u8], keys: &mut Vec<Key>) -> Option<usize> {
    let (kind, parameters) = rest.split_first()?;
    if !matches!(kind, b'[' | b'O') {
        keys.push(Key::Escape);
        return Some(1);
    }
    let looked_at = &parameters[..parameters.len().min(MAX_PARAMETERS)];
    let Some(length) = looked_at.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (looked_at.len() == MAX_PARAMETERS).then_some(2 + MAX_PARAMETERS);
    };
    keys.extend(match (&parameters[..length], parameters[length]) {
        ([], b'A') => Some(Key::Up),
        ([], b'B') => Some(Key::Down),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        ([], b'M') if *kind == b'O' => Some(Key::Enter),
        _ => None,
    });
    Some(2 + length + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(reads: &[&[u8]]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys: Vec<Key> = reads.iter().flat_map(|bytes| decoder.keys(bytes)).collect();
        keys.extend(decoder.keys(&[]));
        keys
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        for (bytes, expected) in [
            (&b"q?"[..], &[Key::Char('q'), Key::Char('?')][..]),
            (b"\x1b[A\x1bOB", &[Key::Up, Key::Down]),
            (b"\x1b[5~\x1b[6~\r", &[Key::PageUp, Key::PageDown, Key::Enter]),
            (b"\x1b", &[Key::Escape]),
            (b"\x1bq", &[Key::Escape, Key::Char('q')]),
            (b"\x1b\x1b[A", &[Key::Escape, Key::Up]),
            (b"\x03\x1a", &[Key::Interrupt, Key::Suspend]),
            // F5, a mouse, Ctrl-Right, a letter that is no ASCII: nothing.
            (b"\x1b[15~\x1b[<0;1;1M\x1b[1;5C\xc3\xa4", &[]),
            (b"\x1b[", &[]),
        ] {
            assert_eq!(keys(&[bytes]), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_into_reads_changes_nothing(
            bytes in prop::collection::vec(prop::sample::select(b"\x1b[OAB56~q\r;1".to_vec()), 1..40),
            cut in 1_usize..6,
        ) {
            let cuts: Vec<&[u8]> = bytes.chunks(cut).collect();
            let (mut decoder, mut whole) = (Decoder::default(), Decoder::default());
            let in_parts: Vec<Key> = cuts.iter().flat_map(|part| decoder.keys(part)).collect();
            prop_assert_eq!(in_parts, whole.keys(&bytes));
        }

        #[test]
        fn memory_is_bounded_whatever_is_sent(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::default();
            for part in bytes.chunks(7) {
                decoder.keys(part);
                prop_assert!(decoder.pending.len() < 2 + MAX_PARAMETERS);
            }
        }
    }
}
