//! Tests of the rule `server-bound`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{BlockSample, RpcUse, ServedMount, ServerProcess};

use super::*;
use crate::classify::{Operation, Wait};
use crate::findings::synthetic::{Run, access, slow_and_repaired};

fn run(share: f64) -> Run {
    Run::new(10.0)
        .wait(Operation::Read, Wait::Server, share)
        .busy(Operation::User, Layer::Program, 1.0 - share)
        .io((1000, 65_536_000), (0, 0))
        .file(65_536_000, |f| {
            (f.reads, f.mount_point) = (access(1000, 65_536_000, 1000), Some("/mnt/slow".into()))
        })
        .with(|p| {
            let server = Some(ServerProcess { pid: 77, name: "slowfs".into() });
            let mount = |point: &str, server| ServedMount {
                point: point.into(),
                file_system: "fuse".into(),
                source: "slow".into(),
                server,
                rpc: None,
            };
            p.served = vec![mount("/mnt/other", None), mount("/mnt/slow", server)];
        })
}

#[test]
fn a_slow_server_is_named_with_its_mount_and_process() {
    let found = slow_and_repaired(FindingId::ServerBound, &run(0.8), &run(0.01));
    assert!(found.advice.contains("slowfs (process 77, `iowhy attach 77`)"), "{found:?}");
    assert_eq!(found.gain, None);
}

#[test]
fn a_busy_disk_beside_it_is_not_blamed() {
    let beside = run(0.8).device(0.9, 4.0, |d| d.reads = 100_000).with(|p| {
        p.block = Some(BlockSample { kernel_requests: 100_000, ..BlockSample::default() });
    });
    assert_eq!(beside.ids(), [FindingId::ServerBound]);
}

#[test]
fn nfs_says_where_its_requests_spent_their_time() {
    let nfs = run(0.8).with(|p| {
        p.served[1].rpc = Some(RpcUse {
            requests: 1000,
            queue_ns: 1_000_000_000,
            rtt_ns: 6_000_000_000,
            execute_ns: 7_500_000_000,
            ..RpcUse::default()
        });
    });
    let found = &nfs.findings()[0];
    assert!(
        found.evidence.iter().any(|e| e.contains("1.00 ms in the client's queue, 6.00 ms on the wire")),
        "{found:?}"
    );
}
