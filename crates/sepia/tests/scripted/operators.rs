//! What an operator asks the running proxy: the control socket and the admin listener.

use std::os::unix::fs::PermissionsExt;

use sepia::config::HostHeader;
use testkit::script::{ScriptedClient, ScriptedOrigin};

use super::bed::{START_DATE, each_path};
use super::listeners::Folder;

#[test]
fn status_and_metrics_tell_what_has_happened() {
    each_path(|bed| {
        let folder = Folder::new();
        let control = folder.0.join("control.sock");
        let place = control.clone();
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(format!(
                "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
                 Content-Length: 5\r\n\r\nhello"
            ));
            c.expect_closed();
        });
        let proxy = bed
            .with(move |config| {
                config.control = Some(place.clone());
                config.admin_listen = Some(([127, 0, 0, 1], 0).into());
            })
            .gateway(&origin);
        let mode = std::fs::metadata(&control).expect("a control socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = proxy.client();
        for _ in 0..3 {
            assert_eq!(client.get("/", "a", &[]).text(), "hello");
        }
        client.send("GET / HTTP/1.1\r\n\r\n");
        assert_eq!(client.expect_response("GET").status, 400);
        client.close();

        let ask = |target: &str| ScriptedClient::connect_unix(&control).get(target, "sepia", &[]);
        let status = ask("/status").text();
        assert!(status.contains("ready"), "{status}");
        assert!(status.contains("gateway in front of 127.0.0.1"), "{status}");
        assert!(status.contains("Requests answered from a fresh stored response."), "{status}");
        assert!(status.contains("missing-host"), "{status}");
        assert!(status.contains("50.0 % of the answers came without an origin"), "{status}");
        assert!(status.contains(&origin.address().to_string()), "{status}");
        let json: serde_json::Value =
            serde_json::from_str(&ask("/status?json").text()).expect("JSON");
        assert_eq!(json["counters"]["hits"], 2);
        assert_eq!(json["counters"]["exchanges"], 4);
        assert_eq!(json["reasons"]["missing-host"], 1);
        assert_eq!(json["origins"][0]["idle"], 1);
        assert!(json["store_bytes"]["content"].as_u64() >= Some(5), "{json}");

        let admin = proxy.proxy.facts().admin_listen.expect("an admin listener");
        let metrics = ScriptedClient::connect(admin).get("/metrics", "sepia", &[]);
        let media_type = metrics.field("content-type").unwrap_or_default();
        assert!(media_type.starts_with("application/openmetrics-text"), "{media_type}");
        assert!(metrics.text().contains("sepia_hits_total 2\n"), "{}", metrics.text());
        assert!(metrics.text().ends_with("# EOF\n"));
        assert_eq!(ScriptedClient::connect(admin).get("/ready", "sepia", &[]).status, 200);
        assert_eq!(ScriptedClient::connect(admin).get("/status", "sepia", &[]).status, 404);
        drop(proxy);
        assert!(!control.exists(), "it goes with its proxy");
        origin.finish();
    });
}

#[test]
fn a_reload_without_a_file_says_why_not() {
    each_path(|bed| {
        let folder = Folder::new();
        let control = folder.0.join("control.sock");
        let place = control.clone();
        let origin = ScriptedOrigin::start();
        let proxy = bed
            .with(move |config| {
                config.control = Some(place.clone());
                let sepia::config::Role::Reverse(reverse) = &mut config.listeners[0].role else {
                    panic!("a gateway")
                };
                reverse.host_header = HostHeader::Origin;
            })
            .gateway(&origin);
        let mut operator = ScriptedClient::connect_unix(&control);
        operator.send("POST /reload HTTP/1.1\r\nHost: sepia\r\nContent-Length: 0\r\n\r\n");
        let answer = operator.expect_response("POST");
        assert_eq!(answer.status, 422);
        assert!(answer.text().contains("without a configuration file"), "{}", answer.text());
        drop(proxy);
        origin.finish();
    });
}
