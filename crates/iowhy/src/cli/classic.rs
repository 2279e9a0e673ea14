//! Options of `classic`.

use std::path::PathBuf;

use clap::Args;

/// Options of `classic`.
#[derive(Debug, Args)]
pub struct ClassicArgs {
    /// An experiment: minix-1989, netbsd-1999, linux-sg-1999, freebsd-2006, linux-mmap-1999; `all`; or `list`
    /// [default: list]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Where to run it: a directory (scratch files are made in it and removed), a file or a device (read only); for
    /// linux-mmap-1999 also two, as `A:B` [default: the current directory]
    #[arg(value_name = "PATH")]
    pub target: Option<String>,

    /// Less time for each experiment: wider intervals
    #[arg(long, conflicts_with = "time")]
    pub quick: bool,

    /// Time for each experiment, scratch files not counted [default: 20s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Size of the scratch files, or of the part of the file that is read [default: what the experiment needs]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// linux-sg-1999: bytes a second that the question about direct I/O asks for [default: 100m]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub rate: Option<String>,

    /// minix-1989: also with the read-ahead of the disk's queue off and on, which needs root and holds for every program
    /// for these seconds; it is put back
    #[arg(long)]
    pub queue_read_ahead: bool,

    /// minix-1989: the null block device to read [default: the first of /dev/nullb*, if there is one]
    #[arg(long, value_name = "DEV")]
    pub null_block: Option<PathBuf>,

    /// netbsd-1999: files of the news tree [default: 12000]
    #[arg(long, value_name = "N")]
    pub files: Option<u64>,

    /// netbsd-1999: what the real stripes are made of: devices and files, which are only read, or directories, where scratch
    /// files are made and removed [default: three scratch files in PATH]
    #[arg(long, value_name = "A,B,C")]
    pub members: Option<String>,

    /// netbsd-1999: also small files on file systems with blocks of two sizes, made in nameless files in PATH and mounted where
    /// no other program sees them, which needs root; all is gone at the end
    #[arg(long)]
    pub block_size_test: bool,

    /// netbsd-1999: make the news tree in DIR and leave it there; a later run takes it up
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// Seed of every order, pattern and interval
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
