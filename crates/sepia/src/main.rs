//! sepia
fn main() {}
