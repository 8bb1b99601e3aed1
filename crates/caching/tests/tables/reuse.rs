//! Lookup, reuse and invalidation.

use caching::{
    Freshness, Invalidation, LifetimeSource, PassRule, RequestDirectives, Reuse, StaleGrant,
    ValidateRule, invalidation, lookup_rule, reuse_decision,
};

use crate::heads::{Request, Response, Section, after, get};

#[test]
fn rfc9111_4_requests_that_must_reach_the_origin() {
    use PassRule::{Method, OriginPrecondition, RequestContent, Upgrade};
    let websocket = "Upgrade: websocket";
    let table: &[(&str, &[&str], Result<(), PassRule>)] = &[
        ("GET", &[], Ok(())),
        ("HEAD", &[], Ok(())),
        ("POST", &[], Err(Method)),
        ("OPTIONS", &[], Err(Method)),
        ("CONNECT", &[], Err(Method)),
        ("GET", &["Content-Length: 0"], Ok(())),
        ("GET", &["Content-Length: 3"], Err(RequestContent)),
        ("GET", &["Transfer-Encoding: chunked"], Err(RequestContent)),
        ("GET", &["If-Match: \"a\""], Err(OriginPrecondition)),
        ("GET", &["If-Unmodified-Since: x"], Err(OriginPrecondition)),
        ("GET", &["If-None-Match: \"a\"", "Range: bytes=0-1"], Ok(())),
        ("GET", &[websocket, "Connection: keep-alive, Upgrade"], Err(Upgrade)),
        ("GET", &[websocket], Ok(())),
        ("GET", &["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"], Ok(())),
        ("GET", &["Upgrade: h2c, websocket", "Connection: upgrade"], Err(Upgrade)),
    ];
    for &(method, lines, expected) in table {
        let request = Request::new(method, lines);
        assert_eq!(lookup_rule(request.head()), expected, "{method} {lines:?}");
    }
}

fn lasting(seconds: u32) -> Freshness {
    Freshness {
        received: after(0),
        corrected_initial_age: 0,
        freshness_lifetime: seconds,
        source: LifetimeSource::MaxAge,
        must_validate: false,
        must_revalidate: false,
        is_invalidated: false,
    }
}

fn decide(freshness: &Freshness, control: &str, seconds: i64) -> Reuse {
    let section = Section::new(&[&format!("Cache-Control: {control}")]);
    reuse_decision(&RequestDirectives::decode(section.fields()), freshness, after(seconds))
}

#[test]
fn rfc9111_5_2_1_request_directives_on_reuse() {
    use ValidateRule::{Expired, RequestMaxAge, RequestMinFresh, RequestNoCache};
    let table: &[(&str, i64, Reuse)] = &[
        ("", 0, Reuse::Fresh),
        ("", 59, Reuse::Fresh),
        ("", 60, Reuse::Validate(Expired)),
        ("no-cache", 0, Reuse::Validate(RequestNoCache)),
        ("no-cache, max-stale", 0, Reuse::Validate(RequestNoCache)),
        ("no-store", 0, Reuse::Fresh),
        ("only-if-cached", 60, Reuse::Validate(Expired)),
        ("max-age=10", 10, Reuse::Fresh),
        ("max-age=10", 11, Reuse::Validate(RequestMaxAge)),
        ("max-age=0", 0, Reuse::Fresh),
        ("max-age=0", 1, Reuse::Validate(RequestMaxAge)),
        ("max-age=100", 60, Reuse::Validate(Expired)),
        ("max-age=65, max-stale", 66, Reuse::Validate(RequestMaxAge)),
        ("max-age=65, max-stale", 64, Reuse::Stale(StaleGrant::MaxStale)),
        ("min-fresh=10", 50, Reuse::Fresh),
        ("min-fresh=10", 51, Reuse::Validate(RequestMinFresh)),
        ("min-fresh=1, max-stale", 60, Reuse::Validate(RequestMinFresh)),
        ("max-stale", 1_000_000, Reuse::Stale(StaleGrant::MaxStale)),
        ("max-stale=10", 70, Reuse::Stale(StaleGrant::MaxStale)),
        ("max-stale=10", 71, Reuse::Validate(Expired)),
        ("max-stale=x", 61, Reuse::Validate(Expired)),
    ];
    for &(control, seconds, expected) in table {
        assert_eq!(decide(&lasting(60), control, seconds), expected, "{control} at {seconds}");
    }
}

#[test]
fn rfc9111_4_2_4_what_the_origin_forbids_no_request_grants() {
    use ValidateRule::{Invalidated, MustRevalidate, NoCache, NoLifetime};
    let must_revalidate = Freshness { must_revalidate: true, ..lasting(60) };
    assert_eq!(decide(&must_revalidate, "max-stale", 59), Reuse::Fresh);
    assert_eq!(decide(&must_revalidate, "max-stale", 60), Reuse::Validate(MustRevalidate));

    let no_cache = Freshness { must_validate: true, ..lasting(60) };
    assert_eq!(decide(&no_cache, "max-stale", 0), Reuse::Validate(NoCache));

    let mut invalidated = lasting(60);
    invalidated.invalidate();
    assert_eq!(decide(&invalidated, "max-stale", 0), Reuse::Validate(Invalidated));

    let mut soft_purged = lasting(60);
    soft_purged.mark_stale();
    assert_eq!(decide(&soft_purged, "", 0), Reuse::Validate(ValidateRule::Expired));
    assert_eq!(decide(&soft_purged, "max-stale", 0), Reuse::Stale(StaleGrant::MaxStale));

    let unstated = Freshness { source: LifetimeSource::None, ..lasting(0) };
    assert_eq!(decide(&unstated, "", 0), Reuse::Validate(NoLifetime));
}

#[test]
fn rfc9111_4_4_invalidation() {
    let target = |location, content_location| Invalidation::Target { location, content_location };
    let both = ["Location: /a", "Content-Location: http://example.org/b"];
    let named = target(Some(b"/a".as_slice()), Some(b"http://example.org/b".as_slice()));
    let table: &[(&str, u16, &[&str], Invalidation<'_>)] = &[
        ("POST", 200, &[], target(None, None)),
        ("POST", 201, &both, named),
        ("PUT", 204, &[], target(None, None)),
        ("DELETE", 302, &[], target(None, None)),
        ("PATCH", 200, &[], target(None, None)),
        ("M-SEARCH", 200, &[], target(None, None)),
        ("POST", 400, &both, Invalidation::None),
        ("POST", 500, &[], Invalidation::None),
        ("POST", 100, &[], Invalidation::None),
        ("GET", 200, &both, Invalidation::None),
        ("HEAD", 200, &[], Invalidation::None),
        ("OPTIONS", 200, &[], Invalidation::None),
        ("TRACE", 200, &[], Invalidation::None),
        ("CONNECT", 200, &[], Invalidation::None),
        ("POST", 200, &["Location: /a", "Location: /b"], target(None, None)),
    ];
    for &(method, status, lines, expected) in table {
        let (request, response) = (Request::new(method, &[]), Response::new(status, lines));
        assert_eq!(invalidation(request.head(), response.head()), expected, "{method} {status}");
    }
}

#[test]
fn decisions_explain_themselves() {
    for reuse in [
        Reuse::Fresh,
        Reuse::Stale(StaleGrant::MaxStale),
        Reuse::Validate(ValidateRule::MustRevalidate),
    ] {
        assert!(reuse.sentence().ends_with('.'));
        assert!(reuse.section().starts_with("RFC 9111"));
        assert!(!reuse.token().contains(char::is_whitespace));
    }
    assert_eq!(lookup_rule(get(&[]).head()).map_err(PassRule::token), Ok(()));
}
