//! The pipeline from finished to accepted work: `tests` and `pr` run before the submission, `review` and `merge` before the
//! acceptance, `told` after the submission, and `after` after the merge.

use super::script::{SESSION_CONFIG, ScriptProject, check_with, default_rules};
use crate::decide::{EngineRules, HookPlan, HookScope};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;
use crate::log::id::Digest;
use crate::session::NextAction;
use crate::task::TaskState;

pub(super) fn pipeline_rules(hooks: &[&str]) -> EngineRules {
    let owed = |hook: &str| {
        let (event, point, class, on_failure) = match hook {
            "stop" => (EventType::TurnFinished, "stop", HookClass::Gate, HookFailurePolicy::Block),
            "tests" => (EventType::SubmissionStarted, "before_submit", HookClass::Gate, HookFailurePolicy::Block),
            "mild" => (EventType::SubmissionStarted, "before_submit", HookClass::Gate, HookFailurePolicy::Ignore),
            "pr" => (EventType::SubmissionStarted, "before_submit", HookClass::Vcs, HookFailurePolicy::Block),
            "told" => (EventType::TaskSubmitted, "after_submit", HookClass::Other, HookFailurePolicy::Ignore),
            "review" => (EventType::MergeStarted, "before_merge", HookClass::Gate, HookFailurePolicy::Block),
            "merge" => (EventType::MergeStarted, "before_merge", HookClass::Vcs, HookFailurePolicy::Block),
            "last" => (EventType::MergeStarted, "before_merge", HookClass::Gate, HookFailurePolicy::Block),
            "after" => (EventType::ChangeMerged, "after_merge", HookClass::Other, HookFailurePolicy::Escalate),
            hook => panic!("no hook is called `{hook}`"),
        };
        (
            event,
            HookEffect {
                hook: hook.to_owned(),
                point: point.parse().expect("a hook point"),
                class,
                on_failure,
                send_backs: None,
            },
        )
    };
    let mut effects = HookPlan::for_all_tasks(SESSION_CONFIG, "w1".parse().unwrap(), []);
    for (event, hook) in hooks.iter().map(|hook| owed(hook)) {
        effects.hooks.entry(event).or_default().push(hook.into());
    }
    EngineRules { effects: Some(effects), ..default_rules() }
}

pub(super) const SESSION_IN_WORKTREE: &str = "add one\nsession a task=T1 grounds=worktrees\nworkspace a";

#[test]
fn work_in_a_worktree_goes_from_done_to_accepted() {
    check_with(
        pipeline_rules(&["tests", "pr", "told", "review", "merge", "after"]),
        "add one
         session a task=T1 grounds=worktrees
         --
         workspace a
         turn-done a.1 says=complete
         work a commits=2
         hook tests
         hook pr opens=http://x/1
         hook told
         hook review
         hook merge merges=def
         hook after",
        "T1 workspace_opened
         T1 iteration_started a.1
         T1 turn_started a.1 to work
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 submission_started
         T1 hook_started tests 1 by w1
         T1 hook_finished tests Success
         T1 hook_started pr 1 by w1
         T1 hook_finished pr Success
         T1 change_opened http://x/1
         T1 task_submitted
         T1 hook_started told 1 by w1
         T1 hook_finished told Success
         T1 merge_started
         T1 hook_started review 1 by w1
         T1 hook_finished review Success
         T1 hook_started merge 1 by w1
         T1 hook_finished merge Success
         T1 change_merged def
         T1 hook_started after 1 by w1
         T1 hook_finished after Success
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn submission_without_hooks_completes_task_immediately() {
    check_with(
        pipeline_rules(&[]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\n--\nwork a"),
        "T1 submission_started
         T1 task_submitted
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn conflict_with_the_base_is_told_when_the_worktree_is_opened() {
    check_with(
        pipeline_rules(&[]),
        "add one\nsession a task=T1 grounds=worktrees\n--\nworkspace a conflicts=both",
        "T1 workspace_opened
         T1 feedback_queued both from rebase_on_main
         T1 iteration_started a.1
         T1 turn_started a.1 to work both",
    );
}

#[test]
fn session_stopped_before_submission_ends_according_to_task_state() {
    check_with(
        pipeline_rules(&["tests"]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\n--\nstop a error"),
        "T1 session_stopping Error
         T1 task_released
         T1 task_ready
         T1 session_ended Error",
    );
    // A person's change of the task meanwhile counts.
    let meanwhile =
        |what: &str| format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nforced {what}\n--\nstop a error");
    check_with(
        pipeline_rules(&["tests"]),
        &meanwhile("complete T1"),
        "T1 session_stopping Error\nT1 session_ended Completed",
    );
    check_with(
        pipeline_rules(&["tests"]),
        &meanwhile("delete T1"),
        "T1 session_stopping Error
         T1 session_ended Cancelled, T1 is deleted now, changed outside this session",
    );
}

#[test]
fn work_without_commit_is_not_submitted_and_needs_continuation() {
    check_with(
        pipeline_rules(&["tests"]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\n--\nwork a commits=0\nsession b task=T1"),
        "T1 pipeline_failed no_changes Failed: GiveUp 1/3
         T1 task_needs_continuation
         T1 session_ended Limit, no changes: nothing was committed beyond the base
         T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued the last attempt ended as done, without commits and without uncommitted changes from no_changes
         T1 iteration_started b.1
         T1 turn_started b.1 to work the last attempt ended as done, without commits and without uncommitted changes",
    );
}

#[test]
fn first_blocking_hook_skips_rest_of_gate_and_starts_remediation() {
    check_with(
        pipeline_rules(&["tests", "pr"]),
        &format!(
            "{SESSION_IN_WORKTREE}
             turn-done a.1 says=complete
             work a
             --
             hook tests out=block tells=red
             turn-done a.2 says=complete
             work a
             hook tests
             hook pr"
        ),
        "T1 hook_started tests 1 by w1
         T1 hook_finished tests Block
         T1 hook_finished pr Skip
         T1 pipeline_failed tests Blocked: Remediate 1/3
         T1 feedback_queued red from tests
         T1 iteration_started a.2
         T1 turn_started a.2 to work red
         T1 feedback_delivered red
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 submission_started
         T1 hook_started tests 1 by w1
         T1 hook_finished tests Success
         T1 hook_started pr 1 by w1
         T1 hook_finished pr Success
         T1 task_submitted
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn mending_is_bounded_and_the_next_attempt_hears_why() {
    check_with(
        pipeline_rules(&["tests"]),
        "add one
         session a task=T1 grounds=worktrees remediations=1
         workspace a
         turn-done a.1 says=complete
         work a
         hook tests out=block tells=red
         turn-done a.2 says=complete
         work a
         --
         hook tests out=block tells=still-red
         session b work=graph",
        "T1 hook_started tests 1 by w1
         T1 hook_finished tests Block
         T1 pipeline_failed tests Blocked: GiveUp 2/1
         T1 task_needs_continuation
         T1 session_ended Limit, before_submit: `tests`: still-red
         system session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued still-red from tests
         T1 iteration_started b.1
         T1 turn_started b.1 to work still-red",
    );
}

/// No agent can repair an unreachable forge.
#[test]
fn failed_pr_hook_ends_session_without_remediation() {
    check_with(
        pipeline_rules(&["pr"]),
        &format!(
            "{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\n--\nhook pr out=failure message=unreachable"
        ),
        "T1 hook_started pr 1 by w1
         T1 hook_finished pr Failure
         T1 pipeline_failed pr Failed: GiveUp 1/3
         T1 task_needs_continuation
         T1 session_ended Limit, before_submit: `pr`: unreachable",
    );
}

#[test]
fn failure_with_ignore_policy_passes_gate() {
    let rules = pipeline_rules(&["mild"]);
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nhook mild out=failure");
    assert_eq!(ScriptProject::after(rules, &script).find_task("T1").state, TaskState::Completed);
}

#[test]
fn rejected_task_is_retried_with_findings_until_limit_then_escalated() {
    check_with(
        pipeline_rules(&["review", "merge"]),
        "add one
         session a task=T1 grounds=worktrees rejections=1
         workspace a
         turn-done a.1 says=complete
         work a
         --
         hook review out=block tells=too-long
         workspace a
         turn-done a.2 says=complete
         work a
         hook review out=block tells=still-too-long
         answer T1 continue shorter
         session b task=T1",
        "T1 hook_started review 1 by w1
         T1 hook_finished review Block
         T1 hook_finished merge Skip
         T1 pipeline_failed review Blocked: Reject 1/1
         T1 task_rejected by review
         T1 task_ready
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued too-long from review
         T1 workspace_opened
         T1 iteration_started a.2
         T1 turn_started a.2 to work too-long
         T1 feedback_delivered too-long
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 submission_started
         T1 task_submitted
         T1 merge_started
         T1 hook_started review 1 by w1
         T1 hook_finished review Block
         T1 hook_finished merge Skip
         T1 pipeline_failed review Blocked: Escalate 2/1
         T1 task_blocked before_merge: `review`: still-too-long
         T1 session_ended Escalated, before_merge: `review`: still-too-long
         T1 task_answered continue shorter
         T1 task_unblocked
         T1 task_ready
         T1 session_started
         T1 task_claimed w1 epoch 3
         T1 task_started
         T1 feedback_queued shorter from ada
         T1 feedback_queued still-too-long from review
         T1 iteration_started b.1
         T1 turn_started b.1 to work shorter still-too-long",
    );
}

#[test]
fn merged_task_completes_even_when_later_hooks_block_or_fail() {
    check_with(
        pipeline_rules(&["pr", "merge", "last", "after"]),
        &format!(
            "{SESSION_IN_WORKTREE}
             turn-done a.1 says=complete
             work a
             hook pr opens=http://x/1
             --
             hook merge merges=def
             hook last out=block tells=no
             hook after out=failure"
        ),
        "T1 hook_started merge 1 by w1
         T1 hook_finished merge Success
         T1 change_merged def
         T1 hook_started last 1 by w1
         T1 hook_finished last Block
         T1 hook_started after 1 by w1
         T1 hook_finished after Failure
         T1 session_stopping Escalated, `after` asks for a person
         T1 task_completed
         T1 session_ended Escalated, `after` asks for a person",
    );
}

#[test]
fn moved_base_at_merge_reruns_submission_hooks() {
    check_with(
        pipeline_rules(&["tests", "merge"]),
        &format!(
            "{SESSION_IN_WORKTREE}
             turn-done a.1 says=complete
             work a
             hook tests
             --
             hook merge out=continue message=moved
             work a
             hook tests out=block tells=red
             turn-done a.2 says=complete"
        ),
        "T1 hook_started merge 1 by w1
         T1 hook_finished merge Continue
         T1 pipeline_failed merge Moved: Again 1/10
         T1 submission_started
         T1 hook_started tests 1 by w1
         T1 hook_finished tests Block
         T1 pipeline_failed tests Blocked: Remediate 1/3
         T1 feedback_queued red from tests
         T1 iteration_started a.2
         T1 turn_started a.2 to work red
         T1 feedback_delivered red
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed",
    );
}

#[test]
fn merge_conflict_starts_remediation_turn_in_same_attempt() {
    check_with(
        pipeline_rules(&["merge"]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\n--\nhook merge out=block tells=conflict"),
        "T1 hook_started merge 1 by w1
         T1 hook_finished merge Block
         T1 pipeline_failed merge Conflicts: Remediate 1/3
         T1 feedback_queued conflict from merge
         T1 iteration_started a.2
         T1 turn_started a.2 to work conflict",
    );
}

#[test]
fn uncommittable_work_starts_remediation_turn_with_reason() {
    check_with(
        pipeline_rules(&[]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\n--\nunfit a markers are left"),
        "T1 pipeline_failed commit Conflicts: Remediate 1/3
         T1 feedback_queued markers are left, in all of two files from commit
         T1 iteration_started a.2
         T1 turn_started a.2 to work markers are left, in all of two files",
    );
}

/// A session of the graph continues with other tasks, and does not take up at once the one that it has just left.
#[test]
fn graph_session_leaves_task_without_commits_and_claims_next() {
    check_with(
        pipeline_rules(&[]),
        "add one
         add two
         session a work=graph grounds=worktrees
         workspace a
         turn-done a.1 says=complete
         --
         work a commits=0
         person a its dependencies do not go together
         session b work=graph",
        "T1 pipeline_failed no_changes Failed: GiveUp 1/3
         T1 task_needs_continuation
         T2 task_claimed w1 epoch 1
         T2 task_started
         T2 task_blocked its dependencies do not go together
         T2 session_ended Escalated, T2 needs a person
         system session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued the last attempt ended as done, without commits and without uncommitted changes from no_changes
         T1 iteration_started b.1
         T1 turn_started b.1 to work the last attempt ended as done, without commits and without uncommitted changes",
    );
}

/// A session that has lost the lease submits nothing.
#[test]
fn session_with_expired_lease_does_not_submit_work() {
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nexpire T1 epoch=1");
    let mut project = ScriptProject::after(pipeline_rules(&["tests"]), &script);
    assert_eq!(project.run_script("work a"), ["! session `a` has no task"]);
    assert_eq!(project.run_script("expire T1 epoch=1"), ["! epoch 1 of T1 is over; it has no holder"]);
    // At a gate, hooks that have not begun do not begin any more.
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nbegin tests\nexpire T1 epoch=1");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr"]), &script);
    assert_eq!(
        project.run_script("finish tests"),
        [
            "T1 hook_finished tests Success",
            "T1 hook_finished pr Skip",
            "T1 session_ended Cancelled, T1 is ready now, changed outside this session; the work of this session stays on windlass/t1"
        ]
    );
}

#[test]
fn stop_during_gate_skips_remaining_hooks_and_task_needs_continuation() {
    check_with(
        pipeline_rules(&["tests", "pr"]),
        &format!(
            "{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nbegin tests\n--\nstop a\nfinish tests out=cancelled"
        ),
        "T1 session_stopping Cancelled
         T1 hook_finished tests Cancelled
         T1 hook_finished pr Skip
         T1 task_needs_continuation
         T1 session_ended Cancelled",
    );
}

/// After a crash the gate is in the same state: repeatable hooks run again.
#[test]
fn gate_survives_crash() {
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nhook tests\nbegin pr\ncrash");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr"]), &script);
    let answered = project.run_script("resume a by=w2\nrecover pr by=w2\nfinish pr by=w2 opens=http://x/1");
    assert_eq!(
        answered,
        [
            "T1 session_resumed by w2",
            "T1 hook_started pr 2 by w2",
            "T1 hook_finished pr Success",
            "T1 change_opened http://x/1",
            "T1 task_submitted",
            "T1 task_completed",
            "T1 session_ended Completed"
        ]
    );
}

/// The default hook for work in worktrees is not for work in place; a configured one is for both.
#[test]
fn work_in_place_passes_configured_gates() {
    let mut usual = pipeline_rules(&["pr"]);
    let planned = usual.effects.as_mut().unwrap().hooks.get_mut(&EventType::SubmissionStarted).unwrap();
    *planned = planned
        .iter()
        .cloned()
        .map(|planned| crate::PlannedHook { scope: HookScope::Worktrees, ..planned })
        .collect::<Vec<_>>();
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete";
    assert_eq!(ScriptProject::after(usual.clone(), script).find_task("T1").state, TaskState::Completed);
    let gated = ScriptProject::after(usual, &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a"));
    assert!(matches!(gated.find_session("a").next_action(), NextAction::Hook(_)));
    let written = ScriptProject::after(pipeline_rules(&["tests"]), script);
    assert!(matches!(written.find_session("a").next_action(), NextAction::Hook(_)));
}

/// An approval holds for the same change and for every hook, until another change is judged.
#[test]
fn approval_holds_for_one_change() {
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a");
    let mut project = ScriptProject::after(pipeline_rules(&["review", "last", "merge"]), &script);
    let approved = |project: &ScriptProject| {
        let approved = project.find_task("T1").approved;
        approved.map(|approved| (approved.patch == Digest::of_bytes(b"one"), approved.briefs.join(" ")))
    };
    assert_eq!(approved(&project), None);
    project.run_script("hook review of=one approves=qa used=7");
    assert_eq!(approved(&project), Some((true, "qa".to_owned())));
    project.run_script("hook last out=block tells=no of=one approves=qa+docs used=5");
    assert_eq!(approved(&project), Some((true, "qa docs".to_owned())), "that it was rejected takes nothing back");
    assert_eq!((project.find_task("T1").used.input, project.find_session("a").watch.used.input), (12, 12));
    assert_eq!(project.find_session("a").watch.used_in_conversation.input, 0, "it was another conversation");
    project.run_script("workspace a\nturn-done a.2 says=complete\nwork a\nhook review of=two out=failure");
    assert_eq!(approved(&project), Some((false, String::new())), "another change, without an approval");
    project.run_script("session b task=T1 grounds=worktrees\nworkspace b\nwork b");
    project.run_script("hook review of=two approves=qa\nhook last of=two approves=docs");
    assert_eq!(approved(&project), Some((false, "qa docs".to_owned())));
    project.run_script("hook merge merges=def");
    assert_eq!((project.find_task("T1").state, approved(&project)), (TaskState::Completed, None));
}

#[test]
fn change_is_merged_once_and_only_by_person() {
    let mut project = ScriptProject::after(
        pipeline_rules(&["pr"]),
        &format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nhook pr opens=http://x/1"),
    );
    assert_eq!(project.run_script("run=a.1 merged T1 def"), ["! only a person can merge"], "an agent does not");
    assert_eq!(
        project.run_script("merged T1 def\nmerged T1 def"),
        ["T1 change_merged def", "! cannot merge T1: it has no change"]
    );
    assert_eq!(project.find_task("T1").change.unwrap().merged.as_deref(), Some("def"));
}

/// Without a forge, the new change has the same fields as the merged one.
#[test]
fn same_change_after_merge_is_recorded_as_new_change() {
    let opened = "turn-done a.1 says=complete\nwork a\nhook pr opens=http://x/1";
    let reopened = "merged T1 def\nforced reopen T1\nsession b task=T1 grounds=worktrees\nworkspace b";
    let script = format!("{SESSION_IN_WORKTREE}\n{opened}\n{reopened}\nturn-done b.1 says=complete\nwork b");
    let mut project = ScriptProject::after(pipeline_rules(&["pr"]), &script);
    assert_eq!(project.run_script("hook pr opens=http://x/1")[2], "T1 change_opened http://x/1");
    assert_eq!(project.find_task("T1").change.unwrap().merged, None);
}

#[test]
fn work_that_a_person_takes_as_it_is_becomes_a_change() {
    let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\nhook tests out=escalate");
    let mut project = ScriptProject::after(pipeline_rules(&["tests"]), &script);
    assert_eq!(project.find_task("T1").state, TaskState::Blocked);
    let answered = project.run_script("forced answer T1 approve branch=windlass/t1");
    assert_eq!(answered[0], "T1 change_opened windlass/t1 (forced)");
    assert_eq!(
        (project.find_task("T1").state, project.find_task("T1").change.unwrap().merged),
        (TaskState::Completed, None)
    );
    assert_eq!(project.run_script("merged T1 def"), ["T1 change_merged def"]);
}

#[test]
fn work_done_in_place_passes_the_gate_before_the_merge_also_where_there_is_no_other() {
    check_with(
        pipeline_rules(&["review"]),
        "add one
         session a task=T1
         turn-done a.1 says=complete
         --
         hook review out=block tells=no",
        "T1 hook_started review 1 by w1
         T1 hook_finished review Block
         T1 pipeline_failed review Blocked: Reject 1/3
         T1 task_rejected by review
         T1 task_ready
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued no from review
         T1 iteration_started a.2
         T1 turn_started a.2 to work no",
    );
}

/// Only one task of many needs a person.
#[test]
fn merge_escalation_blocks_task_but_session_claims_next() {
    check_with(
        pipeline_rules(&["merge"]),
        "add one
         add two
         session a work=graph grounds=worktrees
         workspace a
         turn-done a.1 says=complete
         work a
         --
         hook merge out=escalate message=protected",
        "T1 hook_started merge 1 by w1
         T1 hook_finished merge Escalate
         T1 pipeline_failed merge Escalated: Escalate 1/3
         T1 task_blocked before_merge: `merge`: protected
         T2 task_claimed w1 epoch 1
         T2 task_started",
    );
}
