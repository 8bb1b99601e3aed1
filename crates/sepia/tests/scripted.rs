//! Scripted cases: an origin, the proxy between, a client. Each reads as a story, and each runs
//! twice: answers straight from the readiness event, and by tasks. The bytes must be the same.

#[path = "scripted/bed.rs"]
mod bed;
#[path = "scripted/hits.rs"]
mod hits;
