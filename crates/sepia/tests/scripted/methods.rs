//! Methods that a proxy has to know: HEAD, OPTIONS, TRACE, and any other. RFC 9110 sections 7.6.2
//! and 9.3; RFC 9112 section 3.2.

use testkit::script::ScriptedOrigin;

use super::bed::each_path;

#[test]
fn rfc9110_9_3_2_head_has_the_fields_of_get_and_no_content() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
                assert_eq!(c.expect_head().method, "HEAD");
                c.send(format!("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n{framing}\r\n\r\n"));
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.expect_response("HEAD");
        assert_eq!((answer.status, answer.field("content-length")), (200, Some("5")));
        assert_eq!(answer.field("etag"), Some("\"a\""));
        client.send("HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.expect_response("HEAD");
        assert_eq!((answer.status, answer.field("content-length")), (200, None));
        client.expect_nothing_buffered();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_9_1_an_unknown_method_goes_to_the_origin_as_it_is() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for method in ["get", "M-SEARCH", "PROPFIND"] {
                assert_eq!(c.expect_head().method, method);
                c.send("HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n");
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for method in ["get", "M-SEARCH", "PROPFIND"] {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
            let answer = client.expect_response(method);
            assert_eq!(answer.status, 501);
            assert!(
                answer.field("cache-status").is_some_and(|f| f.starts_with("sepia; fwd=method"))
            );
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_3_2_4_options_of_the_whole_server_keeps_its_asterisk() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for target in ["*", "/a", "*"] {
                let request = c.expect_head();
                assert_eq!((request.method.as_str(), request.target.as_str()), ("OPTIONS", target));
                assert_eq!(request.field("host"), Some("example.org"));
                c.send("HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n");
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for target in ["*", "/a", "http://example.org"] {
            client.send(format!("OPTIONS {target} HTTP/1.1\r\nHost: example.org\r\n\r\n"));
            assert_eq!(client.expect_response("OPTIONS").field("allow"), Some("GET"));
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_7_6_2_max_forwards_is_counted_down_and_ends_at_zero() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for (method, expected) in
                [("OPTIONS", "6"), ("TRACE", "0"), ("OPTIONS", "999999"), ("GET", "0")]
            {
                let request = c.expect_head();
                assert_eq!(request.method, method);
                assert_eq!(request.field_all("max-forwards"), [expected]);
                c.send("HTTP/1.1 204 No Content\r\n\r\n");
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (method, value) in
            [("OPTIONS", "7"), ("TRACE", "1"), ("OPTIONS", "99999999999999999999999"), ("GET", "0")]
        {
            client
                .send(format!("{method} /a HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n"));
            assert_eq!(client.expect_response(method).status, 204, "{method} {value}");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_9_3_7_options_with_max_forwards_zero_is_answered_here() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        let answer = client.expect_response("OPTIONS");
        assert_eq!((answer.status, answer.content.len()), (200, 0));
        assert!(answer.fields.lists("allow", "TRACE") && answer.fields.lists("allow", "GET"));
        assert_eq!(answer.field("cache-status"), Some("sepia; detail=local"));
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_9_3_8_trace_with_max_forwards_zero_shows_the_request_without_secrets() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        for version in ["1.1", "1.0"] {
            let mut client = proxy.client();
            client.send(format!(
                "TRACE /a?b HTTP/{version}\r\nHost: a\r\nMax-Forwards: 0\r\nX-Odd:  b\r\n\
                 Cookie: secret\r\nAuthorization: secret\r\nProxy-Authorization: secret\r\n\
                 Connection: close\r\n\r\n"
            ));
            let answer = client.expect_response("TRACE");
            assert_eq!((answer.status, answer.field("content-type")), (200, Some("message/http")));
            assert_eq!(
                answer.text(),
                format!(
                    "TRACE /a?b HTTP/{version}\r\nHost: a\r\nMax-Forwards: 0\r\nX-Odd: b\r\n\
                     Connection: close\r\n\r\n"
                )
            );
            client.expect_end();
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_gateway_opens_no_tunnel() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
        let answer = client.expect_response("CONNECT");
        assert_eq!(answer.status, 405);
        assert!(answer.fields.lists("allow", "GET") && !answer.fields.lists("allow", "CONNECT"));
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_forward_proxy_answers_for_itself_what_is_asked_of_itself() {
    each_path(|bed| {
        let proxy = bed.forward();
        let mut client = proxy.client();
        client.send("OPTIONS * HTTP/1.1\r\nHost: proxy\r\n\r\n");
        assert_eq!(client.expect_response("OPTIONS").status, 200);
        client.send("HEAD / HTTP/1.1\r\nHost: proxy\r\n\r\n");
        let head = client.expect_response("HEAD");
        let page = client.get("/", "proxy", &[]);
        assert_eq!((head.status, page.status), (200, 200));
        assert_eq!(head.field("content-length"), page.field("content-length"));
        assert_eq!(page.field("content-length"), Some(page.content.len().to_string().as_str()));
        client.send("GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n");
        assert_eq!(client.expect_response("GET").status, 501);
    });
}
