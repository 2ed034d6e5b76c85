//! Feedback of hooks after failed iterations, the limits of their send-backs, and their requests for a person.

use super::script::{ScriptProject, check_with, run_id};
use super::session_loop::loop_rules;
use crate::command::{Command, TurnFailureReport};
use crate::decide::EngineRules;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;
use crate::log::time::Timestamp;
use crate::session::turn_failure::TurnFailure;
use crate::session::{NextAction, SessionEndKind};

#[test]
fn hook_feedback_on_failed_iteration_starts_recovery_turn_without_gate() {
    check_with(
        loop_rules(&["check", "mourn", "note"]),
        "session a max=2
         --
         turn-failed a.1
         hook mourn tells=look-here
         crash
         turn-done a.1 says=complete
         later 1s
         advance a
         turn-done a.2 says=complete
         hook check
         hook note",
        "system iteration_failed
         system hook_started mourn 1 by w1
         system hook_finished mourn Success
         system feedback_queued look-here from mourn
         system turn_started a.1 to recover look-here
         system feedback_delivered look-here
         system delivery_finished
         system iteration_started a.2
         system turn_started a.2 to work
         system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Success
         system gate_decided Pass: Completed
         system iteration_completed
         system hook_started note 1 by w1
         system hook_finished note Success
         system session_ended Completed",
    );
}

/// A plea in a recovery turn has the same effect as in every other turn.
#[test]
fn plea_in_recovery_turn_leaves_task_to_person() {
    let script = "turn-failed a.1\nhook mourn tells=look-here\n--\nturn-done a.1";
    let delivered = "T1 feedback_delivered look-here\nT1 delivery_finished";
    for (says, plea) in [("blocked", "the agent says it is blocked"), ("escalate", "the agent asks for a person")] {
        check_with(
            loop_rules(&["check", "mourn"]),
            &format!("add one\nsession a task=T1\n{script} says={says}"),
            &format!(
                "{delivered}
                 T1 session_stopping Escalated, {plea}: said
                 T1 task_blocked {plea}: said
                 T1 session_ended Escalated, {plea}: said"
            ),
        );
        // The wait for the failed agent also applies to its next task.
        let script = format!("add one\nadd two\nsession a work=graph\n{script} says={says}\nlater 5s\nadvance a");
        let expected = format!(
            "{delivered}
             T1 task_blocked {plea}: said
             T2 task_claimed w1 epoch 1
             T2 task_started
             T2 iteration_started a.2
             T2 turn_started a.2 to work"
        );
        check_with(loop_rules(&["check", "mourn"]), &script, &expected);
    }
    let said = format!("add one\nsession a task=T1\n{}", script.replace("--", "say a use-tabs"));
    let project = ScriptProject::after(loop_rules(&["mourn"]), &format!("{said} says=blocked"));
    assert_eq!(project.find_session("a").stopping, None, "the agent has yet to hear a person");
}

#[test]
fn every_hook_of_a_failure_is_heard_first() {
    let mut rules = loop_rules(&["ready", "mourn"]);
    let failed = rules.effects.as_mut().unwrap().hooks.get_mut(&EventType::IterationFailed).unwrap();
    let first = failed[0].clone();
    failed.push(first);
    failed[1].hook.hook = "weep".to_owned();
    check_with(
        rules,
        "session a
         hook ready tells=one
         --
         turn-failed a.1
         hook mourn tells=two
         hook weep tells=three
         turn-done a.1
         later 1s
         advance a",
        "system iteration_failed
         system hook_started mourn 1 by w1
         system hook_finished mourn Success
         system feedback_queued two from mourn
         system hook_started weep 1 by w1
         system hook_finished weep Success
         system feedback_queued three from weep
         system turn_started a.1 to recover one? two three
         system feedback_delivered one two three
         system delivery_finished
         system iteration_started a.2",
    );
}

#[test]
fn failed_iteration_without_hook_feedback_starts_no_recovery_turn() {
    check_with(
        loop_rules(&["ready", "mourn"]),
        "session a
         hook ready tells=one
         --
         turn-failed a.1
         hook mourn out=failure
         later 1s
         advance a
         hook ready",
        "system iteration_failed
         system hook_started mourn 1 by w1
         system hook_finished mourn Failure
         system iteration_started a.2
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system turn_started a.2 to work",
    );
}

#[test]
fn last_allowed_failure_ends_session_without_recovery_turn() {
    check_with(
        loop_rules(&["mourn"]),
        "session a failures=1
         --
         turn-failed a.1
         hook mourn tells=too-late",
        "system iteration_failed
         system hook_started mourn 1 by w1
         system hook_finished mourn Success
         system feedback_queued too-late from mourn
         system session_ended Escalated, circuit breaker: an iteration failed, and no failure is allowed: because",
    );
    // Recoveries neither count nor reset counts.
    let mut project =
        ScriptProject::after(loop_rules(&["mourn"]), "session a failures=2\nturn-failed a.1\nhook mourn tells=one");
    project.run_script("turn-done a.1\nlater 1s\nadvance a\nturn-failed a.2");
    let ended = project.run_script("hook mourn tells=two").pop();
    assert_eq!(
        ended.as_deref(),
        Some("system session_ended Escalated, circuit breaker: 2 iterations failed in a row, the last with: because")
    );
}

#[test]
fn unfinished_recovery_turn_returns_feedback_to_next_iteration() {
    let begin = "session a\nturn-failed a.1\nhook mourn tells=look-here\n--\n";
    for (line, over) in [("turn-interrupted a.1", "interrupted"), ("turn-failed a.1 no network", "failed")] {
        check_with(
            loop_rules(&["mourn"]),
            &format!("{begin}{line}\ncrash\nlater 1s\nadvance a\nturn-done a.2"),
            &format!(
                "system delivery_{over}
                 system iteration_started a.2
                 system turn_started a.2 to work look-here?
                 system feedback_delivered look-here
                 system turn_finished
                 system gate_decided Pass: Continue
                 system iteration_completed
                 system iteration_started a.3
                 system turn_started a.3 to work"
            ),
        );
    }
    let mut project = ScriptProject::after(loop_rules(&["mourn"]), begin);
    assert_eq!(project.find_session("a").failures, 1);
    let answered = project.run_script("resume a by=w2\nrecover turn by=w2\nlater 1s\nadvance a");
    let expected = [
        "system session_resumed by w2",
        "system delivery_interrupted",
        "system iteration_started a.2",
        "system turn_started a.2 to work look-here?",
    ];
    assert_eq!(answered, expected);
    let session = project.find_session("a");
    assert_eq!((session.failures, session.interrupted), (1, 0), "a recovery is no iteration");
}

#[test]
fn stopping_before_and_during_a_recovery() {
    let stop =
        |script: &str| ScriptProject::after(loop_rules(&["mourn"]), "session a\nturn-failed a.1").run_script(script);
    assert_eq!(
        stop("stop a"),
        ["system session_stopping Cancelled", "system hook_finished mourn Skip", "system session_ended Cancelled"],
    );
    assert_eq!(
        stop("begin mourn\nstop a\nfinish mourn tells=look-here"),
        [
            "system hook_started mourn 1 by w1",
            "system session_stopping Cancelled",
            "system hook_finished mourn Success",
            "system feedback_queued look-here from mourn",
            "system session_ended Cancelled",
        ],
    );
    let during = |line: &str| stop(&format!("hook mourn tells=look-here\n--\nstop a\n{line}"));
    assert_eq!(
        during("turn-done a.1"),
        [
            "system session_stopping Cancelled",
            "system feedback_delivered look-here",
            "system delivery_finished",
            "system session_ended Cancelled",
        ],
    );
    assert_eq!(
        during("turn-interrupted a.1"),
        ["system session_stopping Cancelled", "system delivery_interrupted", "system session_ended Cancelled",],
    );
}

// The limits of send-backs by each hook.

/// Returns rules in which `check` has this limit, and `lint` that of the session.
fn rules_with_send_backs(times: u32) -> EngineRules {
    let mut rules = loop_rules(&["check", "lint"]);
    let gates = rules.effects.as_mut().unwrap().hooks.get_mut(&EventType::TurnFinished).unwrap();
    gates[0].hook.send_backs = Some(times);
    rules
}

/// Returns the gate's decisions at the ends of successive turns, each blocked by the named hooks.
fn gate_decisions(rules: EngineRules, session: &str, blocked_by: &[&str]) -> Vec<String> {
    let mut project = ScriptProject::after(rules, session);
    let turn = |by: &&str| {
        let run = project.find_session("a").iteration;
        let out = |hook| if by.contains(hook) { "block" } else { "success" };
        let (check, lint) = (out("check"), out("lint"));
        let answered =
            project.run_script(&format!("turn-done a.{run}\nhook check out={check}\nhook lint out={lint}\ncrash"));
        let decided =
            answered.into_iter().find_map(|line| line.strip_prefix("system gate_decided ").map(str::to_owned));
        decided.unwrap_or_else(|| "nothing".to_owned())
    };
    blocked_by.iter().map(turn).collect()
}

#[test]
fn hook_sends_agent_back_up_to_its_configured_limit() {
    let escalated =
        |times: &str| format!("Block: Escalated, `check` still blocks after sending the agent back {times}");
    let back = |times| format!("Block: send back {times}");
    assert_eq!(
        gate_decisions(rules_with_send_backs(2), "session a", &["check"; 3]),
        [back(1), back(2), escalated("2 times")]
    );
    assert_eq!(
        gate_decisions(rules_with_send_backs(0), "session a", &["check"]),
        ["Block: Escalated, `check` blocks, and may not send the agent back"]
    );
    assert_eq!(gate_decisions(rules_with_send_backs(2), "session a retries=1", &["check"; 2]), [back(1), back(2)]);
    // Each hook has its own count, and one at its limit uses no turns of the others.
    assert_eq!(
        gate_decisions(
            rules_with_send_backs(1),
            "session a retries=3",
            &["lint", "check", "check,lint", "check,lint", "check,lint"]
        ),
        [
            back(1),
            back(2),
            back(3),
            back(4),
            "Block: Escalated, `check` still blocks after sending the agent back once; \
             `lint` still blocks after sending the agent back 3 times"
                .to_owned(),
        ],
    );
    assert_eq!(
        gate_decisions(rules_with_send_backs(1), "session a limit=complete completion=gate", &["check", "check"]),
        [
            back(1),
            format!("{}; `on_retry_limit: complete` lets it pass", escalated("once").replace("Escalated", "Completed"))
        ],
    );
}

#[test]
fn next_iteration_resets_send_back_count_unless_previous_was_interrupted() {
    let again = ["check", "", "check"];
    assert_eq!(
        gate_decisions(rules_with_send_backs(1), "session a", &again),
        ["Block: send back 1", "Pass: Continue", "Block: send back 1"]
    );
    let mut project =
        ScriptProject::after(rules_with_send_backs(1), "session a\nturn-done a.1\nhook check out=block\nhook lint");
    project.run_script("turn-interrupted a.1\nturn-done a.2\nhook check out=block");
    let answered = project.run_script("hook lint");
    assert!(answered[2].starts_with("system gate_decided Block: Escalated"), "{answered:?}");
}

// The outcomes of a hook.

#[test]
fn stop_hook_may_continue_or_escalate() {
    let judged = |check: &str, lint: &str| {
        let script =
            format!("session a\nturn-done a.1 says=complete\nhook check out={check}\n--\nhook lint out={lint}");
        ScriptProject::new(loop_rules(&["check", "lint"])).run_script(&script)[2].replace("system gate_decided ", "")
    };
    let person = |hook: &str| format!("Escalate: Escalated, `{hook}` asks for a person");
    assert_eq!(judged("continue", "success"), "Continue: Continue");
    assert_eq!(judged("failure", "continue"), "Continue: Continue");
    assert_eq!(judged("continue", "block"), "Block: send back 1");
    assert_eq!(judged("escalate", "block"), person("check"));
    assert_eq!(judged("success", "escalate"), person("lint"));
    // With a lenient policy for failures, a hook can still say that the work is not done.
    let lax = "session a strict=false\nturn-done a.1 says=complete\n--\nhook check out=continue";
    assert_eq!(ScriptProject::new(loop_rules(&["check"])).run_script(lax)[2], "system gate_decided Continue: Continue");
}

/// Returns rules with a hook at a point that judges no turn, and with its policy for failures.
fn rules_with_ungated_hook(hook: &str, on_failure: HookFailurePolicy) -> EngineRules {
    let mut rules = loop_rules(&[hook]);
    for planned in rules.effects.as_mut().unwrap().hooks.values_mut().flat_map(|hooks| hooks.iter_mut()) {
        assert_ne!(planned.hook.class, HookClass::Gate);
        planned.hook.on_failure = on_failure;
    }
    rules
}

#[test]
fn hook_outside_gates_can_escalate_and_end_session() {
    check_with(
        rules_with_ungated_hook("ready", HookFailurePolicy::Escalate),
        "session a
         --
         hook ready out=failure message=no-disk",
        "system hook_started ready 1 by w1
         system hook_finished ready Failure
         system session_stopping Escalated, `ready` asks for a person: no-disk
         system iteration_interrupted a.1
         system session_ended Escalated, `ready` asks for a person: no-disk",
    );
    check_with(
        rules_with_ungated_hook("greet", HookFailurePolicy::Ignore),
        "session a
         --
         hook greet out=escalate tells=hello",
        "system hook_started greet 1 by w1
         system hook_finished greet Escalate
         system session_stopping Escalated, `greet` asks for a person
         system session_ended Escalated, `greet` asks for a person",
    );
    // The agent's request to a person is kept.
    check_with(
        rules_with_ungated_hook("note", HookFailurePolicy::Escalate),
        "session a goal=mend
         turn-done a.1 says=blocked
         --
         hook note out=failure",
        "T1 hook_started note 1 by w1
         T1 hook_finished note Failure
         T1 session_stopping Escalated, `note` asks for a person
         T1 task_blocked the agent says it is blocked: said
         T1 session_ended Escalated, the agent says it is blocked",
    );
    for out in ["failure", "timed_out", "escalate", "cancelled"] {
        let mut project =
            ScriptProject::after(rules_with_ungated_hook("ready", HookFailurePolicy::Escalate), "session a");
        project.run_script(&format!("hook ready out={out}"));
        assert!(project.find_session("a").ending_kind().is_some(), "{out}");
    }
    let mut project =
        ScriptProject::after(rules_with_ungated_hook("ready", HookFailurePolicy::Escalate), "session a\nbegin ready");
    project.run_script("resume a by=w2\nrecover ready by=w2");
    assert!(project.find_session("a").ending_kind().is_some(), "an interrupted hook has failed as well");
}

/// A hook of the commit that stops the session would have no position yet, so it is not enqueued at all.
#[test]
fn escalating_hook_actions_enqueue_no_further_hooks() {
    let mut rules = rules_with_ungated_hook("ready", HookFailurePolicy::Escalate);
    let hooks = &mut rules.effects.as_mut().unwrap().hooks;
    let ready = hooks[&EventType::IterationStarted].clone();
    for event in [EventType::TaskCreated, EventType::HookFinished, EventType::FeedbackQueued] {
        hooks.insert(event, ready.clone());
    }
    let mut project = ScriptProject::after(rules, "session a");
    let answered = project.run_script(r#"hook ready out=failure tells=stop asks=create_task:{"goal":"more"}"#);
    let expected = [
        "system hook_started ready 1 by w1",
        "system hook_finished ready Failure",
        "T1 task_created",
        "T1 task_ready",
        "system feedback_queued stop from ready",
        "system session_stopping Escalated, `ready` asks for a person",
        "system iteration_interrupted a.1",
        "system session_ended Escalated, `ready` asks for a person",
    ];
    assert_eq!(answered, expected);
}

#[test]
fn hook_after_end_cannot_ask_for_person() {
    let mut project = ScriptProject::after(
        rules_with_ungated_hook("bye", HookFailurePolicy::Escalate),
        "session a\nstop a\nturn-interrupted a.1",
    );
    assert_eq!(project.run_script("hook bye out=failure").len(), 2);
    assert_eq!(project.find_session("a").next_action(), NextAction::Nothing);
    let mut project = ScriptProject::after(
        rules_with_ungated_hook("ready", HookFailurePolicy::Escalate),
        "session a\nbegin ready\nstop a",
    );
    assert_eq!(
        project.run_script("finish ready out=failure"),
        ["system hook_finished ready Failure", "system iteration_interrupted a.1", "system session_ended Cancelled"],
        "the end was asked for before",
    );
}

#[test]
fn hook_block_outside_gates_queues_feedback_and_starts_turn() {
    for (out, on_failure) in [
        ("block", HookFailurePolicy::Ignore),
        ("failure", HookFailurePolicy::Block),
        ("continue", HookFailurePolicy::Ignore),
    ] {
        let mut project = ScriptProject::after(rules_with_ungated_hook("ready", on_failure), "session a");
        let answered = project.run_script(&format!("hook ready out={out} tells=stop"));
        assert_eq!(answered[2..], ["system feedback_queued stop from ready", "system turn_started a.1 to work stop"]);
        let answered = project.run_script("turn-done a.1 says=complete");
        assert!(answered.contains(&"system gate_decided Pass: Completed".to_owned()), "{answered:?}");
    }
}

// The wait for a failed agent.

/// The log has the time of the next attempt, and later events do not change it.
#[test]
fn failed_agent_is_tried_again_when_its_wait_is_over() {
    let begin = "session a failures=3 span=300s\nturn-failed a.1 no-network";
    let mut project = ScriptProject::after(loop_rules(&[]), begin);
    let begun: Timestamp = "2026-01-17T10:00:00Z".parse().unwrap();
    let until = |seconds: i64| begun.add_millis(seconds * 1000);
    assert_eq!(project.find_session("a").next_action(), NextAction::WaitUntil(until(5)));
    assert_eq!(project.run_script("later 4s\ncrash\nresume a by=w2"), ["system session_resumed by w2"]);
    assert_eq!(project.find_session("a").next_action(), NextAction::WaitUntil(until(5)));
    assert_eq!(
        project.run_script("later 1s\nadvance a"),
        ["system iteration_started a.2", "system turn_started a.2 to work"]
    );
    project.run_script("turn-failed a.2 no-network");
    assert_eq!(project.find_session("a").next_action(), NextAction::WaitUntil(until(15)));
}

#[test]
fn circuit_breaker_trips_after_enough_failures_over_enough_time() {
    let tripped = |script: &str| {
        let mut project = ScriptProject::after(loop_rules(&[]), "session a failures=3 span=60s\nturn-failed a.1");
        project.run_script(script).pop().unwrap()
    };
    let failure = |run: u32| format!("\nlater 20s\nadvance a\nturn-failed a.{run} no-route");
    let failures = |last: u32| (2..=last).map(failure).collect::<String>();
    assert_eq!(tripped(&failures(3)), "system iteration_failed", "three failures, 40 s");
    let reason = "circuit breaker: 4 iterations failed in a row, the last with: no-route";
    assert_eq!(tripped(&failures(4)), format!("system session_ended Escalated, {reason}"));
    assert_eq!(tripped("later 60s\nadvance a\nturn-failed a.2"), "system iteration_failed", "two failures, 60 s");
    let good = "\nlater 20s\nadvance a\nturn-done a.4\nturn-failed a.5\n";
    assert_eq!(tripped(&format!("{}{good}", failures(3))), "system iteration_failed", "one in a row");
}

/// Time without a running session does not count for the circuit breaker.
#[test]
fn circuit_breaker_counts_the_span_anew_after_a_resumption() {
    let begin = "session a failures=3 span=60s\nturn-failed a.1\nlater 5s\nadvance a\nturn-failed a.2";
    let mut project = ScriptProject::after(loop_rules(&[]), begin);
    project.run_script("later 900s\ncrash\nresume a by=w2\nadvance a");
    assert_eq!(project.run_script("turn-failed a.3 no-route"), ["system iteration_failed"]);
    let ended = project.run_script("later 60s\nadvance a\nturn-failed a.4 no-route").pop().unwrap();
    assert!(ended.contains("circuit breaker: 4 iterations failed in a row"), "{ended}");
}

/// The feedback of that hook is not about the failure.
#[test]
fn hook_of_another_command_starts_no_recovery_while_a_failed_agent_waits() {
    let mut project =
        ScriptProject::after(loop_rules(&["edit"]), "add one\nsession a task=T1 span=300s\nturn-failed a.1");
    project.run_script("reword T1 two\nhook edit tells=noted");
    assert!(!project.find_session("a").pending.is_empty());
    assert!(matches!(project.find_session("a").next_action(), NextAction::WaitUntil(_)));
}

/// The count of send-backs is that of an iteration, and a failure ends the iteration.
#[test]
fn recovery_after_a_failure_ends_the_counts_of_the_iteration() {
    let begin =
        "session a failures=3\nturn-done a.1\nhook check out=block tells=red\nturn-failed a.1\nhook mourn tells=why";
    let mut project = ScriptProject::after(loop_rules(&["check", "mourn"]), begin);
    project.run_script("turn-done a.1\nlater 1s\nadvance a");
    let session = project.find_session("a");
    assert_eq!((session.iteration, session.retries, session.sent_back.len()), (2, 0, 0));
}

#[test]
fn wait_after_a_failure_ends_with_a_cancellation_or_the_wall_time() {
    let cancelled = ScriptProject::after(loop_rules(&[]), "session a span=300s\nturn-failed a.1").run_script("stop a");
    assert_eq!(cancelled, ["system session_stopping Cancelled", "system session_ended Cancelled"]);
    let late = ScriptProject::after(loop_rules(&[]), "session a span=300s time=3s").run_script("turn-failed a.1");
    let reason = "the wall time of 3 s is used up, before the agent is tried again";
    assert_eq!(late, ["system iteration_failed".to_owned(), format!("system session_ended Limit, {reason}")]);
}

#[test]
fn failure_in_last_iteration_announces_no_retry() {
    let last = ScriptProject::after(loop_rules(&[]), "session a span=300s max=1\nturn-failed a.1");
    assert_eq!(
        (last.find_session("a").ending_kind(), last.find_session("a").watch.retry_at),
        (Some(SessionEndKind::Limit), None)
    );
    let earlier = ScriptProject::after(loop_rules(&[]), "session a span=300s max=2\nturn-failed a.1");
    assert!(earlier.find_session("a").watch.retry_at.is_some());
}

/// The person's message gets one more iteration, which does not begin at once.
#[test]
fn failure_in_last_iteration_with_words_of_a_person_is_retried_after_a_wait() {
    let begin = "session a span=300s max=1\nsay a use-tabs\nturn-done a.1\nturn-failed a.2";
    let project = ScriptProject::after(loop_rules(&[]), begin);
    assert!(matches!(project.find_session("a").next_action(), NextAction::WaitUntil(_)));
}

/// A wait would not help: the next conversation is a new one.
#[test]
fn full_conversation_is_left_without_a_wait() {
    let mut project = ScriptProject::after(loop_rules(&[]), "session a span=300s");
    let failing =
        TurnFailureReport { fault: TurnFailure::OutOfTokens, ..TurnFailureReport::from_error("too much".to_owned()) };
    project.commit_as_person(&Command::FailTurn { run: run_id("a.1"), failing }).unwrap();
    assert_eq!(project.find_session("a").current_turn().unwrap().run, run_id("a.2"));
}
