//! Options of `classic`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iowhy_classic::published;
use iowhy_core::problem::Problem;
use iowhy_core::units;

use super::value::{count, seed, time_from, unknown_word, value};

/// NAME of `classic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiments {
    /// A list of them; nothing is run.
    List,
    /// All, one after the other.
    All,
    /// The experiment of this name.
    One(&'static str),
}

/// Options of `classic`.
#[derive(Debug, Args)]
pub struct ClassicArgs {
    /// An experiment: minix-1989, netbsd-1999, linux-sg-1999, freebsd-2006, linux-mmap-1999; `all`; or `list`
    /// [default: list]
    #[arg(value_name = "NAME", default_value = "list", hide_default_value = true, value_parser = value(experiments))]
    pub name: Experiments,

    /// Where to run it: a directory (scratch files are made in it and removed), a file or a device (read only); for
    /// linux-mmap-1999 also two, as `A:B` [default: the current directory]
    #[arg(value_name = "PATH")]
    pub target: Option<String>,

    /// Less time for each experiment: wider intervals
    #[arg(long, conflicts_with = "time")]
    pub quick: bool,

    /// Time for each experiment, without creating scratch files [default: 20s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_secs(1))))]
    pub time: Option<Duration>,

    /// Size of the scratch files, or of the part of the file that is read [default: what the experiment needs]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// linux-sg-1999: the bytes per second that direct I/O is asked to reach [default: 100m]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub rate: Option<u64>,

    /// minix-1989: also measure with the read-ahead of the disk's queue off and on. Needs root, affects every program
    /// for some seconds, and is restored
    #[arg(long)]
    pub queue_read_ahead: bool,

    /// minix-1989: the null block device to read [default: the first of /dev/nullb*, if there is one]
    #[arg(long, value_name = "DEV")]
    pub null_block: Option<PathBuf>,

    /// netbsd-1999: number of files in the news tree [default: 12000]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=20_000_000)))]
    pub files: Option<u64>,

    /// netbsd-1999: members of the real stripes: devices and files, which are only read, or directories for scratch files
    /// [default: three scratch files in PATH]
    #[arg(long, value_name = "A,B,C")]
    pub members: Option<String>,

    /// netbsd-1999: also measure small files on file systems with two block sizes. They are created in unnamed files in
    /// PATH and mounted where no other program sees them; needs root, and leaves nothing behind
    #[arg(long)]
    pub block_size_test: bool,

    /// netbsd-1999: create the news tree in DIR and keep it; later runs reuse or finish it
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// Seed of every order, pattern and interval
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,
}

fn experiments(option: &str, text: &str) -> Result<Experiments, Problem> {
    match text {
        "list" => Ok(Experiments::List),
        "all" => Ok(Experiments::All),
        name => published::names().find(|known| *known == name).map(Experiments::One).ok_or_else(|| {
            let known: Vec<&str> = published::names().chain(["all", "list"]).collect();
            unknown_word(option, name, &known)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_list_all_or_an_experiment_that_ships() {
        let of = |text: &str| experiments("NAME", text);
        assert_eq!((of("list"), of("all")), (Ok(Experiments::List), Ok(Experiments::All)));
        assert_eq!(of("minix-1989"), Ok(Experiments::One("minix-1989")));
        let problem = of("minix-1998").unwrap_err();
        assert_eq!(problem.message, "NAME `minix-1998`: unknown value");
        assert!(problem.hint.unwrap().starts_with("did you mean `minix-1989`? one of "));
    }
}
