//! JSON schema of each kind of record, generated from the types that are written. Units, meanings and optional keys come from
//! the docs of these types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::Kind;
use super::classic::ClassicRecord;
use super::compare::{Comparison, ProgramComparison};
use super::doctor::{DoctorRecord, TrialRecord};
use super::history::HistoryRecord;
use super::lists::{ClassicsFound, Listed, Offer, RemovalFound};
use super::measured_ranks::MeasuredRanksRecord;
use super::merge::MergeRecord;
use super::prove::ProveRecord;
use super::replay::ReplayRecord;
use super::run_time::RunTimeRecord;
use super::sim::SimRecord;
use super::stripe::LintRecord;
use super::stripe_advice::AdviceRecord;
use super::tails::TailsRecord;
use super::trace::{RatiosFound, TraceFound, TraceRecord};
use super::tree::TreeRecord;
use super::watch::WatchRecord;
use super::whole_machine::WholeMachineRecord;

/// The schema of a kind of record (JSON Schema 2020-12).
pub fn schema(kind: Kind) -> Value {
    let schema = match kind {
        Kind::Measurement => generate::<super::Record>(),
        Kind::WatchedProgram => generate::<WatchRecord>(),
        Kind::WholeMachine => generate::<WholeMachineRecord>(),
        Kind::Tails => generate::<TailsRecord>(),
        Kind::RunTime => generate::<RunTimeRecord>(),
        Kind::Proof => generate::<ProveRecord>(),
        Kind::Replay => generate::<ReplayRecord>(),
        Kind::Comparison => generate::<Comparison>(),
        Kind::ComparisonOfPrograms => generate::<ProgramComparison>(),
        Kind::MergedRanks => generate::<MergeRecord>(),
        Kind::MeasuredRanks => generate::<MeasuredRanksRecord>(),
        Kind::TrialOfASetting => generate::<TrialRecord>(),
        Kind::Doctor => generate::<DoctorRecord>(),
        Kind::Simulation => generate::<SimRecord>(),
        Kind::MissRatios => generate::<TraceRecord<RatiosFound>>(),
        Kind::Classic => generate::<ClassicRecord>(),
        Kind::Classics => generate::<Listed<ClassicsFound>>(),
        Kind::SmallFiles => generate::<TreeRecord>(),
        Kind::StripeAdvice => generate::<AdviceRecord>(),
        Kind::StripeCheck => generate::<LintRecord>(),
        Kind::Trace => generate::<TraceRecord<TraceFound>>(),
        Kind::History => generate::<HistoryRecord>(),
        Kind::List => generate::<Listed<Offer>>(),
        Kind::Removal => generate::<Listed<RemovalFound>>(),
    };
    let mut schema = schema.to_value();
    schema["title"] = json!(format!("iowhy record: {}", kind.words()));
    schema["properties"]["kind"] = json!({"description": "Which record it is.", "const": kind});
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.remove("Kind");
    }
    plain(&mut schema);
    schema
}

/// Rewrites links of rustdoc as code, and the kind of a record inside another as the text that it is.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("$ref").is_some_and(|to| to == "#/$defs/Kind") {
                map.remove("$ref");
                map.insert("type".to_owned(), json!("string"));
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`").replace(['\n', '\r'], " ");
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}

fn generate<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
