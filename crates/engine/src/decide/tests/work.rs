//! The work of sessions: goals that become tasks, named tasks, and tasks that the graph has ready.

use super::script::{Script, check, check_with, default_rules};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::log::event_type::EventType;
use crate::session::TaskHold;
use crate::task::TaskState;

/// Returns rules with a hook called `told` at an event.
fn owing(event: EventType) -> EngineRules {
    let (point, class, on_failure) = (HookPoint::Event(event), HookClass::Other, HookFailurePolicy::Ignore);
    let hook = HookEffect { hook: "told".to_owned(), point, class, on_failure, send_backs: None };
    let effects = HookPlan::for_all_tasks(super::script::CONFIG, "w1".parse().unwrap(), [(event, vec![hook])]);
    EngineRules { effects: Some(effects), ..default_rules() }
}

#[test]
fn a_goal_becomes_a_task_of_the_same_commit() {
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
        Script::after(default_rules(), "session a goal=mend\nturn-done a.1 says=complete\nsession b goal=mend");
    let of = |name: &str| (project.session(name).task, project.session(name).hold);
    assert_eq!(of("a").1, TaskHold::Left);
    assert!(matches!(of("b"), (Some(id), TaskHold::Held(_)) if id.0 == 2), "{:?}", of("b"));
    let created = project.log.iter().find(|record| record.kind() == EventType::TaskCreated).unwrap();
    assert_eq!(created.envelope.session.as_ref().map(|name| name.as_str()), Some("a"));
}

#[test]
fn a_task_that_cannot_be_claimed_is_refused_with_the_reason() {
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
    let mut project = Script::after(default_rules(), script);
    let counts = |project: &Script| (project.session("a").iteration, project.session("a").iteration_on_task());
    assert_eq!(counts(&project), (3, 1));
    project.run("turn-done a.3");
    assert_eq!(counts(&project), (4, 2));
}

#[test]
fn the_graph_is_worked_off_by_priority_and_what_becomes_ready_counts() {
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
fn where_nothing_is_ready_no_agent_is_asked() {
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

/// A worktree would not have the work.
#[test]
fn task_begun_in_place_is_not_taken_into_worktree() {
    let taken = |script: &str| {
        let project = Script::after(default_rules(), script);
        (project.task("T1").in_place, project.session("a").task.map(|id| id.0))
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
fn a_task_that_needs_a_person_is_blocked_and_the_others_go_on() {
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
fn a_limit_and_a_stop_leave_a_task_that_can_be_taken_up() {
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
fn the_limit_counts_only_where_something_is_left() {
    let ended = |tasks: &str| {
        let script = format!("{tasks}\nsession a work=graph max=1\nturn-done a.1 says=complete");
        let project = Script::after(default_rules(), &script);
        (project.session("a").ending_kind().unwrap(), project.task("T1").state)
    };
    assert_eq!(ended("add one"), (crate::SessionEndKind::Completed, TaskState::Completed));
    assert_eq!(ended("add one\nadd two"), (crate::SessionEndKind::Limit, TaskState::Completed));
}

#[test]
fn resumed_session_holds_its_task() {
    let project = Script::after(default_rules(), "session a goal=mend\nresume a from=w1 by=w2");
    let lease = project.task("T1").lease.unwrap();
    assert_eq!((lease.owner.as_str(), lease.epoch.0), ("w2", 1));
}

#[test]
fn a_task_that_is_taken_away_ends_the_session_that_was_started_for_it() {
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
fn what_an_agent_says_by_a_command_counts_for_that_turn() {
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
    let done = Script::after(default_rules(), &claimed.replace("--", "turn-done a.1"));
    assert_eq!(done.task("T1").result.as_deref(), Some("all green"));
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
    let project = Script::after(default_rules(), other);
    assert_eq!((project.task("T1").state, project.task("T2").state), (TaskState::Completed, TaskState::Active));
    assert_eq!(project.session("a").iteration, 2, "another task is no claim about its own");
    let of_another = "session b goal=paint by=w2\nsession a goal=mend";
    let mut project = Script::after(default_rules(), of_another);
    assert_eq!(project.run("run=a.1 complete T1"), ["! T1 is held by session `b` (epoch 1)"]);
    project.run("turn-done a.1");
    assert_eq!(project.session("a").iteration, 2, "nor is what is said about the task of another session");
}

/// The command that completed the task runs the hooks, and the session receives their feedback.
#[test]
fn what_hooks_say_about_tasks_goes_to_the_session_of_the_event_or_the_holder() {
    check_with(
        owing(EventType::TaskCompleted),
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
        owing(EventType::TaskUpdated),
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
fn the_end_of_a_task_is_heard_before_the_next_one() {
    check_with(
        owing(EventType::TaskCompleted),
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
fn a_task_whose_lease_has_run_out_is_taken() {
    for session in ["session a task=T1", "session a work=graph"] {
        let mut project = Script::after(default_rules(), "add one\nclaim T1 by=w7 for=60s\nlater 61s");
        let taken = project.run(session);
        for line in ["T1 lease_expired w7 epoch 1", "T1 task_claimed w1 epoch 2"] {
            assert!(taken.iter().any(|event| event == line), "{session}: {taken:?}");
        }
    }
}

#[test]
fn at_its_limit_a_session_takes_no_further_task() {
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

/// No other session takes it up before its new dependency is completed.
#[test]
fn a_task_that_was_given_a_dependency_meanwhile_waits_when_it_is_left() {
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
    let mut project = Script::after(default_rules(), script);
    project.run("run=b.1 complete T1 mine");
    project.run("turn-done a.1 says=complete");
    let task = project.task("T1");
    assert_eq!((task.state, task.result.as_deref()), (TaskState::Completed, Some("all green")));
}
