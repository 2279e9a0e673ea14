//! Cutting a line into fields.

use memchr::memchr;

/// Exactly `N` fields between separators, blanks around them removed; `None` for any other number.
#[inline]
pub(super) fn separated<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut rest = line;
    for (i, field) in fields.iter_mut().enumerate() {
        let last = i + 1 == N;
        *field = match memchr(separator, rest) {
            Some(_) if last => return None,
            Some(end) => {
                let field = &rest[..end];
                rest = &rest[end + 1..];
                field
            }
            None if last => rest,
            None => return None,
        }
        .trim_ascii();
    }
    Some(fields)
}

/// The next word between blanks, and the rest.
#[inline]
pub(super) fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    Some((&text[..end], &text[end..]))
}

/// Up to `N` words; how many there were in all, counted no further than `N` + 1.
pub(super) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut rest = line;
    let mut count = 0;
    while let Some((next, after)) = word(rest) {
        match fields.get_mut(count) {
            Some(field) => *field = next,
            None => return (fields, N + 1),
        }
        count += 1;
        rest = after;
    }
    (fields, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_fields_must_be_right() {
        assert_eq!(separated::<3>(b"a, b ,c", b','), Some([&b"a"[..], b"b", b"c"]));
        assert_eq!(separated::<3>(b"a,,", b','), Some([&b"a"[..], b"", b""]));
        assert_eq!(separated::<3>(b"a,b", b','), None);
        assert_eq!(separated::<3>(b"a,b,c,d", b','), None);
        let (fields, count) = words::<3>(b"  a bb\tc ");
        assert_eq!((fields, count), ([&b"a"[..], b"bb", b"c"], 3));
        assert_eq!(words::<2>(b"a b c d").1, 3);
        assert_eq!(words::<2>(b"").1, 0);
    }
}
