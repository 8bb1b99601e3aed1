//! RFC 9110 sections 14 and 13.1.5.

use caching::{RangeOutcome, evaluate_range};

use crate::heads::{Request, Section, date, dated, get};

const fn part(first: u64, last: u64) -> RangeOutcome {
    RangeOutcome::Part { first, last }
}

#[test]
fn rfc9110_14_1_2_byte_ranges() {
    use RangeOutcome::{Unsatisfiable, Whole};
    let table: &[(&str, u64, RangeOutcome)] = &[
        ("bytes=0-0", 10, part(0, 0)),
        ("bytes=0-9", 10, part(0, 9)),
        ("bytes=2-5", 10, part(2, 5)),
        ("bytes=2-500", 10, part(2, 9)),
        ("bytes=9-", 10, part(9, 9)),
        ("bytes=0-", 10, part(0, 9)),
        ("bytes=-1", 10, part(9, 9)),
        ("bytes=-10", 10, part(0, 9)),
        ("bytes=-500", 10, part(0, 9)),
        ("BYTES=0-0", 10, part(0, 0)),
        ("bytes= 0-0 ", 10, part(0, 0)),
        ("bytes=,0-0,", 10, part(0, 0)),
        ("bytes=10-", 10, Unsatisfiable),
        ("bytes=10-20", 10, Unsatisfiable),
        ("bytes=-0", 10, Unsatisfiable),
        ("bytes=0-", 0, Unsatisfiable),
        ("bytes=-5", 0, Whole),
        ("bytes=-0", 0, Unsatisfiable),
        ("bytes=99999999999999999999999-", 10, Unsatisfiable),
        ("bytes=0-99999999999999999999999", 10, part(0, 9)),
        ("bytes=-99999999999999999999999", 10, part(0, 9)),
        ("bytes=18446744073709551615-", u64::MAX, Unsatisfiable),
        ("bytes=0-", u64::MAX, part(0, u64::MAX - 1)),
        ("bytes=5-2", 10, Whole),
        ("bytes=-", 10, Whole),
        ("bytes=", 10, Whole),
        ("bytes", 10, Whole),
        ("", 10, Whole),
        ("bytes=a-b", 10, Whole),
        ("bytes=+1-2", 10, Whole),
        ("bytes=1--2", 10, Whole),
        ("bytes=1 - 2", 10, Whole),
        ("bytes =1-2", 10, Whole),
        ("bytes=1.0-2", 10, Whole),
        ("bytes=0-1,4-5", 10, Whole),
        ("bytes=0-1,x", 10, Whole),
        ("lines=0-1", 10, Whole),
    ];
    for &(value, length, expected) in table {
        let request = get(&[&format!("Range: {value}")]);
        let stored = Section::new(&[]);
        let outcome = evaluate_range(request.head(), stored.fields(), length);
        assert_eq!(outcome, expected, "{value} of {length}");
    }
}

#[test]
fn rfc9110_14_2_range_is_for_get_and_stands_once() {
    let stored = Section::new(&[]);
    let head = Request::new("HEAD", &["Range: bytes=0-1"]);
    assert_eq!(evaluate_range(head.head(), stored.fields(), 10), RangeOutcome::Whole);
    let twice = get(&["Range: bytes=0-1", "Range: bytes=0-1"]);
    assert_eq!(evaluate_range(twice.head(), stored.fields(), 10), RangeOutcome::Whole);
    assert_eq!(evaluate_range(get(&[]).head(), stored.fields(), 10), RangeOutcome::Whole);
}

#[test]
fn rfc9110_13_1_5_if_range() {
    let modified = dated("Last-Modified", -60);
    let date_field = dated("Date", 0);
    let strong: &[&str] = &["ETag: \"a\"", &modified, &date_field];
    let too_recent: &[&str] = &[&modified, &dated("Date", -1)];
    let undated: &[&str] = &[&modified];
    let weak: &[&str] = &["ETag: W/\"a\""];
    let table: &[(&str, &[&str], bool)] = &[
        ("\"a\"", strong, true),
        ("\"b\"", strong, false),
        ("W/\"a\"", strong, false),
        ("\"a\"", weak, false),
        ("W/\"a\"", weak, false),
        ("\"a\"", &[], false),
        (&date(-60), strong, true),
        (&date(-61), strong, false),
        (&date(0), strong, false),
        (&date(-60), too_recent, false),
        (&date(-60), undated, false),
        ("*", strong, false),
        ("", strong, false),
        ("\"b\", \"a\"", strong, false),
    ];
    for &(condition, stored, expected) in table {
        let request = get(&["Range: bytes=0-1", &format!("If-Range: {condition}")]);
        let outcome = evaluate_range(request.head(), Section::new(stored).fields(), 10);
        let wanted = if expected { part(0, 1) } else { RangeOutcome::Whole };
        assert_eq!(outcome, wanted, "{condition} {stored:?}");
    }
}
