//! Stripes: the target that iowhy makes itself, the rules about a stripe under a file system, the advice.

use std::path::Path;

use super::common::{MIB, directory, full_file, iowhy, record_of, text};

/// Files of a mebibyte each, as members.
fn members(directory: &Path, many: usize) -> Vec<String> {
    (0..many).map(|n| text(&full_file(directory, &format!("member-{n}"), MIB)).to_owned()).collect()
}

#[test]
fn a_stripe_of_files_is_measured_and_its_members_are_accounted_for() {
    let directory = directory();
    let names = members(directory.path(), 3);
    let spec = format!("stripe:64k:{}", names.join(","));
    let record = record_of(&["bench", "--bs", "64k,256k", "--state", "warm", "--runtime", "200ms", &spec]);
    let facts = &record["targets"][0];
    assert_eq!(facts["kind"], "stripe");
    assert_eq!(facts["stripe"]["interleave_bytes"], 65_536);
    assert_eq!(facts["size_bytes"], 3 * MIB);
    for cell in record["cells"].as_array().unwrap() {
        let members = cell["members"].as_array().unwrap();
        let named: Vec<&str> = members.iter().map(|member| member["name"].as_str().unwrap()).collect();
        assert_eq!(named, names);
        let bytes: u64 = members.iter().map(|member| member["bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes, cell["claimed_bytes"].as_u64().unwrap(), "every byte went to one member");
    }
}

#[test]
fn the_screen_of_a_stripe_names_members_and_what_each_was_sent() {
    let directory = directory();
    let name = text(directory.path());
    let spec = format!("stripe:16k:{name},{name}");
    let ran = iowhy(&["bench", "--size", "1m", "--runtime", "100ms", "--bs", "32k", &spec]).measured();
    assert!(ran.stdout.contains("2 members that take turns of 16 KiB"), "{}", ran.stdout);
    assert!(ran.stdout.contains("50 / 50 %"), "{}", ran.stdout);
    let table =
        ran.stdout.lines().skip_while(|line| *line != "members").take_while(|line| !line.starts_with("  "));
    assert!(
        table.clone().count() > 3 && table.clone().all(|line| line.chars().count() <= 100),
        "{}",
        ran.stdout
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn stripes_that_cannot_be_are_refused_in_a_line_with_the_fix() {
    let directory = directory();
    let names = members(directory.path(), 2);
    let twice = format!("stripe:64k:{0},{0}", names[0]);
    let both = names.join(",");
    for (spec, word) in [
        (twice.as_str(), "named twice"),
        (&format!("stripe:64k:{}", names[0]), "one member is that member"),
        (&format!("stripe:0:{both}"), "no bytes"),
        (&format!("stripe:1000:{both}"), "multiple of the sector"),
        (&format!("stripe:4m:{both}"), "less than one turn"),
        (&format!("stripe:64k:{both},/no/such/file"), "/no/such/file"),
    ] {
        for command in [vec!["bench", spec], vec![spec]] {
            let ran = iowhy(&command);
            assert_eq!(ran.code(), 2, "{ran:?}");
            assert!(ran.stderr.contains(word) && ran.stderr.contains("hint:"), "{ran:?}");
            assert!(ran.stdout.is_empty());
        }
    }
}

/// Virtual time: two members of the scripted machine move a request of two turns side by side.
#[test]
fn two_scripted_members_beat_one() {
    let rate = |target: &str| {
        let record = record_of(&["bench", "--bs", "1m", "--state", "direct", "--runtime", "100ms", target]);
        record["cells"][0]["throughput"]["value"].as_f64().unwrap()
    };
    let (one, two, three) = (
        rate("scripted"),
        rate("stripe:64k:scripted,scripted"),
        rate("stripe:64k:scripted,scripted,scripted"),
    );
    assert!(two > 1.2 * one && three > two, "{one} {two} {three}");
}
