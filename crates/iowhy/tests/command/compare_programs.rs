//! `iowhy compare` of watched programs, on runs whose true change is known: a record of a real run, its times changed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{directory, iowhy, text};
use crate::record::{number, words};

/// The run that all others are made of.
fn sample() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1/watched.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Run number `k` of the program: all of it a trifle longer or shorter by the number, its sleeps `asleep` times as long.
fn run(folder: &Path, name: &str, k: u64, asleep: f64, change: impl Fn(&mut Value)) -> PathBuf {
    let mut record = sample();
    let noise = 1.0 + 0.004 * (k % 3) as f64;
    let profile = &mut record["profile"];
    let (mut wall, mut states) = (number(&profile["idle_wall_ns"]) * noise, [0.0; 3]);
    profile["idle_wall_ns"] = wall.into();
    for stack in profile["stacks"].as_array_mut().unwrap() {
        let state = words(&stack["state"]).to_owned();
        let factor = if state == "blocked" { asleep * noise } else { noise };
        for key in ["time_ns", "wall_ns"] {
            stack[key] = (number(&stack[key]) * factor).into();
        }
        wall += number(&stack["wall_ns"]);
        let place = ["running", "queued", "blocked"].iter().position(|s| *s == state).unwrap();
        states[place] += number(&stack["time_ns"]);
    }
    profile["wall_ns"] = (wall.round() as u64).into();
    let thread = &mut profile["threads"][0];
    for (key, ns) in ["running_ns", "queued_ns", "blocked_ns"].iter().zip(states) {
        thread[*key] = (ns.round() as u64).into();
    }
    thread["lifetime_ns"] = (states.iter().sum::<f64>().round() as u64).into();
    record["wall_s"] = (wall / 1e9).into();
    change(&mut record);
    let path = folder.join(format!("{name}{k}.json"));
    std::fs::write(&path, record.to_string()).unwrap();
    path
}

/// Several of them, as the command line names them.
fn runs(folder: &Path, name: &str, n: u64, asleep: f64, change: impl Fn(&mut Value)) -> String {
    let paths: Vec<PathBuf> = (0..n).map(|k| run(folder, name, k, asleep, &change)).collect();
    paths.iter().map(|path| text(path)).collect::<Vec<_>>().join(",")
}

fn compared(args: &[&str]) -> Value {
    iowhy(&[&["compare"][..], args, &["--json", "-"]].concat()).done().json()
}

fn part<'a>(comparison: &'a Value, operation: &str, layer: &str) -> &'a Value {
    let parts = comparison["parts"].as_array().unwrap();
    parts.iter().find(|p| p["operation"] == operation && p["layer"] == layer).unwrap()
}

#[test]
fn a_wait_that_grows_regresses_with_the_wall_time_and_the_other_parts_are_within_noise() {
    let folder = directory();
    let before = runs(folder.path(), "before", 6, 1.0, |_| {});
    let after = runs(folder.path(), "after", 7, 3.0, |record| record["findings"] = Value::Array(vec![]));
    let told = compared(&[&before, &after]);
    assert_eq!(told["wall"]["verdict"], "regressed", "{told}");
    let grown = part(&told, "write", "device");
    assert_eq!(grown["verdict"], "regressed");
    // Its waits last three times as long; the driver's CPU time, which is in the same layer, does not.
    let operations = sample()["operations"].clone();
    let write = operations.as_array().unwrap().iter().find(|o| o["id"] == "write").unwrap();
    let device = write["layers"].as_array().unwrap().iter().find(|l| l["id"] == "device").unwrap();
    let (busy, wait) = (number(&device["busy_s"]), number(&device["wait_s"]));
    let expected = (busy + 3.0 * wait) / (busy + wait);
    assert!((number(&grown["after_over_before"]["value"]) - expected).abs() < 0.05, "{expected} {grown}");
    // It alone changed, so that its effect is that of the whole.
    let gap = number(&grown["effect"]["value"]) - number(&told["wall"]["after_over_before"]["value"]);
    assert!(gap.abs() < 0.01, "{gap}");
    let parts = told["parts"].as_array().unwrap().iter();
    let others: Vec<&Value> = parts.filter(|p| p["layer"] != "device").collect();
    assert!(!others.is_empty() && others.iter().all(|p| p["verdict"] == "within-noise"), "{others:?}");
    assert_eq!(told["wall"]["effect"]["n"], 6, "the fewer of both sides");
    // What was found in every run before and in none after went; the sums hold.
    let findings = told["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|f| f["change"] == "went"), "{findings:?}");
    let sum: f64 = sample()["operations"].as_array().unwrap().iter().map(|o| number(&o["wall_s"])).sum();
    assert!((number(&told["wall"]["before_ns"]) / (sum * 1e9) - 1.0).abs() < 0.02);
    // Back again it improved; a pipeline fails by the wall time.
    let back = compared(&[&after, &before]);
    assert_eq!(
        (&back["wall"]["verdict"], &part(&back, "write", "device")["verdict"]),
        (&"improved".into(), &"improved".into())
    );
    assert!(back["findings"].as_array().unwrap().iter().all(|f| f["change"] == "appeared"));
    let code = |args: &[&str]| iowhy(&[&["compare"], args].concat()).code();
    assert_eq!(code(&[&before, &after, "--fail-on", "regressed"]), 1);
    assert_eq!(code(&[&after, &before, "--fail-on", "regressed"]), 0);
    let longer = runs(folder.path(), "longer", 7, 1.5, |_| {});
    let lenient = compared(&[&before, &longer, "--threshold", "90%"]);
    assert_eq!(lenient["wall"]["verdict"], "within-noise", "sure, and less than what matters");
    let same = compared(&[&before, &before]);
    assert!(same["parts"].as_array().unwrap().iter().all(|p| p["verdict"] == "within-noise"));
    assert!(same["findings"].as_array().unwrap().iter().all(|f| f["change"] == "stays"));
    let screen = iowhy(&["compare", &before, &after]).done().stdout;
    let flowing = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.starts_with("Wall time REGRESSED; ") && flowing.contains("n = 6 and 7"), "{screen}");
    assert!(screen.contains("write: device") && screen.contains("went (p = "), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 120) && !screen.contains('\u{1b}'), "{screen}");
    // The comparison itself is a record: it can be shown and exported.
    let record = folder.path().join("comparison.json");
    iowhy(&["compare", &before, &after, "--json", text(&record)]).done();
    let shown = iowhy(&["report", text(&record), "--markdown"]).done().stdout;
    assert!(shown.contains("Wall time REGRESSED") && shown.contains("write: device"), "{shown}");
    assert!(iowhy(&["export", text(&record)]).done().stdout.contains("write"));
}

#[test]
fn one_run_each_shows_what_differs_and_says_how_to_know() {
    let folder = directory();
    let (before, after) = (run(folder.path(), "b", 0, 1.0, |_| {}), run(folder.path(), "a", 0, 3.0, |_| {}));
    let told = compared(&[text(&before), text(&after)]);
    assert_eq!((words(&told["doubt"]), words(&told["wall"]["verdict"])), ("one run each", "inconclusive"));
    assert!(told["wall"]["before"].is_null() && number(&told["wall"]["before_ns"]) > 0.0);
    assert!(told["parts"].as_array().unwrap().iter().all(|p| p["verdict"] == "inconclusive"));
    assert_eq!(
        (&told["parts"][0]["operation"], &told["parts"][0]["layer"]),
        (&"write".into(), &"device".into())
    );
    let screen = iowhy(&["compare", text(&before), text(&after)]).done().stdout;
    assert!(screen.starts_with("Wall time inconclusive: one run each; "), "{screen}");
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("--save-as before -- dd ") && screen.contains("compare @before @after"),
        "{screen}"
    );
    assert_eq!(iowhy(&["compare", text(&before), text(&after), "--fail-on", "regressed"]).code(), 0);
    assert_eq!(iowhy(&["compare", text(&before), text(&after), "--fail-on", "inconclusive"]).code(), 1);
    // Four on a side have intervals, and still decide nothing.
    let few =
        compared(&[&runs(folder.path(), "f", 4, 1.0, |_| {}), &runs(folder.path(), "g", 5, 3.0, |_| {})]);
    assert!(words(&few["doubt"]).starts_with("4 and 5 runs are too few"), "{few}");
    assert_eq!(few["wall"]["verdict"], "inconclusive");
    assert!(number(&few["wall"]["after_over_before"]["low"]) > 1.0);
}

#[test]
fn what_makes_runs_unlike_is_refused_or_said() {
    let folder = directory();
    let at = folder.path();
    let before = runs(at, "before", 5, 1.0, |_| {});
    let refused = |args: &[&str], says: &[&str]| {
        let ran = iowhy(&[&["compare"], args].concat());
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(says.iter().all(|s| ran.stderr.contains(s)) && ran.stderr.contains("hint:"), "{ran:?}");
    };
    let one = text(&run(at, "one", 0, 1.0, |_| {})).to_owned();
    refused(&[&format!("{one},{one}"), &before], &["stands twice"]);
    let other = text(&run(at, "other", 0, 1.0, |r| r["subject"] = "another program".into())).to_owned();
    refused(&[&format!("{before},{other}"), &before], &["two programs", "another program", "--force"]);
    let told = compared(&[&before, &other]);
    assert_eq!(told["differences"], serde_json::json!([]), "on two sides the programs are what is compared");
    assert_eq!(told["after"]["subject"], "another program");
    let away = text(&run(at, "away", 0, 1.0, |r| r["environment"]["cpu"] = "Another CPU".into())).to_owned();
    refused(&[&before, &away], &["two machines", "Another CPU", "--force"]);
    assert_eq!(compared(&[&before, &away, "--force"])["differences"][0]["other_machine"], true);
    // Other rights show other parts: the whole can be told, the parts cannot.
    let blind = runs(at, "blind", 5, 3.0, |r| r["tier"] = "none".into());
    let told = compared(&[&before, &blind]);
    assert_eq!(told["wall"]["verdict"], "regressed");
    assert!(words(&told["parts_doubt"]).contains("none and observer"), "{told}");
    assert!(told["parts"].as_array().unwrap().iter().all(|p| p["verdict"] == "inconclusive"));
    // A run that failed is named.
    let failed = runs(at, "failed", 5, 1.0, |r| r["exit"] = serde_json::json!({"code": 3}));
    let ran = iowhy(&["compare", &before, &failed]).done();
    assert!(ran.stderr.contains("with code 3 (5)"), "{ran:?}");
    // Measured cells and programs have nothing in common; several records of cells are one too many.
    let bench = at.join("bench.json");
    iowhy(&["bench", "scripted", "--state", "warm", "--json", text(&bench)]).done();
    refused(&[text(&bench), &one], &["bench.json", "measured cells", "profiled program"]);
    refused(&[&one, text(&bench)], &["bench.json", "measured cells", "profiled program"]);
    let copy = at.join("copy.json");
    std::fs::copy(&bench, &copy).unwrap();
    refused(&[&format!("{},{}", text(&bench), text(&copy)), text(&bench)], &["2 records of measured cells"]);
    refused(&[&format!("{one},{}", text(&bench)), &one], &["measured cells and watched programs"]);
    refused(&[&format!("{one},/nowhere/at-all.json"), &one], &["/nowhere/at-all.json"]);
    let cut = at.join("cut.json");
    std::fs::write(&cut, &std::fs::read_to_string(&one).unwrap()[..2000]).unwrap();
    refused(&[&format!("{one},{}", text(&cut)), &one], &["cut.json", "was cut off"]);
}
