//! Miss-ratio curves: what share of references misses a cache of each size.
//!
//! Requests become [`keys`], keys become dense [`ids`]. LRU comes exact at all sizes from one pass ([`lru`], [`stack`]) or from
//! a sample ([`shards`]); other policies are run at each size ([`bank`]), whole or in miniature. What is exact and what is
//! sampled is part of every answer. What may not enter: reading of files, printing.

pub mod bank;
pub mod ids;
pub mod keys;
pub mod lru;
pub mod sample;
pub mod shape;
pub mod shards;
pub mod stack;
