//! Answer objects of hooks, in all four dialects.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::check_hook_response(bytes));
