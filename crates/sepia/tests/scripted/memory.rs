//! What the byte budget makes of responses: too large to be kept, or evicted for others.

use sepia::base::Gauge;
use sepia::config::Config;
use testkit::script::{Gate, ScriptedOrigin};
use testkit::site::content_at;

use super::answers::{HOST, in_turn, ok};
use super::bed::{Running, START_DATE, each_path};

const FRESH: &str = "Cache-Control: max-age=60\r\n";
const BUDGET: u64 = 1 << 20;
const LARGE_LEN: usize = 3 << 20;
const LARGE: u64 = LARGE_LEN as u64;

fn assert_within_budget(proxy: &Running) {
    let used: u64 = proxy.proxy.store_use().iter().map(|(_, bytes)| bytes).sum();
    assert!(used <= BUDGET, "{used} bytes");
}

#[test]
fn a_response_larger_than_the_memory_passes_through_unstored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for _ in 0..2 {
                c.expect_head();
                c.send(format!(
                    "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\n{FRESH}Age: 7\r\n\
                     Content-Length: {LARGE}\r\n\r\n"
                ));
                c.send_generated(0, LARGE);
            }
            c.expect_end();
        });
        let proxy = bed.with(|config| config.memory = BUDGET).gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            let response = client.get("/", HOST, &[]);
            assert!(response.content == content_at(0, LARGE_LEN));
            assert_eq!(response.field("cache-status"), Some("sepia; fwd=uri-miss"));
            assert_eq!(response.field_all("age"), ["7"], "what passes keeps its age");
            assert_within_budget(&proxy);
        }
    });
}

#[test]
fn a_response_that_turns_out_larger_than_the_memory_is_not_kept() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        for _ in 0..2 {
            origin.connection(|c| {
                c.expect_head();
                c.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Connection: close\r\n\r\n"));
                c.send_generated(0, LARGE);
            });
        }
        let proxy = bed.with(|config| config.memory = BUDGET).gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            let response = client.get("/", HOST, &[]);
            assert!(response.content == content_at(0, LARGE_LEN));
            // Its size was not known when its head went out.
            assert_eq!(response.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
            assert_within_budget(&proxy);
        }
    });
}

#[test]
fn what_was_stored_first_leaves_for_what_comes() {
    each_path(|bed| {
        let content = "x".repeat(64 << 10);
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok(FRESH, &content); 41]);
        let proxy = bed.with(|config| config.memory = BUDGET).gateway(&origin);
        let mut client = proxy.client();
        for number in 0..40 {
            let response = client.get(&format!("/{number}"), HOST, &[]);
            assert_eq!(response.text(), content);
            assert_eq!(response.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
            assert_within_budget(&proxy);
        }
        let last = client.get("/39", HOST, &[]);
        assert_eq!(last.field("cache-status"), Some("sepia; hit; ttl=60"));
        let first = client.get("/0", HOST, &[]);
        assert_eq!(first.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
    });
}

#[test]
fn what_is_asked_for_again_stays_longer() {
    each_path(|bed| {
        let content = "x".repeat(64 << 10);
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![ok(FRESH, &content); 41]);
        let proxy = bed.with(|config| config.memory = BUDGET).gateway(&origin);
        let mut client = proxy.client();
        client.get("/popular", HOST, &[]);
        for number in 0..40 {
            client.get(&format!("/{number}"), HOST, &[]);
            let popular = client.get("/popular", HOST, &[]);
            assert_eq!(popular.field("cache-status"), Some("sepia; hit; ttl=60"));
        }
    });
}

/// What left the index is freed only when every worker has passed a turn of its loop.
#[test]
fn a_worker_that_only_waits_does_not_keep_the_others_from_storing() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let release = Gate::new();
        for _ in 0..8 {
            let released = release.clone();
            origin.connection(move |c| {
                c.expect_head();
                released.wait();
                c.send(ok("", "late"));
                c.expect_end();
            });
        }
        let content = "x".repeat(64 << 10);
        let answer = ok(FRESH, &content);
        origin.connection(move |c| {
            while c.next_request().is_some() {
                c.send(&answer);
            }
        });
        let change = |config: &mut Config| (config.memory, config.workers) = (BUDGET, 2);
        let proxy = bed.with(change).gateway(&origin);
        // Both workers have a client that waits for the origin, with overwhelming likelihood.
        let mut waiting: Vec<_> = (0..8)
            .map(|number| {
                let mut client = proxy.client();
                client.send(format!("GET /waits/{number} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
                proxy.until("it waits", |proxy| proxy.gauge(Gauge::HopForward) == number + 1);
                client
            })
            .collect();
        let mut client = proxy.client();
        for number in 0..100 {
            assert_eq!(client.get(&format!("/{number}"), HOST, &[]).text(), content);
        }
        // Freed within moments, as long as anybody wants room.
        let mut number = 100;
        proxy.until("something is stored again", |_| {
            number += 1;
            let target = format!("/{number}");
            client.get(&target, HOST, &[]);
            client.get(&target, HOST, &[]).field("cache-status") == Some("sepia; hit; ttl=60")
        });
        release.open();
        for client in &mut waiting {
            assert_eq!(client.expect_response("GET").text(), "late");
        }
    });
}
