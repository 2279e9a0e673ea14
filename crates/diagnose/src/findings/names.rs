//! Whether a program handles many files or one again and again: nobody traces names, so that it is told by what else is
//! known of them. Where nothing is, it cannot be told, and is not claimed.

use iowhy_core::profile::{FileUse, Tier};

use super::Facts;
use super::facts::{EXAMINE_CALLS, NAME_CALLS, NAME_CHANGES, OPEN_CALLS};
use crate::classify::{Operation, Wait};

/// This number of files, as evenly met as if there were no more, are many: who reads one and its neighbour in a loop has two.
const ENOUGH_NAMES: f64 = 3.5;
/// A file that is met so often, and as so large a part of all meetings, is opened again and again.
const OFTEN: u64 = 4;
const LARGE_PART: f64 = 0.2;
/// Calls that list, and names that the largest of them tells: 32 KiB (the buffer of glibc) in entries of 32 bytes.
const LISTINGS: f64 = 4.0;
const NAMES_OF_A_LISTING: f64 = 1024.0;
/// Waits for directories and inodes from the device, each a file that was not met before, that are no accident.
const FETCHED: u64 = 20;
/// Opens of one file from this part of all on are nearly all; as many look-ups as this go with an open (a library looks before and after). Both
/// chosen.
const NEARLY_ALL: f64 = 0.9;
const LOOKS_OF_AN_OPEN: f64 = 2.0;
/// Names that were made or removed, each another file.
const CHANGED: f64 = 60.0;

/// How often files were met, by looks and by traced opens.
fn meetings(file: &FileUse) -> u64 {
    file.appearances.saturating_add(file.opens)
}

/// Whether it has a name that the program chose: not one that its caller passed on, and not a library.
pub fn is_its_own(file: &FileUse) -> bool {
    file.path.starts_with('/') && !file.inherited && !file.mapped
}

impl Facts<'_> {
    /// Whether names are those of many files, as far as anything tells that.
    pub(super) fn handles_many_files(&self) -> bool {
        self.many_were_met()
            || self.many_were_changed()
            || ((self.many_were_listed() || self.many_were_fetched()) && !self.one_is_opened_again())
    }

    /// Whether nearly all opens are known to be of one file, with no more look-ups than go with them (a library examines what it opens):
    /// what was listed and fetched besides is what the program starts with.
    fn one_is_opened_again(&self) -> bool {
        let own = self.profile.files.iter().filter(|file| is_its_own(file) && file.kind == "regular");
        let most = own.map(|file| file.opens).max().unwrap_or(0);
        let counted = self.counted_calls(&OPEN_CALLS).zip(self.counted_calls(&EXAMINE_CALLS));
        counted.is_some_and(|(opens, looks)| {
            most >= OFTEN && most as f64 >= NEARLY_ALL * opens && looks <= LOOKS_OF_AN_OPEN * opens
        })
    }

    fn many_were_met(&self) -> bool {
        let own = self.profile.files.iter().filter(|f| is_its_own(f));
        let met: Vec<u64> = own.filter(|f| f.kind != "character-device").map(meetings).collect();
        let all: u64 = met.iter().sum();
        let squares: f64 = met.iter().map(|n| (*n as f64).powi(2)).sum();
        let most = met.iter().copied().max().unwrap_or(0);
        let again = most >= OFTEN && most as f64 >= LARGE_PART * all as f64;
        // The number of equally frequent files that gives the same chance of meeting one twice (Simpson 1949).
        all > 0 && !again && (all as f64).powi(2) / squares >= ENOUGH_NAMES
    }

    /// What is examined was listed before, so each is another.
    fn many_were_listed(&self) -> bool {
        let listings = self.counted_calls(&["getdents64", "getdents"]).unwrap_or(0.0);
        let examined = self.counted_calls(&NAME_CALLS).unwrap_or(0.0);
        listings >= LISTINGS && examined <= NAMES_OF_A_LISTING * listings
    }

    fn many_were_changed(&self) -> bool {
        self.counted_calls(&NAME_CHANGES).is_some_and(|calls| calls >= CHANGED)
    }

    fn many_were_fetched(&self) -> bool {
        let names = [Operation::Open, Operation::Stat, Operation::Names];
        let fetched: u64 = names.iter().map(|o| self.waiting(*o, Wait::DeviceRead).events).sum();
        self.profile.sight.tier >= Tier::Stacks && fetched >= FETCHED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::Run;

    fn met(files: &[(&str, u64)]) -> Run {
        let add = |run: Run, (path, n): &(&str, u64)| {
            run.file(200, |f| (f.path, f.appearances) = ((*path).to_owned(), *n))
        };
        files.iter().fold(Run::new(1.0), add)
    }

    #[test]
    fn files_are_many_where_they_are_met_in_turn() {
        assert!(met(&[("/a", 1), ("/b", 1), ("/c", 2), ("/d", 1)]).facts(|f| f.handles_many_files()));
        for few in [&[][..], &[("/a", 9)], &[("/a", 1), ("/b", 1)], &[("/a", 5), ("/b", 5), ("/c", 5)]] {
            assert!(!met(few).facts(|f| f.handles_many_files()), "{few:?}");
        }
        // Modules at the start, and then one file for the rest of the run.
        let start: Vec<(String, u64)> = (0..12).map(|n| (format!("/m{n}"), 1)).collect();
        let mut files: Vec<(&str, u64)> = start.iter().map(|(path, n)| (path.as_str(), *n)).collect();
        assert!(met(&files).facts(|f| f.handles_many_files()));
        files.push(("/one", 8));
        assert!(!met(&files).facts(|f| f.handles_many_files()));
    }

    #[test]
    fn what_the_caller_passed_on_and_libraries_are_no_files_of_the_program() {
        let change = |p: &mut iowhy_core::profile::Profile| {
            p.files[0].inherited = true;
            p.files[1].mapped = true;
        };
        let run = met(&[("/a", 1), ("/b", 1), ("/c", 1), ("/d", 1)]);
        assert!(!run.with(change).facts(|f| f.handles_many_files()));
    }

    #[test]
    fn what_a_start_lists_and_fetches_does_not_make_one_file_many() {
        // An interpreter that looks for its modules, and then opens one file for each step, or examines others.
        let run = |opens: u64, looks: u64| {
            met(&[("/status", 0)])
                .sleeps(Operation::Open, Wait::DeviceRead, 0.01, 30)
                .calls(&[("openat", opens), ("newfstatat", looks), ("getdents64", 20)])
                .with(|p| (p.sight.tier, p.files[0].opens) = (Tier::Observer, 2340))
                .facts(|f| f.handles_many_files())
        };
        assert!(!run(2400, 2600));
        assert!(run(4700, 2600), "each of so many files beside it");
        assert!(run(2400, 9000));
    }

    #[test]
    fn what_was_listed_made_or_removed_is_many() {
        let run = |calls: &[(&str, u64)]| Run::new(1.0).calls(calls).facts(|f| f.handles_many_files());
        assert!(run(&[("getdents64", 40), ("newfstatat", 30_000)]));
        assert!(run(&[("unlink", 1000)]) && run(&[("renameat2", 1000)]));
        assert!(!run(&[("newfstatat", 30_000)]) && !run(&[("getdents64", 4), ("newfstatat", 30_000)]));
    }
}
