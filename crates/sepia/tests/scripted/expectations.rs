//! Expect and interim responses. RFC 9110 sections 10.1.1 and 15.2.

use sepia::base::Reason;
use testkit::script::{Gate, ScriptedOrigin};

use super::bed::each_path;

const EXPECTING: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[test]
fn rfc9110_10_1_1_the_expectation_goes_on_and_the_origins_100_comes_back() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            assert_eq!(c.expect_head().field("expect"), Some("100-continue"));
            c.expect_nothing_buffered();
            c.send(CONTINUE);
            c.expect_bytes("hello");
            c.send(OK);
            c.expect_head();
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        assert_eq!(client.expect_response("POST").status, 100);
        client.send("hello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        assert_eq!(client.get("/", "a", &[]).text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_10_1_1_a_final_answer_instead_of_100_needs_no_content() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
            assert_eq!(c.expect_closed(), b"", "no content, and no other request");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        let answer = client.expect_response("POST");
        assert_eq!((answer.status, answer.field("connection")), (401, Some("close")));
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_may_be_patient_as_long_as_the_origin_may_think() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, gate) = (Gate::new(), Gate::new());
        let (seen, held) = (asked.clone(), gate.clone());
        origin.connection(move |c| {
            c.expect_head();
            seen.open();
            held.wait();
            c.send(CONTINUE);
            c.expect_bytes("hello");
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        asked.wait();
        proxy.pass(40);
        gate.open();
        assert_eq!(client.expect_response("POST").status, 100);
        client.send("hello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_origin_that_answers_an_expectation_with_silence_is_504() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let seen = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            seen.open();
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        gate.wait();
        // Its minute begins after the request that it has seen.
        proxy.until("the end of its time", |proxy| {
            proxy.pass(61);
            proxy.reasons(Reason::OriginHeadTimeout) == 1
        });
        let answer = client.expect_response("POST");
        assert_eq!(answer.status, 504);
        assert_eq!(answer.field("cache-status"), Some("sepia; detail=origin-head-timeout"));
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_falls_silent_after_100_is_408() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(CONTINUE);
            assert_eq!(c.expect_closed(), b"");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        assert_eq!(client.expect_response("POST").status, 100);
        proxy.pass(29);
        client.expect_nothing_buffered();
        proxy.pass(2);
        let answer = client.expect_response("POST");
        assert_eq!(answer.status, 408);
        client.expect_end();
        proxy.until("the count", |proxy| proxy.reasons(Reason::ClientSilent) == 1);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_10_1_1_any_other_expectation_is_417() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        for value in ["tea", "100-continue, tea", "tea, 100-continue", "100-continue=1"] {
            let mut client = proxy.client();
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nExpect: {value}\r\nContent-Length: 5\r\n\r\n"
            ));
            let answer = client.expect_response("POST");
            assert_eq!(
                (answer.status, answer.field("connection")),
                (417, Some("close")),
                "{value}"
            );
            client.expect_end();
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_10_1_1_an_old_client_expects_nothing_and_sees_no_interim_response() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_request();
            assert_eq!(request.field("expect"), None);
            assert_eq!(request.text(), "hello");
            c.send(CONTINUE);
            c.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(format!("{}hello", EXPECTING.replace("HTTP/1.1", "HTTP/1.0")));
        assert_eq!(client.expect_response("POST").text(), "ok");
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_10_1_1_an_origin_of_http10_is_not_asked_and_100_is_said_here() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        for content in ["", "hello"] {
            origin.connection(move |c| {
                let request = c.expect_request();
                assert_eq!(request.field("expect"), None);
                assert_eq!(request.text(), content);
                c.send("HTTP/1.0 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok");
            });
        }
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/", "a", &[]).text(), "ok");
        client.send(EXPECTING);
        assert_eq!(client.expect_response("POST").status, 100);
        client.send("hello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_15_2_interim_responses_come_as_they_are_sent_and_are_never_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n");
            c.send("Link: </style.css>\r\nConnection: X-Hop\r\nX-Hop: a\r\nKeep-Alive: a\r\n\r\n");
            held.wait();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_response("GET").status, 102);
        let hints = client.expect_response("GET");
        assert_eq!((hints.status, hints.field("link")), (103, Some("</style.css>")));
        for hop in ["connection", "x-hop", "keep-alive", "content-length", "transfer-encoding"] {
            assert_eq!(hints.field(hop), None, "{hop}");
        }
        gate.open();
        assert_eq!(client.expect_response("GET").text(), "ok");
        let hit = client.get("/", "a", &[]);
        assert_eq!((hit.status, hit.text().as_str()), (200, "ok"));
        assert_eq!(hit.field("link"), None);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_expectation_without_content_is_not_passed_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            assert_eq!(c.expect_head().field("expect"), None);
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let answer = client.get("/", "a", &[("Expect", "100-continue")]);
        assert_eq!(answer.text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_10_1_1_a_client_need_not_wait_for_100() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for says_so in [false, true] {
                assert_eq!(c.expect_request().text(), "hello");
                if says_so {
                    c.send(CONTINUE);
                }
                c.send(OK);
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(EXPECTING);
        proxy.until("the request at the origin", |_| origin.connections() == 1);
        client.send("hello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        client.send(format!("{EXPECTING}hello"));
        assert_eq!(client.expect_response("POST").status, 100);
        assert_eq!(client.expect_response("POST").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}
