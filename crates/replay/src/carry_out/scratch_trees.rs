//! Scratch trees for many small files: one to read, and a new one for each run that creates files.
//!
//! They have the program's number of files and directories, and its file size. Invariants: names are prepared before a run
//! is timed; each tree is removed on drop or at the next start ([`Tree`]). Old trees stay for a while: ext4 without a
//! journal does not reuse freed inodes for minutes and checks each of them when it creates a file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{OnFile, PlanTree, State};
use iowhy_linux::names::Dir;

use iowhy_probe::tree::{self, Files, Shape, Spot, Tree};

/// Trees of earlier runs are removed above these bounds.
const MAX_FILES: u64 = 40_000;
const MAX_BYTES: u64 = 256 << 20;
/// A cold tree may keep this share of its pages in the cache.
const MAX_COLD_SHARE: f64 = 0.05;
/// Suffix of a name that does not exist.
const MISSING: &str = ".none";

#[derive(Debug)]
pub(super) struct ScratchTrees {
    plan: PlanTree,
    read: Option<(Tree, Files)>,
    names: Arc<Names>,
    created: Mutex<Vec<Tree>>,
}

/// Names of a tree.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Directories that are kept open.
    pub(super) anchors: Arc<Vec<Dir>>,
    pub(super) files: Vec<Spot>,
    pub(super) folders: Vec<Spot>,
    /// Names that do not exist, one for each file.
    pub(super) missing: Vec<Spot>,
}

/// All names of one run.
#[derive(Debug)]
pub(super) struct RunNames {
    pub(super) read: Arc<Names>,
    /// Of files that the run creates.
    pub(super) made: Names,
}

impl ScratchTrees {
    /// Makes the tree that is read.
    ///
    /// # Errors
    /// Too little space, a system error, or an interrupt. Nothing is left behind.
    pub(super) fn new(plan: &PlanTree) -> Result<ScratchTrees, Problem> {
        let parent = Path::new(&plan.parent);
        if !parent.is_dir() {
            return Err(Problem::failed(format!(
                "`{}` is gone, so no scratch tree can be made in it",
                plan.parent
            ))
            .hint("profile the program again: `iowhy --prove -- CMD`"));
        }
        let mut trees =
            ScratchTrees { plan: plan.clone(), read: None, names: Arc::default(), created: Mutex::default() };
        if plan.is_read() || !plan.is_made() {
            let tree = Tree::make(parent, None, shape(plan), &mut |_, _| {})?;
            let files = match plan.does(OnFile::List) {
                // In directory order.
                true => tree.listed()?,
                false => tree.files(),
            };
            trees.names = Arc::new(Names::new(&files, plan.does(OnFile::Miss))?);
            trees.read = Some((tree, files));
        }
        Ok(trees)
    }

    /// Sets the page-cache state of files that are read, and makes a tree for those that are created.
    pub(super) fn prepare_run(&self) -> Result<RunNames, Problem> {
        if let Some((_, files)) = &self.read {
            self.set_state(files)?;
        }
        let mut made = Names::default();
        if self.plan.is_made() {
            let mut trees = self.created.lock().unwrap_or_else(PoisonError::into_inner);
            let shape = shape(&self.plan);
            let runs = trees.len() as u64 + 1;
            if runs * shape.files > MAX_FILES || runs * shape.room_bytes() > MAX_BYTES {
                trees.clear();
            }
            let tree = Tree::lay_out(Path::new(&self.plan.parent), None, shape)?;
            made = Names::new(&tree.files(), self.plan.does(OnFile::Miss))?;
            // No write-back of earlier runs during this one.
            tree.sync()?;
            trees.push(tree);
        }
        Ok(RunNames { read: Arc::clone(&self.names), made })
    }

    fn set_state(&self, files: &Files) -> Result<(), Problem> {
        let all = vec![(0..files.len() as u32).collect::<Vec<u32>>()];
        let state = match self.plan.state {
            State::Cold => tree::State::Cold,
            State::Warm => tree::State::Warm,
        };
        let resident = tree::set_state(files, &all, state, &mut |_| {})?;
        match resident {
            Some(part) if self.plan.state == State::Cold && part > MAX_COLD_SHARE => {
                Err(Problem::failed(format!(
                    "the scratch tree in `{}` stays in the page cache ({:.0} % of its pages), and the files were cold \
                     in the recorded run",
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
    fn new(files: &Files, missing: bool) -> Result<Names, Problem> {
        let all: Vec<Spot> =
            (0..files.len() as u32).map(|file| files.spot(file, false)).collect::<Result<_, _>>()?;
        let none = |spot: &Spot| spot.with(MISSING).ok_or_else(|| Problem::failed("a name has a zero byte"));
        Ok(Names {
            anchors: files.anchors(),
            missing: if missing { all.iter().map(none).collect::<Result<_, _>>()? } else { Vec::new() },
            files: all,
            folders: (0..files.directories() as u32).map(|n| files.directory(n)).collect::<Result<_, _>>()?,
        })
    }
}
