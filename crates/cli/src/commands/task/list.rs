//! `windlass task list`, `ready` and `next`: print tasks.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::builder::TypedValueParser;
use windlass_app::context::Context;
use windlass_app::{environment, execution, hints};
use windlass_engine::{Grounds, Refusal, Seq, State, TaskId};
use windlass_store::TaskFilter;

use crate::output::{Done, Output, Tone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task list
  windlass task list --state blocked --state failed
  windlass task list --all --label bug --json
  windlass task list --state active --idle 7d")]
pub struct List {
    /// Only tasks in this state; given several times, in any of them
    #[arg(long, value_name = "STATE", conflicts_with = "all", value_parser = state())]
    state: Vec<State>,
    /// Only tasks with this label; given several times, with all of them
    #[arg(long, short, value_name = "LABEL")]
    label: Vec<String>,
    /// Only tasks of this type
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// Completed and deleted ones too
    #[arg(long, short)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::count)]
    limit: Option<usize>,
    /// Only those after this one
    #[arg(long, value_name = "ID")]
    after: Option<TaskId>,
    /// Only those that nothing has happened to for so long: `7d`, `12h`
    #[arg(long, value_name = "TIME", value_parser = usage::span)]
    idle: Option<Duration>,
}

fn state() -> impl TypedValueParser<Value = State> {
    usage::one_of(State::ALL.map(State::name))
}

pub fn list(context: &Context, args: List, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let narrowed = args.all
        || args.after.is_some()
        || args.idle.is_some()
        || !(args.state.is_empty() && args.label.is_empty() && args.kind.is_none());
    let states = match (args.all, args.state.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => {
            State::ALL.into_iter().filter(|state| !matches!(state, State::Completed | State::Deleted)).collect()
        }
        (false, false) => args.state,
    };
    let filter = TaskFilter { states, labels: args.label, kind: args.kind, after: args.after };
    let idle_since = args
        .idle
        .map(|idle| environment::now().plus_millis(i64::try_from(idle.as_millis()).map_or(i64::MIN, |millis| -millis)));
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut tasks = Vec::new();
    let mut written = Ok(());
    opened
        .store
        .snapshot()
        .and_then(|snapshot| {
            snapshot.tasks(&filter, |task| {
                if idle_since.is_some_and(|since| task.updated_at > since) {
                    return true;
                }
                if left == 0 {
                    return false;
                }
                left -= 1;
                if out.is_json() {
                    written = out.object(&task);
                } else {
                    tasks.push(task);
                }
                left > 0 && written.is_ok()
            })
        })
        .map_err(hints::store)?;
    written?;
    if tasks.is_empty() && !out.is_json() {
        let nothing = match opened.store.head().map_err(hints::store)? {
            Seq::START => "no tasks; `windlass task add GOAL` makes one",
            _ if narrowed => "no such tasks",
            _ => "nothing is open; --all shows completed and deleted tasks too",
        };
        return out.line(out.paint(Tone::Faint, nothing));
    }
    show::table(&tasks, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task ready
  windlass task ready --limit 1 --json
  windlass task ready --agent reviewer         what this agent may work on")]
pub struct Ready {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true, value_parser = usage::count)]
    limit: usize,
    /// Only what this agent may work on, as its types say
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

pub fn ready(context: &Context, args: &Ready, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let closed = match &args.agent {
        Some(agent) => execution::types(&opened)?.0.closed_to(Some(agent)),
        None => BTreeSet::new(),
    };
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let mut tasks = snapshot.ready_except(&closed, args.limit.saturating_add(1)).map_err(hints::store)?;
    let more = tasks.len() > args.limit;
    tasks.truncate(args.limit);
    if out.is_json() {
        return tasks.iter().try_for_each(|task| out.object(task));
    }
    if tasks.is_empty() {
        return out.line(out.paint(Tone::Faint, "nothing is ready"));
    }
    show::table(&tasks, out)?;
    if more {
        out.line(out.paint(Tone::Faint, "there are more; --limit shows them"))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task next
  windlass task next --json | jq -r .id
  windlass task next --agent reviewer          what this agent would take")]
pub struct Next {
    /// The agent that would take it, as the configuration names it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

pub fn next(context: &Context, args: &Next, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let (types, own) = execution::types(&opened)?;
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let agent = own.as_deref().or(args.agent.as_deref());
    let next =
        types.next_for(&snapshot, agent, &[], Grounds::InPlace).and_then(|next| next.ok_or(Refusal::NothingReady));
    let task = opened.task(next.map_err(|refusal| hints::refusal(&refusal))?)?;
    match out.is_json() {
        true => out.object(&task),
        false => show::line(&task, out),
    }
}
