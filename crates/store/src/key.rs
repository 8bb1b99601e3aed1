//! The primary cache key (RFC 9111 section 2): full bytes; the hash only finds the place.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::quality::RandomState;

/// Hashes key bytes with a seed drawn once in this process, so that nobody can aim at one chain.
pub fn hash_of(bytes: &[u8]) -> u64 {
    static SEED: OnceLock<RandomState> = OnceLock::new();
    SEED.get_or_init(RandomState::default).hash_one(bytes)
}

/// A cache key that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    bytes: Box<[u8]>,
    hash: u64,
}

impl Key {
    /// The key of these bytes: namespace, scheme, host, port, path and query.
    pub fn new(bytes: &[u8]) -> Self {
        Key { bytes: bytes.into(), hash: hash_of(bytes) }
    }

    /// The full bytes, which decide identity.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of the bytes in this process.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}
