//! What the origin serves and what a client may believe of it: every byte of content follows from
//! (resource, version, variant, offset), so that a response that mixes two is seen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sepia::Clock;

use super::random::{Random, mix};

/// Seconds since the epoch at which every history begins: Sun, 06 Nov 2033 08:49:37 GMT.
pub const START: u64 = 2_014_879_777;
/// How many resources there are.
pub const RESOURCES: u64 = 20;
/// Values of Accept-Language that select a variant; the first stands for a missing field.
pub const LANGUAGES: [&str; 3] = ["", "en", "de"];
/// Seconds between Last-Modified of one version and the next.
const MODIFIED_STEP: u64 = 10;
/// Last-Modified of version 0, far enough back for any number of versions.
const MODIFIED_FIRST: u64 = START - 1_000_000;

/// The entity tags of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    None,
    Weak,
    Strong,
}

/// What its Cache-Control says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    MaxAge(u64),
    Shared(u64),
    MustRevalidate(u64),
    Expires(u64),
    Heuristic,
    NoCache,
    NoStore,
}

/// What does not change about a resource.
pub struct Resource {
    pub number: u64,
    pub tags: Tags,
    pub has_modified: bool,
    pub varies: bool,
    pub takes_ranges: bool,
    pub lifetime: Lifetime,
    /// Bytes that no version has more of.
    length_max: u64,
}

impl Resource {
    fn random(number: u64, random: &mut Random) -> Resource {
        let seconds = 1 + random.below(20);
        Resource {
            number,
            tags: [Tags::None, Tags::Weak, Tags::Strong, Tags::Strong][index(random.below(4))],
            has_modified: random.percent(60),
            varies: random.percent(40),
            takes_ranges: random.percent(50),
            lifetime: match random.below(10) {
                0..4 => Lifetime::MaxAge(seconds),
                4 => Lifetime::Shared(seconds),
                5 => Lifetime::MustRevalidate(seconds),
                6 => Lifetime::Expires(seconds),
                7 => Lifetime::Heuristic,
                8 => Lifetime::NoCache,
                _ => Lifetime::NoStore,
            },
            length_max: [50, 3_000, 20_000, 60_000, 200_000][index(random.below(5))],
        }
    }

    /// Bytes of content of a version.
    pub fn length(&self, version: u64, variant: u64) -> u64 {
        mix(self.number << 40 | version << 8 | variant) % (self.length_max + 1)
    }

    /// All content of a version.
    pub fn content(&self, version: u64, variant: u64) -> Vec<u8> {
        let word = |place: u64| {
            mix(mix(self.number << 40 | version << 8 | variant).wrapping_add(place)).to_le_bytes()
        };
        let length = index(self.length(version, variant));
        let mut content: Vec<u8> = (0..length.div_ceil(8) as u64).flat_map(word).collect();
        content.truncate(length);
        content
    }

    /// The ETag of a version, if the resource has any.
    pub fn tag(&self, version: u64, variant: u64) -> Option<String> {
        match self.tags {
            Tags::None => None,
            Tags::Weak => Some(format!("W/\"{}-{version}-{variant}\"", self.number)),
            Tags::Strong => Some(format!("\"{}-{version}-{variant}\"", self.number)),
        }
    }

    /// The Last-Modified of a version in seconds since the epoch.
    pub fn modified(version: u64) -> u64 {
        MODIFIED_FIRST + version * MODIFIED_STEP
    }

    /// The variant that this Accept-Language selects.
    pub fn variant(&self, language: &str) -> u64 {
        let place = LANGUAGES.iter().position(|known| *known == language).unwrap_or_default();
        if self.varies { place as u64 } else { 0 }
    }
}

/// A number that is small by construction as an index.
pub fn index(number: u64) -> usize {
    usize::try_from(number).expect("small numbers")
}

/// What origin and clients share.
pub struct World {
    pub resources: Vec<Resource>,
    pub clock: Clock,
    versions: Vec<AtomicU64>,
    /// The version below which nobody may be served who asks from now on.
    floors: Vec<AtomicU64>,
    /// Requests that the origin has begun to answer.
    answered: Mutex<u64>,
    changed: Condvar,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64, clock: Clock) -> World {
        let mut random = Random::new(seed, u64::MAX);
        let numbers = 0..RESOURCES;
        World {
            resources: numbers.clone().map(|n| Resource::random(n, &mut random)).collect(),
            clock,
            versions: numbers.clone().map(|_| AtomicU64::new(0)).collect(),
            floors: numbers.map(|_| AtomicU64::new(0)).collect(),
            answered: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// The version that the origin serves now.
    pub fn version(&self, resource: u64) -> u64 {
        self.versions[index(resource)].load(Ordering::SeqCst)
    }

    /// Makes the next version and returns it.
    pub fn change(&self, resource: u64) -> u64 {
        self.versions[index(resource)].fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The floor for a request that begins now.
    pub fn floor(&self, resource: u64) -> u64 {
        self.floors[index(resource)].load(Ordering::SeqCst)
    }

    /// A client has been told that this version was made.
    pub fn raise_floor(&self, resource: u64, version: u64) {
        self.floors[index(resource)].fetch_max(version, Ordering::SeqCst);
    }

    /// Numbers an answer of the origin, from 1.
    pub fn number_answer(&self) -> u64 {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered += 1;
        self.changed.notify_all();
        *answered
    }

    /// The number of the last answer.
    pub fn answers(&self) -> u64 {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an answer back until `count` later ones have begun, or for a few milliseconds if
    /// nobody asks for more.
    pub fn let_pass(&self, count: u64) {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let until = *answered + count;
        let most = Duration::from_millis(4);
        drop(self.changed.wait_timeout_while(answered, most, |now| *now < until));
    }

    /// Seconds since the history began.
    pub fn seconds(&self) -> u64 {
        self.clock.micros() / 1_000_000
    }
}
