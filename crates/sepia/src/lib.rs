//! sepia
