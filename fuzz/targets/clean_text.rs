//! Terminal sequences in the output of programs, and truncation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::check_clean_text(bytes));
