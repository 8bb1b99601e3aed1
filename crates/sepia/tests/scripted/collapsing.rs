//! One forwarded request that serves several (RFC 9111 section 4), before its head and after.

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, ScriptedClient, ScriptedOrigin};

use super::answers::{HOST, in_turn, not_modified, ok};
use super::bed::{Running, START_DATE, each_path};

const FRESH: &str = "Cache-Control: max-age=60\r\n";
const COLLAPSED: Option<&str> = Some("sepia; fwd=uri-miss; collapsed");
const PLAIN: &str = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";

/// So many clients that have sent this.
fn clients(proxy: &Running, count: usize, request: &str) -> Vec<ScriptedClient> {
    let asking = |_| {
        let mut client = proxy.client();
        client.send(request);
        client
    };
    (0..count).map(asking).collect()
}

/// Until so many sessions wait for another's fetch.
fn until_waiting(proxy: &Running, count: u64) {
    proxy.until("sessions that wait", |proxy| proxy.gauge(Gauge::HopLookup) == count);
}

/// An origin that says when it was asked and waits before it answers.
fn held_back(origin: &ScriptedOrigin, answer: String) -> (Gate, Gate) {
    let (asked, may_answer) = (Gate::new(), Gate::new());
    let (has_asked, gate) = (asked.clone(), may_answer.clone());
    origin.connection(move |c| {
        c.expect_head();
        has_asked.open();
        gate.wait();
        c.send(answer);
        c.expect_end();
    });
    (asked, may_answer)
}

#[test]
fn a_second_client_joins_a_fetch_in_flight_and_gets_bytes_at_once() {
    for framing in
        ["Content-Length: 6\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"]
    {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let may_end = Gate::new();
            let gate = may_end.clone();
            let is_chunked = framing.contains("chunked");
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!("HTTP/1.1 200 OK\r\n{FRESH}{framing}"));
                gate.wait();
                c.send(if is_chunked { "3\r\ndef\r\n0\r\n\r\n" } else { "def" });
                c.expect_end();
            });
            let proxy = bed.gateway(&origin);
            let mut readers = clients(&proxy, 1, PLAIN);
            readers[0].expect_head();
            readers.extend(clients(&proxy, 3, PLAIN));
            let expect = |reader: &mut ScriptedClient, content: &str| match is_chunked {
                true => assert_eq!(reader.expect_chunk(), content.as_bytes()),
                false => reader.expect_bytes(content),
            };
            for (number, reader) in readers.iter_mut().enumerate() {
                if number > 0 {
                    let head = reader.expect_head();
                    assert_eq!((head.status, head.field("cache-status")), (200, COLLAPSED));
                }
                expect(reader, "abc");
            }
            may_end.open();
            for reader in &mut readers {
                expect(reader, "def");
            }
            assert_eq!(proxy.count(Counter::Joined), 3);
        });
    }
}

#[test]
fn requests_that_wait_for_a_slow_head_share_it() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = held_back(&origin, ok(FRESH, "content"));
        let proxy = bed.gateway(&origin);
        let mut first = clients(&proxy, 1, PLAIN);
        asked.wait();
        let mut waiting = clients(&proxy, 30, PLAIN);
        until_waiting(&proxy, 30);
        may_answer.open();
        let response = first[0].expect_response("GET");
        assert_eq!(response.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
        for client in &mut waiting {
            let response = client.expect_response("GET");
            assert_eq!((response.status, &*response.text()), (200, "content"));
            assert_eq!(response.field("cache-status"), COLLAPSED);
            assert_eq!(
                client.get("/", HOST, &[]).field("cache-status"),
                Some("sepia; hit; ttl=60")
            );
        }
        assert_eq!((proxy.count(Counter::Joined), proxy.count(Counter::Misses)), (30, 1));
    });
}

#[test]
fn an_answer_for_one_client_releases_the_others_to_ask_in_parallel() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let private = "Cache-Control: private\r\nConnection: close\r\n";
        let (asked, may_answer) = held_back(&origin, ok(private, "first"));
        let proxy = bed.gateway(&origin);
        let mut first = clients(&proxy, 1, PLAIN);
        asked.wait();
        let mut waiting = clients(&proxy, 4, PLAIN);
        until_waiting(&proxy, 4);
        let all_ask = Gate::new();
        let arrivals: Vec<Gate> = (0..4)
            .map(|_| {
                let (arrived, gate) = (Gate::new(), all_ask.clone());
                let has_arrived = arrived.clone();
                origin.connection(move |c| {
                    c.expect_head();
                    has_arrived.open();
                    gate.wait();
                    c.send(ok(private, "other"));
                    c.expect_end();
                });
                arrived
            })
            .collect();
        may_answer.open();
        assert_eq!(first[0].expect_response("GET").text(), "first");
        arrivals.iter().for_each(Gate::wait);
        all_ask.open();
        for client in &mut waiting {
            let response = client.expect_response("GET");
            assert_eq!(response.text(), "other");
            let how = Some("sepia; fwd=uri-miss; detail=private");
            assert_eq!(response.field("cache-status"), how);
        }
    });
}

#[test]
fn a_failure_is_shared_by_those_who_wait_and_remembered_for_nobody() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = held_back(&origin, "no response at all\r\n\r\n".to_owned());
        let proxy = bed.gateway(&origin);
        let mut readers = clients(&proxy, 1, PLAIN);
        asked.wait();
        readers.extend(clients(&proxy, 5, PLAIN));
        until_waiting(&proxy, 5);
        may_answer.open();
        for reader in &mut readers {
            let response = reader.expect_response("GET");
            assert_eq!(response.status, 502);
            let error = Some("sepia; error=http_protocol_error");
            assert_eq!(response.field("proxy-status"), error);
        }
        assert_eq!(proxy.reasons(Reason::OriginGarbage), 6);
        in_turn(&origin, vec![ok(FRESH, "content")]);
        assert_eq!(readers[0].get("/", HOST, &[]).text(), "content");
    });
}

#[test]
fn whoever_joined_an_answer_that_is_cut_off_sees_it_cut_off() {
    for framing in
        ["Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
    {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let may_break = Gate::new();
            let gate = may_break.clone();
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!("HTTP/1.1 200 OK\r\n{FRESH}{framing}"));
                gate.wait();
                c.close();
            });
            in_turn(&origin, vec![ok(FRESH, "whole")]);
            let proxy = bed.gateway(&origin);
            let mut readers = clients(&proxy, 1, PLAIN);
            readers[0].expect_head();
            readers.extend(clients(&proxy, 2, PLAIN));
            readers[1..].iter_mut().for_each(|reader| drop(reader.expect_head()));
            may_break.open();
            for reader in &mut readers {
                let rest = reader.expect_closed();
                assert!(!rest.ends_with(b"0\r\n\r\n") && rest.len() < 13, "not as complete");
            }
            assert_eq!(proxy.client().get("/", HOST, &[]).text(), "whole");
        });
    }
}

#[test]
fn rfc9111_4_3_one_validation_serves_all_who_wait_for_it() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = (Gate::new(), Gate::new());
        let (has_asked, gate) = (asked.clone(), may_answer.clone());
        origin.connection(move |c| {
            let fields = "Cache-Control: max-age=10\r\nETag: \"1\"\r\n";
            c.expect_head();
            c.send(ok(fields, "content"));
            assert_eq!(c.expect_head().field("if-none-match"), Some("\"1\""));
            has_asked.open();
            gate.wait();
            c.send(not_modified(fields));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        proxy.client().get("/", HOST, &[]);
        proxy.pass(10);
        let mut readers = clients(&proxy, 1, PLAIN);
        asked.wait();
        readers.extend(clients(&proxy, 5, PLAIN));
        until_waiting(&proxy, 5);
        may_answer.open();
        for (number, reader) in readers.iter_mut().enumerate() {
            let response = reader.expect_response("GET");
            assert_eq!(response.text(), "content");
            let how = match number {
                0 => "sepia; fwd=stale; fwd-status=304; detail=expired",
                _ => "sepia; fwd=stale; collapsed; detail=expired",
            };
            assert_eq!(response.field("cache-status"), Some(how));
        }
        assert_eq!(proxy.count(Counter::Validations), 1);
    });
}

#[test]
fn rfc9111_4_1_whoever_waited_for_another_variant_asks_for_its_own() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = (Gate::new(), Gate::new());
        let (has_asked, gate) = (asked.clone(), may_answer.clone());
        let fields = "Cache-Control: max-age=60\r\nVary: X\r\n";
        origin.connection(move |c| {
            assert_eq!(c.expect_head().field("x"), Some("a"));
            has_asked.open();
            gate.wait();
            c.send(ok(fields, "for a"));
            assert_eq!(c.expect_head().field("x"), Some("b"));
            c.send(ok(fields, "for b"));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let request = |variant| format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {variant}\r\n\r\n");
        let mut a = clients(&proxy, 1, &request("a"));
        asked.wait();
        let mut b = clients(&proxy, 1, &request("b"));
        until_waiting(&proxy, 1);
        may_answer.open();
        assert_eq!(a[0].expect_response("GET").text(), "for a");
        let other = b[0].expect_response("GET");
        assert_eq!(other.text(), "for b");
        assert_eq!(other.field("cache-status"), Some("sepia; fwd=vary-miss; stored"));
    });
}

/// More variants than a request waits for: nobody gets another's, nobody waits for ever.
#[test]
fn rfc9111_4_1_many_variants_at_once_each_get_their_own() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = (Gate::new(), Gate::new());
        for _ in 0..8 {
            let (has_asked, gate) = (asked.clone(), may_answer.clone());
            origin.connection(move |c| {
                let variant = c.expect_head().field("x").map(str::to_owned).unwrap_or_default();
                has_asked.open();
                gate.wait();
                let fields = "Cache-Control: max-age=60\r\nVary: X\r\nConnection: close\r\n";
                c.send(ok(fields, &variant));
            });
        }
        let proxy = bed.gateway(&origin);
        let request = |variant| format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {variant}\r\n\r\n");
        let mut first = clients(&proxy, 1, &request(0));
        asked.wait();
        let mut others: Vec<_> =
            (1..8).flat_map(|variant| clients(&proxy, 1, &request(variant))).collect();
        until_waiting(&proxy, 7);
        may_answer.open();
        assert_eq!(first[0].expect_response("GET").text(), "0");
        for (variant, client) in (1..8).zip(&mut others) {
            let response = client.expect_response("GET");
            assert_eq!(response.text(), variant.to_string());
            let how = Some("sepia; fwd=vary-miss; stored");
            assert_eq!(response.field("cache-status"), how);
        }
    });
}

#[test]
fn a_leader_that_leaves_leaves_its_fetch_to_those_who_wait() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = held_back(&origin, ok(FRESH, "content"));
        let proxy = bed.gateway(&origin);
        let mut leader = clients(&proxy, 1, PLAIN);
        asked.wait();
        let mut waiting = clients(&proxy, 1, PLAIN);
        until_waiting(&proxy, 1);
        leader[0].reset();
        may_answer.open();
        assert_eq!(waiting[0].expect_response("GET").text(), "content");
    });
}

#[test]
fn rfc9111_5_2_1_4_a_request_for_the_origins_own_answer_waits_for_nobody() {
    for control in ["no-cache", "no-store", "max-age=0"] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let (asked, may_answer) = held_back(&origin, ok(FRESH, "slow"));
            let proxy = bed.gateway(&origin);
            let mut slow = clients(&proxy, 1, PLAIN);
            asked.wait();
            in_turn(&origin, vec![ok(FRESH, "own")]);
            let own = proxy.client().get("/", HOST, &[("Cache-Control", control)]);
            assert_eq!(own.text(), "own", "{control}");
            may_answer.open();
            let shared = slow[0].expect_response("GET");
            assert_eq!(shared.text(), "slow", "{control}");
        });
    }
}

#[test]
fn a_head_and_a_condition_join_a_fetch_in_flight_without_its_content() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let may_end = Gate::new();
        let gate = may_end.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send(format!(
                "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\n{FRESH}ETag: \"1\"\r\n\
                 Content-Length: 4\r\n\r\nab"
            ));
            gate.wait();
            c.send("cd");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut reader = clients(&proxy, 1, PLAIN);
        reader[0].expect_head();
        let mut client = proxy.client();
        client.send("HEAD / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        let head = client.expect_response("HEAD");
        assert_eq!(
            (head.field("content-length"), head.field("cache-status")),
            (Some("4"), COLLAPSED)
        );
        let conditions = [("If-None-Match", "\"1\""), ("Cache-Control", "only-if-cached")];
        let held = client.get("/", HOST, &conditions);
        assert_eq!((held.status, held.field("cache-status")), (304, COLLAPSED));
        may_end.open();
        reader[0].expect_bytes("abcd");
    });
}

#[test]
fn rfc9110_6_5_trailers_go_to_those_who_take_them() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let may_end = Gate::new();
        let gate = may_end.clone();
        origin.connection(move |c| {
            let request = c.expect_head();
            assert_eq!(
                (request.field("te"), request.field("connection")),
                (Some("trailers"), Some("TE"))
            );
            c.send(format!(
                "HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
            ));
            gate.wait();
            c.send("0\r\nX-Sum: 1\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\n\r\n");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let takes = "GET / HTTP/1.1\r\nHost: example.org\r\nConnection: TE\r\nTE: trailers\r\n\r\n";
        let mut readers = clients(&proxy, 1, takes);
        let mut response = readers[0].expect_head();
        assert_eq!(response.field("x-sum"), None);
        readers.extend(clients(&proxy, 1, PLAIN));
        readers[1].expect_head();
        may_end.open();
        readers[0].expect_bytes("2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n");
        readers[1].expect_bytes("2\r\nab\r\n0\r\n\r\n");
        response = readers[1].get("/", HOST, &[]);
        assert_eq!((&*response.text(), response.field("x-sum")), ("ab", None));
    });
}
