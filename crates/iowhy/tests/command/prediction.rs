//! Calibrated gains: their intervals in the record, and the user's files unchanged.

use std::path::Path;

use serde_json::Value;

use crate::bad_input::fingerprint;
use crate::common::{MIB, directory, full_file, iowhy, is_root, names, skipped, text};

/// dd in pieces of 64 bytes, long enough to be seen; its finding.
fn small_reads(dir: &Path, options: &[&str]) -> (Value, String) {
    let (data, record) = (dir.join("data"), dir.join("record.json"));
    let from = format!("if={}", text(&data));
    let program = ["dd", &from, "of=/dev/null", "bs=64", "status=none"];
    let ran = iowhy(&[&["--json", text(&record)], options, &["--"], &program].concat()).done();
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let found = record["findings"].as_array().unwrap().iter().find(|f| f["id"] == "small-requests").cloned();
    (found.unwrap_or_else(|| panic!("{ran:?}")), ran.stderr)
}

#[test]
fn a_gain_is_what_repeated_calls_leave_and_nothing_of_the_users_changes() {
    if !is_root() {
        return skipped("calls are recorded by root alone, and a prediction repeats them");
    }
    let dir = directory();
    let data = full_file(dir.path(), "data", 16 * MIB);
    let before = fingerprint(&data);
    // While others take the CPUs, a repeat takes other times than the program did, and says so.
    let tries = (0..3).map(|_| small_reads(dir.path(), &[]));
    let good = |(found, _): &(Value, String)| found["gain"]["predicted"].is_number();
    let Some((found, screen)) = tries.into_iter().find(good) else {
        return skipped("the machine is too busy to repeat calls as they were, in three tries");
    };
    let prediction = &found["prediction"];
    let of = |name: &str| prediction["remaining"][name].as_f64().unwrap_or_else(|| panic!("{found}"));
    assert!(0.0 <= of("low") && of("low") <= of("value") && of("value") <= of("high"), "{found}");
    assert!(of("n") >= 3.0 && prediction["repeated"]["calls"].as_u64() > Some(0), "{found}");
    // Fewer calls for the same bytes leave less of the run, whatever the machine does meanwhile.
    assert!(found["gain"]["predicted"].as_f64() > Some(1.0), "{found}");
    assert!(screen.contains("instead of"), "{screen}");
    assert_eq!(fingerprint(&data), before);
    assert_eq!(names(dir.path()), ["data", "record.json"]);
    // Without it there is no more than a bound, and none where nearly all of the run is in the calls.
    let (found, screen) = small_reads(dir.path(), &["--no-calibrate"]);
    assert!(found["prediction"].is_null() && found["gain"].is_null(), "{found}");
    let bound = found["gain_rest_unchanged"].as_f64();
    assert_eq!(screen.contains("small-requests  gain up to"), bound.is_some(), "{screen}");
    assert!(bound.is_none_or(|most| most >= 1.0) && !screen.contains("instead of"), "{screen}");
}

/// The shell asks by itself whether a file exists.
#[test]
fn calls_that_need_not_be_made_have_a_gain_by_the_account_and_nothing_is_repeated() {
    const NOT_COUNTED: &str = "system calls cannot be counted here: only root may load the observer";
    if !is_root() {
        return skipped(NOT_COUNTED);
    }
    let dir = directory();
    let record = dir.path().join("record.json");
    let searches = "i=0; while [ $i -lt 300000 ]; do [ -e /proc/none ]; i=$((i+1)); done";
    let options = ["--no-calibrate", "--json", text(&record), "--", "sh", "-c", searches];
    let screen = iowhy(&options).done().stderr;
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    if record["tier"] != "observer" {
        return skipped(NOT_COUNTED);
    }
    let found = &record["findings"][0];
    let of =
        |name: &str| found["prediction"]["remaining"][name].as_f64().unwrap_or_else(|| panic!("{found}"));
    assert_eq!(found["id"], "failed-lookups", "{found}");
    assert!(0.0 < of("low") && of("low") < of("value") && of("value") < of("high"), "{found}");
    // Without any of the shell's own code, what is left is at least what the bound says.
    let most = found["gain_rest_unchanged"].as_f64().unwrap();
    assert!(of("high") >= 0.999 * found["prediction"]["wall_ns"].as_f64().unwrap() / most, "{found}");
    assert!(found["prediction"]["repeated"].is_null(), "{found}");
    assert!(
        screen.contains("with none of these failing calls: ") && screen.contains("by the account"),
        "{screen}"
    );
}
