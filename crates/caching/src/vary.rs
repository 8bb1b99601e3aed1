//! Vary: which request fields selected a stored response, and whether another request has the same
//! (RFC 9111 section 4.1).
//!
//! A [`Variant`] is computed once, at admission; matching allocates nothing. Values are compared
//! after the normalisation that the section allows: lines joined, white space around commas
//! removed, and for a few fields whose grammar says so, case and order too. A missing field and an
//! empty one differ. Whatever is beyond the bounds or the grammar never matches, so that doubt
//! costs a fetch and not a wrong answer.

use std::fmt;

use wire::{Fields, Known, RequestHead};

/// The most fields that Vary may nominate; more count as `*`, as each costs a scan at each lookup.
pub const VARY_NAMES_MAX: usize = 32;

/// The most list members that are put in order; a longer list is compared in the order sent.
const SORTED_MEMBERS_MAX: usize = 16;

/// Vary names `*`, too many fields, one that gateways write, or no field name: no request matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VaryStar;

impl fmt::Display for VaryStar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the Vary field excludes every later request")
    }
}

impl std::error::Error for VaryStar {}

/// The nominated fields of a response with the values of the request that selected it.
///
/// One boxed slice, a sequence of: name length (u8), name in lower case, value length (u32, big
/// endian; all ones if the request had no such field), normalised value. Names are in order, so
/// that equal variants have equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variant {
    bytes: Box<[u8]>,
}

const MISSING: u32 = u32::MAX;

impl Variant {
    /// The variant that a response is of, having answered this request.
    pub fn of(request: RequestHead<'_>, response: Fields<'_>) -> Result<Variant, VaryStar> {
        let mut bytes = Vec::new();
        for name in nominated_names(response)? {
            bytes.push(u8::try_from(name.len()).expect("nominated names are short"));
            bytes.extend_from_slice(&name);
            encode_value(request.fields(), &name, &mut bytes)?;
        }
        Ok(Variant { bytes: bytes.into_boxed_slice() })
    }

    /// Whether a request has the same nominated fields. Allocates nothing.
    pub fn matches(&self, request: RequestHead<'_>) -> bool {
        let fields = request.fields();
        self.nominated().all(|(name, value)| {
            let nominated = Nominated::of(fields, name);
            match value {
                None => nominated.is_missing(),
                Some(value) => !nominated.is_missing() && nominated.is_equal(value),
            }
        })
    }

    /// Whether no field is nominated, so that every request matches.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The stable encoding, which identifies the variant among those of its key.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The nominated names with the normalised values; None for a field that was missing.
    pub fn nominated(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            let (&name_len, tail) = rest.split_first()?;
            let (name, tail) = tail.split_at_checked(usize::from(name_len))?;
            let (value_len, tail) = tail.split_first_chunk::<4>()?;
            let value_len = u32::from_be_bytes(*value_len);
            if value_len == MISSING {
                rest = tail;
                return Some((name, None));
            }
            let (value, tail) = tail.split_at_checked(usize::try_from(value_len).ok()?)?;
            rest = tail;
            Some((name, Some(value)))
        })
    }
}

/// The names in Vary: lower case, in order, each once, none longer than 255 bytes.
pub(crate) fn nominated_names(response: Fields<'_>) -> Result<Vec<Vec<u8>>, VaryStar> {
    let mut names = Vec::new();
    for name in response.members(Known::Vary) {
        // `*` is a token too, but never the name of a field.
        let is_name = name != b"*" && wire::is_token(name) && name.len() <= usize::from(u8::MAX);
        if !is_name || is_written_on_the_way(name) {
            return Err(VaryStar);
        }
        let name = name.to_ascii_lowercase();
        if let Err(place) = names.binary_search(&name) {
            if names.len() == VARY_NAMES_MAX {
                return Err(VaryStar);
            }
            names.insert(place, name);
        }
    }
    Ok(names)
}

/// Fields that a gateway writes itself: the client's tell nothing of what the origin chose by.
fn is_written_on_the_way(name: &[u8]) -> bool {
    matches!(
        Known::from_name(name),
        Some(
            Known::Forwarded
                | Known::XForwardedFor
                | Known::XForwardedHost
                | Known::XRequestId
                | Known::Via
        )
    )
}

/// Whether Connection may keep a field of a request from the origin server: not those that are
/// meant for every recipient.
#[must_use]
pub fn may_be_taken_away(field: Option<Known>) -> bool {
    !matches!(
        field,
        Some(Known::Age | Known::CacheControl | Known::ContentLength | Known::Host | Known::Via)
    )
}

fn encode_value(fields: Fields<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<(), VaryStar> {
    let nominated = Nominated::of(fields, name);
    if nominated.is_missing() {
        out.extend_from_slice(&MISSING.to_be_bytes());
        return Ok(());
    }
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    nominated.each_byte(|byte| {
        out.push(byte);
        true
    });
    let length = u32::try_from(out.len() - length_at - 4).map_err(|_| VaryStar)?;
    if length == MISSING {
        return Err(VaryStar);
    }
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// How the values of a field are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// One value, byte by byte: a comma in it separates nothing.
    Opaque,
    /// A list, which every field not known to be opaque may be (RFC 9110 section 5.3).
    List,
    /// A list of media ranges: their names without case, parameters as they are; order is free.
    MediaRanges,
    /// A list of tokens with weights: without case and white space; order is free, as weights
    /// state the preference (RFC 9110 sections 12.5.3 and 12.5.4).
    Preferences,
}

impl Syntax {
    fn of(field: Option<Known>) -> Syntax {
        match field {
            Some(Known::Accept) => Syntax::MediaRanges,
            Some(Known::AcceptEncoding | Known::AcceptLanguage) => Syntax::Preferences,
            Some(
                Known::Authorization
                | Known::Cookie
                | Known::Host
                | Known::IfModifiedSince
                | Known::IfRange
                | Known::Origin
                | Known::Range
                | Known::Referer
                | Known::UserAgent,
            ) => Syntax::Opaque,
            _ => Syntax::List,
        }
    }

    fn is_ordered(self) -> bool {
        matches!(self, Syntax::Opaque | Syntax::List)
    }

    /// The bytes of a member that count.
    fn canonical(self, member: &[u8]) -> impl Iterator<Item = u8> {
        let folded_len = match self {
            Syntax::Opaque | Syntax::List => 0,
            Syntax::MediaRanges => {
                member.iter().position(|&byte| byte == b';').unwrap_or(member.len())
            }
            Syntax::Preferences => member.len(),
        };
        let (folded, exact) = member.split_at(folded_len);
        let folded = folded.iter().filter(|&&byte| byte != b' ' && byte != b'\t');
        folded.map(u8::to_ascii_lowercase).chain(exact.iter().copied())
    }
}

/// One nominated field of a request: its lines and how to read them.
struct Nominated<'a> {
    fields: Fields<'a>,
    name: &'a [u8],
    known: Option<Known>,
    syntax: Syntax,
}

impl<'a> Nominated<'a> {
    fn of(fields: Fields<'a>, name: &'a [u8]) -> Self {
        let known = Known::from_name(name);
        Nominated { fields, name, known, syntax: Syntax::of(known) }
    }

    /// Whether the origin server saw no such field: the client sent none, or let Connection take
    /// it away (RFC 9110 section 7.6.1), so that its value chose nothing.
    fn is_missing(&self) -> bool {
        let is_absent = match self.known {
            Some(known) => !self.fields.has(known),
            None => self.fields.all_named(self.name).next().is_none(),
        };
        is_absent || may_be_taken_away(self.known) && self.is_taken_away()
    }

    fn is_taken_away(&self) -> bool {
        self.fields.has(Known::Connection) && self.fields.lists(Known::Connection, self.name)
    }

    fn is_equal(&self, value: &[u8]) -> bool {
        let mut rest = value.iter();
        self.each_byte(|byte| rest.next() == Some(&byte)) && rest.next().is_none()
    }

    /// Hands out the normalised value until `take` says false; whether it never did.
    fn each_byte(&self, mut take: impl FnMut(u8) -> bool) -> bool {
        if self.syntax == Syntax::Opaque {
            return self.each_part(self.lines(), &mut take);
        }
        let members = || self.lines().flat_map(wire::members);
        let mut sorted: [&[u8]; SORTED_MEMBERS_MAX] = [&[]; SORTED_MEMBERS_MAX];
        if self.syntax.is_ordered() || members().nth(SORTED_MEMBERS_MAX).is_some() {
            return self.each_part(members(), &mut take);
        }
        let mut count = 0;
        for (place, member) in sorted.iter_mut().zip(members()) {
            *place = member;
            count += 1;
        }
        let sorted = &mut sorted[..count];
        let syntax = self.syntax;
        sorted.sort_unstable_by(|a, b| syntax.canonical(a).cmp(syntax.canonical(b)));
        self.each_part(sorted.iter().copied(), &mut take)
    }

    fn each_part<'p>(
        &self,
        mut parts: impl Iterator<Item = &'p [u8]>,
        take: &mut impl FnMut(u8) -> bool,
    ) -> bool {
        let mut is_first = true;
        parts.all(|part| {
            let separator: &[u8] = match (std::mem::replace(&mut is_first, false), self.syntax) {
                (true, _) => b"",
                (false, Syntax::Opaque) => b", ",
                (false, _) => b",",
            };
            separator.iter().all(|&byte| take(byte)) && self.syntax.canonical(part).all(&mut *take)
        })
    }

    fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // Known fields have their lines under their id; both searches see the same lines.
        self.fields.all_named(self.name)
    }
}
