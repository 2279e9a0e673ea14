//! Robust statistics: medians, quantiles, seeded bootstrap intervals, drift and noise, the stop rule.
