//! archive-report ARCHIVE OUT: unpacks a month's access log with bzip2 and writes a report of traffic per path.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};

#[derive(Default)]
struct Traffic {
    hits: u64,
    bytes: u64,
    errors: u64,
}

/// Path, status and size of a line of the combined log format.
fn parse(line: &str) -> Option<(&str, u16, u64)> {
    let (_, rest) = line.split_once("] \"")?;
    let (request, rest) = rest.split_once("\" ")?;
    let path = request.split(' ').nth(1)?;
    let mut words = rest.split(' ');
    let status = words.next()?.parse().ok()?;
    let size = words.next()?.parse().ok()?;
    Some((path, status, size))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    if args.len() != 3 {
        return Err("usage: archive-report ARCHIVE OUT".into());
    }
    let mut unpack = Command::new("bzip2")
        .args(["-dc", &args[1]])
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = unpack.stdout.take().ok_or("no pipe")?;
    let mut lines = BufReader::with_capacity(1 << 16, pipe);

    let mut paths: HashMap<String, Traffic> = HashMap::new();
    let mut line = String::new();
    let (mut seen, mut bad) = (0u64, 0u64);
    while lines.read_line(&mut line)? > 0 {
        seen += 1;
        match parse(&line) {
            Some((path, status, size)) => {
                if !paths.contains_key(path) {
                    paths.insert(path.to_string(), Traffic::default());
                }
                let t = paths.get_mut(path).ok_or("lost path")?;
                t.hits += 1;
                t.bytes += size;
                t.errors += u64::from(status >= 500);
            }
            None => bad += 1,
        }
        line.clear();
    }
    if !unpack.wait()?.success() {
        return Err("bzip2 failed".into());
    }

    let mut order: Vec<(&String, &Traffic)> = paths.iter().collect();
    order.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then(a.0.cmp(b.0)));
    let mut out = BufWriter::new(File::create(&args[2])?);
    for (path, t) in &order {
        writeln!(out, "{}\t{}\t{}\t{}", path, t.hits, t.bytes, t.errors)?;
    }
    out.flush()?;
    println!("{seen} lines, {bad} bad, {} paths, most {}", order.len(), order[0].0);
    Ok(())
}
