//! Advice in the terms of well-known programs: the setting or call of PostgreSQL, SQLite or git that acts on a finding.
//!
//! The table is data, one file a program in `programs/`; each change has its cost and its source. A finding whose program is
//! not in the table, or has no change that acts on its mechanism, keeps its general advice alone. No finding is judged here.

mod recognise;
mod table;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId, ProgramAdvice, ProgramChange};
use iowhy_core::profile::Profile;
use schemars::JsonSchema;
use serde::Serialize;

use self::recognise::{Owner, Work};
use self::table::Program;
use crate::account::Account;

/// A program of the table with the changes that act on one finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KnownProgram {
    /// Its name.
    pub program: &'static str,
    /// How it is recognised, in words.
    pub recognised_by: String,
    /// The changes; some apply only to a kind of run (`when`).
    pub changes: Vec<KnownChange>,
}

/// A change of the table.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KnownChange {
    /// In which runs it applies, in words; absent: in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The change.
    #[serde(flatten)]
    pub change: &'static ProgramChange,
}

/// Adds the advice of the program that has the time of each finding.
pub fn add(profile: &Profile, account: &Account, findings: &mut [Finding]) {
    for finding in findings {
        finding.in_program = for_finding(profile, account, finding.id);
    }
}

/// How the run-time system that spent the time is started so that functions of its scripts have names on stacks. `None`: they have, or it is
/// none of the table.
pub fn names_of_scripts(profile: &Profile, account: &Account) -> Option<&'static str> {
    let unnamed = account.script_sites.is_empty();
    Owner::find(profile, account, Work::ALL).filter(|_| unnamed).and_then(|owner| owner.names())
}

/// All programs of the table with a change for this finding, in the order of their names.
pub fn known(id: FindingId) -> Vec<KnownProgram> {
    let known = |program: &'static Program| {
        let changes: Vec<KnownChange> = program
            .advice
            .iter()
            .filter(|advice| advice.findings.contains(&id))
            .map(|advice| KnownChange { when: advice.when(), change: &advice.change })
            .collect();
        (!changes.is_empty()).then(|| KnownProgram {
            program: &program.name,
            recognised_by: program.recognised.words(),
            changes,
        })
    };
    table::programs().iter().filter_map(known).collect()
}

fn for_finding(profile: &Profile, account: &Account, id: FindingId) -> Option<ProgramAdvice> {
    let work = Work::for_finding(id)?;
    let owner = Owner::find(profile, account, work)?;
    let changes_of = |program: &Program| -> Vec<ProgramChange> {
        let fits = |advice: &&table::Advice| advice.findings.contains(&id) && owner.fits(advice);
        program.advice.iter().filter(fits).map(|advice| advice.change.clone()).collect()
    };
    // A program that is recognised better, but has nothing for this finding, leaves it to its library or run-time system.
    owner.recognised().into_iter().find_map(|(program, recognised_by)| {
        let changes = changes_of(program);
        let program = program.name.clone();
        (!changes.is_empty()).then_some(ProgramAdvice { program, recognised_by, changes })
    })
}
