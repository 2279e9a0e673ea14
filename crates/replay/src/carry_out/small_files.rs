//! Many small files of a replay: a tree that is read, and trees that are made anew in every run.
//!
//! Goal: the shape of what the program had (files, folders, sizes), in a directory of the same file system. Invariants: names
//! and folders are there before the time of a run begins; only names of ours are written; every tree goes when this is
//! dropped, or with the next start (see [`Tree`]).
//!
//! Trees of earlier runs stay until they are many: some file systems are slow to make files where others were just removed
//! (ext4 without a journal does not use their inodes again for minutes, and looks at each of them).

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{OnFile, PlanTree, State};
use iowhy_linux::names::Dir;

use iowhy_probe::tree::{self, Files, Shape, Spot, Tree};

/// Trees of earlier runs go when they hold so many files or bytes.
const MOST_FILES: u64 = 40_000;
const MOST_BYTES: u64 = 256 << 20;
/// A cold tree may keep this part of its pages in the cache.
const COLD_PART: f64 = 0.05;
/// Behind a name: what is not there.
const MISSING: &str = ".none";

/// The trees of one plan.
#[derive(Debug)]
pub(super) struct SmallFiles {
    plan: PlanTree,
    read: Option<(Tree, Files)>,
    names: Arc<Names>,
    made: Mutex<Vec<Tree>>,
}

/// Names of the files and folders that are there at the start of a run.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The directories that are held open.
    pub(super) anchors: Arc<Vec<Dir>>,
    pub(super) files: Vec<Spot>,
    pub(super) folders: Vec<Spot>,
    /// Names that are not there, one for each file.
    pub(super) missing: Vec<Spot>,
}

/// All names of one run.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) read: Arc<Names>,
    /// What is to be made.
    pub(super) made: Names,
}

impl SmallFiles {
    /// Makes the tree that is read.
    ///
    /// # Errors
    /// Too little room, or what the system refuses; an interrupt. Nothing is left behind.
    pub(super) fn set(plan: &PlanTree) -> Result<SmallFiles, Problem> {
        let parent = Path::new(&plan.parent);
        if !parent.is_dir() {
            return Err(Problem::failed(format!("`{}` is gone: no tree can be made in it", plan.parent))
                .hint("watch the program anew: `iowhy --prove -- CMD`"));
        }
        let mut small =
            SmallFiles { plan: plan.clone(), read: None, names: Arc::default(), made: Mutex::default() };
        if plan.is_read() || !plan.is_made() {
            let tree = Tree::make(parent, None, shape(plan), &mut |_, _| {})?;
            let files = match plan.does(OnFile::List) {
                // In the order in which the folders list them.
                true => tree.listed()?,
                false => tree.files(),
            };
            small.names = Arc::new(Names::of(&files, plan.does(OnFile::Miss))?);
            small.read = Some((tree, files));
        }
        Ok(small)
    }

    /// Brings files that are read into their state, and makes room for those that are made.
    pub(super) fn prepare(&self) -> Result<Ready, Problem> {
        if let Some((_, files)) = &self.read {
            self.set_state(files)?;
        }
        let mut made = Names::default();
        if self.plan.is_made() {
            let mut trees = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let shape = shape(&self.plan);
            let runs = trees.len() as u64 + 1;
            if runs * shape.files > MOST_FILES || runs * shape.room_bytes() > MOST_BYTES {
                trees.clear();
            }
            let tree = Tree::lay_out(Path::new(&self.plan.parent), None, shape)?;
            made = Names::of(&tree.files(), self.plan.does(OnFile::Miss))?;
            // What earlier runs have written is no debt of this one.
            tree.sync()?;
            trees.push(tree);
        }
        Ok(Ready { read: Arc::clone(&self.names), made })
    }

    fn set_state(&self, files: &Files) -> Result<(), Problem> {
        let all = vec![(0..files.len() as u32).collect::<Vec<u32>>()];
        let state = match self.plan.state {
            State::Cold => tree::State::Cold,
            State::Warm => tree::State::Warm,
        };
        let resident = tree::set_state(files, &all, state, &mut |_| {})?;
        match resident {
            Some(part) if self.plan.state == State::Cold && part > COLD_PART => {
                Err(Problem::failed(format!(
                    "the tree in `{}` stays in the page cache ({:.0} % of its pages): the files were cold when the \
                     program ran",
                    self.plan.parent,
                    100.0 * part
                )))
            }
            _ => Ok(()),
        }
    }
}

fn shape(plan: &PlanTree) -> Shape {
    Shape { files: plan.files, directories: plan.folders, sizes: vec![plan.bytes] }
}

impl Names {
    fn of(files: &Files, missing: bool) -> Result<Names, Problem> {
        let all: Vec<Spot> =
            (0..files.len() as u32).map(|file| files.spot(file, false)).collect::<Result<_, _>>()?;
        let none =
            |spot: &Spot| spot.with(MISSING).ok_or_else(|| Problem::failed("a name has a zero byte in it"));
        Ok(Names {
            anchors: files.anchors(),
            missing: if missing { all.iter().map(none).collect::<Result<_, _>>()? } else { Vec::new() },
            files: all,
            folders: (0..files.directories() as u32).map(|n| files.directory(n)).collect::<Result<_, _>>()?,
        })
    }
}
