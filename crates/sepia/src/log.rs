//! What the program writes for its operator while it runs: a line an exchange on standard output if
//! asked for, and notices on standard error.
//!
//! Neither may ever stop a worker. Both go through a bounded buffer to a thread of their own; what
//! does not fit is dropped and counted.

pub mod access;
pub mod notice;
pub mod record;
mod timestamp;

pub use access::{AccessLog, LogWriter};
pub use notice::Notices;
pub use record::Record;
