//! Templates, and a value after 0xff.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_expr::laws::check_template(bytes));
