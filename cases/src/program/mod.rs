//! The Rust programs with a known cause. Each does a fixed amount of work from a fixed seed and prints one number
//! that depends on the work, the same for the slow and the repaired variant.

mod compute;
mod direct;
mod files;
mod mapped;
mod memory;
mod paced;
mod plain;
mod seek;
mod threads;
mod truth;

use std::path::Path;
use std::str::FromStr;

use iowhy_core::problem::Problem;

/// Result of a program.
type Outcome<T> = Result<T, Problem>;

/// Seed of every random order.
const SEED: u64 = 1999;

/// Runs the program that the words name and prints its number.
///
/// # Errors
/// No such program, a bad number, or its I/O failed.
pub fn run(words: &[&str]) -> Outcome<()> {
    if let ["truth", kind, dir, number] = words {
        return truth::run(kind, dir, n(number)?);
    }
    if let ["paced", kind, dir, number] = words {
        return paced::run(kind, dir, n(number)?);
    }
    if let ["within", group, rest @ ..] = words {
        // Of the group, this process and what it starts.
        std::fs::write(Path::new(group).join("cgroup.procs"), "0")
            .map_err(failed("enter the control group"))?;
        return run(rest);
    }
    let number = match words {
        ["read", file, bytes, passes, advice] => {
            plain::read(file, n(bytes)?, n(passes)?, *advice == "random")
        }
        ["lookup", file, count, how] => plain::lookup(file, n(count)?, *how == "scan"),
        ["image", file, how] => plain::image(file, *how == "whole"),
        ["index", dir, entries, count, how] => plain::index(dir, n(entries)?, n(count)?, *how == "whole"),
        ["write", file, bytes, count, every] => plain::write(file, n(bytes)?, n(count)?, n(every)?),
        ["update", file, bytes, slot, count] => plain::update(file, n(bytes)?, n(slot)?, n(count)?),
        ["transactions", data, log, count, batch] => plain::transactions(data, log, n(count)?, n(batch)?),
        ["direct-random", file, bytes, count, depth] => direct::random(file, n(bytes)?, n(count)?, n(depth)?),
        ["direct-stream", file, bytes, used] => direct::stream(file, n(bytes)?, n(used)?),
        ["map-touch", file, count, advice] => mapped::touch(file, n(count)?, *advice == "random"),
        ["map-passes", file, passes, how] => mapped::passes(file, n(passes)?, *how == "once"),
        ["map-sum", file, passes] => mapped::sum(file, n(passes)?),
        ["fresh", file, bytes, passes, how] => memory::fresh(file, n(bytes)?, n(passes)?, *how == "reuse"),
        ["map-threads", file, threads, count, how] => {
            threads::map(file, n(threads)?, n(count)?, *how == "keep")
        }
        ["append-threads", dir, threads, count, how] => {
            threads::append(dir, n(threads)?, n(count)?, *how == "own")
        }
        ["tree", dir, passes] => files::tree(dir, n(passes)?),
        ["archive", file, files, bytes, passes] => files::archive(file, n(files)?, n(bytes)?, n(passes)?),
        ["skip", file, step, how] => seek::skip(file, n(step)?, *how == "relative"),
        ["compute", rounds] => Ok(compute::compute(n(rounds)?)),
        ["spin"] => Ok(compute::spin()),
        ["disk-load", file] => direct::load(file),
        _ => Err(Problem::refused(format!("no program understands `{}`", words.join(" ")))),
    }?;
    println!("{number}");
    Ok(())
}

/// A number of the command line.
fn n<T: FromStr>(word: &str) -> Outcome<T> {
    word.parse().map_err(|_| Problem::refused(format!("`{word}` is no number")))
}

/// Words for an I/O error.
fn failed(doing: &str) -> impl Fn(std::io::Error) -> Problem + '_ {
    move |e| Problem::failed(format!("cannot {doing}: {e}"))
}

/// The number that a program prints: a sum of one byte of every page it read.
fn sample(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(4096).map(|&b| u64::from(b)).sum()
}
