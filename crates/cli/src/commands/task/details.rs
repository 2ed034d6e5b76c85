//! `windlass task show`, and the output of every command that changes a task.

use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, environment, hints, next_step};
use windlass_engine::{EventRecord, Seq, Task, TaskId, TaskState};
use windlass_text as text;
use windlass_tools::TaskGetReport;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;
use windlass_app::why::drive_details;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task show T3
  windlass task show T3 --json | jq .state")]
pub struct Args {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
}

/// The columns of a task's line that the goal cannot use, about.
const NON_GOAL_COLUMNS: usize = 24;

pub fn run_task_show(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let task = opened.require_task(args.id)?;
    if out.is_json() {
        return out.print_json(&TaskGetReport::load_details(&opened.store, args.id).map_err(Failure::from)?);
    }
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let edges = snapshot.edges_of_task(args.id).map_err(hints::store_failure)?;
    show::print_task_line(&task, out)?;
    // The line may have had no room for the whole goal.
    let narrow = out
        .columns()
        .is_some_and(|columns| text::display_width(&text::clean_line(&task.goal)) + NON_GOAL_COLUMNS > columns);
    if narrow || task.goal.contains('\n') {
        out.print_line(format_args!("\n{}", text::clean_lines(&task.goal)))?;
    }
    if let Some(body) = &task.body {
        out.print_line(format_args!("\n{}\n", text::clean_lines(body)))?;
    }
    let driven = drive_details::collect_drive_details(&opened, &task, environment::current_timestamp())?;
    let next = next_step::find_change_step(&opened, &task)?;
    for (label, value) in list_task_details(&task, driven, next) {
        out.print_line(format_args!(
            "  {}  {}",
            out.paint(TextTone::Faint, text::pad_to_width(label, 12)),
            text::clean_line(&value)
        ))?;
    }
    for note in load_task_notes(&opened, &task)? {
        out.print_line(format_args!(
            "  {}  {}",
            out.paint(TextTone::Faint, text::pad_to_width("note", 12)),
            text::clean_line(&note)
        ))?;
    }
    for edge in &edges {
        let (from, kind, to) = (edge.from_id, edge.kind, edge.to_id);
        out.print_line(format_args!(
            "  {}  {from} {kind} {to}",
            out.paint(TextTone::Faint, text::pad_to_width("edge", 12))
        ))?;
    }
    if let Some(result) = task.result.as_ref().filter(|result| result.contains('\n')) {
        out.print_line(format_args!("  {}\n\n{}", out.paint(TextTone::Faint, "result"), text::clean_lines(result)))?;
    }
    Ok(())
}

/// Loads the notes of the task, oldest first.
fn load_task_notes(opened: &OpenedProject, task: &Task) -> Result<Vec<String>, Failure> {
    let note = |at: &Seq| {
        Ok(opened.store.read_event(*at).map_err(hints::store_failure)?.map(|record| show::summarize_event(&record)))
    };
    let notes: Vec<Option<String>> = task.memo.notes.iter().map(note).collect::<Result<_, Failure>>()?;
    Ok(notes.into_iter().flatten().collect())
}

fn list_task_details(
    task: &Task,
    driven: Vec<(&'static str, String)>,
    next: Option<String>,
) -> Vec<(&'static str, String)> {
    let now = environment::current_timestamp();
    let ago = |at| format!("{} ({} ago)", show::format_local_time(at), show::format_time_between(at, now));
    let mut details = Vec::new();
    details.extend(task.kind.as_ref().map(|kind| ("type", kind.to_string())));
    if let Some(report) = &task.report {
        let about = report.reviews.map(|id| format!(" about the change of {id}")).unwrap_or_default();
        details.push(("ends with", format!("a report{about}")));
    }
    details.extend(task.labels.iter().map(|label| ("label", label.clone())));
    details.extend(task.deliverables.iter().map(|text| ("deliverable", text.clone())));
    match show::count_open_dependencies(task) {
        0 => {}
        1 => details.push(("waits for", "1 that is not completed".to_owned())),
        open => details.push(("waits for", format!("{open} that are not completed"))),
    }
    if let Some(blocked) = &task.blocked {
        details.push(("blocked", blocked.reason.clone()));
        details.extend(blocked.required_knowledge.iter().map(|text| ("needs", text.clone())));
    }
    details.extend(task.reason.as_ref().map(|reason| ("reason", reason.clone())));
    if let Some(answer) = &task.answer {
        details.push(("answered", format!("by {}: {}", answer.by, answer.text.as_deref().unwrap_or("continue"))));
        details.extend(answer.ignores.iter().map(|hook| ("ignores", format!("{hook}, once"))));
    }
    if !task.undelivered_feedback.is_empty() && task.state != TaskState::Completed {
        let pieces = show::format_feedback_count(u32::try_from(task.undelivered_feedback.len()).unwrap_or(u32::MAX));
        details.push(("undelivered", format!("{pieces} for the next session")));
    }
    details.extend(driven);
    details.extend(show::pipeline::list_pipeline_details(task, next));
    if let Some(lease) = &task.lease {
        details.push(("held by", show::describe_lease_holder(lease, now)));
    }
    details.extend(task.claim.as_ref().map(|claim| ("claimed done", format!("in {}", claim.run))));
    details.extend((!task.used.is_nothing()).then(|| ("used", task.used.to_string())));
    let one_line = task.result.as_ref().filter(|result| !result.contains('\n'));
    details.extend(one_line.map(|result| ("result", result.clone())));
    details.extend(task.artifacts.iter().map(|text| ("artifact", text.clone())));
    details.push(("created", ago(task.created_at)));
    details.extend(task.started_at.map(|at| ("started", ago(at))));
    details.extend(task.completed_at.map(|at| ("completed", ago(at))));
    details
}

/// Shows the task of a command, and the consequences of the command.
pub fn show_command_result(opened: &OpenedProject, records: &[EventRecord], out: &mut Output) -> CommandResult {
    // A claim may end other leases first, so the task of the command comes last. Events of the command itself have the least
    // depth: 0, or more if a hook gave the command.
    let depth = |record: &&EventRecord| record.envelope.metadata.depth;
    let own = records.iter().map(|record| depth(&record)).min();
    let subject = records.iter().rev().find(|record| Some(depth(record)) == own);
    match subject.and_then(|record| record.envelope.node.task_id()) {
        Some(id) => show_task_result(opened, id, records, out),
        None => Ok(()),
    }
}

/// Shows a task and the other consequences of a command.
pub fn show_task_result(
    opened: &OpenedProject,
    id: TaskId,
    records: &[EventRecord],
    out: &mut Output,
) -> CommandResult {
    let task = opened.require_task(id)?;
    if out.is_json() {
        out.print_json(&task)?
    } else {
        show::print_task_line(&task, out)?
    }
    show::print_consequences(id, records, out)
}
