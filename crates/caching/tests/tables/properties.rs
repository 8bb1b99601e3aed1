//! Properties over arbitrary field values: no panic, and time never makes anything better.

use caching::{
    Freshness, Moment, Options, RangeOutcome, Received, RequestDirectives, Reuse, StoreDecision,
    Variant, encode_validation_fields, evaluate_preconditions, evaluate_range, freshen,
    freshened_decision, invalidation, lookup_rule, may_freshen, reuse_decision, store_decision,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq};

use crate::heads::{Request, Response, Section, after, date, get, with_lines};

/// Names that decisions read, and one that they do not know.
const NAMES: &[&str] = &[
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Age",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Encoding",
    "Content-Location",
    "Cookie",
    "Date",
    "ETag",
    "Expires",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "Last-Modified",
    "Location",
    "Pragma",
    "Range",
    "Set-Cookie",
    "Upgrade",
    "Vary",
    "X-Unknown",
];

/// Pieces that values are made of, so that they are nearly right often enough.
const PIECES: &[&str] = &[
    "max-age",
    "s-maxage",
    "=",
    "\"",
    ",",
    ", ",
    " ",
    "\t",
    "\\",
    "0",
    "1",
    "60",
    "2147483648",
    "99999999999999999999",
    "-",
    "no-cache",
    "no-store",
    "private",
    "public",
    "must-revalidate",
    "must-understand",
    "max-stale",
    "min-fresh",
    "only-if-cached",
    "*",
    "W/",
    "\"a\"",
    "bytes=",
    ";q=",
    "gzip",
    "Accept",
    "Cookie",
    "x-unknown",
    "GMT",
    "h2c",
    "upgrade",
];

fn value() -> impl Strategy<Value = Vec<u8>> {
    let visible = prop_oneof![0x20u8..0x7F, 0x80u8..=0xFF];
    prop_oneof![
        3 => vec(select(PIECES), 0..8).prop_map(|pieces| pieces.concat().into_bytes()),
        1 => vec(visible, 0..40),
        1 => (-2_000_000_000i64..2_000_000_000).prop_map(|seconds| date(seconds).into_bytes()),
    ]
}

fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line = (select(NAMES), value());
    vec(line.prop_map(|(name, value)| [name.as_bytes(), b": ", &value].concat()), 0..8)
}

/// Fields of each syntax, with values so short that two requests often nearly agree.
const NOMINATED: &[&str] = &["Accept", "Accept-Encoding", "Cookie", "X-Unknown"];

fn nominated_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let value = vec(select(&["a", "A", "b", ",", " ", ";", "\""][..]), 0..3);
    let line = (select(NOMINATED), value);
    vec(line.prop_map(|(name, value)| format!("{name}: {}", value.concat()).into_bytes()), 0..3)
}

fn request(method: &str, lines: &[Vec<u8>]) -> Option<Request> {
    let head = format!("{method} / HTTP/1.1\r\nHost: example.org\r\n").into_bytes();
    Request::decode(with_lines(head, lines.iter().map(Vec::as_slice)))
}

fn response(status: u16, lines: &[Vec<u8>]) -> Option<Response> {
    let head = format!("HTTP/1.1 {status} \r\n").into_bytes();
    Response::decode(with_lines(head, lines.iter().map(Vec::as_slice)))
}

fn moment() -> impl Strategy<Value = Moment> {
    (any::<i64>(), any::<u64>()).prop_map(|(wall, monotonic)| Moment { wall, monotonic })
}

fn section(lines: &[Vec<u8>]) -> Section {
    Section::decode(lines.iter().flat_map(|line| [line, b"\r\n".as_slice()].concat()).collect())
}

/// How willing a decision is to serve without the origin.
fn willingness(reuse: Reuse) -> u8 {
    match reuse {
        Reuse::Validate(_) => 0,
        Reuse::Stale(_) => 1,
        Reuse::Fresh => 2,
    }
}

proptest! {
    #[test]
    fn no_field_value_panics(
        method in select(&["GET", "HEAD", "POST"][..]),
        (asked, answered, confirmed) in (lines(), lines(), lines()),
        status in 100u16..1000,
        times in (moment(), moment()),
        length in any::<u64>(),
    ) {
        let (Some(request), Some(response)) = (request(method, &asked), response(status, &answered))
        else {
            return Ok(());
        };
        let exchange = Received {
            request: request.head(),
            response: response.head(),
            requested: times.0,
            received: times.1,
        };
        let options = Options::default();
        let (stored, not_modified) = (section(&answered), section(&confirmed));
        let _ = store_decision(&exchange, &options);
        let _ = freshened_decision(&exchange, 200, not_modified.fields(), &options);
        let _ = lookup_rule(request.head());
        let _ = invalidation(request.head(), response.head());
        let _ = evaluate_preconditions(request.head(), 200, stored.fields());
        let _ = may_freshen(stored.fields(), not_modified.fields());
        let _ = encode_validation_fields(stored.fields(), &mut Vec::new());
        let mut updated = Vec::new();
        freshen(stored.fields(), not_modified.fields(), &mut updated);
        let _ = evaluate_range(request.head(), stored.fields(), length);
    }

    #[test]
    fn a_stored_response_only_gets_older(
        asked in lines(),
        (mut answered, lifetime) in (lines(), 0u32..200),
        times in (0i64..200, 0i64..200),
        wall in any::<i64>(),
    ) {
        answered.push(format!("Cache-Control: max-age={lifetime}").into_bytes());
        let (Some(request), Some(response)) = (request("GET", &[]), response(200, &answered))
        else {
            return Ok(());
        };
        let exchange = Received {
            request: request.head(),
            response: response.head(),
            requested: after(0),
            received: after(0),
        };
        let StoreDecision::Store(freshness) = store_decision(&exchange, &Options::default())
        else {
            return Ok(());
        };
        let earlier = after(times.0);
        let later = Moment { wall, ..after(times.0 + times.1) };
        prop_assert!(freshness.current_age(earlier) <= freshness.current_age(later));
        prop_assert!(freshness.is_fresh(earlier) || !freshness.is_fresh(later));
        let directives = RequestDirectives::decode(section(&asked).fields());
        let reuse = |now| willingness(reuse_decision(&directives, &freshness, now));
        prop_assert!(reuse(later) <= reuse(earlier));
    }

    #[test]
    fn a_part_lies_within_the_content(first in 0u64..20, last in 0u64..20, length in 0u64..20) {
        for range in [format!("{first}-{last}"), format!("{first}-"), format!("-{last}")] {
            let request = get(&[&format!("Range: bytes={range}")]);
            let outcome = evaluate_range(request.head(), section(&[]).fields(), length);
            if let RangeOutcome::Part { first, last } = outcome {
                prop_assert!(first <= last && last < length);
            }
        }
    }

    #[test]
    fn a_shorter_max_age_is_never_fresher(a in any::<u32>(), b in any::<u32>(), at in 0i64..9_999) {
        let freshness = |seconds: u32| {
            let section = Section::new(&[&format!("Cache-Control: max-age={seconds}")]);
            let arrival = caching::Arrival {
                requested: after(0),
                received: after(0),
                age_value: 0,
            };
            Freshness::of(200, section.fields(), &arrival, &Options::default())
        };
        let (shorter, longer) = (freshness(a.min(b)), freshness(a.max(b)));
        prop_assert!(!shorter.is_fresh(after(at)) || longer.is_fresh(after(at)));
    }

    #[test]
    fn a_variant_matches_the_request_that_selected_it(
        (asked, others) in (nominated_lines(), nominated_lines()),
        names in vec(select(NOMINATED), 1..3),
    ) {
        let (Some(selecting), Some(other)) = (request("GET", &asked), request("GET", &others))
        else {
            return Ok(());
        };
        let stored = Section::new(&[&format!("Vary: {}", names.join(","))]);
        if let Ok(variant) = Variant::of(selecting.head(), stored.fields()) {
            prop_assert!(variant.matches(selecting.head()));
            // Matching and encoding agree.
            let of_other = Variant::of(other.head(), stored.fields());
            prop_assert_eq!(variant.matches(other.head()), of_other == Ok(variant));
        }
    }

    #[test]
    fn freshening_twice_changes_nothing_more((answered, confirmed) in (lines(), lines())) {
        let (stored, not_modified) = (section(&answered), section(&confirmed));
        let mut once = Vec::new();
        freshen(stored.fields(), not_modified.fields(), &mut once);
        let once = Section::decode(once);
        let mut twice = Vec::new();
        freshen(once.fields(), not_modified.fields(), &mut twice);
        prop_assert_eq!(once.fields().len(), Section::decode(twice).fields().len());
    }
}
