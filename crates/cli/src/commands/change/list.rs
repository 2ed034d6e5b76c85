//! `windlass change list`: prints the changes, newest first.

use windlass_app::changes::{ChangeRecord, ChangeState, list_changes, mark_landed_changes, with_git};
use windlass_app::context::{Context, Opened};
use windlass_app::{Failure, environment, execution};
use windlass_engine::{State, Task};
use windlass_text as text;
use windlass_vcs::forge;

use super::state_tone;
use crate::output::{Done, Messages, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change list
  windlass change list --all                   those that are merged, too
  windlass change list --refresh               ask the forge how they stand there")]
pub struct Args {
    /// Those that are merged, and those of deleted tasks, too
    #[arg(long, short)]
    all: bool,
    /// Ask the forge how they stand there
    #[arg(long)]
    refresh: bool,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let mut changes = list_changes(&opened)?;
    changes.retain(|change| args.all || change.state() == ChangeState::Open);
    if changes.iter().any(|change| change.state() == ChangeState::Open) {
        let (control, _received) = execution::listen()?;
        // A change stays listed as open when git cannot tell its state.
        match with_git(&opened.project, &control, |git| mark_landed_changes(git, &mut changes)) {
            Ok(_) => {}
            Err(failure) => Messages::new().warning(&format!("cannot tell which of them are merged: {failure}")),
        }
    }
    if args.refresh {
        refresh(&mut opened, &mut changes)?;
    }
    if out.is_json() {
        return changes.iter().try_for_each(|change| out.object(&change.to_json()));
    }
    if changes.is_empty() {
        let none = if args.all { "no changes yet" } else { "no open changes; --all shows those that are merged" };
        return out.line(out.paint(Tone::Faint, none));
    }
    let ids = changes.iter().map(|change| change.task.id.to_string().len()).max().unwrap_or(0);
    let states = changes.iter().map(|change| change.state().name().len()).max().unwrap_or(0);
    changes.iter().try_for_each(|change| show(change, (ids, states), out))
}

fn show(change: &ChangeRecord, (ids, states): (usize, usize), out: &mut Output) -> Done {
    let id = text::pad(&change.task.id.to_string(), ids);
    let (tone, word) = (state_tone(change.state()), change.state().name());
    let below = change.below().map(|below| format!(" on top of {below}")).unwrap_or_default();
    let way = format!("{} → {}{below}", text::line(change.branch()), text::line(change.base()));
    let size = change.size().map(|size| format!("  {size}")).unwrap_or_default();
    let age = show::span(change.opened_at, environment::now());
    let (id, word) = (out.paint(Tone::Strong, id), out.paint(tone, text::pad(word, states)));
    out.line(format_args!("{id}  {word}  {way}{size}  {}", out.paint(Tone::Faint, format_args!("({age} ago)"))))?;
    let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2).max(20);
    out.line(format_args!("  {}", text::fit(&change.task.goal, room)))?;
    out.line(format_args!("  {}", out.paint(Tone::Name, text::line(&change.place()))))?;
    match (&change.on_forge, &change.change.merged) {
        (Some(Err(why)), _) => Messages::new().warning(&format!("{}: {why}", change.task.id)),
        (_, None) if change.landed.is_some() => {
            let how = change.landed.as_ref().map(|landed| text::line(&landed.how).into_owned()).unwrap_or_default();
            let told = format!("{how}; {}", noted_by(&change.task));
            out.line(format_args!("  {}", out.paint(Tone::Faint, told)))?;
        }
        (Some(Ok(ChangeState::Merged)), None) => {
            let told = format!("merged on the forge; `windlass change merge {}` takes note of it", change.task.id);
            out.line(format_args!("  {}", out.paint(Tone::Faint, told)))?;
        }
        _ => {}
    }
    Ok(())
}

/// Explains how a merge that the log does not know gets recorded.
fn noted_by(task: &Task) -> String {
    let id = task.id;
    match task.state {
        State::Completed => format!("`windlass change merge {id}` or the next run takes note of it"),
        State::Blocked => format!("`windlass change merge {id}` takes note of it, and completes the task"),
        State::Failed => format!("{id} has failed: `windlass answer {id} approve` accepts it"),
        State::Active | State::Submitted => {
            format!("{id} is {}: the agent or person at work finds it there", task.state)
        }
        state => format!(
            "{id} is {state}: the next run works on it; `windlass task complete {id}` accepts it, and \
             `windlass change merge {id}` takes note of it then"
        ),
    }
}

/// Asks the forge for the state of each open change.
fn refresh(opened: &mut Opened, changes: &mut [ChangeRecord]) -> Result<(), Failure> {
    execution::run_git_work(opened, |dispatch| {
        for change in changes.iter_mut().filter(|change| change.state() == ChangeState::Open) {
            change.on_forge = dispatch.on_forge(&change.task).map(|answer| {
                answer.map_err(|said| said.to_string()).map(|found| match found.state {
                    forge::State::Open => ChangeState::Open,
                    forge::State::Merged { .. } => ChangeState::Merged,
                    forge::State::Closed => ChangeState::Closed,
                })
            });
        }
        Ok(())
    })
}
