//! Streams of the known agents, for the decoder of each.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_agents::laws::check_stream(bytes));
