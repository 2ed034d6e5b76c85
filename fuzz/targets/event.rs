//! Encoded events.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_engine::laws::check_event_encoding(bytes));
