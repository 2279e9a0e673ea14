//! Known answers for plans, repairs and words.
