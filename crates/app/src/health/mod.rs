//! The health of a project: its configuration, store, agents, git, and leftovers of dead commands.

mod agent_check;
mod git_check;

use windlass_config::Config;
use windlass_config::workflow::WorkflowLibrary;
use windlass_engine::{EffectKind, Task, TaskState};
use windlass_process::RunControl;
use windlass_runner::find_leftover_tasks;
use windlass_store::{Lifetime, StoreReport};

use crate::context::{CommandContext, OpenedProject};
use crate::project::Project;
use crate::resume_command::ResumeCommand;
use crate::{
    Failure, FailureCode, changes, hints, recovery, runner_settings, store_records, trust, unreadable_files, workflows,
};

pub use self::agent_check::check_agents;

/// One check, with its problems.
pub struct HealthCheck {
    pub what: &'static str,
    /// The problems; empty if all is well.
    pub problems: Vec<String>,
    /// A summary of the check.
    pub note: String,
    pub hint: Option<String>,
}

/// Checks the files of a project and its store. `rebuild` first rebuilds the rows of the store from its log.
pub fn check_project(context: &CommandContext, project: &Project, rebuild: bool) -> Result<Vec<HealthCheck>, Failure> {
    let mut checks = vec![check_config(project), check_store(context, project, rebuild)?];
    checks.extend(check_files(project));
    checks.extend(check_workflows(project));
    Ok(checks)
}

/// Checks for leftovers of commands, and whether git and the forge let tasks be worked on and merged.
pub fn check_work(context: &CommandContext, project: &Project, control: &RunControl) -> Vec<HealthCheck> {
    let opened = context.open_project().ok();
    let left = opened.iter().flat_map(|opened| {
        [
            check_orphaned_hooks(opened),
            check_cancelled_sessions(opened),
            check_interrupted_sessions(opened),
            check_worktrees(opened),
        ]
    });
    let mut checks: Vec<HealthCheck> = left.flatten().collect();
    checks.extend(check_tracked_store(project, control));
    checks.extend(opened.iter().flat_map(|opened| git_check::check_git(opened, control)));
    checks
}

fn check_config(project: &Project) -> HealthCheck {
    let what = "configuration";
    let looked = || -> Result<_, Failure> {
        let config = Config::load(&project.root)?;
        Ok((trust::find_trust_state(project, &config)?, config))
    };
    match looked() {
        Ok((state, config)) => {
            let hooks = match config.effectful_hooks().len() {
                1 => "1 hook that runs something".to_owned(),
                hooks => format!("{hooks} hooks that run something"),
            };
            let note = format!("{hooks}; trust: {}", state.state_name());
            HealthCheck { what, problems: vec![], note, hint: None }
        }
        Err(failure) => HealthCheck {
            what,
            problems: vec![failure.message],
            note: String::new(),
            hint: Some("`windlass config check` shows the place".to_owned()),
        },
    }
}

/// Checks for special files in place of ordinary ones, and for protected files that cannot be watched.
fn check_files(project: &Project) -> Option<HealthCheck> {
    let mut problems = unreadable_files::list_unreadable_files(project);
    let protected = Config::load(&project.root)
        .ok()
        .map(|config| runner_settings::protected_files(&config).with_mask(runner_settings::build_secret_mask(&config)));
    problems.extend(
        protected.and_then(|protected| protected.take_snapshot(&project.root).err()).map(|error| error.to_string()),
    );
    let hint = Some("remove it, or put a file in its place".to_owned());
    (!problems.is_empty()).then(|| HealthCheck { what: "files", problems, note: String::new(), hint })
}

/// Checks the project's workflows, if it has any, and those that its hooks name.
fn check_workflows(project: &Project) -> Option<HealthCheck> {
    let (what, hint) = ("workflows", Some("`windlass config check` shows the place".to_owned()));
    let library = match WorkflowLibrary::load(Some(&project.root)) {
        Ok(library) => library,
        Err(error) => return Some(HealthCheck { what, problems: vec![error.to_string()], note: String::new(), hint }),
    };
    let own = library.definitions.iter().filter(|definition| definition.file.is_some()).count();
    let mut problems: Vec<String> = library.unusable.iter().map(workflows::describe_reason).collect();
    let named =
        Config::load(&project.root).ok().and_then(|config| workflows::check_workflow_hooks(project, &config).err());
    problems.extend(named.map(|failure| failure.message).filter(|message| !problems.contains(message)));
    if own == 0 && problems.is_empty() {
        return None;
    }
    let hint = hint.filter(|_| !problems.is_empty());
    Some(HealthCheck { what, problems, note: format!("{own} of the project can be used"), hint })
}

fn check_store(context: &CommandContext, project: &Project, rebuild: bool) -> Result<HealthCheck, Failure> {
    let what = "store";
    let opened = store_records::open_store_to_read(project, Lifetime::Command, context.trust);
    let looked = opened.and_then(|(mut store, foreign)| {
        if rebuild {
            store.rebuild_rows().map_err(hints::store_failure)?;
        }
        Ok((store.inspect_store().map_err(hints::store_failure)?, foreign))
    });
    match looked {
        Ok((report, None)) => Ok(summarize_store_report(&report, "windlass doctor --rebuild")),
        Ok((report, Some(refusal))) => {
            // Without --trust the store is only read.
            let check = summarize_store_report(&report, "windlass doctor --rebuild --trust");
            let note = format!("{}; only read: hooks, sessions, worktrees and git are not checked", check.note);
            let hint = check.hint.or(refusal.hint_with_options());
            let problems = [vec![refusal.message], refusal.causes, check.problems].concat();
            Ok(HealthCheck { what, problems, note, hint })
        }
        Err(failure) if failure.code == FailureCode::Store => {
            let problems = [vec![failure.message], failure.causes].concat();
            let note = project.store_file().display().to_string();
            Ok(HealthCheck { what, problems, note, hint: failure.hint })
        }
        Err(failure) => Err(failure),
    }
}

/// Checks for a store that git tracks: every pull can replace it, and every push publishes it.
fn check_tracked_store(project: &Project, control: &RunControl) -> Option<HealthCheck> {
    let tracked = changes::list_tracked_store_files_cancellable(project, control);
    let problems: Vec<String> = tracked.iter().map(|file| format!("git tracks {file}")).collect();
    (!problems.is_empty()).then(|| HealthCheck {
        what: "store",
        problems,
        note: "it comes and goes with the repository".to_owned(),
        hint: Some("`git rm --cached '.windlass/windlass.db*'` leaves the files and has git forget them".to_owned()),
    })
}

/// Checks for hooks that dead commands have left.
fn check_orphaned_hooks(opened: &OpenedProject) -> Option<HealthCheck> {
    let left = recovery::list_orphaned_effects(opened, &[]).ok().filter(|left| !left.is_empty())?;
    let name = |effect: &windlass_engine::PendingEffect| match &effect.kind {
        EffectKind::Hook(hook) => format!("{} for event {}", hook.hook, effect.id.seq),
        EffectKind::Turn { .. } => String::new(),
    };
    Some(HealthCheck {
        what: "hooks",
        problems: left.iter().map(name).collect(),
        note: format!("{} pending from commands that died", left.len()),
        hint: Some("`windlass doctor --settle` runs them".to_owned()),
    })
}

/// Checks for worktrees of tasks that are completed or deleted.
fn check_worktrees(opened: &OpenedProject) -> Option<HealthCheck> {
    let worktrees = opened.project.worktree_directory();
    let left =
        find_leftover_tasks(&worktrees, &opened.store.begin_snapshot().ok()?).ok().filter(|left| !left.is_empty())?;
    let name = |task: &Task| {
        let place = task.workspace.as_ref().map(|place| worktrees.join(&place.name).display().to_string());
        format!("{} ({}): {}", task.id, task.state, place.unwrap_or_default())
    };
    // A deleted task is no problem: the next run removes its worktree.
    let (deleted, done): (Vec<_>, Vec<_>) = left.iter().partition(|task| task.state == TaskState::Deleted);
    let deleted: Vec<String> = deleted.into_iter().map(name).collect();
    let note = match (deleted.is_empty(), done.len()) {
        (true, done) => format!("{done} of completed tasks"),
        (false, 0) => format!("waiting for removal: {}", deleted.join(", ")),
        (false, done) => format!("{done} of completed tasks; waiting for removal: {}", deleted.join(", ")),
    };
    Some(HealthCheck {
        what: "worktrees",
        problems: done.into_iter().map(name).collect(),
        note,
        hint: Some(
            "`windlass doctor --settle` removes those without uncommitted work and unmerged commits, and names the others"
                .to_owned(),
        ),
    })
}

/// Checks for sessions that were cancelled while no process ran them.
fn check_cancelled_sessions(opened: &OpenedProject) -> Option<HealthCheck> {
    let left = recovery::list_orphaned_cancellations(opened, &[]).ok().filter(|left| !left.is_empty())?;
    Some(HealthCheck {
        what: "sessions",
        problems: left.iter().map(|session| format!("{} is cancelled, but not ended", session.name)).collect(),
        note: String::new(),
        hint: Some("`windlass doctor --settle` ends it".to_owned()),
    })
}

/// Notes the sessions whose command has died. This is no problem, but a person has to know.
fn check_interrupted_sessions(opened: &OpenedProject) -> Option<HealthCheck> {
    let left = recovery::list_interrupted_sessions(opened).ok()?;
    let names: Vec<&str> = left.iter().map(|session| session.name.as_str()).collect();
    let hint = ResumeCommand::for_session(opened, left.first()?).describe_in_sentence("resumes where it stopped");
    let note = format!("interrupted: {}", names.join(", "));
    Some(HealthCheck { what: "sessions", problems: vec![], note, hint: Some(hint) })
}

fn summarize_store_report(report: &StoreReport, rebuild_command: &str) -> HealthCheck {
    let pages = report.pages.iter().map(|problem| format!("pages: {problem}"));
    let log = report.log.iter().map(|found| format!("event {}: {}", found.seq, found.problem));
    let rows = report.rows.iter().map(|row| format!("{} {}", row.row, row.problem));
    let hint = match report {
        report if !report.pages.is_empty() || !report.log.is_empty() => {
            let export = "`windlass doctor --export sound.jsonl` saves every valid event";
            Some(format!("{export}, --restore puts them into a new store"))
        }
        report if !report.rows.is_empty() => Some(format!("the log is sound: `{rebuild_command}` rebuilds the rows")),
        _ => None,
    };
    HealthCheck {
        what: "store",
        problems: pages.chain(log).chain(rows).collect(),
        note: count_events(report.events),
        hint,
    }
}

/// Returns a number of events in words.
pub fn count_events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}
