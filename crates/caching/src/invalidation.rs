//! Which stored responses an unsafe request makes invalid (RFC 9111 section 4.4).
//!
//! This says *that* and names candidates; resolving them against the target URI, and refusing those
//! of another origin, is the caller's, who knows its cache keys.

use wire::{Known, Method, RequestHead, ResponseHead};

use crate::freshness::single_value;

/// What a response to an unsafe request invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation<'a> {
    /// Nothing.
    None,
    /// All stored responses of the target URI, and of the URIs in these fields if they have the
    /// same origin as the target. Values are as received: absolute or relative references.
    Target {
        /// The Location field.
        location: Option<&'a [u8]>,
        /// The Content-Location field.
        content_location: Option<&'a [u8]>,
    },
}

impl Invalidation<'_> {
    /// Stable name for logs.
    pub const fn token(&self) -> &'static str {
        match self {
            Invalidation::None => "none",
            Invalidation::Target { .. } => "unsafe-method",
        }
    }

    /// The text that asks for the decision.
    pub const fn section(&self) -> &'static str {
        "RFC 9111 §4.4"
    }

    /// The decision as a sentence for a person.
    pub const fn sentence(&self) -> &'static str {
        match self {
            Invalidation::None => "Nothing stored can have changed by this exchange.",
            Invalidation::Target { .. } => "The method may have changed the target at its origin.",
        }
    }
}

/// Judges a final response to any request. Methods of unknown safety count as unsafe; CONNECT does
/// not, as its target is no resource that could be stored.
pub fn invalidation<'a>(request: RequestHead<'_>, response: ResponseHead<'a>) -> Invalidation<'a> {
    let method = request.method();
    let is_harmless = method.is_safe() || matches!(method, Method::Connect);
    if is_harmless || !matches!(response.status(), 200..400) {
        return Invalidation::None;
    }
    let fields = response.fields();
    Invalidation::Target {
        location: single_value(fields, Known::Location),
        content_location: single_value(fields, Known::ContentLocation),
    }
}
