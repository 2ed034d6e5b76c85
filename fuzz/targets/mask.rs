//! Secrets in output: two values and a text, separated by 0xff.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::check_secret_mask(bytes));
