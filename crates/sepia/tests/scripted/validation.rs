//! A stale response and its origin: conditional requests and what becomes of the answers
//! (RFC 9111 section 4.3).

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::ScriptedOrigin;

use super::answers::{HOST, answer, in_turn, in_turn_seeing, not_modified, ok};
use super::bed::{START_DATE, each_path};

const CHANGED: &str = "Sun, 06 Nov 2033 08:00:00 GMT";
const TAGGED: &str = "Cache-Control: max-age=10\r\nETag: \"1\"\r\n";
const CONDITIONS: &[&str] = &["if-none-match", "if-modified-since", "range"];

#[test]
fn rfc9111_4_3_4_a_304_freshens_head_and_age_and_leaves_the_content() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(ok(
                &format!(
                    "{TAGGED}Last-Modified: {CHANGED}\r\nX-Old: 1\r\nX-Both: 1\r\nX-Both: 2\r\n\
                     Content-Type: text/plain\r\n"
                ),
                "content",
            ));
            let request = c.expect_head();
            assert_eq!(request.field_all("if-none-match"), ["\"1\""]);
            assert_eq!(request.field_all("if-modified-since"), [CHANGED]);
            c.send(
                "HTTP/1.1 304 Not Modified\r\nDate: Sun, 06 Nov 2033 08:49:52 GMT\r\n\
                 Cache-Control: max-age=30\r\nETag: \"1\"\r\nX-Both: 3\r\nX-New: 4\r\n\
                 Set-Cookie: a=b\r\nContent-Encoding: gzip\r\n\r\n",
            );
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(15);
        let validated = client.get("/", HOST, &[]);
        assert_eq!((validated.status, &*validated.text()), (200, "content"));
        let how = "sepia; fwd=stale; fwd-status=304; detail=expired";
        assert_eq!(validated.field("cache-status"), Some(how));
        let hit = client.get("/", HOST, &[]);
        assert_eq!(hit.field("cache-status"), Some("sepia; hit; ttl=30"));
        for response in [validated, hit] {
            assert_eq!(response.field_all("date"), ["Sun, 06 Nov 2033 08:49:52 GMT"]);
            assert_eq!(response.field_all("cache-control"), ["max-age=30"]);
            assert_eq!(response.field_all("x-old"), ["1"]);
            assert_eq!(response.field_all("x-both"), ["3"]);
            assert_eq!(response.field_all("x-new"), ["4"]);
            assert_eq!(response.field_all("content-type"), ["text/plain"]);
            assert_eq!(response.field_all("content-length"), ["7"]);
            assert_eq!(response.field_all("via"), ["1.1 bed"]);
            assert_eq!(response.field("content-encoding"), None, "the content is as it was");
            assert_eq!(response.field("set-cookie"), None);
        }
        assert_eq!(proxy.count(Counter::Validations), 1);
        assert_eq!(proxy.count(Counter::Freshened), 1);
    });
}

#[test]
fn rfc9111_4_3_3_a_200_replaces_what_was_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let newer = "Cache-Control: max-age=20\r\nETag: \"2\"\r\n";
        let turns = vec![
            ("GET /", ok(TAGGED, "older")),
            ("GET / if-none-match=\"1\"", ok(newer, "newer")),
            ("GET / if-none-match=\"2\"", not_modified(newer)),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(10);
        let replaced = client.get("/", HOST, &[]);
        assert_eq!(replaced.text(), "newer");
        let how = "sepia; fwd=stale; fwd-status=200; stored; detail=expired";
        assert_eq!(replaced.field("cache-status"), Some(how));
        assert_eq!(client.get("/", HOST, &[]).text(), "newer");
        proxy.pass(10);
        assert_eq!(client.get("/", HOST, &[]).text(), "newer");
    });
}

/// Also if the newer one may not be stored: what it took the place of serves nobody any more.
#[test]
fn rfc9111_4_3_3_a_full_answer_ends_what_was_stored() {
    for (status, control) in [(200, "no-store"), (200, "private"), (404, "no-store")] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let fields = format!("Cache-Control: {control}\r\n");
            let turns = vec![
                ("GET /", ok(TAGGED, "older")),
                ("GET / if-none-match=\"1\"", answer(status, &fields, "newer")),
                ("GET /", answer(status, &fields, "newer")),
            ];
            in_turn_seeing(&origin, CONDITIONS, turns);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", HOST, &[]);
            proxy.pass(10);
            assert_eq!(client.get("/", HOST, &[]).text(), "newer");
            let counts = [Counter::Validations, Counter::Freshened].map(|it| proxy.count(it));
            assert_eq!(counts, [1, 0]);
            let lenient = client.get("/", HOST, &[("Cache-Control", "max-stale")]);
            assert_eq!(lenient.text(), "newer");
            let how = format!("sepia; fwd=uri-miss; detail={control}");
            assert_eq!(lenient.field("cache-status"), Some(&*how));
        });
    }
}

#[test]
fn rfc9111_4_3_4_a_304_about_something_else_is_asked_for_in_whole() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let other = "Cache-Control: max-age=20\r\nETag: \"other\"\r\n";
        let turns = vec![
            ("GET /", ok(TAGGED, "first")),
            ("GET / if-none-match=\"1\"", not_modified(other)),
            ("GET /", ok(other, "other")),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(10);
        let response = client.get("/", HOST, &[]);
        assert_eq!((response.status, &*response.text()), (200, "other"));
        let how = "sepia; fwd=stale; fwd-status=200; stored; detail=expired";
        assert_eq!(response.field("cache-status"), Some(how));
        assert_eq!(client.get("/", HOST, &[]).text(), "other");
    });
}

#[test]
fn rfc9111_4_3_3_an_error_passes_on_and_the_stored_response_stays() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET /", ok(TAGGED, "content")),
            ("GET / if-none-match=\"1\"", answer(500, "", "broken")),
            ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(10);
        let broken = client.get("/", HOST, &[]);
        assert_eq!((broken.status, &*broken.text()), (500, "broken"));
        let how = "sepia; fwd=stale; fwd-status=500; detail=expired";
        assert_eq!(broken.field("cache-status"), Some(how));
        assert_eq!(client.get("/", HOST, &[]).text(), "content");
    });
}

#[test]
fn rfc9111_5_2_2_4_no_cache_is_validated_at_each_reuse() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let fields = "Cache-Control: no-cache, max-age=60\r\nETag: W/\"1\"\r\n";
        let turns = vec![
            ("GET /", ok(fields, "content")),
            ("GET / if-none-match=W/\"1\"", not_modified(fields)),
            ("GET / if-none-match=W/\"1\"", not_modified(fields)),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        for _ in 0..2 {
            let response = client.get("/", HOST, &[("Cache-Control", "max-stale")]);
            assert_eq!((response.status, &*response.text()), (200, "content"));
            let how = "sepia; fwd=stale; fwd-status=304; detail=no-cache";
            assert_eq!(response.field("cache-status"), Some(how));
        }
    });
}

#[test]
fn rfc9111_4_3_1_a_last_modified_alone_validates_too() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let fields = format!("Cache-Control: max-age=10\r\nLast-Modified: {CHANGED}\r\n");
        let turns = vec![
            ("GET /", ok(&fields, "content")),
            (
                "GET / if-modified-since=Sun, 06 Nov 2033 08:00:00 GMT",
                "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
            ),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(12);
        let response = client.get("/", HOST, &[]);
        assert_eq!(response.text(), "content");
        assert_eq!(response.field("date"), Some("Sun, 06 Nov 2033 08:49:49 GMT"));
        assert_eq!(client.get("/", HOST, &[]).field("cache-status"), Some("sepia; hit; ttl=10"));
    });
}

#[test]
fn rfc9111_4_3_1_the_caches_condition_takes_the_place_of_the_clients() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET /", ok(TAGGED, "content")),
            ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
            ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
            ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(10);
        let held = client.get("/", HOST, &[("If-None-Match", "\"0\", \"1\"")]);
        assert_eq!((held.status, held.field("etag")), (304, Some("\"1\"")));
        let how = "sepia; fwd=stale; fwd-status=304; detail=expired";
        assert_eq!(held.field("cache-status"), Some(how));
        proxy.pass(10);
        let not_held = client.get("/", HOST, &[("If-None-Match", "\"0\"")]);
        assert_eq!((not_held.status, &*not_held.text()), (200, "content"));
        proxy.pass(10);
        let part = client.get("/", HOST, &[("Range", "bytes=0-2")]);
        assert_eq!((part.status, &*part.text()), (206, "con"));
        assert_eq!(part.field("content-range"), Some("bytes 0-2/7"));
    });
}

/// A 304 to the client's own condition says nothing about a stored response without validators.
#[test]
fn rfc9111_4_3_1_what_has_no_validator_is_not_freshened() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET /", ok("Cache-Control: max-age=60\r\n", "content")),
            ("GET / if-none-match=\"mine\"", not_modified("")),
        ];
        in_turn_seeing(&origin, CONDITIONS, turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        let reload = [("Cache-Control", "no-cache"), ("If-None-Match", "\"mine\"")];
        let response = client.get("/", HOST, &reload);
        assert_eq!(response.status, 304);
        assert_eq!(proxy.count(Counter::Freshened), 0);
    });
}

/// What one client may not share is no reason to take away what all may.
#[test]
fn rfc9111_3_5_a_validation_with_credentials_leaves_the_store_as_it_was() {
    for credentials in [("Authorization", "Basic YTpi"), ("Cache-Control", "no-store, max-age=0")] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let turns = vec![
                ("GET /", ok(TAGGED, "shared")),
                ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
                ("GET /", ok(TAGGED, "personal")),
                ("GET / if-none-match=\"1\"", not_modified(TAGGED)),
            ];
            in_turn_seeing(&origin, CONDITIONS, turns);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", HOST, &[]);
            proxy.pass(10);
            assert_eq!(client.get("/", HOST, &[credentials]).text(), "personal");
            assert_eq!(client.get("/", HOST, &[]).text(), "shared");
        });
    }
}

#[test]
fn rfc9111_4_3_a_leaders_own_condition_is_judged_here() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn_seeing(&origin, CONDITIONS, vec![("GET /", ok(TAGGED, "content"))]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let first = client.get("/", HOST, &[("If-None-Match", "\"1\"")]);
        assert_eq!((first.status, first.field("date")), (304, Some(START_DATE)));
        assert_eq!(
            first.field("cache-status"),
            Some("sepia; fwd=uri-miss; fwd-status=200; stored")
        );
        assert_eq!(client.get("/", HOST, &[]).text(), "content", "the whole came and is stored");
    });
}

/// The client has it already: nobody reads the content, and nobody has gone.
#[test]
fn rfc9110_13_1_2_a_condition_spares_content_that_only_passes() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nETag: \"1\"\r\n\
                 Content-Length: 50000000\r\n\r\n",
            );
            let sent = c.send_anyway(vec![b'x'; 50_000_000]);
            assert!(sent < 50_000_000, "the rest is not fetched");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let response = client.get("/", HOST, &[("If-None-Match", "\"1\"")]);
        assert_eq!(response.status, 304);
        let how = "sepia; fwd=uri-miss; fwd-status=200; detail=no-store";
        assert_eq!(response.field("cache-status"), Some(how));
        origin.finish();
        proxy.until("the fetch to end", |proxy| proxy.gauge(Gauge::OriginsConnected) == 0);
        assert_eq!(proxy.reasons(Reason::ClientGone), 0);
        client.expect_nothing_buffered();
    });
}

#[test]
fn rfc9111_4_3_5_a_head_for_a_stale_response_goes_to_the_origin() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let head = format!("HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nContent-Length: 9\r\n\r\n");
        in_turn(&origin, vec![ok(TAGGED, "content"), head]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(10);
        client.send("HEAD / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let response = client.expect_response("HEAD");
        assert_eq!(response.field("content-length"), Some("9"));
        let how = "sepia; fwd=stale; fwd-status=200; detail=expired";
        assert_eq!(response.field("cache-status"), Some(how));
    });
}
