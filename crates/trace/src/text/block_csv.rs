//! Published block traces as CSV without named columns: MSR Cambridge, Alibaba, Tencent, SYSTOR '17.
//!
//! Sources: the traces' own read-me files. Offsets become bytes, times nanoseconds since the trace's own epoch.

use iowhy_core::request::{Op, Request};

use super::fields::separated;
use super::{LineParser, Refusal};
use crate::number;
use crate::reader::Sink;

/// Bytes in a sector of the formats that count in sectors.
const SECTOR: u64 = 512;

/// Reason: nothing is moved.
pub(crate) const SIZE_ZERO: &str = "size 0: left out";

fn push(request: Request, sink: &mut Sink<'_>) {
    if request.bytes == 0 { sink.lose(SIZE_ZERO) } else { sink.push(request) }
}

/// `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: Windows file times (100 ns since 1601), bytes. One
/// object a host and disk, named as the files are: `hm_0`.
pub(super) struct Msr;

impl LineParser for Msr {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of an MSR trace: left out";
        if line.is_empty() || line.starts_with(b"Timestamp,Hostname") {
            return Ok(());
        }
        let [time, host, disk, op, offset, bytes, response] = separated(line, b',').ok_or(REFUSED)?;
        let op = match op {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            _ => return Err(REFUSED),
        };
        let number = |text| number::integer(text).ok_or(REFUSED);
        number(disk)?;
        let mut name = [0u8; 64];
        let length = host.len() + 1 + disk.len();
        let name = name.get_mut(..length).ok_or(REFUSED)?;
        name[..host.len()].copy_from_slice(host);
        name[host.len()] = b'_';
        name[host.len() + 1..].copy_from_slice(disk);
        push(
            Request {
                time_ns: number(time)?.checked_mul(100).ok_or("time beyond 2^64 ns: left out")?,
                object: sink.names.number(name),
                offset: number(offset)?,
                bytes: number(bytes)?,
                latency_ns: number(response)?.saturating_mul(100),
                op,
                ..Request::default()
            },
            sink,
        );
        Ok(())
    }
}

/// `device_id,opcode(R|W),offset,length,timestamp`: bytes and microseconds.
pub(super) struct Alibaba;

impl LineParser for Alibaba {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of an Alibaba trace: left out";
        if line.is_empty() || line.starts_with(b"device_id,") {
            return Ok(());
        }
        let [device, op, offset, bytes, time] = separated(line, b',').ok_or(REFUSED)?;
        let op = match op {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(REFUSED),
        };
        let number = |text| number::whole(text).ok_or(REFUSED);
        push(
            Request {
                time_ns: number(time)?.checked_mul(1000).ok_or("time beyond 2^64 ns: left out")?,
                object: number(device)?,
                offset: number(offset)?,
                bytes: number(bytes)?,
                op,
                ..Request::default()
            },
            sink,
        );
        Ok(())
    }
}

/// `Timestamp,Offset,Size,IOType,VolumeID`: seconds, sectors, 0 read and 1 write.
pub(super) struct Tencent;

impl LineParser for Tencent {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of a Tencent trace: left out";
        const BEYOND: Refusal = "address or time beyond 2^64: left out";
        if line.is_empty() || line.starts_with(b"Timestamp,Offset") {
            return Ok(());
        }
        let [time, offset, size, op, volume] = separated(line, b',').ok_or(REFUSED)?;
        let op = match op {
            b"0" => Op::Read,
            b"1" => Op::Write,
            _ => return Err(REFUSED),
        };
        let number = |text| number::whole(text).ok_or(REFUSED);
        push(
            Request {
                time_ns: number(time)?.checked_mul(1_000_000_000).ok_or(BEYOND)?,
                object: number(volume)?,
                offset: number(offset)?.checked_mul(SECTOR).ok_or(BEYOND)?,
                bytes: number(size)?.checked_mul(SECTOR).ok_or(BEYOND)?,
                op,
                ..Request::default()
            },
            sink,
        );
        Ok(())
    }
}

/// `Timestamp,Response,IOType,LUN,Offset,Size`: seconds since 1970 with nine decimals (true to microseconds), bytes. A
/// blank type means that no response was recorded.
pub(super) struct Systor17;

impl LineParser for Systor17 {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of a SYSTOR '17 trace: left out";
        if line.is_empty() || line.starts_with(b"Timestamp,Response") {
            return Ok(());
        }
        let [time, response, op, lun, offset, bytes] = separated(line, b',').ok_or(REFUSED)?;
        let op = match op {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"" => {
                sink.lose("no answer, so neither read nor write is known: left out");
                return Ok(());
            }
            _ => return Err(REFUSED),
        };
        let latency_ns = match response {
            b"" => 0,
            text => number::scaled(text, 9).ok_or(REFUSED)?,
        };
        let number = |text| number::whole(text).ok_or(REFUSED);
        push(
            Request {
                time_ns: number::scaled(time, 9).ok_or(REFUSED)?,
                object: number(lun)?,
                offset: number(offset)?,
                bytes: number(bytes)?,
                latency_ns,
                op,
                ..Request::default()
            },
            sink,
        );
        Ok(())
    }
}
