//! `windlass top`: the project in the terminal, live.

use std::io::{self, IsTerminal};

use windlass_app::context::CommandContext;
use windlass_app::hook_switch::refuse_agent_caller;
use windlass_app::{Failure, FailureCode};
use windlass_top::ColorMode;

use crate::output::{EarlyExit, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass top                      the project of this directory
  windlass top --project ~/shop     another project

The screens show what needs a person, tasks with their graph, sessions live, why something happened, changes with \
their checks, and the log. `?` shows the keys, `a` answers, `s` says something to an agent, `q` quits. Agents keep \
working when it ends.")]
pub struct Args {}

pub fn run_top_screen(context: &CommandContext, _: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    if out.is_json() || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::new(FailureCode::Usage, "cannot show screens without a terminal")
            .with_hint("`windlass status` prints the state, `windlass serve` shows it in a browser")
            .into());
    }
    let project = context.find_project()?;
    refuse_agent_caller(context, &project, "use `windlass top`")?;
    let colors = if out.has_color() { ColorMode::Colors } else { ColorMode::Plain };
    Ok(windlass_top::run_top(context, colors)?)
}
