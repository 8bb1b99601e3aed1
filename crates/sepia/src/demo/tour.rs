//! The walk: takes each step, holds what came of it against what was promised, prints the row.
//!
//! It must never stop at a broken promise: the rows behind it tell the rest of the story.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testkit::origin::SiteOrigin;
use testkit::site::Site;

use super::cache_status::CacheStatus;
use super::client::{Answer, Client, Request};
use super::step::{self, ContentPromise, Step, UNSEEN};
use super::table::{Row, Table, grouped};

/// Where the tour goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) origin: SocketAddr,
    pub(super) gateway: SocketAddr,
    pub(super) forward_proxy: SocketAddr,
}

/// What the tour came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) steps: usize,
    /// Steps of which something was otherwise than promised.
    pub(super) broken: usize,
    /// Requests that the origin answered.
    pub(super) reached_origin: usize,
    pub(super) elapsed: Duration,
}

/// A tour on its way.
#[derive(Debug)]
pub(super) struct Tour<'a, W> {
    places: Places,
    origin: &'a SiteOrigin,
    /// A second copy, to compare with: it is the same on each machine.
    site: Site,
    table: Table<W>,
    verdict: Verdict,
}

/// What came of a step.
type Outcome = io::Result<Answer>;

impl<'a, W: Write> Tour<'a, W> {
    pub(super) fn new(places: Places, origin: &'a SiteOrigin, table: Table<W>) -> Self {
        let verdict = Verdict { steps: 0, broken: 0, reached_origin: 0, elapsed: Duration::ZERO };
        Tour { places, origin, site: Site::new(), table, verdict }
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// When nobody reads the table any more. What goes wrong with a step stands in its row.
    pub(super) fn walk(mut self) -> io::Result<Verdict> {
        let start = Instant::now();
        self.table.print_columns()?;
        self.table.print_heading(&format!("through the gateway {}", self.places.gateway))?;
        self.walk_gateway()?;
        self.walk_slow_pair()?;
        let forward_proxy = self.places.forward_proxy;
        self.table.print_heading(&format!("through the forward proxy {forward_proxy}"))?;
        self.walk_forward_proxy()?;
        self.walk_tunnel()?;
        self.verdict.elapsed = start.elapsed();
        Ok(self.verdict)
    }

    fn walk_gateway(&mut self) -> io::Result<()> {
        let mut client = Client::new(self.places.gateway);
        for step in step::through_gateway(&self.site) {
            let outcome = client.ask(&self.through_gateway(&step));
            self.conclude(&step, outcome)?;
        }
        Ok(())
    }

    /// The second client asks when the first has its first line; four more are to come.
    fn walk_slow_pair(&mut self) -> io::Result<()> {
        let [first, second] = step::slow_pair();
        let request = self.through_gateway(&first);
        let mut one = Client::new(self.places.gateway);
        let mut other = Client::new(self.places.gateway);
        let begun = one.begin(&request);
        let joined = other.begin(&request);
        let content_at_once = joined.as_ref().map_or(0, |joined| joined.content().len());
        let outcome = begun.and_then(|begun| one.finish(begun));
        let joined = joined.and_then(|joined| other.finish(joined));
        // What the pair sent to the origin is the first row's; the second is to add nothing.
        self.conclude(&first, outcome)?;
        let mut row = self.judge(&second, &joined, UNSEEN.to_owned());
        if let Ok(answer) = &joined {
            if content_at_once >= answer.content.len() {
                row.faults.push("content: expected as it comes, got all of it at the end".into());
            } else if row.faults.is_empty() {
                let until_content = grouped(answer.until_content.as_micros());
                row.why = format!("its content began after {until_content} µs");
            }
        }
        self.print(row)
    }

    fn walk_forward_proxy(&mut self) -> io::Result<()> {
        let mut client = Client::new(self.places.forward_proxy);
        for step in step::through_forward_proxy() {
            let target = format!("http://{}{}", self.places.origin, step.path);
            let request = request(&step, target, self.places.origin);
            let outcome = client.ask(&request);
            self.conclude(&step, outcome)?;
        }
        Ok(())
    }

    fn walk_tunnel(&mut self) -> io::Result<()> {
        let step = step::through_tunnel();
        let mut client = Client::new(self.places.forward_proxy);
        let host = self.places.origin.to_string();
        let connect =
            Request { method: "CONNECT", target: host.clone(), host, ..Request::default() };
        let outcome = client.ask(&connect).and_then(|opened| {
            if opened.status != 200 {
                return Ok(opened);
            }
            let inside = request(&step, step.path.to_owned(), self.places.origin);
            let mut answer = client.ask(&inside)?;
            answer.elapsed += opened.elapsed;
            Ok(answer)
        });
        self.conclude(&step, outcome)
    }

    fn through_gateway(&self, step: &Step) -> Request {
        request(step, step.path.to_owned(), self.places.gateway)
    }

    /// Judges a step by what has reached the origin since the last one, and prints its row.
    fn conclude(&mut self, step: &Step, outcome: Outcome) -> io::Result<()> {
        let seen = self.origin.take_seen();
        self.verdict.reached_origin += seen.len();
        let seen: Vec<_> =
            seen.iter().map(|seen| format!("{} {}", seen.method, seen.status)).collect();
        let seen = if seen.is_empty() { UNSEEN.to_owned() } else { seen.join(", ") };
        let row = self.judge(step, &outcome, seen);
        self.print(row)
    }

    fn print(&mut self, row: Row) -> io::Result<()> {
        self.verdict.steps += 1;
        self.verdict.broken += usize::from(!row.faults.is_empty());
        self.table.print_row(&row)
    }

    fn judge(&self, step: &Step, outcome: &Outcome, seen: String) -> Row {
        let promise = &step.promise;
        let mut faults = Vec::new();
        let mut compare = |what: &str, expected: &str, got: &str| {
            if expected != got {
                faults.push(format!("{what}: expected {expected}, got {got}"));
            }
        };
        compare("origin saw", promise.seen, &seen);
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => {
                compare("answer", &promise.status.to_string(), &format!("none: {error}"));
                let status = "none".to_owned();
                return Row { request: step.label, status, seen, faults, ..Row::default() };
            }
        };
        compare("status", &promise.status.to_string(), &answer.status.to_string());
        let cache_status = CacheStatus::decode(answer.field("cache-status"));
        let answered_by = cache_status.answered_by().word();
        compare("from", promise.answered_by.word(), answered_by);
        faults.extend(self.content_fault(step, answer));
        Row {
            request: step.label,
            status: answer.status.to_string(),
            answered_by,
            why: cache_status.why(answer.status),
            seen,
            elapsed: answer.elapsed,
            faults,
        }
    }

    /// What is wrong with an answer's content.
    fn content_fault(&self, step: &Step, answer: &Answer) -> Option<String> {
        let content = &answer.content;
        match step.promise.content {
            ContentPromise::Whole(language) => differing(&self.content_of(step, language), content),
            ContentPromise::Part(first, last) => {
                let whole = self.content_of(step, "");
                let range = format!("bytes {first}-{last}/{}", whole.len());
                let stated = answer.field("content-range").unwrap_or("none");
                if stated != range {
                    return Some(format!("Content-Range: expected {range}, got {stated}"));
                }
                differing(whole.get(first..=last).unwrap_or_default(), content)
            }
            ContentPromise::LengthAlone => {
                let length = self.content_of(step, "").len().to_string();
                let stated = answer.field("content-length").unwrap_or("none");
                let fault = format!("Content-Length: expected {length}, got {stated}");
                if stated == length { differing(b"", content) } else { Some(fault) }
            }
            ContentPromise::Nothing => differing(b"", content),
            ContentPromise::Text(text) => differing(text.as_bytes(), content),
            ContentPromise::Sentence if content.is_empty() => {
                Some("content: expected a sentence, got nothing".to_owned())
            }
            ContentPromise::Sentence => None,
        }
    }

    fn content_of(&self, step: &Step, language: &str) -> Vec<u8> {
        // Only /vary depends on the language; it is short.
        if let Some(resource) = self.site.resource(step.path, language)
            && let testkit::site::Content::Bytes(bytes) = resource.content
        {
            return bytes;
        }
        self.site.content_at(step.path, 0, usize::MAX).unwrap_or_default()
    }
}

fn request(step: &Step, target: String, host: SocketAddr) -> Request {
    let Step { method, fields, content, .. } = step;
    Request { method, target, host: host.to_string(), fields: fields.clone(), content }
}

/// Where content is not as it should be.
fn differing(expected: &[u8], got: &[u8]) -> Option<String> {
    if expected == got {
        return None;
    }
    let (expected_length, length) = (expected.len(), got.len());
    if expected_length != length {
        return Some(format!("content: expected {expected_length} bytes, got {length}"));
    }
    let place = expected.iter().zip(got).position(|(one, other)| one != other)?;
    Some(format!("content: another byte than expected at position {place}"))
}
