//! The binary `windlass`. Its code is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_cli::main()
}
