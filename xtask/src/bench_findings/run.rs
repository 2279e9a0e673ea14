//! One run of a variant, watched or timed alone.
//! Deliberately absent: what a run means.

use std::process::{Command, Stdio};
use std::time::Instant;

use iowhy_cases::{Stage, Variant};
use iowhy_core::finding::{Finding, FindingId, Prediction};
use iowhy_core::profile::Profile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Binaries, Outcome};

/// What was seen of a run, and calibrated after it.
#[derive(Serialize, Deserialize)]
pub(super) struct Watched {
    pub(super) profile: Profile,
    pub(super) predictions: Vec<(FindingId, Prediction)>,
    /// Why a finding has none.
    #[serde(default)]
    pub(super) not_predicted: Vec<(FindingId, String)>,
}

/// Runs a variant under watch. Only the slow one has a gain to calibrate.
pub(super) fn watched(stage: &mut Stage, variant: Variant, binaries: &Binaries) -> Outcome<Watched> {
    let options: &[&str] = if variant == Variant::Slow { &[] } else { &["--no-calibrate"] };
    let mut json = record(stage, variant, binaries, options)?;
    let unreadable = |e| format!("the record cannot be read: {e}");
    let profile = serde_json::from_value(json["profile"].take()).map_err(unreadable)?;
    let findings: Vec<Finding> = serde_json::from_value(json["findings"].take()).map_err(unreadable)?;
    let why = findings.iter().filter_map(|f| Some((f.id, f.not_calibrated.clone()?)));
    let not_predicted = why.collect();
    // What is by the account is made anew by the rules of the day.
    let calibrated = |f: Finding| Some((f.id, f.prediction.filter(|p| p.repeated.is_some())?));
    let predictions = findings.into_iter().filter_map(calibrated);
    Ok(Watched { profile, predictions: predictions.collect(), not_predicted })
}

/// Runs a variant under watch, with these options, and returns the record.
pub(super) fn record(
    stage: &mut Stage,
    variant: Variant,
    binaries: &Binaries,
    options: &[&str],
) -> Outcome<Value> {
    stage.before(variant).map_err(|p| p.to_string())?;
    let record = stage.dir().join("watched.json");
    // A record that an earlier run left must not be taken for this one's.
    let _ = std::fs::remove_file(&record);
    let output = crate::iowhy(&binaries.iowhy)
        .args(options)
        .arg("--json")
        .arg(&record)
        .arg("--")
        .args(stage.command(variant))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", binaries.iowhy.display()));
    stage.after();
    let output = output?;
    let text = std::fs::read_to_string(&record).map_err(|e| {
        format!("no record ({e}); it said: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("its JSON cannot be read: {e}"))?;
    if json["exit"]["code"].as_i64() != Some(0) {
        return Err(format!("the watched program ended with {}", json["exit"]));
    }
    Ok(json)
}

/// Runs a variant without watch: its wall time in seconds, and what it printed.
pub(super) fn timed(stage: &mut Stage, variant: Variant) -> Outcome<(f64, Vec<u8>)> {
    stage.before(variant).map_err(|p| p.to_string())?;
    let words = stage.command(variant);
    let (program, arguments) = words.split_first().ok_or("an empty command")?;
    let start = Instant::now();
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let seconds = start.elapsed().as_secs_f64();
    stage.after();
    let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "the {} variant failed: {}",
            variant.word(),
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok((seconds, output.stdout))
}
