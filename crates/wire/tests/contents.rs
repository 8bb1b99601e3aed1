//! Content and trailers, by section of the RFCs.

use wire::Refusal::{
    BadChunkEnd, BadChunkExtension, BadChunkSize, BadTrailer, BareCr, BareLf, ChunkLineTooLong,
    TrailersTooLarge, Truncated,
};
use wire::{ContentDecoder, ContentLimits, Framing, LAST_CHUNK, Refusal, encode_chunk_head};

/// All content of `input`, how much of it was consumed, and the decoder afterwards.
fn decode(framing: Framing, input: &[u8]) -> (Result<Vec<u8>, Refusal>, usize, ContentDecoder) {
    let mut decoder = ContentDecoder::new(framing, ContentLimits::default());
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        match decoder.decode(&input[at..]) {
            Ok(piece) if piece.consumed == 0 => return (Ok(content), at, decoder),
            Ok(piece) => {
                content.extend_from_slice(piece.content);
                at += piece.consumed;
            }
            Err(refusal) => return (Err(refusal), at, decoder),
        }
    }
}

#[test]
fn rfc_9112_6_length_takes_its_bytes_and_no_more() {
    let (content, consumed, decoder) = decode(Framing::Length(5), b"hello, world");
    assert_eq!((content, consumed), (Ok(b"hello".to_vec()), 5));
    assert!(decoder.is_done());
    assert_eq!(decoder.remaining(), Some(0));
    let (content, consumed, decoder) = decode(Framing::Length(5), b"he");
    assert_eq!((content, consumed), (Ok(b"he".to_vec()), 2));
    assert!(!decoder.is_done());
    assert_eq!(decoder.remaining(), Some(3));
}

#[test]
fn rfc_9112_6_no_content() {
    let (content, consumed, mut decoder) = decode(Framing::None, b"GET /");
    assert_eq!((content, consumed), (Ok(Vec::new()), 0));
    assert!(decoder.is_done());
    assert_eq!(decoder.handle_end(), Ok(()));
}

#[test]
fn rfc_9112_8_until_close_ends_with_the_connection() {
    let (content, consumed, mut decoder) = decode(Framing::UntilClose, b"all of it");
    assert_eq!((content, consumed), (Ok(b"all of it".to_vec()), 9));
    assert!(!decoder.is_done());
    assert_eq!(decoder.handle_end(), Ok(()));
    assert!(decoder.is_done());
}

#[test]
fn rfc_9112_8_content_cut_anywhere_is_truncated() {
    let chunked = b"5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n";
    for len in 0..chunked.len() {
        let (_, consumed, mut decoder) = decode(Framing::Chunked, &chunked[..len]);
        assert_eq!(consumed, len, "cut at {len}");
        assert!(!decoder.is_done());
        assert_eq!(decoder.handle_end(), Err(Truncated), "cut at {len}");
        assert_eq!(decoder.decode(b"more"), Err(Truncated), "it stays truncated");
    }
    let (content, _, mut decoder) = decode(Framing::Chunked, chunked);
    assert_eq!((content, decoder.handle_end()), (Ok(b"hello!".to_vec()), Ok(())));
    let (_, _, mut decoder) = decode(Framing::Length(5), b"hell");
    assert_eq!(decoder.handle_end(), Err(Truncated));
}

#[test]
fn rfc_9112_7_1_chunks() {
    for (input, expected) in [
        ("0\r\n\r\n", Ok("")),
        ("5\r\nhello\r\n0\r\n\r\n", Ok("hello")),
        ("0000000000000005\r\nhello\r\n000\r\n\r\n", Ok("hello")),
        ("B\r\nhello world\r\n0\r\n\r\n", Ok("hello world")),
        ("b\r\nhello world\r\n0\r\n\r\n", Ok("hello world")),
        ("00000000000000005\r\nhello\r\n0\r\n\r\n", Err(BadChunkSize)),
        ("8000000000000000\r\n", Err(BadChunkSize)),
        ("ffffffffffffffff\r\n", Err(BadChunkSize)),
        ("\r\n", Err(BadChunkSize)),
        (" 5\r\nhello\r\n", Err(BadChunkSize)),
        ("5 \r\nhello\r\n", Err(BadChunkSize)),
        ("5\t5\r\nhello\r\n", Err(BadChunkSize)),
        ("+5\r\nhello\r\n", Err(BadChunkSize)),
        ("-1\r\n", Err(BadChunkSize)),
        ("0x5\r\nhello\r\n", Err(BadChunkSize)),
        ("5_\r\nhello\r\n", Err(BadChunkSize)),
        ("5\0\r\nhello\r\n", Err(BadChunkSize)),
        ("5\nhello\r\n", Err(BareLf)),
        ("5\rhello\r\n", Err(BareCr)),
        ("5\r\r\nhello\r\n", Err(BareCr)),
        ("5\r\nhello!\r\n", Err(BadChunkEnd)),
        ("5\r\nhello\n", Err(BadChunkEnd)),
        ("5\r\nhello\rX", Err(BadChunkEnd)),
        ("5\r\nhello0\r\n\r\n", Err(BadChunkEnd)),
    ] {
        let (content, _, _) = decode(Framing::Chunked, input.as_bytes());
        let expected = expected.map(|content| content.as_bytes().to_vec());
        assert_eq!(content, expected, "{input:?}");
    }
}

#[test]
fn rfc_9112_7_1_the_largest_chunk_is_below_2_to_the_63() {
    let (content, _, decoder) = decode(Framing::Chunked, b"7fffffffffffffff\r\nabc");
    assert_eq!(content, Ok(b"abc".to_vec()));
    assert!(!decoder.is_done());
}

#[test]
fn rfc_9112_7_1_1_extensions_are_dropped() {
    for (line, expected) in [
        ("5;a", Ok("hello")),
        ("5 ;\ta = \"b;,\\\"c\"", Ok("hello")),
        ("5;\u{e9}", Ok("hello")),
        ("5;a\0", Err(BadChunkExtension)),
        ("5;a\u{7f}", Err(BadChunkExtension)),
        ("5;a\u{1b}", Err(BadChunkExtension)),
        ("5;a\nb", Err(BareLf)),
        ("5;a\rb", Err(BareCr)),
    ] {
        let input = format!("{line}\r\nhello\r\n0\r\n\r\n");
        let (content, _, _) = decode(Framing::Chunked, input.as_bytes());
        assert_eq!(content, expected.map(|text| text.as_bytes().to_vec()), "{line:?}");
    }
    let limit = ContentLimits::default().chunk_line_bytes;
    let with_line = |len: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(len - 2));
    assert_eq!(decode(Framing::Chunked, with_line(limit).as_bytes()).0, Ok(b"x".to_vec()));
    let too_long = decode(Framing::Chunked, with_line(limit + 1).as_bytes()).0;
    assert_eq!(too_long, Err(ChunkLineTooLong));
}

#[test]
fn rfc_9112_7_1_2_trailers() {
    let input = b"1\r\nx\r\n0\r\nDigest: a\r\nX-End:  b \r\n\r\nHTTP/1.1";
    let (content, consumed, decoder) = decode(Framing::Chunked, input);
    assert_eq!((content, consumed), (Ok(b"x".to_vec()), input.len() - 8));
    let trailers = decoder.trailers().expect("done");
    let lines: Vec<_> = trailers.iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(lines, [(b"Digest".as_slice(), b"a".as_slice()), (b"X-End", b"b")]);

    let (_, _, decoder) = decode(Framing::Chunked, b"0\r\n\r\n");
    assert!(decoder.trailers().expect("done").is_empty());
    let (_, _, decoder) = decode(Framing::Chunked, b"0\r\n");
    assert!(decoder.trailers().is_none(), "not done");
    let (_, _, decoder) = decode(Framing::Length(0), b"");
    assert!(decoder.trailers().is_none(), "not chunked");
}

#[test]
fn rfc_9112_7_1_2_trailers_refused() {
    let many = "A: b\r\n".repeat(65);
    let long = format!("A: {}\r\n", "b".repeat(16 * 1024));
    for (section, expected) in [
        ("A: b\n\r\n", BareLf),
        ("A: b\r\n\n", BareLf),
        ("A : b\r\n\r\n", BadTrailer),
        ("A: b\r\n c\r\n\r\n", BadTrailer),
        (" A: b\r\n\r\n", BadTrailer),
        ("A\r\n\r\n", BadTrailer),
        ("A: \0\r\n\r\n", BadTrailer),
        ("A: b\rc\r\n\r\n", BadTrailer),
        (many.as_str(), TrailersTooLarge),
        (long.as_str(), TrailersTooLarge),
    ] {
        let input = format!("0\r\n{section}");
        let (content, _, mut decoder) = decode(Framing::Chunked, input.as_bytes());
        assert_eq!(content, Err(expected));
        assert_eq!(decoder.handle_end(), Err(expected), "it lasts");
    }
}

#[test]
fn rfc_9112_7_1_what_is_encoded_is_decoded() {
    for len in [1, 9, 10, 15, 16, 255, 256, 70_000] {
        let content = vec![b'x'; len];
        let mut encoded = Vec::new();
        encode_chunk_head(&mut encoded, len);
        encoded.extend_from_slice(&content);
        encoded.extend_from_slice(b"\r\n");
        encoded.extend_from_slice(LAST_CHUNK);
        encoded.extend_from_slice(b"\r\n");
        let (decoded, consumed, _) = decode(Framing::Chunked, &encoded);
        assert_eq!((decoded, consumed), (Ok(content), encoded.len()), "{len}");
    }
}

#[test]
fn content_is_not_copied() {
    let input = b"5\r\nhello\r\n0\r\n\r\n";
    let mut decoder = ContentDecoder::new(Framing::Chunked, ContentLimits::default());
    let piece = decoder.decode(input).unwrap();
    assert_eq!(piece.content.as_ptr(), input[3..].as_ptr());
    assert_eq!(piece.consumed, 8, "the chunk's end belongs to the next piece");
}
