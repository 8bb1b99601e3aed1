//! Freshness: how long a response may be reused and how old it is (RFC 9111 section 4.2).
//!
//! Computed once when a response arrives; afterwards an age is two additions. The formulas keep the
//! RFC's names. Wall time is used only at arrival, against the origin's dates; residence is counted
//! on the monotonic clock, so that a clock that jumps makes nothing fresher. Fractions of a second
//! are cut off, as the RFC's own arithmetic is in whole seconds.

use wire::{Fields, Known, date};

use crate::directives::{DELTA_SECONDS_MAX, ResponseDirectives, decode_delta_seconds};
use crate::moment::Moment;
use crate::options::Options;
use crate::rules::rules;

rules! {
    /// Where a freshness lifetime comes from, in the order of precedence (RFC 9111 section 4.2.1).
    LifetimeSource {
        SharedMaxAge: "s-maxage", "RFC 9111 §5.2.2.10",
            "The response states a lifetime for shared caches.";
        MaxAge: "max-age", "RFC 9111 §5.2.2.1",
            "The response states a lifetime.";
        Expires: "expires", "RFC 9111 §5.3",
            "The response states when it expires.";
        Heuristic: "heuristic", "RFC 9111 §4.2.2",
            "The lifetime is estimated from how long the response had not changed.";
        None: "none", "RFC 9111 §4.2.1",
            "The response states no lifetime and allows no estimate.";
    }
}

impl LifetimeSource {
    /// Whether the origin stated the lifetime itself.
    pub const fn is_explicit(self) -> bool {
        match self {
            LifetimeSource::SharedMaxAge | LifetimeSource::MaxAge | LifetimeSource::Expires => true,
            LifetimeSource::Heuristic | LifetimeSource::None => false,
        }
    }
}

/// When a response was asked for and came, and how old it said it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The RFC's request_time: when its request was sent.
    pub requested: Moment,
    /// The RFC's response_time: when its head was complete.
    pub received: Moment,
    /// Its Age field in seconds, as from [`age_value`].
    pub age_value: u32,
}

impl Arrival {
    /// Seconds between the request and the response, on the monotonic clock.
    pub fn response_delay(&self) -> u32 {
        elapsed_seconds(self.requested, self.received)
    }

    /// The age by the Age field: section 4.2.3. The whole delay counts as age, as the response may
    /// have been made when the request had just been sent.
    pub fn corrected_age_value(&self) -> u32 {
        add_seconds(self.age_value, self.response_delay())
    }

    /// The age by the clocks: section 4.2.3. 0 if the origin's clock is ahead.
    pub fn apparent_age(&self, date_value: i64) -> u32 {
        span_seconds(date_value, self.received.wall)
    }

    /// The age on arrival: section 4.2.3. The greater of both, as a cache on the way may know no
    /// Age field and the origin's clock may be wrong.
    pub fn corrected_initial_age(&self, date_value: i64) -> u32 {
        self.apparent_age(date_value).max(self.corrected_age_value())
    }
}

/// The freshness of a stored response; kept with it.
///
/// Made by [`crate::store_decision`] and [`crate::freshened_decision`], asked by
/// [`crate::reuse_decision`] at each reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The RFC's response_time.
    pub received: Moment,
    /// Age on arrival, in seconds (section 4.2.3).
    pub corrected_initial_age: u32,
    /// Seconds from its generation during which the response is fresh (section 4.2.1).
    pub freshness_lifetime: u32,
    /// What the lifetime was taken from.
    pub source: LifetimeSource,
    /// The response says no-cache: never reused without validation (section 5.2.2.4).
    pub must_validate: bool,
    /// must-revalidate, proxy-revalidate or s-maxage: never reused when stale (section 4.2.4).
    pub must_revalidate: bool,
    /// Made invalid after it was stored (section 4.4): never reused without validation.
    pub is_invalidated: bool,
}

impl Freshness {
    /// Computes the freshness of a response with this status and these fields. The Age field is
    /// taken from `arrival`, as stored fields have none.
    pub fn of(status: u16, fields: Fields<'_>, arrival: &Arrival, options: &Options) -> Freshness {
        let directives = ResponseDirectives::decode(fields);
        Freshness::of_directives(status, fields, &directives, arrival, options)
    }

    pub(crate) fn of_directives(
        status: u16,
        fields: Fields<'_>,
        directives: &ResponseDirectives,
        arrival: &Arrival,
        options: &Options,
    ) -> Freshness {
        let date_value = date_value(fields, arrival.received);
        let (freshness_lifetime, source) = explicit_lifetime(fields, directives, arrival.received)
            .or_else(|| {
                let may_estimate = directives.public || is_heuristically_cacheable(status);
                let lifetime = heuristic_lifetime(fields, arrival.received, options)?;
                may_estimate.then_some((lifetime, LifetimeSource::Heuristic))
            })
            .unwrap_or((0, LifetimeSource::None));
        Freshness {
            received: arrival.received,
            corrected_initial_age: arrival.corrected_initial_age(date_value),
            freshness_lifetime,
            source,
            must_validate: directives.no_cache,
            must_revalidate: directives.must_revalidate_here(),
            is_invalidated: false,
        }
    }

    /// Seconds since the response came to be stored here (section 4.2.3).
    pub fn resident_time(&self, now: Moment) -> u32 {
        elapsed_seconds(self.received, now)
    }

    /// The age in seconds, as the Age field of a reuse states it (section 4.2.3).
    pub fn current_age(&self, now: Moment) -> u32 {
        add_seconds(self.corrected_initial_age, self.resident_time(now))
    }

    /// The RFC's response_is_fresh (section 4.2). Says nothing about `must_validate`.
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.freshness_lifetime > self.current_age(now)
    }

    /// Seconds of freshness left, negative when stale: the `ttl` of Cache-Status (RFC 9211
    /// section 2.3).
    pub fn remaining(&self, now: Moment) -> i64 {
        i64::from(self.freshness_lifetime) - i64::from(self.current_age(now))
    }

    /// Seconds past the freshness lifetime; 0 while fresh.
    pub fn staleness(&self, now: Moment) -> u32 {
        self.current_age(now).saturating_sub(self.freshness_lifetime)
    }

    /// Ends freshness now, such as for a soft purge. Stale grants remain possible.
    pub fn mark_stale(&mut self) {
        self.freshness_lifetime = 0;
    }

    /// Makes the response unusable without validation (section 4.4); no grant overrides this.
    pub fn invalidate(&mut self) {
        self.is_invalidated = true;
    }
}

/// The Age field of a response in seconds. The first member counts, anything else than
/// delta-seconds counts as absent (RFC 9111 section 5.1).
pub fn age_value(response: Fields<'_>) -> u32 {
    response.members(Known::Age).next().and_then(decode_delta_seconds).unwrap_or(0)
}

/// Statuses whose responses may be given an estimated lifetime (RFC 9110 section 15.1). 206 is
/// missing, as parts are not stored.
pub(crate) fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The value of a field that must stand on one line only; None if it does not.
pub(crate) fn single_value(fields: Fields<'_>, field: Known) -> Option<&[u8]> {
    let mut lines = fields.all(field);
    let value = lines.next()?;
    lines.next().is_none().then_some(value)
}

/// The RFC's date_value: the Date field, or the time of receipt where it is missing or invalid
/// (RFC 9110 section 6.6.1).
fn date_value(fields: Fields<'_>, received: Moment) -> i64 {
    decode_date(fields, Known::Date, received).unwrap_or(received.wall)
}

fn decode_date(fields: Fields<'_>, field: Known, received: Moment) -> Option<i64> {
    single_value(fields, field).and_then(|value| date::decode_at(value, received.wall))
}

/// The lifetime that the response states itself (section 4.2.1).
fn explicit_lifetime(
    fields: Fields<'_>,
    directives: &ResponseDirectives,
    received: Moment,
) -> Option<(u32, LifetimeSource)> {
    if let Some(seconds) = directives.s_maxage {
        return Some((seconds, LifetimeSource::SharedMaxAge));
    }
    if let Some(seconds) = directives.max_age {
        return Some((seconds, LifetimeSource::MaxAge));
    }
    if !fields.has(Known::Expires) {
        return None;
    }
    // An invalid date, "0" above all, is in the past (section 5.3).
    let lifetime = decode_date(fields, Known::Expires, received)
        .map_or(0, |expires| span_seconds(date_value(fields, received), expires));
    Some((lifetime, LifetimeSource::Expires))
}

/// An estimate from Last-Modified (section 4.2.2); None if it would be 0.
fn heuristic_lifetime(fields: Fields<'_>, received: Moment, options: &Options) -> Option<u32> {
    let last_modified = decode_date(fields, Known::LastModified, received)?;
    let unchanged = span_seconds(last_modified, date_value(fields, received));
    let estimate = u64::from(unchanged) * u64::from(options.heuristic_percent) / 100;
    let lifetime = u32::try_from(estimate)
        .map_or(options.heuristic_cap, |estimate| estimate.min(options.heuristic_cap));
    (lifetime > 0).then_some(lifetime.min(DELTA_SECONDS_MAX))
}

fn add_seconds(a: u32, b: u32) -> u32 {
    a.saturating_add(b).min(DELTA_SECONDS_MAX)
}

/// Whole seconds from one moment to the other on the monotonic clock.
fn elapsed_seconds(from: Moment, to: Moment) -> u32 {
    let seconds = to.monotonic.saturating_sub(from.monotonic) / 1_000;
    u32::try_from(seconds).map_or(DELTA_SECONDS_MAX, |seconds| seconds.min(DELTA_SECONDS_MAX))
}

/// Seconds from one date to the other; 0 if it lies before.
fn span_seconds(from: i64, to: i64) -> u32 {
    let seconds = to.saturating_sub(from).clamp(0, i64::from(DELTA_SECONDS_MAX));
    u32::try_from(seconds).expect("clamped to 0..=2^31")
}
