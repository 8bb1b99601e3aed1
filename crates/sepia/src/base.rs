//! What every other module of the program may use and what uses none of them: the table of reasons,
//! the counters, the bounds and the two quantities with units.
//!
//! Nothing here reads time, touches a socket or makes a thread.

mod answer;
pub mod counters;
pub mod duration;
pub mod hop;
pub mod limits;
pub mod reason;

mod refused;
pub mod size;

pub use answer::LocalAnswer;
pub use counters::{Counter, CounterReader, Counters, Gauge, Snapshot};
pub use duration::Period;
pub(crate) use duration::millis;
pub use hop::Hop;
pub use reason::{Level, Reason, Retry, Source};
pub use size::ByteSize;
