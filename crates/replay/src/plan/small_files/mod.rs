//! The unchanged run where its time is in many small files: a scratch tree of their shape.
//!
//! Files that are open for a moment are seen without a name: [`tree`] takes their number, size and calls, and a directory of
//! their file system. Each is taken to be another file.

mod calls_per_file;
mod directory;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use self::tree::baseline;
