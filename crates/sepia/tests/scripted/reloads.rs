//! Reloads: another configuration for the next exchange, without touching connections or store.

use std::net::{TcpListener, TcpStream};

use sepia::base::Counter;
use sepia::config::{Config, HostHeader, ListenAddress, Listener, Role};
use testkit::script::{Gate, ScriptedClient, ScriptedOrigin};

use super::bed::{Running, START_DATE, each_path, role_to};
use super::listeners::Folder;

/// The configuration that a case's proxy runs with, to be changed.
fn running(proxy: &Running) -> Config {
    let mut config = Config::new(proxy.proxy.facts().listeners);
    config.workers = 1;
    config.memory = 64 << 20;
    config
}

fn any_port() -> ListenAddress {
    ListenAddress::Tcp(([127, 0, 0, 1], 0).into())
}

fn answer(content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
         Content-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

#[test]
fn the_next_exchange_of_a_connection_follows_the_new_role() {
    each_path(|bed| {
        let (before, after) = (ScriptedOrigin::start(), ScriptedOrigin::start());
        before.connection(|c| {
            assert_eq!(c.expect_head().field("host"), Some("a"));
            c.send(answer("before"));
            c.expect_closed();
        });
        let told = after.address().to_string();
        after.connection(move |c| {
            assert_eq!(c.expect_head().field("host"), Some(told.as_str()));
            c.send(answer("after"));
            c.expect_closed();
        });
        let proxy = bed.gateway(&before);
        let mut client = proxy.client();
        assert_eq!(client.get("/", "a", &[]).text(), "before");
        let mut config = running(&proxy);
        let Role::Reverse(mut role) = role_to(&[after.address()]) else { panic!("a gateway") };
        role.host_header = HostHeader::Origin;
        config.listeners[0].role = Role::Reverse(role);
        proxy.proxy.reload(config).expect("taken over");
        assert_eq!(client.get("/", "a", &[]).text(), "after");
        assert_eq!(proxy.count(Counter::Reloads), 1);
        assert_eq!(proxy.count(Counter::SessionsAccepted), 1);
        drop(proxy);
        before.finish();
        after.finish();
    });
}

#[test]
fn an_exchange_keeps_the_settings_that_it_began_with_and_the_store_stays() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, go_on) = (Gate::new(), Gate::new());
        let (was_asked, may_go_on) = (asked.clone(), go_on.clone());
        origin.connection(move |c| {
            c.expect_head();
            was_asked.open();
            may_go_on.wait();
            c.send(answer("hello"));
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.wait();
        let mut config = running(&proxy);
        config.pseudonym = Some("renamed".into());
        proxy.proxy.reload(config).expect("taken over");
        go_on.open();
        let first = client.expect_response("GET");
        assert_eq!((first.text().as_str(), first.field("via")), ("hello", Some("1.1 bed")));
        let second = client.get("/", "a", &[]);
        assert_eq!(second.text(), "hello");
        assert_eq!(proxy.count(Counter::Hits), 1, "what was stored before is still there");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn listeners_open_and_close_while_sessions_go_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(answer("hello"));
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let first = proxy.address();
        let mut old = proxy.client();
        assert_eq!(old.get("/", "a", &[]).text(), "hello");
        let mut config = running(&proxy);
        config.listeners[0].address = any_port();
        let told = proxy.proxy.reload(config).expect("taken over");
        assert!(told.contains("listeners: 1 opened, 1 closed"), "{told}");
        let second = proxy.address();
        assert_ne!(first, second);
        assert_eq!(ScriptedClient::connect(second).get("/", "a", &[]).text(), "hello");
        proxy.until("a closed listener", |_| TcpStream::connect(first).is_err());
        assert_eq!(old.get("/", "a", &[]).text(), "hello", "its session goes on");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_occupied_port_leaves_everything_as_it_was() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("an address");
        let mut config = running(&proxy);
        let role = config.listeners[0].role.clone();
        config.listeners.push(Listener { address: any_port(), role: role.clone() });
        config.listeners.push(Listener { address: ListenAddress::Tcp(address), role });
        let error = proxy.proxy.reload(config).expect_err("the port is taken");
        assert!(error.contains(&address.to_string()), "{error}");
        assert_eq!(proxy.proxy.addresses().len(), 1);
        assert_eq!(proxy.count(Counter::ReloadFailures), 1);
        let mut client = proxy.client();
        client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(client.expect_response("OPTIONS").status, 200);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn bounds_of_heads_and_timeouts_change_for_sessions_that_are_open() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            assert_eq!(c.expect_head().field("x-long").map(str::len), Some(300_000));
            c.send(answer("hello"));
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(client.expect_response("OPTIONS").status, 200);
        let mut config = running(&proxy);
        config.heads.head_bytes = 512 << 10;
        config.heads.line_bytes = 512 << 10;
        config.timeouts.idle = std::time::Duration::from_secs(7);
        proxy.proxy.reload(config).expect("taken over");
        let long = "x".repeat(300_000);
        assert_eq!(client.get("/", "a", &[("X-Long", &long)]).text(), "hello");
        proxy.pass(8);
        client.expect_end();
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn what_needs_a_restart_is_told_and_stays_as_it_is() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut config = running(&proxy);
        config.memory = 32 << 20;
        config.workers = 7;
        let told = proxy.proxy.reload(config).expect("taken over");
        assert!(told.ends_with("memory, workers only change with a restart"), "{told}");
        let facts = proxy.proxy.facts();
        assert_eq!((facts.memory, facts.workers), (64 << 20, 1));
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn the_name_in_via_stays_unless_the_file_sets_one() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        proxy.proxy.reload(running(&proxy)).expect("taken over");
        assert_eq!(proxy.proxy.facts().pseudonym, "bed");
        let mut client = proxy.client();
        assert_eq!(client.get("/", "a", &[("Via", "1.1 bed")]).status, 508);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_proxy_that_drains_takes_no_other_configuration() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        proxy.proxy.drain();
        let mut config = running(&proxy);
        config.listeners[0].address = any_port();
        let error = proxy.proxy.reload(config).expect_err("too late");
        assert!(error.contains("draining"), "{error}");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_unix_socket_comes_and_goes_with_its_place_in_the_configuration() {
    each_path(|bed| {
        let folder = Folder::new();
        let path = folder.0.join("extra.sock");
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let before = running(&proxy);
        let mut config = before.clone();
        let role = config.listeners[0].role.clone();
        config.listeners.push(Listener { address: ListenAddress::Unix(path.clone()), role });
        for _ in 0..2 {
            proxy.proxy.reload(config.clone()).expect("taken over");
            let mut client = ScriptedClient::connect_unix(&path);
            client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
            assert_eq!(client.expect_response("OPTIONS").status, 200);
            proxy.proxy.reload(before.clone()).expect("taken over");
            assert!(!path.exists());
        }
        drop(proxy);
        origin.finish();
    });
}
