//! A stripe in user space: several targets that take turns, `stripe:64k:a,b,c`.
//!
//! What is modelled: which member holds a byte, how requests are split, and that parts of one request overlap. What is
//! not: one page cache over the whole (each member has its own), read-ahead that knows of the stripe (each member's
//! window opens by itself), and the cost of the kernel's splitting (ours is counted instead).
//!
//! Invariants: no two members share their bytes; every member is used to the same length, a whole number of turns.

use std::sync::{Arc, OnceLock};

use iowhy_core::environment::{MemberFacts, StripeFacts, TargetFacts, TargetKind};
use iowhy_core::problem::Problem;
use iowhy_core::stripe::Stripe;
use iowhy_core::units::{self, Bytes};

use super::{Place, Target};

/// The word that such a target begins with.
pub const WORD: &str = "stripe";
/// The unit of every striping driver's interleave.
pub const SECTOR_BYTES: u64 = 512;
/// More members than this are taken for a slip of the finger.
const MAX_MEMBERS: usize = 256;
const FORM: &str = "write `stripe:INTERLEAVE:MEMBER,MEMBER,...`, as in `stripe:64k:/dev/sdb,/dev/sdc` or `stripe:126s:DIR1,DIR2` \
     (`s` is sectors of 512 bytes)";

/// Members that take turns.
#[derive(Debug)]
pub struct Striped {
    map: Stripe,
    /// Shared: stripes of several interleaves may be made of the same members, or of some of them.
    members: Vec<Arc<Target>>,
    names: Vec<Arc<str>>,
}

impl Striped {
    /// Where each byte is.
    pub fn map(&self) -> Stripe {
        self.map
    }

    /// The members, in the order of their turns.
    pub fn members(&self) -> &[Arc<Target>] {
        &self.members
    }

    /// The name of a member, cheap to clone.
    pub(crate) fn name(&self, member: usize) -> Arc<str> {
        self.names.get(member).cloned().unwrap_or_else(|| Arc::from("a member"))
    }
}

/// Reads the word `stripe:INTERLEAVE:a,b,c`: its interleave and the names of its members.
///
/// # Errors
/// Says what is missing or impossible, and the syntax.
pub fn parse(spec: &str) -> Result<(u64, Vec<&str>), Problem> {
    let refuse = |why: String| Err(Problem::refused(format!("`{spec}`: {why}")).hint(FORM));
    let Some((interleave, members)) =
        spec.strip_prefix(WORD).and_then(|rest| rest.strip_prefix(':')).and_then(|rest| rest.split_once(':'))
    else {
        return refuse("a stripe has an interleave and members".to_owned());
    };
    let bytes = parse_interleave("interleave", interleave)?;
    let members: Vec<&str> = members.split(',').map(str::trim).collect();
    if members.iter().any(|member| member.is_empty()) {
        return refuse("a member without a name".to_owned());
    }
    match members.as_slice() {
        [one] => Err(Problem::refused(format!("`{spec}`: a stripe of one member is that member"))
            .hint(format!("name `{one}` itself, or two members or more"))),
        many if many.len() > MAX_MEMBERS => {
            refuse(format!("{} members; {MAX_MEMBERS} is the most", many.len()))
        }
        _ => Ok((bytes, members)),
    }
}

/// Reads an interleave: a size, or sectors of 512 bytes as in `126s`.
///
/// # Errors
/// Names the option when it is zero, no whole number of sectors, or no size.
pub fn parse_interleave(option: &str, text: &str) -> Result<u64, Problem> {
    let sectors = text.strip_suffix(['s', 'S']).and_then(|number| number.parse::<u64>().ok());
    let bytes = match sectors {
        Some(sectors) => sectors.checked_mul(SECTOR_BYTES).ok_or_else(|| {
            Problem::refused(format!("{option} `{text}` is more than can be counted")).hint(FORM)
        })?,
        None => units::parse_bytes(option, text)?,
    };
    if bytes == 0 {
        return Err(Problem::refused(format!("{option} `{text}`: turns of no bytes have no place for data"))
            .hint("give one sector or more, as in `64k` or `126s`"));
    }
    if !bytes.is_multiple_of(SECTOR_BYTES) {
        let below = (bytes / SECTOR_BYTES).max(1) * SECTOR_BYTES;
        return Err(Problem::refused(format!(
            "{option} `{text}` is {bytes} bytes, which is not a multiple of the sector of {SECTOR_BYTES} bytes"
        ))
        .hint(format!("use {below} or {}", below + SECTOR_BYTES)));
    }
    Ok(bytes)
}

/// Joins targets that were found or made before, each of which [`check_member`] has let pass.
///
/// # Errors
/// Members too small for a turn, and what no stripe can be made of.
pub fn join(spec: &str, interleave: u64, members: Vec<Arc<Target>>) -> Result<Target, Problem> {
    let impossible = || Problem::refused(format!("`{spec}` is no stripe that can be counted")).hint(FORM);
    let map = Stripe::new(interleave, members.len()).ok_or_else(impossible)?;
    let Some(smallest) = members.iter().min_by_key(|member| member.facts.size_bytes) else {
        return Err(impossible());
    };
    let scripted = members.iter().filter(|member| member.script().is_some()).count();
    if scripted > 0 && scripted < members.len() {
        return Err(Problem::refused(format!(
            "`{spec}` mixes scripted members with real ones, and virtual time with real time"
        ))
        .hint("use one or the other"));
    }
    let member_bytes = map.usable(smallest.facts.size_bytes);
    if member_bytes == 0 {
        return Err(Problem::refused(format!(
            "`{}` holds {}, less than one turn of {}",
            smallest.facts.name,
            Bytes(smallest.facts.size_bytes),
            Bytes(interleave)
        ))
        .hint("use a smaller interleave, or larger members"));
    }
    let size_bytes = member_bytes.checked_mul(members.len() as u64).ok_or_else(impossible)?;
    let facts = facts(spec, interleave, member_bytes, size_bytes, &members);
    let names = members.iter().map(|member| Arc::from(member.facts.name.as_str())).collect();
    Ok(Target {
        facts,
        place: Place::Stripe(Arc::new(Striped { map, members, names })),
        status: None,
        under: OnceLock::new(),
    })
}

/// Whether a target can be a member beside those before it; `spec` is what the user typed.
///
/// # Errors
/// A target without bytes of its own, one that shares them with another member, one whose sector is larger than a turn.
pub fn check_member(spec: &str, member: &Target, before: &[Target], interleave: u64) -> Result<(), Problem> {
    let name = &member.facts.name;
    let refuse =
        |why: String, fix: &str| Err(Problem::refused(format!("`{spec}`: {why}")).hint(fix.to_owned()));
    match member.facts.kind {
        TargetKind::Null | TargetKind::CharDevice => {
            return refuse(
                format!("`{name}` has no bytes of its own to take turns with"),
                "members are files, directories, block devices or `memory`",
            );
        }
        TargetKind::Stripe => {
            return refuse(format!("`{name}` is a stripe itself"), "name the members of both in one stripe");
        }
        _ => {}
    }
    if let Some(twin) =
        before.iter().find(|other| other.identity().is_some() && other.identity() == member.identity())
    {
        let how =
            if twin.facts.name == *name { "is named twice" } else { "is a member already, by another name" };
        return refuse(
            format!("`{name}` {how} (`{}`): both would hold the same bytes", twin.facts.name),
            "name each member once",
        );
    }
    let sector = member.facts.direct_alignment_bytes.unwrap_or(SECTOR_BYTES);
    if member.facts.kind == TargetKind::BlockDevice && !interleave.is_multiple_of(sector) {
        return refuse(
            format!(
                "an interleave of {interleave} bytes is not a multiple of the sector of `{name}` ({sector} bytes)"
            ),
            "use a multiple of it",
        );
    }
    Ok(())
}

fn facts(
    spec: &str,
    interleave_bytes: u64,
    member_bytes: u64,
    size_bytes: u64,
    members: &[Arc<Target>],
) -> TargetFacts {
    let sum = |of: fn(&TargetFacts) -> Option<u64>| {
        members
            .iter()
            .map(|member| of(&member.facts))
            .try_fold(0u64, |sum, each| Some(sum.saturating_add(each?)))
    };
    let alignment = members.iter().filter_map(|member| member.facts.direct_alignment_bytes).max();
    let fits = alignment.is_none_or(|bytes| interleave_bytes.is_multiple_of(bytes));
    let direct = if members.iter().any(|member| member.facts.direct_supported == Some(false)) || !fits {
        Some(false)
    } else if members.iter().all(|member| member.facts.direct_supported == Some(true)) {
        Some(true)
    } else {
        None
    };
    TargetFacts {
        kind: TargetKind::Stripe,
        name: spec.to_owned(),
        size_bytes,
        hole_bytes: sum(|facts| facts.hole_bytes),
        unwritten_bytes: sum(|facts| facts.unwritten_bytes),
        shared_bytes: sum(|facts| facts.shared_bytes),
        encoded_bytes: sum(|facts| facts.encoded_bytes),
        extents: sum(|facts| facts.extents),
        memory_backed: members.iter().all(|member| member.facts.memory_backed),
        overwritten: overwritten(members),
        served_by: members.iter().find_map(|member| member.facts.served_by.clone()),
        direct_supported: direct,
        direct_alignment_bytes: alignment,
        cache_visible: members.iter().all(|member| member.facts.cache_visible),
        stripe: Some(StripeFacts {
            interleave_bytes,
            member_bytes,
            members: members.iter().map(|member| member_facts(member)).collect(),
        }),
    }
}

/// Content of the members that are overwritten.
fn overwritten(members: &[Arc<Target>]) -> Option<String> {
    let of =
        |member: &Arc<Target>| Some(format!("{}: {}", member.facts.name, member.facts.overwritten.as_ref()?));
    let all: Vec<String> = members.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn member_facts(member: &Target) -> MemberFacts {
    MemberFacts {
        name: member.facts.name.clone(),
        kind: member.facts.kind,
        size_bytes: member.facts.size_bytes,
        devices: member.counted_devices().to_vec(),
    }
}

#[cfg(test)]
mod tests;
