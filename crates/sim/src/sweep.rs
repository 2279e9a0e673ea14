//! Sweeps: the points, and the best, the knee and the cliffs of their times. The caller runs the points.

use iowhy_core::problem::Problem;
use iowhy_core::units;

use crate::machine::{Machine, Value};

/// One key and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// `layer.key`.
    pub path: String,
    /// Values: numbers rising, words in the order given; none twice.
    pub values: Vec<Value>,
}

/// Values of one axis at most: a range of more is refused at once.
const MAX_VALUES: usize = 100_000;

impl Axis {
    /// Reads `layer.key=a,b,c..d`. A range doubles, or takes a factor after `*` or a step after `+`: `8..4096*4`, `10..50+10`.
    ///
    /// # Errors
    /// Names the option and its fault.
    pub fn parse(text: &str) -> Result<Axis, Problem> {
        let refuse = |why: &str| {
            Problem::refused(format!("--sweep `{text}`: {why}"))
                .hint("for example `--sweep volume.interleave=8..32768`, `16,126,128`, `10..50+10`")
        };
        let (path, list) = text.split_once('=').ok_or_else(|| refuse("no `=` between key and values"))?;
        let mut values = Vec::new();
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item.split_once("..") {
                Some((low, rest)) => range(low, rest, &mut values).map_err(refuse)?,
                None => values.push(Value::Text(item.to_owned())),
            }
            if values.len() > MAX_VALUES {
                return Err(refuse("more than 100000 values"));
            }
        }
        if values.is_empty() {
            return Err(refuse("no values"));
        }
        in_order(&mut values);
        Ok(Axis { path: path.trim().to_owned(), values })
    }

    /// Whether its values are numbers that rise: a knee or a cliff between words would mean nothing.
    pub fn rises(&self) -> bool {
        self.values.iter().all(|value| number(value).is_some())
    }
}

/// A value as a number or a size; words are none.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Text(text) => {
            let plain = text.parse::<f64>().ok().filter(|number| number.is_finite());
            plain.or_else(|| units::parse_bytes("", text).ok().map(|bytes| bytes as f64))
        }
        _ => None,
    }
}

/// Numbers and sizes rise, so that neighbours in a table are neighbours; nothing stands twice.
fn in_order(values: &mut Vec<Value>) {
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
        values.dedup_by_key(|value| number(value));
    } else {
        let mut seen = std::collections::HashSet::new();
        values.retain(|value| seen.insert(value.to_string()));
    }
}

fn range(low: &str, rest: &str, values: &mut Vec<Value>) -> Result<(), &'static str> {
    let (high, step) = match rest.find(['*', '+']) {
        Some(at) => (&rest[..at], Some((rest.as_bytes()[at], &rest[at + 1..]))),
        None => (rest, None),
    };
    let number = |text: &str| {
        units::parse_bytes("--sweep", text).map_err(|_| "a range goes between whole numbers or sizes")
    };
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err("the range runs downwards");
    }
    let (factor, step) = match step {
        None => (Some(2), 0),
        Some((b'*', text)) => (text.parse::<u64>().ok().filter(|factor| *factor >= 2), 0),
        Some((_, text)) => (Some(1), number(text)?),
    };
    let factor = factor.ok_or("the factor must be a whole number, 2 or more")?;
    if (factor == 1 && step == 0) || (factor > 1 && low == 0) {
        return Err("the range never ends: 0 cannot be doubled, and a step must be 1 or more");
    }
    let mut at = low;
    while at < high {
        values.push(Value::Int(at));
        if values.len() > MAX_VALUES {
            return Err("more than 100000 values");
        }
        at = match at.checked_mul(factor).and_then(|next| next.checked_add(step)) {
            Some(next) => next,
            None => break,
        };
    }
    values.push(Value::Int(high));
    Ok(())
}

/// Settings of a point, in the order of the axes.
pub type Settings = Vec<(String, Value)>;

/// How many points the axes span.
pub fn count(axes: &[Axis]) -> u128 {
    axes.iter().fold(1u128, |all, axis| all.saturating_mul(axis.values.len() as u128))
}

/// The point of this number; the last axis moves fastest.
pub fn point(axes: &[Axis], index: u128) -> Settings {
    let mut left = index;
    let mut settings: Settings = axes
        .iter()
        .rev()
        .map(|axis| {
            let many = axis.values.len() as u128;
            let value = axis.values[(left % many) as usize].clone();
            left /= many;
            (axis.path.clone(), value)
        })
        .collect();
    settings.reverse();
    settings
}

/// The machine of a point. A device model is set before the keys that change it.
///
/// # Errors
/// Values that a key refuses.
pub fn machine_at(base: &Machine, settings: &[(String, Value)]) -> Result<Machine, Problem> {
    let mut machine = base.clone();
    let model = |(path, _): &&(String, Value)| path == "device.model";
    for (path, value) in settings.iter().filter(model).chain(settings.iter().filter(|s| !model(s))) {
        let count = machine.device.count;
        machine.set(path, value)?;
        if path == "device.model" {
            // Another model, not another number of devices.
            machine.device.count = count;
        }
    }
    Ok(machine)
}

/// Remarkable points of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The shortest time: all of equals, and none where all points are equal.
    pub best: bool,
    /// The first that is within 5 % of the best, and not the best itself: more of it brings little.
    pub knee: bool,
    /// Its time and that of the point before differ by a quarter or more.
    pub cliff: bool,
}

/// Within this share of the best a point is as good.
const AS_GOOD: f64 = 1.05;
/// Neighbours that differ by this factor are a cliff.
const CLIFF: f64 = 1.25;

/// Which points have the shortest time; none where all have it.
pub fn bests(times_ns: &[u64]) -> Vec<bool> {
    let least = times_ns.iter().min();
    let differ = times_ns.iter().max() != least;
    times_ns.iter().map(|time| differ && Some(time) == least).collect()
}

/// Marks points by their times, in the order of the axis.
pub fn marks(times_ns: &[u64]) -> Vec<Mark> {
    let mut marks = vec![Mark::default(); times_ns.len()];
    let Some(&best) = times_ns.iter().min() else { return marks };
    for (mark, best) in marks.iter_mut().zip(bests(times_ns)) {
        mark.best = best;
    }
    // All within 5 %: there is no knee to speak of.
    let flat = times_ns.iter().all(|time| *time as f64 <= best as f64 * AS_GOOD);
    let near = times_ns.iter().position(|time| *time as f64 <= best as f64 * AS_GOOD);
    if let Some(at) = near.filter(|at| *at > 0 && !flat && !marks[*at].best) {
        marks[at].knee = true;
    }
    for at in 1..times_ns.len() {
        let (one, other) = (times_ns[at - 1] as f64, times_ns[at] as f64);
        marks[at].cliff = one.max(other) > CLIFF * one.min(other);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse(&format!("a.b={text}")).unwrap().values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(values("8..64"), ["8", "16", "32", "64"]);
        assert_eq!(values("8..100,126,12"), ["8", "12", "16", "32", "64", "100", "126"]);
        assert_eq!(values("1m,64k,65536"), ["64k", "1m"]);
        assert_eq!(values("lru,fifo,lru"), ["lru", "fifo"]);
        assert_eq!(values("1k..16k*4"), ["1024", "4096", "16384"]);
        assert_eq!(values("10..30+10"), ["10", "20", "30"]);
        assert_eq!(values("lru,clock"), ["lru", "clock"]);
        assert_eq!(values("5..5"), ["5"]);
        for bad in [
            "a.b",
            "a.b=",
            "a.b=0..8",
            "a.b=9..8",
            "a.b=1..8*1",
            "a.b=1..8+0",
            "a.b=0..99999999+1",
            "a.b=x..y",
        ] {
            assert!(Axis::parse(bad).is_err(), "{bad}");
        }
        assert!(Axis::parse("a.b=1..16e").is_ok() || Axis::parse("a.b=1..15e").is_ok());
    }

    #[test]
    fn words_have_an_order_that_means_nothing() {
        assert!(Axis::parse("a.b=1m,64k").unwrap().rises());
        assert!(!Axis::parse("a.b=lru,2q").unwrap().rises());
    }

    #[test]
    fn points_span_all_axes() {
        let axes = [Axis::parse("a.b=1,2").unwrap(), Axis::parse("c.d=3,4,5").unwrap()];
        assert_eq!(count(&axes), 6);
        let texts: Vec<String> = (0..6)
            .map(|i| point(&axes, i).iter().map(|(_, value)| value.to_string()).collect::<String>())
            .collect();
        assert_eq!(texts, ["13", "14", "15", "23", "24", "25"]);
        assert_eq!(point(&[], 0), []);
    }

    #[test]
    fn what_stands_out_is_marked() {
        let marks = marks(&[160, 94, 90, 91, 90, 120]);
        let at = |f: fn(&Mark) -> bool| marks.iter().position(f);
        assert_eq!((at(|m| m.best), at(|m| m.knee)), (Some(2), Some(1)));
        assert!(marks[4].best, "as good as the first");
        assert_eq!(bests(&[7, 7, 7]), [false; 3]);
        assert_eq!((bests(&[7]), bests(&[])), (vec![false], vec![]));
        let cliffs: Vec<usize> = (0..6).filter(|i| marks[*i].cliff).collect();
        assert_eq!(cliffs, [1, 5]);
        assert!(super::marks(&[100, 101, 102]).iter().all(|m| !m.knee && !m.cliff));
    }
}
