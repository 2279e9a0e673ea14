//! The record: the result of a command, as one JSON object that other programs can rely on.
//!
//! Invariants: units stand in key names; raw samples are kept, so that every estimate can be computed anew; a key that
//! has no value is `null` or absent, never a guess. Keys are only ever added within one `schema`. Deliberately absent:
//! text for people, which is made in `screen`.

pub mod classic;
pub mod compare;
pub mod doctor;
pub mod history;
mod kind;
pub mod lists;
pub mod measured_ranks;
pub mod member;
pub mod merge;
mod path;
pub mod phases;
pub mod prove;
pub mod rank;
pub mod replay;
pub mod run_time;
pub mod schema;
pub mod sim;
pub mod stripe;
pub mod stripe_advice;
pub mod tails;
pub mod trace;
pub mod tree;
pub mod watch;
pub mod whole_machine;

pub use kind::Kind;
pub use path::{
    CellRecord, FasterRecord, HeldOutRecord, LatencyRecord, MethodRecord, QuestionLimit, Record,
    RequestRecord, RulerRecord, Seen, model_tables,
};

/// Version of the record format.
pub const SCHEMA: u32 = 1;
