//! The chunked transfer coding, resumable at any byte (RFC 9112 §7.1).
//!
//! Stricter than most: CRLF alone ends a line, white space may follow a size only before an
//! extension, and no control byte hides in an extension. Parsers that disagree about any of
//! these are how one request is hidden inside another. Extensions are read over and dropped, as
//! §7.1.1 asks for unknown ones.

use memchr::memchr;

use crate::content::{ContentLimits, Piece};
use crate::field::{FieldSpans, Fields};
use crate::head::{FIELDS_MAX, decode_field_lines};
use crate::refusal::Refusal;

/// 16 hexadecimal digits are 64 bits, so the sum below cannot overflow.
const SIZE_DIGITS_MAX: u8 = 16;

#[derive(Debug)]
pub(crate) struct ChunkDecoder {
    limits: ContentLimits,
    state: State,
    /// Bytes of the current chunk line so far.
    line_bytes: usize,
    /// The trailer section as received; empty if the content has none.
    section: Vec<u8>,
    /// Where the current trailer line begins.
    trailer_start: usize,
    trailer_lines: usize,
    trailers: FieldSpans,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a chunk size.
    Size {
        size: u64,
        digits: u8,
    },
    /// In white space after the size: only an extension may follow.
    Space {
        size: u64,
    },
    /// In an extension.
    Extension {
        size: u64,
    },
    /// After the CR of a chunk line.
    LineFeed {
        size: u64,
    },
    /// In the content of a chunk; not 0.
    Content {
        remaining: u64,
    },
    /// After the content: its CR.
    EndReturn,
    /// After the content: its LF.
    EndLineFeed,
    /// In the trailer section.
    Trailers,
    Done,
}

impl ChunkDecoder {
    pub(crate) fn new(limits: ContentLimits) -> ChunkDecoder {
        ChunkDecoder {
            limits,
            state: State::Size { size: 0, digits: 0 },
            line_bytes: 0,
            section: Vec::new(),
            trailer_start: 0,
            trailer_lines: 0,
            trailers: FieldSpans::default(),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(crate) fn trailers(&self) -> Option<Fields<'_>> {
        self.is_done().then(|| self.trailers.of(&self.section))
    }

    /// Reads on to the end of the next piece of content, of the message, or of the input.
    pub(crate) fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, Refusal> {
        let mut at = 0;
        while at < input.len() {
            match self.state {
                State::Done => break,
                State::Content { remaining } => {
                    let content = take(&input[at..], remaining);
                    self.state = match remaining - content.len() as u64 {
                        0 => State::EndReturn,
                        remaining => State::Content { remaining },
                    };
                    return Ok(Piece { consumed: at + content.len(), content });
                }
                State::Trailers => at += self.handle_trailer_bytes(&input[at..])?,
                _ => {
                    self.handle_line_byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(Piece { consumed: at, content: &[] })
    }

    /// One byte around the chunks.
    fn handle_line_byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.state = match (self.state, byte) {
            (State::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                if digits == SIZE_DIGITS_MAX {
                    return Err(Refusal::BadChunkSize);
                }
                State::Size { size: size << 4 | hex_value(byte), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(Refusal::BadChunkSize),
            (State::Size { size, .. }, _) if size > i64::MAX.unsigned_abs() => {
                return Err(Refusal::BadChunkSize);
            }
            (State::Size { size, .. } | State::Extension { size }, b'\r') => {
                State::LineFeed { size }
            }
            (State::Size { size, .. } | State::Space { size }, b';') => State::Extension { size },
            (State::Size { size, .. } | State::Space { size }, b' ' | b'\t') => {
                State::Space { size }
            }
            (State::Size { .. } | State::Extension { .. }, b'\n') => return Err(Refusal::BareLf),
            (State::Size { .. } | State::Space { .. }, _) => return Err(Refusal::BadChunkSize),
            (State::Extension { size }, b'\t' | b' '..=b'~' | 0x80..) => State::Extension { size },
            (State::Extension { .. }, _) => return Err(Refusal::BadChunkExtension),
            (State::LineFeed { size: 0 }, b'\n') => State::Trailers,
            (State::LineFeed { size }, b'\n') => State::Content { remaining: size },
            (State::LineFeed { .. }, _) => return Err(Refusal::BareCr),
            (State::EndReturn, b'\r') => State::EndLineFeed,
            (State::EndLineFeed, b'\n') => State::Size { size: 0, digits: 0 },
            (State::EndReturn | State::EndLineFeed, _) => return Err(Refusal::BadChunkEnd),
            (state @ (State::Content { .. } | State::Trailers | State::Done), _) => state,
        };
        self.count_line_byte()
    }

    fn count_line_byte(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Size { digits: 1.., .. } | State::Space { .. } | State::Extension { .. } => {
                self.line_bytes += 1;
            }
            _ => self.line_bytes = 0,
        }
        if self.line_bytes > self.limits.chunk_line_bytes {
            return Err(Refusal::ChunkLineTooLong);
        }
        Ok(())
    }

    /// Takes at most one line of the trailer section; returns how many bytes it was.
    fn handle_trailer_bytes(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        let found = memchr(b'\n', input);
        let len = found.map_or(input.len(), |at| at + 1);
        if self.section.len() + len > self.limits.trailer_bytes {
            return Err(Refusal::TrailersTooLarge);
        }
        self.section.extend_from_slice(&input[..len]);
        if found.is_some() {
            self.handle_trailer_line()?;
        }
        Ok(len)
    }

    /// The line that ends at the end of the section so far.
    fn handle_trailer_line(&mut self) -> Result<(), Refusal> {
        let line = &self.section[self.trailer_start..];
        let text = line.strip_suffix(b"\r\n").ok_or(Refusal::BareLf)?;
        if !text.is_empty() {
            self.trailer_lines += 1;
            self.trailer_start = self.section.len();
            let lines_max = self.limits.trailer_fields.min(FIELDS_MAX);
            let fits = self.trailer_lines <= lines_max;
            return if fits { Ok(()) } else { Err(Refusal::TrailersTooLarge) };
        }
        let section = 0..self.section.len();
        decode_field_lines(&self.section, section, self.trailer_lines, &mut self.trailers)
            .map_err(|_| Refusal::BadTrailer)?;
        self.state = State::Done;
        Ok(())
    }
}

fn take(input: &[u8], remaining: u64) -> &[u8] {
    let len = usize::try_from(remaining).map_or(input.len(), |n| n.min(input.len()));
    &input[..len]
}

fn hex_value(digit: u8) -> u64 {
    let value = match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    };
    u64::from(value)
}
