//! The smallest pieces of the grammar: tokens and optional white space.
//!
//! RFC 9110 §5.6.2 and §5.6.3. Nothing here allocates or fails.

use std::ops::Range;

const TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < 128u8 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = true;
        }
        byte += 1;
    }
    table
};

/// Whether `byte` may stand in a token (RFC 9110 §5.6.2).
#[must_use]
pub const fn is_tchar(byte: u8) -> bool {
    TCHAR[byte as usize]
}

/// Whether `bytes` is a token: at least one tchar and nothing else (RFC 9110 §5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether `byte` is a space or a horizontal tab (RFC 9110 §5.6.3).
#[must_use]
pub const fn is_ows(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `bytes` without the spaces and tabs at both ends (RFC 9110 §5.6.3). Other white space stays:
/// it is not optional white space, and dropping it would hide it from the checks.
#[must_use]
pub fn trim_ows(bytes: &[u8]) -> &[u8] {
    &bytes[trimmed(bytes, 0..bytes.len())]
}

/// The part of `range` that is left when the white space at both ends is taken away.
pub(crate) fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = range;
    while start < end && is_ows(bytes[start]) {
        start += 1;
    }
    while start < end && is_ows(bytes[end - 1]) {
        end -= 1;
    }
    start..end
}
