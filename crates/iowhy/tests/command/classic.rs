//! `iowhy classic`: what is printed and recorded of the published experiments, on scripted machines and on real files.

use serde_json::Value;

use crate::common::{MIB, directory, full_file, iowhy, names, record_of, text};

const NAMES: [&str; 5] = ["minix-1989", "netbsd-1999", "linux-sg-1999", "freebsd-2006", "linux-mmap-1999"];

/// Every row keeps the contract, and its error is that of its model.
fn rows(record: &Value) -> &Vec<Value> {
    let rows = record["rows"].as_array().expect("rows[]");
    for row in rows {
        assert!(row["key"]["table"].is_string() && row["remark"].is_string(), "{row}");
        assert!(row["quantity"].as_str().is_some_and(|q| !q.is_empty()), "{row}");
        let number = |name: &str| {
            assert!(row[name].is_null() || row[name].is_f64(), "{name}: {row}");
            row[name].as_f64()
        };
        let error = number("model").zip(number("published")).map(|(m, p)| (m / p - 1.0) * 100.0);
        match (error, number("error_percent")) {
            (Some(wanted), Some(told)) => assert!((wanted - told).abs() < 1e-6, "{row}"),
            (wanted, told) => assert_eq!(wanted, told, "{row}"),
        }
        if !row["measured"].is_null() {
            assert_eq!(row["measured"]["unit"], row["unit"], "{row}");
            let [low, value, high] = ["low", "value", "high"].map(|k| row["measured"][k].as_f64().unwrap());
            assert!(0.0 < low && low <= value && value <= high, "{row}");
        }
        let nothing = ["published", "measured", "model"].iter().all(|name| row[name].is_null());
        assert!(!nothing || !row["remark"].as_str().unwrap().is_empty(), "an empty row says why: {row}");
    }
    rows
}

fn of_table<'r>(record: &'r Value, table: &str) -> Vec<&'r Value> {
    rows(record).iter().filter(|row| row["key"]["table"] == table).collect()
}

#[test]
fn the_list_names_all_five_with_their_sources() {
    let bare = iowhy(&["classic"]).done();
    assert_eq!(bare.stdout, iowhy(&["classic", "list"]).done().stdout);
    let record = iowhy(&["classic", "list", "--json", "-"]).done().json();
    let listed: Vec<&str> =
        record["experiments"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(listed, NAMES);
    assert!(NAMES.iter().all(|name| bare.stdout.contains(name)));
    assert!(bare.stdout.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn the_cells_of_1989_come_back_from_a_scripted_machine_and_the_model_is_compared_with_the_post() {
    let args = ["classic", "minix-1989", "scripted", "--time", "1s"];
    // Requests to /dev/null move nothing, so the sums of bytes that other records keep do not hold here.
    let record = iowhy(&[&args[..], &["--json", "-"]].concat()).done().json();
    for table in ["null", "bnull", "rhd2", "file", "hd2", "readahead"] {
        let rows = of_table(&record, table);
        assert_eq!(rows.len(), 5, "{table}");
        assert!(rows.iter().all(|row| row["published"].is_f64() && row["model"].is_f64()));
    }
    assert_eq!(of_table(&record, "machines").len(), 12);
    // What the script puts in: its calls cost the same at every size, so the time for 2 MiB halves as blocks double.
    let times: Vec<f64> =
        of_table(&record, "null").iter().map(|row| row["measured"]["value"].as_f64().unwrap()).collect();
    assert!(
        (times[0] / times[1] - 2.0).abs() < 1e-6 && (times[0] / times[4] - 32.0).abs() < 1e-6,
        "{times:?}"
    );
    assert!(
        of_table(&record, "hd2").iter().all(|row| row["measured"].is_null()),
        "a script has no block device"
    );
    // Tables that were not fitted are predicted within what the post's own explanation can give.
    for row in of_table(&record, "hd2") {
        assert!(row["error_percent"].as_f64().unwrap().abs() < 30.0, "{row}");
    }
    let (one, two) = (iowhy(&args).done(), iowhy(&args).done());
    assert_eq!(one.stdout, two.stdout, "virtual time");
    assert!(one.stdout.contains("verdict then: flat") && one.stdout.contains("was"), "{}", one.stdout);
    assert!(one.stdout.lines().all(|line| line.chars().count() <= 100), "{}", one.stdout);
}

#[test]
fn the_numbers_of_the_sg_post_come_out_and_the_question_is_answered() {
    let record = record_of(&["classic", "linux-sg-1999", "scripted", "--time", "1s"]);
    let fit = of_table(&record, "fit");
    let of = |number: &str, key: &str| {
        fit.iter().find(|row| row["key"]["number"] == number).unwrap()[key].as_f64().unwrap()
    };
    for number in ["command-overhead", "bus-rate", "copy-rate"] {
        assert!(of(number, "error_percent").abs() < 10.0, "{number}");
    }
    assert_eq!(of("command-overhead", "published"), 1.2e6);
    let asked = |rate: &str| {
        let screen =
            iowhy(&["classic", "linux-sg-1999", "scripted", "--time", "1s", "--rate", rate]).done().stdout;
        screen.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(asked("100m").contains("131 % of it: direct I/O is needed"), "{}", asked("100m"));
    assert!(asked("1m").contains("No, direct I/O is not needed"), "{}", asked("1m"));
}

#[test]
fn the_reuse_of_the_pool_comes_from_the_simulated_pool() {
    let record = record_of(&["classic", "freebsd-2006", "scripted", "--time", "1s"]);
    let reuse: Vec<f64> =
        of_table(&record, "reuse").iter().map(|row| row["model"].as_f64().unwrap()).collect();
    assert!((reuse[0] - 0.75).abs() < 1e-4 && (reuse[1] - 0.13).abs() < 0.01, "{reuse:?}");
    assert_eq!(of_table(&record, "runs").len(), 4);
    assert!(of_table(&record, "lookup").is_empty(), "virtual time finds nothing in memory");
    // Three passes over a floppy: all from the disk, once from the disk, and once with the buffers kept.
    let floppies: Vec<(f64, f64)> = of_table(&record, "floppy")
        .iter()
        .map(|row| (row["model"].as_f64().unwrap(), row["key"]["reuse"].as_f64().unwrap()))
        .collect();
    let third = 1.0 / 3.0;
    for (seen, wanted) in floppies.iter().zip([(1.0, 0.0), (third, 0.0), (third, 2.0 * third)]) {
        assert!((seen.0 - wanted.0).abs() < 1e-9 && (seen.1 - wanted.1).abs() < 1e-9, "{floppies:?}");
    }
    assert!(of_table(&record, "runs").iter().all(|row| row["measured"].is_object()));
}

#[test]
fn look_ups_and_a_kernel_profile_stand_beside_the_cached_reads() {
    let dir = directory();
    let file = full_file(dir.path(), "data", 20 * MIB);
    let record = record_of(&["classic", "freebsd-2006", text(&file), "--time", "1s"]);
    let lookups = of_table(&record, "lookup");
    assert_eq!(lookups.len(), 12);
    assert!(lookups.iter().all(|row| row["measured"].is_object()));
    let then: Vec<f64> = lookups.iter().filter_map(|row| row["published"].as_f64()).collect();
    assert_eq!(then, [117.0, 612.0, 389.0, 751.0], "splay trees alone, of buffers and of pages");
    let profile = of_table(&record, "profile");
    if profile.is_empty() {
        crate::common::skipped("no kernel profile here: stacks are not permitted, or too few samples hit");
    }
    for row in &profile {
        let (own, total) =
            (row["measured"]["value"].as_f64().unwrap(), row["key"]["total_ns"].as_f64().unwrap());
        assert!(own <= total * (1.0 + 1e-9), "self is part of total: {row}");
    }
}

#[test]
fn two_files_are_read_side_by_side_and_nothing_is_left_or_changed() {
    let dir = directory();
    let (a, b) = (full_file(dir.path(), "a", 20 * MIB), full_file(dir.path(), "b", 20 * MIB));
    let before: Vec<_> = [&a, &b].iter().map(|p| std::fs::metadata(p).unwrap().modified().unwrap()).collect();
    let pair = format!("{}:{}", text(&a), text(&b));
    let ran = iowhy(&["classic", "linux-mmap-1999", &pair, "--time", "1s", "--json", "-"]);
    if ran.stderr.contains("lives in memory") {
        eprintln!("skipped: $TMPDIR lives in memory, and nothing in it can be cold");
        return;
    }
    let record = ran.measured().json();
    assert_eq!(of_table(&record, "times").len(), 8);
    let posted: Vec<f64> =
        of_table(&record, "times").iter().filter_map(|row| row["published"].as_f64()).collect();
    assert_eq!(posted, [70e9, 107e9]);
    let after: Vec<_> = [&a, &b].iter().map(|p| std::fs::metadata(p).unwrap().modified().unwrap()).collect();
    assert_eq!(before, after);
    assert_eq!(names(dir.path()).len(), 2);
}

#[test]
fn the_interleave_table_is_there_and_the_news_tree_leaves_nothing() {
    let dir = directory();
    let args = ["classic", "netbsd-1999", text(dir.path()), "--files", "600", "--time", "1s"];
    let record = record_of(&args);
    let rows = of_table(&record, "interleave");
    assert_eq!(rows.len(), 8);
    assert!(
        rows[0]["published"].is_null() && rows[0]["remark"].as_str().unwrap().contains("lost, but slower")
    );
    assert_eq!(rows[2]["key"]["published_ns"], 1240e9);
    assert!(rows.iter().all(|row| row["measured"].is_null() && row["model"].is_f64()));
    let stripes = of_table(&record, "stripe");
    let not_done = record["not_done"].as_array().unwrap();
    if stripes.is_empty() {
        assert!(not_done.iter().any(|l| l.as_str().unwrap().contains("lives in memory")), "{not_done:?}");
        crate::common::skipped("$TMPDIR lives in memory, and stripes need disks");
    } else {
        let interleaves: Vec<u64> =
            stripes.iter().map(|row| row["key"]["interleave_sectors"].as_u64().unwrap()).collect();
        assert_eq!(interleaves, [8, 32, 126, 128, 2048, 8192, 32_768]);
        stripes.iter().for_each(|row| spread(row));
        assert_eq!(of_table(&record, "stripe-long").len(), 12, "reads and writes, for the files are ours");
    }
    let here = of_table(&record, "here");
    assert_eq!(here.len(), 6);
    assert_eq!(here[0]["key"]["figure"], "untar");
    assert!(
        here.iter().all(|row| row["measured"].is_object() || !row["remark"].as_str().unwrap().is_empty())
    );
    assert_eq!(of_table(&record, "here-large").len(), 2);
    assert!(names(dir.path()).is_empty(), "nothing is left");
}

/// Counts of one row on a stripe of three members: blocks of 8 KiB at most, so that a request has two parts at most.
fn spread(row: &Value) {
    let of = |name: &str| row["key"][name].as_u64().unwrap();
    let (requests, split, parts, busiest) =
        (of("requests"), of("split"), of("parts"), of("busiest_member_parts"));
    assert_eq!(parts, requests + split, "{row}");
    assert!(3 * busiest >= parts && busiest <= parts, "{row}");
    match of("interleave_sectors") {
        // All but fragments of one to four KiB that happen to lie within a turn.
        8 => assert!(split * 3 > requests * 2, "{row}"),
        // A border in seven blocks of 63, and fewer among fragments.
        126 => assert!(split > 0 && split * 63 <= requests * 8, "{row}"),
        // Whole blocks lie within a turn.
        _ => assert_eq!(split, 0, "{row}"),
    }
}

#[test]
fn the_requests_of_the_post_go_to_stripes_of_scripted_members_and_every_part_is_accounted_for() {
    let args = ["classic", "netbsd-1999", "null", "--members", "scripted,scripted,scripted", "--time", "1s"];
    let record = record_of(&args);
    let rows = of_table(&record, "stripe");
    assert_eq!(rows.len(), 7);
    let cells = record["cells"].as_array().unwrap();
    for row in &rows {
        spread(row);
        let interleave = row["key"]["interleave_sectors"].as_u64().unwrap();
        let cell = cells.iter().find(|cell| cell["key"] == format!("stripe-{interleave}").as_str()).unwrap();
        let rounds = cell["samples"].as_array().unwrap().len() as u64;
        let sent = |key: &str| -> Vec<u64> {
            cell["members"].as_array().unwrap().iter().map(|m| m[key].as_u64().unwrap()).collect()
        };
        // What was counted before is what the members were sent, in every round.
        assert_eq!(sent("requests").iter().sum::<u64>(), rounds * row["key"]["parts"].as_u64().unwrap());
        assert_eq!(
            sent("requests").iter().max().copied(),
            Some(rounds * row["key"]["busiest_member_parts"].as_u64().unwrap())
        );
    }
    // The lists are the same at every interleave but the row whose groups are of another size.
    let requests: std::collections::BTreeSet<u64> = rows
        .iter()
        .filter(|row| row["key"]["interleave_sectors"] != 8192)
        .map(|row| row["key"]["requests"].as_u64().unwrap())
        .collect();
    assert_eq!(requests.len(), 1);
    let long = of_table(&record, "stripe-long");
    assert_eq!(long.len(), 6, "scripted members are not written to");
    // 256 KiB at once: from three members at 128, from one at 2048 and 32768 alike.
    let ratio = |interleave: u64| {
        let row = long.iter().find(|row| row["key"]["interleave_sectors"] == interleave).unwrap();
        row["measured"]["value"].as_f64()
    };
    assert!(ratio(128).unwrap() > 1.2, "the big interleave loses");
    assert!((ratio(32_768).unwrap() - 1.0).abs() < 1e-6 && ratio(2048).is_none());
    let again = record_of(&args);
    // The budget is of the wall clock, so the number of rounds may differ.
    let values = |record: &Value| -> Vec<Value> {
        of_table(record, "stripe").iter().map(|row| row["measured"]["value"].clone()).collect()
    };
    assert_eq!(values(&record), values(&again), "virtual time");
}

#[test]
fn blocks_of_two_sizes_are_told_or_it_is_said_why_not_and_nothing_is_left() {
    let dir = directory();
    let args =
        ["classic", "netbsd-1999", text(dir.path()), "--files", "600", "--time", "1s", "--block-size-test"];
    let record = record_of(&args);
    let rows = of_table(&record, "block-size-real");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let remark = row["remark"].as_str().unwrap();
        if row["measured"].is_null() {
            assert!(["not measured:", "inconclusive:"].iter().any(|word| remark.starts_with(word)), "{row}");
            crate::common::skipped(&format!("{}: {remark}", row["key"]["file_system"]));
            continue;
        }
        // All files were read from the device, which moves whole blocks: at least what is in them on average, 3354 bytes.
        for size in ["small", "large"] {
            let bytes = row["key"][format!("{size}_block_device_bytes_per_file")].as_f64().unwrap();
            assert!(bytes > 3300.0, "{row}");
        }
    }
    assert!(names(dir.path()).is_empty(), "nothing is left");
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        assert!(!backing.contains(text(dir.path())), "a loop device is left: {backing}");
    }
}

#[test]
fn hypotheses_are_compared_with_the_post_and_large_files_lose_where_small_ones_win() {
    // There is no place for a tree: only the model is run.
    let record = record_of(&["classic", "netbsd-1999", "null", "--time", "10s"]);
    let rows = of_table(&record, "hypotheses");
    assert_eq!(rows.len() % 7, 0);
    let share = |hypothesis: &str, interleave: u64| {
        let found = rows.iter().find(|row| {
            row["key"]["hypothesis"] == hypothesis && row["key"]["interleave_sectors"] == interleave
        });
        found.unwrap_or_else(|| panic!("{hypothesis} {interleave}"))["model"].as_f64()
    };
    // What newfs makes: 8 splits every block and is the slowest; 126 splits one of nine, which 128 does not.
    let newfs = |interleave| share("newfs", interleave).expect("the first hypothesis is always run");
    assert!(newfs(8) > 1.5 && newfs(126) > newfs(128), "{} {}", newfs(126), newfs(128));
    assert_eq!(newfs(2048), 1.0);
    for row in &rows {
        let (posted, model) = (row["published"].as_f64(), row["model"].as_f64());
        if let (Some(posted), Some(model), Some(true)) = (posted, model, row["key"]["reproduces"].as_bool()) {
            assert!((model / posted - 1.0).abs() <= 0.05, "{row}");
        }
    }
    assert_eq!(of_table(&record, "block-size").len(), 3);
    let untar = of_table(&record, "untar");
    assert_eq!(untar.len(), 4);
    for row in &untar {
        assert!(row["model"].as_f64().unwrap() < 1.0, "96 is the faster one, as the quotation says: {row}");
        assert_eq!(row["published"].is_f64(), row["key"]["disks"] == 2, "{row}");
    }
    let large = of_table(&record, "large");
    let rate = |load: &str, interleave: u64| {
        let of = |row: &&&Value| row["key"]["load"] == load && row["key"]["interleave_sectors"] == interleave;
        large.iter().find(of).unwrap()["model"].as_f64().unwrap()
    };
    assert!(rate("large-writes", 2048) < 0.8 * rate("large-writes", 126));
    assert!(rate("long-reads", 2048) < rate("long-reads", 16));
    assert!(
        record["verdicts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|v| v.as_str().unwrap().contains("126 against 128"))
    );
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    for (args, said, fix) in [
        (&["classic", "minix"] as &[&str], "`minix`", "minix-1989"),
        (&["classic", "minix-1989", "null", "--time", "10ms"], "--time", "1s"),
        (&["classic", "minix-1989", "/no/such/place"], "/no/such/place", ""),
        (&["classic", "linux-mmap-1999", "a:b:c"], "3 targets", "A"),
        (&["classic", "linux-sg-1999", ".", "--rate", "-1"], "--rate", ""),
        (&["classic", "netbsd-1999", ".", "--files", "3"], "--files 3", "12000"),
        (&["classic", "minix-1989", ".", "--null-block", "/dev/null"], "no null block device", "modprobe"),
        (&["classic", "minix-1989", ".", "--null-block", "/no/such"], "/no/such", ""),
        (&["classic", "netbsd-1999", "null", "--members", "scripted"], "--members scripted", "2 to 64"),
        (&["classic", "netbsd-1999", "null", "--members", "/no/a,/no/b"], "/no/a", ""),
        (&["classic", "netbsd-1999", "null", "--members", "null,null"], "no bytes of its own", "members are"),
    ] {
        let ran = iowhy(args);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains(said) && ran.stderr.to_uppercase().contains(&fix.to_uppercase()),
            "{ran:?}"
        );
        assert!(ran.stdout.is_empty());
    }
}
