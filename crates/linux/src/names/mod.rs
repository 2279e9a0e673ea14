//! The one place that makes, replaces and removes names in file systems (`cargo xtask tidy`). iowhy runs as root in
//! directories of hostile users, so: a name is one component below a directory that is held open; root follows no symbolic
//! link that another user may change, not on the way either; an existing file is opened for writing only if the user named
//! it; a left-over of an earlier run is trusted only if it is private ([`Dir::is_private`]).

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
