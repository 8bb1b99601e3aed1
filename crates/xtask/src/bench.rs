//! `cargo xtask bench`: what a hit and an idle connection cost.
//!
//! Machines drift; ratios within one run do not. So what is compared alternates in short pairs, and
//! CPU time counts, not wall time.

mod cpu;
mod floor;
pub mod hit;
pub mod idle;
mod instructions;
mod pairs;
mod probe;
mod wrk;
