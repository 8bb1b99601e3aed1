//! Every bound of the program, with its unit and its sentence.
//!
//! A buffer, queue, wait list, retry or depth that is not bounded by a line here, by the byte
//! budget or by an argument of a pure crate is a fault. What an operator may change stands in the
//! options table of the configuration, with these as defaults.

use std::time::Duration;

/// Bytes of a request or response head, the lines' ends included (option `limits.head`).
pub const HEAD_BYTES: usize = 64 * 1024;
/// Bytes of one line of a head (option `limits.line`).
pub const LINE_BYTES: usize = 16 * 1024;
/// Field lines of a head (option `limits.fields`).
pub const FIELDS: usize = 128;
/// Chunk lines with their extensions, and trailers, of a message's content.
pub const CONTENT: wire::ContentLimits = wire::ContentLimits {
    chunk_line_bytes: 4 * 1024,
    trailer_bytes: 16 * 1024,
    trailer_fields: 64,
};

/// Client connections open at once (option `limits.sessions`), before the descriptors set a bound.
pub const SESSIONS: usize = 100_000;
/// Connections accepted from one listener in one turn of a worker's loop.
pub const ACCEPTS_PER_TURN: usize = 64;
/// Answers to pipelined requests that a session gets in one turn, so that it cannot starve others.
pub const ANSWERS_PER_TURN: usize = 32;
/// Length of a listener's queue; the kernel may cap it.
pub const BACKLOG: i32 = 65_535;
/// A queue that the kernel caps below this is worth a warning.
pub const BACKLOG_WARN_BELOW: i32 = 1_024;

/// Bytes that one read takes from a socket; the buffer is the worker's and borrowed for the event.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of answers that one session may have waiting for its socket beside stored content.
pub const WRITE_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of content that are copied behind their head into one write instead of being vectored.
pub const SMALL_CONTENT_BYTES: usize = 16 * 1024;

/// Bytes that are read and discarded after an answer that closes, so that no reset destroys it.
pub const LINGER_BYTES: u64 = 2 * 1024 * 1024;
/// The longest time for which they are.
pub const LINGER: Duration = Duration::from_secs(2);

/// Origin servers that are remembered; those that are out of use leave first.
pub const ORIGINS: usize = 10_000;
/// Connections that may work for one origin server at once.
pub const SLOTS_PER_ORIGIN: usize = 1_024;
/// For how long an idle connection is kept if its origin server does not say less.
pub const IDLE_AT_ORIGIN: Duration = Duration::from_secs(60);
/// Requests that wait for a connection to one origin server.
pub const WAITERS_PER_ORIGIN: usize = 4_096;
/// The longest wait for a connection to an origin server.
pub const SLOT_WAIT: Duration = Duration::from_secs(30);
/// Idle connections to one origin server that one worker keeps.
pub const IDLE_PER_ORIGIN: usize = 64;
/// Interim responses (1xx) before the final one.
pub const INTERIM_RESPONSES: usize = 16;
/// Addresses of one name that are tried.
pub const ADDRESSES_PER_NAME: usize = 8;
/// Resolved names that are remembered.
pub const RESOLVED_NAMES: usize = 4_096;
/// For how long a resolved name is remembered: the system's resolver does not tell its own time.
pub const RESOLVED_FOR: Duration = Duration::from_secs(30);
/// For how long the failure to resolve a name is remembered.
pub const UNRESOLVED_FOR: Duration = Duration::from_secs(5);
/// Threads that resolve names.
pub const RESOLVER_THREADS: usize = 4;
/// Values of Max-Forwards that are understood; more digits mean this many.
pub const MAX_FORWARDS: u32 = 1_000_000;

/// Access log lines of one worker that are not yet handed over, in bytes.
pub const LOG_LOCAL_BYTES: usize = 64 * 1024;
/// Access log lines that wait for the writer thread, in bytes.
pub const LOG_SHARED_BYTES: usize = 256 * 1024;
/// Bytes of one part of an access log line that a request chooses.
pub const LOG_PART_BYTES: usize = 2 * 1024;
/// The longest time for which the end of the program waits for the access log's reader.
pub const LOG_DRAIN: Duration = Duration::from_secs(1);
/// A notice of the same reason is printed at most once in this time; the others are counted.
pub const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Connections to the control socket or the admin listener that are served at once.
pub const ADMIN_CONNECTIONS: usize = 8;
/// Bytes of a request head on the control socket.
pub const ADMIN_HEAD_BYTES: usize = 8 * 1024;
/// The longest silence of a peer on the control socket.
pub const ADMIN_SILENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer of the control socket that its client reads.
pub const ADMIN_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of a configuration file.
pub const CONFIG_BYTES: u64 = 4 * 1024 * 1024;
/// Mistakes of a configuration file that are shown.
pub const CONFIG_MISTAKES: usize = 50;
