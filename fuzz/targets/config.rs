//! Configuration files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_config::laws::check_config(bytes));
