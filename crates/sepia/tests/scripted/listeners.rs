//! Listeners: families, roles side by side, places that are taken, and crowds.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use sepia::Proxy;
use sepia::base::{Counter, Gauge, Reason};
use sepia::config::{Config, Forward, ListenAddress, Listener, Role};
use testkit::script::{ScriptedClient, ScriptedOrigin};

use super::bed::{START_DATE, each_path, role_to};

/// A folder of a test's own, removed at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let mut number = [0; 8];
        getrandom::fill(&mut number).expect("randomness");
        let name = format!("sepia-test-{:016x}", u64::from_ne_bytes(number));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder is there");
    }
}

/// A storable answer with this content.
fn storable(content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
         Content-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

fn forward() -> Role {
    Role::Forward(Forward { connect_ports: Vec::new(), allow_private: Vec::new() })
}

fn tcp(address: &ListenAddress) -> SocketAddr {
    match address {
        ListenAddress::Tcp(address) => *address,
        ListenAddress::Unix(path) => panic!("{} is no TCP address", path.display()),
    }
}

/// Why a proxy with these listeners does not start.
fn start_error(listeners: Vec<ListenAddress>, change: impl Fn(&mut Config)) -> String {
    let listener = |address| Listener { address, role: forward() };
    let mut config = Config::new(listeners.into_iter().map(listener).collect());
    config.workers = 1;
    config.memory = 8 << 20;
    change(&mut config);
    match Proxy::builder(config).start() {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

fn any_port() -> ListenAddress {
    ListenAddress::Tcp(([127, 0, 0, 1], 0).into())
}

#[test]
fn a_unix_socket_serves_and_goes_with_the_proxy() {
    each_path(|bed| {
        let folder = Folder::new();
        let path = folder.0.join("sepia.sock");
        // An instance that was killed has left its socket behind.
        drop(UnixListener::bind(&path).expect("a socket"));
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(storable("hello"));
            c.expect_end();
        });
        let place = path.clone();
        let proxy = bed
            .with(move |config| config.listeners[0].address = ListenAddress::Unix(place.clone()))
            .gateway(&origin);
        let mut client = ScriptedClient::connect_unix(&path);
        assert_eq!(client.get("/", "a", &[]).text(), "hello");
        assert_eq!(client.get("/", "a", &[]).text(), "hello");
        assert_eq!(proxy.count(Counter::Hits), 1);
        client.close();
        drop(proxy);
        assert!(!path.exists(), "the socket goes with its proxy");
        origin.finish();
    });
}

#[test]
fn ipv4_and_ipv6_listeners_share_one_store() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(storable("once"));
            c.expect_end();
        });
        let proxy = bed
            .with(|config| {
                let role = config.listeners[0].role.clone();
                let address = ListenAddress::Tcp((Ipv6Addr::LOCALHOST, 0).into());
                config.listeners.push(Listener { address, role });
            })
            .gateway(&origin);
        assert_eq!(proxy.client().get("/", "a", &[]).text(), "once");
        let second = tcp(&proxy.proxy.addresses()[1]);
        assert!(second.is_ipv6());
        assert_eq!(ScriptedClient::connect(second).get("/", "a", &[]).text(), "once");
        assert_eq!(proxy.count(Counter::Hits), 1);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn listeners_with_other_origins_share_nothing() {
    each_path(|bed| {
        let (one, other) = (ScriptedOrigin::start(), ScriptedOrigin::start());
        for (origin, content) in [(&one, "one"), (&other, "other")] {
            origin.connection(move |c| {
                c.expect_head();
                c.send(storable(content));
                c.expect_end();
            });
        }
        let role = role_to(&[other.address()]);
        let proxy = bed
            .with(move |config| {
                config.listeners.push(Listener { address: any_port(), role: role.clone() });
                config.listeners.push(Listener { address: any_port(), role: forward() });
            })
            .gateway(&one);
        let addresses: Vec<_> = proxy.proxy.addresses().iter().map(tcp).collect();
        for _ in 0..2 {
            let mut clients = addresses.iter().map(|address| ScriptedClient::connect(*address));
            let mut text = || clients.next().expect("a listener").get("/", "same", &[]).text();
            assert_eq!(text(), "one");
            assert_eq!(text(), "other");
            assert!(text().contains("This is a forward proxy"));
        }
        assert_eq!(proxy.count(Counter::Hits), 2);
        drop(proxy);
        one.finish();
        other.finish();
    });
}

#[test]
fn an_occupied_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    for workers in [1, 3] {
        let text =
            start_error(vec![ListenAddress::Tcp(address)], |config| config.workers = workers);
        assert!(text.contains(&address.to_string()), "{text}");
        assert!(text.contains("another program listens there"), "{text}");
    }
    let text = start_error(vec![any_port()], |config| config.admin_listen = Some(address));
    assert!(text.contains(&address.to_string()), "{text}");
}

#[test]
fn places_that_cannot_be_listened_on_are_named() {
    let folder = Folder::new();
    let text = start_error(vec!["192.0.2.1:8080".parse().expect("an address")], |_| {});
    assert!(text.contains("192.0.2.1:8080"), "{text}");
    assert!(text.contains("no interface of this machine"), "{text}");

    let path = folder.0.join("live.sock");
    let _live = UnixListener::bind(&path).expect("a socket");
    let text = start_error(vec![ListenAddress::Unix(path.clone())], |_| {});
    assert!(text.contains("live.sock") && text.contains("another program"), "{text}");
    assert!(path.exists(), "the other's socket stays");

    let nowhere = folder.0.join("nowhere/control.sock");
    let text = start_error(vec![any_port()], move |config| config.control = Some(nowhere.clone()));
    assert!(text.contains("nowhere/control.sock"), "{text}");
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let folder = Folder::new();
    let path = folder.0.join("first.sock");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = ListenAddress::Tcp(taken.local_addr().expect("an address"));
    start_error(vec![ListenAddress::Unix(path.clone()), address], |_| {});
    assert!(!path.exists());
}

#[test]
fn one_session_too_many_is_told_so_and_the_next_finds_room() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(storable("hello"));
            c.expect_end();
        });
        let proxy = bed.with(|config| config.max_sessions = 2).gateway(&origin);
        let mut first = proxy.client();
        // The idle connection to the origin is no session.
        assert_eq!(first.get("/", "a", &[]).status, 200);
        let mut second = proxy.client();
        assert_eq!(second.get("/", "a", &[]).status, 200);
        let mut third = proxy.client();
        let answer = third.expect_response("GET");
        assert_eq!(answer.status, 503);
        assert!(answer.field("retry-after").is_some());
        assert_eq!(answer.field("connection"), Some("close"));
        third.expect_closed();
        assert_eq!(proxy.reasons(Reason::TooManySessions), 1);
        assert_eq!(first.get("/", "a", &[]).status, 200, "those inside notice nothing");
        second.close();
        proxy.until("a free place", |proxy| proxy.gauge(Gauge::SessionsOpen) == 1);
        assert_eq!(proxy.client().get("/", "a", &[]).status, 200);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_thousand_clients_at_once_on_four_workers_each_get_their_own_answer() {
    const CLIENTS: usize = 1_000;
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        for _ in 0..4 {
            origin.connection(|c| {
                while let Some(request) = c.next_request() {
                    c.send(storable(&request.target));
                }
            });
        }
        let proxy = bed.with(|config| config.workers = 4).gateway(&origin);
        // One page after the other, so that four connections are enough for the origin.
        (0..10).for_each(|page| {
            let target = format!("/{page}");
            assert_eq!(proxy.client().get(&target, "a", &[]).text(), target);
        });
        // Whichever worker has not asked yet: the scripts want to be used.
        while origin.connections() < 4 {
            let target = format!("/new/{}", proxy.count(Counter::Exchanges));
            assert_eq!(proxy.client().get(&target, "a", &[]).text(), target);
        }
        let address = proxy.address();
        let crowd: Vec<_> = (0..8)
            .map(|part| {
                thread::spawn(move || {
                    let mut clients: Vec<_> = (0..CLIENTS / 8)
                        .map(|number| (number, ScriptedClient::connect(address)))
                        .collect();
                    for (number, client) in &mut clients {
                        let page = (*number + part) % 10;
                        client.send(format!("GET /{page} HTTP/1.1\r\nHost: a\r\n\r\n"));
                    }
                    for (number, client) in &mut clients {
                        let page = (*number + part) % 10;
                        assert_eq!(client.expect_response("GET").text(), format!("/{page}"));
                    }
                    clients.len()
                })
            })
            .collect();
        let served: usize = crowd.into_iter().map(|part| part.join().expect("served")).sum();
        assert_eq!(served, CLIENTS);
        assert!(proxy.count(Counter::Hits) >= CLIENTS as u64);
        proxy.until("everybody to leave", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        drop(proxy);
        origin.finish();
    });
}
