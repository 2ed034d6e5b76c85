//! Values of workflows with expressions in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_expr::laws::pattern(bytes));
