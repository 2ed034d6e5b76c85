//! Terminal sequences in what programs print, and making it shorter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::clean_text(bytes));
