//! `iowhy compare`, on scripted machines whose true change is known.

use std::path::{Path, PathBuf};

use iowhy_core::model::StackModel;
use iowhy_probe::script::Script;
use serde_json::Value;

use crate::common::{directory, iowhy, text};
use crate::record::{number, words};

const BENCH: [&str; 8] =
    ["--rw", "randread", "--bs", "4k,64k", "--state", "warm,direct", "--layers", "--json"];

/// A machine saved as TOML, changed as told.
fn machine(folder: &Path, name: &str, change: impl Fn(&mut StackModel)) -> String {
    let mut model = Script::example().unwrap().model;
    change(&mut model);
    let path = folder.join(name);
    std::fs::write(&path, toml::to_string(&model).unwrap()).unwrap();
    format!("scripted:{}?noise=0.01", text(&path))
}

fn measured(folder: &Path, name: &str, target: &str) -> PathBuf {
    let path = folder.join(name);
    iowhy(&[&["bench", target][..], &BENCH, &[text(&path)]].concat()).done();
    path
}

fn compared(args: &[&str]) -> Value {
    iowhy(&[&["compare"][..], args, &["--json", "-"]].concat()).done().json()
}

fn verdicts(comparison: &Value) -> Vec<(String, String)> {
    let cells = comparison["cells"].as_array().expect("cells[]");
    cells.iter().map(|c| (words(&c["key"]).to_owned(), words(&c["verdict"]).to_owned())).collect()
}

#[test]
fn a_slower_device_regresses_what_uses_it_and_nothing_else() {
    let folder = directory();
    let usual = machine(folder.path(), "usual.toml", |_| {});
    let slow = machine(folder.path(), "slow.toml", |model| {
        let device = model.layers.entry(iowhy_core::layer::Layer::Device).or_default();
        device.cost.per_call_ns *= 2.0;
    });
    let before = measured(folder.path(), "before.json", &usual);
    let after = measured(folder.path(), "after.json", &slow);
    let (before, after) = (text(&before), text(&after));
    let comparison = compared(&[before, after]);
    let told = verdicts(&comparison);
    assert_eq!(told.len(), 4, "{told:?}");
    for (key, verdict) in &told {
        let expected = if key.contains("direct") { "regressed" } else { "within-noise" };
        assert_eq!(verdict, expected, "{key}: {comparison}");
    }
    for cell in comparison["cells"].as_array().unwrap() {
        if cell["verdict"] == "regressed" {
            assert_eq!(cell["layer"], "device", "{cell}");
            assert!(number(&cell["after_over_before"]["low"]) > 1.0);
        }
    }
    // Layer by layer: the device of the direct cells alone, and each other layer is within noise.
    let layers = comparison["layers"].as_array().unwrap();
    assert!(layers.len() >= 4 * 4, "{layers:?}");
    for layer in layers {
        let hit = words(&layer["key"]).contains("direct") && layer["layer"] == "device";
        assert_eq!(layer["verdict"], if hit { "regressed" } else { "within-noise" }, "{layer}");
        let [low, value, high] = ["low", "value", "high"].map(|end| number(&layer["effect"][end]));
        assert!(low <= value && value <= high && layer["effect"]["n"].as_u64().unwrap() >= 5, "{layer}");
    }
    // The other way round it is an improvement, and the same records are all within noise.
    let back = verdicts(&compared(&[after, before]));
    assert!(
        back.iter().all(|(key, v)| v == if key.contains("direct") { "improved" } else { "within-noise" })
    );
    let same = verdicts(&compared(&[before, before]));
    assert!(same.iter().all(|(_, verdict)| verdict == "within-noise"), "{same:?}");
    // A pipeline can be made to fail.
    assert_eq!(iowhy(&["compare", before, after, "--fail-on", "regressed"]).code(), 1);
    assert_eq!(iowhy(&["compare", after, before, "--fail-on", "regressed"]).code(), 0);
    // What does not matter is noise, however sure it is.
    let lenient = verdicts(&compared(&[before, after, "--threshold", "100%"]));
    assert!(lenient.iter().all(|(_, verdict)| verdict != "regressed"), "{lenient:?}");
    let screen = iowhy(&["compare", before, after]).done().stdout;
    let rounds = comparison["cells"][0]["after_over_before"]["n"].as_u64().unwrap();
    assert!(screen.contains(&format!("medians of {rounds} ")), "{rounds}: {screen}");
    assert!(screen.starts_with("4 cells compared: 2 regressed, 2 within noise"), "{screen}");
    assert!(screen.contains("REGRESSED, mostly device") || screen.contains("REGRESSED, device"), "{screen}");
    assert!(
        screen.contains("effect: of this layer's change alone") && screen.contains("within noise: call,"),
        "{screen}"
    );
}

#[test]
fn a_layer_that_grows_is_seen_where_it_hides_in_the_whole_and_one_of_no_weight_does_not_matter() {
    let folder = directory();
    let usual = machine(folder.path(), "usual.toml", |_| {});
    let changed = machine(folder.path(), "changed.toml", |model| {
        use iowhy_core::layer::Layer;
        let mut cost = |layer: Layer, by: f64| {
            model.layers.entry(layer).or_default().cost.per_call_ns *= by;
        };
        // A cached read of 4 KiB: the call takes more, and the cache so much less that the whole hardly changes.
        cost(Layer::Call, 1.4);
        cost(Layer::Cache, 0.25);
    });
    let before = measured(folder.path(), "before.json", &usual);
    let after = measured(folder.path(), "after.json", &changed);
    let comparison = compared(&[text(&before), text(&after)]);
    let word = |key: &str, layer: &str| {
        let layers = comparison["layers"].as_array().unwrap();
        let of = |l: &&Value| l["layer"] == layer && words(&l["key"]).contains(key);
        words(&layers.iter().find(of).unwrap()["verdict"]).to_owned()
    };
    let small = "warm-4096";
    let cell = comparison["cells"].as_array().unwrap().iter().find(|c| words(&c["key"]).contains(small));
    assert_eq!(cell.unwrap()["verdict"], "within-noise", "{comparison}");
    assert_eq!((word(small, "call"), word(small, "cache")), ("regressed".into(), "improved".into()));
    // 60 ns of 70 us are no news, however sure they are.
    assert_eq!(word("direct-4096", "call"), "within-noise");
    // A layer that grew makes no pipeline fail where the whole did not.
    assert_eq!(iowhy(&["compare", text(&before), text(&after), "--fail-on", "regressed"]).code(), 0);
}

#[test]
fn screens_fit_their_terminals_and_hold_no_colour_unasked() {
    let folder = directory();
    let usual = machine(folder.path(), "usual.toml", |_| {});
    let slow = machine(folder.path(), "slow.toml", |model| {
        model.layers.entry(iowhy_core::layer::Layer::Device).or_default().cost.per_call_ns *= 2.0;
    });
    let before = measured(folder.path(), "before.json", &usual);
    let after = measured(folder.path(), "after.json", &slow);
    let args = ["compare", text(&before), text(&after)];
    let plain = iowhy(&args).done().stdout;
    assert!(!plain.contains('\u{1b}') && plain.lines().all(|l| l.chars().count() <= 120), "{plain}");
    let coloured = iowhy(&[&args[..], &["--color", "always"]].concat()).done().stdout;
    assert!(coloured.contains('\u{1b}'), "{coloured}");
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--state", "warm", "--json", text(&record)]).done();
    let whole = std::fs::read_to_string(&record).unwrap();
    let refused = |name: &str, content: &str, says: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let ran = iowhy(&["compare", text(&record), text(&path)]);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains(name) && ran.stderr.contains("hint:"),
            "{ran:?}"
        );
    };
    refused("cut.json", &whole[..whole.len() / 2], "was cut off");
    refused("text.json", "hello", "is no JSON");
    refused("other.json", "{\"a\": 1}", "no record of iowhy");
    refused("newer.json", &whole.replacen("\"schema\":1", "\"schema\":99", 1), "format 99");
    refused("run.json", "{\"schema\": 1, \"kind\": \"watched-program\", \"profile\": {}}", "damaged record");
    refused(
        "sim.json",
        "{\"schema\": 1, \"kind\": \"simulation\", \"points\": []}",
        "nothing that was measured in rounds",
    );
    refused("damaged.json", &whole.replacen("\"rounds\"", "\"runds\"", 1), "damaged record");
    let missing = iowhy(&["compare", text(&record), "/nowhere/at-all.json"]);
    assert!(missing.code() == 2 && missing.stderr.contains("/nowhere/at-all.json"), "{missing:?}");
    let over = iowhy(&["compare", text(&record), text(&record), "--json", text(&record)]);
    assert!(over.code() == 2 && over.stderr.contains("overwrite"), "{over:?}");
    assert_eq!(std::fs::read_to_string(&record).unwrap(), whole);
}

#[test]
fn records_of_two_machines_need_force_and_other_cells_are_named() {
    let folder = directory();
    let one = folder.path().join("one.json");
    iowhy(&["bench", "scripted", "--state", "warm", "--bs", "4k,8k", "--json", text(&one)]).done();
    let mut other: Value = serde_json::from_str(&std::fs::read_to_string(&one).unwrap()).unwrap();
    other["environment"]["cpu"] = "Another CPU".into();
    let cells = other["cells"].as_array_mut().unwrap();
    let gone = words(&cells.remove(0)["key"]).to_owned();
    let two = folder.path().join("two.json");
    std::fs::write(&two, other.to_string()).unwrap();
    let ran = iowhy(&["compare", text(&one), text(&two)]);
    assert!(
        ran.code() == 2 && ran.stderr.contains("Another CPU") && ran.stderr.contains("--force"),
        "{ran:?}"
    );
    let forced = compared(&[text(&one), text(&two), "--force"]);
    assert_eq!(forced["only_before"][0], gone.as_str());
    assert_eq!(forced["differences"][0]["other_machine"], true);
    // None in common at all, and more than one setting differs.
    let third = folder.path().join("three.json");
    let other = ["--state", "direct", "--bs", "16k,32k", "--threads", "2"];
    iowhy(&[&["bench", "scripted"], &other[..], &["--json", text(&third)]].concat()).done();
    let ran = iowhy(&["compare", text(&one), text(&third)]);
    assert!(ran.code() == 2 && ran.stderr.contains("no cell in common"), "{ran:?}");
}

#[test]
fn cells_that_differ_in_one_setting_are_compared_and_the_setting_is_named() {
    let folder = directory();
    let measure = |name: &str, args: &[&str]| -> String {
        let path = folder.path().join(name);
        let bench =
            ["bench", "scripted?noise=0.01", "--method", "uring", "--state", "direct", "--rw", "randread"];
        iowhy(&[&bench[..], args, &["--json", text(&path)]].concat()).done();
        text(&path).to_owned()
    };
    let facts = |comparison: &Value| -> Vec<String> {
        let all = comparison["differences"].as_array().expect("differences[]");
        let line =
            |d: &Value| format!("{} {} {}", words(&d["fact"]), words(&d["before"]), words(&d["after"]));
        all.iter().map(line).collect()
    };
    let one = measure("one.json", &["--iodepth", "1"]);
    let eight = measure("eight.json", &["--iodepth", "8"]);
    let comparison = compared(&[&one, &eight]);
    assert_eq!(facts(&comparison), ["--iodepth 1 8"], "{comparison}");
    let cell = &comparison["cells"][0];
    assert_ne!(cell["key"], cell["before_key"], "{comparison}");
    assert!(number(&cell["after_over_before"]["value"]) > 0.0, "{comparison}");
    let screen = iowhy(&["compare", &one, &eight]).done().stdout;
    assert!(screen.contains("--iodepth: 1 -> 8"), "{screen}");
    // Cells of one setting have one key, and the other way round it is the same pair.
    assert!(compared(&[&one, &one])["cells"][0]["before_key"].is_null());
    assert_eq!(facts(&compared(&[&eight, &one])), ["--iodepth 8 1"]);
    // Single cells may differ in several settings: each is named.
    let far = measure("far.json", &["--iodepth", "4", "--bs", "64k"]);
    assert_eq!(facts(&compared(&[&one, &far])), ["--bs 4k 64k", "--iodepth 1 4"]);
    // Sweeps that differ in one setting: cell by cell, and what has no counterpart is named.
    let sweep = measure("sweep1.json", &["--bs", "4k,16k", "--iodepth", "1"]);
    let other = measure("sweep8.json", &["--bs", "4k,16k,64k", "--iodepth", "8"]);
    let comparison = compared(&[&sweep, &other]);
    assert_eq!(facts(&comparison), ["--iodepth 1 8"], "{comparison}");
    let cells = comparison["cells"].as_array().unwrap();
    assert_eq!((cells.len(), comparison["only_after"].as_array().unwrap().len()), (2, 1), "{comparison}");
    for cell in cells {
        let [before, after] = [&cell["before_key"], &cell["key"]].map(words);
        assert_eq!(before.replace("d1", "d8"), after, "{comparison}");
    }
}
