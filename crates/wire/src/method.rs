//! Request methods (RFC 9110 §9). Names are case-sensitive: `get` is not GET.

/// The method of a request; the bytes of an [`Other`](Method::Other) are in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the RFC's")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    /// Any other token: passed on, and counted as unsafe and not idempotent.
    Other,
}

impl Method {
    /// The method written as `name`.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            _ => Method::Other,
        }
    }

    /// Whether the method asks for no change (RFC 9110 §9.2.1).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Whether doing it twice is the same as doing it once (RFC 9110 §9.2.2).
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}
