//! Joins the recorded pieces of files that are read or written from one end to the other.
//!
//! Read-ahead goes far beyond a single piece (8 MiB on many virtual disks), so pieces with gaps would fetch two or three times
//! what the program did. Files with any other access are left alone.

use std::collections::HashMap;

use iowhy_core::profile::{PatternFile, Step, StepKind, Stretch};

/// Fewer calls than this show no way.
const MIN_CALLS: u64 = 16;

/// In which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Each call begins where the one before ended.
    On,
    /// Each call ends where the one before began.
    Back,
}

/// What is known of a file so far.
#[derive(Default)]
struct Seen {
    way: Option<Way>,
    thread: Option<u32>,
    calls: u64,
    writes: bool,
    strays: bool,
}

impl Seen {
    fn goes(&mut self, way: Way) {
        self.strays |= self.way.is_some_and(|known| known != way);
        self.way = Some(way);
    }
}

/// Paths of files that one thread goes through in one way within all of these stretches; one that is only read may begin
/// anew at the front, after its end.
pub(super) fn ways<'a>(stretches: &[&Stretch], files: &'a [PatternFile]) -> HashMap<&'a str, Way> {
    let mut all: HashMap<&str, Seen> = HashMap::new();
    for stretch in stretches {
        // Of each file the last call: where it began and ended.
        let mut last: HashMap<&str, (u64, u64)> = HashMap::new();
        for step in stretch.steps.iter().filter(|s| matches!(s.kind, StepKind::Read | StepKind::Write)) {
            let Some(file) = step.file.and_then(|at| files.get(at as usize)).filter(|f| f.identity.is_some())
            else {
                continue;
            };
            let (path, before) = (file.path.as_str(), last.get(file.path.as_str()).copied());
            let Some(place) = step.place.or(before.map(|(_, end)| end)) else { continue };
            let size = file.identity.map(|identity| identity.size_bytes);
            let seen = all.entry(path).or_default();
            seen.writes |= step.kind == StepKind::Write;
            seen.calls += u64::from(step.count.max(1));
            seen.strays |= seen.thread.is_some_and(|thread| thread != step.thread);
            seen.thread = Some(step.thread);
            within(seen, step);
            match before {
                Some((_, end)) if place == end => seen.goes(Way::On),
                Some((begin, _)) if place.saturating_add(step.bytes) == begin => seen.goes(Way::Back),
                // Read to the end, and again from the front.
                Some((_, end)) => {
                    let anew =
                        place == 0 && step.kind == StepKind::Read && size.is_some_and(|size| end >= size);
                    seen.strays |= !anew || seen.writes;
                }
                None => {}
            }
            let begin =
                place.saturating_add_signed(step.stride.saturating_mul(i64::from(step.count.max(1) - 1)));
            last.insert(path, (begin, begin.saturating_add(step.bytes)));
        }
    }
    let one_way = |(path, seen): (&'a str, Seen)| {
        let way = seen.way.filter(|_| !seen.strays && seen.calls >= MIN_CALLS)?;
        Some((path, way))
    };
    all.into_iter().filter_map(one_way).collect()
}

/// The calls within one step.
fn within(seen: &mut Seen, step: &Step) {
    if step.count < 2 || step.place.is_none() {
        return;
    }
    match i64::try_from(step.bytes) {
        Ok(bytes) if step.stride == bytes => seen.goes(Way::On),
        Ok(bytes) if step.stride == -bytes => seen.goes(Way::Back),
        _ => seen.strays = true,
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::FileIdentity;

    use super::*;

    fn read(place: u64, count: u32, stride: i64) -> Step {
        Step { file: Some(0), place: Some(place), bytes: 100, count, stride, ..Step::default() }
    }

    fn way(stretches: &[&[Step]]) -> Option<Way> {
        let identity = Some(FileIdentity { size_bytes: 11_000, ..FileIdentity::default() });
        let file = PatternFile { path: "/a".into(), kind: "regular".into(), flags: None, identity };
        let stretches: Vec<Stretch> =
            stretches.iter().map(|steps| Stretch { length_ns: 1, steps: steps.to_vec() }).collect();
        let all: Vec<&Stretch> = stretches.iter().collect();
        ways(&all, std::slice::from_ref(&file)).get("/a").copied()
    }

    #[test]
    fn pieces_of_one_way_through_a_file_are_told() {
        assert_eq!(way(&[&[read(0, 20, 100)], &[read(50_000, 20, 100), read(52_000, 1, 0)]]), Some(Way::On));
        assert_eq!(way(&[&[read(90_000, 20, -100)], &[read(5000, 20, -100)]]), Some(Way::Back));
        // To the end, and again from the front.
        assert_eq!(way(&[&[read(9000, 20, 100), read(0, 20, 100)]]), Some(Way::On));
        let at_the_end = read(11_000, 1, 0);
        assert_eq!(
            way(&[&[read(9000, 20, 100), at_the_end, read(0, 20, 100)]]),
            Some(Way::On),
            "of no bytes"
        );
        assert_eq!(way(&[&[read(7000, 20, 100), read(0, 20, 100)]]), None, "not from the end");
        let write = |place| Step { kind: StepKind::Write, ..read(place, 20, 100) };
        assert_eq!(way(&[&[write(9000), write(0)]]), None, "written again where it was");
        // A place that is not known goes on.
        let unknown = Step { place: None, ..read(0, 1, 0) };
        assert_eq!(way(&[&[read(500, 20, 100), unknown]]), Some(Way::On));
    }

    #[test]
    fn whatever_strays_is_left_as_it_is() {
        assert_eq!(way(&[&[read(0, 20, 100), read(70_000, 20, 100)]]), None, "a jump");
        assert_eq!(way(&[&[read(0, 20, 100)], &[read(90_000, 20, -100)]]), None, "both ways");
        assert_eq!(way(&[&[read(0, 20, 4096)]]), None, "with gaps");
        assert_eq!(way(&[&[read(0, 4, 100)]]), None, "too few");
        let other = Step { thread: 1, ..read(2000, 20, 100) };
        assert_eq!(way(&[&[read(0, 20, 100), other]]), None, "two threads");
    }
}
