//! From what the codec refuses in an origin server's response to the reason that an operator reads.
//!
//! Towards a client each refusal keeps its own name, because the author of that client has to find
//! the fault. Of an origin server the operator only needs to know which part of the response is
//! wrong; the refusal itself is in the notice.

use super::reason::Reason;
use wire::Refusal;

impl Reason {
    /// The reason for bytes behind a response head that the codec refused. Lines stand there only
    /// around chunks: one that ends wrongly is no fault of the head.
    #[must_use]
    pub const fn of_response_content(refusal: Refusal) -> Reason {
        match refusal {
            Refusal::BareLf | Refusal::BareCr => Reason::OriginBadChunk,
            other => Reason::of_response(other),
        }
    }

    /// The reason for bytes of an origin server that the codec refused.
    #[must_use]
    pub const fn of_response(refusal: Refusal) -> Reason {
        match refusal {
            Refusal::HeadTooLarge
            | Refusal::RequestLineTooLong
            | Refusal::LineTooLong
            | Refusal::TooManyFields => Reason::OriginHeadTooLarge,
            Refusal::BadContentLength
            | Refusal::ConflictingContentLengths
            | Refusal::LengthWithTransferEncoding
            | Refusal::TransferEncodingOn10 => Reason::OriginBadFraming,
            Refusal::UnknownTransferEncoding
            | Refusal::BadTransferEncoding
            | Refusal::ChunkedNotLast => Reason::OriginUnknownCoding,
            Refusal::BadChunkSize
            | Refusal::BadChunkExtension
            | Refusal::ChunkLineTooLong
            | Refusal::BadChunkEnd => Reason::OriginBadChunk,
            Refusal::BadTrailer | Refusal::TrailersTooLarge => Reason::OriginBadTrailers,
            Refusal::Truncated => Reason::OriginTruncated,
            Refusal::BareLf
            | Refusal::BareCr
            | Refusal::NulByte
            | Refusal::ControlByte
            | Refusal::SpaceBeforeColon
            | Refusal::ObsFold
            | Refusal::LeadingSpace
            | Refusal::BadFieldName
            | Refusal::BadStatusLine
            | Refusal::BadVersion
            | Refusal::UnsupportedVersion
            // What only a request can be refused for; a response is never decoded as one.
            | Refusal::BadMethod
            | Refusal::BadTarget
            | Refusal::MissingHost
            | Refusal::SeveralHosts
            | Refusal::BadHost
            | Refusal::ConnectWithContent => Reason::OriginGarbage,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::{Reason, Source};
    use wire::Refusal;

    #[test]
    fn a_client_gets_the_status_of_the_refusal_and_a_close() {
        for refusal in Refusal::ALL {
            let reason = Reason::from(*refusal);
            assert_eq!(reason.status(), refusal.status(), "{refusal:?}");
            assert_eq!(reason.source(), Source::Client);
            assert!(reason.closes(), "{refusal:?}");
        }
    }

    #[test]
    fn the_fault_of_an_origin_server_is_never_told_as_the_clients() {
        for refusal in Refusal::ALL {
            let reason = Reason::of_response(*refusal);
            assert_eq!(reason.source(), Source::Origin, "{refusal:?}");
            assert_eq!(reason.status(), 502, "{refusal:?}");
        }
    }
}
