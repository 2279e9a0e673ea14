//! The kernel's total of CPU time against what the time line gives its threads where that is more; what is less is in `unrecorded`.
//!
//! Three kinds of running time, by how they are known. Inferred: a gap that no reading covers had the proportions of the time beside
//! it; that is cut first. Recorded, from getting a CPU to leaving it: interrupts and the hypervisor take some of that, which the kernel
//! gives to no thread; as much as the machine counted for them waits for a CPU. What is left beyond the total is of processes that the
//! total does not hold, because nobody waited for them: it stays, and is told.
//! Invariant: threads run for the total and what is told, at most; no time is lost or made.

use iowhy_core::profile::State;

use super::account::Account;
use super::pending::CpuTime;
use super::rows::{Book, Row};
use super::stacks::{StackId, UNKNOWN};

/// Takes from running time what the kernel did not count. Returns how much of it is recorded all the same, ns.
pub(super) fn conserve(cpu: CpuTime, accounts: &[Account], books: &mut [Book]) -> f64 {
    let Some(total_ns) = cpu.total_ns.filter(|_| cpu.exact) else { return 0.0 };
    let inferred: Vec<f64> = accounts.iter().zip(&*books).map(|(a, book)| inferred_ns(a, book)).collect();
    let excess = |books: &[Book]| (books.iter().map(running_ns).sum::<f64>() - total_ns as f64).max(0.0);
    let part = part_of(excess(books), inferred.iter().sum());
    for (book, inferred) in books.iter_mut().zip(inferred) {
        sleep_instead(book, part * inferred);
    }
    let beyond = excess(books);
    if beyond > cpu.taken_ns as f64 {
        return beyond;
    }
    let part = part_of(beyond, books.iter().map(running_ns).sum());
    books.iter_mut().for_each(|book| wait_instead(book, part));
    0.0
}

fn part_of(some: f64, whole: f64) -> f64 {
    if whole > 0.0 { (some / whole).min(1.0) } else { 0.0 }
}

fn running_ns(book: &Book) -> f64 {
    in_state(book, State::Running).map(|(_, row)| row.measured_ns + row.gap_ns).sum()
}

/// Running time in gaps, without what readings of the kernel's counters tell.
fn inferred_ns(a: &Account, book: &Book) -> f64 {
    let gaps: f64 = in_state(book, State::Running).map(|(_, row)| row.gap_ns).sum();
    (gaps - a.read_running_ns - a.hidden_running_ns).max(0.0)
}

fn in_state(book: &Book, state: State) -> impl Iterator<Item = (&StackId, &Row)> {
    book.iter().filter(move |((of, _), _)| *of == state).map(|((_, stack), row)| (stack, row))
}

/// So much time of gaps was spent in the thread's other states, as its time in them is divided; without any, it slept.
fn sleep_instead(book: &mut Book, time_ns: f64) {
    let gaps: f64 = in_state(book, State::Running).map(|(_, row)| row.gap_ns).sum();
    let part = part_of(time_ns, gaps);
    if part <= 0.0 {
        return;
    }
    let others: f64 =
        book.iter().filter(|((state, _), _)| *state != State::Running).map(|(_, row)| length_ns(row)).sum();
    let cut = gaps * part;
    for ((state, _), row) in book.iter_mut() {
        if *state == State::Running {
            row.gap_ns *= 1.0 - part;
        } else if others > 0.0 {
            row.gap_ns += cut * length_ns(row) / others;
        }
    }
    if others <= 0.0 {
        book.entry((State::Blocked, UNKNOWN)).or_default().gap_ns += cut;
    }
}

fn length_ns(row: &Row) -> f64 {
    row.measured_ns + row.gap_ns + row.moved_ns
}

/// This part of the running time went to interrupts and the hypervisor: the thread was runnable, and had no CPU.
fn wait_instead(book: &mut Book, part: f64) {
    if part <= 0.0 {
        return;
    }
    let mut running: Vec<StackId> = in_state(book, State::Running).map(|(stack, _)| *stack).collect();
    running.sort_unstable();
    for stack in running {
        let Some(row) = book.get_mut(&(State::Running, stack)) else { continue };
        let taken = row.split_off(part);
        book.entry((State::Queued, stack)).or_default().join(&taken);
    }
}
