//! `windlass doctor`: checks the project and repairs what can be repaired.

mod salvage;

use std::io::IsTerminal;
use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::Context;
use windlass_app::health::{HealthCheck, check_agents, check_project, check_work};
use windlass_app::project::Project;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{Code, Failure, execution, hints, recovery};
use windlass_engine::{Session, TaskId};
use windlass_runner::GcResult;
use windlass_text as text;

use crate::commands::install;
use crate::output::{Done, Messages, Output, Stop, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass doctor                              verify the configuration, the agents, git, every event and every row
  windlass doctor --rebuild                    fold the rows anew from the log
  windlass doctor --settle                     run hooks that dead commands have left, put away worktrees that were left
  windlass doctor --export sound.jsonl         save every sound event of a damaged store
  windlass doctor --restore sound.jsonl        put them into a new one

It exits with 1 if anything is wrong.")]
pub struct Args {
    /// Write every sound event to a file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Throw the rows away and fold them anew from the log
    #[arg(long, conflicts_with = "export")]
    rebuild: bool,
    /// Fill an empty store with the events of such a file; nothing is done unless all of them fit together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export", "rebuild"])]
    restore: Option<PathBuf>,
    /// Run the hooks that commands which died have left, and put away worktrees of tasks that are merged or deleted
    #[arg(long, conflicts_with_all = ["export", "rebuild", "restore"])]
    settle: bool,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    let project = context.project()?;
    if let Some(file) = args.export {
        return salvage::export(&project, &file, out).map(|()| 0);
    }
    if let Some(file) = args.restore {
        return salvage::restore((&project, context.trust), &file, out).map(|()| 0);
    }
    if args.settle {
        return settle(context, out);
    }
    if std::io::stderr().is_terminal() && !out.is_json() {
        Messages::new().note("looking over every event and every row");
    }
    let mut checks = check_project(context, &project, args.rebuild)?;
    // From here on signals reach the programs that the checks start.
    let (control, received) = execution::listen()?;
    checks.extend(check_agents(&project));
    checks.extend(check_callers(&project));
    checks.extend(check_work(context, &project, &control));
    if let Some(signal) = received.first() {
        let failure = Failure::new(Code::Interrupted(hints::SIGINT), "ended before everything was checked");
        return Err(failure.by(Some(signal)).into());
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
        out.object(&json!({"ok": sound, "checks": checks}))?;
    } else {
        checks.iter().try_for_each(|check| show(check, out))?;
    }
    Ok(u8::from(!sound))
}

/// Reports the agents whose own hooks call Windlass, if there are any.
fn check_callers(project: &Project) -> Option<HealthCheck> {
    let callers = install::status::callers(project);
    let note = format!("installed for {}", callers.join(", "));
    (!callers.is_empty()).then(|| HealthCheck { what: "bridge", problems: vec![], note, hint: None })
}

/// Settles the hooks, sessions and worktrees that dead processes have left.
fn settle(context: &Context, out: &mut Output) -> Result<u8, Stop> {
    let mut opened = context.open()?;
    let (control, received) = execution::listen()?;
    let done = recovery::settle_dead(&mut opened, &control, recovery::Reach::Everything);
    let recovery::Settled { hooks: settled, sessions, untrusted } =
        done.map_err(|failure| failure.by(received.first()))?;
    let in_use = execution::worktrees_in_use(&opened)?;
    let swept = execution::run_git_work(&mut opened, |dispatch| dispatch.sweep(&in_use).map_err(hints::run))?;
    tell_swept(&swept, out)?;
    if untrusted > 0 {
        let of_it = if untrusted == 1 { "1 hook or session" } else { &format!("{untrusted} hooks or sessions") };
        let failure = Failure::new(Code::Trust, format!("{of_it} may not go on"))
            .caused_by("it is owed under a configuration that is not the trusted one")
            .hint(
                "--trust runs it all the same; `windlass hooks history` and `windlass session list` show what is left",
            );
        return Err(failure.into());
    }
    if sessions > 0 && !out.is_json() {
        let were =
            if sessions == 1 { "1 cancelled session was" } else { &format!("{sessions} cancelled sessions were") };
        out.line(format_args!("{were} ended"))?;
    }
    let interrupted = recovery::interrupted(&opened)?;
    match (out.is_json(), settled) {
        (true, _) => {
            let gone: Vec<TaskId> = swept.iter().filter(|(_, swept)| swept.is_ok()).map(|(id, _)| *id).collect();
            let interrupted: Vec<_> = interrupted.iter().map(|session| &session.name).collect();
            let done = json!({"settled": settled, "sessions": sessions, "worktrees": gone, "interrupted": interrupted});
            out.object(&done)?;
        }
        (false, 0) if sessions > 0 || !swept.is_empty() || !interrupted.is_empty() => {}
        (false, 0) => out.line("nothing was left behind")?,
        (false, 1) => out.line("1 hook was settled")?,
        (false, _) => out.line(format_args!("{settled} hooks were settled"))?,
    }
    let told: &[Session] = if out.is_json() { &[] } else { &interrupted };
    for session in told {
        let again = ResumeCommand::for_session(&opened, session).in_sentence("goes on with it");
        out.line(format_args!("{} was interrupted: {}", session.name, text::line(&again)))?;
    }
    Ok(0)
}

fn tell_swept(swept: &[GcResult], out: &mut Output) -> Done {
    for (id, swept) in swept {
        match swept {
            Ok(()) if out.is_json() => {}
            Ok(()) => out.line(format_args!("the worktree of {id} was put away"))?,
            Err(why) => Messages::new().warning(&format!("the worktree of {id} stays: {why}")),
        }
    }
    Ok(())
}

fn show(check: &HealthCheck, out: &mut Output) -> Done {
    let mark = if check.problems.is_empty() { out.paint(Tone::Good, "ok   ") } else { out.paint(Tone::Bad, "wrong") };
    let line = format!("{mark}  {}  {}", text::pad(check.what, 13), text::line(&check.note));
    out.line(line.trim_end())?;
    for problem in &check.problems {
        out.line(format_args!("       {}", text::line(problem)))?;
    }
    if let Some(hint) = &check.hint {
        out.line(format_args!("       {}: {}", out.paint(Tone::Good, "hint"), text::line(hint)))?;
    }
    Ok(())
}
