//! Messages to bytes: appends to a buffer of the caller, which bounds it.
//!
//! Must never be given bytes that were not checked: names and values come from decoded heads or
//! from our own constants, and in debug builds a line break in one of them is an assertion.
//! RFC 9112 §3 (request line), §4 (status line), §5 (field lines), §7.1 (chunks).

use crate::token::is_token;

/// The last chunk of chunked content; the trailer lines and an empty line follow it.
pub const LAST_CHUNK: &[u8] = b"0\r\n";

/// Appends `name: value` and CRLF.
pub fn encode_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(is_token(name), "a field name is a token");
    debug_assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "one line");
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `number` in decimal digits.
pub fn encode_decimal(out: &mut Vec<u8>, number: u64) {
    const DIGITS_MAX: usize = 20;
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the request line of HTTP/1.1. A target that begins with `?` gets the `/` that an
/// absolute-form may leave out and an origin-form may not (RFC 9112 §3.2.1).
pub fn encode_request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) {
    debug_assert!(is_token(method), "a method is a token");
    debug_assert!(!target.iter().any(|&byte| byte <= b' '), "a target has no white space");
    out.extend_from_slice(method);
    out.push(b' ');
    if target.starts_with(b"?") {
        out.push(b'/');
    }
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Appends the size line of a chunk of `len` bytes; the content and CRLF follow it. `len` is not
/// 0: that would be the last chunk.
pub fn encode_chunk_head(out: &mut Vec<u8>, len: usize) {
    const DIGITS_MAX: usize = 16;
    debug_assert!(len > 0, "an empty chunk ends the content");
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut rest = len;
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[rest % 16];
        rest /= 16;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

macro_rules! statuses {
    ($($status:literal $phrase:literal;)+) => {
        /// The registered reason phrase of `status` (RFC 9110 §15); empty for an unknown one.
        #[must_use]
        pub const fn reason_phrase(status: u16) -> &'static str {
            match status { $($status => $phrase,)+ _ => "" }
        }

        const fn prebuilt_line(status: u16) -> Option<&'static str> {
            match status {
                $($status => Some(concat!("HTTP/1.1 ", $status, " ", $phrase, "\r\n")),)+
                _ => None,
            }
        }
    };
}

statuses! {
    100 "Continue";
    101 "Switching Protocols";
    102 "Processing";
    103 "Early Hints";
    200 "OK";
    201 "Created";
    202 "Accepted";
    203 "Non-Authoritative Information";
    204 "No Content";
    205 "Reset Content";
    206 "Partial Content";
    207 "Multi-Status";
    208 "Already Reported";
    226 "IM Used";
    300 "Multiple Choices";
    301 "Moved Permanently";
    302 "Found";
    303 "See Other";
    304 "Not Modified";
    305 "Use Proxy";
    307 "Temporary Redirect";
    308 "Permanent Redirect";
    400 "Bad Request";
    401 "Unauthorized";
    402 "Payment Required";
    403 "Forbidden";
    404 "Not Found";
    405 "Method Not Allowed";
    406 "Not Acceptable";
    407 "Proxy Authentication Required";
    408 "Request Timeout";
    409 "Conflict";
    410 "Gone";
    411 "Length Required";
    412 "Precondition Failed";
    413 "Content Too Large";
    414 "URI Too Long";
    415 "Unsupported Media Type";
    416 "Range Not Satisfiable";
    417 "Expectation Failed";
    421 "Misdirected Request";
    422 "Unprocessable Content";
    423 "Locked";
    424 "Failed Dependency";
    425 "Too Early";
    426 "Upgrade Required";
    428 "Precondition Required";
    429 "Too Many Requests";
    431 "Request Header Fields Too Large";
    451 "Unavailable For Legal Reasons";
    500 "Internal Server Error";
    501 "Not Implemented";
    502 "Bad Gateway";
    503 "Service Unavailable";
    504 "Gateway Timeout";
    505 "HTTP Version Not Supported";
    506 "Variant Also Negotiates";
    507 "Insufficient Storage";
    508 "Loop Detected";
    511 "Network Authentication Required";
}

/// Appends the status line of HTTP/1.1. `status` has three digits; an unknown one gets an empty
/// reason phrase, whose space stays (RFC 9112 §4).
pub fn encode_status_line(out: &mut Vec<u8>, status: u16) {
    debug_assert!((100..1000).contains(&status), "a status has three digits");
    if let Some(line) = prebuilt_line(status) {
        return out.extend_from_slice(line.as_bytes());
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    encode_decimal(out, u64::from(status));
    out.extend_from_slice(b" \r\n");
}
