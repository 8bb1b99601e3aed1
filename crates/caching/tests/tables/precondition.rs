//! RFC 9110 section 13 for a cache.

use caching::{Precondition, etag_matches_strong, etag_matches_weak, evaluate_preconditions};

use crate::heads::{Request, Section, dated};

#[test]
fn rfc9110_8_8_3_2_comparison() {
    let table: &[(&str, &str, bool, bool)] = &[
        ("W/\"1\"", "W/\"1\"", false, true),
        ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "W/\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
        ("\"a\"", "\"A\"", false, false),
        ("w/\"1\"", "\"1\"", false, false),
    ];
    for &(a, b, strong, weak) in table {
        assert_eq!(etag_matches_strong(a.as_bytes(), b.as_bytes()), strong, "{a} {b}");
        assert_eq!(etag_matches_weak(a.as_bytes(), b.as_bytes()), weak, "{a} {b}");
    }
}

fn not_modified(lines: &[&str], stored: &[&str]) -> bool {
    let outcome = |method| {
        let request = Request::new(method, lines);
        evaluate_preconditions(request.head(), 200, Section::new(stored).fields())
    };
    assert_eq!(outcome("GET"), outcome("HEAD"));
    assert_eq!(outcome("POST"), Precondition::Proceed);
    outcome("GET") == Precondition::NotModified
}

#[test]
fn rfc9110_13_1_2_if_none_match() {
    let table: &[(&[&str], &str, bool)] = &[
        (&["If-None-Match: \"a\""], "ETag: \"a\"", true),
        (&["If-None-Match: W/\"a\""], "ETag: \"a\"", true),
        (&["If-None-Match: \"a\""], "ETag: W/\"a\"", true),
        (&["If-None-Match: \"b\""], "ETag: \"a\"", false),
        (&["If-None-Match: \"b\", \"a\""], "ETag: \"a\"", true),
        (&["If-None-Match: \"b\",, \t\"a\" ,"], "ETag: \"a\"", true),
        (&["If-None-Match: \"b\"", "If-None-Match: \"a\""], "ETag: \"a\"", true),
        (&["If-None-Match: *"], "ETag: \"a\"", true),
        (&["If-None-Match: *"], "X: no tag", true),
        (&["If-None-Match: *, \"b\""], "ETag: \"a\"", false),
        (&["If-None-Match: \"*\""], "ETag: \"a\"", false),
        (&["If-None-Match: \"a\""], "X: no tag", false),
        (&["If-None-Match: "], "ETag: \"a\"", false),
        (&["If-None-Match: a"], "ETag: \"a\"", false),
        (&["If-None-Match: a"], "ETag: a", true),
        // Commas and backslashes are ordinary bytes of a tag.
        (&["If-None-Match: \"a,b\""], "ETag: \"a,b\"", true),
        (&["If-None-Match: \"a,b\""], "ETag: \"b\"", false),
        (&["If-None-Match: \"x\\\", \"a\""], "ETag: \"a\"", true),
        // What is no single tag is no tag.
        (&["If-None-Match: \"a\""], "ETag: \"a\", \"b\"", false),
        (&["If-None-Match: *x"], "ETag: *", false),
    ];
    for &(lines, stored, expected) in table {
        assert_eq!(not_modified(lines, &[stored]), expected, "{lines:?} {stored}");
    }
}

#[test]
fn rfc9110_13_1_3_if_modified_since() {
    let since = |seconds| dated("If-Modified-Since", seconds);
    let modified = dated("Last-Modified", -100);
    let date = dated("Date", 0);
    let table: &[(&[&str], &[&str], bool)] = &[
        (&[&since(-100)], &[&modified], true),
        (&[&since(0)], &[&modified], true),
        (&[&since(-101)], &[&modified], false),
        (&[&since(1_000_000)], &[&modified], true),
        (&["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"], &[&modified], true),
        (&["If-Modified-Since: Sun Nov  6 08:49:37 1994"], &[&modified], true),
        (&["If-Modified-Since: today"], &[&modified], false),
        (&[&since(0), &since(0)], &[&modified], false),
        // Without Last-Modified, Date stands in.
        (&[&since(0)], &[&date], true),
        (&[&since(-1)], &[&date], false),
        (&[&since(0)], &["Last-Modified: never", &date], false),
        (&[&since(0)], &[], false),
    ];
    for &(lines, stored, expected) in table {
        assert_eq!(not_modified(lines, stored), expected, "{lines:?} {stored:?}");
    }
}

#[test]
fn rfc9110_13_2_2_if_none_match_decides_alone() {
    let since = dated("If-Modified-Since", 0);
    let stored = ["ETag: \"a\"", &dated("Last-Modified", -100)];
    assert!(!not_modified(&["If-None-Match: \"b\"", &since], &stored));
    let early = dated("If-Modified-Since", -1_000);
    assert!(not_modified(&["If-None-Match: \"a\"", &early], &stored));
}

#[test]
fn rfc9110_13_2_1_only_a_stored_200_is_conditional() {
    let request = Request::new("GET", &["If-None-Match: *"]);
    let stored = Section::new(&["ETag: \"a\""]);
    for status in [204, 301, 404, 500] {
        let outcome = evaluate_preconditions(request.head(), status, stored.fields());
        assert_eq!(outcome, Precondition::Proceed, "{status}");
    }
}
