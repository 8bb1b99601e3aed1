//! An amount of bytes as people write it: `64MiB`, `10kB`, `4096`.
//!
//! kB, MB, GB, TB are powers of 1,000 and KiB, MiB, GiB, TiB powers of 1,024, always: a unit that
//! means either is refused with the two that are meant.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ByteSize(pub u64);

/// Name and bytes of each unit.
const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

impl ByteSize {
    /// The form that the JSON Schema accepts, as a regular expression (ECMA-262).
    pub const PATTERN: &str = r"^[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB)?$";

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// With the largest binary unit that leaves a number of at least 1, rounded to three digits:
    /// for people to read, not to be parsed back.
    #[must_use]
    pub fn rounded(self) -> String {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        for (name, shift) in units {
            if self.0 >> shift > 0 {
                #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
                let value = self.0 as f64 / (1_u64 << shift) as f64;
                let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
                return format!("{value:.digits$} {name}");
            }
        }
        format!("{} B", self.0)
    }
}

impl fmt::Display for ByteSize {
    /// The shortest exact form, which parses back to the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |&&(_, unit): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(unit);
        match UNITS.iter().filter(exact).max_by_key(|(_, unit)| *unit) {
            Some((name, unit)) if *unit > 1 => write!(f, "{}{name}", self.0 / unit),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    /// Decimal digits, one point allowed, then a unit or nothing for bytes.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        let scale = unit_bytes(unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
            return Err(SizeError::NotANumber);
        }
        let whole: u64 = whole.parse().map_err(|_| SizeError::TooLarge)?;
        let fraction = fraction_bytes(fraction, scale)?;
        let bytes = whole.checked_mul(scale).and_then(|n| n.checked_add(fraction));
        bytes.map(ByteSize).ok_or(SizeError::TooLarge)
    }
}

/// The bytes of a decimal fraction of a unit; digits past the ninth are refused.
fn fraction_bytes(digits: &str, scale: u64) -> Result<u64, SizeError> {
    if digits.is_empty() {
        return Ok(0);
    }
    if digits.len() > 9 {
        return Err(SizeError::NotANumber);
    }
    let value: u64 = digits.parse().map_err(|_| SizeError::NotANumber)?;
    let power = digits.bytes().fold(1_u128, |power, _| power * 10);
    let bytes = u128::from(value) * u128::from(scale) / power;
    u64::try_from(bytes).map_err(|_| SizeError::TooLarge)
}

fn unit_bytes(unit: &str) -> Result<u64, SizeError> {
    if unit.is_empty() {
        return Ok(1);
    }
    if let Some((_, bytes)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*bytes);
    }
    let first = unit.chars().next().map(|c| c.to_ascii_lowercase());
    Err(match first {
        Some('b') => SizeError::Unit { written: unit.into(), meant: "B" },
        Some('k') => SizeError::Unit { written: unit.into(), meant: "KiB (1,024) or kB (1,000)" },
        Some('m') => {
            SizeError::Unit { written: unit.into(), meant: "MiB (1,048,576) or MB (1,000,000)" }
        }
        Some('g') => SizeError::Unit { written: unit.into(), meant: "GiB (2^30) or GB (10^9)" },
        Some('t') => SizeError::Unit { written: unit.into(), meant: "TiB (2^40) or TB (10^12)" },
        _ => SizeError::Unit { written: unit.into(), meant: "B, KiB, MiB, GiB, kB, MB or GB" },
    })
}

/// Why a text is no size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SizeError {
    /// There is no number before the unit.
    NotANumber,
    /// More than 2^64 − 1 bytes.
    TooLarge,
    /// The unit is unknown; `meant` says which exist near it.
    Unit {
        /// The unit as it was written.
        written: String,
        /// What may have been meant.
        meant: &'static str,
    },
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeError::NotANumber => f.write_str("a size is a number with a unit, such as 64MiB"),
            SizeError::TooLarge => f.write_str("the size is too large"),
            SizeError::Unit { written, meant } => {
                write!(f, "unknown unit `{written}`; write {meant}")
            }
        }
    }
}

impl std::error::Error for SizeError {}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn sizes_as_people_write_them() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("10kB", 10_000),
            ("10KiB", 10_240),
            ("1.5GiB", 3 << 29),
            ("0.5 kB", 500),
            ("2TB", 2_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_what_would_be() {
        let cases = [
            ("", "a size is a number with a unit, such as 64MiB"),
            ("MiB", "a size is a number with a unit, such as 64MiB"),
            ("-1", "unknown unit `-1`; write B, KiB, MiB, GiB, kB, MB or GB"),
            ("1.", "a size is a number with a unit, such as 64MiB"),
            ("1.2.3", "a size is a number with a unit, such as 64MiB"),
            ("64M", "unknown unit `M`; write MiB (1,048,576) or MB (1,000,000)"),
            ("64mb", "unknown unit `mb`; write MiB (1,048,576) or MB (1,000,000)"),
            ("1K", "unknown unit `K`; write KiB (1,024) or kB (1,000)"),
            ("5 parsecs", "unknown unit `parsecs`; write B, KiB, MiB, GiB, kB, MB or GB"),
            ("18446744073709551616", "the size is too large"),
            ("99999999TiB", "the size is too large"),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<ByteSize>().unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn the_printed_form_parses_back() {
        for bytes in [0, 1, 1000, 1024, 1536, 10_240, 64 << 20, 3 << 29, 1_000_000_007, u64::MAX] {
            let text = ByteSize(bytes).to_string();
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        assert_eq!(ByteSize(64 << 20).to_string(), "64MiB");
        assert_eq!(ByteSize(10_000).to_string(), "10kB");
    }

    #[test]
    fn rounding_is_for_people() {
        assert_eq!(ByteSize(999).rounded(), "999 B");
        assert_eq!(ByteSize(1536).rounded(), "1.50 KiB");
        assert_eq!(ByteSize(256 << 20).rounded(), "256 MiB");
        assert_eq!(ByteSize(25 << 30).rounded(), "25.0 GiB");
    }
}
