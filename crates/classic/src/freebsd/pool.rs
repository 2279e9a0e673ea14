//! FreeBSD, 2006: cached reads through a pool of mapped buffers. Where the time of the published profiles goes, what
//! reuse the pool gives, and what the costs of the 4K runs say of the 16K runs.

use crate::published::Experiment;

/// Functions of the profiler itself, and of user mode: not part of a read.
const PROFILER: [&str; 3] = ["mcount", "mexitcount", "cputime"];

/// Time of one published run, split, in ns over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// `copyout`.
    pub copy: f64,
    /// Look-ups: `buf_splay`, and nothing else that the profile shows.
    pub lookup: f64,
    /// Making and unmaking of mappings: page look-ups, wiring, buffer allocation.
    pub mapping: f64,
    /// The profiler's own functions.
    pub profiler: f64,
    /// The rest: rows below those that the post shows.
    pub rest: f64,
}

/// Splits a run by its table, `4k-random` for instance. `None` when it is not there.
pub fn split(experiment: &Experiment, run: &str) -> Option<Split> {
    let table = experiment.table(&format!("profile-{run}"))?;
    let of = |names: &[&str]| -> f64 {
        names.iter().filter_map(|name| table.figure(table.row_of("function", name)?, "self")).sum()
    };
    let copy = of(&["copyout"]);
    let lookup = of(&["buf_splay"]);
    let mapping =
        of(&["vm_page_splay", "vm_page_unwire", "vm_page_wire", "getnewbuf", "allocbuf", "pmap_qremove"]);
    let profiler = of(&PROFILER);
    let rest = (time(experiment, run)? - copy - lookup - mapping - profiler).max(0.0);
    Some(Split { copy, lookup, mapping, profiler, rest })
}

/// Time of a run with the profiler, ns.
fn time(experiment: &Experiment, run: &str) -> Option<f64> {
    let (block, order) = run.split_once('-')?;
    let block = block.strip_suffix('k')?.parse::<f64>().ok()? * 1024.0;
    let runs = experiment.table("runs")?;
    (0..runs.rows.len())
        .find(|&row| runs.figure(row, "block") == Some(block) && runs.text(row, "order") == Some(order))
        .and_then(|row| runs.figure(row, "time"))
}

impl Split {
    /// Without the profiler's own functions.
    pub fn net(&self) -> f64 {
        self.copy + self.lookup + self.mapping + self.rest
    }
}

/// What one run of 4K reads says of others in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Copy of a byte, ns.
    pub byte: f64,
    /// Look-up in the pool, for each read, ns.
    pub lookup: f64,
    /// Making a buffer's mapping, for each read that finds none, ns.
    pub mapping: f64,
    /// Everything else, for each read, ns.
    pub rest: f64,
    total_bytes: f64,
}

impl Costs {
    /// From the profile of a run. `None` when it is not there.
    pub fn from_experiment(experiment: &Experiment, run: &str) -> Option<Costs> {
        let split = split(experiment, run)?;
        let table = experiment.table(&format!("profile-{run}"))?;
        let calls = |name: &str| table.figure(table.row_of("function", name)?, "calls");
        let (reads, made) = (calls("copyout")?, calls("getnewbuf")?);
        let total_bytes = experiment.fact("file-size")?;
        Some(Costs {
            byte: split.copy / total_bytes,
            lookup: split.lookup / reads,
            mapping: split.mapping / made,
            rest: split.rest / reads,
            total_bytes,
        })
    }

    /// Time of a whole run without the profiler, ns, for reads of this size with this reuse of the pool.
    pub fn predict(&self, read_bytes: f64, reuse: f64) -> f64 {
        let reads = self.total_bytes / read_bytes.max(1.0);
        self.total_bytes * self.byte + reads * (self.lookup + self.rest + (1.0 - reuse) * self.mapping)
    }
}

/// Share of reads that find their buffer in the pool, from the calls of the published profile: `getnewbuf` is called
/// for each that does not.
pub fn published_reuse(experiment: &Experiment, run: &str) -> Option<f64> {
    let table = experiment.table(&format!("profile-{run}"))?;
    let calls = |name: &str| table.figure(table.row_of("function", name)?, "calls");
    Some(1.0 - calls("getnewbuf")? / calls("copyout")?)
}

/// Reuse of sequential reads: a buffer serves all pieces of it but the first.
pub fn sequential_reuse(read_bytes: f64, buffer_bytes: f64) -> f64 {
    (1.0 - read_bytes / buffer_bytes).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::load;

    #[test]
    fn the_reuse_of_the_post_comes_from_its_calls_and_from_the_sizes() {
        let bsd = load("freebsd-2006").unwrap();
        let reuse = |run| published_reuse(&bsd, run).unwrap();
        assert!((reuse("4k-sequential") - 0.75).abs() < 0.001, "almost exactly 0.75");
        assert!((reuse("4k-random") - 0.15).abs() < 0.005, "0.13 of the text is 0.15 in this profile");
        assert!((reuse("16k-random") - 0.148).abs() < 0.005);
        assert!(reuse("16k-sequential").abs() < 0.005);
        let buffer = bsd.fact("buffer").unwrap();
        assert_eq!((sequential_reuse(4096.0, buffer), sequential_reuse(16_384.0, buffer)), (0.75, 0.0));
        assert_eq!(sequential_reuse(65_536.0, buffer), 0.0);
    }

    #[test]
    fn the_costs_of_4k_reads_predict_the_16k_runs_that_they_have_not_seen() {
        let bsd = load("freebsd-2006").unwrap();
        for (order, reuse, worst) in [("random", 0.13, 0.05), ("sequential", 0.0, 0.15)] {
            let costs = Costs::from_experiment(&bsd, &format!("4k-{order}")).unwrap();
            let measured = split(&bsd, &format!("16k-{order}")).unwrap().net();
            let predicted = costs.predict(16_384.0, reuse);
            assert!((predicted / measured - 1.0).abs() < worst, "{order}: {predicted} {measured}");
        }
    }

    #[test]
    fn a_split_sums_to_the_run_and_says_what_random_costs() {
        let bsd = load("freebsd-2006").unwrap();
        for (run, total) in [
            ("4k-random", 2.70e9),
            ("4k-sequential", 1.35e9),
            ("16k-random", 1.15e9),
            ("16k-sequential", 0.96e9),
        ] {
            let s = split(&bsd, run).unwrap();
            let sum = s.copy + s.lookup + s.mapping + s.profiler + s.rest;
            assert!((sum - total).abs() < 1.0 && s.rest > 0.0, "{run}: {s:?}");
        }
        let (random, sequential) = (split(&bsd, "4k-random").unwrap(), split(&bsd, "4k-sequential").unwrap());
        assert!(random.mapping > 5.0 * sequential.mapping && random.copy < 1.2 * sequential.copy);
        assert_eq!(split(&bsd, "8k-random"), None);
    }
}
