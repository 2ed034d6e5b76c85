//! Untrusted text that a terminal shows.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_text::laws::check_terminal_text(bytes));
