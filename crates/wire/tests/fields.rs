//! Fields, lists, dates and encoders, by section of the RFCs.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::{any, proptest};
use wire::{
    FieldSpans, Fields, Known, Refusal, date, encode_decimal, encode_field, encode_request_line,
    encode_status_line, is_token, members, reason_phrase, trim_ows,
};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the cases are text")
}

#[test]
fn rfc_9110_5_1_names_have_no_case() {
    for &known in Known::ALL {
        let name = known.name();
        for spelling in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
            assert_eq!(Known::from_name(spelling.as_bytes()), Some(known), "{spelling}");
        }
        let longer = format!("{name}x");
        assert_eq!(Known::from_name(longer.as_bytes()), None, "{longer}");
    }
    for name in [b"".as_slice(), b"A", b"Hos", b"Hots", b"Host\0", &[b'a'; 300]] {
        assert_eq!(Known::from_name(name), None, "{}", name.escape_ascii());
    }
}

#[test]
fn rfc_9110_5_3_lines_keep_their_order() {
    let bytes = b"Via: a\r\nX-Own: 1\r\nvia: b, c\r\nx-OWN:2\r\nAge:  3 \r\n";
    let spans = FieldSpans::decode_lines(bytes);
    let fields = spans.of(bytes);
    assert_eq!(fields.len(), 5);
    assert!(fields.has(Known::Via) && fields.has(Known::Age) && !fields.has(Known::Host));
    assert_eq!(fields.first(Known::Via).map(text), Some("a"));
    assert_eq!(fields.first(Known::Host), None);
    assert_eq!(fields.all(Known::Via).map(text).collect::<Vec<_>>(), ["a", "b, c"]);
    assert_eq!(fields.members(Known::Via).map(text).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(fields.all_named(b"X-own").map(text).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(fields.all_named(b"VIA").map(text).collect::<Vec<_>>(), ["a", "b, c"]);
    assert_eq!(fields.all_named(b"host").count(), 0);
    assert_eq!(fields.first(Known::Age).map(text), Some("3"));
    assert!(fields.lists(Known::Via, b"C") && !fields.lists(Known::Via, b"b, c"));
    let names: Vec<_> = fields.iter().map(|field| text(field.name)).collect();
    assert_eq!(names, ["Via", "X-Own", "via", "x-OWN", "Age"]);
}

#[test]
fn an_empty_section_has_nothing() {
    assert!(Fields::EMPTY.is_empty());
    assert_eq!(Fields::EMPTY.first(Known::Date), None);
    assert!(FieldSpans::decode_lines(b"").of(b"").is_empty());
}

#[test]
fn rfc_9110_5_6_1_lists() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        (" , ,", &[]),
        ("a", &["a"]),
        ("a,b", &["a", "b"]),
        (" a ,\t b;q=1 ,, c ", &["a", "b;q=1", "c"]),
        ("\"a,b\", c", &["\"a,b\"", "c"]),
        ("\"a\\\",b\", c", &["\"a\\\",b\"", "c"]),
        ("W/\"x,\", \"y\"", &["W/\"x,\"", "\"y\""]),
        ("a=\"b, c", &["a=\"b, c"]),
        ("a\\, b", &["a\\", "b"]),
    ];
    for (value, expected) in cases {
        let found: Vec<_> = members(value.as_bytes()).map(text).collect();
        assert_eq!(found, *expected, "{value:?}");
    }
}

#[test]
fn rfc_9110_5_6_2_tokens() {
    for (bytes, expected) in [
        (b"GET".as_slice(), true),
        (b"!#$%&'*+-.^_`|~09azAZ", true),
        (b"", false),
        (b"a b", false),
        (b"a:", false),
        (b"a\x80", false),
        (b"a\"", false),
        (b"a@", false),
    ] {
        assert_eq!(is_token(bytes), expected, "{}", bytes.escape_ascii());
    }
    assert_eq!(trim_ows(b" \ta b\t "), b"a b");
    assert_eq!(trim_ows(b"\x0ba\r"), b"\x0ba\r");
    assert_eq!(trim_ows(b" \t"), b"");
}

#[test]
fn rfc_9110_5_6_7_dates() {
    const EXAMPLE: i64 = 784_111_777;
    for value in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt",
        "SUNDAY, 06-NOV-94 08:49:37 GMT",
        " Sun, 06 Nov 1994 08:49:37 GMT\t",
        "Mon, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(date::decode(value.as_bytes()), Some(EXAMPLE), "{value}");
    }
    for (value, expected) in [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ] {
        assert_eq!(date::decode(value.as_bytes()), Some(expected), "{value}");
    }
    for value in [
        "",
        "0",
        "-1",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Day, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Tue, 29 Feb 1900 12:00:00 GMT",
        "Sun, 06 Nvo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT ",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "784111777",
    ] {
        assert_eq!(date::decode(value.as_bytes()), None, "{value}");
    }
}

#[test]
fn rfc_9110_5_6_7_years_of_two_digits() {
    let at = |value: &str| date::decode(value.as_bytes()).unwrap();
    for (now, year, expected) in [
        ("Thu, 01 Jan 2026 00:00:00 GMT", "94", 1994),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "26", 2026),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "75", 2075),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "77", 1977),
        ("Wed, 01 Jan 1997 00:00:00 GMT", "05", 2005),
        ("Wed, 01 Jan 1997 00:00:00 GMT", "60", 1960),
    ] {
        let short = format!("Sunday, 06-Nov-{year} 08:49:37 GMT");
        let long = at(&format!("Sun, 06 Nov {expected} 08:49:37 GMT"));
        assert_eq!(date::decode_at(short.as_bytes(), at(now)), Some(long), "{year} at {now}");
    }
    let full = b"Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(date::decode_at(full, i64::MAX), date::decode(full));
    assert!(date::decode_at(b"Sunday, 31-Feb-94 08:49:37 GMT", 0).is_none());
}

#[test]
fn rfc_9110_5_6_7_dates_encoded() {
    assert_eq!(text(&date::encode(784_111_777)), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(text(&date::encode(-1)), "Wed, 31 Dec 1969 23:59:59 GMT");
    assert_eq!(text(&date::encode(i64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(text(&date::encode(i64::MIN)), "Mon, 01 Jan 0001 00:00:00 GMT");
}

proptest! {
    #[test]
    fn dates_agree_with_httpdate(seconds in 0u32..) {
        let seconds = i64::from(seconds);
        let encoded = date::encode(seconds);
        let time = UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs());
        assert_eq!(text(&encoded), httpdate::fmt_http_date(time));
        assert_eq!(date::decode(&encoded), Some(seconds));
    }

    #[test]
    fn dates_never_panic(value in any::<Vec<u8>>(), now in any::<i64>()) {
        let _ = date::decode(&value);
        assert!(date::decode_at(&value, now).is_none() || value.len() > 20);
    }

    #[test]
    fn short_years_never_panic(now in any::<i64>(), year in 0..100) {
        let value = format!("Sunday, 06-Nov-{year:02} 08:49:37 GMT");
        assert!(date::decode_at(value.as_bytes(), now).is_some());
    }

    #[test]
    fn members_never_panic_and_are_trimmed(value in any::<Vec<u8>>()) {
        for member in members(&value) {
            assert!(!member.is_empty());
            assert_eq!(trim_ows(member), member);
        }
    }

    #[test]
    fn decimals_are_the_standard_library_s(number in any::<u64>()) {
        let mut out = Vec::new();
        encode_decimal(&mut out, number);
        assert_eq!(text(&out), number.to_string());
    }
}

#[test]
fn rfc_9112_4_status_lines() {
    for (status, expected) in [
        (200, "HTTP/1.1 200 OK\r\n"),
        (431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (299, "HTTP/1.1 299 \r\n"),
        (999, "HTTP/1.1 999 \r\n"),
    ] {
        let mut out = Vec::new();
        encode_status_line(&mut out, status);
        assert_eq!(text(&out), expected);
    }
    assert_eq!((reason_phrase(504), reason_phrase(299)), ("Gateway Timeout", ""));
}

#[test]
fn rfc_9112_3_request_lines() {
    for (target, expected) in [
        ("/a?b", "GET /a?b HTTP/1.1\r\n"),
        ("?b", "GET /?b HTTP/1.1\r\n"),
        ("*", "GET * HTTP/1.1\r\n"),
    ] {
        let mut out = Vec::new();
        encode_request_line(&mut out, b"GET", target.as_bytes());
        assert_eq!(text(&out), expected);
    }
    let mut out = Vec::new();
    encode_field(&mut out, b"Age", b"5");
    assert_eq!(text(&out), "Age: 5\r\n");
}

#[test]
fn every_refusal_has_its_words() {
    let mut tokens: Vec<_> = Refusal::ALL.iter().map(|refusal| refusal.token()).collect();
    for refusal in Refusal::ALL {
        let token = refusal.token();
        assert!(token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        assert!(refusal.sentence().ends_with('.') && refusal.section().starts_with("RFC "));
        assert!((400..600).contains(&refusal.status()));
        assert_eq!(refusal.to_string(), refusal.sentence());
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), Refusal::ALL.len(), "tokens differ");
}
