//! Rolls an access log up into requests and bytes by minute.
// accessroll: rolls the access log of a file service up into one CSV row per minute and area.
// usage: accessroll ACCESS_LOG OUT.csv
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

#[derive(Default, Clone)]
struct Cell {
    hits: u64,
    bytes: u64,
    errors: u64,
    slowest: f64,
    time: f64,
}

impl Cell {
    fn add(&mut self, status: u32, bytes: u64, time: f64) {
        self.hits += 1;
        self.bytes += bytes;
        self.errors += (status >= 400) as u64;
        self.slowest = self.slowest.max(time);
        self.time += time;
    }
}

struct Hit<'a> {
    minute: &'a str,
    area: &'a str,
    status: u32,
    bytes: u64,
    time: f64,
}

fn parse(line: &str) -> Option<Hit<'_>> {
    let open = line.find('[')?;
    let minute = line.get(open + 1..open + 18)?;
    let rest = &line[open + 28..];
    let mut quoted = rest.split('"');
    let request = quoted.nth(1)?;
    let path = request.split(' ').nth(1)?;
    let area = path.get(1..)?.split('/').next()?;
    let mut numbers = quoted.next()?.split_ascii_whitespace();
    Some(Hit {
        minute,
        area,
        status: numbers.next()?.parse().ok()?,
        bytes: numbers.next()?.parse().ok()?,
        time: numbers.next()?.parse().ok()?,
    })
}

fn write_table(path: &Path, table: &BTreeMap<String, BTreeMap<String, Cell>>) -> io::Result<u64> {
    let fresh = path.with_extension("csv.new");
    let mut out = BufWriter::with_capacity(256 << 10, File::create(&fresh)?);
    let mut rows = 0;
    writeln!(out, "minute,area,hits,bytes,errors,mean_s,slowest_s")?;
    for (minute, areas) in table {
        for (area, c) in areas {
            writeln!(out, "{minute},{area},{},{},{},{:.5},{:.4}", c.hits, c.bytes, c.errors, c.time / c.hits as f64, c.slowest)?;
            rows += 1;
        }
    }
    let file = out.into_inner().map_err(|e| e.into_error())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    Ok(rows)
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 3 {
        eprintln!("usage: accessroll ACCESS_LOG OUT.csv");
        std::process::exit(2);
    }
    let mut log = BufReader::with_capacity(1 << 20, File::open(&args[1])?);
    let mut table: BTreeMap<String, BTreeMap<String, Cell>> = BTreeMap::new();
    let mut totals: BTreeMap<String, Cell> = BTreeMap::new();
    let mut line = String::new();
    let (mut lines, mut broken) = (0u64, 0u64);
    loop {
        line.clear();
        if log.read_line(&mut line)? == 0 {
            break;
        }
        lines += 1;
        let Some(hit) = parse(&line) else {
            broken += 1;
            continue;
        };
        if !table.contains_key(hit.minute) {
            table.insert(hit.minute.to_string(), BTreeMap::new());
        }
        for map in [table.get_mut(hit.minute).unwrap(), &mut totals] {
            match map.get_mut(hit.area) {
                Some(cell) => cell.add(hit.status, hit.bytes, hit.time),
                None => map.entry(hit.area.to_string()).or_default().add(hit.status, hit.bytes, hit.time),
            }
        }
    }
    let rows = write_table(Path::new(&args[2]), &table)?;
    println!("{lines} lines, {broken} broken, {rows} rows");
    for (area, c) in &totals {
        println!("{area:8} {} hits {} bytes {} errors slowest {:.4}", c.hits, c.bytes, c.errors, c.slowest);
    }
    Ok(())
}
