//! The one place that makes, replaces and removes names in file systems.
//!
//! iowhy runs as root in directories that belong to hostile users. Invariants: a name is a single component below a
//! directory that is held open; root follows no symbolic link that another user may change, not on the way either; nothing
//! that is there is opened for writing unless the user named it; what an earlier run left is trusted only if it is ours (see
//! [`Dir::is_private`]).
//! `cargo xtask tidy` refuses calls that make or remove names anywhere else in the product.

mod dir;
mod output;
mod regular;
mod trust;
mod unnamed;
mod walk;

pub use dir::{Dir, Entry, allow_descriptors};
pub use output::{Destination, Placed};
pub use regular::{Regular, open_regular};
pub use trust::owner;
pub use unnamed::{temporary, unnamed};
pub use walk::identify;
