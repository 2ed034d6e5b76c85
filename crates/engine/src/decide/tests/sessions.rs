//! Sessions and their turns.

use super::script::{ScriptProject, check, check_with, default_rules};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;

#[test]
fn one_turn_runs_at_a_time_and_the_next_follows_by_itself() {
    check(
        "session a
         turn-done a.2
         turn-done a.1
         turn-done a.1
         turn-failed a.2
         later 1s
         advance a
         turn-interrupted a.3
         session a",
        "system config_recorded
         system session_started
         system iteration_started a.1
         system turn_started a.1 to work
         ! cannot claim completion: the turn a.2.0000000000000007 is over
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.2
         system turn_started a.2 to work
         ! cannot claim completion: the turn a.1.0000000000000007 is over
         system iteration_failed
         system iteration_started a.3
         system turn_started a.3 to work
         system iteration_interrupted a.3
         system iteration_started a.4
         system turn_started a.4 to work
         ! session `a` exists already",
    );
}

#[test]
fn ended_session_refuses_commands() {
    check(
        "session a
         turn-done a.1 says=complete
         --
         turn-done a.1
         turn-failed a.1
         turn-interrupted a.1
         stop a
         resume a by=w2
         session a",
        "! cannot claim completion: the turn a.1.0000000000000007 is over
         ! cannot claim completion: the turn a.1.0000000000000007 is over
         ! cannot claim completion: the turn a.1.0000000000000007 is over
         ! session `a` has ended
         ! session `a` has ended
         ! session `a` exists already",
    );
}

#[test]
fn command_for_missing_session_or_deleted_task_is_refused() {
    check(
        "stop a
         resume a by=w2
         turn-done a.1
         session a task=T1
         add one
         delete T1
         --
         session a task=T1",
        "! session `a` cannot work on a deleted task",
    );
    check(
        "stop a\nresume a by=w2\nturn-done a.1\nturn-failed a.1\nturn-interrupted a.1\nsession a task=T1",
        "! there is no session `a`
         ! there is no session `a`
         ! there is no session `a`
         ! there is no session `a`
         ! there is no session `a`
         ! there is no task T1",
    );
}

/// Two processes saw the same owner die: the second one is too late.
#[test]
fn session_is_taken_over_only_from_named_dead_owner() {
    check(
        "session a
         --
         resume a from=w1 by=w2
         resume a from=w1 by=w3
         resume a from=w2 by=w3",
        "system session_resumed by w2
         ! session `a` belongs to another process
         system session_resumed by w3",
    );
}

#[test]
fn resumption_may_raise_iteration_limit() {
    let project = ScriptProject::after(default_rules(), "session a max=1\nresume a by=w2 max=2\nturn-done a.1");
    assert_eq!(project.find_session("a").terms.max_iterations, 2);
    assert_eq!(project.find_session("a").current_turn().unwrap().run.iteration, 2);
    let project = ScriptProject::after(default_rules(), "session a max=1 retries=4\nresume a by=w2");
    let terms = project.find_session("a").terms;
    assert_eq!((terms.max_iterations, terms.max_hook_retries), (1, 4), "the rest stays as it was");
}

#[test]
fn repeated_session_stop_is_refused_before_and_after_end() {
    check(
        "session a
         --
         stop a escalated
         stop a
         turn-done a.1 says=complete
         stop a",
        "system session_stopping Escalated
         ! session `a` is about to end
         system turn_finished
         system promise_detected Complete
         system iteration_interrupted a.1
         system session_ended Escalated
         ! session `a` has ended",
    );
}

#[test]
fn session_events_name_session_and_belong_to_its_task() {
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete";
    let project = ScriptProject::after(default_rules(), script);
    let named: Vec<_> = project
        .log
        .iter()
        .filter(|record| record.envelope.session.is_some())
        .map(|record| format!("{} {} {:?}", record.envelope.node, record.kind(), record.envelope.iteration))
        .collect();
    assert_eq!(
        named,
        [
            "T1 session_started None",
            "T1 task_claimed None",
            "T1 task_started None",
            "T1 iteration_started Some(1)",
            "T1 turn_started Some(1)",
            "T1 turn_finished Some(1)",
            "T1 promise_detected Some(1)",
            "T1 gate_decided Some(1)",
            "T1 iteration_completed Some(1)",
            "T1 task_completed Some(1)",
            "T1 session_ended Some(1)",
        ],
    );
    assert_eq!(project.find_task("T1").last_event, project.log.last().unwrap().seq, "they are part of its history");
}

/// Each event of the loop has the event before it as its cause, and none is deeper than a command.
#[test]
fn session_loop_event_names_preceding_event_as_cause() {
    let project = ScriptProject::after(default_rules(), "session a\nturn-done a.1");
    let causes: Vec<_> =
        project.log.iter().map(|record| (record.kind().name(), record.cause_position().map(|at| at.0))).collect();
    assert_eq!(
        causes,
        [
            ("config_recorded", None),
            ("session_started", None),
            ("iteration_started", Some(2)),
            ("turn_started", Some(3)),
            ("turn_finished", Some(4)),
            ("gate_decided", Some(5)),
            ("iteration_completed", Some(6)),
            ("iteration_started", Some(7)),
            ("turn_started", Some(8)),
        ],
    );
    assert!(project.log.iter().all(|record| record.envelope.metadata.depth == 0));
}

fn rules_with_hook(config: &str, event: EventType) -> EngineRules {
    let hook = HookEffect {
        hook: "tell".to_owned(),
        point: event.name().parse().expect("a hook point"),
        class: HookClass::Other,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    };
    let hooks = [(event, vec![hook])];
    let effects = HookPlan::for_all_tasks(config, "w1".parse().unwrap(), hooks);
    EngineRules { effects: Some(effects), ..default_rules() }
}

#[test]
fn configuration_is_recorded_once_before_first_event_that_uses_it() {
    check_with(
        rules_with_hook("other", EventType::TaskCreated),
        "add one
         add two
         session a config=other
         session b config=third
         session c config=third",
        "system config_recorded
         T1 task_created
         T1 task_ready
         T2 task_created
         T2 task_ready
         system session_started
         system iteration_started a.1
         system turn_started a.1 to work
         system config_recorded
         system session_started
         system iteration_started b.1
         system turn_started b.1 to work
         system session_started
         system iteration_started c.1
         system turn_started c.1 to work",
    );
}

#[test]
fn config_recorded_event_enqueues_no_hooks() {
    check_with(
        rules_with_hook("other", EventType::ConfigRecorded),
        "session a config=other",
        "system config_recorded
         system session_started
         system iteration_started a.1
         system turn_started a.1 to work",
    );
}
