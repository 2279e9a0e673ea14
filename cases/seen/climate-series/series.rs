//! Station time series from a gridded model run: f32, [time][cell], 4096 cells.
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

const CELLS: usize = 4096;
const STATIONS: [usize; 5] = [17, 1100, 2050, 3071, 4000];

fn by_station(f: &File, steps: usize) -> Vec<Vec<f32>> {
    STATIONS
        .iter()
        .map(|&cell| {
            let mut s = Vec::with_capacity(steps);
            let mut b = [0u8; 4];
            for t in 0..steps {
                f.read_exact_at(&mut b, ((t * CELLS + cell) * 4) as u64).unwrap();
                s.push(f32::from_le_bytes(b));
            }
            s
        })
        .collect()
}

fn by_time(mut f: &File, steps: usize) -> Vec<Vec<f32>> {
    let mut out = vec![Vec::with_capacity(steps); STATIONS.len()];
    let mut buf = vec![0u8; 256 * CELLS * 4];
    let mut t = 0;
    while t < steps {
        let n = (steps - t).min(256);
        let part = &mut buf[..n * CELLS * 4];
        f.read_exact(part).unwrap();
        for row in part.chunks_exact(CELLS * 4) {
            for (k, &cell) in STATIONS.iter().enumerate() {
                out[k].push(f32::from_le_bytes(row[cell * 4..cell * 4 + 4].try_into().unwrap()));
            }
        }
        t += n;
    }
    out
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let f = File::open(&a[1]).unwrap();
    let steps = f.metadata().unwrap().len() as usize / (CELLS * 4);
    let series = if a.len() > 2 { by_time(&f, steps) } else { by_station(&f, steps) };
    for s in &series {
        let mean = s.iter().map(|&x| x as f64).sum::<f64>() / s.len() as f64;
        let mut best = (0, f64::MIN);
        for lag in 1..1500 {
            let mut c = 0.0;
            for i in lag..s.len() {
                c += (s[i] as f64 - mean) * (s[i - lag] as f64 - mean);
            }
            if c > best.1 {
                best = (lag, c);
            }
        }
        println!("{:.4} {} {:.3}", mean, best.0, best.1);
    }
}
