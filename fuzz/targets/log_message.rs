//! Messages of a fleet's log, and a copy that folds them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_store::laws::check_message_in_copy(bytes));
