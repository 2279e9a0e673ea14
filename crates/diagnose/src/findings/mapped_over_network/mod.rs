//! The rule `mapped-over-network`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{ServedMount, StepKind};

use super::report::Draft;
use super::served::{Asked, ServerWaits};
use super::{Facts, Repairs, Rule, say, served};

pub(super) const RULE: Rule = Rule {
    id: FindingId::MappedOverNetwork,
    claim: "page faults of a mapped file that each wait for the server of a file system",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("which pages of a mapping a program touches is not recorded"),
};

/// The advice of madvise(2) that turns read-ahead off.
const MADV_RANDOM: u32 = 1;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waits = ServerWaits::new(facts);
    let sum = waits.sum(Asked::Mapping);
    let mount = waits.mount(Asked::Mapping);
    let random = asks_for_no_read_ahead(facts);
    let mut evidence =
        vec![facts.waits_in_words(sum, "page fault waits for the server", "page faults wait for the server")];
    evidence.extend(mount.and_then(|mount| mapped(&waits, mount)));
    evidence.extend(
        random.then(|| {
            "the program turns read-ahead off (MADV_RANDOM): each fault asks for one page".to_owned()
        }),
    );
    evidence.extend(served::server_evidence(mount));
    evidence.extend(served::mount_evidence(mount));
    Draft {
        id: FindingId::MappedOverNetwork,
        cost_ns: sum.wall_ns,
        removable: None,
        sentence: format!(
            "Page faults on mapped files of {} take {} of wall time: each waits for the server",
            served::place(mount),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: advice(random),
    }
    .finding(facts)
}

/// Which files of the mount were mapped.
fn mapped(waits: &ServerWaits<'_>, mount: &ServedMount) -> Option<String> {
    let mut files: Vec<_> = waits.files_on(mount).filter(|f| f.mapped).collect();
    files.sort_by_key(|f| std::cmp::Reverse(f.size_bytes));
    let bytes = files.iter().filter_map(|f| f.size_bytes).fold(0, u64::saturating_add);
    let largest = files.first()?;
    Some(match files.len() {
        1 => format!("mapped: {}, {}", largest.path, say::bytes(bytes as f64)),
        n => {
            format!(
                "{} files of this mount are mapped, {}; the largest is {}",
                n,
                say::bytes(bytes as f64),
                largest.path
            )
        }
    })
}

/// Whether a recorded call says so.
fn asks_for_no_read_ahead(facts: &Facts<'_>) -> bool {
    let steps = facts.profile.pattern.stretches.iter().flat_map(|stretch| &stretch.steps);
    steps.into_iter().any(|step| step.kind == StepKind::AdviseMap && step.argument == MADV_RANDOM)
}

fn advice(random: bool) -> String {
    let unless = if random { "Leave MADV_RANDOM out, or read" } else { "Read" };
    format!(
        "{unless} the file instead: one read(2) or pread(2) of 1 MiB asks for many pages at once, a fault for a few. Or copy the \
         file to a local disk first. A mapping that must stay: fetch what is needed before it is touched \
         (madvise(MADV_POPULATE_READ), posix_fadvise(POSIX_FADV_WILLNEED)), raise the read-ahead of the mount \
         (/sys/class/bdi/MAJOR:MINOR/read_ahead_kb), or touch it from several threads."
    )
}
