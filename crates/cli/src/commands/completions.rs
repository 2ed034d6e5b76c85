//! `windlass completions SHELL`: prints completions for a shell.

use clap_complete::Shell;
use serde_json::json;

use crate::args;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass completions bash >> ~/.bash_completion
  windlass completions zsh > ~/.zfunc/_windlass
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
pub struct Args {
    /// The shell to generate completions for
    shell: Shell,
}

pub fn run_completions(args: Args, out: &mut Output) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::build_clap_command(), "windlass", &mut script);
    let script = String::from_utf8_lossy(&script);
    match out.is_json() {
        true => out.print_json(&json!({"shell": args.shell.to_string(), "script": script})),
        false => out.print_line(script.trim_end()),
    }
}
