//! slots
