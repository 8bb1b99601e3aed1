//! Choices that follow from a seed alone (SplitMix64).

/// A stream of choices.
pub struct Random(u64);

impl Random {
    /// The stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(mix(seed).wrapping_add(mix(stream.wrapping_add(1))))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

/// A bijection that spreads every bit of `value` over all of them.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
