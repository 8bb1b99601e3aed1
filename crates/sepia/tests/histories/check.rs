//! What an answer may be, given when it was asked for and how.

use super::message::{Content, Head};
use super::origin::{opaque, resolve};
use super::world::{Resource, World, index};

/// A request as its check needs it.
#[derive(Debug)]
pub struct Asked {
    pub method: &'static str,
    pub resource: u64,
    pub variant: u64,
    pub range: Option<String>,
    pub if_range: Option<String>,
    /// The version whose tag was sent, and the tag.
    pub none_match: Option<(u64, String)>,
    /// The version whose date was sent.
    pub modified_since: Option<u64>,
    /// Asked for with no-cache.
    pub is_new: bool,
    pub only_if_cached: bool,
    /// Seconds that it may be stale by, where the resource allows it.
    pub max_stale: Option<u64>,
    pub max_age: Option<u64>,
    pub min_fresh: u64,
    /// No earlier version may come.
    floor: u64,
    /// The origin's last answer before the request was sent.
    answers: u64,
    /// The earliest time at which it is answered, in seconds of the history.
    seconds: u64,
}

impl Asked {
    /// A plain GET, sent now, to a worker that has seen so many seconds pass.
    pub fn new(world: &World, resource: u64, seconds: u64) -> Asked {
        Asked {
            method: "GET",
            resource,
            variant: 0,
            range: None,
            if_range: None,
            none_match: None,
            modified_since: None,
            is_new: false,
            only_if_cached: false,
            max_stale: None,
            max_age: None,
            min_fresh: 0,
            floor: world.floor(resource),
            answers: world.answers(),
            seconds,
        }
    }

    /// Fails the test if the answer must not be.
    pub fn check(&self, world: &World, head: &Head, content: &Content) {
        let what = || format!("{self:?}\n{head:?}");
        let resource = &world.resources[index(self.resource)];
        match head.word(1) {
            "304" => self.check_not_modified(resource, head),
            "416" => self.check_unsatisfiable(world, resource, head),
            _ if self.method == "POST" => return self.learn(world, head),
            _ if head.number("x-version").is_none() => {
                let cause = head.field("cache-status").unwrap_or_default();
                assert!(matches!(head.word(1), "502" | "503" | "504"), "{}", what());
                assert!(cause.contains("detail="), "an own answer says why: {}", what());
                return;
            }
            status => {
                let version = head.number("x-version").expect("checked above");
                assert!(version >= self.floor, "an earlier version: {}", what());
                assert_eq!(head.number("x-variant"), Some(self.variant), "{}", what());
                assert_eq!(head.field("etag"), resource.tag(version, self.variant).as_deref());
                let all = resource.content(version, self.variant);
                let part = match status {
                    "206" => self.part(resource, &all, version, head),
                    _ => &all[..],
                };
                self.check_content(head, content, part);
            }
        }
        if self.only_if_cached {
            let handling = head.field("cache-status").unwrap_or_default();
            assert!(handling.contains("; hit") || handling.contains("; collapsed"), "{}", what());
        }
        self.check_age(head);
    }

    /// A POST that was answered well has made a version; from now on nobody gets an earlier one.
    fn learn(&self, world: &World, head: &Head) {
        let is_done = matches!(head.word(1), "204" | "201");
        assert!(is_done || matches!(head.word(1), "500" | "502" | "503" | "504"), "{head:?}");
        if !is_done {
            return;
        }
        world.raise_floor(self.resource, head.number("x-version").expect("told"));
        if let (Some(path), Some(version)) = (head.field("location"), head.number("x-also")) {
            let also = path.strip_prefix("/r").and_then(|it| it.parse().ok());
            world.raise_floor(also.expect("a resource"), version);
        }
    }

    fn check_content(&self, head: &Head, content: &Content, part: &[u8]) {
        if let Some(length) = head.number("content-length") {
            assert_eq!(length, part.len() as u64, "{self:?}\n{head:?}");
        }
        if self.method == "HEAD" {
            return;
        }
        let bytes = &content.bytes[..];
        assert!(part.starts_with(bytes), "other bytes: {self:?}\n{head:?}");
        let is_all = bytes.len() == part.len();
        assert!(is_all || !content.is_whole, "cut at {}: {self:?}\n{head:?}", bytes.len());
    }

    /// The part that a 206 says it has, which must be the one asked for.
    fn part<'c>(&self, resource: &Resource, all: &'c [u8], version: u64, head: &Head) -> &'c [u8] {
        let length = all.len() as u64;
        let range = self.range.as_deref().expect("asked for a range");
        let (first, last) = resolve(range, length).expect("a range of the content");
        let expected = format!("bytes {first}-{last}/{length}");
        assert_eq!(head.field("content-range"), Some(&expected[..]), "{self:?}");
        if let Some(tag) = &self.if_range {
            assert_eq!(resource.tag(version, self.variant).as_ref(), Some(tag), "{self:?}");
            assert!(!tag.starts_with("W/"), "a weak tag selects no part: {self:?}");
        }
        &all[index(first)..=index(last)]
    }

    fn check_not_modified(&self, resource: &Resource, head: &Head) {
        let version = match (&self.none_match, self.modified_since) {
            (Some((version, tag)), _) => {
                let answered = head.field("etag").expect("a 304 repeats the tag");
                assert_eq!(opaque(answered), opaque(tag), "{self:?}");
                assert_eq!(Some(tag), resource.tag(*version, self.variant).as_ref(), "{self:?}");
                *version
            }
            (None, Some(version)) => version,
            (None, None) => panic!("no condition was sent: {self:?}\n{head:?}"),
        };
        assert!(version >= self.floor, "no longer so: {self:?}\n{head:?}");
    }

    fn check_unsatisfiable(&self, world: &World, resource: &Resource, head: &Head) {
        let told = head.field("content-range").and_then(|it| it.strip_prefix("bytes */"));
        let length: u64 = told.and_then(|it| it.parse().ok()).expect("a length");
        let range = self.range.as_deref().expect("asked for a range");
        assert_eq!(resolve(range, length), None, "{self:?}\n{head:?}");
        let mut versions = self.floor..=world.version(self.resource);
        let is_known = versions.any(|version| resource.length(version, self.variant) == length);
        assert!(is_known, "no version has this length: {self:?}\n{head:?}");
    }

    /// What the origin answered before the request was sent has been reused: it must be fresh.
    fn check_age(&self, head: &Head) {
        let (Some(number), Some(sent)) = (head.number("x-answer"), head.number("x-sent")) else {
            return;
        };
        if number > self.answers {
            return;
        }
        let what = || format!("{self:?}\n{head:?}");
        assert!(!self.is_new, "reused without validation: {}", what());
        let age = self.seconds.saturating_sub(sent);
        let lifetime = head.number("x-lifetime").expect("stamped");
        let is_granted = self.max_stale.is_some_and(|most| age <= lifetime + most);
        let is_fresh = age < lifetime && age + self.min_fresh <= lifetime;
        assert!(is_granted || is_fresh, "aged {age}: {}", what());
        assert!(self.max_age.is_none_or(|most| age <= most), "aged {age}: {}", what());
        if head.word(1) != "304" {
            let told = head.number("age").expect("what is reused tells its age");
            assert!(told >= age, "older than told, {age}: {}", what());
        }
    }
}
