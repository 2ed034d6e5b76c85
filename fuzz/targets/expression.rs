//! Conditions and other expressions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_expr::laws::check_expression(bytes));
