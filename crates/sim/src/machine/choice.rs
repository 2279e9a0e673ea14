//! Settings that are one of a few words.

use crate::policy::PolicyId;

/// Stands for no choice; not a valid input.
const UNNAMED: &str = "missing";

/// A setting with a fixed vocabulary.
pub trait Choice {
    /// Takes the value of this name. False: there is none.
    fn choose(&mut self, id: &str) -> bool;

    /// All names that can be given.
    fn ids(&self) -> Vec<&'static str>;
}

macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$case_about:meta])* $case:ident = $id:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$case_about])* $case),+ }

        impl $name {
            /// All values.
            pub const ALL: &'static [$name] = &[$($name::$case),+];

            /// The name in files and options.
            pub fn id(self) -> &'static str {
                match self { $($name::$case => $id),+ }
            }
        }

        impl Choice for $name {
            fn choose(&mut self, id: &str) -> bool {
                match $name::ALL.iter().find(|value| value.id() == id && id != UNNAMED) {
                    Some(value) => { *self = *value; true }
                    None => false,
                }
            }

            fn ids(&self) -> Vec<&'static str> {
                $name::ALL.iter().map(|value| value.id()).filter(|id| *id != UNNAMED).collect()
            }
        }
    };
}

/// Every policy that needs no future.
impl Choice for PolicyId {
    fn choose(&mut self, id: &str) -> bool {
        PolicyId::online().find(|policy| policy.id() == id).map(|policy| *self = policy).is_some()
    }

    fn ids(&self) -> Vec<&'static str> {
        PolicyId::online().map(PolicyId::id).collect()
    }
}

choice! {
    /// Read-ahead.
    ReadAheadKind {
        /// Nothing.
        None = "none",
        /// The driver reads a minimum size and keeps the last read, below the cache.
        Driver = "driver",
        /// A miss reads a minimum size into the cache.
        Fixed = "fixed",
        /// The on-demand window of Linux since 2.6.23.
        Linux = "linux",
        /// `cluster_read` of 4.4BSD.
        Bsd = "bsd",
    }
}

choice! {
    /// Where files lie.
    LayoutKind {
        /// The object is the volume; offsets are addresses.
        Raw = "raw",
        /// Files one behind the other.
        Extent = "extent",
        /// Cylinder groups of the Berkeley fast file system, rules of 1999.
        Ffs = "ffs",
    }
}

choice! {
    /// How devices are joined.
    JoinKind {
        /// One device.
        Single = "single",
        /// Turn by turn.
        Stripe = "stripe",
        /// All hold the same.
        Mirror = "mirror",
        /// One behind the other.
        Concat = "concat",
    }
}

choice! {
    /// Who is next at a device.
    Order {
        /// First come, first served.
        Fcfs = "fcfs",
        /// Upwards, then back to the lowest.
        Clook = "clook",
        /// By sector with deadlines, reads before writes.
        Deadline = "deadline",
    }
}

choice! {
    /// Kinds of devices.
    DeviceKind {
        /// None was named.
        Missing = "missing",
        /// Takes no time.
        Null = "null",
        /// Arm and platters.
        Rotating = "rotating",
        /// Flash: a service curve and units that work side by side.
        Ssd = "ssd",
        /// A volume with limits of requests and bytes per second.
        Cloud = "cloud",
    }
}

choice! {
    /// When written blocks go to the device.
    WriteMode {
        /// Later, from the cache.
        Back = "back",
        /// At once; the writer waits.
        Through = "through",
    }
}

choice! {
    /// How an access time is spread.
    Spread {
        /// Always the same.
        Fixed = "fixed",
        /// Exponential with this mean.
        Exponential = "exponential",
    }
}
