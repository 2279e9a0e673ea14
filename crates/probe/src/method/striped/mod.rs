//! Requests to a stripe: split at the borders of chunks, the parts sent to the members at the same time.
//!
//! Three ways, by what carries the parts: `threads` for methods that are one system call a request, `ring` for
//! io_uring, `scripted` for false members in virtual time. A part is carried out by the method itself, on the member.
//!
//! What a driver in the kernel does otherwise: it splits below the page cache, so that one cached request is one copy
//! whatever the interleave; here a request that crosses a border is several requests on several files. What the splitting
//! costs here (for a thread to be woken some 10 us) is not what it costs there (well below 1 us).

mod ring;
mod scripted;
mod threads;

use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method, Workload};

use super::{direction, null};
use crate::access::{Failure, Sent};
use crate::clock::Clock;
use crate::hot_loop::HotAccess;
use crate::target::Target;
use crate::target::stripe::Striped;

/// Opens every member the way the workload's method needs it.
///
/// # Errors
/// What a member refuses; direct requests that turns would cut off their alignment; methods that ask no member.
pub(super) fn open(
    workload: &Workload,
    target: &Target,
    stripe: &Arc<Striped>,
    clock: &Clock,
) -> Result<Box<dyn HotAccess>, Problem> {
    if target.script().is_some() {
        return Ok(Box::new(scripted::Striped::new(workload, stripe, clock)));
    }
    direction::check(workload.direction, workload.method)?;
    if workload.method == Method::Null {
        return Ok(Box::new(null::Null::new(workload.depth)));
    }
    if workload.method.scsi() {
        return Err(Problem::refused(format!(
            "method `{}` asks a device for its own buffer, and `{}` is several targets",
            workload.method.id(),
            target.facts.name
        ))
        .hint("name one `/dev/sg*` device"));
    }
    check_alignment(workload, target)?;
    match workload.method {
        Method::Uring | Method::UringSqpoll | Method::UringIopoll => ring::open(workload, stripe),
        _ => Ok(Box::new(threads::Striped::new(workload, stripe)?)),
    }
}

/// Direct requests are cut at turns: these must keep to the alignment, too.
fn check_alignment(workload: &Workload, target: &Target) -> Result<(), Problem> {
    let direct = workload.state == CacheState::Direct
        || matches!(workload.method, Method::Direct | Method::UringIopoll);
    let (Some(stripe), Some(alignment)) = (target.stripe(), target.facts.direct_alignment_bytes) else {
        return Ok(());
    };
    let interleave = stripe.map().interleave();
    if direct && alignment > 0 && !interleave.is_multiple_of(alignment) {
        return Err(Problem::refused(format!(
            "turns of {interleave} bytes are not a multiple of {alignment} bytes, which direct requests to the members \
             of `{}` must be",
            target.facts.name
        ))
        .hint(format!(
            "use an interleave that is a multiple of {}, or `--state cold`",
            Bytes(alignment)
        )));
    }
    Ok(())
}

/// The workload as one member sees it; `None` for a member that has nothing of the region.
fn of_member(workload: &Workload, stripe: &Striped, member: usize) -> Option<Workload> {
    let map = stripe.map();
    let part = map.part(workload.region_offset, workload.region_bytes, member)?;
    Some(Workload {
        block_bytes: map.longest_part(workload.block_bytes).max(1),
        region_offset: part.offset,
        region_bytes: part.bytes,
        threads: 1,
        depth: 1,
        ..workload.clone()
    })
}

/// Adds the member's name.
fn at_member(stripe: &Striped, member: usize) -> impl FnOnce(Failure) -> Failure {
    let name = stripe.name(member);
    move |failure| Failure::Member { name, failure: Box::new(failure) }
}

/// Counts a part.
fn count(sent: &mut [Sent], member: usize, bytes: u64) {
    if let Some(sent) = sent.get_mut(member) {
        sent.requests += 1;
        sent.bytes += bytes;
    }
}

#[cfg(test)]
mod tests;
