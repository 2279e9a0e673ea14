//! ruler
