//! Which answers the proxy gives by itself, beside refusals.

/// Answers that the proxy gives by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAnswer {
    /// The page for those who come to a forward listener with a browser.
    ProxyPage,
    /// TRACE that ends here (RFC 9110 section 9.3.8).
    Trace,
    /// OPTIONS that ends here (RFC 9110 section 9.3.7).
    Options,
}
