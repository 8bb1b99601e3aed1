//! What is stored.

use caching::{
    Freshness, LifetimeSource, Options, PassRule, Received, StoreDecision, freshened_decision,
};

use crate::heads::{Request, Response, Section, after, dated, decide, decide_with, get};

const FRESH: &str = "Cache-Control: max-age=60";
const TAG: &str = "ETag: \"a\"";

fn rule(request: &Request, response: &Response) -> Option<PassRule> {
    match decide(request, response) {
        StoreDecision::Store(_) => None,
        StoreDecision::Pass(rule) => Some(rule),
    }
}

fn stored(decision: StoreDecision) -> Freshness {
    match decision {
        StoreDecision::Store(freshness) => freshness,
        StoreDecision::Pass(rule) => panic!("passed: {}", rule.token()),
    }
}

#[test]
fn rfc9111_3_methods() {
    let fresh = Response::new(200, &[FRESH]);
    assert_eq!(rule(&get(&[]), &fresh), None);
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "M-SEARCH", "get"]
    {
        assert_eq!(rule(&Request::new(method, &[]), &fresh), Some(PassRule::Method), "{method}");
    }
}

#[test]
fn rfc9110_9_3_1_a_get_with_content_is_not_stored() {
    let fresh = Response::new(200, &[FRESH]);
    assert_eq!(rule(&get(&["Content-Length: 1"]), &fresh), Some(PassRule::RequestContent));
    let chunked = get(&["Transfer-Encoding: chunked"]);
    assert_eq!(rule(&chunked, &fresh), Some(PassRule::RequestContent));
    assert_eq!(rule(&get(&["Content-Length: 0"]), &fresh), None);
}

#[test]
fn rfc9111_3_statuses() {
    use PassRule::{PartialContent, Status, StatusNeverStored, Upgrade};
    let last_modified = dated("Last-Modified", -1_000);
    let heuristic = [last_modified.as_str()];
    let table: &[(u16, Option<PassRule>, Option<PassRule>)] = &[
        (100, Some(StatusNeverStored), Some(StatusNeverStored)),
        (101, Some(Upgrade), Some(Upgrade)),
        (103, Some(StatusNeverStored), Some(StatusNeverStored)),
        (200, None, None),
        (203, None, None),
        (204, None, None),
        (206, Some(PartialContent), Some(PartialContent)),
        (299, None, Some(Status)),
        (300, None, None),
        (301, None, None),
        (302, None, Some(Status)),
        (303, None, Some(Status)),
        (304, Some(StatusNeverStored), Some(StatusNeverStored)),
        (307, None, Some(Status)),
        (308, None, None),
        (400, None, Some(Status)),
        (401, None, Some(Status)),
        (403, None, Some(Status)),
        (404, None, None),
        (405, None, None),
        (407, Some(StatusNeverStored), Some(StatusNeverStored)),
        (410, None, None),
        (412, Some(StatusNeverStored), Some(StatusNeverStored)),
        (414, None, None),
        (416, Some(StatusNeverStored), Some(StatusNeverStored)),
        (429, Some(StatusNeverStored), Some(StatusNeverStored)),
        (500, None, Some(Status)),
        (501, None, None),
        (503, None, Some(Status)),
        (599, None, Some(Status)),
        (600, Some(StatusNeverStored), Some(StatusNeverStored)),
        (999, Some(StatusNeverStored), Some(StatusNeverStored)),
    ];
    for &(status, explicit, estimated) in table {
        assert_eq!(rule(&get(&[]), &Response::new(status, &[FRESH])), explicit, "{status}");
        assert_eq!(rule(&get(&[]), &Response::new(status, &heuristic)), estimated, "{status}");
    }
}

#[test]
fn rfc9111_3_response_directives() {
    use PassRule::{MustUnderstand, NoFreshness, NoStore, NoValidator, Private, VaryStar};
    let expired = dated("Expires", -10);
    let table: &[(u16, &[&str], Option<PassRule>)] = &[
        (200, &["Cache-Control: no-store"], Some(NoStore)),
        (200, &[FRESH, "Cache-Control: NO-STORE"], Some(NoStore)),
        (200, &["Cache-Control: max-age=60, private"], Some(Private)),
        (200, &["Cache-Control: max-age=60, private=\"x\""], Some(Private)),
        (200, &["Cache-Control: public, private, max-age=60"], Some(Private)),
        (200, &["Cache-Control: must-understand, no-store, max-age=60"], None),
        (299, &["Cache-Control: must-understand, no-store, max-age=60"], Some(MustUnderstand)),
        (299, &["Cache-Control: must-understand, max-age=60"], Some(MustUnderstand)),
        (200, &["Cache-Control: must-understand, no-store, private"], Some(Private)),
        (200, &[FRESH, "Vary: *"], Some(VaryStar)),
        (200, &[FRESH, "Vary: Accept", "Vary: x, *"], Some(VaryStar)),
        (200, &[FRESH, "Vary: Accept"], None),
        (200, &[], Some(NoFreshness)),
        (200, &["Cache-Control: max-age=0"], Some(NoFreshness)),
        (200, &["Expires: 0"], Some(NoFreshness)),
        (200, &[&expired], Some(NoFreshness)),
        (200, &["ETag: W/\"a\""], None),
        (200, &["Cache-Control: max-age=0", TAG], None),
        (200, &["Cache-Control: no-cache", TAG], None),
        (200, &["Cache-Control: no-cache, max-age=60"], Some(NoValidator)),
        (200, &["Cache-Control: max-age=60", "Age: 90"], None),
        (200, &["Pragma: no-cache", FRESH], None),
        (200, &["Cache-Control: public"], Some(NoFreshness)),
        (302, &["Cache-Control: public", TAG], None),
    ];
    for &(status, lines, expected) in table {
        assert_eq!(rule(&get(&[]), &Response::new(status, lines)), expected, "{status} {lines:?}");
    }
}

#[test]
fn rfc9111_5_2_1_5_request_no_store() {
    let fresh = Response::new(200, &[FRESH]);
    let request = get(&["Cache-Control: no-store"]);
    assert_eq!(rule(&request, &fresh), Some(PassRule::RequestNoStore));
}

#[test]
fn rfc9111_3_5_authorization() {
    let request = get(&["Authorization: Basic eDp5"]);
    let table: &[(&str, Option<PassRule>)] = &[
        ("max-age=60", Some(PassRule::Authorization)),
        ("max-age=60, proxy-revalidate", Some(PassRule::Authorization)),
        ("max-age=60, public", None),
        ("s-maxage=60", None),
        ("max-age=60, must-revalidate", None),
        ("public, private, max-age=60", Some(PassRule::Private)),
    ];
    for &(value, expected) in table {
        let response = Response::new(200, &[&format!("Cache-Control: {value}")]);
        assert_eq!(rule(&request, &response), expected, "{value}");
    }
}

#[test]
fn rfc9111_7_3_cookies() {
    let sets = Response::new(200, &[FRESH, "Set-Cookie: a=b"]);
    assert_eq!(rule(&get(&[]), &sets), Some(PassRule::SetCookie));
    let permissive =
        Options { store_set_cookie: true, heuristic_with_cookie: true, ..Options::default() };
    stored(decide_with(&get(&[]), &sets, &permissive));

    let personal = get(&["Cookie: a=b"]);
    let estimated = Response::new(200, &[&dated("Last-Modified", -1_000)]);
    assert_eq!(rule(&personal, &estimated), Some(PassRule::CookieWithoutFreshness));
    let validated = Response::new(200, &[TAG]);
    assert_eq!(rule(&personal, &validated), Some(PassRule::CookieWithoutFreshness));
    assert_eq!(rule(&personal, &Response::new(200, &[FRESH])), None);
    let freshness = stored(decide_with(&personal, &estimated, &permissive));
    assert_eq!(freshness.source, LifetimeSource::Heuristic);
}

#[test]
fn rfc9112_6_3_an_ambiguous_length_is_not_stored() {
    let lines = [FRESH, "Content-Length: 5", "Transfer-Encoding: chunked"];
    assert_eq!(rule(&get(&[]), &Response::new(200, &lines)), Some(PassRule::AmbiguousLength));
}

#[test]
fn rfc9111_4_2_a_stored_response_knows_its_freshness() {
    let lines = ["Cache-Control: s-maxage=60, no-cache", "Age: 5", TAG];
    let freshness = stored(decide(&get(&[]), &Response::new(200, &lines)));
    assert_eq!(freshness.freshness_lifetime, 60);
    assert_eq!(freshness.source, LifetimeSource::SharedMaxAge);
    assert_eq!(freshness.current_age(after(3)), 8);
    assert!(freshness.must_validate && freshness.must_revalidate);
}

#[test]
fn rfc9111_4_3_4_a_304_extends_freshness_or_ends_storage() {
    let request = get(&[]);
    let updated = Section::new(&["Cache-Control: max-age=60", TAG]);
    let decision = |lines: &[&str], updated: &Section| {
        let not_modified = Response::new(304, lines);
        let exchange = Received {
            request: request.head(),
            response: not_modified.head(),
            requested: after(100),
            received: after(101),
        };
        freshened_decision(&exchange, 200, updated.fields(), &Options::default())
    };
    let freshness = stored(decision(&["Age: 4"], &updated));
    assert_eq!(freshness.current_age(after(101)), 5);
    assert!(freshness.is_fresh(after(155)));
    let private = Section::new(&["Cache-Control: private", TAG]);
    assert_eq!(decision(&[], &private), StoreDecision::Pass(PassRule::Private));
}

#[test]
fn every_rule_has_its_own_token_and_a_sentence() {
    let mut tokens: Vec<&str> = PassRule::ALL.iter().map(|rule| rule.token()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), PassRule::ALL.len());
    for rule in PassRule::ALL {
        assert!(rule.sentence().ends_with('.'), "{}", rule.token());
        assert!(rule.section().starts_with("RFC 9"), "{}", rule.token());
    }
}
