//! Commands of hooks with names in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::script(bytes));
