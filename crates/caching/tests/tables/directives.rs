//! Cache-Control and Pragma.

use caching::{MaxStale, RequestDirectives, ResponseDirectives};

use crate::heads::Section;

fn request(lines: &[&str]) -> RequestDirectives {
    RequestDirectives::decode(Section::new(lines).fields())
}

fn response(lines: &[&str]) -> ResponseDirectives {
    ResponseDirectives::decode(Section::new(lines).fields())
}

#[test]
fn rfc9111_1_2_2_delta_seconds() {
    let table: &[(&str, u32)] = &[
        ("max-age=60", 60),
        ("max-age=0", 0),
        ("max-age=007", 7),
        ("MAX-AGE=60", 60),
        ("max-age=\"60\"", 60),
        ("max-age=2147483647", 2_147_483_647),
        ("max-age=2147483648", 2_147_483_648),
        ("max-age=2147483649", 2_147_483_648),
        ("max-age=99999999999999999999999999", 2_147_483_648),
        ("max-age=-1", 0),
        ("max-age=+1", 0),
        ("max-age=60.5", 0),
        ("max-age='60'", 0),
        ("max-age=60s", 0),
        ("max-age=a60", 0),
        ("max-age=", 0),
        ("max-age=\"", 0),
        ("max-age", 0),
        ("max-age =60", 0),
        ("max-age= 60", 0),
        ("max-age=60, max-age=30", 30),
        ("max-age=30, max-age=60", 30),
        ("max-age=60, max-age=x", 0),
        ("x=\"max-age=10, y\", max-age=60", 60),
        ("x=\"\\\", max-age=10\", max-age=60", 60),
    ];
    for &(value, seconds) in table {
        let decoded = response(&[&format!("Cache-Control: {value}")]);
        assert_eq!(decoded.max_age, Some(seconds), "{value}");
    }
}

#[test]
fn rfc9111_5_2_2_response_directives() {
    let all = ResponseDirectives {
        no_store: true,
        no_cache: true,
        private: true,
        public: true,
        must_revalidate: true,
        proxy_revalidate: true,
        must_understand: true,
        no_transform: true,
        immutable: true,
        max_age: Some(1),
        s_maxage: Some(2),
        stale_while_revalidate: Some(3),
        stale_if_error: Some(4),
    };
    let written = response(&[
        "Cache-Control: No-Store, NO-CACHE,private ,public,\tmust-revalidate,,",
        "Cache-Control: max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=\"4\"",
        "Cache-Control: proxy-revalidate, must-understand, no-transform, immutable, unknown=5",
    ]);
    assert_eq!(written, all);
    assert_eq!(response(&["Pragma: no-cache"]), ResponseDirectives::default());
    assert_eq!(response(&["Cache-Control: no-stores, xno-cache"]), ResponseDirectives::default());
}

#[test]
fn rfc9111_5_2_2_4_qualified_directives_count_as_unqualified() {
    assert!(response(&["Cache-Control: no-cache=\"set-cookie, x\", max-age=5"]).no_cache);
    assert!(response(&["Cache-Control: private=\"x\""]).private);
    assert!(response(&["Cache-Control: private=x"]).private);
}

#[test]
fn a_string_that_does_not_end_hides_no_directive() {
    assert!(response(&["Cache-Control: max-age=60, x=\"a, no-store"]).no_store);
    assert!(response(&["Cache-Control: max-age=60, x=\"a\\\", private"]).no_store);
    assert!(!response(&["Cache-Control: max-age=60, x=\"a\""]).no_store);
}

#[test]
fn rfc9111_5_2_1_request_directives() {
    let all = RequestDirectives {
        no_cache: true,
        no_store: true,
        only_if_cached: true,
        no_transform: true,
        max_age: Some(1),
        min_fresh: Some(2),
        max_stale: Some(MaxStale::Seconds(3)),
    };
    let written = request(&[
        "Cache-Control: no-cache, NO-store, only-if-cached, no-transform",
        "Cache-Control: max-age=1, min-fresh=2, max-stale=3",
    ]);
    assert_eq!(written, all);
    let table: &[(&str, Option<MaxStale>)] = &[
        ("max-stale", Some(MaxStale::Any)),
        ("max-stale=5, max-stale", Some(MaxStale::Seconds(5))),
        ("max-stale, max-stale=5", Some(MaxStale::Seconds(5))),
        ("max-stale=9, max-stale=5", Some(MaxStale::Seconds(5))),
        ("max-stale=x", Some(MaxStale::Seconds(0))),
        ("max-stale=", Some(MaxStale::Seconds(0))),
        ("max-age=5", None),
    ];
    for &(value, accepted) in table {
        let decoded = request(&[&format!("Cache-Control: {value}")]);
        assert_eq!(decoded.max_stale, accepted, "{value}");
    }
    assert_eq!(request(&["Cache-Control: min-fresh=5, min-fresh=9"]).min_fresh, Some(9));
    assert_eq!(request(&["Cache-Control: min-fresh=x"]).min_fresh, None);
    assert_eq!(request(&["Cache-Control: max-age=x"]).max_age, Some(0));
}

#[test]
fn rfc9111_5_4_pragma_only_without_cache_control() {
    assert!(request(&["Pragma: no-cache"]).no_cache);
    assert!(request(&["Pragma: x, No-Cache"]).no_cache);
    assert!(!request(&["Pragma: x"]).no_cache);
    assert!(!request(&["Pragma: no-cache", "Cache-Control: max-age=60"]).no_cache);
}
