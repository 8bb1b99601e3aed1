//! Answers of origins, and origins that only answer. What an origin saw is asserted in its script.

use testkit::script::ScriptedOrigin;

use super::bed::START_DATE;

/// The host that requests name.
pub const HOST: &str = "example.org";

/// A 200 of the moment when cases begin, with these field lines, each with its CRLF.
pub fn ok(fields: &str, content: &str) -> String {
    answer(200, fields, content)
}

/// The same with another status.
pub fn answer(status: u16, fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "HTTP/1.1 {status} Word\r\nDate: {START_DATE}\r\n{fields}Content-Length: {length}\r\n\r\n\
         {content}"
    )
}

/// A 304 without a Date: it is of the moment when it comes.
pub fn not_modified(fields: &str) -> String {
    format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")
}

/// Exactly these answers on one connection, one a request.
pub fn in_turn(origin: &ScriptedOrigin, answers: Vec<String>) {
    origin.connection(move |c| {
        for answer in answers {
            c.expect_request();
            c.send(answer);
        }
        c.expect_end();
    });
}

/// The same, looking at each request: its method, its target, and these fields as one line each.
pub fn in_turn_seeing(
    origin: &ScriptedOrigin,
    fields: &'static [&'static str],
    turns: Vec<(&'static str, String)>,
) {
    origin.connection(move |c| {
        for (expected, answer) in turns {
            let request = c.expect_request();
            let mut seen = format!("{} {}", request.method, request.target);
            for name in fields {
                for value in request.field_all(name) {
                    seen.push_str(&format!(" {name}={value}"));
                }
            }
            assert_eq!(seen, expected);
            c.send(answer);
        }
        c.expect_end();
    });
}
