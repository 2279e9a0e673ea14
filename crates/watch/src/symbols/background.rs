//! Reads the kernel's names on a thread of its own, so that a program need not wait for them before it starts.
//!
//! Reading takes 40 ms of CPU time and more for a usual kernel (one line is formatted for each of its symbols). What may
//! not enter: what the names are for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::kernel::Kernel;

/// A table that is being read.
#[derive(Debug)]
pub(crate) struct Background {
    /// Absent where no thread could be made; the table is then read when it is asked for.
    thread: Option<JoinHandle<Kernel>>,
    cpu_ns: Arc<AtomicU64>,
}

impl Background {
    /// Begins to read `/proc/kallsyms`.
    pub(crate) fn start() -> Background {
        let cpu_ns = Arc::new(AtomicU64::new(0));
        let spent = Arc::clone(&cpu_ns);
        let read = move || {
            let kernel = Kernel::of_this_machine();
            spent.store(iowhy_linux::clock::thread_cpu_ns(), Ordering::Relaxed);
            kernel
        };
        let thread = std::thread::Builder::new().name("iowhy-names".to_owned()).spawn(read).ok();
        Background { thread, cpu_ns }
    }

    /// Where the CPU time that reading took will stand, in nanoseconds; 0 until it is done.
    pub(crate) fn cpu_ns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.cpu_ns)
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
        let cpu_ns = coming.cpu_ns();
        let (there, here) = (coming.wait(), Kernel::of_this_machine());
        assert_eq!(there.is_empty(), here.is_empty());
        assert!(there.is_empty() || cpu_ns.load(Ordering::Relaxed) > 0);
    }
}
