//! `windlass change merge`: a person puts work into its base.

use std::sync::Arc;

use serde_json::json;
use windlass_app::caller::Inside;
use windlass_app::changes::{ChangeRecord, is_stopped_by_git};
use windlass_app::context::{Context, Opened};
use windlass_app::execution::{self, HookExecution};
use windlass_app::next_step::{next_step, take_up_again};
use windlass_app::person::ConcernedSessions;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{Code, Failure, environment, hints, trust};
use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{
    Authority, Command, HookOutcome, HookReport, Origin, Refusal, Resolution, State, Task, TaskId, Trusted,
};
use windlass_runner::{EffectRunner, ManualMergeOutcome, MergeChecks, MergeSeal};
use windlass_text as text;

use crate::output::{Done, Messages, Output, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change merge T3
  windlass change merge T3 --no-check          nothing is run where it has to be rebased first

On a forge it is merged there. Else git merges it: with a remote into the remote's branch, otherwise into the local one, and \
a clean tree that has this checked out goes along. A base that has moved on is taken up first: the work is rebased, and \
the commands and `run_tests` of `stop` and the checks of `before_submit` run again on top of it. For these the \
configuration has to be trusted (`windlass trust`, or --trust for this command alone).")]
pub struct Args {
    /// The task whose change it is, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// Run no checks where the work has to be brought onto a newer base
    #[arg(long)]
    no_check: bool,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let inside = Inside::look_for_person(&opened, ConcernedSessions::Every(Some(args.id)))?;
    if inside.run.is_some() || inside.via.is_some() {
        return Err(hints::refusal(&Refusal::NoPerson { what: "merge" }).into());
    }
    let known = ChangeRecord::of(&opened, args.id)?;
    check(&opened, &known.task)?;
    let config = Config::parse(ConfigSource::load(&opened.project.root)?).map_err(Failure::from)?;
    let trusted = trust::counts(&opened.project, &config, opened.trust)?;
    if !trusted && !args.no_check && !plan::planned_hooks(&config).is_empty() {
        return Err(Failure::new(Code::Trust, "this project may not run what its configuration says")
            .caused_by("it is not trusted as it is now, and checks may have to run")
            .hint(format!("{}; --no-check merges without running anything", hints::HOW_TO_TRUST))
            .offer_trust()
            .into());
    }
    if !trusted && !plan::planned_hooks(&config).is_empty() {
        Messages::new().note("no hook runs: the configuration is not trusted");
    }
    // Where a change is merged, and who gets the token for that, is for a trusted configuration to say.
    let config = Arc::new(execution::trusted_part(&opened, config, trusted)?);
    let (control, received) = execution::listen()?;
    let trusted = if trusted { Trusted::Yes } else { Trusted::No };
    let checks = if args.no_check { MergeChecks::Skip } else { MergeChecks::Run };
    let submitted = known.work.as_ref().map(|work| work.head.clone());
    let merged = HookExecution::new(&mut opened, &config, &control).trusted(trusted).run(|dispatch| {
        let merged = match known.change.merged {
            Some(_) => ManualMergeOutcome::Already,
            None => dispatch.merge_by_hand(&known.task, checks, submitted.clone()).map_err(hints::run)?,
        };
        match &merged {
            ManualMergeOutcome::Merged(seal) => record(dispatch, &known.task, seal)?,
            ManualMergeOutcome::Already => conclude(dispatch, known.task.id, known.base())?,
            _ => {}
        }
        Ok(merged)
    });
    let by_signal = |failure: Failure| failure.by(received.first());
    let merged = match merged.map_err(by_signal)? {
        ManualMergeOutcome::Merged(seal) => Some(seal),
        ManualMergeOutcome::Already => None,
        other => return Err(by_signal(refusal(&opened, &known, other)?).into()),
    };
    show(&opened, &known, merged.as_ref(), args, out)
}

/// Whether this is the moment to merge it.
fn check(opened: &Opened, task: &Task) -> Result<(), Failure> {
    let id = task.id;
    let refused = |why: String, hint: String| {
        Err(Failure::new(Code::Refused, format!("cannot merge the change of {id}")).caused_by(why).hint(hint))
    };
    if let Some(lease) = task.lease.as_ref().filter(|_| matches!(task.state, State::Active | State::Submitted)) {
        let hint = match &lease.session {
            Some(session) if opened.session(session).is_ok_and(|session| opened.is_running(&session)) => {
                format!("wait for it, or end it with `windlass session cancel {session}`")
            }
            Some(session) => {
                let again = ResumeCommand::for_session(opened, &opened.session(session)?);
                format!("its process has died: {}", again.in_sentence("goes on with it"))
            }
            None => format!("wait for its holder; `windlass task release {id} --force` takes it away, and is recorded"),
        };
        return refused(format!("it is being worked on by {}", lease.holder()), hint);
    }
    match task.state {
        State::Completed | State::Blocked => Ok(()),
        State::Deleted => {
            refused("the task was deleted".to_owned(), format!("`windlass task reopen {id} --force` takes it up again"))
        }
        state => {
            let accepts = match state {
                State::Ready | State::NeedsContinuation => {
                    format!("; `windlass task complete {id}` accepts it as it is")
                }
                _ => String::new(),
            };
            let step = next_step(opened, id)?.map(|step| format!("`{}` leads on with it", step.command));
            let hint = step.unwrap_or_else(|| format!("`windlass why {id}` shows how it stands"));
            refused(format!("the task is {state}: its work has not been accepted"), format!("{hint}{accepts}"))
        }
    }
}

fn refusal(opened: &Opened, known: &ChangeRecord, by_hand: ManualMergeOutcome) -> Result<Failure, Failure> {
    let id = known.task.id;
    let failure = |base: &str| Failure::new(Code::Refused, format!("cannot merge the change of {id} into {base}"));
    Ok(match by_hand {
        ManualMergeOutcome::Refused { cause, hint } => failure(known.base()).caused_by(cause).hint(hint),
        ManualMergeOutcome::Conflicts { base, files, why } => {
            let place = known.task.workspace.as_ref().map(|workspace| workspace.name.clone()).unwrap_or_default();
            let files = files.lines().map(|file| file.trim_start_matches("- "));
            let failure = files.fold(failure(&base).caused_by(why), |failure, file| failure.caused_by(file));
            let is_refused = known.task.state == State::Blocked && !is_stopped_by_git(&known.task);
            let has_agent_resolve = match is_refused {
                true => format!("`windlass answer {id} continue` has the agent go on, and tells it of the conflict"),
                false => ResumeCommand::for_conflict(opened, id)?.in_sentence("has the agent resolve them"),
            };
            failure.hint(format!(
                "nothing has changed; {has_agent_resolve}, or do it yourself in .windlass/worktrees/{place}"
            ))
        }
        ManualMergeOutcome::Unfit { base, hook, report } => {
            let said = said(&report);
            let take_up = take_up_again(opened, &known.task, &format!("{hook} does not pass on top of {base}")).command;
            let again = ResumeCommand::for_task(opened, id)?.command;
            failure(&base)
                .caused_by(format!("`{hook}` does not pass on top of the newest {base}"))
                .caused_by(said)
                .hint(format!("`{take_up}` and `{again}` have an agent mend it; --no-check merges it as it is"))
        }
        ManualMergeOutcome::Unjudged { base, hook, report } => {
            let (cause, remedy) = match report.outcome {
                HookOutcome::TimedOut => (format!("`{hook}` ran out of time"), "give it more `timeout`, and ask again"),
                _ if report.unstarted => (format!("`{hook}` could not judge the work"), "mend the hook, and ask again"),
                _ => (format!("`{hook}` asks for a person"), "look at what it says"),
            };
            failure(&base)
                .caused_by(format!("{cause} on top of the newest {base}"))
                .caused_by(report.message.as_deref().unwrap_or("it says nothing"))
                .hint(format!("{remedy}; --no-check merges it as it is"))
        }
        ManualMergeOutcome::Cancelled => {
            Failure::new(Code::Interrupted(hints::SIGINT), "ended before anything was merged")
        }
        ManualMergeOutcome::Merged(_) | ManualMergeOutcome::Already => failure(known.base()),
    })
}

fn said(report: &HookReport) -> String {
    let said = report.feedback.as_deref().or(report.message.as_deref()).unwrap_or("it says nothing");
    said.trim().to_owned()
}

/// Takes note of a merge.
fn record(dispatch: &mut EffectRunner<'_>, task: &Task, seal: &MergeSeal) -> Result<(), Failure> {
    let merged = Command::RecordMerge { id: task.id, commit: seal.commit.clone(), seen: seal.seen.clone() };
    dispatch.commit_as(&origin(Authority::Person), &merged).map_err(hints::run)?;
    conclude(dispatch, task.id, &seal.base)
}

/// Does what follows a merge. A task that waited for a person has got its answer, whoever has merged it.
fn conclude(dispatch: &mut EffectRunner<'_>, id: TaskId, base: &str) -> Result<(), Failure> {
    let text = Some(format!("merged into {base}"));
    if dispatch.task(id).map_err(hints::run)?.is_some_and(|task| task.state == State::Blocked) {
        let approve = Command::AnswerTask { id, answer: Resolution::Approve, text, ignores: vec![], work: None };
        dispatch.commit_as(&origin(Authority::Forced), &approve).map_err(hints::run)?;
    }
    dispatch.end_turn();
    dispatch.run_pending().map_err(hints::run)?;
    put_away(dispatch, id)
}

fn origin(authority: Authority) -> Origin {
    Origin { by: environment::user(), at: environment::now(), authority, run: None, via: None }
}

/// Clears away what is not needed any more. What cannot be stays, and is told.
fn put_away(dispatch: &mut EffectRunner<'_>, id: TaskId) -> Result<(), Failure> {
    if let Err(why) = dispatch.clear_away_now(id).map_err(hints::run)? {
        Messages::new().note(&format!("the worktree of {id} stays: {why}"));
    }
    Ok(())
}

fn show(opened: &Opened, known: &ChangeRecord, seal: Option<&MergeSeal>, args: &Args, out: &mut Output) -> Done {
    let task = opened.task(known.task.id)?;
    let commit = task.change.as_ref().and_then(|change| change.merged.clone()).unwrap_or_default();
    if out.is_json() {
        return out.object(&json!({
            "id": task.id,
            "merged": commit,
            "base": known.base(),
            "already": seal.is_none_or(|seal| seal.already),
            "rebased": seal.is_some_and(|seal| seal.rebased),
            "checks": seal.map(|seal| seal.checks.clone()).unwrap_or_default(),
            "unasked": seal.map(|seal| seal.unasked.clone()).unwrap_or_default(),
            "state": task.state,
        }));
    }
    let id = out.paint(Tone::Strong, task.id).to_string();
    let Some(seal) = seal else { return out.line(format_args!("{id}  is merged already, as {}", short(&commit))) };
    let (passed, unasked) = (seal.checks.join(", "), seal.unasked.join(", "));
    match (seal.rebased, passed.is_empty()) {
        (true, true) if args.no_check => out.line("rebased onto the newest base; nothing was checked there")?,
        (true, true) if !unasked.is_empty() => out.line("rebased onto the newest base; no check can run there")?,
        (true, true) => out.line("rebased onto the newest base; there are no checks")?,
        (true, false) => {
            out.line(format_args!("rebased onto the newest base, where {} passed", text::line(&passed)))?
        }
        (false, false) => out.line(format_args!("{} passed", text::line(&passed)))?,
        (false, true) => {}
    }
    if !unasked.is_empty() {
        out.line(format_args!("not asked without an agent's turn: {} (stop)", text::line(&unasked)))?;
    }
    if let Some(seen) = &seal.seen {
        let (base, seen) = (text::line(&seal.base), text::line(seen));
        return out.line(format_args!("{id}  {} {base}: {seen}", out.paint(Tone::Good, "was in")));
    }
    let word = if seal.already { "was in" } else { "merged into" };
    out.line(format_args!(
        "{id}  {} {} as {}",
        out.paint(Tone::Good, word),
        text::line(&seal.base),
        short(&seal.commit)
    ))
}

fn short(commit: &str) -> String {
    text::fit(commit.get(..10).unwrap_or(commit), 10)
}
