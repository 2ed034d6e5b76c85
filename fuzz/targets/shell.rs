//! Commands of hooks, filled and run by real shells. Each byte chooses a piece of shell text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_hooks::laws::check_shell_safety(bytes));
