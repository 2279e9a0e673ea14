//! The published experiments: their tables as data, and the small models that their authors had in mind.
//!
//! Each model is fitted on stated tables alone and predicts others; what it misses is part of its answer. What may not
//! enter: measurements of this machine, and figures that no table or fit has given.
#![forbid(unsafe_code)]

pub mod functions;
pub mod layers;
pub mod overlap;
pub mod pool;
pub mod published;
pub mod splits;
pub mod transfer;
pub mod verdict;

/// Error of a prediction in per cent of what was published; `None` where that is zero or no number.
pub fn error_percent(predicted: f64, published: f64) -> Option<f64> {
    let error = (predicted / published - 1.0) * 100.0;
    error.is_finite().then_some(error)
}
