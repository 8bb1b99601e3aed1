//! The generated site: pages, images, a large download and one resource for each caching rule.
//!
//! Pure and deterministic: no file, no clock, no socket; equal calls give equal resources. The one
//! exception is `/never`, whose point it is to differ each time. It must never need anything from
//! outside: pages link only to the site itself, so that it looks right without a network.

mod image;
mod page;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pages under `/page/`, numbered from 1.
pub const PAGES: u64 = 8;
/// Images under `/image/`, numbered from 1.
pub const IMAGES: u64 = 6;
/// Bytes of `/download`.
pub const DOWNLOAD_BYTES: u64 = 20_000_000;
/// The largest `/bytes/N`.
pub const GENERATED_BYTES_MAX: u64 = 10_000_000_000;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The generated site. Its paths:
///
/// | path | what it is for |
/// |---|---|
/// | `/`, `/page/1` to `/page/8` | HTML pages that link each other; fresh for 5 minutes |
/// | `/style.css`, `/image/1.svg` to `/image/6.svg`, `/icon.png` | fresh for an hour |
/// | `/download` | 20 MB, ETag, fresh for an hour |
/// | `/bytes/N` | N bytes, ETag, fresh for an hour |
/// | `/never` | no-store, different each time |
/// | `/vary` | Vary: Accept-Language; German or English |
/// | `/slow` | a line each 200 ms, chunked; fresh for a minute |
/// | `/etag` | max-age=0 with an ETag: reused only after validation |
/// | `/cookie`, `/private` | not for a shared cache |
/// | `/error` | status 500 |
#[derive(Debug, Default)]
pub struct Site {
    times_never: AtomicU64,
}

/// What a path of the site is at present.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The status code of the answer.
    pub status: u16,
    /// The media type (RFC 9110 §8.3).
    pub content_type: &'static str,
    /// Further field lines, such as Cache-Control and ETag.
    pub fields: Vec<(&'static str, String)>,
    /// The content.
    pub content: Content,
}

/// The content of a resource, without holding more of it than is needed.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The first `length` bytes of [`fill_content`].
    Generated {
        /// Length in bytes.
        length: u64,
    },
    /// Lines with a pause before each.
    Stream {
        /// The lines, each with its line feed.
        lines: Vec<String>,
        /// The pause before each line.
        pause: Duration,
    },
}

impl Site {
    /// A fresh site.
    pub fn new() -> Site {
        Site::default()
    }

    /// The resource at `path` (without a query) for a client with this Accept-Language; `None`
    /// where there is none.
    pub fn resource(&self, path: &str, accept_language: &str) -> Option<Resource> {
        match path {
            "/" => Some(Resource::reusable(HTML, page::index(), 300)),
            "/style.css" => Some(Resource::reusable("text/css", page::STYLE.to_owned(), 3600)),
            "/icon.png" => Some(Resource::reusable("image/png", image::icon(), 3600)),
            "/download" => Some(Resource::generated(DOWNLOAD_BYTES)),
            "/never" => Some(self.never()),
            "/vary" => Some(vary(accept_language)),
            "/slow" => Some(slow()),
            "/etag" => Some(Resource::reusable(TEXT, "Ask me each time.\n".to_owned(), 0)),
            "/cookie" => Some(
                Resource::text("You have a cookie now.\n", "max-age=60")
                    .with("Set-Cookie", "visited=yes; Path=/cookie".to_owned()),
            ),
            "/private" => Some(Resource::text("For one reader alone.\n", "private, max-age=60")),
            "/error" => Some(Resource {
                status: 500,
                fields: Vec::new(),
                ..Resource::text("This path always fails.\n", "")
            }),
            _ => numbered(path),
        }
    }

    /// `length` bytes of the resource at `path` from `offset` on, cut at its end; `None` where
    /// there is no resource or where it differs each time.
    pub fn content_at(&self, path: &str, offset: u64, length: usize) -> Option<Vec<u8>> {
        if path == "/never" {
            return None;
        }
        let content = self.resource(path, "")?.content;
        let left = usize::try_from(content.length().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(left)];
        match content {
            Content::Generated { .. } => fill_content(offset, &mut bytes),
            Content::Bytes(all) => copy_from(&all, offset, &mut bytes),
            Content::Stream { lines, .. } => {
                copy_from(lines.concat().as_bytes(), offset, &mut bytes);
            }
        }
        Some(bytes)
    }

    fn never(&self) -> Resource {
        let time = self.times_never.fetch_add(1, Ordering::Relaxed) + 1;
        Resource::text(&format!("This is answer number {time}.\n"), "no-store")
    }
}

impl Resource {
    /// The entity tag, if it has one (RFC 9110 §8.8.3).
    pub fn etag(&self) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(name, _)| *name == "ETag")?;
        Some(value)
    }

    fn text(text: &str, cache_control: &str) -> Resource {
        Resource {
            status: 200,
            content_type: TEXT,
            fields: vec![("Cache-Control", cache_control.to_owned())],
            content: Content::Bytes(text.as_bytes().to_vec()),
        }
    }

    fn reusable(content_type: &'static str, bytes: impl Into<Vec<u8>>, age_max: u32) -> Resource {
        let bytes = bytes.into();
        let etag = format!("\"{:016x}\"", fingerprint(&bytes));
        let cache_control = format!("max-age={age_max}");
        Resource {
            status: 200,
            content_type,
            fields: vec![("Cache-Control", cache_control), ("ETag", etag)],
            content: Content::Bytes(bytes),
        }
    }

    fn generated(length: u64) -> Resource {
        Resource {
            status: 200,
            content_type: "application/octet-stream",
            fields: vec![
                ("Cache-Control", "max-age=3600".to_owned()),
                ("ETag", format!("\"generated-{length}\"")),
            ],
            content: Content::Generated { length },
        }
    }

    fn with(mut self, name: &'static str, value: String) -> Resource {
        self.fields.push((name, value));
        self
    }
}

impl Content {
    /// Length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Generated { length } => *length,
            Content::Stream { lines, .. } => lines.iter().map(|line| line.len() as u64).sum(),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Content({} bytes)", self.length())
    }
}

/// `length` generated bytes from `offset` on: any part of a large content, without holding it.
pub fn content_at(offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill_content(offset, &mut bytes);
    bytes
}

/// Fills `bytes` with the generated content from `offset` on. Each byte depends on its position
/// alone, and no stretch repeats, so that a byte at the wrong place is seen.
pub fn fill_content(offset: u64, bytes: &mut [u8]) {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let word = mix(at / 8).to_le_bytes();
        let skipped = (at % 8) as usize;
        let count = rest.len().min(8 - skipped);
        let (now, later) = rest.split_at_mut(count);
        now.copy_from_slice(&word[skipped..skipped + count]);
        rest = later;
        at += count as u64;
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014): a bijection of 64-bit words.
pub(crate) fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(state ^ u64::from_le_bytes(word))
    })
}

fn copy_from(all: &[u8], offset: u64, bytes: &mut [u8]) {
    let rest = usize::try_from(offset).ok().and_then(|start| all.get(start..)).unwrap_or(&[]);
    bytes.copy_from_slice(&rest[..bytes.len()]);
}

fn numbered(path: &str) -> Option<Resource> {
    let (folder, name) = path.strip_prefix('/')?.split_once('/')?;
    let within = |text: &str, max: u64| text.parse().ok().filter(|n| (1..=max).contains(n));
    match folder {
        "page" => Some(Resource::reusable(HTML, page::page(within(name, PAGES)?), 300)),
        "image" => {
            let number = within(name.strip_suffix(".svg")?, IMAGES)?;
            Some(Resource::reusable("image/svg+xml", image::waves(number), 3600))
        }
        "bytes" => name.parse().ok().filter(|n| *n <= GENERATED_BYTES_MAX).map(Resource::generated),
        _ => None,
    }
}

fn vary(accept_language: &str) -> Resource {
    // The first language named decides; weights are more than this page needs.
    let (text, language) = match accept_language.trim().get(..2) {
        Some(first) if first.eq_ignore_ascii_case("de") => ("Guten Tag vom Meer.\n", "de"),
        _ => ("Good day from the sea.\n", "en"),
    };
    let resource = Resource::reusable(TEXT, text.to_owned(), 60);
    resource
        .with("Vary", "Accept-Language".to_owned())
        .with("Content-Language", language.to_owned())
}

fn slow() -> Resource {
    let lines = (1..=5).map(|number| format!("Wave {number} of 5 has arrived.\n")).collect();
    let content = Content::Stream { lines, pause: Duration::from_millis(200) };
    Resource { content, ..Resource::text("", "max-age=60") }
}
