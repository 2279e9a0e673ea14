//! The words of the path report, each with its meaning: layers, limits, columns, verdicts, rows, lines. A word may have
//! several. The test walks over what the screen can print.

/// What kind of word it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Layer,
    Limit,
    Column,
    Verdict,
    Row,
    Line,
    Tail,
}

impl Kind {
    /// The stable identifier, as in the JSON output.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Kind::Layer => "layer",
            Kind::Limit => "limit",
            Kind::Column => "column",
            Kind::Verdict => "verdict",
            Kind::Row => "row",
            Kind::Line => "line",
            Kind::Tail => "tail",
        }
    }

    /// For people.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Kind::Layer => "a layer of the I/O path",
            Kind::Limit => "a limit of the path report",
            Kind::Column => "a column",
            Kind::Verdict => "a verdict on a cell",
            Kind::Row => "a kind of request",
            Kind::Line => "a figure of the path report",
            Kind::Tail => "a word of `attach --when`",
        }
    }
}

/// A word in one of its meanings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) kind: Kind,
    pub(crate) word: &'static str,
    pub(crate) text: &'static str,
}

/// All meanings of a word.
pub(crate) fn find(text: &str) -> Vec<&'static Word> {
    let wanted = normal(text);
    WORDS.iter().filter(|word| normal(word.word) == wanted).collect()
}

/// As words are compared: lower case, `-` between parts.
pub(crate) fn normal(text: &str) -> String {
    text.trim().to_lowercase().replace(['_', ' '], "-")
}

/// Every word.
pub(crate) const WORDS: &[Word] = &[
    Word {
        kind: Kind::Layer,
        word: "program",
        text: "The program's own user-mode code. In the path report: what iowhy itself spends on a request.",
    },
    Word {
        kind: Kind::Layer,
        word: "call",
        text: "Entering and leaving the kernel, descriptor look-up, and handling of the io_uring rings.",
    },
    Word {
        kind: Kind::Layer,
        word: "filesystem",
        text: "VFS and file system: path walk, open and stat, extent mapping, time stamps, inode work.",
    },
    Word {
        kind: Kind::Layer,
        word: "cache",
        text: "The page cache: look-up, allocation, insertion, eviction, dirty accounting, read-ahead decisions.",
    },
    Word { kind: Kind::Layer, word: "copy", text: "Moving bytes between kernel and user memory." },
    Word {
        kind: Kind::Layer,
        word: "memory",
        text: "Page faults, mapping, unmapping, TLB shoot-down, zeroing and reclaim, busy and waiting.",
    },
    Word {
        kind: Kind::Layer,
        word: "block",
        text: "The block layer: building, merging, scheduling, queueing and throttling of requests.",
    },
    Word {
        kind: Kind::Layer,
        word: "device",
        text: "Driver and device: service of reads, writes and flushes, whoever waits for it, also inside an fsync. A wait for several requests at once is not divided: it is booked here as far as requests of the device were under way.",
    },
    Word {
        kind: Kind::Layer,
        word: "journal",
        text: "Waiting for a commit of the journal or log of the file system, beyond the device's own share.",
    },
    Word {
        kind: Kind::Layer,
        word: "writeback",
        text: "Waiting because too much is dirty, or for a write-back that another task asked for.",
    },
    Word {
        kind: Kind::Layer,
        word: "server",
        text: "A served file system (NFS, SMB, Ceph, Lustre, 9p, FUSE): client queue, wire and server together.",
    },
    Word {
        kind: Kind::Layer,
        word: "lock",
        text: "Waiting for a kernel lock: inode, address space, journal handle.",
    },
    Word {
        kind: Kind::Layer,
        word: "cpu-queue",
        text: "Ready to run, but no CPU was free: other programs, or the hypervisor, used it.",
    },
    Word {
        kind: Kind::Layer,
        word: "elsewhere",
        text: "Asleep on something off the I/O path: network, pipe, timer, another thread.",
    },
    Word {
        kind: Kind::Layer,
        word: "observer",
        text: "The cost of counting and recording, inside the program's time.",
    },
    Word {
        kind: Kind::Layer,
        word: "unexplained",
        text: "The remainder that no layer explains. It is negative where the layers explain more than was measured.",
    },
    Word {
        kind: Kind::Limit,
        word: "cpu",
        text: "All CPUs that the process may use are busy. Fewer or cheaper requests help, or more CPUs.",
    },
    Word {
        kind: Kind::Limit,
        word: "one-thread",
        text: "One thread is on the CPU nearly all the time, and a second thread adds throughput. Use more threads, or a cheaper method.",
    },
    Word {
        kind: Kind::Limit,
        word: "depth",
        text: "Queue depth: the device is idle between requests, and is faster when more are in flight. Use io_uring or more threads; for sequential reads, larger read-ahead.",
    },
    Word {
        kind: Kind::Limit,
        word: "copy-bandwidth",
        text: "Moving bytes between kernel and user memory takes most of the time, near the rate of a plain copy. A mapping, direct I/O or a smaller working set avoids the copy or makes it cheaper.",
    },
    Word {
        kind: Kind::Limit,
        word: "device",
        text: "The device is saturated: a deeper queue adds less than 10 %. Only a faster device or fewer bytes help.",
    },
    Word {
        kind: Kind::Limit,
        word: "throttle",
        text: "A configured or metered limit cuts off the rate: a control group, a hypervisor or a cloud volume.",
    },
    Word {
        kind: Kind::Limit,
        word: "unknown",
        text: "The evidence does not decide. The sentence beside it says what is known and what would decide: a missing measurement, a ratio at its threshold, or a machine that other programs use.",
    },
    Word {
        kind: Kind::Limit,
        word: "interval too wide",
        text: "A 95 % interval includes the threshold of a rule, after all the time there was. A quieter machine or a longer `--time` narrows it: four times the time, half the width. `equal` means that the value is at the threshold, and no time decides.",
    },
    Word {
        kind: Kind::Column,
        word: "request",
        text: "One canonical request. Each row is measured in rounds, in random order with all others.",
    },
    Word {
        kind: Kind::Column,
        word: "time",
        text: "Thread time of one request: median of the rounds. With several requests in flight it is far below the latency. ± is the longer arm of the 95 % interval.",
    },
    Word {
        kind: Kind::Column,
        word: "throughput",
        text: "Bytes requested per second of wall time: median of the rounds with its 95 % interval.",
    },
    Word { kind: Kind::Column, word: "CPU", text: "CPU time of the measuring threads per byte." },
    Word {
        kind: Kind::Column,
        word: "where it goes",
        text: "The time of one request, split over the layers of the I/O path. The letters are named below the table.",
    },
    Word {
        kind: Kind::Column,
        word: "unexplained",
        text: "Share of the time that no layer explains, with its 95 % interval. Where stacks were sampled: functions of no \
               known layer, and waiting that no counter covers. Else also what cells of other sizes do not predict.",
    },
    Word {
        kind: Kind::Column,
        word: "latency",
        text: "Time of single requests: p50, p99, p1, a histogram on a log scale, and the slowest.",
    },
    Word {
        kind: Kind::Column,
        word: "p1",
        text: "One request in a hundred was faster. The histogram begins here.",
    },
    Word { kind: Kind::Column, word: "p50", text: "Half of the requests were faster (median latency)." },
    Word { kind: Kind::Column, word: "p99", text: "99 % of the requests were faster." },
    Word {
        kind: Kind::Column,
        word: "histogram",
        text: "Number of requests by latency, from p1 to the slowest, log scale: one more character is the same factor.",
    },
    Word { kind: Kind::Column, word: "max", text: "The slowest request of its row." },
    Word {
        kind: Kind::Column,
        word: "method",
        text: "How bytes are moved: the system call or mapping. `iowhy bench --method list` lists all.",
    },
    Word {
        kind: Kind::Column,
        word: "time / pread",
        text: "Time of one request over that of `pread`, paired within rounds. Below 1 is faster.",
    },
    Word {
        kind: Kind::Column,
        word: "CPU / pread",
        text: "CPU time of one request over that of `pread`, paired within rounds.",
    },
    Word {
        kind: Kind::Column,
        word: "layer",
        text: "A part of the I/O path, named by who serves. `iowhy explain device` explains one.",
    },
    Word { kind: Kind::Column, word: "ns per call", text: "Fitted cost of the layer for each request." },
    Word { kind: Kind::Column, word: "ns per page", text: "Fitted cost of the layer for each page." },
    Word { kind: Kind::Column, word: "ns per byte", text: "Fitted cost of the layer for each byte." },
    Word {
        kind: Kind::Column,
        word: "fitted",
        text: "Time of the layer by the account: calibration cells of the request, or fitted costs.",
    },
    Word {
        kind: Kind::Column,
        word: "sampled",
        text: "Time of the layer by stack samples of further requests of the same kind.",
    },
    Word {
        kind: Kind::Column,
        word: "events",
        text: "Clock samples or sleeps that the sampled figure rests on.",
    },
    Word { kind: Kind::Column, word: "result", text: "Whether fitted and sampled time agree." },
    Word {
        kind: Kind::Column,
        word: "cell",
        text: "One measured combination of method, pattern, size, cache state, threads and depth.",
    },
    Word {
        kind: Kind::Column,
        word: "bytes",
        text: "Share of the bytes that each member or device moved, in order.",
    },
    Word {
        kind: Kind::Column,
        word: "most / mean",
        text: "Bytes of the busiest member over the mean of all: 1 is evenly spread.",
    },
    Word {
        kind: Kind::Column,
        word: "requests",
        text: "Share of the requests that each member or device served, in order.",
    },
    Word {
        kind: Kind::Column,
        word: "busy",
        text: "Share of the time in which the device had a request in flight.",
    },
    Word {
        kind: Kind::Column,
        word: "gain",
        text: "Throughput with the change over throughput without it, with its 95 % interval. Of a program: its wall time over the time \
               with the change; `at most` is a bound: without all time of the cause, and with the rest unchanged.",
    },
    Word {
        kind: Kind::Verdict,
        word: "ok",
        text: "The cell measured what it claims: cache state and bytes were checked.",
    },
    Word {
        kind: Kind::Verdict,
        word: "mislabelled",
        text: "The cell measured something else than it claims, such as a cold read that was answered by the page cache. Its figures are no evidence for its row; the exit code is 1. Marked (!).",
    },
    Word {
        kind: Kind::Verdict,
        word: "inconclusive",
        text: "The check did not decide: its counters could not be read, another program moved bytes, or an interval is too wide.",
    },
    Word {
        kind: Kind::Verdict,
        word: "failed",
        text: "A request failed. The reason stands below the table; the exit code is 1.",
    },
    Word {
        kind: Kind::Verdict,
        word: "not-run",
        text: "An interrupt ended the run before this cell was measured.",
    },
    Word {
        kind: Kind::Verdict,
        word: "agrees",
        text: "Fitted and sampled time do not differ by a tenth of the request or more.",
    },
    Word {
        kind: Kind::Verdict,
        word: "confirmed",
        text: "No layer of the request disagrees with the stack samples, and each could have.",
    },
    Word {
        kind: Kind::Verdict,
        word: "disagrees",
        text: "The 95 % interval of the difference between fitted and sampled time lies outside of 5 % of the request.",
    },
    Word {
        kind: Kind::Verdict,
        word: "not fitted",
        text: "The fit has no cost for this layer, so the samples stand alone.",
    },
    Word {
        kind: Kind::Tail,
        word: "sync-tail",
        text: "At least half of the slowest syncs spend most of their time in the same part of the path. Exact for the calls that are listed; it says nothing of faster ones.",
    },
    Word {
        kind: Kind::Tail,
        word: "shared-journal",
        text: "Slow syncs waited for a commit of the journal that was writing data of another process: the thread of the journal was seen to wait for requests with that data for at least a fifth of the sync's time. Spread that process's writes (sync_file_range, a smaller dirty limit, a control group with io.max), or give it a file system of its own.",
    },
    Word {
        kind: Kind::Tail,
        word: "running",
        text: "The time of a call on a CPU, in the kernel's own clock: what is left of the call without sleeps and without waiting for a CPU.",
    },
    Word {
        kind: Kind::Tail,
        word: "device-queue",
        text: "The request that the call waited for was in the queue before the device.",
    },
    Word {
        kind: Kind::Tail,
        word: "throttle",
        text: "Held back on purpose: a limit of a control group or of the block layer, or the limit of dirty memory.",
    },
    Word {
        kind: Kind::Row,
        word: "cached",
        text: "The bytes are in the page cache before the first request (verified).",
    },
    Word {
        kind: Kind::Row,
        word: "mapped",
        text: "Read through a memory mapping, one byte of each page touched.",
    },
    Word {
        kind: Kind::Row,
        word: "cold",
        text: "No byte is in the page cache before the first request (verified).",
    },
    Word { kind: Kind::Row, word: "direct", text: "O_DIRECT: past the page cache." },
    Word { kind: Kind::Row, word: "random", text: "Offsets in random order." },
    Word { kind: Kind::Row, word: "sequential", text: "Offsets in ascending order." },
    Word {
        kind: Kind::Row,
        word: "write",
        text: "Written to the scratch file. `sync at end`: through the cache, with one fdatasync for 32 MiB within the time. `+ fdatasync`: one after each write.",
    },
    Word {
        kind: Kind::Row,
        word: "durable",
        text: "Writes of 4 KiB, each followed by fdatasync, one at a time.",
    },
    Word { kind: Kind::Row, word: "in flight", text: "Queue depth: requests under way at once." },
    Word {
        kind: Kind::Line,
        word: "faster",
        text: "Changes that are faster than the plain request: the whole 95 % interval of the gain is above 1, and the gain above 1.05. Methods whose bytes do not reach the program are not listed.",
    },
    Word {
        kind: Kind::Line,
        word: "trust",
        text: "What the figures rest on: rounds, overhead of iowhy, model error, cross-check, and whether the machine was busy.",
    },
    Word {
        kind: Kind::Line,
        word: "rounds",
        text: "Every cell is measured once in each round, in random order. A borderline limit gets further rounds while there is time.",
    },
    Word {
        kind: Kind::Line,
        word: "overhead",
        text: "Time that iowhy itself adds to a request, measured on requests that do nothing.",
    },
    Word {
        kind: Kind::Line,
        word: "model error",
        text: "Greatest error of the fitted model at block sizes that it was not fitted on.",
    },
    Word {
        kind: Kind::Line,
        word: "cross-check",
        text: "Layers by stack samples, compared with the layers of the account. They are independent of each other.",
    },
    Word {
        kind: Kind::Line,
        word: "busy machine",
        text: "In more than a quarter of the cells a thread waited for a CPU for more than 5 % of the time. Repeat it when the machine is idle.",
    },
    Word {
        kind: Kind::Limit,
        word: "contention",
        text: "Other programs used the CPUs or the device during these cells, so that no limit was decided. Repeat it when they are idle.",
    },
    Word {
        kind: Kind::Line,
        word: "held out",
        text: "Measured block sizes that the fit did not use; the model predicts them.",
    },
    Word {
        kind: Kind::Line,
        word: "vfs",
        text: "Part of `filesystem` that every descriptor pays, also /dev/null.",
    },
    Word { kind: Kind::Line, word: "insert", text: "Part of `cache`: bringing a page into the page cache." },
    Word {
        kind: Kind::Line,
        word: "zero",
        text: "Zeroing of user memory (/dev/zero), the store half of a copy.",
    },
    Word { kind: Kind::Line, word: "ring", text: "Cost of `call` for a request in a batch of io_uring." },
    Word {
        kind: Kind::Line,
        word: "deep",
        text: "Cost of `block` for a request of one page at a high queue depth.",
    },
    Word {
        kind: Kind::Line,
        word: "batch",
        text: "Handing a batch of requests to the driver, once for each batch.",
    },
    Word {
        kind: Kind::Line,
        word: "memory-file",
        text: "Cost of a file in anonymous memory, in place of file system, cache and copy.",
    },
];

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::limit::LimitId;
    use iowhy_core::model::Part as ModelPart;
    use iowhy_path::cross_check::Verdict as CheckVerdict;
    use iowhy_path::plan::{WRITE_CACHED, WRITE_DIRECT};
    use iowhy_path::reconcile::Verdict as CellVerdict;
    use iowhy_view::document::{Chapter, Detail, Part};

    use super::*;
    use crate::measurement::NOT_RUN;
    use crate::screen::measured;
    use crate::screen::measured::path::tests::full;

    fn explained(word: &str, kind: Kind) {
        let found = find(word);
        assert!(found.iter().any(|w| w.kind == kind), "no meaning of `{word}` as {}: {found:?}", kind.id());
    }

    /// Headings of all tables, and the leads of lines.
    fn columns_and_leads(chapter: &Chapter) -> (Vec<String>, Vec<String>) {
        let (mut columns, mut leads) = (Vec::new(), Vec::new());
        for part in chapter.sections.iter().flat_map(|section| &section.parts) {
            match part {
                Part::Table(table) => columns.extend(table.columns.iter().map(|(name, _)| name.clone())),
                Part::Spread(_) => {
                    columns.extend(["latency", "p50", "p99", "p1", "histogram", "max"].map(str::to_owned))
                }
                Part::Lead(lead, _) => leads.push(lead.trim().to_owned()),
                _ => {}
            }
        }
        (columns, leads)
    }

    #[test]
    fn every_layer_limit_verdict_and_part_of_the_model_is_explained() {
        Layer::ALL.iter().for_each(|layer| explained(layer.id(), Kind::Layer));
        LimitId::ALL.iter().for_each(|limit| explained(limit.id(), Kind::Limit));
        use CellVerdict::*;
        [Ok, Mislabelled, Inconclusive, Failed].iter().for_each(|v| explained(v.id(), Kind::Verdict));
        explained(NOT_RUN, Kind::Verdict);
        let checks = [CheckVerdict::Confirmed, CheckVerdict::Disagrees, CheckVerdict::Inconclusive];
        checks.iter().for_each(|verdict| explained(verdict.id(), Kind::Verdict));
        ["agrees", "not fitted"].iter().for_each(|result| explained(result, Kind::Verdict));
        use ModelPart::*;
        [Vfs, Insert, Zero, Ring, Deep, Batch, MemoryFile]
            .iter()
            .for_each(|part| explained(part.id(), Kind::Line));
    }

    #[test]
    fn every_column_and_every_lead_of_the_screens_is_explained() {
        let record = full();
        for detail in [Detail::Screen, Detail::Verbose] {
            let (columns, leads) = columns_and_leads(&measured::path::chapter(&record, detail));
            columns.iter().for_each(|column| explained(column, Kind::Column));
            for lead in &leads {
                let words = lead.split([' ', ':']).filter(|word| !word.is_empty());
                for word in words.filter(|word| !["reads", "writes", "limit"].contains(word)) {
                    assert!(!find(word).is_empty(), "`{word}` of `{lead}`");
                }
            }
            assert!(columns.len() >= 4 && leads.len() >= 4, "{columns:?} {leads:?}");
        }
    }

    #[test]
    fn the_words_of_the_rows_are_explained() {
        let record = full();
        let labels = record.requests.iter().map(|request| request.label.as_str());
        let small = ["a", "page", "time", "at", "end", "sync", "fdatasync", "KiB", "MiB", "+"];
        for label in labels.chain([WRITE_CACHED, WRITE_DIRECT]) {
            let words =
                label.split([' ', ',']).filter(|word| !word.is_empty() && word.parse::<u32>().is_err());
            for word in words.filter(|word| !small.contains(word)) {
                assert!(!find(word).is_empty(), "`{word}` of `{label}`");
            }
        }
    }

    #[test]
    fn no_word_stands_twice_in_one_sense_and_every_text_is_a_sentence() {
        for (at, word) in WORDS.iter().enumerate() {
            let twin = WORDS[..at].iter().any(|w| w.kind == word.kind && normal(w.word) == normal(word.word));
            assert!(!twin, "{word:?}");
            assert!(word.text.ends_with('.') && word.text.len() > 20, "{word:?}");
        }
    }
}
