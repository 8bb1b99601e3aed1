//! What tests, the lab and the demo need on both sides of a proxy: origins, clients, a site.
//!
//! - [`site`], [`origin`]: a generated site and the HTTP/1.1 origin server that serves it.
//! - [`script`]: an origin and a client that do exactly what a test's story says.
//! - [`websocket`]: an echo origin and a client of RFC 6455.
//! - [`tree`]: a folder tree on disk for `wget -r`.
//! - [`message`]: the lenient message reader below all of them.
//!
//! This crate must never know a proxy: cases with one live in that proxy's tests. Nor does it use
//! the codec of the program under test, since a fault there would then be on both sides of every
//! assertion and show in none.
//!
//! Everything blocks: one thread a connection, a bound on their number, all joined on drop. The
//! few dozen connections of a test need no more, and a blocking story reads from top to bottom.

#![forbid(unsafe_code)]

pub mod message;
pub mod origin;
pub mod script;
mod server;
pub mod site;
pub mod tree;
pub mod websocket;
