//! What an administrator may choose within RFC 9111.
//!
//! Only choices that the RFC leaves open, or that are stricter than it, belong here; nothing in
//! this struct can make a decision that the RFC forbids.

/// The options of every decision; `Default` is the safe profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Heuristic freshness, as percentage of the time since Last-Modified. 10 is the fraction that
    /// RFC 9111 section 4.2.2 calls typical. 0 switches heuristics off.
    pub heuristic_percent: u32,
    /// The most that a heuristic may grant, in seconds. One day: longer than that RFC 2616
    /// (section 13.2.4) wanted the user warned, and a guess that nobody signed should not outlive
    /// the mistake by more.
    pub heuristic_cap: u32,
    /// Whether heuristics are also used for responses to requests with Cookie. The RFC allows it;
    /// off, because sites that forget to mark personal pages rarely forget to set cookies.
    pub heuristic_with_cookie: bool,
    /// Whether responses with Set-Cookie are stored. RFC 9111 section 7.3 leaves it to explicit
    /// directives; off, because a stored cookie logs one client in as another.
    pub store_set_cookie: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            heuristic_percent: 10,
            heuristic_cap: 24 * 60 * 60,
            heuristic_with_cookie: false,
            store_set_cookie: false,
        }
    }
}
