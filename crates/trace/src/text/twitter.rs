//! Twitter's cache traces of 2020: `timestamp,key,key size,value size,client id,operation,TTL`.
//!
//! Keys are anonymised text; the id of a key is a hash of it, the size that of key and value together.

use iowhy_core::request::Request;

use super::fields::separated;
use super::{LineParser, Refusal};
use crate::reader::Sink;
use crate::{hash, number, op_code};

/// The parser.
pub(super) struct Twitter;

impl LineParser for Twitter {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of a Twitter trace: left out";
        if line.is_empty() {
            return Ok(());
        }
        let [time, key, key_size, value_size, client, op, ttl] = separated(line, b',').ok_or(REFUSED)?;
        if key.is_empty() || !op.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(REFUSED);
        }
        let number = |text| number::whole(text).ok_or(REFUSED);
        let client = number(client)?;
        if number(ttl)? > 0 {
            sink.lose("time to live: not kept");
        }
        let stream = u32::try_from(client).unwrap_or_else(|_| {
            sink.lose("client beyond 2^32: cut to 32 bits");
            client as u32
        });
        let op = op_code::from_word(op).ok_or("unknown operation: left out")?;
        sink.push(Request {
            time_ns: number(time)?.checked_mul(1_000_000_000).ok_or("time beyond 2^64 ns: left out")?,
            object: hash::of_name(key),
            bytes: number(key_size)?.saturating_add(number(value_size)?),
            stream,
            op,
            ..Request::default()
        });
        Ok(())
    }
}
