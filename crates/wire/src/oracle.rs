//! What must hold for any bytes: the bodies of the fuzz targets and of the property tests.
//!
//! Compiled for tests and fuzzing alone. A check panics when a promise of this crate is broken:
//! the same answer whole and byte by byte, places inside the bytes, fields that can be written
//! and read back. The corpora in `fuzz/corpus` are replayed by the tests below.

use crate::{
    ContentDecoder, ContentLimits, Decoded, FieldSpans, Fields, Framing, HeadLimits, LAST_CHUNK,
    Method, Refusal, RequestHead, RequestSpans, ResponseSpans, decode_request, decode_response,
    encode_chunk_head, encode_field, encode_request_line, is_token, trim_ows,
};

const SMALL_HEAD: HeadLimits = HeadLimits { head_bytes: 200, line_bytes: 60, fields: 4 };
const SMALL_CONTENT: ContentLimits =
    ContentLimits { chunk_line_bytes: 20, trailer_bytes: 60, trailer_fields: 2 };

/// Decodes `bytes` as a request head and checks every promise.
pub fn check_request(bytes: &[u8]) {
    for limits in [HeadLimits::default(), SMALL_HEAD] {
        let mut spans = RequestSpans::default();
        let whole = decode_request(bytes, &mut spans, &limits);
        let mut trickled = RequestSpans::default();
        let bitwise =
            trickle(bytes.len(), |len| decode_request(&bytes[..len], &mut trickled, &limits));
        assert_eq!(whole, bitwise, "whole and byte by byte");
        if let Ok(Decoded::Complete { head_len }) = whole {
            let head = spans.head(bytes);
            assert!(bytes[..head_len].ends_with(head.bytes()), "the head ends the bytes used");
            check_fields(head.fields());
            check_encoded_request(head);
        }
    }
}

/// Decodes `bytes` as a response head, to several methods, and checks every promise.
pub fn check_response(bytes: &[u8]) {
    for limits in [HeadLimits::default(), SMALL_HEAD] {
        for to in [Method::Get, Method::Head, Method::Connect] {
            let mut spans = ResponseSpans::default();
            let mut repaired = bytes.to_vec();
            let whole = decode_response(&mut repaired, &mut spans, to, &limits);
            let mut trickled = ResponseSpans::default();
            let mut copy = bytes.to_vec();
            let bitwise = trickle(bytes.len(), |len| {
                decode_response(&mut copy[..len], &mut trickled, to, &limits)
            });
            assert_eq!(whole, bitwise, "whole and byte by byte");
            if let Ok(Decoded::Complete { head_len }) = whole {
                assert_eq!(repaired, copy, "the same repairs");
                assert_eq!(repaired[head_len..], bytes[head_len..], "the content is left alone");
                let head = spans.head(&repaired);
                assert_eq!(head.repairs(), trickled.head(&copy).repairs(), "as many repairs");
                assert!((100..1000).contains(&head.status()), "three digits");
                check_fields(head.fields());
            }
        }
    }
}

/// Decodes `bytes` as content in every framing and checks every promise.
pub fn check_content(bytes: &[u8]) {
    let half = Framing::Length(bytes.len() as u64 / 2);
    for framing in [Framing::None, half, Framing::Chunked, Framing::UntilClose] {
        for limits in [ContentLimits::default(), SMALL_CONTENT] {
            let whole = decode_content(framing, limits, bytes, bytes.len());
            for step in [1, 2, 7] {
                assert_eq!(whole, decode_content(framing, limits, bytes, step), "any cuts");
            }
            if whole.end.is_ok() {
                check_encoded_content(&whole.content);
            }
        }
    }
}

/// The first result that is not `Partial` when the bytes come one at a time.
fn trickle(
    total: usize,
    mut decode: impl FnMut(usize) -> Result<Decoded, Refusal>,
) -> Result<Decoded, Refusal> {
    for len in 1..=total {
        match decode(len) {
            Ok(Decoded::Partial) => {}
            Ok(Decoded::Complete { head_len }) => {
                assert_eq!(head_len, len, "complete with its last byte");
                return Ok(Decoded::Complete { head_len });
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(Decoded::Partial)
}

fn check_fields(fields: Fields<'_>) {
    let mut encoded = Vec::new();
    for field in fields.iter() {
        assert!(is_token(field.name), "a name is a token");
        assert_eq!(trim_ows(field.value), field.value, "a value is trimmed");
        let is_text = |&byte: &u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
        assert!(field.value.iter().all(is_text), "a value has no control bytes");
        let first = fields.all_named(field.name).next();
        assert!(first.is_some(), "a field is found by its name");
        assert_eq!(first, field.known.map_or(first, |known| fields.first(known)));
        encode_field(&mut encoded, field.name, field.value);
    }
    let decoded = FieldSpans::decode_lines(&encoded);
    assert!(fields.iter().eq(decoded.of(&encoded).iter()), "encode, then decode, is the identity");
}

fn check_encoded_request(head: RequestHead<'_>) {
    let mut encoded = Vec::new();
    encode_request_line(&mut encoded, head.method_bytes(), head.request_target());
    for field in head.fields().iter() {
        encode_field(&mut encoded, field.name, field.value);
    }
    encoded.extend_from_slice(b"\r\n");
    let mut spans = RequestSpans::default();
    let limits = HeadLimits { head_bytes: usize::MAX, line_bytes: usize::MAX, fields: usize::MAX };
    match decode_request(&encoded, &mut spans, &limits) {
        Ok(Decoded::Complete { head_len }) => {
            let again = spans.head(&encoded);
            assert_eq!(head_len, encoded.len());
            assert_eq!((head.method(), head.target()), (again.method(), again.target()));
            assert_eq!(head.framing(), again.framing());
            assert_eq!(head.authority(), again.authority());
            assert!(head.fields().iter().eq(again.fields().iter()));
        }
        // The encoder writes HTTP/1.1, in which Host is no longer optional.
        Err(Refusal::MissingHost) => assert_eq!(head.version(), crate::Version::Http10),
        other => panic!("what was read, written and read again: {other:?}"),
    }
}

/// All that a decoder says about some bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    content: Vec<u8>,
    consumed: usize,
    trailers: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    end: Result<(), Refusal>,
}

fn decode_content(framing: Framing, limits: ContentLimits, bytes: &[u8], step: usize) -> Outcome {
    let mut decoder = ContentDecoder::new(framing, limits);
    let mut content = Vec::new();
    let mut consumed = 0;
    let mut failed = None;
    'fed: for part in bytes.chunks(step.max(1)) {
        let mut input = part;
        while !input.is_empty() && !decoder.is_done() {
            match decoder.decode(input) {
                Ok(piece) => {
                    assert!(piece.consumed > 0, "input is used, or the content is done");
                    content.extend_from_slice(piece.content);
                    consumed += piece.consumed;
                    input = &input[piece.consumed..];
                }
                Err(refusal) => {
                    failed = Some(refusal);
                    break 'fed;
                }
            }
        }
    }
    let end = decoder.handle_end();
    assert_eq!(failed.map_or(end, Err), end, "a refusal lasts");
    // Where a refusal is noticed depends on the cuts; what it is and what came before does not.
    let consumed = if failed.is_some() { 0 } else { consumed };
    let lines = |fields: Fields<'_>| {
        fields.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
    };
    Outcome { content, consumed, trailers: decoder.trailers().map(lines), end }
}

fn check_encoded_content(content: &[u8]) {
    let mut encoded = Vec::new();
    for chunk in content.chunks(11) {
        encode_chunk_head(&mut encoded, chunk.len());
        encoded.extend_from_slice(chunk);
        encoded.extend_from_slice(b"\r\n");
    }
    encoded.extend_from_slice(LAST_CHUNK);
    encode_field(&mut encoded, b"Digest", b"none");
    encoded.extend_from_slice(b"\r\n");
    let outcome = decode_content(Framing::Chunked, ContentLimits::default(), &encoded, 5);
    assert_eq!(outcome.content, content, "encode, then decode, is the identity");
    assert_eq!((outcome.consumed, outcome.end), (encoded.len(), Ok(())));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
    use proptest::sample::select;

    use super::{check_content, check_request, check_response};

    type Check = fn(&[u8]);

    const CHECKS: [(&str, Check); 3] =
        [("request", check_request), ("response", check_response), ("content", check_content)];

    /// Pieces that make faults likely where random bytes would never reach.
    const FRAGMENTS: &[&[u8]] = &[
        b"GET ",
        b"CONNECT ",
        b"OPTIONS ",
        b"POST",
        b" ",
        b"/",
        b"/a?b=%41",
        b"http://a:80",
        b"a:443",
        b"*",
        b"[::1]",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 304\r\n",
        b"HTTP/1.0 204 \n",
        b"HTTP/2.0",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"\t",
        b": ",
        b":",
        b"Host: a\r\n",
        b"Host",
        b"Content-Length: 5\r\n",
        b"Content-Length: 05, 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"chunked",
        b"Connection: close\r\n",
        b"X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        b" fold\r\n",
        b"Name : v\r\n",
        b"5\r\nhello\r\n",
        b"5;a=b\r\n",
        b"0\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff",
        b"7fffffffffffffff\r\n",
        b"a",
        b"b: c\r\n",
        b"\x80",
        b";",
        b"\"",
        b",",
        b"#",
        b"%",
        b"%zz",
    ];

    fn input() -> impl Strategy<Value = Vec<u8>> {
        let fragment = select(FRAGMENTS).prop_map(<[u8]>::to_vec);
        let noise = vec(any::<u8>(), 0..4);
        vec(prop_oneof![8 => fragment, 1 => noise], 0..20).prop_map(|parts| parts.concat())
    }

    fn complete_request() -> impl Strategy<Value = Vec<u8>> {
        input().prop_map(|bytes| {
            [b"GET / HTTP/1.1\r\nHost: a\r\n".as_slice(), &bytes, b"\r\n\r\n"].concat()
        })
    }

    fn complete_response() -> impl Strategy<Value = Vec<u8>> {
        input().prop_map(|bytes| {
            [b"HTTP/1.1 200 OK\r\nDate: x\r\n".as_slice(), &bytes, b"\r\n\r\n"].concat()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_bytes_as_request(bytes in prop_oneof![input(), complete_request()]) {
            check_request(&bytes);
        }

        #[test]
        fn any_bytes_as_response(bytes in prop_oneof![input(), complete_response()]) {
            check_response(&bytes);
        }

        #[test]
        fn any_bytes_as_content(bytes in input()) {
            check_content(&bytes);
        }
    }

    #[test]
    fn corpus_replays() {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for (target, check) in CHECKS {
            let files = fs::read_dir(corpora.join(target)).expect("the corpus is in the tree");
            let mut replayed = 0;
            for file in files {
                check(&fs::read(file.unwrap().path()).unwrap());
                replayed += 1;
            }
            assert!(replayed >= 10, "{target} has a corpus");
        }
    }
}
