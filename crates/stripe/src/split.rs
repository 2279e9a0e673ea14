//! How many requests a stripe splits, exactly: counted over all offsets of a request.

use iowhy_core::stripe::Stripe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Bytes of the request.
    pub bytes: u64,
    /// Share of them that touch more than one turn.
    pub share: f64,
    /// Turns that one touches on average.
    pub transfers: f64,
    /// Disks that one keeps busy on average.
    pub disks: f64,
}

/// Requests of `bytes` at multiples of `alignment`, all equally likely; `None` for zero bytes.
///
/// Such offsets are, within a turn of I bytes, the multiples of g = gcd(alignment, I): I / g of them, of which those above
/// I - bytes split. For an alignment of one sector that gives the (S + F - 1) / S transfers of vinum(8).
pub fn split(stripe: &Stripe, bytes: u64, alignment: u64) -> Option<Split> {
    if bytes == 0 {
        return None;
    }
    let interleave = stripe.interleave();
    let grain = gcd(alignment.max(1), interleave);
    let offsets = interleave / grain;
    // A request at k * grain touches 1 + floor((k * grain + bytes - 1) / I) turns: bytes = whole * I + rest adds `whole`, and one
    // more wherever k * grain + rest > I.
    let (whole, rest) = (bytes / interleave, bytes % interleave);
    let crossing = match rest {
        0 => offsets - 1,
        // k * grain > I - rest: offsets below I.
        _ => offsets - 1 - (interleave - rest) / grain,
    };
    let transfers = match rest {
        0 => whole as f64 + crossing as f64 / offsets as f64,
        _ => whole as f64 + 1.0 + crossing as f64 / offsets as f64,
    };
    let first_alone = match (whole, rest) {
        (0, _) => offsets - crossing,
        (1, 0) => 1,
        _ => 0,
    };
    Some(Split {
        bytes,
        share: 1.0 - first_alone as f64 / offsets as f64,
        transfers,
        disks: transfers.min(stripe.members() as f64),
    })
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
