//! Miss-ratio curves: the share of references that misses a cache of each size.
//!
//! Requests become [`keys`], keys become dense [`ids`]. LRU comes exact at all sizes from one pass ([`lru`], [`stack`]) or from
//! a sample ([`shards`]); other policies are run at each size ([`bank`]), whole or in miniature. Every result says whether it is
//! exact or sampled.

pub mod bank;
pub mod ids;
pub mod keys;
pub mod lru;
pub mod sample;
pub mod shape;
pub mod shards;
pub mod stack;
