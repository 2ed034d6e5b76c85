//! `windlass change merge`: merges the work of a task into its base.

use serde_json::json;
use windlass_app::changes::{MergeReport, merge_change};
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_engine::TaskId;
use windlass_runner::MergeChecks;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change merge T3
  windlass change merge T3 --no-check          run no checks after a rebase

A change on a forge is merged there. Otherwise git merges it: into the branch of the remote if there is one, \
which is pushed, else into the local branch. A clean tree that has this branch checked out is updated too. If the base has \
moved, the work is rebased first, and the commands and `run_tests` of `stop` and the checks of `before_submit` \
run again. These checks need a trusted configuration (`windlass trust`, or --trust for this command only).")]
pub struct Args {
    /// The task of the change, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// Run no checks after a rebase onto a newer base
    #[arg(long)]
    no_check: bool,
}

pub fn run_change_merge(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let checks = if args.no_check { MergeChecks::Skip } else { MergeChecks::Run };
    let report = merge_change(&mut opened, args.id, checks)?;
    show_merge_report(&opened, &report, checks, out)
}

fn show_merge_report(
    opened: &OpenedProject,
    MergeReport { change: known, proof }: &MergeReport,
    checks: MergeChecks,
    out: &mut Output,
) -> CommandResult {
    let proof = proof.as_ref();
    let task = opened.require_task(known.task.id)?;
    let commit = task.change.as_ref().and_then(|change| change.merged.clone()).unwrap_or_default();
    if out.is_json() {
        return out.print_json(&json!({
            "id": task.id,
            "merged": commit,
            "base": known.base_name(),
            "already": proof.is_none_or(|proof| proof.was_merged),
            "rebased": proof.is_some_and(|proof| proof.rebased),
            "checks": proof.map(|proof| proof.checks.clone()).unwrap_or_default(),
            "unasked": proof.map(|proof| proof.unasked.clone()).unwrap_or_default(),
            "state": task.state,
        }));
    }
    let id = out.paint(TextTone::Strong, task.id).to_string();
    let Some(proof) = proof else {
        return out.print_line(format_args!("{id}  is merged already, as {}", shorten_commit_id(&commit)));
    };
    let (passed, unasked) = (proof.checks.join(", "), proof.unasked.join(", "));
    match (proof.rebased, passed.is_empty()) {
        (true, true) if checks == MergeChecks::Skip => {
            out.print_line("rebased onto the newest base; nothing was checked there")?
        }
        (true, true) if !unasked.is_empty() => {
            out.print_line("rebased onto the newest base; no check can run there")?
        }
        (true, true) => out.print_line("rebased onto the newest base; there are no checks")?,
        (true, false) => {
            out.print_line(format_args!("rebased onto the newest base, where {} passed", text::clean_line(&passed)))?
        }
        (false, false) => out.print_line(format_args!("{} passed", text::clean_line(&passed)))?,
        (false, true) => {}
    }
    if !unasked.is_empty() {
        out.print_line(format_args!("not run without an agent's turn: {} (stop)", text::clean_line(&unasked)))?;
    }
    if let Some(seen) = &proof.seen {
        let (base, seen) = (text::clean_line(&proof.base), text::clean_line(seen));
        return out.print_line(format_args!("{id}  {} {base}: {seen}", out.paint(TextTone::Good, "already in")));
    }
    let word = if proof.was_merged { "already in" } else { "merged into" };
    out.print_line(format_args!(
        "{id}  {} {} as {}",
        out.paint(TextTone::Good, word),
        text::clean_line(&proof.base),
        shorten_commit_id(&proof.commit)
    ))
}

fn shorten_commit_id(commit: &str) -> String {
    text::fit_to_width(commit.get(..10).unwrap_or(commit), 10)
}
