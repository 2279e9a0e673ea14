//! Which block leaves a full cache. One file and one row of `with_policies!` per policy, all behind
//! [`BlockCache`].
//!
//! Miss ratios equal those of libCacheSim (commit aa0fc409) with object sizes ignored. Time, costs
//! and dirty state are outside.

mod arc;
pub mod belady;
mod bulk;
mod clock;
mod engine;
mod index;
mod lfu;
mod lists;
mod logs;
mod nodes;
mod queue;
mod s3_fifo;
mod sieve;
mod slru;
mod two_q;

use std::fmt;

use iowhy_core::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::bulk::{Bulk, bulk, bulk_of_any};
use self::index::Hashed;
use self::lists::Linked;

/// A cache of numbered blocks, all of one size. The numbers are the caller's.
pub trait BlockCache {
    /// Looks a block up, as a use of it. True: it is there.
    fn lookup(&mut self, block: u64) -> bool;

    /// Puts a block in that is not there; the blocks that had to leave for it are handed to `evicted`. A block that is there
    /// already stays as it is.
    fn insert(&mut self, block: u64, evicted: &mut dyn FnMut(u64));

    /// Whether a block is there, without counting as a use.
    fn contains(&self, block: u64) -> bool;

    /// Takes a block out. True: it was there.
    fn remove(&mut self, block: u64) -> bool;

    /// How many blocks are there.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many blocks there is room for.
    fn capacity(&self) -> usize;
}

/// Calls the macro `$then` with the list of policies that decide at run time: variant, identifier, letter in a plot, type.
macro_rules! with_policies {
    ($then:ident $(, $policy:expr, $lists:ident, $capacity:expr, $wrap:expr)?) => {
        $then! { $($policy, $lists, $capacity, $wrap,)?
            /// First in, first out.
            Fifo, "fifo", 'F', queue::Fifo;
            /// Least recently used.
            Lru, "lru", 'L', queue::Lru;
            /// CLOCK with one bit; the same as FIFO with a second chance.
            Clock, "clock", 'C', clock::Clock;
            /// SIEVE.
            Sieve, "sieve", 'S', sieve::Sieve;
            /// S3-FIFO: small queue 0.1, ghosts 0.9, to the main queue after two uses.
            S3Fifo, "s3fifo", '3', s3_fifo::S3Fifo;
            /// ARC.
            Arc, "arc", 'A', arc::Arc;
            /// 2Q: first queue 0.25, ghosts 0.5.
            TwoQ, "2q", '2', two_q::TwoQ;
            /// Segmented LRU of four equal segments.
            Slru, "slru", 'G', slru::Slru;
            /// Least frequently used while in the cache.
            Lfu, "lfu", 'U', lfu::Lfu;
        }
    };
}

macro_rules! policy_ids {
    ($($(#[$doc:meta])+ $variant:ident, $id:literal, $letter:literal, $module:ident::$type:ident;)+) => {
        /// A policy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum PolicyId {
            $($(#[$doc])+ #[serde(rename = $id)] $variant,)+
            /// Belady's MIN: the lower bound, which needs the future.
            #[serde(rename = "belady")]
            Belady,
        }

        impl PolicyId {
            /// Every policy, from the plainest to the bound.
            pub const ALL: &[PolicyId] = &[$(PolicyId::$variant,)+ PolicyId::Belady];

            /// The stable identifier, as on the command line and in JSON.
            pub fn id(self) -> &'static str {
                match self {
                    $(PolicyId::$variant => $id,)+
                    PolicyId::Belady => "belady",
                }
            }

            /// Letter in a plot.
            pub fn letter(self) -> char {
                match self {
                    $(PolicyId::$variant => $letter,)+
                    PolicyId::Belady => 'B',
                }
            }
        }
    };
}

with_policies!(policy_ids);

impl PolicyId {
    /// The policies that decide at run time: all but the bound.
    pub fn online() -> impl Iterator<Item = PolicyId> {
        PolicyId::ALL.iter().copied().filter(|policy| *policy != PolicyId::Belady)
    }

    /// The policy with this identifier; case, hyphens and underscores do not matter.
    ///
    /// # Errors
    /// A refusal that lists the identifiers.
    pub fn parse(text: &str) -> Result<PolicyId, Problem> {
        let wanted: String =
            text.trim().chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
        let other_name = match wanted.as_str() {
            "twoq" => "2q",
            "opt" | "min" => "belady",
            "secondchance" | "fiforeinsertion" => "clock",
            name => name,
        };
        PolicyId::ALL.iter().copied().find(|policy| policy.id() == other_name).ok_or_else(|| {
            let all: Vec<&str> = PolicyId::ALL.iter().map(|policy| policy.id()).collect();
            Problem::refused(format!("`{text}` is no cache policy"))
                .hint(format!("one of {}", all.join(", ")))
        })
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// The largest cache: its slots, ghosts included, are numbered in 32 bits.
pub const MAX_BLOCKS: usize = 1 << 30;

/// Refuses a cache that cannot be.
fn check_capacity(policy: PolicyId, capacity: usize) -> Result<(), Problem> {
    if capacity == 0 {
        return Err(Problem::refused(format!("a cache ({policy}) with room for no block holds nothing"))
            .hint("give it room for one block at least"));
    }
    if capacity > MAX_BLOCKS {
        return Err(Problem::refused(format!(
            "a cache ({policy}) of {capacity} blocks is larger than this simulator's largest, {MAX_BLOCKS}"
        ))
        .hint("choose larger blocks or a smaller cache"));
    }
    Ok(())
}

macro_rules! cache_of {
    ($policy:expr, $lists:ident, $capacity:expr, $wrap:expr,
     $($(#[$doc:meta])+ $variant:ident, $id:literal, $letter:literal, $module:ident::$type:ident;)+) => {
        match $policy {
            $(PolicyId::$variant => Some($wrap($crate::policy::$module::$type::<$lists>::new($capacity))),)+
            PolicyId::Belady => None,
        }
    };
}

/// Makes a cache from the type of its policy, for any store of its lists.
macro_rules! with_policy {
    ($policy:expr, $lists:ident, $capacity:expr, $wrap:expr) => {
        with_policies!(cache_of, $policy, $lists, $capacity, $wrap)
    };
}
use {cache_of, with_policies, with_policy};

/// An empty cache with room for `capacity` blocks. Memory grows with the blocks that are held, not with the capacity.
///
/// # Errors
/// A refusal for a capacity of 0 or above [`MAX_BLOCKS`], and for Belady's MIN, which needs to know the future.
pub fn new(policy: PolicyId, capacity: usize) -> Result<Box<dyn BlockCache + Send>, Problem> {
    check_capacity(policy, capacity)?;
    fn boxed(cache: impl BlockCache + Send + 'static) -> Box<dyn BlockCache + Send> {
        Box::new(cache)
    }
    with_policy!(policy, OfAny, capacity, boxed).ok_or_else(needs_the_future)
}

/// Lists of blocks with any numbers.
type OfAny = Linked<Hashed>;

fn needs_the_future() -> Problem {
    Problem::refused("the policy `belady` needs to know all later requests; a running cache does not")
        .hint("choose another policy here; `iowhy mrc --policy belady` computes the bound from a trace")
}

#[cfg(test)]
mod tests;
