//! ledgerq: transfers go through the topics orders -> checked -> booked; the client sends the next batch when the last is booked.
mod topic;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use topic::{Publisher, Subscriber};

fn u32_at(b: &[u8], i: usize) -> u32 {
    u32::from_le_bytes(b[i..i + 4].try_into().unwrap())
}

/// Drops transfers to oneself and those above the limit. An empty message ends it.
fn checker(folder: &Path, notify: bool) -> io::Result<u64> {
    let mut orders = Subscriber::open(folder, "orders", notify)?;
    let mut out = Publisher::create(folder, "checked")?;
    let mut refused = 0;
    loop {
        let batch = orders.next()?;
        let mut good = Vec::with_capacity(batch.len());
        for t in batch.chunks_exact(12) {
            if u32_at(t, 0) == u32_at(t, 4) || u32_at(t, 8) > 85_000 {
                refused += 1;
            } else {
                good.extend_from_slice(t);
            }
        }
        if batch.is_empty() {
            out.send(&[])?;
            return Ok(refused);
        }
        out.send(&good)?;
    }
}

fn booker(folder: &Path, notify: bool) -> io::Result<Vec<i64>> {
    let mut checked = Subscriber::open(folder, "checked", notify)?;
    let mut out = Publisher::create(folder, "booked")?;
    let mut balance = vec![0i64; 5000];
    loop {
        let batch = checked.next()?;
        if batch.is_empty() {
            return Ok(balance);
        }
        for t in batch.chunks_exact(12) {
            balance[u32_at(t, 0) as usize] -= u32_at(t, 8) as i64;
            balance[u32_at(t, 4) as usize] += u32_at(t, 8) as i64;
        }
        out.send(&((batch.len() / 12) as u32).to_le_bytes())?;
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 3 {
        eprintln!("usage: ledgerq TRANSFERS FOLDER [notify]");
        std::process::exit(2);
    }
    let folder = PathBuf::from(&args[2]);
    let notify = args.get(3).is_some_and(|a| a == "notify");
    std::fs::create_dir_all(&folder)?;
    let (a, b) = (folder.clone(), folder.clone());
    let mut orders = Publisher::create(&folder, "orders")?;
    let mut booked = Subscriber::open(&folder, "booked", notify)?;
    let check = thread::Builder::new().name("checker".into()).spawn(move || checker(&a, notify))?;
    let book = thread::Builder::new().name("booker".into()).spawn(move || booker(&b, notify))?;

    let input = std::fs::read(&args[1])?;
    let (mut at, mut batches, mut sent, mut done) = (0, 0, 0, 0);
    while at < input.len() {
        let n = u32_at(&input, at) as usize;
        orders.send(&input[at + 4..at + 4 + n * 12])?;
        at += 4 + n * 12;
        batches += 1;
        sent += n;
        done += u32_at(&booked.next()?, 0);
    }
    orders.send(&[])?;
    let refused = check.join().unwrap()?;
    let balance = book.join().unwrap()?;
    let (low, high) = (balance.iter().min().unwrap(), balance.iter().max().unwrap());
    println!("{batches} batches, {sent} transfers, {done} booked, {refused} refused, balances {low} .. {high}");
    Ok(())
}
