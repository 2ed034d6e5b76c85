//! `windlass doctor`

mod agents;
mod git;
mod salvage;

use std::io::IsTerminal;
use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::{Context, Opened};
use windlass_app::project::Project;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{
    Code, Failure, changes, execution, hints, obstacles, recovery, runner_settings, store_records, trust, workflows,
};
use windlass_config::Config;
use windlass_config::workflow::WorkflowLibrary;
use windlass_engine::{EffectKind, Session, State, Task, TaskId};
use windlass_process::Control;
use windlass_runner::{GcResult, left_in};
use windlass_store::{Lifetime, Report};
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

/// One thing that was looked at.
struct Check {
    what: &'static str,
    /// What is wrong; nothing if all is well.
    problems: Vec<String>,
    /// What was found.
    note: String,
    hint: Option<String>,
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
    let mut checks = vec![check_config(&project), check_store(context, &project, args.rebuild)?];
    checks.extend(check_files(&project));
    checks.extend(check_workflows(&project));
    // Signals reach the programs that are started from here on.
    let (control, received) = execution::listen()?;
    checks.extend(agents::check(&project));
    checks.extend(check_callers(&project));
    let opened = context.open().ok();
    checks.extend(opened.as_ref().and_then(check_left));
    checks.extend(opened.as_ref().and_then(check_cancelled));
    checks.extend(opened.as_ref().and_then(check_interrupted));
    checks.extend(opened.as_ref().and_then(check_worktrees));
    checks.extend(check_tracked(&project, &control));
    checks.extend(opened.iter().flat_map(|opened| git::check(opened, &control)));
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

/// Which agents call us by their own hooks, where any does.
fn check_callers(project: &Project) -> Option<Check> {
    let callers = install::status::callers(project);
    let note = format!("installed for {}", callers.join(", "));
    (!callers.is_empty()).then(|| Check { what: "bridge", problems: vec![], note, hint: None })
}

/// Does what the dead have left undone.
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

fn show(check: &Check, out: &mut Output) -> Done {
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

fn check_config(project: &Project) -> Check {
    let what = "configuration";
    let looked = || -> Result<_, Failure> {
        let config = Config::load(&project.root)?;
        Ok((trust::state(project, &config)?, config))
    };
    match looked() {
        Ok((state, config)) => {
            let hooks = match config.effectful_hooks().len() {
                1 => "1 hook that runs something".to_owned(),
                hooks => format!("{hooks} hooks that run something"),
            };
            let note = format!("{hooks}; trust: {}", state.name());
            Check { what, problems: vec![], note, hint: None }
        }
        Err(failure) => Check {
            what,
            problems: vec![failure.message],
            note: String::new(),
            hint: Some("`windlass config check` shows the place".to_owned()),
        },
    }
}

/// What stands in the place of files, and what keeps protected files from being watched.
fn check_files(project: &Project) -> Option<Check> {
    let mut problems = obstacles::find(project);
    let protected = Config::load(&project.root)
        .ok()
        .map(|config| runner_settings::protected_files(&config).hiding(runner_settings::mask(&config)));
    problems.extend(protected.and_then(|protected| protected.look(&project.root).err()).map(|error| error.to_string()));
    let hint = Some("remove it, or put a file in its place".to_owned());
    (!problems.is_empty()).then(|| Check { what: "files", problems, note: String::new(), hint })
}

/// The project's workflows, where it has any, and those that its hooks name.
fn check_workflows(project: &Project) -> Option<Check> {
    let (what, hint) = ("workflows", Some("`windlass config check` shows the place".to_owned()));
    let library = match WorkflowLibrary::load(Some(&project.root)) {
        Ok(library) => library,
        Err(error) => return Some(Check { what, problems: vec![error.to_string()], note: String::new(), hint }),
    };
    let own = library.definitions.iter().filter(|definition| definition.file.is_some()).count();
    let mut problems: Vec<String> = library.unusable.iter().map(workflows::describe_reason).collect();
    let named = Config::load(&project.root).ok().and_then(|config| workflows::check_hooks(project, &config).err());
    problems.extend(named.map(|failure| failure.message).filter(|message| !problems.contains(message)));
    if own == 0 && problems.is_empty() {
        return None;
    }
    let hint = hint.filter(|_| !problems.is_empty());
    Some(Check { what, problems, note: format!("{own} of the project can be used"), hint })
}

fn check_store(context: &Context, project: &Project, rebuild: bool) -> Result<Check, Failure> {
    let what = "store";
    let opened = store_records::open_quietly(project, Lifetime::Command, context.trust);
    let looked = opened.and_then(|(mut store, foreign)| {
        if rebuild {
            store.rebuild().map_err(hints::store)?;
        }
        Ok((store.inspect().map_err(hints::store)?, foreign))
    });
    match looked {
        Ok((report, None)) => Ok(judge(&report, "windlass doctor --rebuild")),
        Ok((report, Some(refusal))) => {
            // Without --trust the store is only read.
            let check = judge(&report, "windlass doctor --rebuild --trust");
            let note = format!("{}; only read: hooks, sessions, worktrees and git are not checked", check.note);
            let hint = check.hint.or(refusal.shown_hint());
            let problems = [vec![refusal.message], refusal.causes, check.problems].concat();
            Ok(Check { what, problems, note, hint })
        }
        Err(failure) if failure.code == Code::Store => {
            let problems = [vec![failure.message], failure.causes].concat();
            let note = project.store_file().display().to_string();
            Ok(Check { what, problems, note, hint: failure.hint })
        }
        Err(failure) => Err(failure),
    }
}

/// A store that git tracks: every pull can replace it, and every push shows it.
fn check_tracked(project: &Project, control: &Control) -> Option<Check> {
    let tracked = changes::find_tracked_store(project, control);
    let problems: Vec<String> = tracked.iter().map(|file| format!("git tracks {file}")).collect();
    (!problems.is_empty()).then(|| Check {
        what: "store",
        problems,
        note: "it comes and goes with the repository".to_owned(),
        hint: Some("`git rm --cached '.windlass/windlass.db*'` leaves the files and has git forget them".to_owned()),
    })
}

/// Hooks that commands which died have left; nothing to say where there are none.
fn check_left(opened: &Opened) -> Option<Check> {
    let left = recovery::left_by_the_dead(opened).ok().filter(|left| !left.is_empty())?;
    let name = |effect: &windlass_engine::PendingEffect| match &effect.kind {
        EffectKind::Hook(hook) => format!("{} for event {}", hook.hook, effect.id.seq),
        EffectKind::Turn { .. } => String::new(),
    };
    Some(Check {
        what: "hooks",
        problems: left.iter().map(name).collect(),
        note: format!("{} owed by commands that died", left.len()),
        hint: Some("`windlass doctor --settle` runs them".to_owned()),
    })
}

/// Worktrees of tasks that are completed or deleted.
fn check_worktrees(opened: &Opened) -> Option<Check> {
    let worktrees = opened.project.worktrees();
    let left = left_in(&worktrees, &opened.store.snapshot().ok()?).ok().filter(|left| !left.is_empty())?;
    let name = |task: &Task| {
        let place = task.workspace.as_ref().map(|place| worktrees.join(&place.name).display().to_string());
        format!("{} ({}): {}", task.id, task.state, place.unwrap_or_default())
    };
    // Nothing has gone wrong where a task was deleted: its worktree goes with the next run.
    let (deleted, done): (Vec<_>, Vec<_>) = left.iter().partition(|task| task.state == State::Deleted);
    let deleted: Vec<String> = deleted.into_iter().map(name).collect();
    let note = match (deleted.is_empty(), done.len()) {
        (true, done) => format!("{done} of completed tasks"),
        (false, 0) => format!("to be put away: {}", deleted.join(", ")),
        (false, done) => format!("{done} of completed tasks; to be put away: {}", deleted.join(", ")),
    };
    Some(Check {
        what: "worktrees",
        problems: done.into_iter().map(name).collect(),
        note,
        hint: Some(
            "`windlass doctor --settle` puts away those without uncommitted work and unmerged commits, and names the others"
                .to_owned(),
        ),
    })
}

/// Sessions that somebody has cancelled while nobody ran them.
fn check_cancelled(opened: &Opened) -> Option<Check> {
    let left = recovery::orphaned_cancellations(opened).ok().filter(|left| !left.is_empty())?;
    Some(Check {
        what: "sessions",
        problems: left.iter().map(|session| format!("{} is cancelled and has yet to be ended", session.name)).collect(),
        note: String::new(),
        hint: Some("`windlass doctor --settle` does what is left".to_owned()),
    })
}

/// Sessions whose command has died: nothing is wrong with them, and somebody has to know.
fn check_interrupted(opened: &Opened) -> Option<Check> {
    let left = recovery::interrupted(opened).ok()?;
    let names: Vec<&str> = left.iter().map(|session| session.name.as_str()).collect();
    let hint = ResumeCommand::for_session(opened, left.first()?).in_sentence("goes on where it stopped");
    let note = format!("interrupted: {}", names.join(", "));
    Some(Check { what: "sessions", problems: vec![], note, hint: Some(hint) })
}

/// So many events, in words.
fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}

fn judge(report: &Report, rebuild_command: &str) -> Check {
    let pages = report.pages.iter().map(|problem| format!("pages: {problem}"));
    let log = report.log.iter().map(|found| format!("event {}: {}", found.seq, found.problem));
    let rows = report.rows.iter().map(|row| format!("{} {}", row.row, row.problem));
    let hint = match report {
        report if !report.pages.is_empty() || !report.log.is_empty() => {
            let export = "`windlass doctor --export sound.jsonl` saves every sound event";
            Some(format!("{export}, --restore puts them into a new store"))
        }
        report if !report.rows.is_empty() => Some(format!("the log is sound: `{rebuild_command}` folds the rows anew")),
        _ => None,
    };
    Check { what: "store", problems: pages.chain(log).chain(rows).collect(), note: events(report.events), hint }
}
