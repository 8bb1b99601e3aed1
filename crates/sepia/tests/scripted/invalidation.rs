//! What a write makes of stored responses (RFC 9111 section 4.4).

use sepia::base::Counter;
use testkit::script::{Gate, ScriptedClient, ScriptedOrigin};

use super::answers::{HOST, answer, in_turn, ok};
use super::bed::each_path;

const FRESH: &str = "Cache-Control: max-age=60\r\n";

fn write(client: &mut ScriptedClient, method: &str, target: &str) -> testkit::message::Response {
    client
        .send(format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1\r\n\r\n."));
    client.expect_response(method)
}

#[test]
fn rfc9111_4_4_a_write_that_succeeded_invalidates_its_target() {
    each_path(|bed| {
        let writes = [
            ("POST", 200),
            ("POST", 303),
            ("PUT", 201),
            ("DELETE", 204),
            ("PATCH", 200),
            ("PURIFY", 200),
        ];
        let origin = ScriptedOrigin::start();
        let mut answers = vec![ok(FRESH, "0")];
        for (number, (_, status)) in (1..).zip(writes) {
            answers.push(match status {
                204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
                _ => answer(status, FRESH, "done"),
            });
            answers.push(ok(FRESH, &number.to_string()));
        }
        in_turn(&origin, answers);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/a", HOST, &[]);
        for (number, (method, status)) in (1..).zip(writes) {
            let response = write(&mut client, method, "/a");
            assert_eq!(response.status, status);
            assert_eq!(response.field("cache-status"), Some("sepia; fwd=method"));
            let newer = client.get("/a", HOST, &[]);
            assert_eq!(newer.text(), number.to_string(), "{method}");
            assert_eq!(newer.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
            let hit = client.get("/a", HOST, &[]);
            assert_eq!((hit.text(), hit.field("age")), (number.to_string(), Some("0")));
        }
        assert_eq!(proxy.count(Counter::Invalidated), writes.len() as u64);
    });
}

#[test]
fn rfc9111_4_4_errors_and_safe_methods_invalidate_nothing() {
    each_path(|bed| {
        let asks = [("POST", 400), ("PUT", 409), ("DELETE", 500), ("OPTIONS", 200)];
        let origin = ScriptedOrigin::start();
        let mut answers = vec![ok(FRESH, "stored")];
        answers.extend(asks.iter().map(|(_, status)| answer(*status, "", "no")));
        in_turn(&origin, answers);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/a", HOST, &[]);
        for (method, status) in asks {
            assert_eq!(write(&mut client, method, "/a").status, status);
            assert_eq!(client.get("/a", HOST, &[]).text(), "stored", "{method}");
        }
        assert_eq!(proxy.count(Counter::Invalidated), 0);
    });
}

#[test]
fn rfc9111_4_4_location_and_content_location_of_the_same_origin_too() {
    /// Field lines of the answer to POST /dir/form, and whether /dir/a?b is invalid then.
    const ROWS: &[(&str, bool)] = &[
        ("Location: /dir/a?b\r\n", true),
        ("Content-Location: /dir/a?b\r\n", true),
        ("Content-Location: a?b\r\n", true),
        ("Content-Location: ./a?b\r\n", true),
        ("Content-Location: ../dir/x/../a?b\r\n", true),
        ("Location: http://example.org/dir/a?b#c\r\n", true),
        ("Location: HTTP://EXAMPLE.org:80/dir/a?b\r\n", true),
        ("Location: //example.org/dir/a?b\r\n", true),
        ("Location: /dir/a\r\n", false),
        ("Location: http://example.com/dir/a?b\r\n", false),
        ("Location: http://example.org:81/dir/a?b\r\n", false),
        ("Location: https://example.org/dir/a?b\r\n", false),
        ("Location: http://other@example.org/dir/a?b\r\n", false),
        ("Location: http://[/dir/a?b\r\n", false),
    ];
    for (fields, is_invalid) in ROWS {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let mut answers = vec![ok(FRESH, "older"), answer(201, fields, "")];
            if *is_invalid {
                answers.push(ok(FRESH, "newer"));
            }
            in_turn(&origin, answers);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/dir/a?b", HOST, &[]);
            assert_eq!(write(&mut client, "POST", "/dir/form").status, 201);
            let expected = if *is_invalid { "newer" } else { "older" };
            assert_eq!(client.get("/dir/a?b", HOST, &[]).text(), expected, "{fields}");
        });
    }
}

#[test]
fn rfc9111_4_4_all_variants_of_the_target_go() {
    each_path(|bed| {
        let fields = "Cache-Control: max-age=60\r\nVary: X\r\n";
        let origin = ScriptedOrigin::start();
        let answers = ["1", "2", "", "3", "4"].map(|content| ok(fields, content));
        in_turn(&origin, answers.into());
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (variant, content) in [("a", "1"), ("b", "2")] {
            assert_eq!(client.get("/", HOST, &[("X", variant)]).text(), content);
        }
        write(&mut client, "POST", "/");
        for (variant, content) in [("a", "3"), ("b", "4")] {
            assert_eq!(client.get("/", HOST, &[("X", variant)]).text(), content);
        }
    });
}

/// What was asked for before the write and came after it may show the state before it.
#[test]
fn rfc9111_4_4_a_fetch_in_flight_is_not_reused_after_a_write() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = (Gate::new(), Gate::new());
        let (has_asked, gate) = (asked.clone(), may_answer.clone());
        origin.connection(move |c| {
            c.expect_head();
            has_asked.open();
            gate.wait();
            c.send(ok(FRESH, "before"));
            assert_eq!(c.expect_head().method, "GET");
            c.send(ok(FRESH, "after"));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let (mut reader, mut writer) = (proxy.client(), proxy.client());
        reader.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        asked.wait();
        origin.connection(|c| {
            c.expect_request();
            c.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            c.expect_end();
        });
        assert_eq!(write(&mut writer, "PUT", "/").status, 204);
        may_answer.open();
        let before = reader.expect_response("GET");
        assert_eq!(before.text(), "before");
        assert_eq!(before.field("cache-status"), Some("sepia; fwd=uri-miss"));
        assert_eq!(reader.get("/", HOST, &[]).text(), "after");
        assert_eq!(reader.get("/", HOST, &[]).text(), "after");
    });
}

/// The same when its head has come already and its content is still coming.
#[test]
fn rfc9111_4_4_content_in_flight_is_not_reused_after_a_write() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let may_end = Gate::new();
        let gate = may_end.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 6\r\n\r\nbef"));
            gate.wait();
            c.send("ore");
            assert_eq!(c.expect_head().method, "GET");
            c.send(ok(FRESH, "after"));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let (mut reader, mut writer) = (proxy.client(), proxy.client());
        reader.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let head = reader.expect_head();
        assert_eq!(head.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
        reader.expect_bytes("bef");
        origin.connection(|c| {
            c.expect_request();
            c.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            c.expect_end();
        });
        assert_eq!(write(&mut writer, "DELETE", "/").status, 204);
        may_end.open();
        reader.expect_bytes("ore");
        assert_eq!(reader.get("/", HOST, &[]).text(), "after");
    });
}
