//! An output file between its opening, before anything is measured, and its name, which it gets when it is complete.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_linux::names::{Destination, Placed};
use iowhy_probe::target::Target;

use crate::run_as;

/// A file that will be written at the end; until then what is there stays.
#[derive(Debug)]
pub struct Pending {
    /// The option and the path, for messages.
    label: String,
    /// `None` once it is written.
    place: Option<Destination>,
}

impl Pending {
    /// Takes the place without touching what is there; a file that is there will be replaced.
    ///
    /// # Errors
    /// A refusal that names the option and the path; also for a block device, which an output would destroy.
    pub fn open(option: &str, path: &Path) -> Result<Pending, Problem> {
        let label = format!("{option} {}", path.display());
        Pending::take(label, path, true).map_err(|problem| {
            match option == "--json" && problem.message.contains("block device") {
                true => problem.hint("name a file, or `--json -` for stdout"),
                false => problem,
            }
        })
    }

    /// The same where nothing may be there yet, not even a link.
    ///
    /// # Errors
    /// A refusal that names the option and the path.
    pub fn open_new(label: String, path: &Path) -> Result<Pending, Problem> {
        Pending::take(label, path, false)
    }

    fn take(label: String, path: &Path, replace: bool) -> Result<Pending, Problem> {
        let _files = run_as::files()?;
        let place = Destination::open(&label, path, replace).map_err(|mut problem| {
            problem.message.push_str(&run_as::suffix());
            problem
        })?;
        Ok(Pending { label, place: Some(place) })
    }

    /// Makes sure that the output is none of the targets.
    ///
    /// # Errors
    /// A refusal that names both.
    pub fn spare(&self, targets: &[&Target]) -> Result<(), Problem> {
        let Some(replaced) = self.place.as_ref().and_then(Destination::replaces) else { return Ok(()) };
        let same = |target: &&&Target| {
            let mut identities = target.data_targets().into_iter().filter_map(Target::identity);
            identities.any(|id| (id.device, id.inode) == replaced)
        };
        match targets.iter().find(same) {
            Some(target) => Err(Problem::refused(format!(
                "`{}` is the target `{}` itself: the output would overwrite it",
                self.label, target.facts.name
            ))
            .hint("name another file")),
            None => Ok(()),
        }
    }

    /// Writes the content under the name.
    ///
    /// # Errors
    /// A failure that names the path, e.g. on a full disk; one that says where the content is, if something else has got
    /// the name since the output was opened.
    pub fn write(self, content: &[u8]) -> Result<(), Problem> {
        self.keep(content)?.map_or(Ok(()), Err)
    }

    /// The same where content that has another name is not lost: that problem is in the value.
    pub(crate) fn keep(mut self, content: &[u8]) -> Result<Option<Problem>, Problem> {
        let _files = run_as::files()?;
        let Some(place) = self.place.take() else { return Ok(None) };
        Ok(match place.write(content)? {
            Placed::Named => None,
            Placed::Beside(path) => Some(Problem::failed(format!(
                "`{}`: something else was written there meanwhile, and stays; the result is in `{}`",
                self.label,
                path.display()
            ))),
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // A name that it has meanwhile is removed as the user of this run; without those rights it stays.
        match run_as::files() {
            Ok(_files) => drop(self.place.take()),
            Err(_) => std::mem::forget(self.place.take()),
        }
    }
}
