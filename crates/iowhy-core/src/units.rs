//! Sizes, times, rates and their text forms, read and written in one place.
