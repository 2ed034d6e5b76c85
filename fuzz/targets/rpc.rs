//! Single messages to the MCP server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_mcp::laws::check_rpc_message(bytes));
