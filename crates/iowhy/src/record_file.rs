//! Reading a record from a file, with an error that says what the file is instead.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::text::{acts, visible};
use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;

use crate::record::{Kind, SCHEMA};
use crate::store;

/// A record of a whole sweep with its histograms has some tens of MiB.
const MAX_BYTES: u64 = 1 << 30;

/// A record of a kind and format that are known, all of whose numbers are figures of something.
///
/// It is kept as text and read into what its kind is made of, without a tree of values in between: that took as long as all that a report
/// does besides.
#[derive(Debug)]
pub(crate) struct RecordText {
    path: PathBuf,
    kind: Kind,
    text: Vec<u8>,
    /// A text in it acts on a screen.
    acts: bool,
}

impl RecordText {
    /// Its kind.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// What it holds.
    ///
    /// # Errors
    /// It lacks keys of its kind, or has them with other types.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.text).map_err(|error| damaged(&self.path, &error))
    }
}

/// Reads a record of any command, also one kept under a name (`@NAME`). `hint` says how to make one that would do.
///
/// # Errors
/// The file cannot be read, is cut off, is no record, or is one of a later format.
pub(crate) fn any(path: &Path, hint: &str) -> Result<RecordText, Problem> {
    let path = store::resolve(path)?;
    let text = text(&path, hint)?;
    let looked: Looked = parsed(&path, &text, hint)?;
    let kind = kind_of(&path, &text, hint)?;
    if kind == Kind::RunTime {
        return Err(only_run_time(&path));
    }
    match looked.beyond_sense {
        Some(place) => Err(Problem::refused(format!(
            "`{}` is a damaged record: {}",
            path.display(),
            place.trim_start_matches('.')
        ))
        .hint("make it again")),
        None => Ok(RecordText { path, kind, text, acts: looked.acts }),
    }
}

/// Reads some keys of a record of one of these kinds; the others are passed over, and take no memory.
///
/// # Errors
/// Those of [`any`], a record of another kind, and keys of other types.
pub(crate) fn part<T: DeserializeOwned>(
    path: &Path,
    hint: &str,
    kinds: &[Kind],
) -> Result<(Kind, T), Problem> {
    let text = text(path, hint)?;
    let kind = kind_of(path, &text, hint)?;
    if !kinds.contains(&kind) {
        return Err(Problem::refused(format!(
            "`{}` is a record of another kind: {}",
            path.display(),
            kind.words()
        ))
        .hint(hint.to_owned()));
    }
    let record = serde_json::from_slice(&text).map_err(|error| damaged(path, &error))?;
    Ok((kind, record))
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8], hint: &str) -> Result<T, Problem> {
    serde_json::from_slice(text).map_err(|error| {
        let what = match error.classify() {
            Category::Eof if text.is_empty() => "is empty".to_owned(),
            Category::Eof => "ends in the middle: it was cut off".to_owned(),
            Category::Data => "is JSON, but no record of iowhy".to_owned(),
            _ => format!("is no JSON: {error}"),
        };
        Problem::refused(format!("`{}` {what}", path.display())).hint(hint.to_owned())
    })
}

/// The kind of a record of a format that is known.
fn kind_of(path: &Path, text: &[u8], hint: &str) -> Result<Kind, Problem> {
    #[derive(Deserialize)]
    struct Head {
        kind: Option<Value>,
        schema: Option<Value>,
    }
    let name = path.display();
    let head: Head = parsed(path, text, hint)?;
    let kind = head.kind.and_then(|kind| serde_json::from_value(kind).ok());
    match head.schema.as_ref().and_then(Value::as_u64).zip(kind) {
        Some((schema, _)) if schema > u64::from(SCHEMA) => Err(Problem::refused(format!(
            "`{name}` has format {schema}; this iowhy ({}) reads up to {SCHEMA}",
            env!("CARGO_PKG_VERSION")
        ))
        .hint("read it with the version that made it, or a later one")),
        Some((_, kind)) => Ok(kind),
        None => {
            Err(Problem::refused(format!("`{name}` is JSON, but no record of iowhy")).hint(hint.to_owned()))
        }
    }
}

/// The refusal of a record without a profile.
pub(crate) fn only_run_time(path: &Path) -> Problem {
    let name = path.display();
    Problem::refused(format!("`{name}` holds only the run time of a program that may not be profiled"))
        .hint("profile it with the rights for it: `sudo iowhy --as-root --json FILE -- CMD`")
}

/// The refusal of a number that is no figure of anything.
pub(crate) fn no_figure(path: &Path, figure: f64) -> Problem {
    Problem::refused(format!("`{}` is a damaged record: {figure} is no time and no share", path.display()))
        .hint("make it again")
}

/// The figures of a record (nanoseconds, bytes, shares) are smaller by far; sums and products of two below it are finite.
pub(crate) const MAX_FIGURE: f64 = 1e30;

/// What is looked for in all of a record: a pass over its text that keeps nothing.
#[derive(Debug, Default)]
struct Looked {
    /// Where it holds a number that is no figure of anything, and which.
    beyond_sense: Option<String>,
    /// Whether a text in it acts on a screen.
    acts: bool,
}

impl<'de> Deserialize<'de> for Looked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Looked, D::Error> {
        let mut looked = Looked::default();
        Look(&mut looked).deserialize(from)?;
        Ok(looked)
    }
}

struct Look<'a>(&'a mut Looked);

impl Look<'_> {
    /// Looks at an entry of a list or of an object, by `visit`; `place` is where it is.
    fn entry<R, E>(
        &mut self,
        visit: impl FnOnce(Look<'_>) -> Result<R, E>,
        place: impl Fn() -> String,
    ) -> Result<R, E> {
        let known = self.0.beyond_sense.is_some();
        let visited = visit(Look(self.0))?;
        if let Some(inner) = self.0.beyond_sense.as_mut().filter(|_| !known) {
            inner.insert_str(0, &place());
        }
        Ok(visited)
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, figure: f64) -> Result<(), E> {
        if (figure.is_nan() || figure.abs() > MAX_FIGURE) && self.0.beyond_sense.is_none() {
            self.0.beyond_sense = Some(format!(" is {figure:e}, and no figure is above {MAX_FIGURE:e}"));
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.acts |= text.contains(acts);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut at = 0_usize;
        while self.entry(|look| list.next_element_seed(look), || format!("[{at}]"))?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            self.0.acts |= key.contains(acts);
            self.entry(|look| map.next_value_seed(look), || format!(".{}", visible(&key)))?;
        }
        Ok(())
    }
}

/// [`any`] for a command that only shows the record: what acts on a screen is escaped in every text of it.
///
/// # Errors
/// Those of [`any`].
pub(crate) fn shown(path: &Path, hint: &str) -> Result<RecordText, Problem> {
    let mut record = any(path, hint)?;
    if std::mem::take(&mut record.acts) {
        let mut value: Value = record.read()?;
        make_visible(&mut value);
        record.text = serde_json::to_vec(&value).map_err(|error| damaged(&record.path, &error))?;
    }
    Ok(record)
}

/// serde_json nests at most 128 deep, so the recursion is bounded.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(acts) => *text = visible(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(make_visible),
        Value::Object(map) => {
            map.values_mut().for_each(make_visible);
            let evil: Vec<String> = map.keys().filter(|key| key.contains(acts)).cloned().collect();
            for key in evil {
                if let Some(value) = map.remove(&key) {
                    map.insert(visible(&key).into_owned(), value);
                }
            }
        }
        _ => {}
    }
}

/// The error for a record that lacks keys of its kind, or has them with other types.
fn damaged(path: &Path, error: &serde_json::Error) -> Problem {
    Problem::refused(format!("`{}` is a damaged record: {error}", path.display())).hint("make it again")
}

fn text(path: &Path, hint: &str) -> Result<Vec<u8>, Problem> {
    let failed = |error: std::io::Error| {
        Problem::refused(format!("cannot read `{}`: {error}", path.display())).hint(hint.to_owned())
    };
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(
            Problem::refused(format!("`{}` is larger than any record", path.display())).hint(hint.to_owned())
        );
    }
    Ok(text)
}
