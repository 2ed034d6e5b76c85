//! Interruptions during the delivery of finished work. The hooks are those of `pipeline.rs`.

use windlass_expr::{Condition, ExpressionNames};

use super::pipeline::{SESSION_IN_WORKTREE, pipeline_rules};
use super::script::{ScriptProject, check_with};
use crate::decide::PlannedHook;
use crate::log::event_type::EventType;
use crate::session::NextAction;
use crate::task::TaskState;

const DONE_WORK: &str = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete";

/// A session that has lost the lease begins no hook of a gate, not even a pending one.
#[test]
fn gate_hook_does_not_begin_after_lease_is_lost() {
    let mut project = ScriptProject::after(
        pipeline_rules(&["tests", "pr"]),
        &format!("{DONE_WORK}\nwork a\nhook tests\nexpire T1 epoch=1"),
    );
    assert_eq!(
        project.run_script("begin pr"),
        ["! 14.1 is for work that is decided already, or belongs to another session now"]
    );
    assert_eq!(
        project.run_script("advance a"),
        [
            "T1 hook_finished pr Skip",
            "T1 session_ended Cancelled, T1 is ready now, changed outside this session; the work of this session stays on windlass/t1"
        ]
    );
}

/// A session that has lost the lease does not take over a running hook of a gate either.
#[test]
fn gate_hook_is_not_recovered_after_lease_is_lost() {
    let script = format!("{DONE_WORK}\nwork a\nbegin tests\nexpire T1 epoch=1\ncrash\nresume a by=w2");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr"]), &script);
    assert_eq!(
        project.run_script("recover tests by=w2"),
        [
            "T1 hook_finished tests Interrupted",
            "T1 hook_finished pr Skip",
            "T1 session_ended Cancelled, T1 is ready now, changed outside this session; the work of this session stays on windlass/t1"
        ]
    );
}

/// A submission by hand does not change the gates that the work must pass.
#[test]
fn work_submitted_by_hand_still_passes_gate() {
    for submit in [
        "forced submit T1\nturn-done a.1 says=complete\nwork a",
        "turn-done a.1 says=complete\nwork a\nforced submit T1",
    ] {
        let mut project = ScriptProject::after(pipeline_rules(&["tests"]), &format!("{SESSION_IN_WORKTREE}\n{submit}"));
        assert_eq!(
            project.run_script("hook tests"),
            [
                "T1 hook_started tests 1 by w1",
                "T1 hook_finished tests Success",
                "T1 task_submitted",
                "T1 task_completed",
                "T1 session_ended Completed"
            ]
        );
    }
}

/// Ending a session as complete is no evaluation of its work.
#[test]
fn stopping_session_as_complete_does_not_bypass_gates() {
    for (stop, ended) in [("stop a completed", "Completed"), ("stop a", "Cancelled")] {
        check_with(
            pipeline_rules(&["tests"]),
            &format!("{DONE_WORK}\n--\n{stop}"),
            &format!(
                "T1 session_stopping {ended}
                 T1 task_needs_continuation
                 T1 session_ended {ended}"
            ),
        );
    }
}

#[test]
fn session_about_to_end_refuses_handover_to_person() {
    let mut project = ScriptProject::after(pipeline_rules(&[]), &format!("{SESSION_IN_WORKTREE}\nstop a"));
    assert_eq!(project.run_script("person a look at it"), ["! session `a` is about to end"]);
}

/// A change that a person merges at the gate is in the base like one that a hook merges.
#[test]
fn change_merged_by_person_during_gate_is_accepted() {
    check_with(
        pipeline_rules(&["pr", "review"]),
        &format!(
            "{DONE_WORK}\nwork a\nhook pr opens=http://x/1\nbegin review\n--\nmerged T1 def\nfinish review out=block tells=no"
        ),
        "T1 change_merged def
         T1 hook_finished review Block
         T1 task_completed
         T1 session_ended Escalated, `review` does not pass after the merge: no",
    );
}

/// The task is completed, the hooks of the merge run, and the session ends for a person instead of taking up the next task.
#[test]
fn objection_after_merge_ends_session_for_person() {
    for (out, ended, objection) in [
        ("escalate", "Escalate", "`last` asks for a person after the merge: look"),
        ("block tells=look", "Block", "`last` does not pass after the merge: look"),
        ("failure", "Failure", "`last` failed after the merge: look"),
    ] {
        for session in ["session a task=T1", "session a work=graph"] {
            check_with(
                pipeline_rules(&["pr", "merge", "last", "after"]),
                &format!(
                    "add one
                     add two
                     {session} grounds=worktrees
                     workspace a
                     turn-done a.1 says=complete
                     work a
                     hook pr opens=http://x/1
                     hook merge merges=def
                     begin last
                     --
                     finish last message=look out={out}
                     hook after"
                ),
                &format!(
                    "T1 hook_finished last {ended}
                     T1 hook_started after 1 by w1
                     T1 hook_finished after Success
                     T1 task_completed
                     T1 session_ended Escalated, {objection}"
                ),
            );
        }
    }
}

/// A signal that ends a hook after the merge is not a verdict about the work.
#[test]
fn hook_that_is_cancelled_after_merge_leaves_work_accepted() {
    check_with(
        pipeline_rules(&["pr", "merge", "last"]),
        &format!(
            "{DONE_WORK}\nwork a\nhook pr opens=http://x/1\nhook merge merges=def\nbegin last\ncancel a\n--\nfinish last out=cancelled"
        ),
        "T1 hook_finished last Cancelled
         T1 task_completed
         T1 session_ended Completed",
    );
}

/// A hook that finds the work in the base records nothing new.
#[test]
fn merge_hook_records_no_second_merge_after_person_merged() {
    let merging = format!(
        "{DONE_WORK}\nwork a\nhook pr opens=http://x/1\nbegin merge\n--\nmerged T1 def\nfinish merge merges=def"
    );
    check_with(
        pipeline_rules(&["pr", "merge"]),
        &merging,
        "T1 change_merged def
         T1 hook_finished merge Success
         T1 task_completed
         T1 session_ended Completed",
    );
}

/// Every failure counts, not only the first.
#[test]
fn gate_failures_are_counted_by_kind() {
    let failures = |gates: &[&str], terms: &str, again: &str, times: usize| {
        let mut project = ScriptProject::after(
            pipeline_rules(gates),
            &format!("add one\nsession a task=T1 grounds=worktrees {terms}"),
        );
        let mut lines = project.run_script("workspace a\nturn-done a.1 says=complete\nwork a");
        for number in 2..2 + times {
            lines.extend(project.run_script(&again.replace('N', &number.to_string())));
        }
        let failed = lines.into_iter().filter_map(|line| Some(line.strip_prefix("T1 pipeline_failed ")?.to_owned()));
        failed.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let mending = "hook tests out=block tells=red\nturn-done a.N says=complete\nwork a";
    assert_eq!(failures(&["tests"], "remediations=2", mending, 3), ["Remediate 1/2", "Remediate 2/2", "GiveUp 3/2"]);
    let rejecting = "hook review out=block tells=no\nworkspace a\nturn-done a.N says=complete\nwork a";
    assert_eq!(failures(&["review"], "rejections=2", rejecting, 3), ["Reject 1/2", "Reject 2/2", "Escalate 3/2"]);
    let moved = "hook merge out=continue message=moved\nwork a";
    let again = failures(&["merge"], "", moved, 11);
    assert_eq!((again.len(), &*again[9], &*again[10]), (11, "Again 10/10", "GiveUp 10/10"));
}

/// A session needs its worktree also while it waits for its agent.
#[test]
fn session_opens_worktree_of_next_task_during_rate_limit_wait() {
    let script = "add one\nadd two\nsession a work=graph grounds=worktrees\nworkspace a\nturn-limited a.1 for=60s\nforced block T1\nadvance a";
    let mut project = ScriptProject::after(pipeline_rules(&[]), script);
    assert_eq!(project.find_session("a").next_action(), NextAction::Workspace);
    assert_eq!(project.run_script("workspace a"), ["T2 workspace_opened"]);
    assert!(matches!(project.find_session("a").next_action(), NextAction::WaitUntil(_)));
    assert_eq!(project.run_script("later 61s\nadvance a"), ["T2 iteration_started a.2", "T2 turn_started a.2 to work"]);
}

/// A gate's finding stays with the task until an agent has worked with it, even if a session that received it ends.
#[test]
fn finding_is_told_until_turn_has_heard_it() {
    let begun = |lines: &[String]| lines.iter().find(|line| line.contains("turn_started")).cloned().unwrap_or_default();
    let mut project = ScriptProject::after(
        pipeline_rules(&["tests"]),
        &format!("{DONE_WORK}\nwork a\nhook tests out=block tells=red\nstop a\nturn-interrupted a.2"),
    );
    assert_eq!(project.find_task("T1").state, TaskState::NeedsContinuation);
    let lines = project.run_script("session b task=T1\nstop b\nturn-interrupted b.1");
    assert_eq!(begun(&lines), "T1 turn_started b.1 to work red?");
    let lines = project.run_script("session c task=T1\nturn-done c.1");
    assert_eq!(begun(&lines), "T1 turn_started c.1 to work red?");
    let lines = project.run_script("stop c\nturn-interrupted c.2\nsession d task=T1");
    assert_eq!(begun(&lines), "T1 turn_started d.1 to work");
}

/// Conditions of gates know the worktree and the number of commits.
#[test]
fn gate_condition_sees_branch_and_commit_count_of_work() {
    let mut rules = pipeline_rules(&["pr", "review"]);
    let planned = rules.effects.as_mut().unwrap().hooks.get_mut(&EventType::MergeStarted).unwrap();
    let when = "branch_name == 'windlass/t1' and base_branch == 'main' and commits_count == 2 and task_title == 'one' and extra.change_url == 'http://x/1' and extra.remediations == 0";
    let when = Condition::parse(when, &ExpressionNames::for_hook()).unwrap();
    *planned = planned.iter().cloned().map(|hook| PlannedHook { when: Some(when.clone()), ..hook }).collect::<Vec<_>>();
    for (commits, judged) in [(2, true), (1, false)] {
        let script = format!("{DONE_WORK}\nwork a commits={commits}\nhook pr opens=http://x/1");
        let project = ScriptProject::after(rules.clone(), &script);
        assert_eq!(matches!(project.find_session("a").next_action(), NextAction::Hook(_)), judged, "{commits}");
    }
}

/// The agent receives a failed commit like the finding of a hook.
#[test]
fn commit_failure_is_recorded_as_finding_for_next_attempt() {
    let script = "add one\nsession a task=T1 grounds=worktrees remediations=0\nworkspace a\nturn-done a.1 says=complete\nunfit a markers are left";
    let project = ScriptProject::after(pipeline_rules(&[]), script);
    let findings: Vec<String> = project.find_task("T1").findings.into_iter().map(|finding| finding.text).collect();
    assert_eq!(findings, ["markers are left, in all of two files"]);
}

/// A resumption may set a limit below the number of iterations already used.
#[test]
fn session_waiting_for_worktree_ends_at_lowered_iteration_limit() {
    check_with(
        pipeline_rules(&[]),
        "add one
         add two
         session a work=graph grounds=worktrees
         workspace a
         turn-done a.1 says=complete
         work a
         --
         resume a by=w2 max=1",
        "T2 session_resumed by w2
         T2 task_needs_continuation
         T2 session_ended Limit, one iteration is the limit",
    );
}

/// The reason of a rejection stays until the same hook passes the task, through any other repair.
#[test]
fn rejection_reason_persists_until_same_hook_passes_task() {
    let rejected = |project: &ScriptProject| project.find_task("T1").rejected.map(|finding| finding.text);
    let script = format!("{DONE_WORK}\nwork a\nhook tests\nhook review out=block tells=too-long");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "review", "merge"]), &script);
    assert_eq!(rejected(&project).as_deref(), Some("too-long"));
    project.run_script(
        "workspace a\nturn-done a.2 says=complete\nwork a\nhook tests out=block tells=red\nturn-done a.3 says=complete",
    );
    assert_eq!((rejected(&project).as_deref(), project.find_task("T1").findings), (Some("too-long"), vec![]));
    project.run_script("work a\nhook tests\nhook review out=block tells=still-too-long");
    assert_eq!(rejected(&project).as_deref(), Some("still-too-long"));
    project.run_script("workspace a\nturn-done a.4 says=complete\nwork a\nhook tests\nhook review");
    assert_eq!(rejected(&project), None);
}
