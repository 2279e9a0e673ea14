//! Reads the kernel's names on a thread of its own, so that a program need not wait for them before it starts.
//!
//! Reading takes 40 ms of CPU time and more for a usual kernel (one line is formatted for each of its symbols). What may
//! not enter: what the names are for.

use std::thread::JoinHandle;

use super::kernel::Kernel;

/// A table that is being read.
#[derive(Debug)]
pub(crate) struct Background {
    /// Absent where no thread could be made; the table is then read when it is asked for.
    thread: Option<JoinHandle<Kernel>>,
}

impl Background {
    /// Begins to read `/proc/kallsyms`.
    pub(crate) fn start() -> Background {
        let thread =
            std::thread::Builder::new().name("iowhy-names".to_owned()).spawn(Kernel::of_this_machine).ok();
        Background { thread }
    }

    /// Waits for the table.
    pub(crate) fn wait(self) -> Kernel {
        // A thread that failed leaves what it leaves: the table is read here.
        self.thread.and_then(|thread| thread.join().ok()).unwrap_or_else(Kernel::of_this_machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_comes_from_another_thread() {
        let coming = Background::start();
        let (there, here) = (coming.wait(), Kernel::of_this_machine());
        assert_eq!(there.is_empty(), here.is_empty());
    }
}
