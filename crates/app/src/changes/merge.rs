//! The merge of a change into its base, by a person.
//!
//! Invariants:
//! - The merged commit is the one that was judged, or one that passed the checks of the project after a rebase.
//! - Nothing of the project runs for the merge unless its configuration is trusted.

use std::sync::Arc;

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{
    Authority, Command, ConfigTrust, HookOutcome, HookReport, Refusal, Task, TaskId, TaskResolution, TaskState,
};
use windlass_runner::{EffectRunner, ManualMergeOutcome, MergeChecks, MergeProof};

use super::{ChangeRecord, is_blocked_by_git};
use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::execution::{self, HookExecution};
use crate::next_step::{find_next_step, reopen_task_step};
use crate::person::ConcernedSessions;
use crate::resume_command::ResumeCommand;
use crate::{Failure, FailureCode, FrontEnd, Notice, environment, hints, trust};

/// The report of a merge.
pub struct MergeReport {
    pub change: ChangeRecord,
    /// None if the change had been merged before.
    pub proof: Option<MergeProof>,
}

/// Merges the change of a task into its base, and runs the effects of the merge. If the base has moved on, rebases first and runs
/// the checks again, unless they are to be skipped.
pub fn merge_change(opened: &mut OpenedProject, id: TaskId, checks: MergeChecks) -> Result<MergeReport, Failure> {
    let inside = CallerContext::detect_for_person(opened, ConcernedSessions::Every(Some(id)))?;
    if inside.run.is_some() || inside.via.is_some() {
        return Err(hints::refusal_failure(&Refusal::NoPerson { what: "merge" }));
    }
    let change = ChangeRecord::load_change_record(opened, id)?;
    check_task_state(opened, &change.task)?;
    let config = Config::from_source(ConfigSource::load(&opened.project.root)?).map_err(Failure::from)?;
    let is_trusted = trust::is_config_effective(&opened.project, &config, opened.trust)?;
    if !is_trusted && !plan::plan_hooks(&config).is_empty() {
        if checks == MergeChecks::Run {
            return Err(Failure::new(FailureCode::Trust, "cannot use the configuration of this project")
                .with_cause("it is not trusted in its present form, and checks may have to run")
                .with_hint(format!("{}; --no-check merges without running anything", hints::HOW_TO_TRUST))
                .with_trust_option());
        }
        opened.front_end.show_notice(Notice::Note("no hook runs: the configuration is not trusted"));
    }
    // Only a trusted configuration decides where a change is merged, and which token the forge gets.
    let config = Arc::new(execution::restrict_to_trusted(opened, config, is_trusted)?);
    let (control, received) = execution::listen_to_signals()?;
    let trusted = if is_trusted { ConfigTrust::Yes } else { ConfigTrust::No };
    let submitted = change.work.as_ref().map(|work| work.head.clone());
    let front_end = opened.front_end.clone();
    let merged = HookExecution::new(opened, &config, &control).with_trust(trusted).run_with_effects(|dispatch| {
        let merged = match change.change.merged {
            Some(_) => ManualMergeOutcome::AlreadyMerged,
            None => dispatch.merge_manually(&change.task, checks, submitted.clone()).map_err(hints::run_failure)?,
        };
        match &merged {
            ManualMergeOutcome::Merged(proof) => record_merge(dispatch, &*front_end, &change.task, proof)?,
            ManualMergeOutcome::AlreadyMerged => {
                complete_merged_task(dispatch, &*front_end, change.task.id, change.base_name())?
            }
            _ => {}
        }
        Ok(merged)
    });
    let by_signal = |failure: Failure| failure.with_signal(received.first_signal());
    let proof = merged.and_then(|merged| take_proof(opened, &change, merged)).map_err(by_signal)?;
    Ok(MergeReport { change, proof })
}

/// Refuses the merge of a task that is worked on or not accepted.
fn check_task_state(opened: &OpenedProject, task: &Task) -> Result<(), Failure> {
    let id = task.id;
    let refused = |why: String, hint: String| {
        Err(Failure::new(FailureCode::Refused, format!("cannot merge the change of {id}"))
            .with_cause(why)
            .with_hint(hint))
    };
    if let Some(lease) = task.lease.as_ref().filter(|_| matches!(task.state, TaskState::Active | TaskState::Submitted))
    {
        let hint = match &lease.session {
            Some(session)
                if opened.require_session(session).is_ok_and(|session| opened.is_session_running(&session)) =>
            {
                format!("wait for it, or end it with `windlass session cancel {session}`")
            }
            Some(session) => {
                let again = ResumeCommand::for_session(opened, &opened.require_session(session)?);
                format!("its process has died: {}", again.describe_in_sentence("resumes it"))
            }
            None => {
                format!("wait for its holder; `windlass task release {id} --force` ends its lease, and is recorded")
            }
        };
        return refused(format!("it is being worked on by {}", lease.holder_name()), hint);
    }
    match task.state {
        TaskState::Completed | TaskState::Blocked => Ok(()),
        TaskState::Deleted => {
            refused("the task was deleted".to_owned(), format!("`windlass task reopen {id} --force` reopens it"))
        }
        state => {
            let accepts = match state {
                TaskState::Ready | TaskState::NeedsContinuation => {
                    format!("; `windlass task complete {id}` accepts it unchanged")
                }
                _ => String::new(),
            };
            let step = find_next_step(opened, id)?.map(|step| format!("next step: `{}`", step.command));
            let hint = step.unwrap_or_else(|| format!("`windlass why {id}` shows its state"));
            refused(format!("the task is {state}: its work has not been accepted"), format!("{hint}{accepts}"))
        }
    }
}

/// Returns the proof of a merge, or nothing if the change was merged before. Any other outcome is a failure.
fn take_proof(
    opened: &OpenedProject,
    known: &ChangeRecord,
    outcome: ManualMergeOutcome,
) -> Result<Option<MergeProof>, Failure> {
    let id = known.task.id;
    let failure =
        |base: &str| Failure::new(FailureCode::Refused, format!("cannot merge the change of {id} into {base}"));
    Err(match outcome {
        ManualMergeOutcome::Merged(proof) => return Ok(Some(proof)),
        ManualMergeOutcome::AlreadyMerged => return Ok(None),
        ManualMergeOutcome::Refused { cause, hint } => failure(known.base_name()).with_cause(cause).with_hint(hint),
        ManualMergeOutcome::Conflicts { base, files, why } => {
            let place = known.task.workspace.as_ref().map(|workspace| workspace.name.clone()).unwrap_or_default();
            let files = files.lines().map(|file| file.trim_start_matches("- "));
            let failure = files.fold(failure(&base).with_cause(why), |failure, file| failure.with_cause(file));
            let is_refused = known.task.state == TaskState::Blocked && !is_blocked_by_git(&known.task);
            let resolve_hint = match is_refused {
                true => format!("`windlass answer {id} continue` has the agent continue and resolve them"),
                false => ResumeCommand::for_conflict(opened, id)?.describe_in_sentence("has the agent resolve them"),
            };
            failure.with_hint(format!(
                "nothing has changed; {resolve_hint}, or do it yourself in .windlass/worktrees/{place}"
            ))
        }
        ManualMergeOutcome::CheckFailed { base, hook, report } => {
            let said = feedback_or_message(&report);
            let take_up =
                reopen_task_step(opened, &known.task, &format!("{hook} does not pass on top of {base}")).command;
            let again = ResumeCommand::for_task(opened, id)?.command;
            failure(&base)
                .with_cause(format!("`{hook}` does not pass on top of the newest {base}"))
                .with_cause(said)
                .with_hint(format!("`{take_up}` and `{again}` have an agent fix it; --no-check merges it unchecked"))
        }
        ManualMergeOutcome::CheckUndecided { base, hook, report } => {
            let (cause, remedy) = match report.outcome {
                HookOutcome::TimedOut => (format!("`{hook}` ran out of time"), "give it more `timeout`, and try again"),
                _ if report.unstarted => (format!("`{hook}` could not judge the work"), "fix the hook, and try again"),
                _ => (format!("`{hook}` asks for a person"), "look at what it says"),
            };
            failure(&base)
                .with_cause(format!("{cause} on top of the newest {base}"))
                .with_cause(report.message.as_deref().unwrap_or("it says nothing"))
                .with_hint(format!("{remedy}; --no-check merges it unchecked"))
        }
        ManualMergeOutcome::Cancelled => {
            Failure::new(FailureCode::Interrupted(hints::SIGINT_NUMBER), "ended before anything was merged")
        }
    })
}

/// Returns the message of a hook about the work.
fn feedback_or_message(report: &HookReport) -> String {
    let said = report.feedback.as_deref().or(report.message.as_deref()).unwrap_or("it says nothing");
    said.trim().to_owned()
}

/// Commits a merge and runs its effects.
fn record_merge(
    dispatch: &mut EffectRunner<'_>,
    front_end: &dyn FrontEnd,
    task: &Task,
    proof: &MergeProof,
) -> Result<(), Failure> {
    let merged = Command::RecordMerge { id: task.id, commit: proof.commit.clone(), seen: proof.seen.clone() };
    dispatch
        .commit_command_as(&execution::person_origin(Authority::Person, environment::current_timestamp()), &merged)
        .map_err(hints::run_failure)?;
    complete_merged_task(dispatch, front_end, task.id, &proof.base)
}

/// Runs the effects of a merge. If the task waited for a person, the merge is the answer.
fn complete_merged_task(
    dispatch: &mut EffectRunner<'_>,
    front_end: &dyn FrontEnd,
    id: TaskId,
    base: &str,
) -> Result<(), Failure> {
    let text = Some(format!("merged into {base}"));
    if dispatch.load_task(id).map_err(hints::run_failure)?.is_some_and(|task| task.state == TaskState::Blocked) {
        let approve = Command::AnswerTask { id, answer: TaskResolution::Approve, text, ignores: vec![], work: None };
        dispatch
            .commit_command_as(&execution::person_origin(Authority::Forced, environment::current_timestamp()), &approve)
            .map_err(hints::run_failure)?;
    }
    dispatch.release_merge_lock();
    dispatch.run_pending_effects().map_err(hints::run_failure)?;
    remove_worktree(dispatch, front_end, id)
}

/// Removes the worktree of a merged task, or shows why it stays.
fn remove_worktree(dispatch: &mut EffectRunner<'_>, front_end: &dyn FrontEnd, id: TaskId) -> Result<(), Failure> {
    if let Err(why) = dispatch.remove_worktree_by_id(id).map_err(hints::run_failure)? {
        front_end.show_notice(Notice::Note(&format!("the worktree of {id} stays: {why}")));
    }
    Ok(())
}
