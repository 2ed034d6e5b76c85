//! `windlass doctor`: checks the project and repairs what can be repaired.

mod salvage;

use std::io::IsTerminal;
use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::health::{HealthCheck, check_agents, check_project, check_work};
use windlass_app::project::Project;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{Failure, FailureCode, execution, hints, recovery};
use windlass_engine::{Session, TaskId};
use windlass_runner::WorktreeRemoval;
use windlass_text as text;

use crate::commands::install;
use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass doctor                              check everything
  windlass doctor --rebuild                    rebuild the rows from the log
  windlass doctor --settle                     run hooks that dead commands left
  windlass doctor --export sound.jsonl         save the valid events of a store
  windlass doctor --restore sound.jsonl        put them into a new store

Without an option, it checks the configuration, the agents, git, every event and every row. It exits with 1 if \
anything is wrong.")]
pub struct Args {
    /// Write every valid event to a file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Rebuild the rows from the log
    #[arg(long, conflicts_with = "export")]
    rebuild: bool,
    /// Fill an empty store with exported events: all of them or none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export", "rebuild"])]
    restore: Option<PathBuf>,
    /// Run hooks of dead commands; remove worktrees of finished tasks
    #[arg(long, conflicts_with_all = ["export", "rebuild", "restore"])]
    settle: bool,
}

pub fn run_doctor(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    let project = context.find_project()?;
    if let Some(file) = args.export {
        return salvage::export_sound_events(&project, &file, out).map(|()| 0);
    }
    if let Some(file) = args.restore {
        return salvage::restore_saved_events((&project, context.trust), &file, out).map(|()| 0);
    }
    if args.settle {
        return settle_unfinished_work(context, out);
    }
    if std::io::stderr().is_terminal() && !out.is_json() {
        MessageWriter::new().print_note("checking every event and every row");
    }
    let mut checks = check_project(context, &project, args.rebuild)?;
    // From here on signals reach the programs that the checks start.
    let (control, received) = execution::listen_to_signals()?;
    checks.extend(check_agents(&project));
    checks.extend(check_installed_agents(&project));
    checks.extend(check_work(context, &project, &control));
    if let Some(signal) = received.first_signal() {
        let failure =
            Failure::new(FailureCode::Interrupted(hints::SIGINT_NUMBER), "ended before everything was checked");
        return Err(failure.with_signal(Some(signal)).into());
    }
    drop(received);
    let sound = checks.iter().all(|check| check.problems.is_empty());
    if out.is_json() {
        let checks: Vec<_> = checks
            .iter()
            .map(|check| {
                let ok = check.problems.is_empty();
                json!({"check": check.what, "ok": ok, "note": check.note, "problems": check.problems, "hint": check.hint})
            })
            .collect();
        out.print_json(&json!({"ok": sound, "checks": checks}))?;
    } else {
        checks.iter().try_for_each(|check| print_health_check(check, out))?;
    }
    Ok(u8::from(!sound))
}

/// Reports the agents whose own hooks call Windlass, if there are any.
fn check_installed_agents(project: &Project) -> Option<HealthCheck> {
    let callers = install::installations::list_installed_agents(project);
    let note = format!("installed for {}", callers.join(", "));
    (!callers.is_empty()).then(|| HealthCheck { what: "bridge", problems: vec![], note, hint: None })
}

/// Settles the hooks, sessions and worktrees that dead processes have left.
fn settle_unfinished_work(context: &CommandContext, out: &mut Output) -> Result<u8, EarlyExit> {
    let mut opened = context.open_project()?;
    let (control, received) = execution::listen_to_signals()?;
    let done = recovery::recover_orphans(&mut opened, &control, recovery::RecoveryScope::Everything);
    let recovery::RecoveryReport { hooks: settled, sessions, untrusted } =
        done.map_err(|failure| failure.with_signal(received.first_signal()))?;
    let in_use = execution::worktrees_in_use(&opened)?;
    let swept =
        execution::run_git_work(&mut opened, |dispatch| dispatch.sweep_worktrees(&in_use).map_err(hints::run_failure))?;
    print_removed_worktrees(&swept, out)?;
    if untrusted > 0 {
        let of_it = if untrusted == 1 { "1 hook or session" } else { &format!("{untrusted} hooks or sessions") };
        let failure = Failure::new(FailureCode::Trust, format!("{of_it} cannot resume"))
            .with_cause("it is pending under a configuration that is not the trusted one")
            .with_hint("--trust runs it anyway; `windlass hooks history` and `windlass session list` show it");
        return Err(failure.into());
    }
    if sessions > 0 && !out.is_json() {
        let were =
            if sessions == 1 { "1 cancelled session was" } else { &format!("{sessions} cancelled sessions were") };
        out.print_line(format_args!("{were} ended"))?;
    }
    let interrupted = recovery::list_interrupted_sessions(&opened)?;
    match (out.is_json(), settled) {
        (true, _) => {
            let gone: Vec<TaskId> = swept.iter().filter(|(_, swept)| swept.is_ok()).map(|(id, _)| *id).collect();
            let interrupted: Vec<_> = interrupted.iter().map(|session| &session.name).collect();
            let done = json!({"settled": settled, "sessions": sessions, "worktrees": gone, "interrupted": interrupted});
            out.print_json(&done)?;
        }
        (false, 0) if sessions > 0 || !swept.is_empty() || !interrupted.is_empty() => {}
        (false, 0) => out.print_line("nothing was left behind")?,
        (false, 1) => out.print_line("1 hook was settled")?,
        (false, _) => out.print_line(format_args!("{settled} hooks were settled"))?,
    }
    let told: &[Session] = if out.is_json() { &[] } else { &interrupted };
    for session in told {
        let again = ResumeCommand::for_session(&opened, session).describe_in_sentence("resumes it");
        out.print_line(format_args!("{} was interrupted: {}", session.name, text::clean_line(&again)))?;
    }
    Ok(0)
}

fn print_removed_worktrees(swept: &[WorktreeRemoval], out: &mut Output) -> CommandResult {
    for (id, swept) in swept {
        match swept {
            Ok(()) if out.is_json() => {}
            Ok(()) => out.print_line(format_args!("the worktree of {id} was removed"))?,
            Err(why) => MessageWriter::new().print_warning(&format!("the worktree of {id} was not removed: {why}")),
        }
    }
    Ok(())
}

fn print_health_check(check: &HealthCheck, out: &mut Output) -> CommandResult {
    let mark =
        if check.problems.is_empty() { out.paint(TextTone::Good, "ok   ") } else { out.paint(TextTone::Bad, "wrong") };
    let line = format!("{mark}  {}  {}", text::pad_to_width(check.what, 13), text::clean_line(&check.note));
    out.print_line(line.trim_end())?;
    for problem in &check.problems {
        out.print_line(format_args!("       {}", text::clean_line(problem)))?;
    }
    if let Some(hint) = &check.hint {
        out.print_line(format_args!("       {}: {}", out.paint(TextTone::Good, "hint"), text::clean_line(hint)))?;
    }
    Ok(())
}
