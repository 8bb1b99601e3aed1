//! Dates of HTTP (RFC 9110 §5.6.7): three spellings in, one out, as seconds since the epoch.
//!
//! Names of days, months and the zone are read in any case, as RFC 9111 §4.2 asks of caches;
//! nothing else is guessed, because a date that was misread makes a stale response look fresh.
//! That the name of the day fits the date is not checked: it carries nothing. There is no clock
//! here: whoever wants the century of a two-digit year judged says what time it is.

use crate::token::trim_ows;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// 50 mean Gregorian years: a two-digit year may lie no further ahead.
const FIFTY_YEARS: i64 = 50 * 365 * DAY + 12 * DAY + 3 * HOUR;
/// 0001-01-01 and 9999-12-31: what four digits can write.
const WRITABLE_SECONDS: (i64, i64) = (-62_135_596_800, 253_402_300_799);

const DAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The seconds since the epoch that `value` names; `None` if it is none of the three spellings
/// or no day of the calendar. Two-digit years are taken to lie from 1970 to 2069.
#[must_use]
pub fn decode(value: &[u8]) -> Option<i64> {
    decode_with(value, |written| if written.year < 70 { 2000 } else { 1900 })
}

/// As [`decode`], with the century of a two-digit year judged at `now`, in seconds since the
/// epoch: the latest one that does not put the date over 50 years ahead (RFC 9110 §5.6.7).
#[must_use]
pub fn decode_at(value: &[u8], now: i64) -> Option<i64> {
    let now = now.clamp(WRITABLE_SECONDS.0, WRITABLE_SECONDS.1);
    decode_with(value, |written| {
        let (year, _, _) = civil_from_days(now.div_euclid(DAY));
        let mut century = year - year.rem_euclid(100) + 100;
        while written.seconds(century).is_none_or(|seconds| seconds > now + FIFTY_YEARS)
            && century > year - 400
        {
            century -= 100;
        }
        century
    })
}

/// `seconds` since the epoch as IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`. Years
/// outside 1 to 9999 cannot be written and become the nearest that can.
#[must_use]
pub fn encode(seconds: i64) -> [u8; 29] {
    let seconds = seconds.clamp(WRITABLE_SECONDS.0, WRITABLE_SECONDS.1);
    let days = seconds.div_euclid(DAY);
    let time = seconds.rem_euclid(DAY);
    let (year, month, day) = civil_from_days(days);
    // Day 0 of the epoch was a Thursday.
    let weekday = usize::try_from((days + 3).rem_euclid(7)).unwrap_or_default();
    let mut out = *b"day, 00 mon 0000 00:00:00 GMT";
    out[..3].copy_from_slice(&DAYS[weekday][..3]);
    write_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[usize::try_from(month - 1).unwrap_or_default()]);
    write_digits(&mut out[12..16], year);
    write_digits(&mut out[17..19], time / HOUR);
    write_digits(&mut out[20..22], time % HOUR / MINUTE);
    write_digits(&mut out[23..25], time % MINUTE);
    out
}

fn write_digits(out: &mut [u8], number: i64) {
    let mut rest = number;
    for place in out.iter_mut().rev() {
        *place = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
    }
}

/// A date as it was written; `year` lacks its century if it had two digits.
struct Written {
    year: i64,
    month: i64,
    day: i64,
    time: i64,
    has_century: bool,
}

impl Written {
    /// Seconds since the epoch with `century` added to the year; `None` for no calendar day.
    fn seconds(&self, century: i64) -> Option<i64> {
        let year = self.year + century;
        let days = days_from_civil(year, self.month, self.day);
        let exists = civil_from_days(days) == (year, self.month, self.day);
        exists.then(|| days * DAY + self.time)
    }
}

fn decode_with(value: &[u8], century: impl Fn(&Written) -> i64) -> Option<i64> {
    let value = trim_ows(value);
    let written = match value.len() {
        24 => decode_asctime(value),
        29 => decode_fixdate(value).or_else(|| decode_rfc850(value)),
        _ => decode_rfc850(value),
    }?;
    written.seconds(if written.has_century { 0 } else { century(&written) })
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn decode_fixdate(value: &[u8]) -> Option<Written> {
    let (weekday, rest) = value.split_at_checked(3)?;
    let (date, time) = rest.split_at_checked(13)?;
    let [b',', b' ', d1, d2, b' ', month @ .., b' ', y1, y2, y3, y4] = date else { return None };
    is_weekday(weekday, 3).then_some(Written {
        year: digits(&[*y1, *y2, *y3, *y4])?,
        month: decode_month(month)?,
        day: digits(&[*d1, *d2])?,
        time: decode_time(strip_gmt(time)?.strip_prefix(b" ")?)?,
        has_century: true,
    })
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn decode_rfc850(value: &[u8]) -> Option<Written> {
    let comma = value.iter().position(|&byte| byte == b',')?;
    let (weekday, rest) = value.split_at(comma);
    let (date, time) = rest.split_at_checked(11)?;
    let [b',', b' ', d1, d2, b'-', month @ .., b'-', y1, y2] = date else { return None };
    is_weekday(weekday, usize::MAX).then_some(Written {
        year: digits(&[*y1, *y2])?,
        month: decode_month(month)?,
        day: digits(&[*d1, *d2])?,
        time: decode_time(strip_gmt(time)?.strip_prefix(b" ")?)?,
        has_century: false,
    })
}

/// `Sun Nov  6 08:49:37 1994`
fn decode_asctime(value: &[u8]) -> Option<Written> {
    let (weekday, rest) = value.split_at_checked(3)?;
    let (date, rest) = rest.split_at_checked(7)?;
    let (time, year) = rest.split_at_checked(9)?;
    let [b' ', month @ .., b' ', d1, d2] = date else { return None };
    let d1 = if *d1 == b' ' { b'0' } else { *d1 };
    is_weekday(weekday, 3).then_some(Written {
        year: digits(year.strip_prefix(b" ")?)?,
        month: decode_month(month)?,
        day: digits(&[d1, *d2])?,
        time: decode_time(time.strip_prefix(b" ")?)?,
        has_century: true,
    })
}

fn is_weekday(name: &[u8], letters: usize) -> bool {
    DAYS.iter().any(|day| day[..day.len().min(letters)].eq_ignore_ascii_case(name))
}

fn strip_gmt(time: &[u8]) -> Option<&[u8]> {
    let (time, zone) = time.split_last_chunk::<4>()?;
    zone.eq_ignore_ascii_case(b" GMT").then_some(time)
}

fn decode_month(name: &[u8]) -> Option<i64> {
    let at = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
    i64::try_from(at + 1).ok()
}

/// `08:49:37` in seconds. Second 60 is a leap second (RFC 9110 §5.6.7).
fn decode_time(time: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = time else { return None };
    let (hour, minute, second) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?, digits(&[*s1, *s2])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * HOUR + minute * MINUTE + second)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// Days since the epoch of a day of the proleptic Gregorian calendar. Years are counted from
/// March, so that the leap day is the last one and months follow a fixed pattern of 153 days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let from_march = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * from_march + 2) / 5 + day - 1 - DAYS_TO_EPOCH
}

/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// The inverse of [`days_from_civil`]: year, month from 1, day from 1.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let shifted = days + DAYS_TO_EPOCH;
    let era = shifted.div_euclid(DAYS_IN_400_YEARS);
    let day_of_era = shifted.rem_euclid(DAYS_IN_400_YEARS);
    // Take out the leap days that lie before the day: every 4 years, not 100, but 400.
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524
        - day_of_era / (DAYS_IN_400_YEARS - 1))
        / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
