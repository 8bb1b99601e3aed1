//! Hop 6, admit: a response head becomes a record in the store, freshens one, or only passes.
//! RFC 9111 sections 3, 3.1, 3.2, 4.3.3, 4.3.4 and 4.4.

use std::sync::Arc;

use caching::{
    Freshness, Invalidation, Moment, PassRule, Received, StoreDecision, Variant,
    freshened_decision, invalidation, is_stored_field, may_freshen, store_decision,
};
use store::{Admission, Admitted, Head, Key, Store, Stored};
use wire::{FieldSpans, Known, RequestHead, ResponseHead, date, encode_field};

use super::reference::same_origin_target;
use crate::config::Settings;

/// A response head with the request that it answers.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub(crate) request: RequestHead<'a>,
    pub(crate) response: ResponseHead<'a>,
    pub(crate) requested: Moment,
    pub(crate) received: Moment,
    /// [`Store::generation`] of the key when the request was sent.
    pub(crate) generation: u64,
}

impl<'a> Arrived<'a> {
    fn received(&self) -> Received<'a> {
        Received {
            request: self.request,
            response: self.response,
            requested: self.requested,
            received: self.received,
        }
    }
}

/// Takes a response in: stored if `may_store` and RFC 9111 allow it, else passing through.
/// Returns the rule that kept it out of the store, if one did.
pub(crate) fn admit(
    store: &Arc<Store>,
    key: Key,
    arrived: &Arrived<'_>,
    settings: &Settings,
    may_store: Result<(), PassRule>,
) -> (Admitted, Option<PassRule>) {
    let decision = match may_store {
        Ok(()) => store_decision(&arrived.received(), &settings.config.caching),
        Err(rule) => StoreDecision::Pass(rule),
    };
    let (freshness, rule) = match decision {
        StoreDecision::Store(freshness) => (Some(freshness), None),
        StoreDecision::Pass(rule) => (None, Some(rule)),
    };
    let response = arrived.response;
    let admission = Admission {
        head: Head::new(response.status(), lines(arrived, settings, freshness.is_some())),
        freshness,
        variant: Variant::of(arrived.request, response.fields()).unwrap_or_default(),
        declared_length: response.declared_length().filter(|_| !response.ambiguous_length()),
        generation: arrived.generation,
    };
    (store.admit(key, admission), rule)
}

/// The field lines that a response keeps: all that concern no single connection, in their order,
/// then Via. Date is added where it was missing (RFC 9110 section 6.6.1).
fn lines(arrived: &Arrived<'_>, settings: &Settings, is_stored: bool) -> Vec<u8> {
    let fields = arrived.response.fields();
    let mut lines = Vec::with_capacity(arrived.response.fields().len() * 40);
    for field in fields.iter() {
        // An age is counted on only for what is stored; what passes keeps the one it came with.
        let passes_age = !is_stored && field.known == Some(Known::Age);
        if passes_age || is_stored_field(field, fields) {
            encode_field(&mut lines, field.name, field.value);
        }
    }
    if !fields.has(Known::Date) {
        encode_field(&mut lines, b"Date", &date::encode(arrived.received.wall));
    }
    lines.extend_from_slice(settings.via_line(arrived.response.version()).as_bytes());
    lines
}

/// What a 304 did to the stored response that was validated.
#[derive(Debug)]
pub(crate) enum Freshened {
    /// The record was updated; reuse it.
    Updated(Arc<Stored>),
    /// The 304 is about another representation, or may not be stored: ask for the whole response.
    Useless,
}

/// Updates `stored` with the fields of a 304 (RFC 9111 section 4.3.4).
pub(crate) fn freshen(
    store: &Arc<Store>,
    stored: &Arc<Stored>,
    arrived: &Arrived<'_>,
    settings: &Settings,
) -> Freshened {
    let not_modified = arrived.response.fields();
    if !may_freshen(stored.head.fields(), not_modified) {
        return Freshened::Useless;
    }
    let mut lines = Vec::with_capacity(stored.head.lines().len() + 128);
    caching::freshen(stored.head.fields(), not_modified, &mut lines);
    if !not_modified.has(Known::Date) {
        encode_field(&mut lines, b"Date", &date::encode(arrived.received.wall));
    }
    let spans = FieldSpans::decode_lines(&lines);
    let decision = freshened_decision(
        &arrived.received(),
        stored.head.status(),
        spans.of(&lines),
        &settings.config.caching,
    );
    let freshness: Freshness = match decision {
        StoreDecision::Store(freshness) => freshness,
        StoreDecision::Pass(rule) => {
            // What only this client may not share is still good for the others.
            if !rule.is_about_request() {
                store.remove(stored);
            }
            return Freshened::Useless;
        }
    };
    let variant = Variant::of(arrived.request, spans.of(&lines)).unwrap_or_default();
    let admission = Admission {
        head: Head::new(stored.head.status(), lines),
        freshness: Some(freshness),
        variant,
        declared_length: None,
        generation: arrived.generation,
    };
    match store.freshen(stored, admission) {
        Some(updated) => Freshened::Updated(updated),
        None => Freshened::Useless,
    }
}

/// Invalidates what an unsafe request may have changed (RFC 9111 section 4.4): its target, and
/// the targets of Location and Content-Location at the same origin. Returns how many keys held
/// something.
pub(crate) fn invalidate(
    store: &Store,
    request: RequestHead<'_>,
    response: ResponseHead<'_>,
    key_of: impl Fn(Option<&[u8]>) -> Vec<u8>,
) -> u64 {
    let Invalidation::Target { location, content_location } = invalidation(request, response)
    else {
        return 0;
    };
    let mut count = u64::from(store.invalidate(&key_of(None)));
    for reference in [location, content_location].into_iter().flatten() {
        if let Some(path_query) = same_origin_target(request, reference) {
            count += u64::from(store.invalidate(&key_of(Some(&path_query))));
        }
    }
    count
}
