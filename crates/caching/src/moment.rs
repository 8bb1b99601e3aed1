//! A point in time, told by the caller.
//!
//! Two clocks, because each is right for one question only: dates in fields are wall time, which an
//! operator or NTP may set at will; the time a response has been resident must never shrink nor
//! leap with it (RFC 9111 section 4.2.3 asks for a clock, not for a calendar).

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since the epoch; may jump either way.
    pub wall: i64,
    /// Milliseconds since an arbitrary start; never goes back. It should go on counting while the
    /// machine sleeps (CLOCK_BOOTTIME), as responses age then too.
    pub monotonic: u64,
}
