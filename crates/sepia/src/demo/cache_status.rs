//! Cache-Status (RFC 9211) in plain words: who answered, and why.
//!
//! It reads the field as any other program would have to, and shares nothing with the code that
//! writes it.

/// Who an answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// The store alone.
    Store,
    /// The store, after the origin said that nothing had changed.
    Validated,
    /// A fetch for another client that was still on its way.
    Joined,
    /// The origin.
    Origin,
    /// The proxy itself.
    Proxy,
    /// The origin, with no cache on the way: so it is inside a tunnel.
    Direct,
}

impl AnsweredBy {
    /// One word for the table.
    pub(super) fn word(self) -> &'static str {
        match self {
            AnsweredBy::Store => "store",
            AnsweredBy::Validated => "validated",
            AnsweredBy::Joined => "joined",
            AnsweredBy::Origin => "origin",
            AnsweredBy::Proxy => "proxy",
            AnsweredBy::Direct => "direct",
        }
    }
}

/// What the cache nearest to the client says that it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheStatus {
    is_present: bool,
    is_hit: bool,
    is_stored: bool,
    is_collapsed: bool,
    ttl: Option<i64>,
    forwarded: Option<String>,
    forward_status: Option<u16>,
    detail: Option<String>,
}

impl CacheStatus {
    /// Reads the field's value; of several caches the last is the nearest (RFC 9211 §2).
    pub(super) fn decode(value: Option<&str>) -> CacheStatus {
        let mut status = CacheStatus { is_present: value.is_some(), ..CacheStatus::default() };
        let nearest = value.and_then(|value| value.rsplit(',').next()).unwrap_or_default();
        for parameter in nearest.split(';').skip(1) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name.trim() {
                "hit" => status.is_hit = true,
                "stored" => status.is_stored = true,
                "collapsed" => status.is_collapsed = true,
                "ttl" => status.ttl = value.parse().ok(),
                "fwd" => status.forwarded = Some(value.to_owned()),
                "fwd-status" => status.forward_status = value.parse().ok(),
                "detail" => status.detail = Some(value.to_owned()),
                _ => {}
            }
        }
        status
    }

    /// Who answered.
    pub(super) fn answered_by(&self) -> AnsweredBy {
        match &self.forwarded {
            _ if !self.is_present => AnsweredBy::Direct,
            _ if self.is_hit => AnsweredBy::Store,
            None => AnsweredBy::Proxy,
            Some(_) if self.is_collapsed => AnsweredBy::Joined,
            Some(_) if self.forward_status == Some(304) => AnsweredBy::Validated,
            Some(_) => AnsweredBy::Origin,
        }
    }

    /// Why, for a person; `status` is the answer's.
    pub(super) fn why(&self, status: u16) -> String {
        let detail = self.detail.as_deref();
        match self.answered_by() {
            AnsweredBy::Store => match (status, self.ttl) {
                (304, _) => "the client's copy is still good".to_owned(),
                (206, _) => "cut from the stored response".to_owned(),
                (_, Some(ttl @ 0..)) => format!("fresh for another {ttl} s"),
                (_, _) => format!("stale: {}", detail.unwrap_or("no grant is named")),
            },
            AnsweredBy::Validated => "stale; the origin confirmed it".to_owned(),
            AnsweredBy::Joined => "joined a fetch on its way".to_owned(),
            AnsweredBy::Proxy => format!("by itself: {}", detail.unwrap_or("no reason is named")),
            AnsweredBy::Direct => "no cache took part".to_owned(),
            AnsweredBy::Origin => {
                let why = match self.forwarded.as_deref() {
                    Some("uri-miss") => "not in the store",
                    Some("vary-miss") => "no variant for it",
                    Some("stale") => "stale",
                    Some("method") => return "this method is for the origin".to_owned(),
                    other => other.unwrap_or_default(),
                };
                match detail {
                    _ if self.is_stored => format!("{why}; now stored"),
                    Some(detail) => format!("not stored: {detail}"),
                    None => why.to_owned(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AnsweredBy, CacheStatus};

    #[test]
    fn rfc9211_2_in_plain_words() {
        let table = [
            ("sepia; hit; ttl=300", 200, AnsweredBy::Store, "fresh for another 300 s"),
            ("sepia; hit; ttl=300", 304, AnsweredBy::Store, "the client's copy is still good"),
            ("sepia; hit; ttl=300", 206, AnsweredBy::Store, "cut from the stored response"),
            ("sepia; hit; ttl=-3; detail=max-stale", 200, AnsweredBy::Store, "stale: max-stale"),
            (
                "sepia; fwd=uri-miss; stored",
                200,
                AnsweredBy::Origin,
                "not in the store; now stored",
            ),
            (
                "sepia; fwd=vary-miss; stored",
                200,
                AnsweredBy::Origin,
                "no variant for it; now stored",
            ),
            (
                "sepia; fwd=uri-miss; detail=no-store",
                200,
                AnsweredBy::Origin,
                "not stored: no-store",
            ),
            ("sepia; fwd=uri-miss", 502, AnsweredBy::Origin, "not in the store"),
            (
                "sepia; fwd=method; detail=method",
                200,
                AnsweredBy::Origin,
                "this method is for the origin",
            ),
            (
                "sepia; fwd=stale; fwd-status=304",
                200,
                AnsweredBy::Validated,
                "stale; the origin confirmed it",
            ),
            (
                "sepia; fwd=stale; fwd-status=200; stored",
                200,
                AnsweredBy::Origin,
                "stale; now stored",
            ),
            (
                "sepia; fwd=uri-miss; collapsed",
                200,
                AnsweredBy::Joined,
                "joined a fetch on its way",
            ),
            ("sepia; detail=only-if-cached", 504, AnsweredBy::Proxy, "by itself: only-if-cached"),
            ("far; fwd=miss, sepia; hit; ttl=1", 200, AnsweredBy::Store, "fresh for another 1 s"),
        ];
        for (value, status, answered_by, why) in table {
            let decoded = CacheStatus::decode(Some(value));
            assert_eq!(decoded.answered_by(), answered_by, "{value}");
            assert_eq!(decoded.why(status), why, "{value}");
        }
        assert_eq!(CacheStatus::decode(None).answered_by(), AnsweredBy::Direct);
    }
}
