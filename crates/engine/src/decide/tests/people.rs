//! Messages of people to a running session, and how they end it from outside.

use super::script::{Script, check, check_with, default_rules};
use super::session_loop::hooks;
use crate::command::{Command, TaskPatch};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::outbox::EffectKind;
use crate::log::event::EventRecord;
use crate::log::event_type::EventType;
use crate::session::TurnPurpose;

/// Returns rules in which `check` judges every turn of a session of `w1`, and `ready` prepares it.
fn gated() -> EngineRules {
    let hook = |hook: &str, point: &str, class| HookEffect {
        hook: hook.to_owned(),
        point: point.parse().expect("a hook point"),
        class,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    };
    let hooks = [
        (EventType::IterationStarted, vec![hook("ready", "pre_iteration", HookClass::Other)]),
        (EventType::TurnFinished, vec![hook("check", "stop", HookClass::Gate)]),
        (EventType::SessionEnded, vec![hook("bye", "session_end", HookClass::Other)]),
    ];
    EngineRules { effects: Some(HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), hooks)), ..default_rules() }
}

#[test]
fn a_message_waits_for_the_next_turn_and_is_in_one_finished_turn() {
    check(
        "session a
         say a use-tabs
         turn-interrupted a.1
         --
         say a and-hurry
         turn-done a.2
         turn-done a.3",
        "system message_added by ada
         system feedback_queued and-hurry from ada
         system feedback_delivered use-tabs
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.3
         system turn_started a.3 to work and-hurry
         system feedback_delivered and-hurry
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.4
         system turn_started a.4 to work",
    );
}

#[test]
fn what_comes_again_comes_before_what_was_said_since() {
    check(
        "session a
         say a use-tabs
         turn-done a.1
         --
         say a and-hurry
         turn-interrupted a.2",
        "system message_added by ada
         system feedback_queued and-hurry from ada
         system iteration_interrupted a.2
         system iteration_started a.3
         system turn_started a.3 to work use-tabs? and-hurry",
    );
}

#[test]
fn a_claim_of_an_agent_that_has_not_heard_a_person_ends_nothing() {
    for claim in ["complete", "blocked", "escalate"] {
        let mut project = Script::new(default_rules());
        let script = format!("session a\nsay a wait\n--\nturn-done a.1 says={claim}");
        let answered = project.run(&script);
        assert!(answered.contains(&"system gate_decided Pass: Continue".to_owned()), "{answered:?}");
        assert!(answered.contains(&"system turn_started a.2 to work wait".to_owned()), "{answered:?}");
        project.run(&format!("turn-done a.2 says={claim}"));
        assert!(project.session("a").is_over(), "now it has heard it");
    }
}

/// A person's message is never answered with "the limit", and no work is thrown away for it.
#[test]
fn a_message_in_the_last_iteration_is_heard_in_one_more() {
    let mut project = Script::new(default_rules());
    let answered = project.run("session a max=1\nsay a use-tabs\nturn-done a.1 says=complete");
    assert!(answered.contains(&"system turn_started a.2 to work use-tabs".to_owned()), "{answered:?}");
    let answered = project.run("turn-done a.2 says=complete");
    assert!(answered.contains(&"system session_ended Completed".to_owned()), "{answered:?}");

    let mut project = Script::new(default_rules());
    let answered = project.run("session a max=1\nsay a use-tabs\nturn-done a.1\n--\nturn-done a.2");
    let limit = "system session_ended Limit, one iteration is the limit";
    assert!(answered.iter().any(|line| line.starts_with(limit)), "there is one more, and no second: {answered:?}");
}

/// A claim about the old goal is no claim about the new one.
#[test]
fn an_agent_hears_that_a_person_has_changed_its_task() {
    let mut project = Script::after(default_rules(), "add one\nsession a task=T1");
    assert_eq!(project.run("relabel T1 labels=x"), ["T1 task_updated"], "that is no other work");
    let told = project.run("reword T1 three");
    assert!(told.len() == 2 && told[1].starts_with("T1 feedback_queued The task was changed"), "{told:?}");
    let patch = TaskPatch { deliverables: Some(vec!["a plan".to_owned()]), ..TaskPatch::default() };
    assert_eq!(project.ask(&Command::UpdateTask { id: "T1".parse().unwrap(), patch }).unwrap().len(), 2);
    let answered = project.run("turn-done a.1 says=complete");
    assert!(answered.iter().any(|line| line.starts_with("T1 turn_started a.2 to work The task was")), "{answered:?}");
    let mut project = Script::after(default_rules(), "add one");
    assert_eq!(project.run("reword T1 two"), ["T1 task_updated"], "no agent works on it");
}

#[test]
fn a_message_starts_the_count_of_send_backs_again_and_an_agents_words_do_not() {
    let script = "session a retries=1
         hook ready
         turn-done a.1 says=complete
         hook check out=block tells=red";
    let mut project = Script::after(gated(), script);
    assert_eq!(project.session("a").retries, 1);
    project.run("run=a.1 say a ada-is-content");
    assert_eq!(project.session("a").retries, 1, "an agent is no person");
    project.run("say a one-more-time");
    assert_eq!(project.session("a").retries, 0);
    assert!(project.session("a").sent_back.is_empty());
    project.run("turn-done a.1 says=complete\nhook check out=block tells=red");
    let turn = project.session("a").current_turn().cloned().unwrap();
    assert_eq!((turn.purpose, turn.feedback.len()), (TurnPurpose::SendBack, 3));
}

#[test]
fn the_same_words_are_counted_from_a_persons_message_on() {
    let red = "turn-done a.1 says=complete\nhook check out=block tells=red\n";
    let after = |between: &str| {
        let script = format!("session a\nhook ready\n{red}{red}{between}\n{red}");
        let mut decided = Script::new(gated()).run(&script);
        decided.retain(|line| line.contains("gate_decided"));
        decided.pop().unwrap()
    };
    assert_eq!(after("say a look-at-the-pump"), "system gate_decided Block: send back 1");
    let early = "system gate_decided Block: Escalated, `check` blocks 3 times in a row with the same words";
    assert_eq!(after("run=a.1 say a ada-is-content"), early, "an agent is no person");
}

#[test]
fn message_names_its_author() {
    let mut project = Script::after(gated(), "session a\nbegin ready");
    let voices = |project: &Script| project.data(EventType::FeedbackQueued);
    project.run("say a hello");
    assert_eq!((&voices(&project)["source"], &voices(&project)["voice"]), (&"ada".into(), &"person".into()));
    project.run("run=a.1 say a hello");
    assert_eq!(voices(&project)["voice"], "agent");
    assert_eq!(voices(&project)["source"], "the agent of session a");
    project.run("via=ready say a hello");
    assert_eq!((&voices(&project)["source"], voices(&project).get("voice")), (&"ready".into(), None));
    project.crash();
}

#[test]
fn nothing_is_said_to_what_has_ended_or_hears_its_last() {
    check(
        "say a too-soon
         session a
         say a listen
         stop a
         turn-interrupted a.1
         say a too-late
         cancel a",
        "! there is no session `a`
         system config_recorded
         system session_started
         system iteration_started a.1
         system turn_started a.1 to work
         system message_added by ada
         system feedback_queued listen from ada
         system session_stopping Cancelled
         system iteration_interrupted a.1
         system session_ended Cancelled
         ! session `a` has ended
         ! session `a` has ended",
    );
}

/// A cancellation enqueues nothing: the session's owner decides what follows.
#[test]
fn cancelled_session_is_ended_by_its_owner() {
    check_with(
        gated(),
        "session a
         --
         cancel a
         cancel a
         advance a
         advance a",
        "system session_stopping Cancelled
         ! session `a` is about to end
         system hook_finished ready Skip
         system iteration_interrupted a.1
         system session_ended Cancelled
         ! session `a` waits for something else",
    );
    check_with(
        gated(),
        "session a
         begin ready
         --
         cancel a
         advance a
         finish ready out=cancelled",
        "system session_stopping Cancelled
         ! session `a` waits for something else
         system hook_finished ready Cancelled
         system iteration_interrupted a.1
         system session_ended Cancelled",
    );
    check_with(
        gated(),
        "session a
         hook ready
         --
         cancel a
         turn-interrupted a.1",
        "system session_stopping Cancelled
         system iteration_interrupted a.1
         system session_ended Cancelled",
    );
}

/// A caller that could end sessions could complete the tasks that they held. A hook has a person's rights.
#[test]
fn an_agent_cancels_no_session() {
    let mut project = Script::after(gated(), "session a\nsession b\nhook ready");
    let refused = ["! only a person can cancel a session"];
    for line in ["run=a.1 cancel a", "run=a.1 cancel b", "run=elsewhere.1 cancel b", "forced cancel b run=a.1"] {
        assert_eq!(project.run(line).len(), 1, "{line}");
        assert!(project.run(line)[0].starts_with("! only a person can "), "{line}");
    }
    assert_eq!(project.run("run=a.1 cancel b"), refused);
    let hook = project.effects().into_iter().find(|effect| matches!(effect.kind, EffectKind::Hook(_))).unwrap().id;
    let cancelled = project.run(&format!("begin {hook}\nvia={hook} run=a.1 cancel a"));
    assert_eq!(cancelled.last().unwrap(), "system session_stopping Cancelled");
}

#[test]
fn an_answer_says_how_a_task_goes_on() {
    check(
        "add one
         block T1 which-key
         --
         answer T1 continue the-staging-key
         answer T1 continue again
         block T1 still
         answer T1 ignore-hook ignores=check
         start T1
         continue T1 half-done
         answer T1 retry
         answer T1 ignore-hook",
        "T1 task_answered continue the-staging-key
         T1 task_unblocked
         T1 task_ready
         ! T1 does not wait for the answer `continue`: it is ready
         T1 task_blocked still
         T1 task_answered ignore-hook without a word
         T1 task_unblocked
         T1 task_ready
         T1 task_started
         T1 task_needs_continuation
         T1 task_answered retry without a word
         ! T1 does not wait for the answer `ignore-hook`: it is needs_continuation",
    );
    check(
        "add one
         add two after=T1
         block T1 which-key
         --
         answer T1 reject never
         answer T1 reject again
         answer T1 continue now
         answer T1 retry with-more-time",
        "T1 task_answered reject never
         T1 task_failed
         T2 task_blocked by T1
         T1 feedback_queued
         ! T1 does not wait for the answer `reject`: it is failed
         ! T1 does not wait for the answer `continue`: it is failed
         T1 task_answered retry with-more-time
         T1 task_reopened from failed
         T1 task_ready
         T2 task_unblocked",
    );
}

#[test]
fn words_of_rejection_open_next_session_of_task() {
    let script = "add one\nblock T1 which-key\nanswer T1 reject no-key\nanswer T1 retry";
    let mut project = Script::after(default_rules(), script);
    let begun = project.run("session a task=T1");
    assert_eq!(begun.last().unwrap(), "T1 turn_started a.1 to work The work was rejected: no-key");
}

#[test]
fn answer_waits_for_next_worker() {
    let script = "add one\nblock T1 which-key\nanswer T1 ignore-hook use-it ignores=check";
    let mut project = Script::after(default_rules(), script);
    let answer = project.task("T1").answer.unwrap();
    assert_eq!((answer.by.as_str(), answer.text.as_deref()), ("ada", Some("use-it")));
    assert_eq!(answer.ignores, ["check"]);
    project.crash();
    project.run("block T1 again\nanswer T1 continue");
    assert_eq!(project.task("T1").answer, None, "the newer answer has nothing to say");
    project.run("block T1 again\nanswer T1 continue hello\ncomplete T1");
    assert_eq!(project.task("T1").answer, None);
}

/// Approving is an override, and the log says so. No caller inside a run answers for a person.
#[test]
fn only_a_person_answers() {
    check(
        "add one
         block T1 red
         session a
         --
         answer T1 approve
         run=a.1 answer T1 continue
         forced answer T1 approve it-is-fine",
        "! cannot complete T1: it is blocked, and that is possible only from ready, active, submitted or needs_continuation
         ! only a person can answer
         T1 task_answered approve it-is-fine (forced)
         T1 task_completed (forced)",
    );
}

/// Neither does a hook, which otherwise has a person's rights.
#[test]
fn hook_cannot_answer_for_person() {
    let script = "add one\nblock T1 red\nsession a\nbegin ready";
    let mut project = Script::after(gated(), script);
    let answered = project.run("via=ready answer T1 continue\nvia=ready merged T1 abc\nvia=ready tell a ignore");
    assert_eq!(
        answered,
        [
            "! only a person can answer",
            "! only a person can merge",
            "! session `a` asks a person, not an agent or a hook"
        ]
    );
}

/// The next session of the task receives the answer first, and once.
#[test]
fn the_next_session_begins_with_the_answer() {
    check(
        "add one
         session a task=T1
         turn-done a.1 says=blocked
         answer T1 continue use-the-staging-key
         --
         session b task=T1
         turn-done b.1 says=complete",
        "T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued use-the-staging-key from ada
         T1 iteration_started b.1
         T1 turn_started b.1 to work use-the-staging-key
         T1 feedback_delivered use-the-staging-key
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T1 session_ended Completed",
    );
    let script = "add one\nblock T1 why\nanswer T1 continue so\nclaim T1 by=w2 for=60s";
    assert!(Script::after(default_rules(), script).task("T1").answer.is_some(), "a worker by hand reads it");
    let script =
        "add one\nblock T1 why\nanswer T1 continue so\nsession a task=T1 max=1\nturn-done a.1\nsession b task=T1";
    let queued = |record: &&EventRecord| record.kind() == EventType::FeedbackQueued;
    assert_eq!(Script::after(default_rules(), script).log.iter().filter(queued).count(), 1, "it was heard");
}

/// An agent that fails receives no messages: a person's message goes to the next one.
#[test]
fn what_a_person_has_said_outlives_a_session_that_did_not_hear_it() {
    let script = "add one
         session a task=T1 failures=2
         say a use-tabs
         turn-failed a.1 no-network
         later 1s
         advance a
         --
         turn-failed a.2 no-network
         answer T1 continue and-hurry
         session b task=T1
         turn-done b.1";
    check(
        script,
        "T1 iteration_failed
         T1 task_blocked circuit breaker: 2 iterations failed in a row, the last with: no-network
         T1 session_ended Escalated, circuit breaker: 2 iterations failed in a row, the last with: no-network
         T1 task_answered continue and-hurry
         T1 task_unblocked
         T1 task_ready
         T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 feedback_queued and-hurry from ada
         T1 iteration_started b.1
         T1 turn_started b.1 to work use-tabs? and-hurry
         T1 feedback_delivered use-tabs and-hurry
         T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 iteration_started b.2
         T1 turn_started b.2 to work",
    );
    let heard = Script::after(default_rules(), &script.replace("--\n", ""));
    assert_eq!(heard.task("T1").unheard, []);
}

#[test]
fn what_a_person_has_said_to_the_session_before_comes_before_what_was_said_since() {
    let script = "add one
         session a task=T1 failures=1
         hook greet
         say a use-tabs
         turn-failed a.1
         answer T1 continue
         session b work=graph
         hook greet tells=welcome";
    let begun = Script::new(hooks(&["greet"])).run(script);
    assert_eq!(begun.last().unwrap(), "T1 turn_started b.1 to work use-tabs welcome");
}

/// A session of a task whose hook `check` a person wants to ignore, up to its first turn.
const IGNORING: &str = "add one
         session a task=T1 retries=0
         hook ready
         turn-done a.1 says=complete
         hook check out=block
         hook bye
         answer T1 ignore-hook ignores=check
         session b task=T1 retries=0
         hook ready";
const LET_PASS: &str = "Pass: Completed, `check` did not pass, and a person let it pass";

#[test]
fn a_hook_that_is_to_be_ignored_is_not_counted_where_the_work_is_done() {
    let mut project = Script::after(gated(), &format!("{IGNORING}\nturn-done b.1 says=complete"));
    assert_eq!(project.session("b").ignores, ["check"]);
    let answered = project.run("hook check out=block tells=red");
    assert!(answered.contains(&format!("T1 gate_decided {LET_PASS}")), "{answered:?}");
    assert!(!answered.iter().any(|line| line.contains("feedback_queued")), "{answered:?}");
}

#[test]
fn a_turn_that_claims_nothing_or_has_not_heard_a_person_leaves_what_is_to_be_ignored() {
    for turn in ["turn-done b.1", "say b use-tabs\nturn-done b.1 says=complete"] {
        let script = format!("{IGNORING}\n{turn}\nhook check out=block\nhook ready");
        let mut project = Script::after(gated(), &script);
        assert_eq!(project.session("b").ignores, ["check"], "{turn}");
        project.run("turn-done b.2 says=complete");
        let answered = project.run("hook check out=block");
        assert!(answered.contains(&format!("T1 gate_decided {LET_PASS}")), "{turn}: {answered:?}");
    }
}

#[test]
fn next_blocker_does_not_bring_back_the_one_that_is_ignored() {
    let mut rules = gated();
    let hooks = rules.effects.as_mut().unwrap().hooks.get_mut(&EventType::TurnFinished).unwrap();
    let mut second = hooks[0].clone();
    second.hook.hook = "second".to_owned();
    hooks.push(second);
    let script = IGNORING.replace("hook bye", "hook second\nhook bye");
    let script = format!("{script}\nturn-done b.1 says=complete\nhook check out=block\nhook second out=block");
    let mut project = Script::after(rules, &script);
    assert_eq!(project.task("T1").blocked.unwrap().hooks, ["check", "second"]);
    // If the agent goes on, the waiver ends as before.
    project.run("answer T1 continue\nhook bye\nsession c task=T1 retries=0\nhook ready\nturn-done c.1 says=complete");
    project.run("hook check\nhook second out=block");
    assert_eq!(project.task("T1").blocked.unwrap().hooks, ["second"]);
}

/// The hook counts again at the next gate after the work was called done.
#[test]
fn what_was_ignored_once_counts_again() {
    let script = format!(
        "{IGNORING}
         turn-done b.1 says=complete
         hook check out=continue
         hook ready
         turn-done b.2 says=complete"
    );
    let mut project = Script::after(gated(), &script);
    assert_eq!(project.session("b").ignores, [""; 0]);
    let answered = project.run("hook check out=block");
    assert!(answered.iter().any(|line| line.starts_with("T1 gate_decided Block: Escalated")), "{answered:?}");
}

/// The question to the person was only about the block.
#[test]
fn ignoring_a_hook_ignores_that_it_blocks_and_not_that_it_asks_for_a_person() {
    for (outcome, expected) in [
        ("block", LET_PASS),
        ("failure", LET_PASS),
        ("failure unstarted=1", LET_PASS),
        ("timed_out", LET_PASS),
        ("success", "Pass: Completed"),
        ("continue", "Continue: Continue"),
        ("escalate", "Escalate: Escalated, `check` asks for a person: protected"),
    ] {
        let mut project = Script::after(gated(), &format!("{IGNORING}\nturn-done b.1 says=complete"));
        let answered = project.run(&format!("hook check out={outcome} message=protected"));
        assert!(answered.contains(&format!("T1 gate_decided {expected}")), "{outcome}: {answered:?}");
    }
}
