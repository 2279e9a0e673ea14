//! `iowhy report`: pages and Markdown of records of false devices, and of files that are no records.

use serde_json::Value;

use crate::common::{binary, directory, finish, iowhy, text};

/// What a page may weigh.
const MOST_BYTES: usize = 1 << 20;

/// A page that stands alone, with as many tables below its charts as it has charts.
fn holds_together(page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.len() <= MOST_BYTES, "{} bytes", page.len());
    for needle in ["http://", "https://", " src=", "NaN", "@import"] {
        assert!(!page.contains(needle), "{needle}");
    }
    let figures = page.matches("<figure>").count();
    assert_eq!(page.matches("<svg class=\"chart").count(), figures);
    assert_eq!(page.matches("<details>").count(), figures, "a chart has its table");
    for tag in ["section", "figure", "table", "svg", "g", "ul", "article", "details"] {
        let open = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn a_sweep_becomes_a_page_and_markdown_with_the_records_own_figures() {
    let folder = directory();
    let record = folder.path().join("sweep.json");
    let args = ["bench", "scripted", "--bs", "512..64k", "--state", "warm,direct", "--layers", "--json"];
    iowhy(&[&args[..], &[text(&record)]].concat()).done();
    let page = folder.path().join("sweep.html");
    iowhy(&["report", text(&record), "-o", text(&page)]).done();
    let page = std::fs::read_to_string(&page).unwrap();
    holds_together(&page);
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let cells = value["cells"].as_array().unwrap();
    for cell in cells {
        assert!(page.contains(cell["key"].as_str().unwrap()), "{}", cell["key"]);
        // A map over time has the requests of every round.
        for sample in cell["samples"].as_array().unwrap() {
            let classes = sample["latency_quarters"].as_array().unwrap();
            let seen: u64 = classes.iter().map(|class| class[1].as_u64().unwrap()).sum();
            assert_eq!(seen, sample["requests"].as_u64().unwrap());
        }
    }
    // The same on stdout, and as Markdown, where every chart is a table.
    assert_eq!(iowhy(&["report", text(&record)]).done().stdout, page);
    let markdown = iowhy(&["report", "--markdown", text(&record)]).done().stdout;
    assert!(markdown.starts_with("# ") && markdown.contains("| ---"), "{markdown}");
    assert!(!markdown.contains("<svg") && markdown.contains("device"), "{markdown}");
    // One cell of a table is the estimate with its n.
    let n = cells[0]["time_per_request"]["n"].as_u64().unwrap();
    assert!(markdown.contains(&format!("(n = {n})")), "{markdown}");
}

#[test]
fn every_kind_of_record_has_a_page() {
    let folder = directory();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    iowhy(&["--json", &name("path.json"), "--time", "3s", "-q", "scripted"]).measured();
    iowhy(&["bench", "scripted", "--json", &name("bench.json")]).done();
    iowhy(&["compare", &name("bench.json"), &name("bench.json"), "--json", &name("compare.json")]).done();
    let load =
        ["--machine", "netbsd-1999", "--workload", "readers=3,files=50,sizes=930:3030,dirs=9,population=900"];
    let sweep = ["--sweep", "volume.interleave=64..1024", "--json", &name("sim.json")];
    iowhy(&[&["sim"][..], &load, &sweep].concat()).done();
    iowhy(&[
        "classic",
        "--quick",
        "freebsd-2006",
        folder.path().to_str().unwrap(),
        "--json",
        &name("classic.json"),
    ])
    .measured();
    iowhy(&["tree", "--files", "60", "--json", &name("tree.json"), folder.path().to_str().unwrap()])
        .measured();
    iowhy(&["--json", &name("watch.json"), "--", "true"]).done();
    let trace = folder.path().join("trace.csv");
    std::fs::write(&trace, (0..400).map(|i| format!("{},{},4096\n", i, i * 7 % 90)).collect::<String>())
        .unwrap();
    iowhy(&["mrc", text(&trace), "--columns", "time=1,id=2,size=3", "--json", &name("mrc.json")]).done();
    let kinds = ["path", "bench", "compare", "sim", "classic", "tree", "watch", "mrc"];
    let mut all = vec!["report".to_owned()];
    for kind in kinds {
        let page = iowhy(&["report", &name(&format!("{kind}.json"))]).done().stdout;
        holds_together(&page);
        assert!(page.contains("<h1>") && page.contains("<table>"), "{kind}: {page}");
        all.push(name(&format!("{kind}.json")));
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let together = iowhy(&all).done().stdout;
    holds_together(&together);
    assert_eq!(together.matches("<article").count(), kinds.len());
    // The main job names what it shows, and the report shows just that.
    let path: Value = serde_json::from_str(&std::fs::read_to_string(name("path.json")).unwrap()).unwrap();
    let page = iowhy(&["report", &name("path.json")]).done().stdout;
    for request in path["requests"].as_array().unwrap() {
        assert!(page.contains(request["label"].as_str().unwrap()), "{request}");
    }
}

#[test]
fn a_proof_stands_beside_what_was_foretold() {
    let folder = directory();
    let record = folder.path().join("run.json");
    iowhy(&["--json", text(&record), "--", "true"]).done();
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let proof = serde_json::json!({
        "seed": 1, "baseline": null, "reason": "no call was seen",
        "findings": [{
            "id": "sync-per-write", "verdict": "inconclusive", "how": "one fdatasync for 95 records",
            "predicted": {"predicted": 13.0, "low": 3.2, "high": 116.0},
            "measured": {"value": 22.4, "low": 18.0, "high": 33.0, "unit": "ratio", "n": 9},
            "reason": null, "io_ns": [],
        }],
    });
    run["proof"] = proof.clone();
    std::fs::write(&record, run.to_string()).unwrap();
    let mut alone = proof;
    for (key, value) in [
        ("schema", 1.into()),
        ("kind", "proof".into()),
        ("iowhy", "0".into()),
        ("command", "c".into()),
        ("subject", "s".into()),
    ] {
        alone[key] = value;
    }
    alone["warnings"] = serde_json::json!([]);
    let other = folder.path().join("proof.json");
    std::fs::write(&other, alone.to_string()).unwrap();
    for path in [&record, &other] {
        let page = iowhy(&["report", text(path)]).done().stdout;
        holds_together(&page);
        for words in ["13x [3.2, 116]", "22x [18, 33], n = 9", "inconclusive", "no call was seen"] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}

#[test]
fn what_is_no_record_is_refused_and_nothing_is_written() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--json", text(&record)]).done();
    let whole = std::fs::read_to_string(&record).unwrap();
    let page = folder.path().join("page.html");
    let refused = |name: &str, content: &str, says: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let ran = iowhy(&["report", text(&path), "-o", text(&page)]);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains(name) && ran.stderr.contains("hint:"),
            "{ran:?}"
        );
        assert!(!page.exists(), "{name} left a page");
    };
    refused("cut.json", &whole[..whole.len() / 2], "was cut off");
    refused("text.json", "hello", "is no JSON");
    refused("other.json", "{\"a\": 1}", "no record of iowhy");
    refused("newer.json", &whole.replacen("\"schema\":1", "\"schema\":99", 1), "format 99");
    refused("run.json", "{\"schema\": 1, \"kind\": \"watched-program\", \"profile\": {}}", "damaged record");
    refused(
        "formats.json",
        "{\"schema\": 1, \"kind\": \"list\", \"formats\": []}",
        "holds nothing that a report shows",
    );
    refused("damaged.json", &whole.replacen("\"rounds\"", "\"runds\"", 1), "damaged record");
    let mut empty: Value = serde_json::from_str(&whole).unwrap();
    empty["cells"] = serde_json::json!([]);
    refused("empty.json", &empty.to_string(), "holds no samples");
    let over = iowhy(&["report", text(&record), "-o", text(&record)]);
    assert!(over.code() == 2 && over.stderr.contains("overwrite"), "{over:?}");
    assert_eq!(std::fs::read_to_string(&record).unwrap(), whole);
    let missing = iowhy(&["report", "/nowhere/at-all.json"]);
    assert!(missing.code() == 2 && missing.stderr.contains("/nowhere/at-all.json"), "{missing:?}");
    let json = iowhy(&["report", text(&record), "--json", "-"]);
    assert!(json.code() == 2 && json.stderr.contains("--json"), "{json:?}");
    let twice = iowhy(&["report", "-", "-"]);
    assert!(twice.code() == 2 && twice.stderr.contains("stands twice"), "{twice:?}");
    // A full disk is a failure that says so.
    if std::path::Path::new("/dev/full").exists() {
        let full = finish(binary().args(["report", text(&record), "-o", "/dev/full"]));
        assert!(full.code() == 1 && full.stderr.contains("/dev/full"), "{full:?}");
    }
}

#[test]
fn records_of_older_versions_stay_readable() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--state", "warm", "--json", text(&record)]).done();
    let mut old: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    // What later versions added.
    old.as_object_mut().unwrap().remove("requests");
    for cell in old["cells"].as_array_mut().unwrap() {
        for sample in cell["samples"].as_array_mut().unwrap() {
            sample.as_object_mut().unwrap().remove("latency_quarters");
        }
    }
    std::fs::write(&record, old.to_string()).unwrap();
    let page = iowhy(&["report", text(&record)]).done().stdout;
    holds_together(&page);
    assert!(page.contains("mean "), "the rounds' means stand in");
    iowhy(&["compare", text(&record), text(&record)]).done();
}
