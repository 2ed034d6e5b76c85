//! Commands of hooks with fields.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::check_script_filling(bytes));
