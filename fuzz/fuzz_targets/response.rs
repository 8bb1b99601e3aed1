//! Response heads, whole and byte by byte: the checks are in `wire::oracle`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::oracle::check_response(bytes));
