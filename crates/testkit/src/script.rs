//! The scripted test bed: an origin and a client that do exactly what a test's story says.
//!
//! ```
//! use testkit::script::{ScriptedClient, ScriptedOrigin};
//!
//! let origin = ScriptedOrigin::start();
//! origin.connection(|c| {
//!     let request = c.expect_head();
//!     assert_eq!(request.field("host"), Some("a"));
//!     c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
//!     c.expect_end();
//! });
//!
//! // A test of a proxy connects to the proxy here.
//! let mut client = ScriptedClient::connect(origin.address());
//! client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
//! assert_eq!(client.expect_response("GET").text(), "hello");
//! client.close();
//! origin.finish();
//! ```
//!
//! Nothing here sleeps. Every expectation has ten seconds ([`DEADLINE`]) and then fails with what
//! it waited for and what had come until then: a bound for a broken program, never a measure.

mod gate;
mod link;
mod origin;
mod peer;

use std::time::Duration;

pub use gate::Gate;
pub use origin::{RefusingAddress, ScriptedOrigin};
pub use peer::{AsClient, AsOrigin, OriginConnection, Peer, ScriptedClient};

/// How long one expectation waits before it fails.
pub const DEADLINE: Duration = Duration::from_secs(10);
