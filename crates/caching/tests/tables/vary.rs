//! RFC 9111 section 4.1.

use caching::{VARY_NAMES_MAX, Variant, VaryStar};

use crate::heads::{Section, get};

fn variant(vary: &[&str], request: &[&str]) -> Result<Variant, VaryStar> {
    let lines: Vec<String> = vary.iter().map(|value| format!("Vary: {value}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Variant::of(get(request).head(), Section::new(&lines).fields())
}

#[test]
fn rfc9111_4_1_matching() {
    let table: &[(&str, &[&str], &[&str], bool)] = &[
        ("", &["X: 1"], &["X: 2"], true),
        ("X", &["X: 1"], &["X: 1"], true),
        ("X", &["X: 1"], &["x: 1"], true),
        ("X", &["X: 1"], &["X: 2"], false),
        ("X", &["X: 1"], &["X: 12"], false),
        ("X", &["X: 12"], &["X: 1"], false),
        ("X", &["X: a"], &["X: A"], false),
        ("X", &["X: 1"], &["X: 1", "Y: 2"], true),
        ("X, Y", &["X: 1", "Y: 2"], &["Y: 2", "X: 1"], true),
        ("X, Y", &["X: 1", "Y: 2"], &["X: 1"], false),
        ("X, Y", &["X: 1"], &["X: 1"], true),
        ("X", &[], &[], true),
        // Missing is not empty.
        ("X", &[], &["X:"], false),
        ("X", &["X:"], &[], false),
        ("X", &["X:"], &["X: "], true),
        ("Accept", &[], &["Accept:"], false),
        // Several lines are one list.
        ("X", &["X: 1", "X: 2"], &["X: 1, 2"], true),
        ("X", &["X: 1,2"], &["X: 1 ,\t2"], true),
        ("X", &["X: 1", "X: 2"], &["X: 2, 1"], false),
        ("X", &["X: \"1,2\""], &["X: \"1, 2\""], false),
        // One value, however many commas.
        ("User-Agent", &["User-Agent: a (b, c)"], &["User-Agent: a (b,c)"], false),
        ("Cookie", &["Cookie: a=1; b=2"], &["Cookie: a=1; b=2"], true),
        ("Cookie", &["Cookie: a=1"], &["Cookie: A=1"], false),
        ("Cookie", &["Cookie: a", "Cookie: b"], &["Cookie: a, b"], true),
        ("Cookie", &["Cookie: a", "Cookie: b"], &["Cookie: a,b"], false),
        ("Referer", &["Referer: /a,b"], &["Referer: /a, b"], false),
        // Lists whose grammar has no case, order or white space.
        ("Accept-Encoding", &["Accept-Encoding: gzip, br"], &["Accept-Encoding: br,GZIP"], true),
        ("Accept-Encoding", &["Accept-Encoding: gzip"], &["Accept-Encoding: br"], false),
        ("Accept-Encoding", &["Accept-Encoding: gzip"], &["Accept-Encoding: gzip, br"], false),
        (
            "Accept-Language",
            &["Accept-Language: de; q=0.5, en"],
            &["accept-language: EN", "accept-language: de;q=0.5"],
            true,
        ),
        ("Accept-Language", &["Accept-Language: de"], &["Accept-Language: de;q=1"], false),
        ("Accept", &["Accept: Text/HTML, a/b"], &["Accept: a/b, text/html"], true),
        ("Accept", &["Accept: a/b;v=x"], &["Accept: a/b;v=X"], false),
        ("Accept", &["Accept: a/b;v=\"x, y\""], &["Accept: a/b;v=\"x,y\""], false),
    ];
    for &(vary, selecting, presented, expected) in table {
        let variant = variant(&[vary], selecting).expect("no star");
        assert!(variant.matches(get(selecting).head()), "{vary}: {selecting:?} matches itself");
        let matches = variant.matches(get(presented).head());
        assert_eq!(matches, expected, "{vary}: {selecting:?} {presented:?}");
    }
}

#[test]
fn rfc9111_4_1_star_and_what_cannot_be_compared_never_match() {
    let star: &[&[&str]] = &[
        &["*"],
        &["* , *"],
        &["X, *"],
        &["*, X"],
        &[", *"],
        &["", "*"],
        &["X", "Y, *"],
        &["X Y"],
        &["X; Y"],
        &["\"X\""],
        // What a gateway writes by itself.
        &["Forwarded"],
        &["Accept, x-forwarded-for"],
        &["X-Forwarded-Host"],
        &["X-Request-ID"],
        &["Via"],
    ];
    for &vary in star {
        assert_eq!(variant(vary, &[]), Err(VaryStar), "{vary:?}");
    }
}

#[test]
fn nominated_fields_are_bounded() {
    let names = |count: usize| (0..count).map(|n| format!("x{n}")).collect::<Vec<_>>().join(",");
    assert!(variant(&[&names(VARY_NAMES_MAX)], &[]).is_ok());
    assert_eq!(variant(&[&names(VARY_NAMES_MAX + 1)], &[]), Err(VaryStar));
    let repeated = vec!["X"; VARY_NAMES_MAX * 4].join(", ");
    assert!(variant(&[&repeated], &[]).is_ok());
    let long_name = "x".repeat(256);
    assert_eq!(variant(&[&long_name], &[]), Err(VaryStar));
}

#[test]
fn long_lists_are_compared_in_the_order_sent() {
    let tags: Vec<String> = (0..40).map(|n| format!("l{n}")).collect();
    let forwards = format!("Accept-Language: {}", tags.join(", "));
    let backwards: Vec<&str> = tags.iter().rev().map(String::as_str).collect();
    let backwards = format!("Accept-Language: {}", backwards.join(", "));
    let variant = variant(&["Accept-Language"], &[&forwards]).expect("no star");
    assert!(variant.matches(get(&[&forwards]).head()));
    assert!(!variant.matches(get(&[&backwards]).head()));
}

#[test]
fn equal_variants_have_equal_bytes() {
    let selecting = ["Y: 2", "Accept: b/c, A/b"];
    let one = variant(&["X, Y", "accept"], &selecting).expect("no star");
    let other = variant(&["Accept,y , X,,x"], &["Accept: a/b,b/c", "Y:2"]).expect("no star");
    assert_eq!(one.bytes(), other.bytes());
    let nominated: Vec<_> = one.nominated().collect();
    let expected: Vec<(&[u8], Option<&[u8]>)> =
        vec![(b"accept", Some(b"a/b,b/c")), (b"x", None), (b"y", Some(b"2"))];
    assert_eq!(nominated, expected);
    assert!(!one.is_empty());
    assert!(variant(&[], &selecting).expect("no star").is_empty());
}
