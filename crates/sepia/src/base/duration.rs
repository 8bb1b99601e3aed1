//! A length of time as people write it: `250ms`, `30s`, `5m`, `1h30m`.
//!
//! A plain number is refused: half of the programs in this field mean seconds by it and the other
//! half milliseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Period(pub Duration);

/// Whole milliseconds, as the clock and the wheel count them.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Name and milliseconds of each unit, largest first.
const UNITS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest period: 365 days. What is longer is a slip of the pen.
const MILLISECONDS_MAX: u64 = 365 * 86_400_000;

impl Period {
    /// The form that the JSON Schema accepts, as a regular expression (ECMA-262).
    pub const PATTERN: &str = r"^([0-9]+\s*(d|h|m|s|ms)\s*)+$";

    /// The length of time.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Period {
    /// The exact form with the largest units, which parses back to the same period.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (name, unit) in UNITS {
            let count = rest / u128::from(*unit);
            if count > 0 {
                write!(f, "{count}{name}")?;
                rest -= count * u128::from(*unit);
            }
        }
        Ok(())
    }
}

impl FromStr for Period {
    type Err = PeriodError;

    /// One or more of number and unit, in falling units.
    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let mut rest = text.trim();
        let mut milliseconds = 0_u64;
        let mut smallest = u64::MAX;
        if rest.is_empty() {
            return Err(PeriodError::NotANumber);
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = (&rest[..digits], rest[digits..].trim_start());
            if number.is_empty() {
                return Err(PeriodError::NotANumber);
            }
            if after.starts_with('.') {
                return Err(PeriodError::Fraction);
            }
            let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let unit = unit_milliseconds(&after[..letters], number)?;
            if unit >= smallest {
                return Err(PeriodError::Order);
            }
            smallest = unit;
            let number: u64 = number.parse().map_err(|_| PeriodError::TooLong)?;
            let part = number.checked_mul(unit).ok_or(PeriodError::TooLong)?;
            milliseconds = milliseconds.checked_add(part).ok_or(PeriodError::TooLong)?;
            rest = after[letters..].trim_start();
        }
        if milliseconds > MILLISECONDS_MAX {
            return Err(PeriodError::TooLong);
        }
        Ok(Period(Duration::from_millis(milliseconds)))
    }
}

fn unit_milliseconds(unit: &str, number: &str) -> Result<u64, PeriodError> {
    if let Some((_, milliseconds)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*milliseconds);
    }
    let number = number.to_owned();
    let meant = match unit.to_ascii_lowercase().as_str() {
        "" => return Err(PeriodError::NoUnit { number }),
        "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        _ => return Err(PeriodError::Unit { written: unit.into() }),
    };
    Err(PeriodError::NearUnit { written: unit.into(), number, meant })
}

/// Why a text is no period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeriodError {
    /// There is no number before the unit.
    NotANumber,
    /// There is no unit behind the number.
    NoUnit {
        /// The number as it was written.
        number: String,
    },
    /// The unit is written otherwise.
    NearUnit {
        /// The unit as it was written.
        written: String,
        /// The number before it.
        number: String,
        /// The unit that was meant.
        meant: &'static str,
    },
    /// The unit is unknown.
    Unit {
        /// The unit as it was written.
        written: String,
    },
    /// A number with a point.
    Fraction,
    /// Units repeat or rise, as in `30s5m`.
    Order,
    /// Longer than 365 days.
    TooLong,
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeriodError::NotANumber => {
                f.write_str("a period is a number with a unit, such as 30s or 250ms")
            }
            PeriodError::NoUnit { number } => {
                write!(f, "`{number}` has no unit; write {number}s for seconds or {number}ms")
            }
            PeriodError::NearUnit { written, number, meant } => {
                write!(f, "unknown unit `{written}`; write {number}{meant}")
            }
            PeriodError::Unit { written } => {
                write!(f, "unknown unit `{written}`; write ms, s, m, h or d")
            }
            PeriodError::Fraction => {
                f.write_str("a period has whole numbers: write 1s500ms or 1500ms for 1.5s")
            }
            PeriodError::Order => {
                f.write_str("units go from large to small, each once, as in 1h30m")
            }
            PeriodError::TooLong => f.write_str("the period is longer than 365 days"),
        }
    }
}

impl std::error::Error for PeriodError {}

#[cfg(test)]
mod tests {
    use super::Period;
    use std::time::Duration;

    #[test]
    fn periods_as_people_write_them() {
        let cases = [
            ("250ms", 250),
            ("30s", 30_000),
            ("30 s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("1d", 86_400_000),
            ("0s", 0),
            ("1s500ms", 1_500),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(text.parse(), Ok(Period(Duration::from_millis(milliseconds))), "{text}");
        }
    }

    #[test]
    fn what_is_no_period_says_what_would_be() {
        let cases = [
            ("", "a period is a number with a unit, such as 30s or 250ms"),
            ("s", "a period is a number with a unit, such as 30s or 250ms"),
            ("1.5s", "a period has whole numbers: write 1s500ms or 1500ms for 1.5s"),
            ("30", "`30` has no unit; write 30s for seconds or 30ms"),
            ("30sec", "unknown unit `sec`; write 30s"),
            ("5min", "unknown unit `min`; write 5m"),
            ("5M", "unknown unit `M`; write 5m"),
            ("3fortnights", "unknown unit `fortnights`; write ms, s, m, h or d"),
            ("30s5m", "units go from large to small, each once, as in 1h30m"),
            ("5m5m", "units go from large to small, each once, as in 1h30m"),
            ("400d", "the period is longer than 365 days"),
            ("99999999999999999999s", "the period is longer than 365 days"),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<Period>().unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn the_printed_form_parses_back() {
        for milliseconds in [0, 1, 999, 1_000, 60_000, 5_400_000, 86_400_001, 90_061_001] {
            let period = Period(Duration::from_millis(milliseconds));
            assert_eq!(period.to_string().parse(), Ok(period), "{period}");
        }
        assert_eq!(Period(Duration::from_secs(5_400)).to_string(), "1h30m");
    }
}
