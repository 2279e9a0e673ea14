//! The members of the real stripes: named by the user and then only read, or scratch files. Not here: what is
//! asked of them.

use std::path::Path;
use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_probe::clock::Clock;
use iowhy_probe::environment;
use iowhy_probe::method;
use iowhy_probe::target::{Needs, Target, stripe};

use crate::lab::Lab;

/// Disks of the post.
const POSTED: usize = 3;
/// A scratch file: four groups of 16 MiB, and what an odd interleave leaves over.
const MEMBER_BYTES: u64 = 65 << 20;
const MAX_MEMBERS: usize = 64;
/// The largest request, and the alignment that every request keeps.
const BLOCK_BYTES: u64 = 8192;
const FRAGMENT_BYTES: u64 = 1024;

/// What stripes are made of.
#[derive(Debug)]
pub(super) struct Members {
    disks: Vec<Arc<Target>>,
    /// Whether the user named them.
    pub(super) named: bool,
    /// Whether one disk may serve several of them: then a row shows splitting and no spindles.
    pub(super) one_disk: bool,
    /// Whether a control group throttles one of them.
    pub(super) throttled: bool,
}

impl Members {
    /// Finds or makes them; `Err` within says why there are none here.
    ///
    /// # Errors
    /// Names that cannot be members, what resolving says, an output that is one of them.
    pub(super) fn find(lab: &Lab<'_>) -> Result<Result<Members, String>, Problem> {
        let names: Vec<&str> = match lab.members {
            Some(list) => list.split(',').map(str::trim).collect(),
            None if Path::new(lab.spec).is_dir() => vec![lab.spec; POSTED],
            None => {
                return Ok(Err(format!("`{}` is no directory, and no `--members` are named", lab.spec)));
            }
        };
        if names.len() < 2 || names.len() > MAX_MEMBERS || names.iter().any(|name| name.is_empty()) {
            return Err(Problem::refused(format!(
                "`--members {}`: a stripe has 2 to {MAX_MEMBERS} members",
                lab.members.unwrap_or_default()
            ))
            .hint(
                "name them with commas between: `--members /dev/sdb,/dev/sdc,/dev/sdd`; they are only read",
            ));
        }
        let count = names.len() as u64;
        let each = lab.size.map_or(MEMBER_BYTES, |bytes| bytes.div_ceil(count));
        let needs = Needs { scratch_bytes: each, write: false, destroy_data: None };
        let mut disks: Vec<Target> = Vec::with_capacity(names.len());
        for name in names {
            let member = lab.world.resolve(name, &needs)?;
            stripe::check_member("--members", &member, &disks, stripe::SECTOR_BYTES)?;
            if member.facts.memory_backed {
                return Ok(Err(format!("`{name}` lives in memory, and a stripe of it has no disks")));
            }
            disks.push(member);
        }
        let all: Vec<&Target> = disks.iter().collect();
        lab.world.spare(&all)?;
        let throttled = disks.iter().any(|disk| environment::environment(disk).throttle.is_some());
        let one_disk = share_a_disk(&disks, throttled);
        Ok(Ok(Members {
            disks: disks.into_iter().map(Arc::new).collect(),
            named: lab.members.is_some(),
            one_disk,
            throttled,
        }))
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.disks.len()
    }

    /// What they are, for the screen.
    pub(super) fn words(&self) -> String {
        let size = self.disks.iter().map(|disk| disk.facts.size_bytes).min().unwrap_or(0);
        match self.named {
            true => {
                let names: Vec<&str> = self.disks.iter().map(|disk| disk.facts.name.as_str()).collect();
                names.join(", ")
            }
            false => format!("{} scratch files of {} in one directory", self.count(), Bytes(size)),
        }
    }

    /// The stripe of an interleave in sectors.
    ///
    /// # Errors
    /// Members too small for a turn.
    pub(super) fn stripe(&self, interleave: u64) -> Result<Target, Problem> {
        let names: Vec<&str> = self.disks.iter().map(|disk| disk.facts.name.as_str()).collect();
        let spec = format!("stripe:{interleave}s:{}", names.join(","));
        stripe::join(&spec, interleave * stripe::SECTOR_BYTES, self.disks.clone())
    }

    /// How requests are made, the same on every stripe: past the cache where all of them allow requests of a fragment.
    pub(super) fn how(&self, stripes: &[&Target]) -> (Method, CacheState) {
        let Some(first) = stripes.first() else { return (Method::Direct, CacheState::Direct) };
        if first.script().is_some() {
            return (Method::Direct, CacheState::Direct);
        }
        let fits = |stripe: &&Target| {
            let alignment = stripe.facts.direct_alignment_bytes.unwrap_or(stripe::SECTOR_BYTES).max(1);
            stripe.facts.direct_supported == Some(true) && FRAGMENT_BYTES.is_multiple_of(alignment)
        };
        if !stripes.iter().all(fits) {
            return (Method::PreadRandom, CacheState::Cold);
        }
        // Without helpers where the kernel gives us rings.
        let trial = Workload::reads(Method::Uring, CacheState::Direct, BLOCK_BYTES, BLOCK_BYTES);
        match method::open(&trial, first, &Clock::real()) {
            Ok(_) => (Method::Uring, CacheState::Direct),
            Err(_) => (Method::Direct, CacheState::Direct),
        }
    }
}

/// Whether any device serves two members, or whether that cannot be seen. What is below loop devices is not looked into: they
/// count as disks of their own where a throttle makes them slow, each by itself.
fn share_a_disk(disks: &[Target], throttled: bool) -> bool {
    if disks.iter().all(|disk| disk.script().is_some()) {
        return false;
    }
    let mut seen: Vec<&String> = Vec::new();
    for disk in disks {
        let under = disk.counted_devices();
        let loops = under.iter().any(|device| device.starts_with("loop"));
        if under.is_empty() || (loops && !throttled) || under.iter().any(|device| seen.contains(&device)) {
            return true;
        }
        seen.extend(under);
    }
    false
}
