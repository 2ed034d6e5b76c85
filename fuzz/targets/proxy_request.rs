//! Requests to the proxy of a sandbox, their bodies, and TLS handshakes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_sandbox::laws::check_proxy_request(bytes));
