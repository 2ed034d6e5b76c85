//! `windlass change list`: prints the changes, newest first.

use windlass_app::changes::{ChangeRecord, ChangeState, list_changes, mark_landed_changes, with_git};
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, environment, execution};
use windlass_engine::{Task, TaskState};
use windlass_text as text;
use windlass_vcs::forge;

use super::change_state_tone;
use crate::output::{CommandResult, MessageWriter, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change list
  windlass change list --all                   include merged changes
  windlass change list --refresh               ask the forge for their state")]
pub struct Args {
    /// Include merged changes and changes of deleted tasks
    #[arg(long, short)]
    all: bool,
    /// Ask the forge for the state of each change
    #[arg(long)]
    refresh: bool,
}

pub fn run_change_list(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let mut changes = list_changes(&opened)?;
    changes.retain(|change| args.all || change.change_state() == ChangeState::Open);
    if changes.iter().any(|change| change.change_state() == ChangeState::Open) {
        let (control, _received) = execution::listen_to_signals()?;
        // A change stays listed as open when git cannot tell its state.
        match with_git(&opened.project, &control, |git| mark_landed_changes(git, &mut changes)) {
            Ok(_) => {}
            Err(failure) => {
                MessageWriter::new().print_warning(&format!("cannot tell which of them are merged: {failure}"))
            }
        }
    }
    if args.refresh {
        refresh_forge_states(&mut opened, &mut changes)?;
    }
    if out.is_json() {
        return changes.iter().try_for_each(|change| out.print_json(&change.to_json()));
    }
    if changes.is_empty() {
        let none = if args.all { "no changes yet" } else { "no open changes; --all shows those that are merged" };
        return out.print_line(out.paint(TextTone::Faint, none));
    }
    let ids = changes.iter().map(|change| change.task.id.to_string().len()).max().unwrap_or(0);
    let states = changes.iter().map(|change| change.change_state().name().len()).max().unwrap_or(0);
    changes.iter().try_for_each(|change| show_change_entry(change, (ids, states), out))
}

fn show_change_entry(change: &ChangeRecord, (ids, states): (usize, usize), out: &mut Output) -> CommandResult {
    let id = text::pad_to_width(&change.task.id.to_string(), ids);
    let (tone, word) = (change_state_tone(change.change_state()), change.change_state().name());
    let below = change.describe_stack_base().map(|below| format!(" on top of {below}")).unwrap_or_default();
    let way = format!("{} → {}{below}", text::clean_line(change.branch_name()), text::clean_line(change.base_name()));
    let size = change.describe_size().map(|size| format!("  {size}")).unwrap_or_default();
    let age = show::format_time_between(change.opened_at, environment::current_timestamp());
    let (id, word) = (out.paint(TextTone::Strong, id), out.paint(tone, text::pad_to_width(word, states)));
    out.print_line(format_args!(
        "{id}  {word}  {way}{size}  {}",
        out.paint(TextTone::Faint, format_args!("({age} ago)"))
    ))?;
    let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2).max(20);
    out.print_line(format_args!("  {}", text::fit_to_width(&change.task.goal, room)))?;
    out.print_line(format_args!("  {}", out.paint(TextTone::Name, text::clean_line(&change.url_or_show_command()))))?;
    match (&change.forge_state, &change.change.merged) {
        (Some(Err(why)), _) => MessageWriter::new().print_warning(&format!("{}: {why}", change.task.id)),
        (_, None) if change.external_merge.is_some() => {
            let how = change
                .external_merge
                .as_ref()
                .map(|landed| text::clean_line(&landed.how).into_owned())
                .unwrap_or_default();
            let told = format!("{how}; {}", explain_merge_recording(&change.task));
            out.print_line(format_args!("  {}", out.paint(TextTone::Faint, told)))?;
        }
        (Some(Ok(ChangeState::Merged)), None) => {
            let told = format!("merged on the forge; `windlass change merge {}` records it", change.task.id);
            out.print_line(format_args!("  {}", out.paint(TextTone::Faint, told)))?;
        }
        _ => {}
    }
    Ok(())
}

/// Explains how a merge that the log does not know gets recorded.
fn explain_merge_recording(task: &Task) -> String {
    let id = task.id;
    match task.state {
        TaskState::Completed => format!("`windlass change merge {id}` or the next run records it"),
        TaskState::Blocked => format!("`windlass change merge {id}` records it, and completes the task"),
        TaskState::Failed => format!("{id} has failed: `windlass answer {id} approve` accepts it"),
        TaskState::Active | TaskState::Submitted => {
            format!("{id} is {}: the agent or person at work sees the merge", task.state)
        }
        state => format!(
            "{id} is {state}: the next run works on it; `windlass task complete {id}` accepts it, and \
             `windlass change merge {id}` records it then"
        ),
    }
}

/// Asks the forge for the state of each open change.
fn refresh_forge_states(opened: &mut OpenedProject, changes: &mut [ChangeRecord]) -> Result<(), Failure> {
    execution::run_git_work(opened, |dispatch| {
        for change in changes.iter_mut().filter(|change| change.change_state() == ChangeState::Open) {
            change.forge_state = dispatch.find_forge_change(&change.task).map(|answer| {
                answer.map_err(|said| said.to_string()).map(|found| match found.state {
                    forge::ForgeChangeState::Open => ChangeState::Open,
                    forge::ForgeChangeState::Merged { .. } => ChangeState::Merged,
                    forge::ForgeChangeState::Closed => ChangeState::Closed,
                })
            });
        }
        Ok(())
    })
}
