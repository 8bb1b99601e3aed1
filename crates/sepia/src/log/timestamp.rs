//! Moments as the log writes them: RFC 3339 in UTC, because lines of several machines are merged.

const SECONDS_PER_DAY: u64 = 86_400;

/// `2026-11-20T08:30:00` for a number of seconds since the epoch.
pub(super) fn encode_second(seconds: u64) -> [u8; 19] {
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let second_of_day = seconds % SECONDS_PER_DAY;
    let mut text = *b"0000-00-00T00:00:00";
    put(&mut text[0..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], second_of_day / 3_600);
    put(&mut text[14..16], second_of_day / 60 % 60);
    put(&mut text[17..19], second_of_day % 60);
    text
}

/// Fills the place with the number's last digits.
pub(super) fn put(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        let value = (number % 10) as u8;
        *digit = b'0' + value;
        number /= 10;
    }
}

/// Year, month and day of a day since the epoch, in the proleptic Gregorian calendar. Counted in
/// years that begin in March, so that the leap day is a year's last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::encode_second;

    #[test]
    fn known_moments() {
        let cases = [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_799, "2000-02-29T23:59:59"),
            (1_795_163_400, "2026-11-20T08:30:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (4_107_542_399, "2100-02-28T23:59:59"),
        ];
        for (seconds, text) in cases {
            assert_eq!(std::str::from_utf8(&encode_second(seconds)).unwrap(), text);
        }
    }
}
