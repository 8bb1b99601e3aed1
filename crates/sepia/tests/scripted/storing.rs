//! What enters the store (RFC 9111 section 3), and that everything else reaches its origin.

use sepia::base::Counter;
use testkit::script::ScriptedOrigin;

use super::answers::{HOST, answer, in_turn, in_turn_seeing, ok};
use super::bed::{START_DATE, each_path};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn rfc9111_3_what_may_not_be_stored_reaches_the_origin_each_time() {
    type Row = (&'static [(&'static str, &'static str)], &'static str, &'static str);
    const AUTHORIZATION: (&str, &str) = ("Authorization", "Basic YTpi");
    const COOKIE: (&str, &str) = ("Cookie", "a=b");
    const ROWS: &[Row] = &[
        (&[], "Cache-Control: no-store, max-age=60\r\n", "no-store"),
        (&[], "Cache-Control: max-age=60, NO-STORE\r\n", "no-store"),
        (&[], "Cache-Control: max-age=60\r\nCache-Control: no-store\r\n", "no-store"),
        (&[], "Cache-Control: private, max-age=60\r\n", "private"),
        (&[], "Cache-Control: private=\"x\", max-age=60\r\n", "private"),
        (&[], "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", "set-cookie"),
        (&[], "Cache-Control: max-age=60\r\nVary: *\r\n", "vary-star"),
        (&[], "Cache-Control: max-age=60\r\nVary: Accept, *\r\n", "vary-star"),
        (&[], "", "no-freshness"),
        (&[], "Cache-Control: max-age=0\r\n", "no-freshness"),
        (&[], "Cache-Control: no-cache\r\n", "no-validator"),
        (&[], "Expires: 0\r\n", "no-freshness"),
        (&[], "Cache-Control: max-age=sixty\r\n", "no-freshness"),
        (&[AUTHORIZATION], "Cache-Control: max-age=60\r\n", "authorization"),
        (&[COOKIE], "Last-Modified: Sat, 05 Nov 2033 08:49:37 GMT\r\n", "cookie-without-freshness"),
        (&[("Cache-Control", "no-store")], "Cache-Control: max-age=60\r\n", "request-no-store"),
    ];
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let answers = ROWS.iter().flat_map(|row| ["1", "2"].map(|content| ok(row.1, content)));
        in_turn(&origin, answers.collect());
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (number, (request, _, rule)) in ROWS.iter().enumerate() {
            for content in ["1", "2"] {
                let response = client.get(&format!("/{number}"), HOST, request);
                assert_eq!(response.text(), content, "row {number}");
                let expected = format!("sepia; fwd=uri-miss; detail={rule}");
                assert_eq!(response.field("cache-status"), Some(&*expected), "row {number}");
                assert_eq!(response.field("age"), None, "row {number}");
            }
        }
        assert_eq!(proxy.count(Counter::Stored), 0);
        assert_eq!(proxy.count(Counter::Misses), 2 * ROWS.len() as u64);
    });
}

#[test]
fn rfc9111_3_what_may_be_shared_is_stored_once() {
    type Row = (&'static [(&'static str, &'static str)], u16, &'static str);
    const AUTHORIZATION: (&str, &str) = ("Authorization", "Basic YTpi");
    const ROWS: &[Row] = &[
        (&[AUTHORIZATION], 200, "Cache-Control: public, max-age=60\r\n"),
        (&[AUTHORIZATION], 200, "Cache-Control: s-maxage=60\r\n"),
        (&[AUTHORIZATION], 200, "Cache-Control: must-revalidate, max-age=60\r\n"),
        (&[("Cookie", "a=b")], 200, "Cache-Control: max-age=60\r\n"),
        (&[], 200, "Cache-Control: max-age=0, s-maxage=60\r\n"),
        (&[], 200, "Cache-Control: MAX-AGE=\"60\"\r\n"),
        (&[], 200, "Expires: Sun, 06 Nov 2033 08:50:37 GMT\r\n"),
        (&[], 200, "Last-Modified: Sat, 05 Nov 2033 08:49:37 GMT\r\n"),
        (&[], 404, "Cache-Control: max-age=60\r\n"),
        (&[], 301, "Cache-Control: max-age=60\r\nLocation: /elsewhere\r\n"),
        (&[], 302, "Cache-Control: max-age=60\r\nLocation: /elsewhere\r\n"),
        (&[], 503, "Cache-Control: max-age=60\r\n"),
        (&[], 299, "Cache-Control: max-age=60\r\n"),
    ];
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let answers = ROWS.iter().map(|(_, status, fields)| answer(*status, fields, "content"));
        in_turn(&origin, answers.collect());
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (number, (request, status, _)) in ROWS.iter().enumerate() {
            let target = format!("/{number}");
            let first = client.get(&target, HOST, request);
            assert_eq!(first.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
            // Somebody else, without the first one's credentials.
            let second = proxy.client().get(&target, HOST, &[]);
            assert_eq!((second.status, &*second.text()), (*status, "content"), "row {number}");
            assert_eq!(second.field("age"), Some("0"), "row {number}");
            let how = second.field("cache-status").expect("Cache-Status");
            assert!(how.starts_with("sepia; hit; ttl="), "row {number}: {how}");
        }
        assert_eq!(proxy.count(Counter::Stored), ROWS.len() as u64);
    });
}

#[test]
fn rfc9111_3_statuses_about_one_request_are_never_stored() {
    each_path(|bed| {
        let statuses = [206, 407, 412, 416, 421, 425, 428, 429, 431, 511];
        let origin = ScriptedOrigin::start();
        let twice = statuses.iter().flat_map(|status| [*status; 2]);
        in_turn(&origin, twice.map(|status| answer(status, FRESH, "no")).collect());
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for status in statuses {
            for _ in 0..2 {
                let response = client.get(&format!("/{status}"), HOST, &[]);
                assert_eq!(response.status, status);
                let how = response.field("cache-status").expect("Cache-Status");
                assert!(how.starts_with("sepia; fwd=uri-miss; detail="), "{status}: {how}");
            }
        }
    });
}

#[test]
fn rfc9110_9_3_1_a_get_with_content_is_neither_looked_up_nor_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok(FRESH, "1"), ok(FRESH, "2"), ok(FRESH, "3")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let with_content = "GET /a HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1\r\n\r\n?";
        let bypass = Some("sepia; fwd=bypass; detail=request-content");
        client.send(with_content);
        let first = client.expect_response("GET");
        assert_eq!((&*first.text(), first.field("cache-status")), ("1", bypass));
        assert_eq!(client.get("/a", HOST, &[]).text(), "2", "nothing was stored");
        client.send(with_content);
        let third = client.expect_response("GET");
        assert_eq!((&*third.text(), third.field("cache-status")), ("3", bypass));
        assert_eq!(client.get("/a", HOST, &[]).text(), "2", "what was stored is still there");
        assert_eq!(proxy.count(Counter::Passes), 2);
    });
}

#[test]
fn rfc9111_3_only_get_is_stored_and_only_get_and_head_are_answered() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\n{FRESH}Content-Length: 7\r\n\
             X-By: origin\r\n\r\n"
        );
        let turns = vec![
            ("HEAD /a", head),
            ("GET /a", ok(FRESH, "content")),
            ("OPTIONS /a", ok(FRESH, "options")),
        ];
        in_turn_seeing(&origin, &[], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();

        client.send("HEAD /a HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let first = client.expect_response("HEAD");
        assert_eq!(first.field("content-length"), Some("7"));
        assert_eq!(first.field("cache-status"), Some("sepia; fwd=uri-miss; detail=method"));

        assert_eq!(client.get("/a", HOST, &[]).text(), "content");
        client.send("HEAD /a HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let second = client.expect_response("HEAD");
        assert_eq!((second.status, second.field("content-length")), (200, Some("7")));
        assert_eq!(second.field("cache-status"), Some("sepia; hit; ttl=60"));
        assert_eq!(second.field("x-by"), None, "it is the stored GET's head");

        client.send("OPTIONS /a HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let third = client.expect_response("OPTIONS");
        assert_eq!(third.text(), "options");
        assert_eq!(third.field("cache-status"), Some("sepia; fwd=method"));
    });
}

#[test]
fn rfc9111_2_the_key_is_the_target_uri() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET /a host=example.org", ok(FRESH, "1")),
            ("GET /a? host=example.org", ok(FRESH, "2")),
            ("GET /A host=example.org", ok(FRESH, "3")),
            ("GET /a host=example.org:81", ok(FRESH, "4")),
            ("GET /a host=example.com", ok(FRESH, "5")),
        ];
        in_turn_seeing(&origin, &["host"], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            assert_eq!(client.get("/a", "example.org", &[]).text(), "1");
            assert_eq!(client.get("/a?", "example.org", &[]).text(), "2");
            assert_eq!(client.get("/A", "example.org", &[]).text(), "3");
            assert_eq!(client.get("/a", "example.org:81", &[]).text(), "4");
            assert_eq!(client.get("/a", "example.com", &[]).text(), "5");
        }
        assert_eq!(client.get("/a", "EXAMPLE.org:80", &[]).text(), "1");
        assert_eq!(client.get("http://example.org/a", "other", &[]).text(), "1");
    });
}

#[test]
fn rfc9111_2_a_forward_proxy_stores_by_the_target_too() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok(FRESH, "1"), ok(FRESH, "2")]);
        let address = origin.address();
        let proxy = bed.forward();
        let mut client = proxy.client();
        for how in ["sepia; fwd=uri-miss; stored", "sepia; hit; ttl=60"] {
            for (path, content) in [("", "1"), ("/a", "2")] {
                let response = client.get(&format!("http://{address}{path}"), "ignored", &[]);
                assert_eq!(response.text(), content);
                assert_eq!(response.field("cache-status"), Some(how));
            }
        }
        assert_eq!(client.get(&format!("HTTP://{address}/"), "ignored", &[]).text(), "1");
    });
}

#[test]
fn rfc9111_3_1_fields_of_the_connection_are_not_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let fields = "Cache-Control: max-age=60\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
                      Keep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\nX-End: 1\r\n\
                      X-End: 2\r\n";
        in_turn(&origin, vec![ok(fields, "content")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            let response = client.get("/", HOST, &[]);
            assert_eq!(response.field_all("x-end"), ["1", "2"]);
            assert_eq!(response.field_all("via"), ["1.1 bed"]);
            for name in ["x-hop", "keep-alive", "connection", "proxy-authenticate"] {
                assert_eq!(response.field(name), None, "{name}");
            }
        }
    });
}

#[test]
fn rfc9112_6_3_a_stored_response_without_content_stays_without() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let no_content = format!("HTTP/1.1 204 No Content\r\nDate: {START_DATE}\r\n{FRESH}\r\n");
        in_turn(&origin, vec![no_content, ok(FRESH, "")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for how in ["sepia; fwd=uri-miss; stored", "sepia; hit; ttl=60"] {
            for (target, status, length) in [("/none", 204, None), ("/empty", 200, Some("0"))] {
                let response = client.get(target, HOST, &[]);
                assert_eq!((response.status, response.field("content-length")), (status, length));
                assert_eq!(response.field("cache-status"), Some(how));
            }
        }
        let part = client.get("/empty", HOST, &[("Range", "bytes=0-0")]);
        assert_eq!((part.status, part.field("content-range")), (416, Some("bytes */0")));
    });
}

#[test]
fn rfc9111_3_a_response_that_was_cut_off_is_not_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        for start in
            ["Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf"]
        {
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!("HTTP/1.1 200 OK\r\n{FRESH}{start}"));
                c.close();
            });
        }
        in_turn(&origin, vec![ok(FRESH, "all of it")]);
        let proxy = bed.gateway(&origin);
        for _ in 0..2 {
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
            let head = client.expect_head();
            assert_eq!(head.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
            let rest = client.expect_closed();
            assert!(!rest.ends_with(b"0\r\n\r\n") && rest.len() < 12, "never taken for complete");
        }
        let mut client = proxy.client();
        assert_eq!(client.get("/", HOST, &[]).text(), "all of it");
        assert_eq!(client.get("/", HOST, &[]).field("cache-status"), Some("sepia; hit; ttl=60"));
    });
}
