//! Files that list what can be chosen, with the choice in brackets: `none [mq-deadline] kyber`.

/// What is chosen, and all that is offered; a text without brackets is the only choice. `None` for an empty text.
pub fn parse(text: &str) -> Option<(String, Vec<String>)> {
    let offered: Vec<String> =
        text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect();
    let chosen =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name);
    let chosen = chosen.trim().to_owned();
    (!chosen.is_empty()).then_some((chosen, offered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_stands_in_brackets() {
        let of = |text| parse(text).map(|(chosen, offered)| (chosen, offered.len()));
        assert_eq!(of("none [mq-deadline] kyber\n"), Some(("mq-deadline".to_owned(), 3)));
        assert_eq!(of("[none]"), Some(("none".to_owned(), 1)));
        assert_eq!(of("none\n"), Some(("none".to_owned(), 1)));
        assert_eq!(of(" \n"), None);
    }
}
