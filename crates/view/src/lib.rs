//! One neutral document (sections, tables, charts, text) and its back ends: terminal, HTML, Markdown; tables as CSV and OpenMetrics; time
//! lines for the Firefox Profiler and Perfetto.
//! Deliberately absent: records and what they mean. Everything from a record is escaped here and nowhere else.
#![forbid(unsafe_code)]

pub mod csv;
pub mod document;
pub mod escape;
pub mod html;
pub mod markdown;
pub mod openmetrics;
pub mod piece;
pub mod svg;
pub mod terminal;
pub mod timeline;
