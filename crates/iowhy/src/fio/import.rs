//! A job of fio as options of `bench`: the common part is taken over, and what iowhy does otherwise is noted; an option that
//! would change what is measured, and that iowhy does not have, is refused by name.
//!
//! Meanings are those of fio's manual (fio 3.33).

use std::path::Path;

use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units;
use iowhy_core::workload::{CacheState, Method};

use super::job::Section;
use crate::cli::BenchArgs;
use crate::cli::bench::{self, Methods, Rw};
use crate::cli::value::{List, count};

/// A job, taken over.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Options of `bench`.
    pub args: BenchArgs,
    /// What iowhy does otherwise than fio.
    pub notes: Vec<String>,
}

/// Options that change reports, logs or the order of jobs, but nothing of what is asked of the target.
const WITHOUT_EFFECT: &[&str] = &[
    "name",
    "description",
    "group_reporting",
    "thread",
    "stonewall",
    "wait_for_previous",
    "new_group",
    "eta",
    "eta_newline",
    "status_interval",
    "per_job_logs",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "disable_bw_measurement",
    "gtod_reduce",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "exitall",
    "random_generator",
    "allrandrepeat",
    "randrepeat",
    "unlink",
    "create_serialize",
    "create_on_open",
    "fallocate",
    "file_service_type",
    "kb_base",
    "unit_base",
    "unified_rw_reporting",
    "log_avg_msec",
    "log_hist_msec",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "significant_figures",
    "filename_format",
    "end_fsync",
    "overwrite",
    "registerfiles",
    "fixedbufs",
    "nonvectored",
    "force_async",
    "iodepth_low",
];

/// Takes a job over into options that otherwise stand as `base` has them.
///
/// # Errors
/// Options that iowhy does not carry out, all in one message; values that it does not understand.
pub fn import(job: &Section, base: BenchArgs) -> Result<Imported, Problem> {
    let mut reader = Reader { job, notes: Vec::new(), unsupported: Vec::new(), asked: Vec::new() };
    let args = reader.args(base)?;
    reader.leftovers();
    if !reader.unsupported.is_empty() {
        return Err(Problem::refused(format!(
            "job `{}` asks for what iowhy does not carry out: {}",
            job.name,
            reader.unsupported.join(", ")
        ))
        .hint("run it with fio, or take these lines out of a copy of the job"));
    }
    Ok(Imported { args, notes: reader.notes })
}

struct Reader<'a> {
    job: &'a Section,
    notes: Vec<String>,
    unsupported: Vec<String>,
    asked: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// The last value of an option under any of its names.
    fn value(&mut self, names: &[&'static str]) -> Option<&'a str> {
        self.asked.extend(names);
        let job = self.job;
        job.options
            .iter()
            .rev()
            .find(|(key, _)| names.contains(&key.as_str()))
            .map(|(_, value)| value.as_str())
    }

    fn is_on(&mut self, name: &'static str) -> bool {
        self.value(&[name]).is_some_and(|value| value != "0")
    }

    fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    fn refuse(&mut self, words: impl Into<String>) {
        self.unsupported.push(words.into());
    }

    /// Everything that nobody asked for.
    fn leftovers(&mut self) {
        for (key, value) in &self.job.options {
            if value.contains('$') {
                self.unsupported.push(format!("{key}={value} (a variable)"));
            } else if !self.asked.contains(&key.as_str()) && !WITHOUT_EFFECT.contains(&key.as_str()) {
                let option = format!("{key}={value}");
                if !self.unsupported.contains(&option) {
                    self.unsupported.push(option);
                }
            }
        }
    }

    fn args(&mut self, mut args: BenchArgs) -> Result<BenchArgs, Problem> {
        args.rw = bench::rw("rw", self.value(&["rw", "readwrite"]).unwrap_or("read"))?;
        let random = args.rw.is_random();
        let reads_only = matches!(args.rw, Rw::Read | Rw::Randread);
        let writes_only = matches!(args.rw, Rw::Write | Rw::Randwrite);
        let percent = |text: &str| {
            text.trim_end_matches('%').parse::<u8>().ok().filter(|share| *share <= 100).ok_or_else(|| {
                Problem::refused(format!("`rwmixread={text}` is not a percentage")).hint("give 0 to 100")
            })
        };
        if let Some(text) = self.value(&["rwmixread"]) {
            args.rwmixread = percent(text)?;
        } else if let Some(text) = self.value(&["rwmixwrite"]) {
            args.rwmixread = 100 - percent(text)?;
        }
        args.bs = vec![self.block_size()?];
        args.pattern = self.pattern(random)?;
        self.threads_and_size(&mut args)?;
        let direct = self.is_on("direct");
        args.direct = direct.then_some(1);
        let method = self.method(args.rw.id(), direct, (random, reads_only, writes_only));
        let method = method.map(|id| bench::method("ioengine", &id)).transpose()?;
        args.method = method.map(|method| Methods::These(vec![method]));
        let depth = self.value(&["iodepth"]).unwrap_or("1");
        args.iodepth = vec![count(1..=bench::MAX_DEPTH)("iodepth", depth)?];
        args.state = if direct { None } else { self.state(reads_only) };
        self.time(&mut args)?;
        if let Some(seed) = self.value(&["randseed"]).and_then(|text| text.parse().ok()) {
            args.seed = seed;
        }
        args.target = self.target(method == Some(Method::Null));
        Ok(args)
    }

    fn block_size(&mut self) -> Result<u64, Problem> {
        let bs = self.value(&["bs", "blocksize"]).unwrap_or("4k");
        let mut sizes = bs.split(',').filter(|size| !size.is_empty());
        let first = sizes.next().unwrap_or("4k");
        if sizes.any(|size| size != first) {
            self.refuse(format!("bs={bs} (different for reads and writes)"));
        }
        units::parse_bytes_nonzero("bs", first)
    }

    fn pattern(&mut self, random: bool) -> Result<Option<Pattern>, Problem> {
        let norandmap = self.is_on("norandmap");
        Ok(match self.value(&["random_distribution"]) {
            Some(zipf) if zipf.starts_with("zipf:") && random => Some(zipf.parse()?),
            Some("random") | None => (random && norandmap).then_some(Pattern::Random),
            Some(other) => {
                self.refuse(format!("random_distribution={other}"));
                None
            }
        })
    }

    fn threads_and_size(&mut self, args: &mut BenchArgs) -> Result<(), Problem> {
        let jobs: u64 = count(1..=bench::MAX_THREADS)("numjobs", self.value(&["numjobs"]).unwrap_or("1"))?;
        args.threads = vec![jobs as usize];
        let each = self.value(&["size", "filesize"]);
        let apart = self.value(&["offset_increment"]);
        if self.value(&["filesize"]).is_some() && self.value(&["size"]).is_some() {
            self.asked.push("filesize");
        }
        let Some(each) = each else { return Ok(()) };
        if each.ends_with('%') {
            self.refuse(format!("size={each} (a share)"));
            return Ok(());
        }
        let bytes = units::parse_bytes_nonzero("size", each)?;
        let whole = match apart.map(|text| units::parse_bytes("offset_increment", text)).transpose()? {
            Some(apart) if apart == bytes => bytes.saturating_mul(jobs),
            Some(_) => {
                self.refuse("offset_increment other than size");
                bytes
            }
            None => {
                if jobs > 1 {
                    self.note(format!(
                        "each of fio's {jobs} jobs goes over all of `size`; here each thread has its own part of it"
                    ));
                }
                bytes
            }
        };
        args.size = Some(whole);
        Ok(())
    }

    /// Id of the method.
    fn method(
        &mut self,
        rw: &str,
        direct: bool,
        (random, reads, writes): (bool, bool, bool),
    ) -> Option<String> {
        let engine = self.value(&["ioengine"]).unwrap_or("psync");
        let hint = self.value(&["fadvise_hint"]).unwrap_or("1");
        let hint = match hint {
            "0" => "",
            "1" if random => "random",
            "1" => "sequential",
            other => other,
        };
        let hinted = |plain: &str| match hint {
            "random" => format!("{plain}-random"),
            "sequential" => format!("{plain}-sequential"),
            _ => plain.to_owned(),
        };
        let polls = self.is_on("hipri");
        let thread_polls = self.is_on("sqthread_poll");
        let durable = self.durable();
        let mixed = !reads && !writes;
        let method = match engine {
            "null" => "null".to_owned(),
            "io_uring" if polls => "uring-iopoll".to_owned(),
            "io_uring" if thread_polls => "uring-sqpoll".to_owned(),
            "io_uring" => "uring".to_owned(),
            "libaio" => {
                self.note("libaio is carried out by io_uring: handing requests in costs less with it");
                "uring".to_owned()
            }
            "psync" | "pvsync" | "pvsync2" | "sync" | "vsync" if direct => "direct".to_owned(),
            "psync" if reads => hinted("pread"),
            "sync" if reads => "read".to_owned(),
            "vsync" if reads => "readv".to_owned(),
            "pvsync" | "pvsync2" if reads => "preadv2".to_owned(),
            "psync" | "pvsync" | "pvsync2" if writes => "pwrite".to_owned(),
            "sync" if writes => "write".to_owned(),
            "psync" | "sync" | "pvsync" | "pvsync2" if mixed => {
                self.note(format!("{rw} through {engine} and the page cache is carried out by io_uring"));
                "uring".to_owned()
            }
            "mmap" if reads => hinted("mmap"),
            "splice" if reads => "splice".to_owned(),
            "sg" if reads => "sg".to_owned(),
            other => {
                self.refuse(format!("ioengine={other} for {rw}"));
                return None;
            }
        };
        if !reads && engine != "null" && engine != "io_uring" && method.starts_with("pread") {
            self.refuse(format!("ioengine={engine} for {rw}"));
        }
        match (durable, method.as_str()) {
            (None, _) => Some(method),
            (Some(way), "pwrite" | "write") => Some(format!("pwrite-{way}")),
            (Some(way), _) => {
                self.refuse(format!(
                    "{way} with ioengine={engine}{}",
                    if direct { " and direct=1" } else { "" }
                ));
                None
            }
        }
    }

    /// How each write is made durable.
    fn durable(&mut self) -> Option<&'static str> {
        let mut way = None;
        for name in ["fsync", "fdatasync"] {
            match self.value(&[name]) {
                None | Some("0") => {}
                Some("1") => way = Some(name),
                Some(n) => self.refuse(format!("{name}={n} (iowhy knows 1: after each write)")),
            }
        }
        match self.value(&["sync"]) {
            None | Some("0" | "none") => {}
            Some("dsync") => way = Some("dsync"),
            Some(other) => {
                self.note(format!(
                    "sync={other} (O_SYNC) is carried out as O_DSYNC: time stamps are not made durable"
                ));
                way = Some("dsync");
            }
        }
        way
    }

    /// The state of the cache that the job would find.
    fn state(&mut self, reads_only: bool) -> Option<List<CacheState>> {
        let pre_read = self.is_on("pre_read");
        let invalidate = self.value(&["invalidate"]);
        if !reads_only {
            return None;
        }
        if pre_read {
            return Some(vec![CacheState::Warm]);
        }
        if invalidate == Some("0") {
            self.refuse("invalidate=0 (the cache as it happens to be; iowhy sets it and verifies it: pre_read=1 or invalidate=1)");
        }
        Some(vec![CacheState::Cold])
    }

    fn time(&mut self, args: &mut BenchArgs) -> Result<(), Problem> {
        let based = self.is_on("time_based");
        let runtime = self.value(&["runtime", "timeout"]);
        match runtime {
            Some(time) => {
                args.time = Some(units::parse_duration("runtime", time)?);
                if !based {
                    self.note("without `time_based` fio would stop after one pass over `size`; here the time decides");
                }
            }
            None => args.once = true,
        }
        if self.value(&["ramp_time"]).is_some() {
            self.note("ramp_time is left out: each slice here begins with requests that do not count");
        }
        if let Some(rate) = self.value(&["rate_iops"]) {
            let jobs = args.threads.iter().sum::<usize>() as f64;
            match rate.parse::<f64>() {
                Ok(rate) if rate > 0.0 && rate.is_finite() => args.rate = Some(rate * jobs),
                _ => self.refuse(format!("rate_iops={rate}")),
            }
            self.note(
                "latencies count from the planned instants; fio's count from when it got round to a request",
            );
        }
        Ok(())
    }

    fn target(&mut self, null: bool) -> String {
        let directory = self.value(&["directory"]);
        let filename = self.value(&["filename"]);
        if null {
            return "null".to_owned();
        }
        let Some(name) = filename else { return directory.unwrap_or(".").to_owned() };
        if name.contains(':') && !Path::new(name).exists() {
            self.refuse(format!("filename={name} (several files)"));
            return ".".to_owned();
        }
        let path =
            directory.map_or_else(|| Path::new(name).to_owned(), |directory| Path::new(directory).join(name));
        if path.exists() {
            return path.to_string_lossy().into_owned();
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.note(format!(
            "`{}` is not there: a scratch file in `{}` stands in for it, and is removed",
            path.display(),
            folder.display()
        ));
        folder.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::fio::job;

    fn base() -> BenchArgs {
        let cli = crate::cli::Cli::try_parse_from(["iowhy", "bench"]).unwrap();
        match cli.command {
            Some(crate::cli::Command::Bench(args)) => *args,
            _ => panic!("bench is bench"),
        }
    }

    fn one(id: &str) -> Option<Methods> {
        Some(Methods::These(vec![Method::from_id(id).unwrap()]))
    }

    fn of(text: &str) -> Result<Imported, Problem> {
        import(&job::read(text, "x.fio").unwrap()[0], base())
    }

    #[test]
    fn the_usual_job_is_taken_over() {
        let text = "[r]\nrw=randread\nbs=16k\nioengine=io_uring\niodepth=32\ndirect=1\nsize=64m\nnumjobs=2\n\
                    offset_increment=64m\ntime_based\nruntime=7\ngroup_reporting\nrandseed=9\ndirectory=/tmp\n";
        let Imported { args, notes } = of(text).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!((args.rw, args.bs, args.iodepth), (Rw::Randread, vec![16 << 10], vec![32]));
        assert_eq!((args.method, args.direct, args.state), (one("uring"), Some(1), None));
        assert_eq!((args.size, args.threads), (Some(128 << 20), vec![2]));
        assert_eq!((args.time, args.once, args.seed), (Some(Duration::from_secs(7)), false, 9));
        assert_eq!(args.target, "/tmp");
    }

    #[test]
    fn what_fio_does_unasked_is_done_too() {
        // psync gives the kernel a hint, and the cache is emptied first.
        let args = of("[r]\nrw=read\nsize=1m\n").unwrap().args;
        assert_eq!((args.method, args.state), (one("pread-sequential"), Some(vec![CacheState::Cold])));
        assert!(args.once, "one pass over the size");
        let args = of("[r]\nrw=randread\nsize=1m\nfadvise_hint=0\npre_read=1\n").unwrap().args;
        assert_eq!((args.method, args.state), (one("pread"), Some(vec![CacheState::Warm])));
        let args = of("[w]\nrw=write\nsize=1m\nfdatasync=1\n").unwrap().args;
        assert_eq!((args.method, args.state), (one("pwrite-fdatasync"), None));
        assert_eq!(of("[w]\nrw=randrw\nrwmixwrite=30\nioengine=io_uring\n").unwrap().args.rwmixread, 70);
        assert_eq!(of("[r]\nrw=randread\nnorandmap\n").unwrap().args.pattern, Some(Pattern::Random));
        let zipf = of("[r]\nrw=randread\nrandom_distribution=zipf:1.2\n").unwrap().args;
        assert_eq!(zipf.pattern, Some(Pattern::Zipf(1.2)));
    }

    #[test]
    fn what_iowhy_does_otherwise_is_said() {
        for (text, says) in [
            ("[r]\nioengine=libaio\n", "libaio"),
            ("[r]\nruntime=3\n", "time_based"),
            ("[r]\nsize=1m\nnumjobs=4\n", "its own part"),
            ("[w]\nrw=write\nsync=1\n", "O_DSYNC"),
            ("[r]\nfilename=/tmp/is-not-there-at-all\n", "is not there"),
        ] {
            let notes = of(text).unwrap().notes;
            assert!(notes.iter().any(|note| note.contains(says)), "{text}: {notes:?}");
        }
    }

    #[test]
    fn all_that_is_not_carried_out_is_named_at_once() {
        let text = "[r]\nrw=read\nthinktime=10\nverify=crc32c\nbssplit=4k/50\nfsync=32\nsize=50%\nbs=4k,8k\nioengine=rbd\n";
        let problem = of(text).unwrap_err();
        for option in [
            "thinktime=10",
            "verify=crc32c",
            "bssplit=4k/50",
            "fsync=32",
            "size=50%",
            "bs=4k,8k",
            "ioengine=rbd",
        ] {
            assert!(problem.message.contains(option), "{option}: {problem:?}");
        }
        assert!(of("[r]\nfilename=${FILE}\n").unwrap_err().message.contains("a variable"));
        assert!(of("[r]\ninvalidate=0\n").unwrap_err().message.contains("invalidate=0"));
        assert!(of("[r]\nfilename=/a:/b\n").unwrap_err().message.contains("several files"));
        assert!(of("[r]\nrwmixread=200\n").is_err() && of("[r]\nsize=much\n").is_err());
    }
}
