//! `windlass task list`, `ready` and `next`: print tasks.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::builder::TypedValueParser;
use windlass_app::context::CommandContext;
use windlass_app::{environment, execution, hints};
use windlass_engine::{Refusal, Seq, TaskId, TaskState, WorkspaceMode};
use windlass_store::TaskFilter;

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task list
  windlass task list --state blocked --state failed
  windlass task list --all --label bug --json
  windlass task list --state active --idle 7d")]
pub struct TaskListArgs {
    /// Show only tasks in this state; repeatable, any of them matches
    #[arg(long, value_name = "STATE", conflicts_with = "all", value_parser = state_parser())]
    state: Vec<TaskState>,
    /// Show only tasks with this label; repeatable, all of them must match
    #[arg(long, short, value_name = "LABEL")]
    label: Vec<String>,
    /// Show only tasks of this type
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// Include completed and deleted tasks
    #[arg(long, short)]
    all: bool,
    /// Show at most this many tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::parse_count)]
    limit: Option<usize>,
    /// Show only tasks after this one
    #[arg(long, value_name = "ID")]
    after: Option<TaskId>,
    /// Show only tasks without an event for this time: `7d`, `12h`
    #[arg(long, value_name = "TIME", value_parser = usage::parse_time_span)]
    idle: Option<Duration>,
}

fn state_parser() -> impl TypedValueParser<Value = TaskState> {
    usage::name_parser(TaskState::ALL.map(TaskState::name))
}

pub fn run_task_list(context: &CommandContext, args: TaskListArgs, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let narrowed = args.all
        || args.after.is_some()
        || args.idle.is_some()
        || !(args.state.is_empty() && args.label.is_empty() && args.kind.is_none());
    let states = match (args.all, args.state.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => TaskState::ALL
            .into_iter()
            .filter(|state| !matches!(state, TaskState::Completed | TaskState::Deleted))
            .collect(),
        (false, false) => args.state,
    };
    let filter = TaskFilter { states, labels: args.label, kind: args.kind, after: args.after };
    let idle_since = args.idle.map(|idle| {
        environment::current_timestamp().add_millis(i64::try_from(idle.as_millis()).map_or(i64::MIN, |millis| -millis))
    });
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut tasks = Vec::new();
    let mut written = Ok(());
    opened
        .store
        .begin_snapshot()
        .and_then(|snapshot| {
            snapshot.visit_tasks(&filter, |task| {
                if idle_since.is_some_and(|since| task.updated_at > since) {
                    return true;
                }
                if left == 0 {
                    return false;
                }
                left -= 1;
                if out.is_json() {
                    written = out.print_json(&task);
                } else {
                    tasks.push(task);
                }
                left > 0 && written.is_ok()
            })
        })
        .map_err(hints::store_failure)?;
    written?;
    if tasks.is_empty() && !out.is_json() {
        let nothing = match opened.store.head().map_err(hints::store_failure)? {
            Seq::START => "no tasks; `windlass task add GOAL` makes one",
            _ if narrowed => "no such tasks",
            _ => "nothing is open; --all shows completed and deleted tasks too",
        };
        return out.print_line(out.paint(TextTone::Faint, nothing));
    }
    show::print_task_table(&tasks, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task ready
  windlass task ready --limit 1 --json
  windlass task ready --agent reviewer         list tasks for this agent")]
pub struct TaskReadyArgs {
    /// Show at most this many tasks
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true, value_parser = usage::parse_count)]
    limit: usize,
    /// Show only tasks that this agent may work on
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

pub fn run_task_ready(context: &CommandContext, args: &TaskReadyArgs, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let closed = match &args.agent {
        Some(agent) => execution::load_task_types(&opened)?.0.types_closed_to(Some(agent)),
        None => BTreeSet::new(),
    };
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut tasks = snapshot.ready_tasks_except(&closed, args.limit.saturating_add(1)).map_err(hints::store_failure)?;
    let more = tasks.len() > args.limit;
    tasks.truncate(args.limit);
    if out.is_json() {
        return tasks.iter().try_for_each(|task| out.print_json(task));
    }
    if tasks.is_empty() {
        return out.print_line(out.paint(TextTone::Faint, "nothing is ready"));
    }
    show::print_task_table(&tasks, out)?;
    if more {
        out.print_line(out.paint(TextTone::Faint, "there are more; --limit shows them"))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task next
  windlass task next --json | jq -r .id
  windlass task next --agent reviewer          show the one for this agent")]
pub struct TaskNextArgs {
    /// The configured agent that would claim it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

pub fn run_task_next(context: &CommandContext, args: &TaskNextArgs, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let (types, own) = execution::load_task_types(&opened)?;
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let agent = own.as_deref().or(args.agent.as_deref());
    let next = types
        .next_task_for(&snapshot, agent, &[], WorkspaceMode::InPlace)
        .and_then(|next| next.ok_or(Refusal::NothingReady));
    let task = opened.require_task(next.map_err(|refusal| hints::refusal_failure(&refusal))?)?;
    match out.is_json() {
        true => out.print_json(&task),
        false => show::print_task_line(&task, out),
    }
}
