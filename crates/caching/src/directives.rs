//! Cache-Control of requests and responses, decoded.
//!
//! RFC 9111 sections 5.2 and 5.4. Decoding never fails: names are compared without case, arguments
//! may be tokens or quoted strings, unknown directives are ignored (section 5.2.3), and a malformed
//! or repeated one takes its most restrictive reading (section 4.2.1), as a response that is
//! validated once too often does no harm. A directive qualified by field names (`no-cache="x"`,
//! `private="x"`) counts as unqualified, which the same sections allow.

use wire::{Fields, Known};

/// The greatest delta-seconds; all arithmetic saturates here (RFC 9111 section 1.2.2).
pub(crate) const DELTA_SECONDS_MAX: u32 = 1 << 31;

/// How much staleness a client accepts (RFC 9111 section 5.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxStale {
    /// No argument: a stale response of any age.
    Any,
    /// Stale by at most that many seconds.
    Seconds(u32),
}

/// The cache directives of a request (RFC 9111 section 5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// Validate before reuse. Also set by `Pragma: no-cache` if there is no Cache-Control
    /// (section 5.4).
    pub no_cache: bool,
    /// Store nothing of this exchange. Reuse of what is stored already remains allowed.
    pub no_store: bool,
    /// Answer from the store or with 504, which is the caller's to do.
    pub only_if_cached: bool,
    /// Do not transform the content.
    pub no_transform: bool,
    /// The greatest age the client wants, in seconds; 0 if malformed.
    pub max_age: Option<u32>,
    /// The response shall be fresh for at least that many seconds more; ignored if malformed.
    pub min_fresh: Option<u32>,
    /// The staleness the client accepts; none at all if malformed.
    pub max_stale: Option<MaxStale>,
}

impl RequestDirectives {
    /// Decodes the directives of a request's fields. Costs two bit tests where there are none.
    pub fn decode(fields: Fields<'_>) -> Self {
        let mut directives = RequestDirectives::default();
        if !fields.has(Known::CacheControl) {
            directives.no_cache =
                fields.has(Known::Pragma) && fields.lists(Known::Pragma, b"no-cache");
            return directives;
        }
        for member in fields.members(Known::CacheControl) {
            directives.handle(&Directive::decode(member));
        }
        directives
    }

    fn handle(&mut self, directive: &Directive<'_>) {
        if directive.is(b"max-age") {
            self.max_age = least(self.max_age, directive.lifetime());
        } else if directive.is(b"no-cache") {
            self.no_cache = true;
        } else if directive.is(b"no-store") {
            self.no_store = true;
        } else if directive.is(b"only-if-cached") {
            self.only_if_cached = true;
        } else if directive.is(b"no-transform") {
            self.no_transform = true;
        } else if directive.is(b"min-fresh") {
            self.min_fresh = self.min_fresh.max(directive.seconds());
        } else if directive.is(b"max-stale") {
            let accepted = match directive.argument {
                Argument::Missing => MaxStale::Any,
                Argument::Malformed | Argument::Value(_) => MaxStale::Seconds(directive.lifetime()),
            };
            self.max_stale = Some(match (self.max_stale, accepted) {
                (Some(MaxStale::Seconds(a)), MaxStale::Seconds(b)) => MaxStale::Seconds(a.min(b)),
                (Some(earlier), MaxStale::Any) => earlier,
                (_, accepted) => accepted,
            });
        }
    }
}

/// The cache directives of a response (RFC 9111 section 5.2.2, RFC 5861, RFC 8246).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// Do not store.
    pub no_store: bool,
    /// Validate before each reuse; also if qualified by field names.
    pub no_cache: bool,
    /// Not for shared caches; also if qualified by field names.
    pub private: bool,
    /// May be stored and shared even where that would be refused by default.
    pub public: bool,
    /// Never reuse when stale.
    pub must_revalidate: bool,
    /// As `must_revalidate`, for shared caches.
    pub proxy_revalidate: bool,
    /// Store only if the status is understood, and then in spite of `no_store`.
    pub must_understand: bool,
    /// Do not transform the content.
    pub no_transform: bool,
    /// Does not change while fresh (RFC 8246).
    pub immutable: bool,
    /// Freshness lifetime in seconds; 0 if malformed.
    pub max_age: Option<u32>,
    /// Freshness lifetime in shared caches, in seconds; 0 if malformed.
    pub s_maxage: Option<u32>,
    /// Seconds of staleness during which it may be served while being validated (RFC 5861).
    pub stale_while_revalidate: Option<u32>,
    /// Seconds of staleness during which it may stand in for an error (RFC 5861).
    pub stale_if_error: Option<u32>,
}

impl ResponseDirectives {
    /// Decodes the directives of a response's fields. Pragma has no meaning in responses.
    pub fn decode(fields: Fields<'_>) -> Self {
        let mut directives = ResponseDirectives::default();
        for member in fields.members(Known::CacheControl) {
            // A string that does not end has swallowed the directives behind it: assume the worst.
            directives.no_store |= is_unterminated(member);
            directives.handle(&Directive::decode(member));
        }
        directives
    }

    fn handle(&mut self, directive: &Directive<'_>) {
        let flags: [(&[u8], &mut bool); 9] = [
            (b"no-store", &mut self.no_store),
            (b"no-cache", &mut self.no_cache),
            (b"private", &mut self.private),
            (b"public", &mut self.public),
            (b"must-revalidate", &mut self.must_revalidate),
            (b"proxy-revalidate", &mut self.proxy_revalidate),
            (b"must-understand", &mut self.must_understand),
            (b"no-transform", &mut self.no_transform),
            (b"immutable", &mut self.immutable),
        ];
        for (name, flag) in flags {
            if directive.is(name) {
                *flag = true;
                return;
            }
        }
        let durations: [(&[u8], &mut Option<u32>); 4] = [
            (b"max-age", &mut self.max_age),
            (b"s-maxage", &mut self.s_maxage),
            (b"stale-while-revalidate", &mut self.stale_while_revalidate),
            (b"stale-if-error", &mut self.stale_if_error),
        ];
        for (name, duration) in durations {
            if directive.is(name) {
                *duration = least(*duration, directive.lifetime());
                return;
            }
        }
    }

    /// Whether a directive lets a shared cache keep a response to a request with Authorization
    /// (RFC 9111 section 3.5).
    pub fn may_share_authorized(&self) -> bool {
        self.must_revalidate || self.public || self.s_maxage.is_some()
    }

    /// Whether staleness is forbidden here (RFC 9111 section 4.2.4). s-maxage implies
    /// proxy-revalidate (section 5.2.2.10).
    pub fn must_revalidate_here(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.s_maxage.is_some()
    }
}

/// Decodes delta-seconds (RFC 9111 section 1.2.2): digits only, saturating at 2^31.
pub(crate) fn decode_delta_seconds(value: &[u8]) -> Option<u32> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u32, |seconds, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(seconds.saturating_mul(10).saturating_add(digit).min(DELTA_SECONDS_MAX))
    })
}

/// Whether a quoted string is still open at the end of a member.
fn is_unterminated(member: &[u8]) -> bool {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in member {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    is_quoted
}

fn least(earlier: Option<u32>, seconds: u32) -> Option<u32> {
    Some(earlier.map_or(seconds, |earlier| earlier.min(seconds)))
}

/// One member of Cache-Control.
struct Directive<'a> {
    name: &'a [u8],
    argument: Argument<'a>,
}

enum Argument<'a> {
    Missing,
    Malformed,
    Value(&'a [u8]),
}

impl<'a> Directive<'a> {
    fn decode(member: &'a [u8]) -> Self {
        let Some(equals) = member.iter().position(|&byte| byte == b'=') else {
            return Directive { name: member, argument: Argument::Missing };
        };
        let (written, argument) = (&member[..equals], &member[equals + 1..]);
        let name = wire::trim_ows(written);
        // White space around "=" is outside the grammar. The name still counts, so that the rest
        // of the directive cannot be hidden by it, but its argument is not trusted.
        let argument = if name.len() != written.len() {
            Argument::Malformed
        } else if let [b'"', quoted @ .., b'"'] = argument {
            Argument::Value(quoted)
        } else {
            Argument::Value(argument)
        };
        Directive { name, argument }
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn seconds(&self) -> Option<u32> {
        match self.argument {
            Argument::Value(value) => decode_delta_seconds(value),
            Argument::Missing | Argument::Malformed => None,
        }
    }

    /// The argument as a duration that grants something: nothing where it is malformed.
    fn lifetime(&self) -> u32 {
        self.seconds().unwrap_or(0)
    }
}
