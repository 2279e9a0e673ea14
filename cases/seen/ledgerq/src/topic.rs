//! A topic is a file that is only appended to. Frames: length (4), checksum (4), payload.
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::watch::Watch;

pub fn checksum(data: &[u8]) -> u32 {
    data.iter().fold(0x811c_9dc5, |h, &b| (h ^ b as u32).wrapping_mul(0x0100_0193))
}

pub struct Publisher {
    file: File,
}

impl Publisher {
    pub fn create(folder: &Path, topic: &str) -> io::Result<Publisher> {
        Ok(Publisher { file: OpenOptions::new().create(true).append(true).open(path(folder, topic))? })
    }

    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(payload.len() + 8);
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&checksum(payload).to_le_bytes());
        frame.extend_from_slice(payload);
        self.file.write_all(&frame)
    }
}

pub struct Subscriber {
    file: File,
    pending: Vec<u8>,
    watch: Option<Watch>,
}

impl Subscriber {
    pub fn open(folder: &Path, topic: &str, notify: bool) -> io::Result<Subscriber> {
        let p = path(folder, topic);
        let file = OpenOptions::new().create(true).append(true).read(true).open(&p)?;
        let watch = if notify { Some(Watch::new(&p)?) } else { None };
        Ok(Subscriber { file, pending: Vec::new(), watch })
    }

    /// The next message; waits for it.
    pub fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(m) = self.take()? {
                return Ok(m);
            }
            let mut block = [0u8; 65536];
            let n = self.file.read(&mut block)?;
            if n > 0 {
                self.pending.extend_from_slice(&block[..n]);
                continue;
            }
            // at the end of the file: more will come
            match &mut self.watch {
                Some(w) => w.wait()?,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.pending.len() < 8 {
            return Ok(None);
        }
        let n = u32::from_le_bytes(self.pending[..4].try_into().unwrap()) as usize;
        if self.pending.len() < 8 + n {
            return Ok(None);
        }
        let want = u32::from_le_bytes(self.pending[4..8].try_into().unwrap());
        let m = self.pending[8..8 + n].to_vec();
        self.pending.drain(..8 + n);
        if checksum(&m) != want {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "damaged frame"));
        }
        Ok(Some(m))
    }
}

fn path(folder: &Path, topic: &str) -> PathBuf {
    folder.join(format!("{topic}.topic"))
}
