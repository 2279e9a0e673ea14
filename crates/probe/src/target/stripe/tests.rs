//! Possible and impossible members, and the stripe of them.

use std::path::Path;

use super::*;
use crate::target::{Needs, OpenMode, resolve};

const TURN: u64 = 64 << 10;

fn look(spec: &str) -> Result<Target, Problem> {
    resolve(spec, &Needs { scratch_bytes: 1 << 20, ..Needs::default() }, &mut |_, _| {})
}

fn refused(spec: &str) -> Problem {
    let problem = look(spec).unwrap_err();
    assert_eq!(problem.exit_code(), 2, "{problem}");
    assert!(problem.hint.is_some(), "{problem} has a fix");
    assert!(!problem.message.contains('\n'), "{problem}");
    problem
}

/// Files of these sizes and their names, joined with commas.
fn files(dir: &Path, sizes: &[u64]) -> Vec<String> {
    let make = |(index, bytes): (usize, &u64)| {
        let path = dir.join(format!("member-{index}"));
        std::fs::write(&path, vec![index as u8 + 1; *bytes as usize]).unwrap();
        path.to_str().unwrap().to_owned()
    };
    sizes.iter().enumerate().map(make).collect()
}

#[test]
fn interleaves_are_sizes_or_sectors() {
    for (text, bytes) in [("64k", 65_536), ("126s", 64_512), ("126S", 64_512), ("512", 512), ("1m", 1 << 20)]
    {
        assert_eq!(parse_interleave("--interleave", text).unwrap(), bytes, "{text}");
    }
    for (text, word) in [
        ("0", "no bytes"),
        ("0s", "no bytes"),
        ("1000", "not a multiple of the sector"),
        ("511", "not a multiple of the sector"),
        ("-1", "-1"),
        ("", "--interleave"),
        ("s", "--interleave"),
        ("99999999999999999999s", "--interleave"),
        ("36028797018963968s", "counted"),
    ] {
        let problem = parse_interleave("--interleave", text).unwrap_err();
        assert!(problem.message.contains(word) && problem.hint.is_some(), "{text}: {problem}");
    }
    assert_eq!(parse_interleave("x", "1000").unwrap_err().hint.unwrap(), "use 512 or 1024");
}

#[test]
fn members_are_used_to_the_same_length_in_whole_turns() {
    let dir = tempfile::tempdir().unwrap();
    let names = files(dir.path(), &[10 * TURN, 7 * TURN + 4096, 9 * TURN]);
    let target = look(&format!("stripe:64k:{}", names.join(","))).unwrap();
    let facts = target.facts.stripe.clone().unwrap();
    assert_eq!((target.facts.size_bytes, facts.member_bytes), (21 * TURN, 7 * TURN));
    assert_eq!(
        facts.members.iter().map(|m| m.size_bytes).collect::<Vec<_>>(),
        [10 * TURN, 7 * TURN + 4096, 9 * TURN]
    );
    assert!(!target.writable() && !target.is_scratch() && target.has_page_cache());
    assert!(target.open(OpenMode::default()).unwrap_err().message.contains("no one file"));
    assert!(target.identity().is_none() && target.data_targets().len() == 3);
    let ranges: Vec<u64> =
        target.ranges(TURN / 2, 2 * TURN).iter().map(|(_, offset, bytes)| offset + bytes).collect();
    assert_eq!(ranges, [TURN, TURN, TURN / 2]);
}

#[test]
fn directories_become_scratch_files_that_together_have_the_size() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().to_str().unwrap();
    let mut last = 0;
    let needs = Needs { scratch_bytes: 1 << 20, write: true, ..Needs::default() };
    let target = resolve(&format!("stripe:64k:{name},{name},memory"), &needs, &mut |done, total| {
        assert!(done >= last && done <= total, "{done} of {total} after {last}");
        last = done;
    })
    .unwrap();
    assert!(target.facts.size_bytes >= 1 << 20 && target.facts.size_bytes < (1 << 20) + 3 * TURN);
    assert!(target.is_scratch() && target.writable());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no name is left");
}

#[test]
fn the_same_bytes_twice_are_refused_whatever_they_are_called() {
    let dir = tempfile::tempdir().unwrap();
    let name = files(dir.path(), &[TURN]).remove(0);
    let (hard, soft) = (dir.path().join("hard"), dir.path().join("soft"));
    std::fs::hard_link(&name, &hard).unwrap();
    std::os::unix::fs::symlink(&name, &soft).unwrap();
    assert!(refused(&format!("stripe:64k:{name},{name}")).message.contains("named twice"));
    for other in [hard, soft] {
        let problem = refused(&format!("stripe:64k:{name},{}", other.display()));
        assert!(problem.message.contains("by another name") && problem.message.contains(&name), "{problem}");
    }
}

#[test]
fn what_no_stripe_can_be_made_of_is_refused_with_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let names = files(dir.path(), &[TURN, 4096]);
    let (large, small) = (&names[0], &names[1]);
    for (spec, word) in [
        (format!("stripe:64k:{large}"), "one member is that member"),
        (format!("stripe:64k:{large},"), "without a name"),
        ("stripe:64k".to_owned(), "an interleave and members"),
        (format!("stripe::{large},{small}"), "interleave"),
        (format!("stripe:0:{large},{small}"), "no bytes"),
        (format!("stripe:1000:{large},{small}"), "multiple of the sector"),
        (format!("stripe:64k:{large},{small}"), "less than one turn"),
        (format!("stripe:64k:{large},null"), "no bytes of its own"),
        (format!("stripe:64k:{large},/dev/zero"), "no bytes of its own"),
        (format!("stripe:64k:{large},{}", dir.path().join("missing").display()), "missing"),
        (format!("stripe:64k:{}", vec![large.as_str(); 257].join(",")), "256 is the most"),
        (format!("stripe:64k:{large},scripted"), "virtual time with real time"),
    ] {
        let problem = refused(&spec);
        assert!(problem.message.contains(word), "{spec}: {problem}");
    }
}

#[test]
fn writing_over_members_needs_the_whole_name_twice() {
    let dir = tempfile::tempdir().unwrap();
    let names = files(dir.path(), &[TURN, TURN]);
    let spec = format!("stripe:64k:{}", names.join(","));
    let open = |destroy: Option<&str>| {
        let needs = Needs { scratch_bytes: TURN, write: true, destroy_data: destroy.map(str::to_owned) };
        resolve(&spec, &needs, &mut |_, _| {})
    };
    let problem = open(None).unwrap_err();
    assert!(
        problem.message.contains("never written to unasked") && problem.message.contains(&names[0]),
        "{problem}"
    );
    assert!(problem.hint.unwrap().contains(&format!("--destroy-data {spec} {spec}")));
    assert!(open(Some(&names[0])).unwrap_err().message.contains("exactly as typed"));
    assert_eq!(std::fs::read(&names[0]).unwrap(), vec![1; TURN as usize]);
    assert!(open(Some(&spec)).unwrap().writable());
}
