//! How a running proxy is watched and operated: the control socket and the admin listener.
//!
//! Both speak HTTP/1.1, so that curl and a scraper need no client of ours. They are served by their
//! own threads: whatever happens here costs the workers nothing but the reading of their counters.
//! The admin listener serves what harms nobody (`/metrics`, `/ready`); everything else asks for the
//! control socket and so for the file system's leave.

pub mod control;
pub mod live;
pub mod metrics;
mod request;
pub mod server;
pub mod status;

pub use control::ControlSocket;
pub use live::{Facts, Live, OriginLine};
pub use server::AdminServer;
