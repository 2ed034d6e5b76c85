//! Output of agents in place of an answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_agents::laws::check_agent_failure(bytes));
