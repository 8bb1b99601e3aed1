//! How long a stored response is fresh and how old it says it is (RFC 9111 sections 4.2 and 5.1).

use sepia::base::{Counter, Reason};
use testkit::script::{Gate, ScriptedOrigin};

use super::answers::{HOST, in_turn, ok};
use super::bed::{START_DATE, each_path};

/// Fields, seconds that pass, Cache-Status afterwards.
type Row = (&'static str, u64, &'static str);

const EXPIRED: &str = "sepia; fwd=stale; fwd-status=200; stored; detail=expired";
const EXPIRED_SHARED: &str = "sepia; fwd=stale; fwd-status=200; stored; detail=must-revalidate";

#[test]
fn rfc9111_4_2_1_lifetimes_in_their_order_of_precedence() {
    const ROWS: &[Row] = &[
        ("Cache-Control: max-age=10\r\n", 9, "sepia; hit; ttl=1"),
        ("Cache-Control: max-age=10\r\n", 10, EXPIRED),
        ("Cache-Control: max-age=10, s-maxage=20\r\n", 15, "sepia; hit; ttl=5"),
        ("Cache-Control: max-age=30, s-maxage=10\r\n", 10, EXPIRED_SHARED),
        ("Cache-Control: max-age=30, max-age=10\r\n", 10, EXPIRED),
        ("Cache-Control: max-age=20\r\nExpires: 0\r\n", 15, "sepia; hit; ttl=5"),
        ("Expires: Sun, 06 Nov 2033 08:49:57 GMT\r\n", 19, "sepia; hit; ttl=1"),
        ("Expires: Sun, 06 Nov 2033 08:49:57 GMT\r\n", 20, EXPIRED),
        // A tenth of the 200 seconds since it last changed.
        ("Last-Modified: Sun, 06 Nov 2033 08:46:17 GMT\r\n", 19, "sepia; hit; ttl=1"),
        ("Last-Modified: Sun, 06 Nov 2033 08:46:17 GMT\r\n", 20, EXPIRED),
        // What it was old already counts.
        ("Age: 5\r\nCache-Control: max-age=10\r\n", 4, "sepia; hit; ttl=1"),
        ("Age: 5\r\nCache-Control: max-age=10\r\n", 5, EXPIRED),
    ];
    for (fields, seconds, how) in ROWS {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let mut answers = vec![ok(fields, "content")];
            if !how.contains("hit") {
                answers.push(ok(fields, "content"));
            }
            in_turn(&origin, answers);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", HOST, &[]);
            proxy.pass(*seconds);
            let response = client.get("/", HOST, &[]);
            assert_eq!(response.field("cache-status"), Some(*how), "{fields} after {seconds} s");
        });
    }
}

#[test]
fn rfc9111_5_1_age_counts_from_the_origin_and_date_is_the_origins() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok("Cache-Control: max-age=100\r\nAge: 30\r\n", "content")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/", HOST, &[]).field_all("age"), ["30"], "old on arrival");
        proxy.pass(12);
        let second = client.get("/", HOST, &[]);
        assert_eq!(second.field_all("age"), ["42"]);
        assert_eq!(second.field_all("date"), [START_DATE]);
        assert_eq!(second.field("cache-status"), Some("sepia; hit; ttl=58"));
    });
}

#[test]
fn rfc9111_4_2_3_an_old_date_and_a_slow_answer_make_a_response_older() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, may_answer) = (Gate::new(), Gate::new());
        let (has_asked, gate) = (asked.clone(), may_answer.clone());
        origin.connection(move |c| {
            c.expect_head();
            // Twenty seconds before the case begins.
            c.send(
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 2033 08:49:17 GMT\r\n\
                 Cache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nold",
            );
            c.expect_head();
            has_asked.open();
            gate.wait();
            c.send(ok("Cache-Control: max-age=60\r\n", "slow"));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/old", HOST, &[]).field("age"), Some("20"));

        client.send("GET /slow HTTP/1.1\r\nHost: example.org\r\n\r\n");
        asked.wait();
        proxy.pass(7);
        may_answer.open();
        assert_eq!(client.expect_response("GET").field("age"), Some("7"));
        let again = client.get("/slow", HOST, &[]);
        assert_eq!(
            (again.field("age"), again.field("cache-status")),
            (Some("7"), Some("sepia; hit; ttl=53"))
        );
    });
}

#[test]
fn rfc9110_6_6_1_a_missing_date_is_added_once() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for target in ["/stored", "/passed"] {
                assert_eq!(c.expect_head().target, target);
                let control = if target == "/stored" { "max-age=60" } else { "no-store" };
                c.send(format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 1\r\n\r\n."
                ));
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/stored", HOST, &[]).field_all("date"), [START_DATE]);
        proxy.pass(5);
        let hit = client.get("/stored", HOST, &[]);
        assert_eq!((hit.field_all("date"), hit.field("age")), (vec![START_DATE], Some("5")));
        let passed = client.get("/passed", HOST, &[]);
        assert_eq!(passed.field_all("date"), ["Sun, 06 Nov 2033 08:49:42 GMT"]);
    });
}

#[test]
fn rfc9111_4_2_3_a_wall_clock_that_jumps_changes_no_age() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok("Expires: Sun, 06 Nov 2033 08:50:07 GMT\r\n", "content")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        for jump in [1_000_000, -2_000_000] {
            proxy.clock.jump_wall(jump);
            proxy.pass(3);
        }
        let response = client.get("/", HOST, &[]);
        assert_eq!(response.field("age"), Some("6"));
        assert_eq!(response.field("cache-status"), Some("sepia; hit; ttl=24"));
        assert_eq!(response.field("date"), Some(START_DATE));
    });
}

#[test]
fn rfc9111_5_1_a_response_that_only_passes_keeps_its_age() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok("Cache-Control: no-store\r\nAge: 30\r\n", "content")]);
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/", HOST, &[]).field_all("age"), ["30"]);
    });
}

#[test]
fn rfc9111_5_2_1_request_directives_want_it_fresher() {
    type Ask = (&'static [(&'static str, &'static str)], &'static str);
    const ASKS: &[Ask] = &[
        (&[("Cache-Control", "max-age=20")], "sepia; hit; ttl=40"),
        (&[("Cache-Control", "min-fresh=40")], "sepia; hit; ttl=40"),
        (&[("Cache-Control", "max-age=19")], "request-max-age"),
        (&[("Cache-Control", "max-age=0")], "request-max-age"),
        (&[("Cache-Control", "min-fresh=41")], "request-min-fresh"),
        (&[("Cache-Control", "No-Cache")], "request-no-cache"),
        (&[("Pragma", "no-cache")], "request-no-cache"),
        (&[("Pragma", "no-cache"), ("Cache-Control", "max-age=60")], "sepia; hit; ttl=40"),
        (&[("Cache-Control", "no-store")], "sepia; hit; ttl=40"),
    ];
    for (fields, how) in ASKS {
        each_path(|bed| {
            let fresh = "Cache-Control: max-age=60\r\n";
            let origin = ScriptedOrigin::start();
            let mut answers = vec![ok(fresh, "1")];
            let is_hit = how.contains("hit");
            if !is_hit {
                answers.push(ok(fresh, "2"));
            }
            in_turn(&origin, answers);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", HOST, &[]);
            proxy.pass(20);
            let response = client.get("/", HOST, fields);
            let expected = match is_hit {
                true => (*how).to_owned(),
                false => format!("sepia; fwd=request; fwd-status=200; stored; detail={how}"),
            };
            assert_eq!(response.field("cache-status"), Some(&*expected), "{fields:?}");
            // What it brought is everybody's.
            let content = if is_hit { "1" } else { "2" };
            assert_eq!(client.get("/", HOST, &[]).text(), content, "{fields:?}");
        });
    }
}

#[test]
fn rfc9111_4_2_4_stale_only_by_the_requests_grant() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let strict = "Cache-Control: max-age=10, must-revalidate\r\n";
        in_turn(
            &origin,
            vec![ok("Cache-Control: max-age=10\r\n", "1"), ok(strict, "2"), ok(strict, "3")],
        );
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/lenient", HOST, &[]);
        client.get("/strict", HOST, &[]);
        proxy.pass(15);
        for grant in ["max-stale", "max-stale=5"] {
            let stale = client.get("/lenient", HOST, &[("Cache-Control", grant)]);
            assert_eq!((&*stale.text(), stale.field("age")), ("1", Some("15")));
            assert_eq!(stale.field("cache-status"), Some("sepia; hit; ttl=-5; detail=max-stale"));
        }
        assert_eq!(proxy.count(Counter::StaleHits), 2);
        let refused = client.get("/strict", HOST, &[("Cache-Control", "max-stale")]);
        assert_eq!(refused.text(), "3", "must-revalidate is stronger");
    });
}

#[test]
fn rfc9111_5_2_1_7_only_if_cached_never_reaches_the_origin() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok("Cache-Control: max-age=10\r\n", "content")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let only = ("Cache-Control", "only-if-cached");
        let none = client.get("/", HOST, &[only]);
        assert_eq!(none.status, 504);
        assert_eq!(none.field("cache-status"), Some("sepia; detail=only-if-cached"));
        assert_eq!(none.field("proxy-status"), Some("sepia; error=proxy_internal_response"));
        client.get("/", HOST, &[]);
        assert_eq!(client.get("/", HOST, &[only]).text(), "content");
        proxy.pass(11);
        assert_eq!(client.get("/", HOST, &[only]).status, 504, "stale is not enough");
        let granted = [("Cache-Control", "only-if-cached, max-stale=5")];
        assert_eq!(client.get("/", HOST, &granted).text(), "content");
        // Even where the store may not be asked: the origin is not to be.
        let bypassing = client.get("/", HOST, &[only, ("If-Match", "\"a\"")]);
        assert_eq!(bypassing.status, 504);
        assert_eq!(proxy.reasons(Reason::OnlyIfCached), 3);
    });
}
