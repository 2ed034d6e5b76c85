//! From done to accepted: `tests` and `pr` run before work is submitted, `review` and `merge` before it is accepted, `told`
//! after it was submitted and `after` when it is merged.

use super::script::{CONFIG, Script, check_with, default_rules};
use crate::decide::{EngineRules, HookPlan, HookScope};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;
use crate::log::id::Digest;
use crate::session::NextAction;
use crate::task::TaskState;

pub(super) fn hooks(hooks: &[&str]) -> EngineRules {
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
    let mut effects = HookPlan::for_all_tasks(CONFIG, "w1".parse().unwrap(), []);
    for (event, hook) in hooks.iter().map(|hook| owed(hook)) {
        effects.hooks.entry(event).or_default().push(hook.into());
    }
    EngineRules { effects: Some(effects), ..default_rules() }
}

pub(super) const BEGUN: &str = "add one\nsession a task=T1 grounds=worktrees\nworkspace a";

#[test]
fn work_in_a_worktree_goes_from_done_to_accepted() {
    check_with(
        hooks(&["tests", "pr", "told", "review", "merge", "after"]),
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
fn without_hooks_it_is_submitted_and_accepted_at_once() {
    check_with(
        hooks(&[]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\n--\nwork a"),
        "T1 submission_started
         T1 task_submitted
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn conflict_with_the_base_is_told_when_the_worktree_is_opened() {
    check_with(
        hooks(&[]),
        "add one\nsession a task=T1 grounds=worktrees\n--\nworkspace a conflicts=both",
        "T1 workspace_opened
         T1 feedback_queued both from rebase_on_main
         T1 iteration_started a.1
         T1 turn_started a.1 to work both",
    );
}

#[test]
fn what_keeps_work_from_being_submitted_ends_the_session_as_it_is() {
    check_with(
        hooks(&["tests"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\n--\nstop a error"),
        "T1 session_stopping Error
         T1 task_released
         T1 task_ready
         T1 session_ended Error",
    );
    // A person's change of the task meanwhile counts.
    let meanwhile = |what: &str| format!("{BEGUN}\nturn-done a.1 says=complete\nforced {what}\n--\nstop a error");
    check_with(hooks(&["tests"]), &meanwhile("complete T1"), "T1 session_stopping Error\nT1 session_ended Completed");
    check_with(
        hooks(&["tests"]),
        &meanwhile("delete T1"),
        "T1 session_stopping Error
         T1 session_ended Cancelled, T1 is deleted now, changed outside this session",
    );
}

#[test]
fn without_a_commit_there_is_nothing_to_submit() {
    check_with(
        hooks(&["tests"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\n--\nwork a commits=0\nsession b task=T1"),
        "T1 pipeline_failed no_changes Failed: GiveUp 1/3
         T1 task_needs_continuation
         T1 session_ended Limit, no_changes: nothing was committed beyond the base
         T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued the last attempt ended as done, without commits and without uncommitted changes from no_changes
         T1 iteration_started b.1
         T1 turn_started b.1 to work the last attempt ended as done, without commits and without uncommitted changes",
    );
}

#[test]
fn the_first_failure_ends_the_gate_and_the_agent_mends_it() {
    check_with(
        hooks(&["tests", "pr"]),
        &format!(
            "{BEGUN}
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
        hooks(&["tests"]),
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

/// No agent can repair a forge that cannot be reached.
#[test]
fn a_hook_that_cannot_do_its_work_is_not_the_agents_to_mend() {
    check_with(
        hooks(&["pr"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\n--\nhook pr out=failure message=unreachable"),
        "T1 hook_started pr 1 by w1
         T1 hook_finished pr Failure
         T1 pipeline_failed pr Failed: GiveUp 1/3
         T1 task_needs_continuation
         T1 session_ended Limit, before_submit: `pr`: unreachable",
    );
}

#[test]
fn failure_with_ignore_policy_passes_gate() {
    let rules = hooks(&["mild"]);
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nhook mild out=failure");
    assert_eq!(Script::after(rules, &script).task("T1").state, TaskState::Completed);
}

#[test]
fn a_rejected_task_is_ready_again_with_its_findings_until_a_person_is_asked() {
    check_with(
        hooks(&["review", "merge"]),
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
fn what_is_merged_is_accepted_whatever_follows() {
    check_with(
        hooks(&["pr", "merge", "last", "after"]),
        &format!(
            "{BEGUN}
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
fn on_a_newer_base_everything_is_judged_again() {
    check_with(
        hooks(&["tests", "merge"]),
        &format!(
            "{BEGUN}
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
fn a_conflict_with_the_base_is_mended_in_the_same_attempt() {
    check_with(
        hooks(&["merge"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\n--\nhook merge out=block tells=conflict"),
        "T1 hook_started merge 1 by w1
         T1 hook_finished merge Block
         T1 pipeline_failed merge Conflicts: Remediate 1/3
         T1 feedback_queued conflict from merge
         T1 iteration_started a.2
         T1 turn_started a.2 to work conflict",
    );
}

#[test]
fn what_cannot_be_committed_is_mended() {
    check_with(
        hooks(&[]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\n--\nunfit a markers are left"),
        "T1 pipeline_failed commit Conflicts: Remediate 1/3
         T1 feedback_queued markers are left, in all of two files from commit
         T1 iteration_started a.2
         T1 turn_started a.2 to work markers are left, in all of two files",
    );
}

/// A session of the graph continues with other tasks, and does not take up at once the one that it has just left.
#[test]
fn a_session_of_the_graph_leaves_a_task_and_takes_the_next() {
    check_with(
        hooks(&[]),
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
fn without_the_lease_nothing_is_submitted() {
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nexpire T1 epoch=1");
    let mut project = Script::after(hooks(&["tests"]), &script);
    assert_eq!(project.run("work a"), ["! session `a` has no task"]);
    assert_eq!(project.run("expire T1 epoch=1"), ["! epoch 1 of T1 is over; it has no holder"]);
    // At a gate, hooks that have not begun do not begin any more.
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nbegin tests\nexpire T1 epoch=1");
    let mut project = Script::after(hooks(&["tests", "pr"]), &script);
    assert_eq!(
        project.run("finish tests"),
        [
            "T1 hook_finished tests Success",
            "T1 hook_finished pr Skip",
            "T1 session_ended Cancelled, T1 is ready now, changed outside this session; the work of this session stays on windlass/t1"
        ]
    );
}

#[test]
fn an_end_in_the_middle_of_a_gate_leaves_the_task_to_be_taken_up() {
    check_with(
        hooks(&["tests", "pr"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nbegin tests\n--\nstop a\nfinish tests out=cancelled"),
        "T1 session_stopping Cancelled
         T1 hook_finished tests Cancelled
         T1 hook_finished pr Skip
         T1 task_needs_continuation
         T1 session_ended Cancelled",
    );
}

/// After a crash the gate is in the same state: hooks that only judge or check first run again.
#[test]
fn gate_survives_crash() {
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nhook tests\nbegin pr\ncrash");
    let mut project = Script::after(hooks(&["tests", "pr"]), &script);
    let answered = project.run("resume a by=w2\nrecover pr by=w2\nfinish pr by=w2 opens=http://x/1");
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
    let mut usual = hooks(&["pr"]);
    let planned = usual.effects.as_mut().unwrap().hooks.get_mut(&EventType::SubmissionStarted).unwrap();
    *planned = planned
        .iter()
        .cloned()
        .map(|planned| crate::PlannedHook { scope: HookScope::Worktrees, ..planned })
        .collect::<Vec<_>>();
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete";
    assert_eq!(Script::after(usual.clone(), script).task("T1").state, TaskState::Completed);
    let gated = Script::after(usual, &format!("{BEGUN}\nturn-done a.1 says=complete\nwork a"));
    assert!(matches!(gated.session("a").next_action(), NextAction::Hook(_)));
    let written = Script::after(hooks(&["tests"]), script);
    assert!(matches!(written.session("a").next_action(), NextAction::Hook(_)));
}

/// An approval holds for the same change and for every hook, until another change is judged.
#[test]
fn approval_holds_for_one_change() {
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nwork a");
    let mut project = Script::after(hooks(&["review", "last", "merge"]), &script);
    let approved = |project: &Script| {
        let approved = project.task("T1").approved;
        approved.map(|approved| (approved.patch == Digest::of_bytes(b"one"), approved.briefs.join(" ")))
    };
    assert_eq!(approved(&project), None);
    project.run("hook review of=one approves=qa used=7");
    assert_eq!(approved(&project), Some((true, "qa".to_owned())));
    project.run("hook last out=block tells=no of=one approves=qa+docs used=5");
    assert_eq!(approved(&project), Some((true, "qa docs".to_owned())), "that it was rejected takes nothing back");
    assert_eq!((project.task("T1").used.input, project.session("a").watch.used.input), (12, 12));
    assert_eq!(project.session("a").watch.used_in_conversation.input, 0, "it was another conversation");
    project.run("workspace a\nturn-done a.2 says=complete\nwork a\nhook review of=two out=failure");
    assert_eq!(approved(&project), Some((false, String::new())), "another change, without an approval");
    project.run("session b task=T1 grounds=worktrees\nworkspace b\nwork b");
    project.run("hook review of=two approves=qa\nhook last of=two approves=docs");
    assert_eq!(approved(&project), Some((false, "qa docs".to_owned())));
    project.run("hook merge merges=def");
    assert_eq!((project.task("T1").state, approved(&project)), (TaskState::Completed, None));
}

#[test]
fn a_change_is_merged_once() {
    let mut project = Script::after(
        hooks(&["pr"]),
        &format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nhook pr opens=http://x/1"),
    );
    assert_eq!(project.run("run=a.1 merged T1 def"), ["! only a person can merge"], "an agent does not");
    assert_eq!(
        project.run("merged T1 def\nmerged T1 def"),
        ["T1 change_merged def", "! T1 has no change that could be merged"]
    );
    assert_eq!(project.task("T1").change.unwrap().merged.as_deref(), Some("def"));
}

/// Without a forge it looks the same each time.
#[test]
fn after_a_merge_the_same_change_is_another() {
    let opened = "turn-done a.1 says=complete\nwork a\nhook pr opens=http://x/1";
    let reopened = "merged T1 def\nforced reopen T1\nsession b task=T1 grounds=worktrees\nworkspace b";
    let script = format!("{BEGUN}\n{opened}\n{reopened}\nturn-done b.1 says=complete\nwork b");
    let mut project = Script::after(hooks(&["pr"]), &script);
    assert_eq!(project.run("hook pr opens=http://x/1")[2], "T1 change_opened http://x/1");
    assert_eq!(project.task("T1").change.unwrap().merged, None);
}

#[test]
fn work_that_a_person_takes_as_it_is_becomes_a_change() {
    let script = format!("{BEGUN}\nturn-done a.1 says=complete\nwork a\nhook tests out=escalate");
    let mut project = Script::after(hooks(&["tests"]), &script);
    assert_eq!(project.task("T1").state, TaskState::Blocked);
    let answered = project.run("forced answer T1 approve branch=windlass/t1");
    assert_eq!(answered[0], "T1 change_opened windlass/t1 (forced)");
    assert_eq!((project.task("T1").state, project.task("T1").change.unwrap().merged), (TaskState::Completed, None));
    assert_eq!(project.run("merged T1 def"), ["T1 change_merged def"]);
}

#[test]
fn work_done_in_place_passes_the_gate_before_the_merge_also_where_there_is_no_other() {
    check_with(
        hooks(&["review"]),
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
fn a_merge_that_asks_for_a_person_does_not_end_the_session() {
    check_with(
        hooks(&["merge"]),
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
