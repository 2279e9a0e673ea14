//! Files that a program makes, writes, and has under that name for a moment only: journals, which it removes, and files that
//! it renames into place. A replay makes them, too. Deliberately absent: which calls are on them.

use iowhy_core::replay::{Action, Op};
use iowhy_diagnose::findings::Facts;

use super::super::open_flags::O_CREAT;
use super::{Builder, without_deleted};

/// Calls that give a file another name, and those that take one away.
const RENAMES: [&str; 5] = ["rename", "renameat", "renameat2", "link", "linkat"];
const REMOVES: [&str; 2] = ["unlink", "unlinkat"];

/// Whether files that are made for a moment stay under another name: the program renames more of them than it removes. Who
/// links a file and removes its first name has renamed it.
pub(super) fn made_files_stay(facts: &Facts<'_>) -> bool {
    let calls = facts.profile.calls.iter().flat_map(|calls| &calls.calls);
    let (mut renamed, mut removed) = (0i128, 0i128);
    for call in calls {
        let name = call.name.as_str();
        let made = i128::from(call.succeeded());
        renamed += if RENAMES.contains(&name) { made } else { 0 };
        removed += if REMOVES.contains(&name) { made } else { 0 };
        removed -= if name.starts_with("link") { made } else { 0 };
    }
    renamed > removed
}

impl Builder<'_> {
    /// Whether a file was made when it was opened, written, and is there no more under its name: a journal, most often.
    pub(super) fn is_made_for_a_moment(&self, index: Option<u32>) -> bool {
        let Some(file) = index.and_then(|index| self.files.get(index as usize)) else { return false };
        let made =
            index.is_some_and(|index| self.opened.get(&index).is_some_and(|flags| flags & O_CREAT != 0));
        let storage = matches!(file.kind.as_str(), "unknown" | "regular");
        made && storage && file.identity.is_none() && self.is_written(index)
    }

    /// Whose file of a moment a step works on: the thread's own, if it makes any, else that of the first that does.
    pub(super) fn moment(&self, file: u32, thread: u32) -> (u32, Option<u32>) {
        let openers = self.openers.get(&file);
        let own = openers.is_some_and(|threads| threads.contains(&thread)).then_some(thread);
        (file, own.or_else(|| openers.and_then(|threads| threads.first().copied())))
    }

    /// Of the files that were made for a moment so far, one in this directory: the thread's own, or another's.
    pub(super) fn moment_in(&self, directory: Option<u32>, thread: Option<u32>) -> Option<u32> {
        let directory = &self.files.get(directory? as usize)?.path;
        let in_it = |file: u32| {
            let path = self.files.get(file as usize).map(|file| without_deleted(&file.path));
            path.and_then(|path| path.rsplit_once('/')).is_some_and(|(folder, _)| folder == directory)
        };
        let inside = self.moments.iter().filter(|((file, _), _)| in_it(*file));
        let made = inside.filter_map(|((_, of), at)| Some((*of != thread, (*at)?)));
        made.min().map(|(_, at)| at)
    }

    /// A file that is made for a moment is made anew in one call of the replay, which removes the one before; the program closes
    /// and removes it in calls without a step. Their recorded time belongs to it.
    pub(super) fn add_ends_of_moments(&mut self) {
        let journals = |a: &&Action| a.op == Op::MakeFile { stays: false };
        let made = self.plan.actions().filter(journals).count() as f64;
        let Some(calls) = self.facts.profile.calls.as_ref().filter(|_| made > 0.0) else { return };
        let all = calls.calls.iter().filter(|c| ["unlink", "unlinkat"].contains(&c.name.as_str()));
        let (time_ns, all) =
            all.fold((0.0, 0.0), |(time, all), c| (time + c.time_ns as f64, all + c.calls as f64));
        if all > 0.0 {
            self.recorded.metadata_ns += time_ns * (made / all).min(1.0);
            self.recorded_calls.metadata_ns += made.min(all);
        }
    }
}
