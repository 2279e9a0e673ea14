//! A small durable message broker, driven by a recorded list of publishes.
//!
//! A publish is acknowledged only once it is on stable storage (acks=all); the
//! log is opened O_DSYNC, so whatever was written is durable when write returns.
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const O_DSYNC: i32 = 0o10000;
const MAGIC: u32 = 0x4252_4c31;

fn crc32(mut crc: u32, data: &[u8]) -> u32 {
    crc = !crc;
    for &b in data {
        crc ^= b as u32;
        for _ in 0..8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

struct Message<'a> {
    topic: &'a str,
    key: &'a str,
    body: &'a str,
}

struct Log {
    file: File,
    record: Vec<u8>,
    next_offset: u64,
}

impl Log {
    fn open(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .custom_flags(O_DSYNC)
            .open(path)?;
        Ok(Log { file, record: Vec::new(), next_offset: 0 })
    }

    /// Appends one message; when this returns it may be acknowledged.
    fn append(&mut self, m: &Message) -> io::Result<u64> {
        let offset = self.next_offset;
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(&MAGIC.to_le_bytes());
        record.extend_from_slice(&offset.to_le_bytes());
        for part in [m.topic, m.key, m.body] {
            record.extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        record.extend_from_slice(m.topic.as_bytes());
        record.extend_from_slice(m.key.as_bytes());
        record.extend_from_slice(m.body.as_bytes());
        let crc = crc32(0, record);
        record.extend_from_slice(&crc.to_le_bytes());
        self.file.write_all(record)?;
        self.next_offset += 1;
        Ok(offset)
    }
}

#[derive(Default)]
struct Topic {
    messages: u64,
    bytes: u64,
    last_offset: u64,
}

/// What a restart does: walk the log, check every record, rebuild the topics.
fn recover(path: &Path) -> io::Result<(BTreeMap<String, Topic>, u32)> {
    let mut log = Vec::new();
    File::open(path)?.read_to_end(&mut log)?;
    let mut topics: BTreeMap<String, Topic> = BTreeMap::new();
    let mut all = 0u32;
    let mut at = 0;
    let u32_at = |p: usize| u32::from_le_bytes(log[p..p + 4].try_into().unwrap());
    while at < log.len() {
        assert_eq!(u32_at(at), MAGIC);
        let offset = u64::from_le_bytes(log[at + 4..at + 12].try_into().unwrap());
        let (t, k, b) = (u32_at(at + 12) as usize, u32_at(at + 16) as usize, u32_at(at + 20) as usize);
        let end = at + 24 + t + k + b;
        let crc = crc32(0, &log[at..end]);
        assert_eq!(crc, u32_at(end), "bad record at {at}");
        all = crc32(all, &crc.to_le_bytes());
        let name = String::from_utf8_lossy(&log[at + 24..at + 24 + t]).into_owned();
        let topic = topics.entry(name).or_default();
        topic.messages += 1;
        topic.bytes += b as u64;
        topic.last_offset = offset;
        at = end + 4;
    }
    Ok((topics, all))
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let dir = Path::new(&args[2]);
    fs::create_dir_all(dir)?;
    let path = dir.join("00000000.log");
    let mut log = Log::open(&path)?;
    let mut acks = 0u64;
    let mut refused = 0;
    for line in BufReader::new(File::open(&args[1])?).lines() {
        let line = line?;
        let mut fields = line.splitn(4, '\t');
        let (_producer, topic, key, body) = match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (Some(p), Some(t), Some(k), Some(b)) => (p, t, k, b),
            _ => {
                refused += 1;
                continue;
            }
        };
        let offset = log.append(&Message { topic, key, body })?;
        acks = acks.wrapping_mul(31).wrapping_add(offset + 1);
    }
    drop(log);
    let (topics, crc) = recover(&path)?;
    for (name, t) in &topics {
        println!("{name}: {} messages, {} bytes, last offset {}", t.messages, t.bytes, t.last_offset);
    }
    println!("acks {acks:016x} refused {refused} log {crc:08x}");
    Ok(())
}
