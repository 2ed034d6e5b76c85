//! The conversation that an agent works in, and its events in the log.

use super::script::{ScriptProject, check, default_rules};
use crate::log::event_type::EventType;

#[test]
fn conversation_opening_is_recorded_as_new_loaded_or_anew() {
    check(
        "session a
         --
         talks a.1 c1
         turn-done a.1
         talks a.2 c1
         talks a.2 c1 anew=forgotten
         talks a.2 c2
         turn-interrupted a.2",
        "system conversation_opened c1 New
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.2
         system turn_started a.2 to work
         system conversation_opened c1 Loaded
         system conversation_opened c1 Anew forgotten
         system conversation_opened c2 Anew
         system iteration_interrupted a.2
         system iteration_started a.3
         system turn_started a.3 to work",
    );
}

#[test]
fn session_keeps_last_conversation_and_refuses_one_from_finished_turn() {
    let mut script = ScriptProject::after(default_rules(), "session a\ntalks a.1 c1\nturn-done a.1\ntalks a.2 c2");
    assert_eq!(script.find_session("a").conversation.as_deref(), Some("c2"));
    let refused = script.run_script("talks a.1 c3");
    assert!(refused[0].starts_with('!'), "{refused:?}");
    assert_eq!(script.find_session("a").conversation.as_deref(), Some("c2"));
}

/// Some agents report the usage of a whole conversation: the usage of another conversation is no part of it.
#[test]
fn token_usage_is_counted_per_conversation_and_per_session() {
    let mut script =
        ScriptProject::after(default_rules(), "session a\ntalks a.1 c1\nturn-done a.1 reads=7\ntalks a.2 c1");
    let used = |script: &ScriptProject| script.find_session("a").watch.used_in_conversation.input;
    assert_eq!(used(&script), 7, "it goes on");
    script.run_script("talks a.2 c2 anew=forgotten");
    assert_eq!(used(&script), 0);
    script.run_script("turn-done a.2 reads=5");
    assert_eq!((used(&script), script.find_session("a").watch.used.input), (5, 12));
}

#[test]
fn next_task_starts_new_conversation() {
    let mut script = ScriptProject::after(
        default_rules(),
        "add one
         add two
         session a work=graph
         talks a.1 c1",
    );
    assert_eq!(script.find_session("a").conversation.as_deref(), Some("c1"));
    script.run_script("turn-done a.1 says=complete");
    assert_eq!(script.find_session("a").conversation, None);
    assert_eq!(script.find_session("a").last_turn, None, "what was said last was said about the other one");
    let opened = script.run_script("talks a.2 c2");
    assert_eq!(opened, ["T2 conversation_opened c2 New"]);
}

/// After any end of the former session, the agent's knowledge is kept.
#[test]
fn next_session_of_a_task_goes_on_with_its_conversation() {
    let talks = |begin: &str, next: &str| {
        let project = ScriptProject::after(default_rules(), &format!("add one\n{begin}\nsession b task=T1 {next}"));
        project.find_session("b").conversation
    };
    for begin in [
        "session a task=T1\ntalks a.1 c1\nstop a\nturn-interrupted a.1",
        "session a task=T1 max=1\ntalks a.1 c1\nturn-done a.1",
        "session a work=graph\ntalks a.1 c1\nforced release T1\nstop a\nturn-interrupted a.1",
    ] {
        assert_eq!(talks(begin, "").as_deref(), Some("c1"), "{begin}");
        assert_eq!(talks(begin, "agent=claude"), None, "{begin}: another agent does not know it");
        assert_eq!(talks(begin, "fresh=true"), None, "{begin}: it begins anew");
    }
    let broken = "session a task=T1 failures=1\ntalks a.1 c1\nturn-failed a.1\nanswer T1 continue";
    assert_eq!(talks(broken, ""), None, "it may be the conversation that fails");
}

#[test]
fn conversation_of_the_session_before_is_loaded() {
    let begin = "add one\nsession a task=T1\ntalks a.1 c1\nturn-done a.1 reads=7\nstop a\nturn-interrupted a.2\nsession b task=T1";
    let mut project = ScriptProject::after(default_rules(), begin);
    assert_eq!(project.find_session("b").watch.used_in_conversation.input, 7);
    project.run_script("talks b.1 c1");
    assert_eq!(project.event_data(EventType::ConversationOpened)["opening"], "loaded");
}

#[test]
fn session_of_older_version_does_not_go_on_with_conversation_of_task() {
    let script = "add one\nsession a task=T1\ntalks a.1 c1\nstop a\nturn-interrupted a.1\nsession b task=T1";
    let project = ScriptProject::after(default_rules(), script);
    assert_eq!(project.find_session("b").conversation.as_deref(), Some("c1"));
    let (mut older, task) = (project.find_session("b"), project.find_task("T1"));
    (older.keeps_feedback, older.conversation) = (false, None);
    older.resume_conversation(task.conversation.as_ref());
    assert_eq!(older.conversation, None);
}
