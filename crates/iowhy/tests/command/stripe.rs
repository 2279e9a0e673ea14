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
    assert!(ran.stdout.contains("2 members, interleave 16 KiB"), "{}", ran.stdout);
    assert!(ran.stdout.contains("50 / 50 %"), "{}", ran.stdout);
    // The note below the table is folded at the width of the output, which is wider without a terminal.
    let table = ran.stdout.lines().skip_while(|line| *line != "members").take_while(|line| !line.is_empty());
    let table = table.take_while(|line| !line.starts_with("bytes and requests sent"));
    assert!(
        table.clone().count() > 3 && table.clone().all(|line| line.chars().count() <= 120),
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
    assert!(screen.contains("Concentrated: ") && screen.contains("Use an interleave of 88 KiB"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 120), "{screen}");
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
        (vec!["lint", "--disks", "1", "--interleave", "64k"], "--disks `1`"),
        (vec!["lint", "--disks", "3", "--interleave", "0"], "no bytes"),
        (vec!["lint", "--disks", "3", "--interleave", "777"], "multiple of the sector"),
        (
            vec!["lint", "--disks", "3", "--interleave", "64k", "--fs", "zfs"],
            "--fs `zfs`: unknown value\nhint: one of ffs",
        ),
        (vec!["lint", "--disks", "3", "--interleave", "64k", "--block", "3k"], "--block `3k`"),
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
        (vec!["advise", a, b, "--workload", load, "--time", "10ms"], "--time"),
        (vec!["advise", a, b, "--workload", load, "--prove-time", "2s"], "--prove"),
        (vec!["advise", a, b, "--workload", load, "--prove=most"], "--prove `most`"),
        (vec!["advise", a, b, "--workload", &format!("{load},think=1ms"), "--prove"], "pause"),
        (
            vec!["advise", a, b, "--workload", load, "--prove", "--set", "cache.bytes=1m"],
            "--set cache.bytes=1m",
        ),
        (
            vec!["advise", a, b, "--workload", load, "--destroy-data", "/no/such/disk"],
            "names none of the disks",
        ),
        (vec!["advise", a, b, "--workload", &format!("{load},write=10"), "--prove"], "only read"),
        (vec!["advise", a, b, "--trace", "/no/such/trace", "--time", "1s"], "/no/such/trace"),
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
    let args = ["stripe", "advise", "scripted", "scripted", "scripted", "--workload", load, "--time", "1s"];
    let advise = |more: &[&str]| {
        let ran = iowhy(&[&args[..], &["--interleave", "4k..1m*4", "--json", "-"], more].concat()).done();
        ran.json()
    };
    let record = advise(&["--prove=all", "--prove-time", "50ms"]);
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
    let again = advise(&["--prove=all", "--prove-time", "50ms"]);
    for key in ["members", "curve", "points", "by_disks", "pick", "rules"] {
        assert_eq!(record[key], again[key], "{key}: virtual time");
    }
    let rates = |record: &serde_json::Value| {
        let proof = record["proof"].as_array().unwrap();
        proof.iter().map(|proof| proof["throughput"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rates(&record), rates(&again));
    let screen = iowhy(&[&args[..], &["--prove", "--prove-time", "50ms"]].concat()).done().stdout;
    assert!(screen.contains("Recommended interleave: ") && screen.contains("proof"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 120), "{screen}");
}

/// A machine like `scripted` whose device takes `access_ns` for a request.
fn slow_disk(directory: &Path, access_ns: u64) -> String {
    let example = include_str!("../../../probe/src/script/example.toml");
    let slow = example.replace("per_call_ns = 60000.0", &format!("per_call_ns = {access_ns}.0"));
    assert_ne!(slow, example);
    let path = directory.join("slow.toml");
    std::fs::write(&path, slow).unwrap();
    format!("scripted:{}", text(&path))
}

/// Virtual time: two disks and one that takes five times as long. Each is simulated by its own curve, the slow one is named, and
/// what leaving it out would give is simulated and measured: the same to a few per cent.
#[test]
fn the_straggler_is_named_and_leaving_it_out_is_proved() {
    let directory = directory();
    let slow = slow_disk(directory.path(), 1_000_000);
    // Fewer readers than a false disk serves at once: its threads do not queue for each other.
    let load = "readers=6,bytes=16k,size=256m,pattern=permuted,requests=300,method=direct";
    let args = ["stripe", "advise", "scripted", &slow, "scripted", "--workload", load, "--time", "1s"];
    let more = ["--interleave", "16k..256k*4", "--prove", "--prove-time", "250ms"];
    let record = iowhy(&[&args[..], &more, &["--json", "-"]].concat()).done().json();
    let (a, b, c) = (&record["members"][0], &record["members"][1], &record["members"][2]);
    assert_eq!(a["simulated"], c["simulated"], "alike");
    let access = |disk: &serde_json::Value| disk["simulated"]["read"]["access_ns"].as_f64().unwrap();
    assert!(access(b) > 5.0 * access(a), "{} {}", access(a), access(b));
    let straggler = &record["pick"]["straggler"];
    assert_eq!(straggler["name"].as_str(), Some(slow.as_str()));
    assert!(straggler["load"].as_f64() > straggler["load_of_others"].as_f64(), "{straggler}");
    assert_eq!(straggler["without"]["left_out"], serde_json::json!([slow]));
    let gain = straggler["gain_without"].as_f64().unwrap();
    assert!(gain > 1.5, "{straggler}");
    // Fewer disks are the fastest of them.
    let by_disks = record["by_disks"].as_array().unwrap();
    let outs: Vec<usize> =
        by_disks.iter().map(|point| point["left_out"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(outs, [2, 1, 0]);
    assert!(by_disks[0]["left_out"].as_array().unwrap().contains(&slow.as_str().into()), "{}", by_disks[0]);
    let proof = record["proof"].as_array().unwrap();
    let without = proof.iter().find(|proof| proof["role"] == "without").unwrap();
    assert_eq!(without["members"].as_array().unwrap().len(), 2);
    let measured = without["of_fastest"]["value"].as_f64().unwrap();
    assert!((measured / gain - 1.0).abs() < 0.15, "simulated {gain}, measured {measured}");
    for proof in proof {
        assert!(proof["error_percent"].as_f64().unwrap().abs() < 15.0, "{}", proof["error_percent"]);
    }
    let screen = iowhy(&[&args[..], &more].concat()).done().stdout;
    assert!(screen.contains("straggler: ") && screen.contains("without disk 2"), "{screen}");
}

/// Virtual time: small files and traces are carried out request by request, where the simulated layout puts them: nothing is
/// lost, and what was simulated is what is measured.
#[test]
fn small_files_and_traces_are_proved_request_by_request() {
    let directory = directory();
    let trace = directory.path().join("t.csv");
    // Device, operation, offset, length, microseconds: 400 requests, one every 500 us.
    let lines: String = (0..400u64)
        .map(|n| {
            format!(
                "7,{},{},{},{}\n",
                if n % 8 == 7 { "W" } else { "R" },
                n * 7919 % 1000 * 65_536,
                65_536,
                n * 500
            )
        })
        .collect();
    std::fs::write(&trace, lines).unwrap();
    let trace = text(&trace);
    let advise = |load: &[&str]| {
        let args = ["stripe", "advise", "scripted", "scripted", "scripted", "--time", "1s"];
        let more = ["--interleave", "4k,64k,1m", "--prove=all", "--prove-time", "100ms", "--json", "-"];
        iowhy(&[&args[..], load, &more].concat()).done().json()
    };
    let files = "readers=4,files=50,sizes=930:3030:6102,dirs=10,population=4000";
    for (load, open) in [
        (vec!["--workload", files], false),
        (vec!["--workload", files, "--set", "layout.kind=ffs"], false),
        (vec!["--workload", "readers=3,bytes=64k,size=32m,pattern=sequential,own=yes,requests=60"], false),
        (vec!["--workload", "readers=3,bytes=64k,size=96m,pattern=permuted,requests=600,rate=4000"], true),
        (vec!["--trace", trace, "--clients", "4"], false),
        (vec!["--trace", trace], true),
    ] {
        let record = advise(&load);
        assert_eq!(record["judged_by"], if open { "latency" } else { "time" }, "{load:?}");
        let proof = record["proof"].as_array().unwrap();
        assert_eq!(proof.len(), 3, "{load:?}");
        let mut requests = Vec::new();
        for proof in proof {
            let samples = proof["samples"].as_array().unwrap();
            let of =
                |key: &str| samples.iter().map(|sample| sample[key].as_u64().unwrap()).collect::<Vec<u64>>();
            let members = proof["members"].as_array().unwrap();
            let sent: u64 = members.iter().map(|member| member["bytes"].as_u64().unwrap()).sum();
            assert_eq!(sent, of("claimed_bytes").iter().sum::<u64>(), "{load:?}");
            assert!(
                of("requests").windows(2).all(|pair| pair[0] == pair[1]),
                "every round makes the same: {proof}"
            );
            requests.push(of("requests")[0]);
            let error = proof["error_percent"].as_f64().unwrap();
            assert!(error.abs() < 25.0, "{load:?} {}: {error}", proof["interleave_bytes"]);
            assert_eq!(proof["latency"].is_object(), open, "{load:?}");
        }
        assert!(
            requests[0] >= 16 && requests.iter().all(|count| *count == requests[0]),
            "{load:?} {requests:?}"
        );
        let said = record["warnings"].to_string();
        assert!(!said.contains("writes-as-reads"), "false disks may be written to: {said}");
    }
    let screen =
        iowhy(&["stripe", "advise", "scripted", "scripted", "--trace", trace, "--time", "1s", "--prove"]);
    let screen = screen.done().stdout;
    assert!(screen.contains("mean latency") && screen.contains("proof"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 120), "{screen}");
}

/// Writes are measured and carried out in scratch files; files of the user stay as they are, and it is said.
#[test]
fn writes_go_to_scratch_files_and_never_to_files_of_the_users() {
    let directory = directory();
    let load = "readers=2,bytes=16k,size=4m,pattern=permuted,requests=100,write=50,method=direct";
    let more = ["--workload", load, "--time", "1s", "--interleave", "16k,64k", "--json", "-"];
    let own = text(directory.path());
    let args = ["stripe", "advise", own, own, "--size", "8m", "--prove", "--prove-time", "100ms"];
    let record = iowhy(&[&args[..], &more].concat()).measured().json();
    let measured = record["members"][0]["write_curve"].is_object();
    let said = record["warnings"].to_string();
    assert_ne!(measured, said.contains("reads-stand-in-for-writes"), "{said}");
    if measured {
        let points = record["members"][1]["points"].as_array().unwrap();
        assert_eq!(points.iter().filter(|point| point["write"] == true).count(), points.len() / 2);
        assert!(record["members"][0]["simulated"]["write"].is_object());
    }
    assert!(
        record["proof"].as_array().unwrap().iter().all(|proof| proof["failure"].is_null()),
        "{}",
        record["proof"]
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");

    let names = members(directory.path(), 2);
    let (a, b) = (names[0].as_str(), names[1].as_str());
    let before: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(name).unwrap()).collect();
    let small = "readers=2,bytes=16k,size=1m,pattern=permuted,requests=50,write=50,method=direct";
    let args = ["stripe", "advise", a, b, "--workload", small, "--time", "1s", "--interleave", "16k,64k"];
    let record = iowhy(&[&args[..], &["--json", "-"]].concat()).measured().json();
    assert!(record["members"][0]["write_curve"].is_null());
    let said = record["warnings"].to_string();
    assert!(said.contains("reads-stand-in-for-writes") && said.contains("--destroy-data"), "{said}");
    let after: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(name).unwrap()).collect();
    assert!(before == after, "files of the user's are only read");
}
