//! The order of cells over rounds: interleaved and seeded, so that drift does not look like effect.
