//! Sepia: a caching HTTP proxy as a library with a thin program around it.
//!
//! [`Proxy`] starts and stops inside another program or a test; [`config`] is what it is told,
//! [`cli`] is the program. ARCHITECTURE.md has the map of everything behind.

pub mod admin;
pub mod base;
mod cache;
pub mod cli;
mod client;
pub mod config;
pub mod demo;
mod engine;
mod exchange;
mod io;
mod local;
pub mod log;
mod origin;
mod policy;
mod proxy;
mod tunnel;

pub use io::clock::Clock;
pub use proxy::{Builder, Proxy, Signals};
