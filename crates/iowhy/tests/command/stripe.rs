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

#[test]
fn lint_knows_the_stripes_of_1999() {
    let lint = |disks: &str, interleave: &str| {
        let args = [
            "stripe",
            "lint",
            "--fs",
            "ffs",
            "--group",
            "32768s",
            "--disks",
            disks,
            "--interleave",
            interleave,
        ];
        iowhy(&[&args[..], &["--volume", "6240m", "--files", "1200000", "--json", "-"]].concat())
            .done()
            .json()
    };
    let two = lint("2", "128s");
    assert_eq!(two["lint"]["period_groups"], 1);
    assert_eq!(two["lint"]["spread"], "concentrated");
    assert_eq!(two["lint"]["areas"][0]["most_over_mean"], 2.0);
    let better = two["lint"]["better"]["interleave_bytes"].as_u64().unwrap();
    assert_eq!(lint("2", &better.to_string())["lint"]["spread"], "even");
    for interleave in ["126s", "128s", "2048s"] {
        assert_eq!(lint("3", interleave)["lint"]["spread"], "even", "{interleave}");
    }
    let screen =
        iowhy(&["stripe", "lint", "--fs", "ffs", "--disks", "2", "--interleave", "64k"]).done().stdout;
    assert!(
        screen.contains("concentrated") && screen.contains("nearest good interleave: 88 KiB"),
        "{screen}"
    );
    assert!(screen.lines().all(|line| line.chars().count() <= 100), "{screen}");
}

#[test]
fn lint_of_a_path_says_what_is_there_or_why_nothing_is_known() {
    let directory = directory();
    let record = iowhy(&["stripe", "lint", text(directory.path()), "--json", "-"]).done().json();
    assert!(!record["lint"].is_null() || !record["warnings"].as_array().unwrap().is_empty(), "{record}");
    let given = iowhy(&[
        "stripe",
        "lint",
        text(directory.path()),
        "--interleave",
        "64k",
        "--disks",
        "2",
        "--json",
        "-",
    ]);
    assert_eq!(given.done().json()["lint"]["disks"], 2);
}

#[test]
fn lint_and_advise_refuse_what_cannot_be() {
    let directory = directory();
    let names = members(directory.path(), 2);
    let (a, b) = (names[0].as_str(), names[1].as_str());
    let load = "readers=2,bytes=4k,size=1m,pattern=permuted,requests=50";
    for (args, word) in [
        (vec!["lint", "--interleave", "64k"], "--disks"),
        (vec!["lint", "--disks", "3"], "--interleave"),
        (vec!["lint", "--disks", "1", "--interleave", "64k"], "--disks 1"),
        (vec!["lint", "--disks", "3", "--interleave", "0"], "no bytes"),
        (vec!["lint", "--disks", "3", "--interleave", "777"], "multiple of the sector"),
        (vec!["lint", "--disks", "3", "--interleave", "64k", "--fs", "zfs"], "--fs zfs"),
        (vec!["lint", "--disks", "3", "--interleave", "64k", "--block", "3k"], "--block 3k"),
        (vec!["lint", "--disks", "3", "--interleave", "64k", "--group", "2t"], "--group 2t"),
        (vec!["lint", "--files", "3"], "--files"),
        (vec!["lint", "/no/such/path"], "/no/such/path"),
        (vec!["advise", a, "--workload", load], "2 to 64"),
        (vec!["advise", a, a, "--workload", load], "named twice"),
        (vec!["advise", a, "null", "--workload", load], "no bytes of its own"),
        (vec!["advise", a, b], "--workload"),
        (vec!["advise", a, b, "--workload", "nonsense"], "nonsense"),
        (vec!["advise", a, b, "--workload", load, "--interleave", "0"], "no bytes"),
        (vec!["advise", a, b, "--workload", load, "--interleave", "1000"], "multiple of the sector"),
        (vec!["advise", a, b, "--workload", load, "--budget", "10ms"], "--budget"),
        (vec!["advise", a, b, "--workload", load, "--runtime", "2s"], "--prove"),
        (vec!["advise", a, b, "--workload", load, "--prove=most"], "--prove=most"),
        (vec!["advise", a, b, "--workload", "files=3,readers=2", "--prove"], "file system"),
        (vec!["advise", a, b, "--workload", &format!("{load},write=10"), "--prove"], "only read"),
        (vec!["advise", a, b, "--trace", "/no/such/trace", "--budget", "1s"], "/no/such/trace"),
    ] {
        let ran = iowhy(&[&["stripe"], &args[..]].concat());
        assert_eq!(ran.code(), 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(word) && ran.stderr.contains("hint:"), "{args:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
}

/// Virtual time: the disks are known exactly, and every run is the same to the digit.
#[test]
fn advice_on_scripted_disks_is_exact_repeatable_and_proved() {
    let load = "readers=4,bytes=64k,size=256m,pattern=permuted,requests=500,method=direct";
    let args = ["stripe", "advise", "scripted", "scripted", "scripted", "--workload", load, "--budget", "1s"];
    let advise = |more: &[&str]| {
        let ran = iowhy(&[&args[..], &["--interleave", "4k..1m*4", "--json", "-"], more].concat()).done();
        ran.json()
    };
    let record = advise(&["--prove=all", "--runtime", "50ms"]);
    let pick = record["pick"]["interleave_bytes"].as_u64().unwrap();
    assert!(record["curve"]["residual_percent"].as_f64().unwrap() < 15.0, "{}", record["curve"]);
    assert_eq!(record["points"].as_array().unwrap().len(), 5);
    let proof = record["proof"].as_array().unwrap();
    assert_eq!(proof.len(), 5);
    let picked = proof.iter().find(|proof| proof["interleave_bytes"] == pick).unwrap();
    assert_eq!(picked["role"], "pick");
    assert!(picked["of_fastest"]["value"].as_f64().unwrap() >= 0.9, "{picked}");
    for proof in proof {
        let members = proof["members"].as_array().unwrap();
        let sent: u64 = members.iter().map(|member| member["bytes"].as_u64().unwrap()).sum();
        let claimed: u64 =
            proof["samples"].as_array().unwrap().iter().map(|s| s["claimed_bytes"].as_u64().unwrap()).sum();
        assert_eq!(sent, claimed);
    }
    let again = advise(&["--prove=all", "--runtime", "50ms"]);
    for key in ["members", "curve", "points", "by_disks", "pick", "rules"] {
        assert_eq!(record[key], again[key], "{key}: virtual time");
    }
    let rates = |record: &serde_json::Value| {
        let proof = record["proof"].as_array().unwrap();
        proof.iter().map(|proof| proof["throughput"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rates(&record), rates(&again));
    let screen = iowhy(&[&args[..], &["--prove", "--runtime", "50ms"]].concat()).done().stdout;
    assert!(screen.contains("take turns of") && screen.contains("proof"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 100), "{screen}");
}
