//! Messages of an agent over the Agent Client Protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_agents::laws::check_acp(bytes));
