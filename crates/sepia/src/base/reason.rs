//! The one table of every "no" and every abnormal end.
//!
//! A reason is what an operator reads in the log and in `sepia status`, what a client receives as a
//! status code, and what decides the fate of the connection. Whoever adds a way for an exchange, a
//! session or a tunnel to end other than well adds a row here first; nothing in the program ends on
//! a bare string. The error types of Proxy-Status are those registered by RFC 9209 §2.3 and no
//! others: a test holds the table to the registry.
//!
//! What the codec refuses in a request is declared there and taken over. A row of our own reads:
//! name, token; whose fault, status for the client (0: nobody is there to receive one), fate of the
//! client's connection, log level, Proxy-Status error, retry rule; sentence.

/// Who did something wrong, or where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Source {
    /// The client, its request or its connection.
    Client,
    /// The origin server, its name, its response or its connection.
    Origin,
    /// This proxy: its limits, its operator's wishes, its faults.
    Internal,
}

/// How loudly a reason is told to the operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Level {
    /// Only counted: it is part of ordinary life.
    Quiet,
    /// Counted, and in the access log's line of the exchange.
    Info,
    /// Told on standard error, rate limited.
    Warn,
    /// Told on standard error, rate limited: a fault of this program.
    Error,
}

/// Whether the exchange may be tried on another connection (RFC 9110 §9.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Retry {
    /// Never: the answer would be the same, or the request may have had its effect.
    Never,
    /// Always: the request has not been sent to anybody.
    Unsent,
    /// Once, on a fresh connection, if the method is idempotent, its content can be sent again and
    /// no byte of an answer has been received.
    Idempotent,
}

/// What becomes of the client's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
enum Fate {
    /// It goes on with the next request.
    Keep,
    /// It is closed after the answer, because its framing is lost or its time is over.
    Close,
}

macro_rules! proxy_error {
    (none) => {
        None
    };
    ($name:ident) => {
        Some(stringify!($name))
    };
}

macro_rules! reasons {
    (
        requests { $($refused:ident),+ $(,)? }
        and { $($refusal:ident => $other:ident),+ $(,)? }
        $(
        $variant:ident, $token:literal;
        $source:ident, $status:literal, $fate:ident, $level:ident, $proxy_error:ident, $retry:ident;
        $sentence:literal
    )+) => {
        /// Why a request was refused or why something ended abnormally.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(
                #[doc = concat!("A request: see [`wire::Refusal::", stringify!($refused), "`].")]
                $refused,
            )+
            $(#[doc = $sentence] $variant,)+
        }

        impl Reason {
            /// Every reason, in the table's order; `Reason::ALL[r as usize] == r`.
            pub const ALL: &[Reason] = &[$(Reason::$refused,)+ $(Reason::$variant),+];

            /// The reason for bytes of a client that the codec refused.
            #[must_use]
            pub const fn of_request(refusal: wire::Refusal) -> Reason {
                match refusal {
                    $(wire::Refusal::$refused => Reason::$refused,)+
                    $(wire::Refusal::$refusal => Reason::$other,)+
                }
            }
        }

        const ROWS: &[Row] = &[$(Row::of_refusal(wire::Refusal::$refused),)+ $(Row {
            token: $token,
            sentence: $sentence,
            status: $status,
            source: Source::$source,
            fate: Fate::$fate,
            level: Level::$level,
            proxy_status: proxy_error!($proxy_error),
            retry: Retry::$retry,
        }),+];
    };
}

/// A row of the table.
struct Row {
    token: &'static str,
    sentence: &'static str,
    status: u16,
    source: Source,
    fate: Fate,
    level: Level,
    proxy_status: Option<&'static str>,
    retry: Retry,
}

impl Row {
    /// After a refused byte the next request's place is unknown, so the connection always closes
    /// (RFC 9112 §9.6).
    const fn of_refusal(refusal: wire::Refusal) -> Row {
        Row {
            token: refusal.token(),
            sentence: refusal.sentence(),
            status: refusal.status(),
            source: Source::Client,
            fate: Fate::Close,
            level: Level::Info,
            proxy_status: Some("http_request_error"),
            retry: Retry::Never,
        }
    }
}

reasons! {
    // The client's bytes: what the codec refuses, with its own words and sections.
    requests {
        HeadTooLarge, RequestLineTooLong, LineTooLong, TooManyFields, BareLf, BareCr, NulByte,
        ControlByte, SpaceBeforeColon, ObsFold, LeadingSpace, BadFieldName, BadMethod, BadTarget,
        BadVersion, UnsupportedVersion, MissingHost, SeveralHosts, BadHost, BadContentLength,
        ConflictingContentLengths, LengthWithTransferEncoding, TransferEncodingOn10,
        BadTransferEncoding, UnknownTransferEncoding, ChunkedNotLast, ConnectWithContent,
        BadChunkSize, BadChunkExtension, ChunkLineTooLong, BadChunkEnd, BadTrailer,
        TrailersTooLarge,
    }
    and {
        Truncated => ClientTruncated,
        // Only a response has a status line; a request is never decoded as one.
        BadStatusLine => BadMethod,
    }
    ClientTruncated, "client-truncated";
    Client, 400, Close, Info, http_request_error, Never;
    "The client closed its side before its request content was complete."
    // The client's pace and presence.
    HeadTimeout, "head-timeout";
    Client, 408, Close, Info, http_request_error, Never;
    "A request head was begun and not finished within `timeouts.head`."
    IdleTimeout, "idle-timeout";
    Client, 0, Close, Quiet, none, Never;
    "A session waited for its next request longer than `timeouts.idle`."
    ClientSilent, "client-silent";
    Client, 408, Close, Info, http_request_error, Never;
    "The client stopped sending its request content for `timeouts.client`."
    ClientStalled, "client-stalled";
    Client, 0, Close, Info, none, Never;
    "The client did not read its answer for `timeouts.client`."
    ClientReset, "client-reset";
    Client, 0, Close, Quiet, none, Never;
    "The client reset its connection."
    ClientGone, "client-gone";
    Client, 0, Close, Quiet, none, Never;
    "The client closed its connection before its answer was complete."
    // What the request asks for (RFC 9110 §7.6, §9, §10).
    LoopDetected, "loop-detected";
    Client, 508, Keep, Warn, proxy_loop_detected, Never;
    "The request has been here before: Via names this proxy's pseudonym."
    ExpectationFailed, "expectation-failed";
    Client, 417, Close, Info, http_request_error, Never;
    "The request expects something other than 100-continue."
    MethodNotAllowed, "method-not-allowed";
    Client, 405, Keep, Info, http_request_error, Never;
    "The method is not served on this listener."
    LengthRequired, "length-required";
    Client, 411, Close, Info, http_request_error, Never;
    "The content comes in chunks, and the origin server is known to speak HTTP/1.0 only."
    UnsupportedScheme, "unsupported-scheme";
    Client, 501, Keep, Info, http_request_error, Never;
    "The target URI has a scheme other than http; a forward proxy takes https by CONNECT."
    ConnectPortRefused, "connect-port-refused";
    Client, 403, Close, Info, http_request_denied, Never;
    "CONNECT to a port that `connect-ports` does not name."
    PrivateTarget, "private-target";
    Client, 403, Keep, Warn, destination_ip_prohibited, Never;
    "The target is, or its name resolves to, a private address that `allow-private` does not name."
    OnlyIfCached, "only-if-cached";
    Client, 504, Keep, Quiet, proxy_internal_response, Never;
    "The request is only-if-cached and no stored response may be reused."
    // Towards the origin server: its name and its connection.
    NoOrigin, "no-origin";
    Internal, 503, Keep, Warn, destination_unavailable, Never;
    "None of the origin servers of this gateway can be used now."
    OriginNameUnresolved, "origin-name-unresolved";
    Origin, 502, Keep, Info, dns_error, Unsent;
    "The origin server's name does not resolve."
    OriginNameTimeout, "origin-name-timeout";
    Origin, 504, Keep, Info, dns_timeout, Unsent;
    "Resolving the origin server's name took longer than `timeouts.connect`."
    OriginRefused, "origin-refused";
    Origin, 502, Keep, Warn, connection_refused, Unsent;
    "The origin server refused the connection."
    OriginUnreachable, "origin-unreachable";
    Origin, 502, Keep, Warn, destination_ip_unroutable, Unsent;
    "There is no route to the origin server."
    OriginConnectTimeout, "origin-connect-timeout";
    Origin, 504, Keep, Warn, connection_timeout, Unsent;
    "The origin server did not accept the connection within `timeouts.connect`."
    OriginReset, "origin-reset";
    Origin, 502, Keep, Info, connection_terminated, Idempotent;
    "The origin server reset the connection before its response head was complete."
    OriginClosedEarly, "origin-closed-early";
    Origin, 502, Keep, Info, connection_terminated, Idempotent;
    "The origin server closed the connection before its response head was complete."
    OriginWriteStalled, "origin-write-stalled";
    Origin, 504, Close, Info, connection_write_timeout, Never;
    "The origin server did not read the request for `timeouts.silence`."
    OriginHeadTimeout, "origin-head-timeout";
    Origin, 504, Keep, Warn, http_response_timeout, Never;
    "The origin server sent no response head within `timeouts.first-byte`."
    // The origin server's response (RFC 9112 §4 to §8).
    OriginHeadTooLarge, "origin-head-too-large";
    Origin, 502, Keep, Warn, http_response_header_section_size, Never;
    "The response head is larger than its bounds."
    OriginGarbage, "origin-garbage";
    Origin, 502, Keep, Warn, http_protocol_error, Never;
    "The origin server's bytes are no HTTP response head."
    OriginBadFraming, "origin-bad-framing";
    Origin, 502, Keep, Warn, http_protocol_error, Never;
    "The response's framing is invalid: Content-Length is malformed or its copies differ."
    OriginUnknownCoding, "origin-unknown-coding";
    Origin, 502, Keep, Warn, http_response_transfer_coding, Never;
    "The response has a transfer coding other than chunked."
    OriginBadChunk, "origin-bad-chunk";
    Origin, 502, Close, Warn, http_response_transfer_coding, Never;
    "A chunk of the response content is malformed."
    OriginBadTrailers, "origin-bad-trailers";
    Origin, 502, Close, Warn, http_response_trailer_section_size, Never;
    "The trailers of the response are malformed or larger than their bound."
    OriginSwitchedUnasked, "origin-switched-unasked";
    Origin, 502, Keep, Warn, http_upgrade_failed, Never;
    "The origin server answered 101 to a request that asked for no upgrade."
    OriginSilent, "origin-silent";
    Origin, 504, Close, Info, connection_read_timeout, Never;
    "The origin server sent nothing for `timeouts.silence` in the middle of its content."
    OriginTruncated, "origin-truncated";
    Origin, 502, Close, Warn, http_response_incomplete, Never;
    "The origin server ended its content before the length it declared."
    OriginTooMuch, "origin-too-much";
    Origin, 0, Keep, Info, none, Never;
    "The origin server sent bytes after the end of its response; its connection was dropped."
    // Tunnels (RFC 9110 §9.3.6 and §7.8).
    TunnelIdle, "tunnel-idle";
    Client, 0, Close, Quiet, none, Never;
    "No byte passed a tunnel for `timeouts.tunnel-idle`."
    TunnelBroken, "tunnel-broken";
    Origin, 0, Close, Quiet, none, Never;
    "One side of a tunnel reset its connection."
    // This proxy's own limits and faults.
    SlotsExhausted, "slots-exhausted";
    Internal, 503, Keep, Warn, connection_limit_reached, Unsent;
    "No connection to the origin server came free in time."
    TooManySessions, "too-many-sessions";
    Internal, 503, Close, Warn, connection_limit_reached, Never;
    "There are as many sessions as `limits.sessions` allows."
    TooManyWaiters, "too-many-waiters";
    Internal, 503, Keep, Warn, connection_limit_reached, Never;
    "More requests wait for the same answer or the same origin server than are allowed."
    DescriptorsExhausted, "descriptors-exhausted";
    Internal, 503, Close, Warn, connection_limit_reached, Never;
    "The process has no file descriptor left."
    Panicked, "panicked";
    Internal, 500, Close, Error, proxy_internal_error, Never;
    "A fault of this program ended the exchange; please report it with the log's line."
}

impl Reason {
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The word for logs and metrics, kebab-case.
    #[must_use]
    pub const fn token(self) -> &'static str {
        self.row().token
    }

    /// What is wrong, for a person.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        self.row().sentence
    }

    /// Status code for the client; 0 when there is nobody to answer or the answer has begun.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().status
    }

    /// Whether the client's connection must be closed after the answer.
    #[must_use]
    pub const fn closes(self) -> bool {
        matches!(self.row().fate, Fate::Close)
    }

    /// The error type for Proxy-Status (RFC 9209 §2.3).
    #[must_use]
    pub const fn proxy_status(self) -> Option<&'static str> {
        self.row().proxy_status
    }

    /// How loudly the operator is told.
    #[must_use]
    pub const fn level(self) -> Level {
        self.row().level
    }

    /// Where the fault lies.
    #[must_use]
    pub const fn source(self) -> Source {
        self.row().source
    }

    /// Whether the exchange may be tried on another connection.
    #[must_use]
    pub const fn retry(self) -> Retry {
        self.row().retry
    }

    /// Whether a request with these two properties may be tried again: `is_idempotent` is the
    /// method's (RFC 9110 §9.2.2), `is_replayable` says that its content can be sent once more.
    #[must_use]
    pub const fn may_retry(self, is_idempotent: bool, is_replayable: bool) -> bool {
        match self.retry() {
            Retry::Never => false,
            Retry::Unsent => is_replayable,
            Retry::Idempotent => is_idempotent && is_replayable,
        }
    }
}

impl Level {
    /// The word in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Quiet => "quiet",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

impl Source {
    /// The word in reference pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Source::Client => "client",
            Source::Origin => "origin",
            Source::Internal => "internal",
        }
    }
}

impl Retry {
    /// The rule, for reference pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Retry::Never => "never",
            Retry::Unsent => "yes, nothing was sent",
            Retry::Idempotent => "once, if idempotent",
        }
    }
}

impl From<wire::Refusal> for Reason {
    /// As [`Reason::of_request`].
    fn from(refusal: wire::Refusal) -> Self {
        Reason::of_request(refusal)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.token())
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Reason, Source};
    use std::collections::HashSet;

    /// The registry of RFC 9209 §2.3, in its order.
    const REGISTERED: &[&str] = &[
        "dns_timeout",
        "dns_error",
        "destination_not_found",
        "destination_unavailable",
        "destination_ip_prohibited",
        "destination_ip_unroutable",
        "connection_refused",
        "connection_terminated",
        "connection_timeout",
        "connection_read_timeout",
        "connection_write_timeout",
        "connection_limit_reached",
        "tls_protocol_error",
        "tls_certificate_error",
        "tls_alert_received",
        "http_request_error",
        "http_request_denied",
        "http_response_incomplete",
        "http_response_header_section_size",
        "http_response_header_size",
        "http_response_body_size",
        "http_response_trailer_section_size",
        "http_response_trailer_size",
        "http_response_transfer_coding",
        "http_response_content_coding",
        "http_response_timeout",
        "http_upgrade_failed",
        "http_protocol_error",
        "proxy_internal_response",
        "proxy_internal_error",
        "proxy_configuration_error",
        "proxy_loop_detected",
    ];

    #[test]
    fn proxy_status_errors_are_registered_rfc9209_2_3() {
        for reason in Reason::ALL {
            if let Some(error) = reason.proxy_status() {
                assert!(REGISTERED.contains(&error), "{reason}: {error}");
            }
        }
    }

    #[test]
    fn tokens_are_unique_and_kebab_case() {
        let mut seen = HashSet::new();
        for reason in Reason::ALL {
            let token = reason.token();
            let is_kebab = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(token.bytes().all(is_kebab), "{token}");
            assert!(seen.insert(token), "{token} twice");
        }
    }

    #[test]
    fn sentences_are_sentences() {
        for reason in Reason::ALL {
            let sentence = reason.sentence();
            assert!(sentence.ends_with('.') && sentence.len() > 15, "{reason}: {sentence}");
            assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{reason}");
        }
    }

    #[test]
    fn a_table_index_is_the_variant() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
    }

    #[test]
    fn statuses_are_errors_and_match_their_source() {
        for reason in Reason::ALL {
            let status = reason.status();
            assert!(matches!(status, 0 | 200 | 400..600), "{reason}: {status}");
            assert!(status != 200 || reason.level() == Level::Quiet, "{reason} is no fault");
            if reason.source() == Source::Origin && status != 0 {
                assert!(matches!(status, 502 | 504), "{reason}: {status}");
            }
        }
    }

    #[test]
    fn retry_asks_for_what_rfc9110_9_2_2_asks_for() {
        assert!(Reason::OriginReset.may_retry(true, true));
        assert!(!Reason::OriginReset.may_retry(false, true), "a POST may have had its effect");
        assert!(!Reason::OriginReset.may_retry(true, false), "content already passed on");
        assert!(Reason::OriginRefused.may_retry(false, true), "nothing was sent");
        assert!(!Reason::OriginGarbage.may_retry(true, true));
    }

    #[test]
    fn only_our_own_faults_are_errors() {
        for reason in Reason::ALL {
            if reason.level() == Level::Error {
                assert_eq!(reason.source(), Source::Internal, "{reason}");
            }
        }
    }
}
