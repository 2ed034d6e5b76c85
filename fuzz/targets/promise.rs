//! Final messages of agents, and the prompt after 0xff.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_engine::laws::check_promise_rule(bytes));
