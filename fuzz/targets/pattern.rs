//! Values of workflows that contain expressions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_expr::laws::check_pattern(bytes));
