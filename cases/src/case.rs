//! A case as data, without I/O.

use iowhy_core::finding::FindingId;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// With the cause.
    Slow,
    /// Without it, the same useful work.
    Repaired,
}

impl Variant {
    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Variant::Slow => "slow",
            Variant::Repaired => "repaired",
        }
    }
}

/// A requirement on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A C compiler called `cc`.
    Compiler,
    /// A command of that name.
    Command(&'static str),
    /// Python 3.
    Python,
    /// Python 3 with the module `sqlite3`.
    Sqlite,
    /// The super-user, for control groups, loop devices and mounts.
    Root,
    /// The folder's file system takes O_DIRECT.
    Direct,
    /// Several CPUs.
    SeveralCpus,
}

/// Files made once, before the first run.
#[derive(Clone, Copy, Debug)]
pub enum Setup {
    /// A file of incompressible bytes, the same for every run of every machine.
    Data(&'static str, u64),
    /// A file of that length of which one MiB in every 16 is data and the rest holes.
    Sparse(&'static str, u64),
    /// A file of lines of text; its size is approximate.
    Text(&'static str, u64),
    /// A folder of files: name, number of files, bytes of each. A hundred files share a sub-folder.
    Tree(&'static str, u32, u32),
    /// The same number of files and bytes as [`Setup::Tree`], one after the other in one file.
    Archive(&'static str, u32, u32),
    /// The C program of that name is compiled to `{bin}/NAME`.
    Compile(&'static str),
    /// The command is run.
    Run(&'static [&'static str]),
}

/// Preparation before every run.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    /// The file, or each file of the folder, is written back, dropped from the page cache, and looked at: it must be gone.
    Cold(&'static str),
    /// The file, or each file of the folder, is read into the page cache.
    Warm(&'static str),
    /// The program's output is removed: a file or a folder.
    Remove(&'static str),
    /// An empty folder is made.
    Folder(&'static str),
}

/// A condition around the slow variant beside its files.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// Only the folder.
    None,
    /// A control group whose transfers to and from the folder's disk are limited to this many bytes per second.
    /// `{group}` is the file that takes process numbers.
    DiskLimit(u64),
    /// A control group whose memory, page cache included, is limited to this many bytes.
    MemoryLimit(u64),
    /// Two file systems on loop devices over files of this size: `{limited}` may hold 8 MiB of dirty pages,
    /// `{free}` is as it comes.
    DirtyLimit(u64),
    /// Other processes run beside the slow variant: their number and command.
    OtherProcess(u32, &'static [&'static str]),
}

/// One labelled program.
///
/// Placeholders of a command are replaced: `{program}` by this crate's binary and its word `program`, `{python}` by
/// the interpreter, `{scripts}` by the folder of Python programs, `{bin}` by the folder of compiled C programs, `{dir}`
/// by the working folder, and those of [`Condition`].
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The program's work, and why it is slow, in one line.
    pub what: &'static str,
    /// The cause that must be named first; `None` for an innocent program.
    pub cause: Option<FindingId>,
    /// Further causes that the program really has, in the order of their cost; they must be named too.
    pub also: &'static [FindingId],
    /// Names that are as true as the cause. For an innocent program: findings that are not false.
    pub accept: &'static [FindingId],
    /// The slow command.
    pub slow: &'static [&'static str],
    /// The repaired one; empty for an innocent program.
    pub repaired: &'static [&'static str],
    /// Made once.
    pub setup: &'static [Setup],
    /// Done before every run of either variant.
    pub before: &'static [Before],
    /// Requirements on the machine.
    pub needs: &'static [Need],
    /// Condition around it.
    pub condition: Condition,
    /// Options of `iowhy prove` that make its repair as large as that of the repaired variant.
    pub prove: &'static [&'static str],
    /// Whether its effect is so big and so quick to show that it serves as a test.
    pub quick: bool,
}

impl Case {
    /// A case with nothing in it, to be filled.
    pub const EMPTY: Case = Case {
        name: "",
        what: "",
        cause: None,
        also: &[],
        accept: &[],
        slow: &[],
        repaired: &[],
        setup: &[],
        before: &[],
        needs: &[],
        condition: Condition::None,
        prove: &[],
        quick: false,
    };

    /// Findings that are not false for an innocent program.
    pub const INNOCENT: &[FindingId] =
        &[FindingId::Healthy, FindingId::CpuBound, FindingId::WaitingElsewhere];

    /// Whether the first finding is right.
    pub fn is_right(&self, first: FindingId) -> bool {
        self.cause == Some(first) || self.accept.contains(&first)
    }

    /// The command as it stands in the catalogue.
    pub fn words(&self, variant: Variant) -> &'static [&'static str] {
        match variant {
            Variant::Slow => self.slow,
            Variant::Repaired => self.repaired,
        }
    }
}
