//! The work of sessions: goals that become tasks, named tasks, and tasks that the graph has ready.

use super::script::{ScriptProject, check, check_with, default_rules};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::log::event_type::EventType;
use crate::session::TaskHold;
use crate::task::TaskState;

/// Returns rules with a hook called `told` at an event.
fn rules_with_hook(event: EventType) -> EngineRules {
    let (point, class, on_failure) = (HookPoint::Event(event), HookClass::Other, HookFailurePolicy::Ignore);
    let hook = HookEffect { hook: "told".to_owned(), point, class, on_failure, send_backs: None };
    let effects = HookPlan::for_all_tasks(super::script::SESSION_CONFIG, "w1".parse().unwrap(), [(event, vec![hook])]);
    EngineRules { effects: Some(effects), ..default_rules() }
}

#[test]
fn session_goal_creates_and_claims_task_in_same_commit() {
    check(
        "session a goal=mend
         turn-done a.1 says=complete",
        "system config_recorded
         system session_started
         T1 task_created
         T1 task_ready
         T1 task_claimed w1 epoch 1
         T1 task_started
         T1 iteration_started a.1
         T1 turn_started a.1 to work
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T1 session_ended Completed",
    );
    let project =
        ScriptProject::after(default_rules(), "session a goal=mend\nturn-done a.1 says=complete\nsession b goal=mend");
    let of = |name: &str| (project.find_session(name).task, project.find_session(name).hold);
    assert_eq!(of("a").1, TaskHold::Left);
    assert!(matches!(of("b"), (Some(id), TaskHold::Held(_)) if id.0 == 2), "{:?}", of("b"));
    let created = project.log.iter().find(|record| record.kind() == EventType::TaskCreated).unwrap();
    assert_eq!(created.envelope.session.as_ref().map(|name| name.as_str()), Some("a"));
}

#[test]
fn session_for_unclaimable_task_is_refused_with_reason() {
    check(
        "add one
         add two after=T1
         add three
         claim T3 by=w7 for=60s
         add four
         block T4
         add five
         complete T5
         session z task=T1
         --
         session a task=T1
         session a task=T2
         session a task=T3
         session a task=T4
         session a task=T5",
        "! T1 is held by session `z` (epoch 1)
         ! T2 waits for T1
         ! T3 is held by w7 (epoch 1)
         ! cannot start T4: it is blocked, and that is possible only from ready or needs_continuation
         ! cannot start T5: it is completed, and that is possible only from ready or needs_continuation",
    );
}

/// A rule such as `iteration >= 3` is about the task, not about the session's earlier tasks.
#[test]
fn iterations_of_session_on_graph_are_counted_for_each_task() {
    let script = "add one\nadd two\nsession a work=graph\nturn-done a.1\nturn-done a.2 says=complete";
    let mut project = ScriptProject::after(default_rules(), script);
    let counts =
        |project: &ScriptProject| (project.find_session("a").iteration, project.find_session("a").iteration_on_task());
    assert_eq!(counts(&project), (3, 1));
    project.run_script("turn-done a.3");
    assert_eq!(counts(&project), (4, 2));
}

#[test]
fn graph_session_works_by_priority_including_newly_ready_tasks() {
    check(
        "add one
         add two after=T1 prio=0
         add three prio=1
         --
         session a work=graph
         turn-done a.1 says=complete
         turn-done a.2 says=complete
         turn-done a.3
         turn-done a.4 says=complete",
        "system config_recorded
         system session_started
         T3 task_claimed w1 epoch 1
         T3 task_started
         T3 iteration_started a.1
         T3 turn_started a.1 to work
         T3 turn_finished
         T3 promise_detected Complete
         T3 gate_decided Pass: Completed
         T3 iteration_completed
         T3 task_completed
         T1 task_claimed w1 epoch 1
         T1 task_started
         T1 iteration_started a.2
         T1 turn_started a.2 to work
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T2 task_ready
         T2 dependency_satisfied T1
         T2 task_claimed w1 epoch 1
         T2 task_started
         T2 iteration_started a.3
         T2 turn_started a.3 to work
         T2 turn_finished
         T2 gate_decided Pass: Continue
         T2 iteration_completed
         T2 iteration_started a.4
         T2 turn_started a.4 to work
         T2 turn_finished
         T2 promise_detected Complete
         T2 gate_decided Pass: Completed
         T2 iteration_completed
         T2 task_completed
         T2 session_ended Completed",
    );
}

#[test]
fn graph_session_without_ready_task_ends_without_turn() {
    check(
        "add one
         block T1
         --
         session a work=graph",
        "system config_recorded
         system session_started
         system session_ended Completed",
    );
}

/// A worktree would not contain the work in place.
#[test]
fn task_begun_in_place_is_not_taken_into_worktree() {
    let taken = |script: &str| {
        let project = ScriptProject::after(default_rules(), script);
        (project.find_task("T1").in_place, project.find_session("a").task.map(|id| id.0))
    };
    let begun = "session g goal=here max=1 by=w2\nturn-done g.1\nadd two";
    assert_eq!(taken(&format!("{begun}\nsession a work=graph grounds=worktrees")), (true, Some(2)));
    assert_eq!(taken(&format!("{begun}\nsession a work=graph grounds=in_place")), (true, Some(1)));
    assert_eq!(taken(&format!("{begun}\nsession a task=T1 grounds=worktrees")), (false, Some(1)), "as it is asked");
    // A claim by hand does not move it to another place.
    let by_hand = "claim T1 by=w3 for=60s\nepoch=2 release T1";
    assert_eq!(taken(&format!("{begun}\n{by_hand}\nsession a work=graph grounds=worktrees")), (true, Some(2)));
}

#[test]
fn task_needing_person_is_blocked_and_session_claims_next() {
    check(
        "add one
         add two
         session a work=graph
         --
         turn-done a.1 says=blocked
         turn-done a.2 says=complete",
        "T1 turn_finished
         T1 promise_detected Blocked
         T1 gate_decided Pass: Escalated, the agent says it is blocked
         T1 iteration_completed
         T1 task_blocked the agent says it is blocked: said
         T2 task_claimed w1 epoch 1
         T2 task_started
         T2 iteration_started a.2
         T2 turn_started a.2 to work
         T2 turn_finished
         T2 promise_detected Complete
         T2 gate_decided Pass: Completed
         T2 iteration_completed
         T2 task_completed
         T2 session_ended Escalated, T1 needs a person",
    );
}

#[test]
fn task_left_at_limit_or_stop_can_be_resumed() {
    check(
        "add one
         add two
         session a work=graph max=1
         --
         turn-done a.1
         session b goal=other
         stop b
         turn-interrupted b.1
         session c task=T1",
        "T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 task_needs_continuation
         T1 session_ended Limit, one iteration is the limit
         system session_started
         T3 task_created
         T3 task_ready
         T3 task_claimed w1 epoch 1
         T3 task_started
         T3 iteration_started b.1
         T3 turn_started b.1 to work
         T3 session_stopping Cancelled
         T3 iteration_interrupted b.1
         T3 task_needs_continuation
         T3 session_ended Cancelled
         T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 iteration_started c.1
         T1 turn_started c.1 to work",
    );
}

/// The last allowed iteration may end the last task; with another one left it is a limit.
#[test]
fn session_ends_at_limit_only_when_tasks_remain() {
    let ended = |tasks: &str| {
        let script = format!("{tasks}\nsession a work=graph max=1\nturn-done a.1 says=complete");
        let project = ScriptProject::after(default_rules(), &script);
        (project.find_session("a").ending_kind().unwrap(), project.find_task("T1").state)
    };
    assert_eq!(ended("add one"), (crate::SessionEndKind::Completed, TaskState::Completed));
    assert_eq!(ended("add one\nadd two"), (crate::SessionEndKind::Limit, TaskState::Completed));
}

#[test]
fn resumed_session_holds_its_task() {
    let project = ScriptProject::after(default_rules(), "session a goal=mend\nresume a from=w1 by=w2");
    let lease = project.find_task("T1").lease.unwrap();
    assert_eq!((lease.owner.as_str(), lease.epoch.0), ("w2", 1));
}

#[test]
fn task_completed_outside_session_ends_session_as_cancelled() {
    check(
        "session a goal=mend
         --
         complete T1
         forced complete T1
         turn-done a.1",
        "! T1 is held by session `a` (epoch 1)
         T1 task_completed (forced)
         T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 session_ended Cancelled, T1 is completed now, changed outside this session",
    );
}

#[test]
fn agent_complete_command_counts_as_claim_of_that_turn() {
    let claimed = "session a goal=mend\nrun=a.1 complete T1 all green\n--\n";
    check(
        &format!("{claimed}turn-done a.1"),
        "T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T1 session_ended Completed",
    );
    let done = ScriptProject::after(default_rules(), &claimed.replace("--", "turn-done a.1"));
    assert_eq!(done.find_task("T1").result.as_deref(), Some("all green"));
    check(
        &format!("{claimed}turn-done a.1 says=blocked"),
        "T1 turn_finished
         T1 promise_detected Blocked
         T1 gate_decided Pass: Escalated, the agent says it is blocked
         T1 iteration_completed
         T1 task_blocked the agent says it is blocked: said
         T1 session_ended Escalated, the agent says it is blocked",
    );
    let other = "add other\nsession a goal=mend\nrun=a.1 complete T1\nturn-done a.1";
    let project = ScriptProject::after(default_rules(), other);
    assert_eq!(
        (project.find_task("T1").state, project.find_task("T2").state),
        (TaskState::Completed, TaskState::Active)
    );
    assert_eq!(project.find_session("a").iteration, 2, "another task is no claim about its own");
    let of_another = "session b goal=paint by=w2\nsession a goal=mend";
    let mut project = ScriptProject::after(default_rules(), of_another);
    assert_eq!(project.run_script("run=a.1 complete T1"), ["! T1 is held by session `b` (epoch 1)"]);
    project.run_script("turn-done a.1");
    assert_eq!(project.find_session("a").iteration, 2, "nor is what is said about the task of another session");
}

/// The command that completed the task runs the hooks, and the session receives their feedback.
#[test]
fn task_hook_feedback_reaches_session_of_event_or_holder() {
    check_with(
        rules_with_hook(EventType::TaskCompleted),
        "add other
         session a goal=mend by=w2
         run=a.1 complete T1
         --
         begin told
         finish told tells=well-done",
        "T1 hook_started told 1 by w1
         T1 hook_finished told Success
         T1 feedback_queued well-done from told",
    );
    check_with(
        rules_with_hook(EventType::TaskUpdated),
        "session a goal=mend by=w2
         relabel T1 labels=x
         --
         begin told
         finish told tells=look
         turn-done a.1",
        "T1 hook_started told 1 by w1
         T1 hook_finished told Success
         T1 feedback_queued look from told
         T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 iteration_started a.2
         T1 turn_started a.2 to work look",
    );
}

/// Its hooks run before the session continues with another task.
#[test]
fn completed_task_hooks_run_before_next_task_is_claimed() {
    check_with(
        rules_with_hook(EventType::TaskCompleted),
        "add one
         add two
         session a work=graph
         turn-done a.1 says=complete
         --
         begin told
         finish told tells=push-it",
        "T1 hook_started told 1 by w1
         T1 hook_finished told Success
         T1 feedback_queued push-it from told
         T2 task_claimed w1 epoch 1
         T2 task_started
         T2 iteration_started a.2
         T2 turn_started a.2 to work push-it",
    );
}

/// A claim first checks whether the lease of the task has expired.
#[test]
fn task_with_expired_lease_is_claimed_by_new_session() {
    for session in ["session a task=T1", "session a work=graph"] {
        let mut project = ScriptProject::after(default_rules(), "add one\nclaim T1 by=w7 for=60s\nlater 61s");
        let taken = project.run_script(session);
        for line in ["T1 lease_expired w7 epoch 1", "T1 task_claimed w1 epoch 2"] {
            assert!(taken.iter().any(|event| event == line), "{session}: {taken:?}");
        }
    }
}

#[test]
fn session_at_iteration_limit_claims_no_further_task() {
    check(
        "add one
         add two
         session a work=graph max=1
         --
         turn-done a.1 says=complete",
        "T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T1 session_ended Limit, one iteration is the limit",
    );
}

/// No other session claims the task before its new dependency is completed.
#[test]
fn task_given_dependency_during_session_waits_when_session_ends() {
    check(
        "add one
         add two
         session a task=T1 max=1
         link T1 depends_on T2
         --
         turn-done a.1
         session b task=T1",
        "T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 task_needs_continuation
         T1 task_waiting
         T1 session_ended Limit, one iteration is the limit
         ! T1 waits for T2",
    );
}

#[test]
fn claim_of_other_agent_is_not_task_result() {
    let script = "add one\nsession a task=T1\nsession b\nrun=a.1 complete T1 all green";
    let mut project = ScriptProject::after(default_rules(), script);
    project.run_script("run=b.1 complete T1 mine");
    project.run_script("turn-done a.1 says=complete");
    let task = project.find_task("T1");
    assert_eq!((task.state, task.result.as_deref()), (TaskState::Completed, Some("all green")));
}
