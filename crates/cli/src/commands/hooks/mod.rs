//! `windlass hooks …`: shows hooks, their runs and their results. Only `test --run` runs a hook, and only `enable` and
//! `disable` write: to the configuration, or to the log for a stop hook that is registered for a task.

mod history;
mod list;
mod metrics;
mod show;
mod stop_hooks;
mod switch;
mod trial;
mod trial_input;

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
  windlass hooks list                          what would run where, and in which order
  windlass hooks test stop                     what each hook of a point would be given
  windlass hooks history                       the last runs
  windlass hooks history --outcome block       what sent agents back
  windlass hooks metrics --since 7d            how often each hook passes, and how long it takes
  windlass hooks disable lint                  keep a hook, and do not run it"
)]
pub enum Command {
    /// What would run at each point, in which order, and where it was defined
    List(list::Args),
    /// Everything about one hook
    Show(show::Args),
    /// What the hooks of a point would run and be given; with --run, what they say
    Test(trial::Args),
    /// What ran when, for which event, how long, how it ended and where its output is; newest last
    History(history::Args),
    /// How often each hook ran, passed, blocked, failed and timed out, and how long it took
    Metrics(metrics::Args),
    /// Switch a hook on in the configuration
    Enable(switch::Args),
    /// Switch a hook off in the configuration, and keep it there
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
