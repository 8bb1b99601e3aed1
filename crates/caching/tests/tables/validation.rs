//! RFC 9111 sections 3.1, 3.2 and 4.3.

use caching::{encode_validation_fields, freshen, is_stored_field, may_freshen};

use crate::heads::{Section, dated};

#[test]
fn rfc9111_4_3_1_conditions() {
    let modified = dated("Last-Modified", -100);
    let since = dated("If-Modified-Since", -100);
    let table: &[(&[&str], &[&str])] = &[
        (&["ETag: \"a\""], &["If-None-Match: \"a\""]),
        (&["ETag: W/\"a\"", &modified], &["If-None-Match: W/\"a\"", &since]),
        (&[&modified], &[&since]),
        (&["ETag: a"], &["If-None-Match: a"]),
        (&["ETag: \"a\"", "ETag: \"a\""], &["If-None-Match: \"a\""]),
        (&["ETag: \"a\"", "ETag: \"b\""], &[]),
        (&["ETag: \"a\", \"b\""], &[]),
        (&["ETag: *"], &[]),
        (&["ETag: "], &[]),
        (&["ETag: \"\""], &["If-None-Match: \"\""]),
        (&["Last-Modified: yesterday"], &[]),
        (&["X: y"], &[]),
    ];
    for &(stored, expected) in table {
        let mut out = Vec::new();
        let has_any = encode_validation_fields(Section::new(stored).fields(), &mut out);
        assert_eq!(Section::decode(out).lines(), expected, "{stored:?}");
        assert_eq!(has_any, !expected.is_empty(), "{stored:?}");
    }
}

#[test]
fn rfc9111_4_3_4_which_304_is_about_the_stored_response() {
    let day = dated("Last-Modified", -86_400);
    let hour = dated("Last-Modified", -3_600);
    let date = dated("Date", 0);
    let table: &[(&[&str], &[&str], bool)] = &[
        (&["ETag: \"a\""], &["ETag: \"a\""], true),
        (&["ETag: \"a\""], &["ETag: \"b\""], false),
        (&["ETag: W/\"a\""], &["ETag: \"a\""], false),
        (&["ETag: \"a\""], &["ETag: W/\"a\""], true),
        (&["ETag: W/\"a\""], &["ETag: W/\"a\""], true),
        (&["ETag: W/\"a\""], &["ETag: W/\"b\""], false),
        // Tags decide, whatever the dates say.
        (&["ETag: \"a\"", &day], &["ETag: \"b\"", &day, &date], false),
        (&["ETag: \"a\"", &day], &["ETag: \"a\"", &hour, &date], true),
        (&[&day], &[&day], true),
        (&[&day], &[&hour], false),
        (&["ETag: \"a\"", &day], &[&day], true),
        (&["ETag: \"a\"", &day], &[&hour], false),
        (&["ETag: \"a\""], &[&day], false),
        // A strong tag that is not stored needs another strong validator.
        (&[&day], &["ETag: \"a\"", &day, &date], true),
        (&[&day], &["ETag: \"a\"", &day], false),
        (&[&day], &["ETag: \"a\""], false),
        (&[&day], &["ETag: W/\"a\"", &day], true),
        (&["X: y"], &["ETag: \"a\""], false),
        // No validator at all: the one that was asked about.
        (&["ETag: \"a\""], &["X: y"], true),
        (&["X: y"], &["X: y"], true),
        (&["ETag: \"a\""], &["ETag: \"a\", \"b\""], false),
    ];
    for &(stored, not_modified, expected) in table {
        let (stored_section, new_section) = (Section::new(stored), Section::new(not_modified));
        let outcome = may_freshen(stored_section.fields(), new_section.fields());
        assert_eq!(outcome, expected, "{stored:?} {not_modified:?}");
    }
}

#[test]
fn rfc9111_3_2_freshening() {
    let table: &[(&[&str], &[&str], &[&str])] = &[
        (&["A: 1", "B: 2"], &["B: 3", "C: 4"], &["A: 1", "B: 3", "C: 4"]),
        (&["X: 1", "A: 0", "x: 2"], &["X: 3", "X: 4"], &["A: 0", "X: 3", "X: 4"]),
        (
            &["Cache-Control: max-age=1", "Expires: 0"],
            &["Cache-Control: max-age=2"],
            &["Expires: 0", "Cache-Control: max-age=2"],
        ),
        (&["Content-Type: a/b"], &["Content-Type: c/d"], &["Content-Type: c/d"]),
        (&["Date: old", "A: 1"], &["Date: new"], &["A: 1", "Date: new"]),
        (&["Date: old", "A: 1"], &["B: 2"], &["A: 1", "B: 2"]),
        // What describes the stored bytes stays.
        (&["Content-Encoding: gzip"], &["Content-Encoding: br"], &["Content-Encoding: gzip"]),
        (&["A: 1"], &["Content-Encoding: br", "Content-Range: bytes 0-1/2"], &["A: 1"]),
        (&["A: 1"], &["Content-Length: 0", "Transfer-Encoding: chunked"], &["A: 1"]),
        // Of this exchange or this connection only.
        (&["A: 1"], &["Set-Cookie: a=b", "Age: 5", "Keep-Alive: timeout=5"], &["A: 1"]),
        (&["Set-Cookie: a=b"], &["Set-Cookie: c=d"], &["Set-Cookie: a=b"]),
        (&["X: 1"], &["Connection: x, close", "X: 2"], &["X: 1"]),
        (&["Via: 1.1 a, 1.1 us"], &["Via: 1.1 a"], &["Via: 1.1 a, 1.1 us"]),
        (&["A: 1"], &["Proxy-Authenticate: Basic"], &["A: 1"]),
    ];
    for &(stored, not_modified, expected) in table {
        let mut out = Vec::new();
        freshen(Section::new(stored).fields(), Section::new(not_modified).fields(), &mut out);
        assert_eq!(Section::decode(out).lines(), expected, "{stored:?} {not_modified:?}");
    }
}

#[test]
fn rfc9111_3_1_stored_fields() {
    let section = Section::new(&[
        "Connection: close, X-Hop, Vary, Content-Encoding",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: close",
        "Proxy-Authenticate: Basic",
        "Proxy-Authentication-Info: x",
        "Transfer-Encoding: chunked",
        "Content-Length: 5",
        "Trailer: X",
        "Upgrade: h2c",
        "Age: 5",
        "x-hop: 1",
        "Vary: Accept",
        "Content-Encoding: gzip",
        "Unknown: kept",
        "ETag: \"a\"",
        "Set-Cookie: a=b",
    ]);
    let fields = section.fields();
    let kept: Vec<_> = fields
        .iter()
        .filter(|&field| is_stored_field(field, fields))
        .map(|field| String::from_utf8_lossy(field.name).into_owned())
        .collect();
    assert_eq!(kept, ["Vary", "Content-Encoding", "Unknown", "ETag", "Set-Cookie"]);
}
