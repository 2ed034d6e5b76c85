//! Text from outside that is shown on a terminal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_text::laws::shown(bytes));
