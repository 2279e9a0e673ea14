//! Values of options: text to a type. Every refusal has one form: option, value, cause, and what is allowed.
//!
//! What may not enter: checks that need a target, a file or another option; they belong to the command.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use iowhy_core::nearest::did_you_mean;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};

/// Values of one option that is given once. Under the name `Vec` the parser would take it for an option given again.
pub type List<T> = Vec<T>;

/// A parser that is told the name of its option.
pub fn value<T, F>(parse: F) -> Named<F>
where
    F: Fn(&str, &str) -> Result<T, Problem>,
{
    Named(parse)
}

/// See [`value`].
#[derive(Clone, Copy, Debug)]
pub struct Named<F>(F);

impl<T, F> TypedValueParser for Named<F>
where
    T: Clone + Send + Sync + 'static,
    F: Fn(&str, &str) -> Result<T, Problem> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        let option = argument.map(name).unwrap_or_default();
        let parse = self.0.clone();
        (move |text: &str| parse(&option, text)).parse_ref(command, argument, value)
    }
}

/// An argument as it is typed: `--size`, or the name of its value.
fn name(argument: &Arg) -> String {
    match (argument.get_long(), argument.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => argument.get_id().to_string(),
    }
}

/// A list with commas between; repeated values are dropped.
pub fn list<T: PartialEq>(
    item: impl Fn(&str, &str) -> Result<T, Problem> + Clone,
) -> impl Fn(&str, &str) -> Result<List<T>, Problem> + Clone {
    move |option, text| {
        let mut items = Vec::new();
        for part in text.split(',') {
            let value = item(option, part.trim())?;
            if !items.contains(&value) {
                items.push(value);
            }
        }
        Ok(items)
    }
}

/// One of a few words.
pub fn one_of<T: Copy + Send + Sync>(
    all: &'static [T],
    id: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|value| id(*value))).try_map(move |text| {
        all.iter()
            .copied()
            .find(|value| id(*value).eq_ignore_ascii_case(&text))
            .ok_or_else(|| unknown_word("", &text, &words(all, id)))
    })
}

/// One of a few words, as an item of a [`list`].
pub fn word<T: Copy>(
    all: &'static [T],
    id: fn(T) -> &'static str,
) -> impl Fn(&str, &str) -> Result<T, Problem> + Clone {
    move |option, text| {
        let found = all.iter().copied().find(|value| id(*value) == text);
        found.ok_or_else(|| unknown_word(option, text, &words(all, id)))
    }
}

fn words<T: Copy>(all: &[T], id: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|value| id(*value)).collect()
}

/// The refusal of a word that is none of these.
pub fn unknown_word(option: &str, text: &str, words: &[&str]) -> Problem {
    let near = did_you_mean(text, words.iter().copied());
    refused_value(option, text, "unknown value", format!("{near}one of {}", words.join(", ")))
}

/// A whole number in a range.
pub fn count<T>(range: RangeInclusive<u64>) -> impl Fn(&str, &str) -> Result<T, Problem> + Clone
where
    T: TryFrom<u64>,
{
    move |option, text| {
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let (least, most) = (*range.start(), *range.end());
            let why = match most {
                u64::MAX => format!("not a whole number from {least} on"),
                _ => format!("not a whole number from {least} to {most}"),
            };
            refused_value(option, text, &why, format!("for example `{option} {}`", most.min(least.max(10))))
        })
    }
}

/// A seed: any whole number.
pub fn seed(option: &str, text: &str) -> Result<u64, Problem> {
    count(0..=u64::MAX)(option, text)
}

/// A time that is not below a minimum.
pub fn time_from(least: Duration) -> impl Fn(&str, &str) -> Result<Duration, Problem> + Clone {
    move |option, text| {
        let time = units::parse_duration(option, text)?;
        if time < least {
            let least = format!("{least:?}");
            return Err(refused_value(
                option,
                text,
                "too short",
                format!("give at least `{option} {least}`"),
            ));
        }
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_option_the_value_and_what_is_allowed() {
        let problem = count::<u32>(5..=99)("--rounds", "4").unwrap_err();
        assert_eq!(problem.message, "--rounds `4`: not a whole number from 5 to 99");
        assert_eq!(problem.hint.as_deref(), Some("for example `--rounds 10`"));
        assert!(count::<u32>(0..=u64::MAX)("--n", "4294967296").is_err(), "more than the type holds");
        let problem = time_from(Duration::from_secs(2))("--time", "1s").unwrap_err();
        assert_eq!(problem.message, "--time `1s`: too short");
        assert_eq!(problem.hint.as_deref(), Some("give at least `--time 2s`"));
        let problem = list(count::<u32>(1..=8))("--threads", "1,,2").unwrap_err();
        assert!(problem.message.starts_with("--threads ``: "), "{problem}");
    }

    #[test]
    fn a_word_with_a_typing_error_has_a_near_one_and_another_word_has_none() {
        let colour = word(&["red", "green"], |word| word);
        assert_eq!(colour("--colour", "green"), Ok("green"));
        let hint = |text: &str| colour("--colour", text).unwrap_err().hint.unwrap();
        assert_eq!(hint("gren"), "did you mean `green`? one of red, green");
        assert_eq!(hint("mauve"), "one of red, green");
    }

    #[test]
    fn a_list_keeps_its_order_and_drops_what_is_repeated() {
        assert_eq!(list(count::<u32>(1..=8))("--threads", "4, 1,4"), Ok(vec![4, 1]));
    }
}
