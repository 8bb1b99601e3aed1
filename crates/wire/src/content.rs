//! Content of a message: bytes to pieces of content, without copying (RFC 9112 §6, §7).
//!
//! A [`ContentDecoder`] is fed what the connection gives, in any cuts, and says how much it
//! consumed; it never consumes a byte behind the end of the message. The content is never
//! buffered, trailers are, within their limit. Trailers are kept apart from the head: merging
//! them could overrule a decision that was made from it (RFC 9110 §6.5.1).

use crate::chunked::ChunkDecoder;
use crate::field::Fields;
use crate::framing::Framing;
use crate::refusal::Refusal;

/// How much may stand around content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentLimits {
    /// Bytes of a chunk size with its extensions, without the line's end.
    pub chunk_line_bytes: usize,
    /// Bytes of the trailer section, its empty line included.
    pub trailer_bytes: usize,
    /// Trailer lines; above 128 it counts as 128.
    pub trailer_fields: usize,
}

impl Default for ContentLimits {
    fn default() -> ContentLimits {
        ContentLimits { chunk_line_bytes: 4 * 1024, trailer_bytes: 16 * 1024, trailer_fields: 64 }
    }
}

/// What one call of [`ContentDecoder::decode`] got out of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Bytes of the input that are done with: the content below and what stands around it.
    pub consumed: usize,
    /// Content, a slice of the input; may be empty although bytes were consumed.
    pub content: &'a [u8],
}

/// Finds the content in the bytes after a head. Call [`decode`](Self::decode) until it consumes
/// nothing or [`is_done`](Self::is_done); when the peer closes, call
/// [`handle_end`](Self::handle_end). After an error every call returns it again.
#[derive(Debug)]
pub struct ContentDecoder {
    state: State,
}

#[derive(Debug)]
enum State {
    Length(u64),
    Chunked(Box<ChunkDecoder>),
    UntilClose,
    Ended,
    Refused(Refusal),
}

impl ContentDecoder {
    /// A decoder for content with this framing.
    #[must_use]
    pub fn new(framing: Framing, limits: ContentLimits) -> ContentDecoder {
        let state = match framing {
            Framing::None => State::Length(0),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Box::new(ChunkDecoder::new(limits))),
            Framing::UntilClose => State::UntilClose,
        };
        ContentDecoder { state }
    }

    /// The next piece of content in `input`. The caller passes what is behind
    /// [`Piece::consumed`] next time. If nothing was consumed, the input is used up, or the
    /// content is done.
    ///
    /// # Errors
    /// A [`Refusal`] for broken chunks or trailers: close the connection.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, Refusal> {
        match &mut self.state {
            State::Length(remaining) => {
                let len = usize::try_from(*remaining).map_or(input.len(), |n| n.min(input.len()));
                *remaining -= len as u64;
                Ok(Piece { consumed: len, content: &input[..len] })
            }
            State::Chunked(chunks) => {
                let piece = chunks.decode(input);
                if let Err(refusal) = piece {
                    self.state = State::Refused(refusal);
                }
                piece
            }
            State::UntilClose => Ok(Piece { consumed: input.len(), content: input }),
            State::Ended => Ok(Piece { consumed: 0, content: &[] }),
            State::Refused(refusal) => Err(*refusal),
        }
    }

    /// Whether the message is complete. Content that lasts until the connection ends is complete
    /// only after [`handle_end`](Self::handle_end).
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Length(remaining) => *remaining == 0,
            State::Chunked(chunks) => chunks.is_done(),
            State::UntilClose | State::Refused(_) => false,
            State::Ended => true,
        }
    }

    /// How many bytes are still to come, when that was announced.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match &self.state {
            State::Length(remaining) => Some(*remaining),
            State::Ended => Some(0),
            State::Chunked(chunks) => chunks.is_done().then_some(0),
            State::UntilClose | State::Refused(_) => None,
        }
    }

    /// The peer has closed (RFC 9112 §8).
    ///
    /// # Errors
    /// [`Refusal::Truncated`] if the content is not complete, or the refusal returned before.
    pub fn handle_end(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Refused(refusal) => return Err(refusal),
            State::UntilClose => self.state = State::Ended,
            _ => {}
        }
        if self.is_done() {
            return Ok(());
        }
        self.state = State::Refused(Refusal::Truncated);
        Err(Refusal::Truncated)
    }

    /// The trailers of chunked content that is done; `None` for any other.
    #[must_use]
    pub fn trailers(&self) -> Option<Fields<'_>> {
        match &self.state {
            State::Chunked(chunks) => chunks.trailers(),
            _ => None,
        }
    }
}
