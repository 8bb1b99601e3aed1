//! caching
