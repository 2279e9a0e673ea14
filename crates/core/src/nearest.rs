//! Names near to a mistyped one. It compares letters only and does not know what the names mean.

/// No name is longer.
const MAX_BYTES: usize = 80;

/// "did you mean `x`? " for a hint; empty where no name is near.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(String::new, |near| format!("did you mean `{near}`? "))
}

/// The name that a mistyped word most likely stands for, if one is near: at most one edit in a short word, two in one of
/// five letters or more. One other letter makes another word of three letters (`zfs` is not `xfs`), so that is not near.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A text this long is no typing error, and would cost time.
    if word.len() > MAX_BYTES {
        return None;
    }
    let limit = if word.chars().count() < 5 { 1 } else { 2 };
    let near = names.into_iter().map(|name| (edits(word, name), name)).filter(|(edits, _)| *edits <= limit);
    let near = near.filter(|(_, name)| word.chars().count() > 3 || !is_replaced(word, name));
    near.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// Whether words of one length differ in more than the order of their letters.
fn is_replaced(one: &str, two: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    one != two && one.chars().count() == two.chars().count() && letters(one) != letters(two)
}

/// Letters to insert, remove, replace, or exchange with the next (optimal string alignment).
fn edits(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i; two.len() + 1];
        for j in 1..=two.len() {
            let replaced = row[j - 1] + usize::from(one[i - 1] != two[j - 1]);
            next[j] = replaced.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == two[j - 2] && one[i - 2] == two[j - 1] {
                next[j] = next[j].min(above[j - 2] + 1);
            }
        }
        above = std::mem::replace(&mut row, next);
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_have_a_name_and_other_words_have_none() {
        let names = ["bench", "mrc", "sim", "doctor", "tree", "trace", "history"];
        for (word, name) in [
            ("benhc", Some("bench")),
            ("bnech", Some("bench")),
            ("benches", Some("bench")),
            ("mcr", Some("mrc")),
            ("tre", Some("tree")),
            ("docter", Some("doctor")),
            ("tracer", Some("trace")),
            ("data", None),
            ("top", None),
            ("sum", None),
            ("smi", Some("sim")),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), name, "{word}");
        }
        let long = "a".repeat(MAX_BYTES + 1);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        assert_eq!(did_you_mean("benhc", names), "did you mean `bench`? ");
        assert_eq!(did_you_mean("data", names), "");
        assert_eq!(
            (edits("abc", ""), edits("", "ab"), edits("äb", "bä"), edits("same", "same")),
            (3, 2, 1, 0)
        );
    }
}
