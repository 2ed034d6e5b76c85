//! Sessions and their turns.

use super::script::{Script, check, check_with, default_rules};
use crate::debt::{HookClass, OnFailure, OwedHook};
use crate::decide::{Effects, Rules};
use crate::event::EventType;

#[test]
fn one_turn_runs_at_a_time() {
    check(
        "session a
         --
         turn a by=w1
         turn a by=w1
         end a
         turn-done a.2
         turn-done a.1
         turn-done a.1
         turn a by=w2
         turn-failed a.2
         end a
         turn a by=w1
         end a
         session a",
        "system iteration_started a.1
         ! session `a` is in the middle of a turn
         ! session `a` is in the middle of a turn
         ! the turn a.2.0000000000000007 is over; what it claims comes too late
         system iteration_completed
         ! the turn a.1.0000000000000007 is over; what it claims comes too late
         system iteration_started a.2
         system iteration_failed
         system session_ended
         ! session `a` has ended
         ! session `a` has ended
         ! session `a` exists already",
    );
}

#[test]
fn there_has_to_be_a_session_and_its_task() {
    check(
        "turn a by=w1\nend a\nturn-done a.1\nsession a task=T1",
        "! there is no session `a`
         ! there is no session `a`
         ! there is no session `a`
         ! there is no task T1",
    );
}

#[test]
fn the_events_of_a_session_name_it_and_belong_to_its_task() {
    let project = Script::after(default_rules(), "add one\nsession a task=T1\nturn a by=w1\nturn-done a.1\nend a");
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
            "T1 iteration_started Some(1)",
            "T1 iteration_completed Some(1)",
            "T1 session_ended Some(1)",
        ],
    );
    assert_eq!(project.task("T1").last_event, project.log.last().unwrap().seq, "they are part of its history");
}

fn owing(config: &str, event: EventType) -> Rules {
    let hook = OwedHook { hook: "tell".to_owned(), class: HookClass::Other, on_failure: OnFailure::Ignore };
    let hooks = [(event, vec![hook])].into();
    let effects = Effects { config: config.to_owned(), owner: "w1".parse().unwrap(), hooks };
    Rules { effects: Some(effects), ..default_rules() }
}

#[test]
fn a_configuration_is_recorded_once_before_it_is_first_named() {
    check_with(
        owing("other", EventType::TaskCreated),
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
         system config_recorded
         system session_started
         system session_started",
    );
}

#[test]
fn the_record_of_a_configuration_owes_nothing() {
    check_with(
        owing("other", EventType::ConfigRecorded),
        "session a config=other",
        "system config_recorded\nsystem session_started",
    );
}
