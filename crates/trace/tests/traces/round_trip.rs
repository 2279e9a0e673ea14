//! There and back: what a format carries comes back as it was, and what it does not carry is counted.

use std::io::{Read as _, Seek};

use iowhy_core::request::{Marks, NEVER, Op, Request};
use iowhy_trace::write::{self, Written};
use iowhy_trace::{Format, Kind, Names, Options};
use proptest::prelude::*;

use crate::common::{Read, all_golden, open, to_end};

fn written(requests: &[Request], names: &Names, format: Format, kind: Kind) -> (Vec<u8>, Written) {
    let file = tempfile::tempfile().unwrap();
    let mut writer = write::into_file(file.try_clone().unwrap(), format, kind).unwrap();
    for batch in requests.chunks(7) {
        writer.write(batch, names).unwrap();
    }
    let written = writer.finish().unwrap();
    let mut bytes = Vec::new();
    let mut file = file;
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, written.bytes);
    (bytes, written)
}

fn there_and_back(requests: &[Request], format: Format, kind: Kind) -> (Read, Written) {
    let (bytes, written) = written(requests, &Names::default(), format, kind);
    let options = Options { format: Some(format), ..Options::default() };
    let read = to_end(open(bytes, &options).unwrap(), 100).unwrap();
    (read, written)
}

/// The index of the next request for the same object, for each.
fn next_uses(requests: &[Request]) -> Vec<u64> {
    let next = |i: usize| {
        requests[i + 1..]
            .iter()
            .position(|r| r.object == requests[i].object)
            .map_or(NEVER, |gap| (i + 1 + gap) as u64)
    };
    (0..requests.len()).map(next).collect()
}

fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(&Op::ALL[..])
}

/// Any request at all.
fn any_request() -> impl Strategy<Value = Request> {
    let wide = || (any::<u64>(), 0u32..64).prop_map(|(x, shift)| x >> shift);
    (wide(), wide(), wide(), wide(), (wide(), wide(), any::<u32>(), op(), any::<u8>())).prop_map(
        |(time_ns, object, offset, bytes, (latency_ns, next_use, stream, op, marks))| Request {
            time_ns,
            object,
            offset,
            bytes,
            latency_ns,
            next_use,
            stream,
            op,
            marks: Marks(marks & 0x7f),
        },
    )
}

/// A read or write of whole sectors at whole microseconds.
fn transfer() -> impl Strategy<Value = Request> {
    (0u64..1 << 40, 0u64..4, 0u64..1 << 40, 1u64..1 << 20, 0u64..1 << 30, any::<bool>()).prop_map(
        |(us, object, sector, sectors, latency_us, write)| Request {
            time_ns: us * 1000,
            object,
            offset: sector * 512,
            bytes: sectors * 512,
            latency_ns: latency_us * 1000,
            op: if write { Op::Write } else { Op::Read },
            ..Request::default()
        },
    )
}

/// A look-up of a key at a whole second.
fn look_up() -> impl Strategy<Value = Request> {
    (
        0u64..1 << 32,
        0u64..20,
        1u64..1 << 32,
        0u32..1 << 24,
        prop::sample::select(vec![Op::Read, Op::Write, Op::Discard]),
    )
        .prop_map(|(s, object, bytes, stream, op)| Request {
            time_ns: s * 1_000_000_000,
            object,
            bytes,
            stream,
            op,
            ..Request::default()
        })
}

fn list<T: Strategy>(of: T) -> impl Strategy<Value = Vec<T::Value>> {
    prop::collection::vec(of, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn csv_keeps_everything(requests in list(any_request()), kind in prop::sample::select(&Kind::ALL[..])) {
        let (read, written) = there_and_back(&requests, Format::Csv, kind);
        prop_assert_eq!(&read.requests, &requests);
        prop_assert_eq!((read.kind, read.below_page_cache), (kind, kind.below_page_cache()));
        prop_assert!(written.losses.is_empty());
    }

    #[test]
    fn vscsi_keeps_transfers(requests in list(transfer())) {
        let requests: Vec<Request> = requests.into_iter().map(|r| Request { object: 0, bytes: (r.bytes % (1 << 32)) | 512, ..r }).collect();
        let (read, written) = there_and_back(&requests, Format::Vscsi2, Kind::Blocks);
        prop_assert_eq!(&read.requests, &requests);
        prop_assert!(written.losses.is_empty());
    }

    #[test]
    fn disksim_keeps_transfers_but_latency(requests in list(transfer())) {
        let (read, written) = there_and_back(&requests, Format::DiskSim, Kind::Blocks);
        let expected: Vec<Request> = requests.iter().map(|r| Request { latency_ns: 0, ..*r }).collect();
        prop_assert_eq!(&read.requests, &expected);
        let latencies = requests.iter().filter(|r| r.latency_ns > 0).count() as u64;
        prop_assert_eq!(written.losses.list().iter().map(|l| l.count).sum::<u64>(), latencies);
    }

    #[test]
    fn iologs_keep_transfers(requests in list(transfer()), version_3: bool) {
        let mut requests = requests;
        requests.sort_by_key(|r| r.time_ns);
        let format = if version_3 { Format::FioIolog3 } else { Format::FioIolog2 };
        let (read, written) = there_and_back(&requests, format, Kind::Files);
        let moved: Vec<Request> = read.requests.iter().filter(|r| r.op != Op::Open).copied().collect();
        prop_assert_eq!(moved.len(), requests.len());
        let first = requests[0].time_ns;
        for (back, r) in moved.iter().zip(&requests) {
            prop_assert_eq!((back.op, back.offset, back.bytes), (r.op, r.offset, r.bytes));
            // Version 2 puts waits below 100 us off.
            let late = (r.time_ns - first) - back.time_ns;
            prop_assert!(late == 0 || !version_3 && late < 100_000);
            let name = format!("object-{}", r.object);
            prop_assert_eq!(read.names.get(back.object), Some(name.as_str()));
        }
        prop_assert_eq!(written.losses.count("opens that fio needs: added"), read.requests.len() as u64 - moved.len() as u64);
    }

    #[test]
    fn oracle_general_keeps_keys_and_knows_the_next_use(requests in list(look_up())) {
        let (read, written) = there_and_back(&requests, Format::OracleGeneral, Kind::Keys);
        let kept: Vec<Request> = requests.iter().filter(|r| r.op != Op::Discard).copied().collect();
        let expected: Vec<Request> = kept
            .iter()
            .zip(next_uses(&kept))
            .map(|(r, next_use)| Request { next_use, op: Op::Read, stream: 0, ..*r })
            .collect();
        prop_assert_eq!(&read.requests, &expected);
        prop_assert_eq!(written.requests, kept.len() as u64);
        prop_assert_eq!(written.losses.count("discards: no equivalent, left out"), (requests.len() - kept.len()) as u64);
    }

    #[test]
    fn lcs_keeps_keys_operations_and_tenants(requests in list(look_up())) {
        let (read, written) = there_and_back(&requests, Format::Lcs, Kind::Keys);
        let expected: Vec<Request> =
            requests.iter().zip(next_uses(&requests)).map(|(r, next_use)| Request { next_use, ..*r }).collect();
        prop_assert_eq!(&read.requests, &expected);
        prop_assert!(written.losses.is_empty());
    }

    #[test]
    fn ids_keep_the_order_of_keys(requests in list(look_up())) {
        let (read, _) = there_and_back(&requests, Format::Txt, Kind::Keys);
        let kept: Vec<u64> = requests.iter().filter(|r| r.op != Op::Discard).map(|r| r.object).collect();
        prop_assert_eq!(read.requests.iter().map(|r| r.object).collect::<Vec<_>>(), kept);
    }

    #[test]
    fn any_request_can_be_written_to_any_format(requests in list(any_request()), kind in prop::sample::select(&Kind::ALL[..])) {
        for format in Format::all().filter(|format| format.writable()) {
            let (bytes, written) = written(&requests, &Names::default(), format, kind);
            prop_assert!(written.requests <= requests.len() as u64);
            let options = Options { format: Some(format), ..Options::default() };
            // What we wrote is never refused, though requests beyond the range of a format may be.
            let read = open(bytes, &options).and_then(|trace| to_end(trace, 100));
            prop_assert!(read.is_ok() || written.requests == 0 || format == Format::DiskSim, "{:?} {:?}", format, read.err());
        }
    }
}

#[test]
fn names_of_files_survive_in_csv_and_iologs() {
    for (name, bytes) in
        all_golden().into_iter().filter(|(name, _)| name.ends_with(".strace") || name.ends_with("fio3.iolog"))
    {
        let first = to_end(open(bytes, &Options::default()).unwrap(), 100).unwrap();
        for format in [Format::Csv, Format::FioIolog3] {
            let (bytes, _) = written(&first.requests, &first.names, format, first.kind);
            // The format is found out again.
            let trace = open(bytes, &Options::default()).unwrap();
            assert_eq!(trace.format(), format);
            let second = to_end(trace, 100).unwrap();
            let paths = |read: &Read| -> Vec<(Op, String, u64)> {
                let moved = read.requests.iter().filter(|r| r.bytes > 0);
                moved.map(|r| (r.op, read.names.get(r.object).unwrap().to_owned(), r.bytes)).collect()
            };
            assert_eq!(paths(&first), paths(&second), "{name} {format:?}");
        }
    }
}

#[test]
fn every_golden_file_goes_through_every_format() {
    for (name, bytes) in all_golden() {
        let read = to_end(open(bytes, &Options::default()).unwrap(), 100).unwrap();
        for format in Format::all().filter(|format| format.writable()) {
            let (bytes, first) = written(&read.requests, &read.names, format, read.kind);
            assert!(first.requests > 0 || first.losses.list().len() == 1, "{name} {format:?} {first:?}");
            // What was written once is carried whole the second time: nothing is lost twice but what is said anew.
            let options = Options { format: Some(format), ..Options::default() };
            let back = to_end(open(bytes.clone(), &options).unwrap(), 100).unwrap();
            let kind = if format == Format::Csv { back.kind } else { format.kind() };
            let (again, second) = written(&back.requests, &back.names, format, kind);
            assert_eq!(second.requests, back.requests.len() as u64, "{name} {format:?} {second:?}");
            if matches!(
                format,
                Format::Csv | Format::OracleGeneral | Format::Vscsi2 | Format::DiskSim | Format::Txt
            ) {
                assert_eq!(again, bytes, "{name} {format:?}");
            }
        }
    }
}

#[test]
fn a_sector_is_the_id_of_a_block() {
    let block = |object, offset| Request { object, offset, bytes: 512, ..Request::default() };
    let requests = [block(0, 42_932_745 * 512), block(3, 512), block(0, 100)];
    let (read, written) = there_and_back(&requests, Format::OracleGeneral, Kind::Blocks);
    let ids: Vec<u64> = read.requests.iter().map(|r| r.object).collect();
    assert_eq!(ids, [42_932_745, 3 << 48 | 1, requests[2].key()]);
    assert_eq!(written.losses.count("address that is no sector: a hash of it becomes the id"), 1);
}

#[test]
fn an_output_is_not_overwritten_unasked_and_half_a_file_does_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (out, input) = (dir.path().join("out.csv"), dir.path().join("in.csv"));
    std::fs::write(&input, "time,id,size\n1,2,3\n").unwrap();
    let create =
        |path: &std::path::Path, format, force| write::create(path, format, Kind::Keys, force, &input);
    drop(create(&out, Format::Csv, false).unwrap());
    assert!(!out.exists());
    std::fs::write(&out, "mine").unwrap();
    let problem = create(&out, Format::Csv, false).unwrap_err();
    assert!(problem.message.contains("out.csv") && problem.hint.unwrap().contains("--force"));
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    assert!(create(&input, Format::Csv, true).unwrap_err().message.contains("input itself"));
    let problem = create(&out, Format::Strace, true).unwrap_err();
    assert!(problem.message.contains("not written") && problem.hint.unwrap().contains("oracleGeneral"));
    let mut writer = create(&out, Format::Csv, true).unwrap();
    writer.write(&[Request::default()], &Names::default()).unwrap();
    assert_eq!(writer.finish().unwrap().requests, 1);
    assert!(std::fs::read_to_string(&out).unwrap().ends_with("0,0,read,0,0,0,0,,0,\n"));
}
