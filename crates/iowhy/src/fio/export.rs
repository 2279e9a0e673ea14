//! A record's cells as a job file of fio, one job a cell, one after the other, so that fio can check our figures.

use std::fmt::Write as _;

use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::text::{acts, visible};
use iowhy_core::units;

use crate::record::{CellRecord, Record};

/// Time of a job where the record's own is shorter.
const MIN_SECONDS: u64 = 1;

/// The job file. Cells that fio has no counterpart for are named in comments.
pub fn job_of(record: &Record) -> String {
    let mut text = format!(
        "; {}\n; made by iowhy {}: one job a cell, one after the other\n\n[global]\nthread=1\ngroup_reporting=1\nrandrepeat=1\n\
         randseed={}\n",
        one_line(&record.command),
        one_line(&record.iowhy),
        record.seed
    );
    for cell in &record.cells {
        let target =
            record.targets.iter().find(|target| target.name == cell.target).or(record.targets.first());
        match job(cell, target) {
            Ok(lines) => {
                let _ = write!(text, "\n[{}]\nstonewall\n{lines}", one_line(&cell.key));
            }
            Err(why) => {
                let _ =
                    write!(text, "\n; {}: fio has no counterpart: {}\n", one_line(&cell.key), visible(&why));
            }
        }
    }
    text
}

fn one_line(text: &str) -> String {
    visible(text).replace(']', " ")
}

fn job(cell: &CellRecord, target: Option<&TargetFacts>) -> Result<String, String> {
    let mut lines = String::new();
    let mut put = |key: &str, value: &str| {
        // A line end in a value would be another option, and fio runs commands.
        let _ = writeln!(lines, "{key}={}", visible(value));
    };
    place(cell, target, &mut put)?;
    direction(cell, &mut put)?;
    put("bs", &cell.block_bytes.to_string());
    engine(cell, &mut put)?;
    if cell.depth > 1 {
        put("iodepth", &cell.depth.to_string());
    }
    let each = cell.region_bytes / cell.threads.max(1) as u64 / cell.block_bytes * cell.block_bytes;
    put("size", &each.to_string());
    if cell.region_offset_bytes > 0 {
        put("offset", &cell.region_offset_bytes.to_string());
    }
    if cell.threads > 1 {
        put("numjobs", &cell.threads.to_string());
        put("offset_increment", &each.to_string());
    }
    if let Some(rate) = cell.planned_per_second {
        put("rate_iops", &format!("{:.0}", (rate / cell.threads.max(1) as f64).max(1.0)));
    }
    match cell.state.as_str() {
        "warm" => put("pre_read", "1"),
        "cold" => put("invalidate", "1"),
        _ => {}
    }
    let wall_ns = units::total(cell.samples.iter().map(|sample| sample.wall_ns));
    put("time_based", "1");
    put("runtime", &wall_ns.div_ceil(1_000_000_000).max(MIN_SECONDS).to_string());
    if cell.touch != "none" {
        let _ = writeln!(lines, "; iowhy also looked at the bytes (touch {}); fio does not", cell.touch);
    }
    Ok(lines)
}

fn place(
    cell: &CellRecord,
    target: Option<&TargetFacts>,
    put: &mut impl FnMut(&str, &str),
) -> Result<(), String> {
    let Some(target) = target else { return Err("its target is not in the record".to_owned()) };
    if target.name.contains(acts) {
        return Err(format!("a job file cannot carry control characters, as in the name `{}`", target.name));
    }
    match target.kind {
        TargetKind::Scratch => {
            put("directory", &target.name);
            put("filename", "iowhy-fio-scratch");
            put("unlink", "1");
            if target.name.contains(':') {
                Err("fio takes `:` in a path for a separator".to_owned())
            } else {
                Ok(())
            }
        }
        TargetKind::File | TargetKind::BlockDevice => {
            if cell.direction != "read" {
                return Err("it wrote to what is not ours; fio would do so without asking".to_owned());
            }
            put("filename", &target.name.replace(':', "\\:"));
            put("readonly", "1");
            Ok(())
        }
        TargetKind::Null if cell.method == "null" => Ok(()),
        _ => Err(format!("the target `{}`", target.name)),
    }
}

fn direction(cell: &CellRecord, put: &mut impl FnMut(&str, &str)) -> Result<(), String> {
    let kind = match cell.direction.as_str() {
        "read" => "read",
        "write" => "write",
        _ => "rw",
    };
    let (random, distribution, map) = match cell.pattern.as_str() {
        "sequential" => (false, None, true),
        "permuted" => (true, None, true),
        "random" => (true, None, false),
        zipf if zipf.starts_with("zipf:") => (true, Some(zipf), false),
        other => return Err(format!("the pattern {other}")),
    };
    put("rw", &format!("{}{kind}", if random { "rand" } else { "" }));
    if let Some(share) = cell.direction.strip_prefix("mixed:") {
        put("rwmixread", share);
    }
    if random && !map {
        put("norandmap", "1");
    }
    if let Some(distribution) = distribution {
        put("random_distribution", distribution);
    }
    Ok(())
}

fn engine(cell: &CellRecord, put: &mut impl FnMut(&str, &str)) -> Result<(), String> {
    let mut set = |pairs: &[(&str, &str)]| pairs.iter().for_each(|(key, value)| put(key, value));
    match cell.method.as_str() {
        "null" => set(&[("ioengine", "null")]),
        "read" | "write" => set(&[("ioengine", "sync"), ("fadvise_hint", "0")]),
        "pread" | "pwrite" => set(&[("ioengine", "psync"), ("fadvise_hint", "0")]),
        "pread-random" => set(&[("ioengine", "psync"), ("fadvise_hint", "random")]),
        "pread-sequential" => set(&[("ioengine", "psync"), ("fadvise_hint", "sequential")]),
        "readv" => set(&[("ioengine", "vsync"), ("fadvise_hint", "0")]),
        "preadv2" => set(&[("ioengine", "pvsync2"), ("fadvise_hint", "0")]),
        "mmap" => set(&[("ioengine", "mmap"), ("fadvise_hint", "0")]),
        "mmap-random" => set(&[("ioengine", "mmap"), ("fadvise_hint", "random")]),
        "mmap-sequential" => set(&[("ioengine", "mmap"), ("fadvise_hint", "sequential")]),
        "direct" => set(&[("ioengine", "psync"), ("direct", "1")]),
        "splice" => set(&[("ioengine", "splice"), ("fadvise_hint", "0")]),
        "pwrite-dsync" => set(&[("ioengine", "psync"), ("sync", "dsync"), ("fadvise_hint", "0")]),
        "pwrite-fsync" => set(&[("ioengine", "psync"), ("fsync", "1"), ("fadvise_hint", "0")]),
        "pwrite-fdatasync" => set(&[("ioengine", "psync"), ("fdatasync", "1"), ("fadvise_hint", "0")]),
        "uring" => set(&[("ioengine", "io_uring"), ("registerfiles", "1"), ("fixedbufs", "1")]),
        "uring-sqpoll" => set(&[("ioengine", "io_uring"), ("sqthread_poll", "1"), ("registerfiles", "1")]),
        "uring-iopoll" => set(&[("ioengine", "io_uring"), ("hipri", "1"), ("registerfiles", "1")]),
        other => return Err(format!("the method {other}")),
    }
    if cell.state == "direct" && cell.method != "direct" {
        set(&[("direct", "1")]);
    } else if cell.method.starts_with("uring") {
        set(&[("fadvise_hint", "0")]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_record_becomes_an_option() {
        let mut record: Record =
            serde_json::from_str(include_str!("../../tests/command/records/1/measured.json")).unwrap();
        let evil = "x\nexec_prerun=reboot\r\u{2028}exec_postrun=reboot";
        record.command = evil.to_owned();
        record.iowhy = evil.to_owned();
        for target in &mut record.targets {
            target.name = evil.to_owned();
        }
        for cell in &mut record.cells {
            cell.key = evil.to_owned();
            cell.target = evil.to_owned();
        }
        let text = job_of(&record);
        assert!(!text.replace('\n', "").contains(acts), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("exec_")), "{text}");
        assert!(text.contains("cannot carry control characters"), "{text}");
    }
}
