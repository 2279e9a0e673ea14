//! A file truncated under a mapping must fail the cell, not kill the process.
