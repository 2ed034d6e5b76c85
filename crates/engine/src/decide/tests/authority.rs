//! Rights to change a task: of persons, lease holders, agents inside a turn, and overrides.

use super::script::{ScriptProject, check, default_rules};
use super::session_loop::loop_rules;
use crate::log::event_type::EventType;
use crate::log::id::Epoch;
use crate::task::TaskState;

#[test]
fn agent_completion_inside_its_turn_only_records_claim() {
    check(
        "add one
         session a
         claim T1 by=w1 for=60s
         --
         run=a.1 complete T1 all green
         run=a.1 epoch=1 complete T1",
        "! T1 is held by w1 (epoch 1)
         T1 task_completed",
    );
    let script = "add one\nsession a task=T1\nrun=a.1 complete T1 all green";
    let project = ScriptProject::after(default_rules(), script);
    let task = project.find_task("T1");
    assert_eq!((task.state, task.claim.unwrap().result.as_deref()), (TaskState::Active, Some("all green")));
    let claimed = project.log.last().unwrap();
    assert_eq!(claimed.envelope.session.as_ref().map(|name| name.as_str()), Some("a"));
    assert_eq!(claimed.envelope.iteration, Some(1));
}

/// Every reader of the log knows the session's epoch, its agent included, and may pretend to be its holder.
#[test]
fn session_held_task_refuses_commands_that_present_its_epoch() {
    check(
        "add one
         session a task=T1
         session b
         --
         epoch=1 complete T1
         epoch=1 release T1
         epoch=1 release T1 run=a.1
         epoch=1 fail T1 run=b.1
         cancel a
         epoch=1 complete T1
         run=b.1 epoch=1 complete T1",
        "! T1 is held by session `a` (epoch 1)
         ! T1 is held by session `a` (epoch 1)
         ! T1 is held by session `a` (epoch 1)
         ! T1 is held by session `a` (epoch 1)
         T1 session_stopping Cancelled
         ! T1 is held by session `a` (epoch 1)
         ! T1 is held by session `a` (epoch 1)",
    );
}

#[test]
fn completion_of_a_task_that_another_session_holds_keeps_the_claim_of_its_holder() {
    let script = "add one
                  add two
                  session a task=T1
                  session b task=T2
                  run=a.1 complete T1 all green";
    let mut project = ScriptProject::after(default_rules(), script);
    for attempt in ["run=b.1 complete T1 mine", "run=b.1 epoch=1 complete T1 mine", "forced complete T1 mine run=b.1"] {
        assert_eq!(project.run_script(attempt), ["! T1 is held by session `a` (epoch 1)"], "{attempt}");
    }
    let claim = project.find_task("T1").claim.expect("its own session has claimed it");
    assert_eq!((claim.run.session.as_str(), claim.result.as_deref()), ("a", Some("all green")));
}

#[test]
fn force_inside_a_turn_is_still_only_a_claim() {
    check(
        "add one
         add two after=T1
         session a task=T1
         --
         forced complete T1 run=a.1
         forced complete T2 run=a.1",
        "T1 completion_claimed a.1 (forced)
         ! cannot complete T2: it is created, and that is possible only from ready, active, submitted or needs_continuation",
    );
}

#[test]
fn agent_cannot_override_start_fail_or_release() {
    check(
        "add one
         add two after=T1
         session a task=T1
         --
         forced start T2 run=a.1
         forced fail T2 run=a.1
         forced release T1 run=a.1",
        "! only a person can override
         ! only a person can override
         ! only a person can override",
    );
}

/// Type and labels choose the gates, and the task's text is the basis of the evaluation.
#[test]
fn agent_does_not_change_basis_of_its_evaluation() {
    check(
        "add one labels=strict
         add two
         add three
         session a task=T1
         session b task=T2
         --
         relabel T1 labels=easy run=a.1
         retype T1 chore run=a.1
         reword T1 less run=a.1
         reword T2 less run=a.1
         relabel T3 labels=easy run=a.1
         retype T3 chore run=a.1
         relabel T3 run=a.1
         reword T3 more run=a.1
         relabel T3 labels=easy run=elsewhere.1
         relabel T1 labels=easy",
        "! only a person can change or move T1: it is the task of session `a`
         ! only a person can change or move T1: it is the task of session `a`
         ! only a person can change or move T1: it is the task of session `a`
         ! T2 is held by session `b` (epoch 1)
         ! only a person can change the type or the labels of T3: they decide how work on it is judged
         ! only a person can change the type or the labels of T3: they decide how work on it is judged
         T3 task_updated
         T3 task_updated
         T1 task_updated",
    );
}

/// While the session holds the task, its agent only claims completion. In later turns it cannot perform the move that the gate refused.
#[test]
fn agent_cannot_move_task_its_session_left_blocked() {
    check(
        "add one
         add two
         session a work=graph
         turn-done a.1 says=blocked
         --
         unblock T1 run=a.2
         unblock T1
         complete T1 run=a.2
         claim T1 by=w2 for=60s run=a.2
         delete T1 run=a.2
         complete T2 run=a.2
         complete T1",
        "! only a person can change or move T1: it is the task of session `a`
         T1 task_unblocked
         T1 task_ready
         ! only a person can change or move T1: it is the task of session `a`
         ! only a person can change or move T1: it is the task of session `a`
         ! only a person can change or move T1: it is the task of session `a`
         T2 completion_claimed a.2
         T1 task_completed",
    );
}

/// A hook is not an agent, even during a turn of a session.
#[test]
fn hook_may_relabel_task_held_by_session() {
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete\nbegin check";
    let mut project = ScriptProject::after(loop_rules(&["check"]), script);
    assert_eq!(project.run_script("relabel T1 labels=seen run=a.1 via=check"), ["T1 task_updated"]);
}

/// The program of a hook may run code of the agent, such as its tests.
#[test]
fn hook_of_session_completes_nothing_past_gates() {
    let script = "add one\nadd other\nsession a task=T1\nturn-done a.1 says=complete\nbegin check";
    let mut project = ScriptProject::after(loop_rules(&["check"]), script);
    let own = "! only a person can change or move T1: it is the task of session `a`";
    let type_changed = "! only a person can change the type or the labels of T2: they decide how work on it is judged";
    for (command, answered) in [
        ("complete T1", own),
        ("forced complete T1", "! only a person can override"),
        ("forced release T1", "! only a person can override"),
        ("retype T2 docs", type_changed),
        ("complete T2", "T2 task_completed"),
    ] {
        assert_eq!(project.run_script(&format!("{command} via=check")), [answered], "{command}");
    }
}

#[test]
fn completion_claim_of_finished_turn_is_refused() {
    check(
        "add one
         session a
         turn-done a.1
         --
         run=a.1 complete T1
         run=a.2 complete T1",
        "! cannot claim completion: the turn a.1.0000000000000007 is over
         T1 task_completed",
    );
}

#[test]
fn turn_of_unknown_session_is_ignored() {
    check("add one\n--\nrun=elsewhere.1 complete T1", "T1 task_completed");
}

#[test]
fn completion_claim_is_dropped_when_task_is_released() {
    let script = "add one\nsession a task=T1\nrun=a.1 complete T1\nforced release T1";
    assert_eq!(ScriptProject::after(default_rules(), script).find_task("T1").claim, None);
}

#[test]
fn held_task_is_moved_only_by_its_holder() {
    check(
        "add one
         claim T1 by=w1 for=60s
         --
         complete T1
         fail T1
         block T1
         release T1
         submit T1
         delete T1
         delete T1 cascade
         epoch=2 complete T1
         epoch=1 submit T1
         complete T1
         epoch=1 complete T1
         epoch=1 complete T1",
        "! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! T1 is held by w1 (epoch 1)
         ! epoch 2 of T1 is over; epoch 1 holds it
         T1 task_submitted
         ! T1 is held by w1 (epoch 1)
         T1 task_completed
         ! cannot complete T1: it is completed, and that is possible only from ready, active, submitted or needs_continuation",
    );
}

#[test]
fn former_holder_cannot_move_task() {
    check(
        "add one
         claim T1 by=w1 for=60s
         epoch=1 release T1
         --
         epoch=1 complete T1
         claim T1 by=w2 for=60s
         epoch=1 submit T1
         epoch=2 submit T1",
        "! epoch 1 of T1 is over; it has no holder
         T1 task_claimed w2 epoch 2
         T1 task_started
         ! epoch 1 of T1 is over; epoch 2 holds it
         T1 task_submitted",
    );
}

#[test]
fn override_by_person_is_applied_and_recorded_as_forced() {
    check(
        "add one
         claim T1 by=w1 for=60s
         --
         forced complete T1
         add two labels=agent
         forced complete T2",
        "T1 task_completed (forced)
         T2 task_created
         T2 task_ready
         T2 task_completed (forced)
         T3 task_created
         T3 dependency_added spawned_by T2
         T3 task_ready
         T2 agent_metrics",
    );
}

#[test]
fn refused_move_names_allowed_states() {
    let mut project = ScriptProject::after(default_rules(), "add one\nadd two after=T1");
    assert_eq!(
        project.run_script("submit T1"),
        ["! cannot submit T1: it is ready, and that is possible only from active"]
    );
    assert_eq!(
        project.run_script("unblock T1"),
        ["! cannot unblock T1: it is ready, and that is possible only from blocked"]
    );
    let refusal = project.run_script("fail T2").remove(0);
    assert!(refusal.starts_with("! cannot fail T2: it is created"), "{refusal}");
    assert_eq!(project.run_script("forced fail T2"), ["T2 task_failed (forced)"]);
}

#[test]
fn claim_takes_most_urgent_then_oldest_ready_task() {
    check(
        "add one
         add two prio=1
         add three prio=1
         add four prio=0 after=T1
         add five prio=4
         add six prio=0
         --
         claim by=w1 for=60s
         claim by=w1 for=60s
         claim by=w1 for=60s
         claim by=w1 for=60s
         claim by=w1 for=60s
         claim by=w1 for=60s",
        "T6 task_claimed w1 epoch 1
         T6 task_started
         T2 task_claimed w1 epoch 1
         T2 task_started
         T3 task_claimed w1 epoch 1
         T3 task_started
         T1 task_claimed w1 epoch 1
         T1 task_started
         T5 task_claimed w1 epoch 1
         T5 task_started
         ! nothing is ready",
    );
}

#[test]
fn task_needing_continuation_can_be_claimed_again() {
    check(
        "add one
         claim T1 by=w1 for=60s
         epoch=1 continue T1 no commits
         --
         claim by=w2 for=60s",
        "T1 task_claimed w2 epoch 2
         T1 task_started",
    );
}

#[test]
fn lease_holds_at_its_deadline_and_expires_after_it() {
    check(
        "add one
         claim T1 by=w1 for=60s
         --
         later 60s
         claim T1 by=w2 for=60s
         later 1s
         claim T1 by=w2 for=60s
         epoch=1 complete T1",
        "! cannot start T1: it is active, and that is possible only from ready or needs_continuation
         T1 lease_expired w1 epoch 1
         T1 task_ready
         T1 task_claimed w2 epoch 2
         T1 task_started
         ! epoch 1 of T1 is over; epoch 2 holds it",
    );
}

#[test]
fn expired_lease_holds_until_next_claim() {
    check("add one\nclaim T1 by=w1 for=60s\nlater 90s\n--\nepoch=1 complete T1", "T1 task_completed");
}

#[test]
fn submitted_task_becomes_ready_when_its_lease_expires() {
    check(
        "add one
         claim T1 by=w1 for=60s
         epoch=1 submit T1
         add two
         later 61s
         --
         claim T2 by=w2 for=60s",
        "T1 lease_expired w1 epoch 1
         T1 task_ready
         T2 task_claimed w2 epoch 1
         T2 task_started",
    );
}

#[test]
fn expired_lease_blocks_task_whose_dependency_failed() {
    check(
        "add one
         add two
         claim T2 by=w1 for=60s
         link T2 depends_on T1
         fail T1
         later 61s
         add three
         --
         claim by=w1 for=60s",
        "T2 lease_expired w1 epoch 1
         T2 task_blocked by T1
         T3 task_claimed w1 epoch 1
         T3 task_started",
    );
}

/// The observer of a silent owner may be late: another owner may have the task by then.
#[test]
fn only_the_lease_that_was_seen_is_taken_away() {
    check(
        "add one
         session a task=T1
         expire T1 epoch=1
         session b task=T1 by=w2
         --
         expire T1 epoch=1
         expire T1 epoch=2",
        "! epoch 1 of T1 is over; epoch 2 holds it
         T1 lease_expired w2 epoch 2
         T1 task_ready",
    );
}

#[test]
fn claim_with_zero_lease_is_refused() {
    check("add one\n--\nclaim T1 by=w1 for=0s", "! a lease has to end in the future");
}

#[test]
fn force_does_not_claim_unclaimable_task() {
    check(
        "add one
         add two after=T1
         add three
         block T3
         --
         forced claim T2 by=w1 for=60s
         forced claim T3 by=w1 for=60s",
        "! T2 waits for T1
         ! cannot start T3: it is blocked, and that is possible only from ready or needs_continuation",
    );
}

#[test]
fn epochs_only_grow() {
    let script = "add one\nclaim T1 by=w1 for=9s\nepoch=1 release T1\nclaim T1 by=w1 for=9s\nepoch=2 fail T1\n\
                  reopen T1\nclaim T1 by=w1 for=9s";
    let project = ScriptProject::after(default_rules(), script);
    assert_eq!(project.find_task("T1").epoch, Epoch(3));
    assert_eq!(project.event_data(EventType::TaskClaimed)["epoch"], 3);
}
