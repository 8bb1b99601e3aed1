//! Lifetimes and ages.

use caching::{Arrival, Freshness, LifetimeSource, Moment, Options, age_value};

use crate::heads::{NOW, Section, after, date, dated};

fn freshness(status: u16, lines: &[&str]) -> Freshness {
    freshness_of(status, lines, after(0), after(0))
}

fn freshness_of(status: u16, lines: &[&str], requested: Moment, received: Moment) -> Freshness {
    let section = Section::new(lines);
    let age_value = age_value(section.fields());
    let arrival = Arrival { requested, received, age_value };
    Freshness::of(status, section.fields(), &arrival, &Options::default())
}

#[test]
fn rfc9111_4_2_1_sources_in_their_order() {
    let expires = dated("Expires", 100);
    let date = dated("Date", 0);
    let last_modified = dated("Last-Modified", -1_000);
    let table: &[(&[&str], u32, LifetimeSource)] = &[
        (&["Cache-Control: s-maxage=5, max-age=9", &expires], 5, LifetimeSource::SharedMaxAge),
        (&["Cache-Control: max-age=9", &expires, &date], 9, LifetimeSource::MaxAge),
        (&["Cache-Control: max-age=0", &expires, &date], 0, LifetimeSource::MaxAge),
        (&["Cache-Control: max-age=x", &expires, &date], 0, LifetimeSource::MaxAge),
        (&["Cache-Control: s-maxage=x, max-age=9"], 0, LifetimeSource::SharedMaxAge),
        (&[&expires, &date, &last_modified], 100, LifetimeSource::Expires),
        (&[&expires], 100, LifetimeSource::Expires),
        (&[&last_modified, &date], 100, LifetimeSource::Heuristic),
        (&[&date], 0, LifetimeSource::None),
        (&[], 0, LifetimeSource::None),
    ];
    for &(lines, lifetime, source) in table {
        let freshness = freshness(200, lines);
        assert_eq!(
            (freshness.freshness_lifetime, freshness.source),
            (lifetime, source),
            "{lines:?}"
        );
    }
}

#[test]
fn rfc9111_5_3_expires_is_relative_to_date_and_stale_if_invalid() {
    let good = date(100);
    let table: &[(&[&str], &str, u32)] = &[
        (&[&good], "origin's clock", 100),
        (&["Sunday, 06-Nov-94 08:51:17 GMT"], "RFC 850", 100),
        (&["Sun Nov  6 08:51:17 1994"], "asctime", 100),
        (&["0"], "zero", 0),
        (&["-1"], "negative", 0),
        (&[""], "empty", 0),
        (&["Sun, 06 Nov 1994 08:51:17 UTC"], "UTC", 0),
        (&["Sun, 06 Nov 1994 08:51:17 +0000"], "zone", 0),
        (&["Sun, 06 Nov 94 08:51:17 GMT"], "two-digit year", 0),
        (&["Sun, 06 Nov 1994 8:51:17 GMT"], "one-digit hour", 0),
        (&["Sun, 06 Nov 1994 08.51.17 GMT"], "periods", 0),
        (&["Sun, 06-Nov-1994 08:51:17 GMT"], "dashes", 0),
        (&["Sun 06 Nov 1994 08:51:17 GMT"], "no comma", 0),
        (&["Sun,  06  Nov  1994  08:51:17  GMT"], "spaces", 0),
        (&[&good, &good], "two lines", 0),
    ];
    for &(values, case, lifetime) in table {
        let mut lines = vec![dated("Date", 0)];
        lines.extend(values.iter().map(|value| format!("Expires: {value}")));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let freshness = freshness(200, &lines);
        assert_eq!(freshness.source, LifetimeSource::Expires, "{case}");
        assert_eq!(freshness.freshness_lifetime, lifetime, "{case}");
    }
    // The origin's clock is an hour ahead or behind: the lifetime is the same.
    for offset in [-3_600, 3_600] {
        let lines = [dated("Date", offset), dated("Expires", offset + 100)];
        let freshness = freshness(200, &[&lines[0], &lines[1]]);
        assert_eq!(freshness.freshness_lifetime, 100);
    }
    let past = [dated("Date", 0), dated("Expires", -100)];
    assert_eq!(freshness(200, &[&past[0], &past[1]]).freshness_lifetime, 0);
}

#[test]
fn rfc9111_4_2_2_heuristic() {
    let date = dated("Date", 0);
    let days = |count: i64| dated("Last-Modified", -count * 86_400);
    let table: &[(u16, &[&str], u32)] = &[
        (200, &[&days(1)], 8_640),
        (404, &[&days(1)], 8_640),
        (308, &[&days(1)], 8_640),
        (200, &[&days(3_650)], 86_400),
        (200, &[&days(-1)], 0),
        (200, &["Last-Modified: yesterday"], 0),
        (200, &[&days(1), &days(1)], 0),
        (302, &[&days(1)], 0),
        (302, &[&days(1), "Cache-Control: public"], 8_640),
        (500, &[&days(1)], 0),
        (206, &[&days(1)], 0),
    ];
    for &(status, lines, lifetime) in table {
        let lines: Vec<&str> = lines.iter().copied().chain([date.as_str()]).collect();
        assert_eq!(freshness(status, &lines).freshness_lifetime, lifetime, "{status} {lines:?}");
    }
}

#[test]
fn rfc9111_5_1_age_field() {
    let table: &[(&[&str], u32)] = &[
        (&["Age: 30"], 30),
        (&["Age: 30, 0"], 30),
        (&["Age: 0, 30"], 0),
        (&["Age: 30", "Age: 0"], 30),
        (&["Age: abc"], 0),
        (&["Age: -30"], 0),
        (&["Age: 30.5"], 0),
        (&["Age: \"30\""], 0),
        (&["Age: 2147483647"], 2_147_483_647),
        (&["Age: 2147483648"], 2_147_483_648),
        (&["Age: 99999999999999999999"], 2_147_483_648),
        (&[], 0),
    ];
    for &(lines, seconds) in table {
        assert_eq!(age_value(Section::new(lines).fields()), seconds, "{lines:?}");
    }
}

#[test]
fn rfc9111_4_2_3_age_arithmetic() {
    struct Case {
        name: &'static str,
        date: Option<i64>,
        age: u32,
        delay: i64,
        initial: u32,
    }
    let case = |name, date, age, delay, initial| Case { name, date, age, delay, initial };
    let table = [
        case("just made", Some(0), 0, 0, 0),
        case("on the way for 2 s", Some(2), 0, 2, 2),
        case("aged in a cache", Some(0), 30, 0, 30),
        case("aged in a cache and delayed", Some(2), 30, 2, 32),
        case("aged in a cache without Age", Some(-50), 0, 0, 50),
        case("the greater one", Some(-50), 60, 0, 60),
        case("origin's clock ahead", Some(500), 10, 0, 10),
        case("no Date", None, 10, 0, 10),
        case("saturated", Some(0), 2_147_483_648, 5, 2_147_483_648),
        case("before the epoch", Some(-NOW), 0, 0, 784_111_777),
    ];
    for Case { name, date, age, delay, initial } in table {
        let mut lines = vec![format!("Age: {age}")];
        lines.extend(date.map(|seconds| dated("Date", seconds)));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let freshness = freshness_of(200, &lines, after(0), after(delay));
        assert_eq!(freshness.corrected_initial_age, initial, "{name}");
        assert_eq!(freshness.current_age(after(delay)), initial, "{name}");
        let later = initial.saturating_add(7).min(1 << 31);
        assert_eq!(freshness.current_age(after(delay + 7)), later, "{name}");
    }
}

#[test]
fn rfc9111_4_2_fresh_until_the_lifetime_is_reached() {
    let mut freshness = freshness(200, &["Cache-Control: max-age=10", "Age: 3"]);
    assert!(freshness.is_fresh(after(6)));
    assert_eq!(freshness.remaining(after(6)), 1);
    assert!(!freshness.is_fresh(after(7)));
    assert_eq!(freshness.remaining(after(7)), 0);
    assert_eq!(freshness.remaining(after(17)), -10);
    assert_eq!(freshness.staleness(after(17)), 10);
    assert_eq!(freshness.staleness(after(0)), 0);
    freshness.mark_stale();
    assert!(!freshness.is_fresh(after(0)));
    assert_eq!(freshness.current_age(after(0)), 3);
}

#[test]
fn rfc9111_4_2_3_a_clock_that_jumps_changes_no_residence() {
    let freshness = freshness(200, &["Cache-Control: max-age=10"]);
    let at = |wall, seconds| Moment { wall, ..after(seconds) };
    for wall in [0, NOW - 86_400, NOW + 86_400, i64::MIN, i64::MAX] {
        assert_eq!(freshness.current_age(at(wall, 5)), 5);
        assert!(freshness.is_fresh(at(wall, 9)));
        assert!(!freshness.is_fresh(at(wall, 10)));
    }
    // Between request and response the wall clock went back an hour: the delay is still 2 s.
    let delayed = freshness_of(
        200,
        &["Cache-Control: max-age=10", &dated("Date", 0)],
        after(0),
        Moment { wall: NOW - 3_600, ..after(2) },
    );
    assert_eq!(delayed.corrected_initial_age, 2);
    // Moments out of order count as no time at all.
    assert_eq!(delayed.current_age(after(-100)), 2);
}

#[test]
fn rfc9111_1_2_2_a_saturated_age_is_not_fresh_under_a_saturated_lifetime() {
    let freshness = freshness(200, &["Cache-Control: max-age=99999999999", "Age: 99999999999"]);
    assert!(!freshness.is_fresh(after(0)));
    let end = Moment { wall: i64::MAX, monotonic: u64::MAX };
    assert_eq!(freshness.current_age(end), 1 << 31);
}
