//! Golden files: their format is found out, every request and loss is what the file was made of.

use std::io::{self, Read as _, Write as _};

use iowhy_core::request::{Marks, NEVER, Op, Request};
use iowhy_trace::{BlockAction, ColumnSpec, Format, Kind, Options};

use crate::common::{all_golden, golden, open, read_golden, to_end};

fn format_of(name: &str) -> Format {
    iowhy_trace::open(&golden(name), &Options::default()).unwrap().format()
}

/// What the small files of libCacheSim's formats hold: (seconds, id, bytes, writes, name space).
const STORY: [(u64, u64, u64, bool, u32); 6] = [
    (100, 7, 4096, false, 1),
    (100, 9, 512, true, 1),
    (101, 7, 4096, false, 2),
    (105, 8, 100, false, 1),
    (106, 9, 512, false, 1),
    (107, 7, 4096, true, 1),
];

const NEXT: [u64; 6] = [2, 4, 5, NEVER, NEVER, NEVER];

fn story(ops: bool, name_space: bool, next: bool) -> Vec<Request> {
    STORY
        .iter()
        .zip(NEXT)
        .map(|(&(s, object, bytes, write, ns), next_use)| Request {
            time_ns: s * 1_000_000_000,
            object,
            bytes,
            op: if ops && write { Op::Write } else { Op::Read },
            stream: if name_space { ns } else { 0 },
            next_use: if next { next_use } else { 0 },
            ..Request::default()
        })
        .collect()
}

#[test]
fn records_of_libcachesim() {
    for (name, format, expected) in [
        ("small.oracleGeneral", Format::OracleGeneral, story(false, false, true)),
        ("small.oracleGeneralOpNS", Format::OracleGeneralOpNs, story(true, true, true)),
        ("small.twr", Format::Twr, story(true, false, false)),
        ("small.twrNS", Format::TwrNs, story(true, true, false)),
        ("types.lcs", Format::Lcs, story(false, false, true)),
    ] {
        assert_eq!(format_of(name), format);
        let read = read_golden(name, &Options::default());
        assert_eq!(read.requests, expected, "{name}");
        assert_eq!((read.kind, read.below_page_cache), (Kind::Keys, None));
        assert!(read.losses.is_empty() || read.lost("time to live") == 6, "{name} {:?}", read.losses);
    }
    for name in ["version2.lcs", "version3.lcs"] {
        let expected: Vec<Request> =
            story(true, false, true).into_iter().map(|r| Request { stream: 5, ..r }).collect();
        assert_eq!(read_golden(name, &Options::default()).requests, expected, "{name}");
    }
}

#[test]
fn a_next_use_that_counts_from_nought_is_seen() {
    let mut bytes = std::fs::read(golden("small.oracleGeneral")).unwrap();
    for record in bytes.chunks_exact_mut(24) {
        let next = i64::from_le_bytes(record[16..].try_into().unwrap());
        if next > 0 {
            record[16..].copy_from_slice(&(next - 1).to_le_bytes());
        }
    }
    let read = to_end(open(bytes, &Options::default()).unwrap(), 100).unwrap();
    assert_eq!(read.requests, story(false, false, true));
}

#[test]
fn scsi_commands() {
    for (name, format, latency) in
        [("small.vscsi1", Format::Vscsi1, false), ("small.vscsi2", Format::Vscsi2, true)]
    {
        assert_eq!(format_of(name), format);
        let read = read_golden(name, &Options::default());
        let expected: Vec<Request> = STORY
            .iter()
            .zip(0u64..)
            .map(|(&(s, sector, bytes, write, _), i)| Request {
                time_ns: s * 1_000_000_000 + i * 1000,
                offset: sector * 8 * 512,
                bytes,
                op: if write { Op::Write } else { Op::Read },
                latency_ns: if latency { (250 + i) * 1000 } else { 0 },
                ..Request::default()
            })
            .collect();
        assert_eq!(read.requests, expected, "{name}");
        assert_eq!((read.kind, read.below_page_cache), (Kind::Blocks, Some(true)));
    }
}

#[test]
fn published_block_traces() {
    let read = read_golden("msr.csv", &Options::default());
    assert_eq!(format_of("msr.csv"), Format::Msr);
    let first = Request {
        time_ns: 12_816_637_200_306_162_900,
        offset: 383_496_192,
        bytes: 32768,
        latency_ns: 41_300,
        ..Request::default()
    };
    assert_eq!((read.requests.len(), read.requests[0], read.lost("size 0")), (4, first, 1));
    let objects: Vec<&str> = read.requests.iter().map(|r| read.names.get(r.object).unwrap()).collect();
    assert_eq!(objects, ["hm_0", "hm_0", "hm_1", "hm_0"]);

    let read = read_golden("alibaba.csv", &Options::default());
    let first = Request {
        time_ns: 1_577_808_144_360_767_000,
        object: 419,
        offset: 8_792_731_648,
        bytes: 16384,
        op: Op::Write,
        ..Request::default()
    };
    assert_eq!(
        (format_of("alibaba.csv"), read.requests.len(), read.requests[0]),
        (Format::Alibaba, 4, first)
    );

    let read = read_golden("tencent.csv", &Options::default());
    let last = Request {
        time_ns: 1_538_323_201_000_000_000,
        object: 1088,
        offset: 22_338_752 * 512,
        bytes: 4096,
        op: Op::Write,
        ..Request::default()
    };
    assert_eq!((format_of("tencent.csv"), read.requests.len(), read.requests[3]), (Format::Tencent, 4, last));

    let read = read_golden("systor17.csv", &Options::default());
    let first = Request {
        time_ns: 1_456_135_200_013_118_000,
        offset: 110_237_466_624,
        bytes: 8192,
        latency_ns: 482_000,
        op: Op::Write,
        ..Request::default()
    };
    assert_eq!((format_of("systor17.csv"), read.requests[0]), (Format::Systor17, first));
    assert_eq!((read.requests.len(), read.requests[2].object, read.requests[2].latency_ns), (3, 3, 0));
    assert_eq!(
        (read.lost("no answer"), read.losses.list()[0].first.unwrap().to_string()),
        (1, "line 4".to_owned())
    );
}

#[test]
fn keys_of_twitter() {
    let read = read_golden("twitter.csv", &Options::default());
    assert_eq!(format_of("twitter.csv"), Format::Twitter);
    let r = &read.requests;
    assert_eq!(r.iter().map(|r| r.op).collect::<Vec<_>>(), [Op::Read, Op::Read, Op::Write, Op::Discard]);
    assert_eq!(r.iter().map(|r| r.bytes).collect::<Vec<_>>(), [230, 54, 737, 27]);
    assert_eq!(r.iter().map(|r| r.stream).collect::<Vec<_>>(), [4, 5, 6, 5]);
    assert!(r[0].object == r[2].object && r[1].object == r[3].object && r[0].object != r[1].object);
    assert_eq!((r[3].time_ns, read.lost("time to live")), (1_000_000_000, 1));
}

#[test]
fn named_columns() {
    let read = read_golden("named.csv", &Options::default());
    assert_eq!((format_of("named.csv"), read.kind, read.below_page_cache), (Format::Csv, Kind::Blocks, None));
    let of = |time_ns, op, sector: u64, sectors: u64, stream| Request {
        time_ns,
        op,
        offset: sector * 512,
        bytes: sectors * 512,
        stream,
        ..Request::default()
    };
    let expected = [
        of(1_000_000, Op::Read, 2048, 8, 17),
        of(1_500_000, Op::Write, 2056, 8, 18),
        of(1_400_000, Op::Read, 0, 1, 17),
        of(2_000_000, Op::Sync, 0, 1, 17),
    ];
    assert_eq!(read.requests, expected);
    assert_eq!((read.lost("no number"), read.lost("unknown operation"), read.lost("backwards")), (1, 1, 1));

    let read = read_golden("quoted.csv", &Options::default());
    let ids: Vec<u64> = read.requests.iter().map(|r| r.object).collect();
    assert!(ids.len() == 4 && ids[0] == ids[2] && ids[1] == 42 && ids[3] != ids[0]);
    assert_eq!((read.requests[0].time_ns, read.lost("left out")), (500_000_000, 1));
}

#[test]
fn columns_of_the_user() {
    let options = |columns: &str| Options {
        columns: Some(ColumnSpec::parse("--columns", columns).unwrap()),
        ..Options::default()
    };
    let read =
        to_end(open(b"x;5;77;9\ny;6;78;10\n".to_vec(), &options("time_ms=2,id=3,size=4")).unwrap(), 10)
            .unwrap();
    assert_eq!(read.requests[1], Request { time_ns: 6_000_000, object: 78, bytes: 10, ..Request::default() });
    let read =
        to_end(open(b"when,what\n1,5\n".to_vec(), &options("time=when,id=what")).unwrap(), 10).unwrap();
    assert_eq!(
        read.requests,
        [Request { time_ns: 1_000_000_000, object: 5, bytes: 1, ..Request::default() }]
    );
    let read = open(b"time,id\n1577808144360767,1\n".to_vec(), &Options::default())
        .and_then(|t| to_end(t, 10))
        .unwrap();
    assert_eq!((read.requests.len(), read.lost("--columns time_us")), (0, 1));
    let problem = open(b"1,2\n".to_vec(), &options("time=1,id=x")).unwrap_err();
    assert!(problem.message.contains("header does not have these names: 1, x"), "{problem}");
    assert_eq!(problem.exit_code(), 2);
    let msr = std::fs::read(golden("msr.csv")).unwrap();
    let options = Options { format: Some(Format::Msr), ..options("id=1") };
    assert!(open(msr, &options).unwrap_err().message.contains("--columns"));
}

#[test]
fn iologs() {
    let read = read_golden("fio2.iolog", &Options::default());
    assert_eq!((format_of("fio2.iolog"), read.kind), (Format::FioIolog2, Kind::Files));
    let of = |us: u64, object, op, offset, bytes| Request {
        time_ns: us * 1000,
        object,
        op,
        offset,
        bytes,
        ..Request::default()
    };
    let expected = [
        of(0, 0, Op::Open, 0, 0),
        of(0, 0, Op::Write, 0, 4096),
        of(1500, 0, Op::Read, 4096, 8192),
        of(1500, 1, Op::Open, 0, 0),
        of(2000, 1, Op::Discard, 0, 65536),
        of(2000, 0, Op::Sync, 0, 0),
        of(2000, 0, Op::Close, 0, 0),
    ];
    assert_eq!(read.requests, expected);
    assert_eq!((read.names.get(1), read.lost("not a line of an iolog")), (Some("/data/b"), 1));

    let read = read_golden("fio3.iolog", &Options::default());
    let count = |op| read.requests.iter().filter(|r| r.op == op).count();
    assert_eq!(format_of("fio3.iolog"), Format::FioIolog3);
    assert_eq!([Op::Read, Op::Write, Op::Sync, Op::Open, Op::Close].map(count), [7, 13, 3, 1, 1]);
    assert_eq!(
        read.requests[1],
        Request { time_ns: 219_000, op: Op::Write, offset: 12288, bytes: 4096, ..Request::default() }
    );
    assert!(read.losses.is_empty(), "{:?}", read.losses);
}

#[test]
fn block_layer_events_in_both_forms() {
    let issue = Options { action: Some(BlockAction::Issue), ..Options::default() };
    let device = 8 << 20;
    let ahead = Marks::READ_AHEAD.with(Marks::METADATA);
    let sync = Marks::SYNC.with(Marks::FUA);
    let base = Request { object: device, stream: 42, ..Request::default() };

    let read = read_golden("small.blktrace", &Options::default());
    let expected = [
        Request { time_ns: 1000, offset: 2048 * 512, bytes: 4096, marks: ahead, ..base },
        Request { time_ns: 1500, offset: 4096 * 512, bytes: 8192, marks: sync, op: Op::Write, ..base },
        Request { time_ns: 13000, op: Op::Sync, ..base },
        Request { time_ns: 14000, offset: 8192 * 512, bytes: 1 << 20, op: Op::Discard, ..base },
    ];
    assert_eq!(format_of("small.blktrace"), Format::Blktrace);
    assert_eq!((read.requests.as_slice(), read.names.get(device)), (&expected[..], Some("8,0")));
    assert!(read.losses.is_empty(), "{:?}", read.losses);

    // Issued and completed out of order, one failed, one never completed.
    let read = read_golden("small.blktrace", &issue);
    let expected = [
        Request { time_ns: 2000, latency_ns: 10_000, marks: ahead.with(Marks::FAILED), ..expected[0] },
        Request { time_ns: 2100, latency_ns: 6900, ..expected[1] },
        Request { time_ns: 15000, ..expected[3] },
    ];
    assert_eq!(read.requests, expected);
    assert_eq!(read.lost("no completion in the trace"), 1);

    let read = read_golden("small.blkparse", &Options::default());
    let base = Request { object: device, stream: 697, ..Request::default() };
    let expected = [
        Request { time_ns: 829, offset: 223_490 * 512, bytes: 4096, marks: Marks::READ_AHEAD, ..base },
        Request {
            time_ns: 10_200,
            offset: 500_000 * 512,
            bytes: 8192,
            marks: Marks::SYNC.with(Marks::METADATA),
            op: Op::Write,
            ..base
        },
        Request { time_ns: 20_000, op: Op::Sync, ..base },
        Request {
            time_ns: 500_000,
            offset: 8_388_608 * 512,
            bytes: 1 << 20,
            marks: Marks::SYNC,
            op: Op::Discard,
            stream: 700,
            ..base
        },
    ];
    assert_eq!((format_of("small.blkparse"), read.requests.as_slice()), (Format::Blkparse, &expected[..]));
    assert!(read.losses.is_empty(), "{:?}", read.losses);

    let read = read_golden("small.blkparse", &issue);
    let expected = [
        Request { time_ns: 12_100, latency_ns: 388_000, ..expected[0] },
        Request { time_ns: 13_100, latency_ns: 287_000, ..expected[1] },
    ];
    assert_eq!(read.requests, expected);
}

#[test]
fn disksim_fiu_and_ids() {
    let read = read_golden("disksim.txt", &Options::default());
    assert_eq!((format_of("disksim.txt"), read.requests.len()), (Format::DiskSim, 4));
    let second = Request {
        time_ns: 12_402_100,
        offset: 303_575 * 512,
        bytes: 4096,
        op: Op::Write,
        ..Request::default()
    };
    assert_eq!((read.requests[1], read.requests[2].object), (second, 1));
    assert_eq!((read.lost("size 0"), read.lost("flags")), (1, 1));

    let read = read_golden("fiu.txt", &Options::default());
    assert_eq!((format_of("fiu.txt"), read.requests.len(), read.lost("APPEND")), (Format::Fiu, 7, 1));
    let marks: Vec<Marks> = read.requests[1..4].iter().map(|r| r.marks).collect();
    assert_eq!(marks, [Marks::MISS, Marks::HIT, Marks::default()]);
    assert_eq!(
        (read.requests[0].op, read.requests[4].op, read.requests[6].op),
        (Op::Open, Op::Sync, Op::Close)
    );
    assert_eq!((read.kind, read.below_page_cache), (Kind::Files, Some(false)));

    let read = read_golden("ids.txt", &Options::default());
    assert_eq!(format_of("ids.txt"), Format::Txt);
    assert_eq!(read.requests.iter().map(|r| r.object).collect::<Vec<_>>(), [17, 4, 17, u64::MAX]);
}

/// Gives its bytes a few at a time, as a pipe may.
struct Drops(Vec<u8>, usize);

impl io::Read for Drops {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min(self.1).min(self.0.len());
        into[..n].copy_from_slice(&self.0[..n]);
        self.0.drain(..n);
        Ok(n)
    }
}

#[test]
fn what_comes_out_does_not_depend_on_how_it_comes_in() {
    for (name, bytes) in all_golden() {
        let whole = to_end(open(bytes.clone(), &Options::default()).unwrap(), usize::MAX >> 1).unwrap();
        for (portion, most) in [(1, 1), (7, 2), (100, 1000)] {
            let source = Box::new(Drops(bytes.clone(), portion));
            let trace = iowhy_trace::from_reader("drops", source, &Options::default()).unwrap();
            let read = to_end(trace, most).unwrap();
            assert_eq!(
                (read.requests, read.losses),
                (whole.requests.clone(), whole.losses.clone()),
                "{name} {portion}"
            );
        }
    }
}

#[test]
fn compressed_files_are_the_same_files() {
    for (name, bytes) in all_golden() {
        let plain = to_end(open(bytes.clone(), &Options::default()).unwrap(), 100).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let zstd =
            ruzstd::encoding::compress_to_vec(bytes.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        for packed in [gzip.finish().unwrap(), zstd] {
            let read = to_end(open(packed, &Options::default()).unwrap(), 100).unwrap();
            assert_eq!(
                (read.requests, read.losses),
                (plain.requests.clone(), plain.losses.clone()),
                "{name}"
            );
        }
    }
}

#[test]
fn refusals_name_file_cause_and_fix() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("empty"), b"").unwrap();
    std::fs::write(at("junk"), b"\x01\x02\x03\x04 nothing at all").unwrap();
    for (path, words) in [
        (at("missing"), "cannot open it"),
        (dir.path().to_owned(), "directory"),
        (at("empty"), "empty"),
        (at("junk"), "no format that is known"),
    ] {
        let problem = iowhy_trace::open(&path, &Options::default()).unwrap_err();
        let named = problem.message.contains(&format!("`{}`", path.display()));
        assert!(named && problem.message.contains(words) && problem.hint.is_some(), "{problem}");
        assert_eq!(problem.exit_code(), 2);
    }
    // A format that is forced on a file of which nothing fits.
    let options = Options { format: Some(Format::Msr), ..Options::default() };
    let problem = to_end(open(b"hello\nworld\n".to_vec(), &options).unwrap(), 10).unwrap_err();
    assert!(problem.message.contains("line 1") && problem.exit_code() == 1, "{problem}");
}

#[test]
fn a_file_without_line_ends_costs_no_memory() {
    let options = Options {
        format: Some(Format::Csv),
        columns: Some(ColumnSpec::parse("--columns", "id=1,size=2").unwrap()),
        ..Options::default()
    };
    let endless = io::Cursor::new(b"1,2\n".to_vec())
        .chain(io::repeat(b'7').take(50 << 20))
        .chain(io::Cursor::new(b"\n3,4\n"));
    let trace = iowhy_trace::from_reader("endless", Box::new(endless), &options).unwrap();
    let read = to_end(trace, 10).unwrap();
    assert_eq!((read.requests.len(), read.lost("longer than")), (2, 1));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_field() {
    for (content, format) in [
        ("time,id,size\n1,2,4096\n", Format::Csv),
        ("419,W,26624,4096,1577808000000046\n", Format::Alibaba),
        ("17\n4\n", Format::Txt),
    ] {
        let read = |bytes: Vec<u8>| {
            let source = Box::new(std::io::Cursor::new(bytes));
            let mut trace = iowhy_trace::from_reader("x", source, &Options::default()).unwrap();
            assert_eq!(trace.format(), format);
            let mut requests = Vec::new();
            while trace.fill(&mut requests, 100).unwrap() > 0 {}
            (requests, trace.losses().clone())
        };
        let plain = read(content.as_bytes().to_vec());
        assert!(!plain.0.is_empty());
        assert_eq!(read([b"\xef\xbb\xbf", content.as_bytes()].concat()), plain);
    }
}
