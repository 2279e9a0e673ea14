//! Page-aligned memory that requests read into and write from.

/// Page-aligned, owned, pre-faulted memory.
#[derive(Debug)]
pub struct Buffer {}
