//! Comma lists: the members of a field value (RFC 9110 §5.6.1).
//!
//! A comma inside a quoted string separates nothing (RFC 9110 §5.6.4). Empty members are
//! skipped, as §5.6.1.2 asks of recipients. Must never fail: a quoted string that does not end
//! takes the rest of the value with it, so that nothing in it is mistaken for a member.

use crate::token::trim_ows;

/// The members of one field value: white space trimmed, empty ones skipped, quotes kept.
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    Members { rest: value }
}

struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = member_end(self.rest);
            let member = trim_ows(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    }
}

/// Where the first member of `value` ends: the place of its comma, or the end of the value.
fn member_end(value: &[u8]) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in value.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    value.len()
}
