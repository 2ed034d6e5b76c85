//! `windlass task claim`: claims a task for a person or a worker.

use windlass_app::context::CommandContext;
use windlass_app::environment;
use windlass_config::DurationSetting;
use windlass_engine::{Authority, Command, Event, OwnerName, TaskId};

use super::details;
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task claim                          claim the most urgent ready task
  windlass task claim T3 --owner worker-1 --lease 2h
  windlass task claim --agent reviewer         claim the next one for this agent
  windlass task complete T3 --epoch 1          complete it, with its epoch

Only the holder of a task can change its state, until the lease ends. Without --agent, the next task is one \
that is open to all agents; a person can claim any task by its ID.")]
pub struct Args {
    /// The task [default: the next one]
    #[arg(value_name = "ID")]
    id: Option<TaskId>,
    /// The holder of the lease
    #[arg(long, value_name = "NAME")]
    owner: Option<OwnerName>,
    /// The configured agent that claims: only tasks that its type allows
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The duration of the lease
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    lease: DurationSetting,
}

pub fn run_task_claim(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let owner = args.owner.unwrap_or_else(default_owner_name);
    let millis = i64::try_from(args.lease.duration().as_millis()).unwrap_or(i64::MAX);
    let until = environment::current_timestamp().add_millis(millis);
    let claim = Command::ClaimTask { id: args.id, owner, until, agent: args.agent };
    let records = opened.execute_command(&claim, Authority::Person)?;
    let claimed = records.iter().find_map(|record| match &record.envelope.event {
        Event::TaskClaimed(claimed) => record.envelope.node.task_id().map(|id| (id, claimed)),
        _ => None,
    });
    let Some((id, claimed)) = claimed else { return Ok(()) };
    details::show_task_result(&opened, id, &records, out)?;
    if out.is_json() {
        return Ok(());
    }
    let (owner, epoch) = (&claimed.owner, claimed.epoch);
    let until = claimed.until.map(|until| format!(" until {}", show::format_local_time(until))).unwrap_or_default();
    out.print_line(out.paint(TextTone::Faint, format_args!("held by {owner}{until}; its holder says --epoch {epoch}")))
}

/// Returns the user's name, reduced to the characters of an owner name.
fn default_owner_name() -> OwnerName {
    let name: String =
        environment::user_name().chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
    let name = if name.is_empty() { "unknown".to_owned() } else { name.chars().take(64).collect() };
    name.parse().expect("only the characters of a name are left")
}
