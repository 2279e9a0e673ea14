//! Renders the level sheet of a score: for each event it fetches the clip from the
//! sample bank, applies gain and a cascade of low-passes, and measures peak, RMS and zero crossings.
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const WORKERS: usize = 8;

#[derive(Clone, Copy)]
struct Clip {
    offset: u64,
    bytes: u32,
}

struct Bank {
    file: File,
    clips: Vec<Clip>,
}

impl Bank {
    fn open(dir: &str) -> io::Result<Bank> {
        let clips = read_index(&format!("{dir}/clips.idx"))?;
        let file = File::open(format!("{dir}/clips.bnk"))?;
        Ok(Bank { file, clips })
    }

    fn load(&self, id: usize, pcm: &mut Vec<u8>) -> io::Result<()> {
        let clip = self.clips[id];
        pcm.resize(clip.bytes as usize, 0);
        self.file.read_exact_at(pcm, clip.offset)
    }
}

fn read_index(path: &str) -> io::Result<Vec<Clip>> {
    Ok(fs::read(path)?
        .chunks_exact(12)
        .map(|e| Clip {
            offset: u64::from_le_bytes(e[..8].try_into().unwrap()),
            bytes: u32::from_le_bytes(e[8..].try_into().unwrap()),
        })
        .collect())
}

#[derive(Clone, Copy, Default)]
struct Level {
    peak: f32,
    rms: f32,
    crossings: u32,
}

const BANDS: [f32; 2] = [0.2, 0.55];

fn measure(pcm: &[u8], gain: f32) -> Level {
    let (mut y, mut band_sum) = ([0f32; BANDS.len()], [0f32; BANDS.len()]);
    let (mut peak, mut crossings) = (0f32, 0u32);
    for s in pcm.chunks_exact(2) {
        let mut x = i16::from_le_bytes([s[0], s[1]]) as f32 / 32768.0 * gain;
        peak = peak.max(x.abs());
        for b in (0..BANDS.len()).rev() {
            let before = y[b];
            y[b] += BANDS[b] * (x - y[b]);
            if (before < 0.0) != (y[b] < 0.0) {
                crossings += 1;
            }
            band_sum[b] += y[b] * y[b];
            x = y[b];
        }
    }
    let n = (pcm.len() / 2).max(1) as f32;
    let rms = band_sum.iter().map(|s| (s / n).sqrt()).sum::<f32>() / BANDS.len() as f32;
    Level { peak, rms, crossings }
}

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).expect("usage: levels BANKDIR");
    let bank = Arc::new(Bank::open(&dir)?);
    let score: Arc<Vec<(usize, f32)>> = Arc::new(
        fs::read_to_string(format!("{dir}/score.txt"))?
            .lines()
            .map(|l| {
                let (id, gain) = l.split_once(' ').expect("ID GAIN");
                (id.parse().unwrap(), gain.parse::<f32>().unwrap() / 100.0)
            })
            .collect(),
    );
    let levels = Arc::new(Mutex::new(vec![Level::default(); score.len()]));
    let next = Arc::new(AtomicUsize::new(0));

    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (bank, score, levels, next) = (bank.clone(), score.clone(), levels.clone(), next.clone());
            thread::spawn(move || -> io::Result<()> {
                let mut pcm = Vec::new();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(id, gain)) = score.get(i) else { return Ok(()) };
                    bank.load(id, &mut pcm)?;
                    let level = measure(&pcm, gain);
                    levels.lock().unwrap()[i] = level;
                }
            })
        })
        .collect();
    for w in workers {
        w.join().unwrap()?;
    }

    let levels = levels.lock().unwrap();
    let peak = levels.iter().fold(0f32, |a, l| a.max(l.peak));
    let rms: f64 = levels.iter().map(|l| l.rms as f64).sum::<f64>() / levels.len() as f64;
    let crossings: u64 = levels.iter().map(|l| l.crossings as u64).sum();
    println!("{} events, peak {:.6}, mean rms {:.6}, {} crossings", levels.len(), peak, rms, crossings);
    Ok(())
}
