//! A client of a history: asks at random and checks every answer against what it may be.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use testkit::script::DEADLINE;

use super::check::Asked;
use super::message::{Content, Head};
use super::random::Random;
use super::world::{LANGUAGES, Lifetime, RESOURCES, Resource, World, index};

/// Requests of one connection before it is given up.
const BATCHES_MAX: u64 = 6;

/// A client that sends one batch of requests after the other.
pub struct Client {
    pub world: Arc<World>,
    pub address: SocketAddr,
    pub random: Random,
    /// Versions and variants that answers had, as (resource, version, variant).
    seen: Vec<(u64, u64, u64)>,
    /// Seconds of the history that the worker of the connection in use has seen pass.
    settled: u64,
}

/// What an answer leaves of a connection.
enum After {
    Keep,
    Close,
}

impl Client {
    /// The client number `number` of a seed.
    pub fn new(world: &Arc<World>, address: SocketAddr, seed: u64, number: u64) -> Client {
        let random = Random::new(seed, number);
        Client { world: Arc::clone(world), address, random, seen: Vec::new(), settled: 0 }
    }

    /// Sends so many batches.
    pub fn run(mut self, batches: u64) {
        let mut left = batches;
        while left > 0 {
            let stream = TcpStream::connect(self.address).expect("the proxy accepts");
            stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
            let mut stream = BufReader::new(stream);
            self.settled = 0;
            for _ in 0..left.min(1 + self.random.below(BATCHES_MAX)) {
                left -= 1;
                if self.random.percent(20) {
                    let seconds = 1 + self.random.below(4);
                    self.world.clock.advance(std::time::Duration::from_secs(seconds));
                }
                if matches!(self.batch(&mut stream), After::Close) {
                    break;
                }
            }
        }
    }

    /// Changes every resource, so that nothing stored before may be used again.
    pub fn change_all(self) {
        for number in 0..RESOURCES {
            let ask = format!(
                "POST /r{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                 Content-Length: 0\r\n\r\n"
            );
            loop {
                let stream = TcpStream::connect(self.address).expect("the proxy accepts");
                let mut stream = BufReader::new(stream);
                stream.get_mut().write_all(ask.as_bytes()).expect("the proxy reads");
                let head = Head::read(&mut stream).expect("an answer").expect("an answer");
                if head.word(1).starts_with('2') {
                    break;
                }
            }
        }
    }

    /// Makes sure that the worker knows what time it is: it reads the clock once a turn of its
    /// loop, and a turn that has begun earlier serves a session at most twice more.
    fn settle(&mut self, stream: &mut BufReader<TcpStream>) {
        let now = self.world.seconds();
        if now == self.settled {
            return;
        }
        for _ in 0..3 {
            let ask = b"GET /unknown HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n";
            stream.get_mut().write_all(ask).expect("the proxy reads");
            let head = Head::read(stream).expect("an answer").expect("an answer");
            assert_eq!(head.word(1), "504", "{head:?}");
            assert!(Content::read(stream, &head).is_whole);
        }
        self.settled = now;
    }

    /// One to four requests in one write, then their answers in order.
    fn batch(&mut self, stream: &mut BufReader<TcpStream>) -> After {
        self.settle(stream);
        let count = if self.random.percent(70) { 1 } else { 2 + self.random.below(3) };
        let mut out = Vec::new();
        let mut batch = Vec::new();
        for _ in 0..count {
            batch.push(self.ask(&mut out));
        }
        stream.get_mut().write_all(&out).expect("the proxy reads");
        if self.random.percent(5) {
            let most = index(self.random.below(30_000));
            let _ = stream.read(&mut vec![0; most]);
            return After::Close;
        }
        for asked in batch {
            if matches!(self.take(stream, &asked), After::Close) {
                return After::Close;
            }
        }
        After::Keep
    }

    /// Writes a request and what has to be known for its check.
    fn ask(&mut self, out: &mut Vec<u8>) -> Asked {
        let random = &mut self.random;
        // Some resources are much asked for.
        let number = if random.percent(50) { random.below(4) } else { random.below(RESOURCES) };
        let world = Arc::clone(&self.world);
        let resource = &world.resources[index(number)];
        let mut asked = Asked::new(&world, number, self.settled);
        let mut lines = String::new();
        if random.percent(8) {
            asked.method = "POST";
            lines += if random.percent(50) {
                "Content-Length: 4\r\n\r\nbody"
            } else {
                "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
            };
        } else {
            if random.percent(10) {
                asked.method = "HEAD";
            }
            let language = LANGUAGES[index(random.below(3))];
            if !language.is_empty() {
                let _ = write!(lines, "Accept-Language: {language}\r\n");
            }
            asked.variant = resource.variant(language);
            self.ask_on_terms(resource, &mut asked, &mut lines);
            self.ask_on_condition(resource, &mut asked, &mut lines);
            lines += "\r\n";
        }
        let head = format!("{} /r{number} HTTP/1.1\r\nHost: a\r\n{lines}", asked.method);
        out.extend_from_slice(head.as_bytes());
        asked
    }

    fn ask_on_terms(&mut self, resource: &Resource, asked: &mut Asked, lines: &mut String) {
        let random = &mut self.random;
        let seconds = random.below(10);
        let may_be_stale = matches!(
            resource.lifetime,
            Lifetime::MaxAge(_) | Lifetime::Expires(_) | Lifetime::Heuristic
        );
        let directive = match random.below(30) {
            0..3 => {
                asked.is_new = true;
                "no-cache".to_owned()
            }
            3 => {
                asked.only_if_cached = true;
                "only-if-cached".to_owned()
            }
            4 => {
                asked.max_age = Some(seconds);
                format!("max-age={seconds}")
            }
            5 => {
                asked.max_stale = may_be_stale.then_some(seconds);
                format!("max-stale={seconds}")
            }
            6 => {
                asked.min_fresh = seconds;
                format!("min-fresh={seconds}")
            }
            7 => "no-store".to_owned(),
            _ => return,
        };
        let _ = write!(lines, "Cache-Control: {directive}\r\n");
    }

    fn ask_on_condition(&mut self, resource: &Resource, asked: &mut Asked, lines: &mut String) {
        let number = resource.number;
        let known: Vec<_> = self.seen.iter().filter(|it| it.0 == number).copied().collect();
        let random = &mut self.random;
        if asked.method == "GET" && random.percent(15) {
            let (a, b) = (random.below(5_000), random.below(5_000));
            let range = match random.below(3) {
                0 => format!("bytes={a}-{}", a + b),
                1 => format!("bytes={a}-"),
                _ => format!("bytes=-{}", 1 + b),
            };
            let _ = write!(lines, "Range: {range}\r\n");
            asked.range = Some(range);
        }
        let Some(&(_, version, variant)) = known.get(index(random.below(known.len() as u64 + 1)))
        else {
            return;
        };
        let tag = resource.tag(version, variant);
        match (random.below(6), tag) {
            (0, Some(tag)) if asked.range.is_some() => {
                let _ = write!(lines, "If-Range: {tag}\r\n");
                asked.if_range = Some(tag);
            }
            (1 | 2, Some(tag)) => {
                let _ = write!(lines, "If-None-Match: \"other\", {tag}\r\n");
                asked.none_match = Some((version, tag));
            }
            (3, _) if resource.has_modified => {
                super::origin::append_date("If-Modified-Since", Resource::modified(version), lines);
                asked.modified_since = Some(version);
            }
            _ => {}
        }
    }

    /// Takes an answer and checks it.
    fn take(&mut self, stream: &mut BufReader<TcpStream>, asked: &Asked) -> After {
        let mut head = Head::read(stream).expect("an answer").expect("an answer before the end");
        while head.word(1).starts_with('1') {
            head = Head::read(stream).expect("an answer").expect("a final answer");
        }
        let has_content = asked.method != "HEAD" && !matches!(head.word(1), "204" | "304");
        let content = if has_content {
            Content::read(stream, &head)
        } else {
            Content { bytes: Vec::new(), is_whole: true }
        };
        asked.check(&self.world, &head, &content);
        if let (Some(version), Some(variant)) = (head.number("x-version"), head.number("x-variant"))
            && asked.method != "POST"
        {
            self.seen.push((asked.resource, version, variant));
        }
        let closes = head.field("connection") == Some("close");
        if content.is_whole && !closes { After::Keep } else { After::Close }
    }
}
