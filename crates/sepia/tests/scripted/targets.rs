//! Where a forward proxy may be sent: rebinding, and requests for the proxy itself.

use std::net::SocketAddr;

use sepia::base::{Counter, Reason};
use sepia::config::Role;
use testkit::script::ScriptedOrigin;

use super::bed::each_path;

/// A name that every resolver knows as 127.0.0.1, and that is neither a literal address (it has
/// not four numbers) nor `localhost`.
const REBOUND: &str = "127.1";

fn absolute(host: &str, origin: SocketAddr) -> String {
    let port = origin.port();
    format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

fn answer_once(origin: &ScriptedOrigin) {
    origin.connection(|c| {
        c.expect_head();
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    });
}

#[test]
fn literal_loopback_targets_and_localhost_are_open_to_clients_of_this_machine() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.forward();
        let mut client = proxy.client();
        for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::ffff:127.0.0.1]"] {
            answer_once(&origin);
            client.send(absolute(host, origin.address()));
            assert_eq!(client.expect_response("GET").status, 200, "{host}");
        }
        origin.finish();
    });
}

#[test]
fn a_name_that_resolves_to_this_machine_is_refused() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.forward();
        let mut client = proxy.client();
        client.send(absolute(REBOUND, origin.address()));
        let answer = client.expect_response("GET");
        assert_eq!(answer.status, 403);
        let status = answer.field("proxy-status").unwrap_or_default();
        assert!(status.contains("destination_ip_prohibited"), "{status}");
        let port = origin.address().port();
        client.send(format!("CONNECT {REBOUND}:{port} HTTP/1.1\r\nHost: {REBOUND}:{port}\r\n\r\n"));
        assert_eq!(client.expect_response("CONNECT").status, 403);
        assert_eq!(proxy.reasons(Reason::PrivateTarget), 2);
        assert_eq!(proxy.count(Counter::OriginConnects), 0);
        origin.finish();
    });
}

#[test]
fn allow_private_opens_a_network_to_names() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        answer_once(&origin);
        let proxy = bed
            .with(|config| {
                let Role::Forward(forward) = &mut config.listeners[0].role else {
                    panic!("a forward listener")
                };
                forward.allow_private = vec!["127.0.0.0/8".parse().expect("a network")];
            })
            .forward();
        let mut client = proxy.client();
        client.send(absolute(REBOUND, origin.address()));
        assert_eq!(client.expect_response("GET").status, 200);
        origin.finish();
    });
}

#[test]
fn a_request_for_the_proxy_itself_gets_a_page_and_goes_nowhere() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.forward();
        let mut client = proxy.client();
        let host = origin.address().to_string();
        let page = client.get("/private?x=1", &host, &[]);
        assert_eq!(page.status, 200);
        assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.text().contains("This is a forward proxy"));
        assert_eq!(page.field("cache-status"), Some("sepia; detail=local"));
        client.send(format!("HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let head = client.expect_response("HEAD");
        assert_eq!(head.field("content-length"), page.field("content-length"));
        client.send(format!("OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.expect_response("OPTIONS").status, 200);
        assert_eq!(proxy.count(Counter::OriginConnects), 0);
        assert_eq!(proxy.count(Counter::LocalAnswers), 3);
        origin.finish();
    });
}

#[test]
fn schemes_other_than_http_are_not_fetched() {
    each_path(|bed| {
        let proxy = bed.forward();
        let mut client = proxy.client();
        for target in ["https://example.com/", "ftp://example.com/"] {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n"));
            let answer = client.expect_response("GET");
            assert_eq!(answer.status, 501, "{target}");
        }
        assert_eq!(proxy.reasons(Reason::UnsupportedScheme), 2);
    });
}

#[test]
fn rfc9110_7_4_a_gateway_serves_no_other_scheme_as_if_it_were_http() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for target in ["https://a/", "ftp://a/", "ttp://a/"] {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(client.expect_response("GET").status, 501, "{target}");
        }
        assert_eq!(proxy.reasons(Reason::UnsupportedScheme), 3);
        drop(proxy);
        origin.finish();
    });
}
