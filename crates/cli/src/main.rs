//! The binary `windlass`. Everything in it is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_cli::main()
}
