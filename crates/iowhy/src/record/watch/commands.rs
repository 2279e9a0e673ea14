//! Processes by command.

use iowhy_core::profile::Profile;
use iowhy_diagnose::account::{Account, Command, WallClock, commands};

use super::CommandRecord;

/// The table.
pub(super) fn records(profile: &Profile, account: &Account, clock: &WallClock) -> Vec<CommandRecord> {
    let record = |c: Command| CommandRecord {
        command: c.name,
        count: c.processes,
        cpu_s: c.cpu_ns / 1e9,
        path_wait_s: c.path_ns / 1e9,
        wall_s: c.wall_ns / 1e9,
        wall_share: if account.wall_ns > 0.0 { c.wall_ns / account.wall_ns } else { 0.0 },
        read_bytes: c.own.map(|own| own.read_bytes),
        written_bytes: c.own.map(|own| own.written_bytes),
        syncs: c.own.map(|own| own.syncs),
        waits_for: c.waits_for,
    };
    commands(profile, account, clock).into_iter().map(record).collect()
}
