//! A workload from a short text, `readers=30,files=1000,sizes=930:3030:6102,dirs=390`, a name that ships, or the same keys as
//! TOML.

use std::fmt;

use iowhy_core::nearest::did_you_mean;
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units;

use super::{Method, What, Workload};

/// Workloads that ship: name and text.
pub const SHIPPED: &[(&str, &str, &str)] = &[
    (
        "news-1999",
        "readers=30,files=1000,sizes=930:3030:6102,dirs=390,population=1200000",
        "30 readers of small files in a tree of 1.2 million (A. Rosen, current-users, January 1999)",
    ),
    (
        "cached-random-2006",
        "readers=1,requests=102400,bytes=4k,size=400m,pattern=random,warm=yes",
        "random reads of 4 KiB from a cached file of 400 MB (B. Evans, freebsd-performance, December 2006)",
    ),
    (
        "cached-sequential-2006",
        "readers=1,requests=102400,bytes=4k,size=400m,pattern=sequential,warm=yes",
        "the same, sequential",
    ),
    (
        "two-disks-1999",
        "readers=2,requests=90,bytes=10m,size=900m,own=yes",
        "two readers of 10 MB pieces, each on a disk of its own (linux-kernel, July 1999); with method=mlock it is serialised",
    ),
    (
        "file-1989",
        "readers=1,requests=2048,bytes=1k,size=2m",
        "a file of 2 MB in pieces of 1 KB (comp.os.minix, August 1989)",
    ),
    (
        "random-4k",
        "readers=32,requests=10000,bytes=4k,size=16g,pattern=random",
        "32 readers, random reads of 4 KiB from 16 GiB",
    ),
];

/// Keys and their meaning.
pub const KEYS: &[(&str, &str)] = &[
    ("readers", "clients, each with one request at a time"),
    ("think", "pause of a client between its requests"),
    ("lockstep", "all clients wait for all before their next request"),
    ("rate", "Poisson arrivals a second, instead of clients that wait"),
    ("method", "read, mapped, mlock, direct"),
    ("warm", "the cache holds the files already"),
    ("files", "small files: how many each reader reads"),
    ("sizes", "small files: sizes, mixed evenly, as 930:3030:6102"),
    ("dirs", "small files: directories"),
    ("population", "small files: how many there are in all"),
    ("order", "small files: random or created"),
    ("size", "large files: bytes of each"),
    ("bytes", "large files: bytes of a request"),
    ("requests", "large files: requests of each reader"),
    ("pattern", "large files: sequential, random, permuted, zipf:1.0, stride:4, reverse"),
    ("own", "large files: one for each reader"),
    ("write", "large files: writes in per cent"),
];

const MAX_CLIENTS: u64 = 1 << 20;
const MAX_REQUESTS: u64 = 1 << 40;
const MAX_POPULATION: u64 = 50_000_000;
/// A request of more is a slip of the finger, and would be split into a quarter of a million blocks.
const MAX_REQUEST_BYTES: u64 = 1 << 30;

/// The values given.
#[derive(Default)]
struct Given {
    pairs: Vec<(String, String)>,
}

impl Given {
    fn take(&mut self, key: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(name, _)| name == key)?;
        Some(self.pairs.remove(at).1)
    }
}

impl Workload {
    /// Reads a text or the name of one that ships.
    ///
    /// # Errors
    /// Names the key that is unknown, wrong, given twice, or does not go with the others.
    pub fn parse(text: &str) -> Result<Workload, Problem> {
        let text = text.trim();
        if let Some((_, spec, _)) = SHIPPED.iter().find(|(name, _, _)| *name == text) {
            return Workload::parse(spec);
        }
        let mut given = Given::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let Some((key, value)) = item.split_once('=') else {
                if let Some((name, spec, _)) = SHIPPED.iter().find(|(name, _, _)| *name == item) {
                    return Err(Problem::refused(format!(
                        "--workload: the name `{name}` stands alone, without keys beside it"
                    ))
                    .hint(format!("change its text instead: `{spec}`")));
                }
                let near = did_you_mean(item, SHIPPED.iter().map(|(name, _, _)| *name));
                return Err(Problem::refused(format!("--workload: `{item}` is neither `key=value` nor a workload that ships"))
                    .hint(format!("{near}for example `readers=30,files=1000,sizes=930:3030:6102,dirs=390`; `--workload list` shows names and keys")));
            };
            given.pairs.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        build(given)
    }

    /// Reads the same keys from TOML; `source` names it in errors.
    ///
    /// # Errors
    /// As [`Workload::parse`], and errors of TOML.
    pub fn from_toml(text: &str, source: &str) -> Result<Workload, Problem> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Problem::refused(format!("`{source}` line {line}: {}", error.message().trim_end()))
                .hint("a workload is `key = value` lines; `--workload list` shows the keys")
        })?;
        let mut given = Given::default();
        for (key, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(flag) => if flag { "yes" } else { "no" }.to_owned(),
                toml::Value::Array(items) => items
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
                    .join(":"),
                _ => {
                    return Err(Problem::refused(format!(
                        "`{source}`: `{key}` has a value that no key takes"
                    ))
                    .hint("values are numbers, texts, yes or no; sizes may be a list"));
                }
            };
            given.pairs.push((key, text));
        }
        build(given)
            .map_err(|problem| Problem { message: format!("`{source}`: {}", problem.message), ..problem })
    }
}

impl fmt::Display for Workload {
    /// Every key with its value, those that were left out as well; reads back as the same workload.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |flag: bool| if flag { "yes" } else { "no" };
        write!(f, "readers={},", self.clients)?;
        match &self.what {
            What::Tree { files, sizes, directories, population, in_order } => {
                let sizes: Vec<String> = sizes.iter().map(|size| size_text(*size)).collect();
                let order = if *in_order { "created" } else { "random" };
                let sizes = sizes.join(":");
                write!(
                    f,
                    "files={files},sizes={sizes},dirs={directories},population={population},order={order}"
                )?;
            }
            What::Region { size, bytes, requests, pattern, own, write_percent } => {
                let (size, bytes, own) = (size_text(*size), size_text(*bytes), yes(*own));
                write!(f, "requests={requests},bytes={bytes},size={size},pattern={pattern},own={own}")?;
                write!(f, ",write={write_percent}")?;
            }
        }
        write!(f, ",method={},warm={}", self.method.id(), yes(self.warm))?;
        if self.rate > 0.0 {
            return write!(f, ",rate={}", self.rate);
        }
        write!(f, ",think={}ns,lockstep={}", self.think_ns, yes(self.lock_step))
    }
}

/// A size in the largest unit that it is a whole number of.
fn size_text(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    match units.into_iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits) {
        Some((bits, unit)) => format!("{}{unit}", bytes >> bits),
        None => bytes.to_string(),
    }
}

fn build(mut given: Given) -> Result<Workload, Problem> {
    let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    for (index, (key, _)) in given.pairs.iter().enumerate() {
        if !known.contains(&key.as_str()) {
            let near = did_you_mean(key, known.iter().copied());
            return Err(Problem::refused(format!("--workload: there is no key `{key}`"))
                .hint(format!("{near}the keys are {}", known.join(", "))));
        }
        if given.pairs[..index].iter().any(|(other, _)| other == key) {
            return Err(Problem::refused(format!("--workload: `{key}` is given twice")).hint("give it once"));
        }
    }
    let clients = count(&mut given, "readers", 1, 1..=MAX_CLIENTS)? as u32;
    let think_ns = match given.take("think") {
        None => 0,
        Some(text) if text.trim_end_matches(char::is_alphabetic) == "0" => 0,
        Some(text) => u64::try_from(units::parse_duration("--workload think", &text)?.as_nanos())
            .unwrap_or(u64::MAX)
            .min(1_000_000_000_000_000),
    };
    let rate = match given.take("rate") {
        None => 0.0,
        Some(text) => units::parse_rate("--workload rate", &text)?,
    };
    let lock_step = flag(&mut given, "lockstep")?;
    let warm = flag(&mut given, "warm")?;
    let method = match given.take("method") {
        None => Method::Read,
        Some(text) => Method::ALL.into_iter().find(|method| method.id() == text).ok_or_else(|| {
            Problem::refused(format!("--workload: `method={text}` is no method"))
                .hint("read, mapped, mlock, direct")
        })?,
    };
    if rate > 0.0 && (think_ns > 0 || lock_step) {
        return Err(Problem::refused(
            "--workload: `rate` lets requests come by themselves, so `think` and `lockstep` cannot act",
        )
        .hint("leave out `rate`, or the other"));
    }
    let small = given
        .pairs
        .iter()
        .any(|(key, _)| ["files", "sizes", "dirs", "population", "order"].contains(&key.as_str()));
    let what = if small { tree(&mut given, clients)? } else { region(&mut given)? };
    if let Some((key, _)) = given.pairs.first() {
        return Err(Problem::refused(format!(
            "--workload: `{key}` does not go with small files (`files`, `sizes`, `dirs`)"
        ))
        .hint("a workload is either a tree of small files or large files"));
    }
    let writes = matches!(what, What::Region { write_percent: 1.., .. });
    if writes && matches!(method, Method::Mapped | Method::Mlock) {
        return Err(Problem::refused("--workload: writes through mappings are not simulated")
            .hint("use `method=read` with `write`"));
    }
    Ok(Workload { clients, think_ns, lock_step, rate, method, warm, what })
}

fn tree(given: &mut Given, clients: u32) -> Result<What, Problem> {
    let files = count(given, "files", 1000, 1..=MAX_POPULATION)?;
    let directories = count(given, "dirs", 1, 1..=MAX_POPULATION)?;
    let read = files.saturating_mul(u64::from(clients));
    let population = count(given, "population", read.max(directories), 1..=MAX_POPULATION)?;
    if read > population {
        return Err(Problem::refused(format!("--workload: {clients} readers of {files} files each need {read} files, and there are {population}"))
            .hint("raise `population`"));
    }
    let text = given.take("sizes").unwrap_or_else(|| "4k".to_owned());
    let sizes = text
        .split(':')
        .map(|size| units::parse_bytes_nonzero("--workload sizes", size))
        .collect::<Result<Vec<u64>, Problem>>()?;
    if sizes.iter().any(|size| *size > MAX_REQUEST_BYTES) {
        return Err(Problem::refused(format!(
            "--workload: `sizes={text}`: a file that is read whole has 1 GiB at most"
        ))
        .hint("use `size` and `bytes` for larger files"));
    }
    let in_order = match given.take("order").as_deref() {
        None | Some("random") => false,
        Some("created") => true,
        Some(other) => {
            return Err(Problem::refused(format!("--workload: `order={other}` is no order"))
                .hint("random or created"));
        }
    };
    Ok(What::Tree { files, sizes, directories, population, in_order })
}

fn region(given: &mut Given) -> Result<What, Problem> {
    let size = bytes(given, "size", 64 << 20)?;
    let bytes = bytes(given, "bytes", 4096)?;
    if bytes > size || bytes > MAX_REQUEST_BYTES {
        return Err(Problem::refused(format!(
            "--workload: requests of {bytes} bytes do not fit into files of {size}, or exceed 1 GiB"
        ))
        .hint("give a larger `size`, or smaller `bytes`"));
    }
    let requests = count(given, "requests", 10_000, 1..=MAX_REQUESTS)?;
    let pattern = match given.take("pattern") {
        None => Pattern::Sequential,
        Some(text) => text.parse::<Pattern>()?,
    };
    let own = flag(given, "own")?;
    let write_percent = count(given, "write", 0, 0..=100)?;
    Ok(What::Region { size, bytes, requests, pattern, own, write_percent })
}

fn count(
    given: &mut Given,
    key: &str,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, Problem> {
    let Some(text) = given.take(key) else { return Ok(default) };
    match text.parse::<u64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(Problem::refused(format!("--workload: `{key}={text}` is not possible")).hint(format!(
            "a whole number from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

fn bytes(given: &mut Given, key: &str, default: u64) -> Result<u64, Problem> {
    match given.take(key) {
        None => Ok(default),
        Some(text) => units::parse_bytes_nonzero(&format!("--workload {key}"), &text),
    }
}

fn flag(given: &mut Given, key: &str) -> Result<bool, Problem> {
    match given.take(key).as_deref() {
        None | Some("no" | "false" | "0") => Ok(false),
        Some("yes" | "true" | "1") => Ok(true),
        Some(other) => Err(Problem::refused(format!("--workload: `{key}={other}` is neither yes nor no"))
            .hint("write yes or no")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_of_the_news_test() {
        let w = Workload::parse("readers=30,files=1000,sizes=930:3030:6102,dirs=390").unwrap();
        assert_eq!((w.clients, w.requests()), (30, 30_000));
        let What::Tree { sizes, directories, population, .. } = w.what else { panic!("a tree") };
        assert_eq!((sizes, directories, population), (vec![930, 3030, 6102], 390, 30_000));
        for (name, _, _) in SHIPPED {
            Workload::parse(name).unwrap();
        }
    }

    #[test]
    fn a_workload_spelled_out_is_the_same_workload() {
        let more = [
            "readers=3,requests=5,bytes=3000,size=1m,pattern=zipf:1.1,own=yes,write=30,method=direct,think=1500ns",
            "rate=2500,warm=yes",
            "files=5,sizes=930:8k,dirs=3,order=created,lockstep=yes",
        ];
        for text in SHIPPED.iter().map(|(name, _, _)| *name).chain(more) {
            let workload = Workload::parse(text).unwrap();
            assert_eq!(Workload::parse(&workload.to_string()), Ok(workload.clone()), "{workload}");
        }
        let plain = Workload::parse("requests=7").unwrap().to_string();
        let words = "readers=1,requests=7,bytes=4k,size=64m,pattern=sequential,own=no,write=0,method=read,warm=no,think=0ns,lockstep=no";
        assert_eq!(plain, words);
    }

    #[test]
    fn toml_takes_the_same_keys() {
        let toml = Workload::from_toml(
            "readers = 30\nfiles = 10\nsizes = [930, 3030, \"8k\"]\ndirs = 3\n",
            "w.toml",
        );
        assert_eq!(toml, Workload::parse("readers=30,files=10,sizes=930:3030:8192,dirs=3"));
        assert!(Workload::from_toml("readers = \n", "w.toml").unwrap_err().message.contains("line 1"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("reader=3", "did you mean `readers`"),
            ("readers=0", "readers=0"),
            ("readers=3,readers=4", "twice"),
            ("readers", "neither"),
            ("sizes=0", "more than zero"),
            ("files=5,bytes=4k", "`bytes` does not go"),
            ("bytes=2m,size=1m", "do not fit"),
            ("rate=100,think=1s", "cannot act"),
            ("method=mmap", "no method"),
            ("files=10,population=5", "raise `population`"),
            ("pattern=zipf", "exponent"),
            ("size=99999999e", "too large"),
            ("random-4k,readers=2", "readers=32,requests=10000,bytes=4k"),
            ("news-1998", "did you mean `news-1999`"),
        ] {
            let problem = Workload::parse(text).unwrap_err();
            let all = format!("{} {}", problem.message, problem.hint.unwrap_or_default());
            assert!(all.contains(word), "{text}: {all}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[a-z0-9=,:.]{0,60}") {
            let _ = Workload::parse(&text);
            let _ = Workload::from_toml(&text, "x");
        }
    }
}
