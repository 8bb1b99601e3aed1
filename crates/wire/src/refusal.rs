//! Why bytes were refused: one row per reason, declared once.
//!
//! Everything that this crate says no to is a [`Refusal`]. A row carries its words so that the
//! log, the counters and the answer to the client never disagree. It must never carry bytes of
//! the peer: a refusal is copied into logs that other people read.

use std::error::Error;
use std::fmt;

macro_rules! refusals {
    ($($name:ident $status:literal $token:literal $section:literal $sentence:literal;)+) => {
        /// Why a message, or a part of one, was refused. After any of these the place where the
        /// next message would begin is unknown: answer, then close (RFC 9112 §9.6).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $(#[doc = $sentence] #[doc = ""] #[doc = $section] $name,)+
        }

        impl Refusal {
            /// Every refusal, in the order of declaration.
            pub const ALL: &[Refusal] = &[$(Refusal::$name,)+];

            /// What is wrong, for an operator.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Refusal::$name => $sentence,)+ }
            }

            /// The name for counters and logs, in kebab case.
            #[must_use]
            pub const fn token(self) -> &'static str {
                match self { $(Refusal::$name => $token,)+ }
            }

            /// The status of the answer when a client sent it; from an origin it is always 502.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Refusal::$name => $status,)+ }
            }

            /// Where the rule is written.
            #[must_use]
            pub const fn section(self) -> &'static str {
                match self { $(Refusal::$name => $section,)+ }
            }
        }
    };
}

refusals! {
    HeadTooLarge 431 "head-too-large" "RFC 6585 §5"
        "The head is longer than the limit.";
    RequestLineTooLong 414 "request-line-too-long" "RFC 9112 §3"
        "The request line is longer than the limit of a line.";
    LineTooLong 431 "line-too-long" "RFC 6585 §5"
        "A line of the head is longer than the limit.";
    TooManyFields 431 "too-many-fields" "RFC 6585 §5"
        "The head has more field lines than the limit.";
    BareLf 400 "bare-lf" "RFC 9112 §2.2"
        "A line ends with LF alone.";
    BareCr 400 "bare-cr" "RFC 9112 §2.2"
        "A CR stands without its LF.";
    NulByte 400 "nul-byte" "RFC 9110 §5.5"
        "A field line or the start line contains a NUL.";
    ControlByte 400 "control-byte" "RFC 9110 §5.5"
        "A field line or the start line contains a control byte.";
    SpaceBeforeColon 400 "space-before-colon" "RFC 9112 §5.1"
        "White space stands between a field name and its colon.";
    ObsFold 400 "obs-fold" "RFC 9112 §5.2"
        "A field value is folded over several lines.";
    LeadingSpace 400 "leading-space" "RFC 9112 §2.2"
        "White space stands between the start line and the first field line.";
    BadFieldName 400 "bad-field-name" "RFC 9110 §5.1"
        "A field line has no colon, or its name is not a token.";
    BadMethod 400 "bad-method" "RFC 9112 §3.1"
        "The request line does not begin with a method.";
    BadTarget 400 "bad-target" "RFC 9112 §3.2"
        "The request target has none of the four forms, or not the form for its method.";
    BadVersion 400 "bad-version" "RFC 9112 §2.3"
        "The request line does not end with an HTTP version.";
    UnsupportedVersion 505 "unsupported-version" "RFC 9110 §15.6.6"
        "The major version of HTTP is not 1.";
    MissingHost 400 "missing-host" "RFC 9112 §3.2"
        "A request of HTTP/1.1 has no Host.";
    SeveralHosts 400 "several-hosts" "RFC 9112 §3.2"
        "A request has more than one Host.";
    BadHost 400 "bad-host" "RFC 9112 §3.2"
        "Host is not a host with an optional port.";
    BadContentLength 400 "bad-content-length" "RFC 9110 §8.6"
        "Content-Length is not a decimal number below 2^63.";
    ConflictingContentLengths 400 "conflicting-content-lengths" "RFC 9112 §6.3"
        "Content-Length is given with different values.";
    LengthWithTransferEncoding 400 "length-with-transfer-encoding" "RFC 9112 §6.3"
        "A request has both Content-Length and Transfer-Encoding.";
    TransferEncodingOn10 400 "transfer-encoding-on-1-0" "RFC 9112 §6.1"
        "A request of HTTP/1.0 has Transfer-Encoding.";
    BadTransferEncoding 400 "bad-transfer-encoding" "RFC 9112 §7"
        "Transfer-Encoding is empty, or gives chunked a parameter.";
    UnknownTransferEncoding 501 "unknown-transfer-encoding" "RFC 9112 §6.1"
        "Transfer-Encoding names a coding other than chunked.";
    ChunkedNotLast 400 "chunked-not-last" "RFC 9112 §6.3"
        "Transfer-Encoding names a coding after chunked.";
    ConnectWithContent 400 "connect-with-content" "RFC 9110 §9.3.6"
        "A CONNECT request announces content.";
    BadChunkSize 400 "bad-chunk-size" "RFC 9112 §7.1"
        "A chunk size is not 1 to 16 hexadecimal digits below 2^63.";
    BadChunkExtension 400 "bad-chunk-extension" "RFC 9112 §7.1.1"
        "A chunk extension contains a control byte.";
    ChunkLineTooLong 400 "chunk-line-too-long" "RFC 9112 §7.1.1"
        "A chunk size with its extensions is longer than the limit.";
    BadChunkEnd 400 "bad-chunk-end" "RFC 9112 §7.1"
        "A chunk is not followed by CRLF.";
    BadTrailer 400 "bad-trailer" "RFC 9112 §7.1.2"
        "A trailer line is no field line.";
    TrailersTooLarge 431 "trailers-too-large" "RFC 9112 §7.1.2"
        "The trailer section is longer, or has more lines, than the limit.";
    BadStatusLine 400 "bad-status-line" "RFC 9112 §4"
        "The response does not begin with a status line.";
    Truncated 400 "truncated" "RFC 9112 §8"
        "The connection ended before the content did.";
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.sentence())
    }
}

impl Error for Refusal {}
