//! From a kernel stack to meaning: which operation the program asked for, which layer the time was spent in, and what
//! was waited for.
//!
//! The outermost system call or fault is the **operation**; the innermost function that is in the table is the
//! **layer**, functions that only help (locks, lists, string copies) being looked through. The table is data
//! (`symbols.toml`, `waits.toml`; for functions in no list `modules.toml` and `paths.toml`, by module and by source file);
//! nothing here knows a function by name.
//!
//! Operation and layer are two axes. A page fault inside a system call leaves the system call as operation and has the
//! layer `memory`: reads into fresh memory are [`Operation::Read`] with [`Layer::Memory`](iowhy_core::layer::Layer).

mod by_path;
mod patterns;
mod stack;
mod table;
mod vocabulary;

pub use stack::Classifier;
pub use table::{ByName, ByPathMeaning, LayerLine, Listed, PathRule};
pub use vocabulary::{Class, Operation, Wait};

#[cfg(test)]
mod tests;
