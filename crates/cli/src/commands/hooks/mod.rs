//! `windlass hooks …`: shows hooks, their runs and their results. Only `test --run` runs a hook, and only `enable` and
//! `disable` write: to the configuration, or to the log for a stop hook that is registered for a task.

mod history;
mod list;
mod metrics;
mod show;
mod stop_hooks;
mod switch;
mod trial;

use clap::Subcommand;
use windlass_app::context::CommandContext;
use windlass_config::{hook_point_names, parse_hook_point};
use windlass_engine::HookPoint;
use windlass_expr::nearest_name;

use crate::output::{CommandResult, Output};

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass hooks list                          list hooks by point, in order
  windlass hooks test stop                     show the input of each hook
  windlass hooks history                       list the last runs
  windlass hooks history --outcome block       list the runs that blocked
  windlass hooks metrics --since 7d            show counts and durations
  windlass hooks disable lint                  keep a hook, but do not run it"
)]
pub enum Command {
    /// List the hooks of each point, in order, with their origin
    List(list::Args),
    /// Show one hook in detail
    Show(show::Args),
    /// Show what the hooks of a point would run; with --run, run them
    Test(trial::Args),
    /// List hook runs with event, duration, outcome and output, newest last
    History(history::Args),
    /// Show counts, outcomes and durations for each hook
    Metrics(metrics::Args),
    /// Enable a hook in the configuration
    Enable(switch::Args),
    /// Disable a hook, but keep it in the configuration
    Disable(switch::Args),
}

pub fn run_hooks_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::List(list::Args { task: Some(task), .. }) => stop_hooks::list_stop_hooks(context, task, out),
        Command::List(args) => list::run_hooks_list(context, args, out),
        Command::Show(args) => show::run_hooks_show(context, &args, out),
        Command::Test(args) => trial::run_hooks_test(context, args, out),
        Command::History(args) => history::run_hooks_history(context, args, out),
        Command::Metrics(args) => metrics::run_hooks_metrics(context, &args, out),
        Command::Enable(args) => switch::run_hooks_switch(context, &args, true, out),
        Command::Disable(args) => switch::run_hooks_switch(context, &args, false, out),
    }
}

/// Parses a point in any spelling that the configuration accepts.
fn parse_point_argument(name: &str) -> Result<HookPoint, String> {
    let names = hook_point_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    parse_hook_point(name).ok_or_else(|| match nearest_name(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "expected a point of the loop such as `stop`, or a type of event".to_owned(),
    })
}
