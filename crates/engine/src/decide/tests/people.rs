//! Messages of people to a running session, and the end of a session from outside.

use super::script::{ScriptProject, check, check_with, default_rules};
use super::session_loop::loop_rules;
use crate::command::{Command, TaskPatch};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::outbox::EffectKind;
use crate::log::event::EventRecord;
use crate::log::event_type::EventType;
use crate::session::TurnPurpose;

/// Returns rules in which `check` judges every turn of a session of `w1`, and `ready` prepares it.
fn gated_rules() -> EngineRules {
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
fn message_waits_for_next_turn_and_is_delivered_once() {
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
fn redelivered_message_precedes_newer_messages() {
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
fn agent_claim_with_undelivered_message_does_not_end_session() {
    for claim in ["complete", "blocked", "escalate"] {
        let mut project = ScriptProject::new(default_rules());
        let script = format!("session a\nsay a wait\n--\nturn-done a.1 says={claim}");
        let answered = project.run_script(&script);
        assert!(answered.contains(&"system gate_decided Pass: Continue".to_owned()), "{answered:?}");
        assert!(answered.contains(&"system turn_started a.2 to work wait".to_owned()), "{answered:?}");
        project.run_script(&format!("turn-done a.2 says={claim}"));
        assert!(project.find_session("a").is_over(), "now it has heard it");
    }
}

/// A person's message extends a session at its limit, so that the agent answers and no work is lost.
#[test]
fn message_in_last_iteration_extends_session_by_one_iteration() {
    let mut project = ScriptProject::new(default_rules());
    let answered = project.run_script("session a max=1\nsay a use-tabs\nturn-done a.1 says=complete");
    assert!(answered.contains(&"system turn_started a.2 to work use-tabs".to_owned()), "{answered:?}");
    let answered = project.run_script("turn-done a.2 says=complete");
    assert!(answered.contains(&"system session_ended Completed".to_owned()), "{answered:?}");

    let mut project = ScriptProject::new(default_rules());
    let answered = project.run_script("session a max=1\nsay a use-tabs\nturn-done a.1\n--\nturn-done a.2");
    let limit = "system session_ended Limit, one iteration is the limit";
    assert!(answered.iter().any(|line| line.starts_with(limit)), "there is one more, and no second: {answered:?}");
}

/// A claim about the old goal is no claim about the new one.
#[test]
fn agent_receives_feedback_when_person_changes_its_task() {
    let mut project = ScriptProject::after(default_rules(), "add one\nsession a task=T1");
    assert_eq!(project.run_script("relabel T1 labels=x"), ["T1 task_updated"], "that is no other work");
    let lines = project.run_script("reword T1 three");
    assert!(lines.len() == 2 && lines[1].starts_with("T1 feedback_queued The task was changed"), "{lines:?}");
    let patch = TaskPatch { deliverables: Some(vec!["a plan".to_owned()]), ..TaskPatch::default() };
    assert_eq!(project.commit_as_person(&Command::UpdateTask { id: "T1".parse().unwrap(), patch }).unwrap().len(), 2);
    let answered = project.run_script("turn-done a.1 says=complete");
    assert!(answered.iter().any(|line| line.starts_with("T1 turn_started a.2 to work The task was")), "{answered:?}");
    let mut project = ScriptProject::after(default_rules(), "add one");
    assert_eq!(project.run_script("reword T1 two"), ["T1 task_updated"], "no agent works on it");
}

#[test]
fn person_message_resets_send_back_count_unlike_agent_message() {
    let script = "session a retries=1
         hook ready
         turn-done a.1 says=complete
         hook check out=block tells=red";
    let mut project = ScriptProject::after(gated_rules(), script);
    assert_eq!(project.find_session("a").retries, 1);
    project.run_script("run=a.1 say a ada-is-content");
    assert_eq!(project.find_session("a").retries, 1, "an agent is no person");
    project.run_script("say a one-more-time");
    assert_eq!(project.find_session("a").retries, 0);
    assert!(project.find_session("a").sent_back.is_empty());
    project.run_script("turn-done a.1 says=complete\nhook check out=block tells=red");
    let turn = project.find_session("a").current_turn().cloned().unwrap();
    assert_eq!((turn.purpose, turn.feedback.len()), (TurnPurpose::SendBack, 3));
}

#[test]
fn person_message_resets_repeated_block_count_unlike_agent_message() {
    let red = "turn-done a.1 says=complete\nhook check out=block tells=red\n";
    let after = |between: &str| {
        let script = format!("session a\nhook ready\n{red}{red}{between}\n{red}");
        let mut decided = ScriptProject::new(gated_rules()).run_script(&script);
        decided.retain(|line| line.contains("gate_decided"));
        decided.pop().unwrap()
    };
    assert_eq!(after("say a look-at-the-pump"), "system gate_decided Block: send back 1");
    let early = "system gate_decided Block: Escalated, `check` blocks 3 times in a row with the same reason";
    assert_eq!(after("run=a.1 say a ada-is-content"), early, "an agent is no person");
}

#[test]
fn message_names_its_author() {
    let mut project = ScriptProject::after(gated_rules(), "session a\nbegin ready");
    let voices = |project: &ScriptProject| project.event_data(EventType::FeedbackQueued);
    project.run_script("say a hello");
    assert_eq!((&voices(&project)["source"], &voices(&project)["voice"]), (&"ada".into(), &"person".into()));
    project.run_script("run=a.1 say a hello");
    assert_eq!(voices(&project)["voice"], "agent");
    assert_eq!(voices(&project)["source"], "the agent of session a");
    project.run_script("via=ready say a hello");
    assert_eq!((&voices(&project)["source"], voices(&project).get("voice")), (&"ready".into(), None));
    project.simulate_crash();
}

#[test]
fn message_to_missing_or_ended_session_is_refused() {
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
        gated_rules(),
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
        gated_rules(),
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
        gated_rules(),
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
fn agent_cannot_cancel_any_session_but_hook_can() {
    let mut project = ScriptProject::after(gated_rules(), "session a\nsession b\nhook ready");
    let refused = ["! only a person can cancel a session"];
    for line in ["run=a.1 cancel a", "run=a.1 cancel b", "run=elsewhere.1 cancel b", "forced cancel b run=a.1"] {
        assert_eq!(project.run_script(line).len(), 1, "{line}");
        assert!(project.run_script(line)[0].starts_with("! only a person can "), "{line}");
    }
    assert_eq!(project.run_script("run=a.1 cancel b"), refused);
    let hook =
        project.pending_effects().into_iter().find(|effect| matches!(effect.kind, EffectKind::Hook(_))).unwrap().id;
    let cancelled = project.run_script(&format!("begin {hook}\nvia={hook} run=a.1 cancel a"));
    assert_eq!(cancelled.last().unwrap(), "system session_stopping Cancelled");
}

#[test]
fn answer_unblocks_fails_or_reopens_task_that_waits_for_it() {
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
    let mut project = ScriptProject::after(default_rules(), script);
    let begun = project.run_script("session a task=T1");
    assert_eq!(begun.last().unwrap(), "T1 turn_started a.1 to work The work was rejected: no-key");
}

#[test]
fn answer_waits_for_next_worker() {
    let script = "add one\nblock T1 which-key\nanswer T1 ignore-hook use-it ignores=check";
    let mut project = ScriptProject::after(default_rules(), script);
    let answer = project.find_task("T1").answer.unwrap();
    assert_eq!((answer.by.as_str(), answer.text.as_deref()), ("ada", Some("use-it")));
    assert_eq!(answer.ignores, ["check"]);
    project.simulate_crash();
    project.run_script("block T1 again\nanswer T1 continue");
    assert_eq!(project.find_task("T1").answer, None, "the newer answer has nothing to say");
    project.run_script("block T1 again\nanswer T1 continue hello\ncomplete T1");
    assert_eq!(project.find_task("T1").answer, None);
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

/// A hook, which otherwise has a person's rights, cannot answer for a person either.
#[test]
fn hook_cannot_answer_for_person() {
    let script = "add one\nblock T1 red\nsession a\nbegin ready";
    let mut project = ScriptProject::after(gated_rules(), script);
    let answered = project.run_script("via=ready answer T1 continue\nvia=ready merged T1 abc\nvia=ready tell a ignore");
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
fn next_session_receives_answer_once_and_in_first_turn() {
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
    assert!(
        ScriptProject::after(default_rules(), script).find_task("T1").answer.is_some(),
        "a worker by hand reads it"
    );
    let script =
        "add one\nblock T1 why\nanswer T1 continue so\nsession a task=T1 max=1\nturn-done a.1\nsession b task=T1";
    let queued = |record: &&EventRecord| record.kind() == EventType::FeedbackQueued;
    assert_eq!(ScriptProject::after(default_rules(), script).log.iter().filter(queued).count(), 1, "it was heard");
}

/// An agent that fails receives no messages: a person's message goes to the next one.
#[test]
fn message_undelivered_by_failed_session_reaches_next_session() {
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
    let heard = ScriptProject::after(default_rules(), &script.replace("--\n", ""));
    assert_eq!(heard.find_task("T1").undelivered_feedback, []);
}

#[test]
fn undelivered_message_of_previous_session_precedes_new_hook_feedback() {
    let script = "add one
         session a task=T1 failures=1
         hook greet
         say a use-tabs
         turn-failed a.1
         answer T1 continue
         session b work=graph
         hook greet tells=welcome";
    let begun = ScriptProject::new(loop_rules(&["greet"])).run_script(script);
    assert_eq!(begun.last().unwrap(), "T1 turn_started b.1 to work use-tabs welcome");
}

/// A session of a task whose hook `check` a person wants to ignore, up to its first turn.
const IGNORED_CHECK: &str = "add one
         session a task=T1 retries=0
         hook ready
         turn-done a.1 says=complete
         hook check out=block
         hook bye
         answer T1 ignore-hook ignores=check
         session b task=T1 retries=0
         hook ready";
const WAIVED_PASS: &str = "Pass: Completed, `check` did not pass, and a person let it pass";

#[test]
fn hook_ignored_by_answer_does_not_block_completion_claim() {
    let mut project = ScriptProject::after(gated_rules(), &format!("{IGNORED_CHECK}\nturn-done b.1 says=complete"));
    assert_eq!(project.find_session("b").ignored_hooks, ["check"]);
    let answered = project.run_script("hook check out=block tells=red");
    assert!(answered.contains(&format!("T1 gate_decided {WAIVED_PASS}")), "{answered:?}");
    assert!(!answered.iter().any(|line| line.contains("feedback_queued")), "{answered:?}");
}

#[test]
fn hook_stays_ignored_after_turn_without_valid_completion_claim() {
    for turn in ["turn-done b.1", "say b use-tabs\nturn-done b.1 says=complete"] {
        let script = format!("{IGNORED_CHECK}\n{turn}\nhook check out=block\nhook ready");
        let mut project = ScriptProject::after(gated_rules(), &script);
        assert_eq!(project.find_session("b").ignored_hooks, ["check"], "{turn}");
        project.run_script("turn-done b.2 says=complete");
        let answered = project.run_script("hook check out=block");
        assert!(answered.contains(&format!("T1 gate_decided {WAIVED_PASS}")), "{turn}: {answered:?}");
    }
}

#[test]
fn next_blocker_does_not_bring_back_the_one_that_is_ignored() {
    let mut rules = gated_rules();
    let hooks = rules.effects.as_mut().unwrap().hooks.get_mut(&EventType::TurnFinished).unwrap();
    let mut second = hooks[0].clone();
    second.hook.hook = "second".to_owned();
    hooks.push(second);
    let script = IGNORED_CHECK.replace("hook bye", "hook second\nhook bye");
    let script = format!("{script}\nturn-done b.1 says=complete\nhook check out=block\nhook second out=block");
    let mut project = ScriptProject::after(rules, &script);
    assert_eq!(project.find_task("T1").blocked.unwrap().hooks, ["check", "second"]);
    // If the agent continues, the waiver ends as before.
    project.run_script(
        "answer T1 continue\nhook bye\nsession c task=T1 retries=0\nhook ready\nturn-done c.1 says=complete",
    );
    project.run_script("hook check\nhook second out=block");
    assert_eq!(project.find_task("T1").blocked.unwrap().hooks, ["second"]);
}

/// The hook counts again at the next gate after the claim of completion.
#[test]
fn hook_ignored_once_blocks_again_at_next_gate() {
    let script = format!(
        "{IGNORED_CHECK}
         turn-done b.1 says=complete
         hook check out=continue
         hook ready
         turn-done b.2 says=complete"
    );
    let mut project = ScriptProject::after(gated_rules(), &script);
    assert_eq!(project.find_session("b").ignored_hooks, [""; 0]);
    let answered = project.run_script("hook check out=block");
    assert!(answered.iter().any(|line| line.starts_with("T1 gate_decided Block: Escalated")), "{answered:?}");
}

/// The question to the person was only about the block.
#[test]
fn ignoring_a_hook_ignores_that_it_blocks_and_not_that_it_asks_for_a_person() {
    for (outcome, expected) in [
        ("block", WAIVED_PASS),
        ("failure", WAIVED_PASS),
        ("failure unstarted=1", WAIVED_PASS),
        ("timed_out", WAIVED_PASS),
        ("success", "Pass: Completed"),
        ("continue", "Continue: Continue"),
        ("escalate", "Escalate: Escalated, `check` asks for a person: protected"),
    ] {
        let mut project = ScriptProject::after(gated_rules(), &format!("{IGNORED_CHECK}\nturn-done b.1 says=complete"));
        let answered = project.run_script(&format!("hook check out={outcome} message=protected"));
        assert!(answered.contains(&format!("T1 gate_decided {expected}")), "{outcome}: {answered:?}");
    }
}
