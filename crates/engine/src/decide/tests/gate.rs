//! The stop gate and the guards, in the log: questions, counts, waits and limits, and that a crash changes none of them.

use core::time::Duration;

use super::script::{ScriptProject, check, check_with, default_rules};
use super::session_loop::loop_rules;
use crate::log::event_type::EventType;
use crate::session::NextAction;
use crate::session::usage::UsdCost;
use crate::task::TaskState;

#[test]
fn block_is_recorded_with_reason_and_retry_count() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "session a retries=4\nturn-done a.1");
    project.run_script("hook check out=block tells=stderr-and-stdout message=red");
    let decided = project.event_data(EventType::GateDecided);
    assert_eq!((&decided["retries"], &decided["maxRetries"]), (&1.into(), &4.into()));
    assert_eq!(decided["reason"], "red");
    assert_eq!(project.event_data(EventType::FeedbackQueued)["reason"], "red");
    project.run_script("turn-done a.1\nhook check");
    let decided = project.event_data(EventType::GateDecided);
    assert!(decided.get("maxRetries").is_none() && decided.get("reason").is_none(), "{decided}");
}

#[test]
fn uncounted_claim_is_told_once_in_next_prompt() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "session a\nturn-done a.1 misplaced=yes");
    project.run_script("hook check");
    let queued = project.event_data(EventType::FeedbackQueued);
    assert_eq!((&queued["source"], &queued["voice"]), (&"windlass".into(), &"windlass".into()));
    let next = project.find_session("a");
    assert_eq!((next.iteration, next.current_turn().unwrap().feedback.len()), (2, 1), "{next:?}");
    project.run_script("turn-done a.2\nhook check");
    assert_eq!(project.find_session("a").current_turn().unwrap().feedback, [], "it is told once");
}

#[test]
fn uncounted_claim_is_not_told_where_another_word_counts() {
    for script in [
        "session a completion=gate\nturn-done a.1 misplaced=yes",
        "session a\nturn-done a.1 misplaced=yes says=blocked",
    ] {
        let mut project = ScriptProject::after(loop_rules(&[]), "");
        let answered = project.run_script(script);
        assert!(!answered.iter().any(|line| line.contains("feedback_queued")), "{script}: {answered:?}");
    }
}

#[test]
fn gate_escalates_after_three_identical_blocks() {
    let script = |texts: [&str; 3]| {
        let mut project = ScriptProject::after(loop_rules(&["check"]), "session a");
        let turns = texts.map(|text| format!("turn-done a.1\nhook check out=block tells={text}"));
        let answered = project.run_script(&turns.join("\n"));
        let decided = answered.iter().rfind(|line| line.contains("gate_decided")).unwrap();
        decided.replace("system gate_decided Block: ", "")
    };
    assert_eq!(script(["red", "red", "red"]), "Escalated, `check` blocks 3 times in a row with the same reason");
    assert_eq!(script(["red", "green", "red"]), "send back 3");
    assert_eq!(script(["green", "red", "red"]), "send back 3");
}

#[test]
fn stop_hook_that_cannot_run_asks_for_a_person_and_tells_the_agent_nothing() {
    for (hook, terms) in [("check", ""), ("check", " strict=false"), ("lint", "")] {
        let session = format!("session a{terms}\nturn-done a.1 says=complete");
        let mut project = ScriptProject::after(loop_rules(&[hook]), &session);
        let ended = project.run_script(&format!("hook {hook} out=failure unstarted=1 message=missing tells=missing"));
        let decided = format!("system gate_decided Escalate: Escalated, `{hook}` judged nothing: missing");
        assert!(ended.contains(&decided), "{ended:?}");
        assert!(ended.iter().all(|line| !line.contains("feedback")), "{ended:?}");
    }
}

#[test]
fn broken_stop_hook_ends_a_session_of_the_graph_with_its_first_task() {
    let script = "add one\nadd two\nsession a work=graph\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(loop_rules(&["check"]), script);
    let ended = project.run_script("hook check out=failure unstarted=1 message=missing");
    assert!(ended.last().unwrap().contains("session_ended Escalated, `check` judged nothing: missing"), "{ended:?}");
    assert_eq!((project.find_task("T1").state, project.find_task("T2").state), (TaskState::Blocked, TaskState::Ready));
}

#[test]
fn stop_hook_that_cannot_run_is_named_as_the_one_that_a_person_can_ignore() {
    let left_by = |end: &str| {
        let script = "add one\nsession a task=T1\nturn-done a.1 says=complete";
        let mut project = ScriptProject::after(loop_rules(&["check"]), script);
        project.run_script(&format!("hook check out={end} unstarted=1 message=missing"));
        project.find_task("T1").blocked.unwrap().hooks
    };
    assert_eq!(left_by("failure"), ["check"]);
    assert_eq!(left_by("escalate"), [""; 0]);
}

/// A crash in between keeps the count.
#[test]
fn counts_survive_a_restart() {
    let mut project =
        ScriptProject::after(loop_rules(&["check"]), "session a\nturn-done a.1\nhook check out=block tells=red");
    project.run_script(
        "crash\nresume a by=w1\nturn-interrupted a.1\nturn-done a.2\nhook check out=block tells=red\ncrash",
    );
    let answered = project.run_script("turn-done a.2\nhook check out=block tells=red");
    let early = "system gate_decided Block: Escalated, `check` blocks 3 times in a row with the same reason";
    assert!(answered.iter().any(|line| line == early), "{answered:?}");
}

#[test]
fn gate_asks_person_at_retry_limit_and_continues_on_answer() {
    check_with(
        loop_rules(&["check"]),
        "session a retries=0 limit=ask
         turn-done a.1 says=complete
         --
         hook check out=block tells=red
         advance a
         tell a continue
         tell a continue
         advance a
         turn-done a.1 says=complete
         hook check",
        "system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued red from check
         system gate_decided Block: ask
         ! session `a` waits for something else
         system gate_answered Continue
         ! session `a` asks no question
         system gate_decided Block: send back 1
         system turn_started a.1 sent back red
         system feedback_delivered red
         system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Success
         system gate_decided Pass: Completed
         system iteration_completed
         system session_ended Completed",
    );
}

/// A person who answers has seen the blocks so far: the count starts anew.
#[test]
fn answer_from_person_resets_count_of_identical_blocks() {
    let red = "turn-done a.1\nhook check out=block tells=red\n";
    let mut project = ScriptProject::after(loop_rules(&["check"]), &format!("session a limit=ask\n{}", red.repeat(3)));
    assert_eq!(project.find_session("a").next_action(), NextAction::Answer);
    let answered = project.run_script(&format!("tell a continue\nadvance a\n{red}"));
    assert_eq!(answered.last().unwrap(), "system turn_started a.1 sent back red");
    project.run_script(red);
    assert_eq!(project.find_session("a").next_action(), NextAction::Answer, "three times again");
}

#[test]
fn gate_answer_abort_escalates_and_ignore_completes_session() {
    let asked = "session a retries=0 limit=ask\nturn-done a.1 says=complete\nhook check out=block";
    let answered = |answer: &str| {
        let mut project = ScriptProject::after(loop_rules(&["check"]), asked);
        assert_eq!(project.find_session("a").next_action(), NextAction::Answer);
        project.simulate_crash();
        project.run_script(&format!("tell a {answer}"));
        assert_eq!(project.find_session("a").next_action(), NextAction::Decision);
        project.run_script("crash\nadvance a")
    };
    assert_eq!(
        answered("abort"),
        [
            "system gate_decided Block: Escalated, `check` blocks, and may not send the agent back, and a person ended it",
            "system iteration_completed",
            "system session_ended Escalated, `check` blocks, and may not send the agent back, and a person ended it",
        ]
    );
    assert_eq!(
        answered("ignore"),
        [
            "system gate_decided Block: Completed, `check` blocks, and may not send the agent back, and a person let it pass",
            "system iteration_completed",
            "system session_ended Completed, `check` blocks, and may not send the agent back, and a person let it pass",
        ]
    );
}

/// If a person rejects the work, the task fails, and the session's owner ends the session.
#[test]
fn person_rejecting_asked_task_fails_it_and_cancels_session() {
    let asked = "add one
         add two after=T1
         session a task=T1 retries=0 limit=ask
         turn-done a.1 says=complete
         hook check out=block
         crash";
    let mut project = ScriptProject::after(loop_rules(&["check"]), asked);
    assert_eq!(project.run_script("run=a.1 answer T1 reject no"), ["! only a person can answer"]);
    assert_eq!(
        project.run_script("answer T1 reject we-do-not-want-it"),
        [
            "T1 task_answered reject we-do-not-want-it",
            "T1 session_stopping Cancelled, a person has rejected T1: we-do-not-want-it",
            "T1 task_failed",
            "T2 task_blocked by T1",
            "T1 feedback_queued",
        ]
    );
    assert_eq!(project.find_session("a").next_action(), NextAction::Decision);
    assert_eq!(
        project.run_script("crash\nadvance a"),
        ["T1 iteration_interrupted a.1", "T1 session_ended Cancelled, a person has rejected T1: we-do-not-want-it",]
    );
}

/// The message of an answer is in the same commit, and does not undo the answer.
#[test]
fn more_can_be_said_with_an_answer() {
    let asked = "session a retries=1 limit=ask
         turn-done a.1 says=complete
         hook check out=block
         turn-done a.1 says=complete
         hook check out=block";
    let answered = |answer: &str| {
        let mut project = ScriptProject::after(loop_rules(&["check"]), asked);
        let lines = project.run_script(&format!("tell a {answer} mind-the-step"));
        let name = format!("{}{}", answer[..1].to_uppercase(), &answer[1..]);
        let answered = format!("system gate_answered {name}");
        assert_eq!(lines, [&*answered, "system message_added by ada", "system feedback_queued mind-the-step from ada"]);
        assert_eq!(project.find_session("a").next_action(), NextAction::Decision);
        project.run_script("crash\nadvance a")
    };
    assert_eq!(
        answered("ignore"),
        [
            "system gate_decided Block: Completed, `check` still blocks after sending the agent back once, and a person let it pass",
            "system iteration_completed",
            "system turn_started a.1 to listen mind-the-step",
        ]
    );
    assert_eq!(
        answered("continue"),
        ["system gate_decided Block: send back 1", "system turn_started a.1 sent back mind-the-step"]
    );
    let why = "Escalated, `check` still blocks after sending the agent back once, and a person ended it";
    assert_eq!(answered("abort")[0], format!("system gate_decided Block: {why}"));
}

#[test]
fn graph_session_blocks_task_at_retry_limit_instead_of_asking() {
    let script = "add one
         add two
         session a work=graph retries=0 limit=ask
         turn-done a.1 says=complete
         --
         hook check out=block";
    let mut project = ScriptProject::new(loop_rules(&["check"]));
    let lines = project.run_script(script);
    let blocked = "T1 task_blocked `check` blocks, and may not send the agent back";
    assert!(lines.iter().any(|line| line == blocked), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "T2 turn_started a.2 to work");
    assert_eq!(project.find_task("T1").blocked.unwrap().hooks, ["check"]);
}

#[test]
fn failed_turn_is_not_retried_after_wall_time_runs_out() {
    check_with(
        loop_rules(&["mourn"]),
        "session a time=100s\nlater 100s\nturn-failed a.1\n--\nhook mourn tells=look-here",
        "system hook_started mourn 1 by w1
         system hook_finished mourn Success
         system feedback_queued look-here from mourn
         system session_ended Limit, the wall time of 100 s is used up",
    );
}

#[test]
fn only_a_person_answers_and_only_what_is_asked() {
    let asked = "session a retries=0 limit=ask\nturn-done a.1\nhook check out=block";
    let mut project = ScriptProject::after(loop_rules(&["check"]), asked);
    assert_eq!(project.run_script("run=a.1 tell a ignore"), ["! session `a` asks a person, not an agent or a hook"]);
    assert_eq!(project.run_script("tell b ignore"), ["! there is no session `b`"]);
    assert_eq!(
        project.run_script("stop a\ntell a ignore"),
        [
            "system session_stopping Cancelled",
            "system iteration_interrupted a.1",
            "system session_ended Cancelled",
            "! session `a` asks no question",
        ]
    );
    let script = format!("{asked}\nbegin ring\nstop a");
    let mut project = ScriptProject::after(loop_rules(&["check", "ring"]), &script);
    assert_eq!(project.run_script("tell a ignore"), ["! session `a` asks no question"], "it ends when `ring` does");
}

#[test]
fn rate_limit_preserves_iteration_budget_feedback_and_retry_count() {
    check_with(
        loop_rules(&["check", "note"]),
        "session a max=1
         turn-done a.1
         hook check out=block tells=red
         --
         turn-limited a.1 for=60s
         advance a
         crash
         later 60s
         advance a
         turn-done a.2 says=complete
         hook check out=block tells=still-red",
        "system iteration_postponed a.1 until 2026-01-17T10:01:00.000Z
         ! session `a` waits for something else
         system iteration_started a.2
         system turn_started a.2 to work red?
         system feedback_delivered red
         system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued still-red from check
         system gate_decided Block: send back 2
         system turn_started a.2 sent back still-red",
    );
}

#[test]
fn rate_limit_without_time_doubles_wait() {
    let mut project = ScriptProject::after(default_rules(), "session a");
    let mut waits = Vec::new();
    for iteration in 1..=8 {
        let before = project.log.last().unwrap().envelope.timestamp;
        project.run_script(&format!("turn-limited a.{iteration}"));
        let until: crate::Timestamp =
            project.event_data(EventType::IterationPostponed)["until"].as_str().unwrap().parse().unwrap();
        let seconds = (until.millis() - before.millis()) / 1000;
        waits.push(seconds / 60);
        project.run_script(&format!("later {seconds}s\nadvance a"));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    // A finished turn resets the count.
    project.run_script("turn-done a.9\nturn-limited a.10");
    assert_eq!(project.find_session("a").watch.postponed, 1);
    // Another kind of failure also resets the count.
    project.run_script("later 60s\nadvance a\nturn-failed a.11\nlater 1s\nadvance a\nturn-limited a.12");
    assert_eq!(project.find_session("a").watch.postponed, 1);
}

/// After a rate limit with a past time, the session still waits before the next request.
#[test]
fn rate_limit_with_past_time_still_waits() {
    let mut project = ScriptProject::after(default_rules(), "session a");
    let waits = [1, 2, 3, 4].map(|iteration| {
        let postponed = project.run_script(&format!("turn-limited a.{iteration} for=-60s"));
        project.run_script("later 60s\nadvance a");
        postponed[0].rsplit_once(':').unwrap().1.to_owned()
    });
    assert_eq!(waits, ["00.250Z", "00.500Z", "01.000Z", "02.000Z"]);
}

#[test]
fn session_escalates_after_24_consecutive_rate_limits() {
    let mut project = ScriptProject::after(default_rules(), "session a");
    let mut last = Vec::new();
    for iteration in 1..=24 {
        last = project.run_script(&format!("turn-limited a.{iteration}\nlater 7200s\nadvance a"));
    }
    assert_eq!(last[1], "system session_ended Escalated, the agent was rate limited 24 times in a row");
}

#[test]
fn session_stop_ends_rate_limit_wait_immediately() {
    check(
        "session a\nturn-limited a.1 for=60s\n--\nstop a",
        "system session_stopping Cancelled
         system session_ended Cancelled",
    );
}

#[test]
fn pre_iteration_feedback_does_not_accumulate_over_failed_iterations() {
    check_with(
        loop_rules(&["greet", "ready"]),
        "session a
         hook greet tells=welcome
         hook ready tells=one
         --
         turn-failed a.1
         later 1s
         advance a
         hook ready tells=two
         turn-limited a.2 for=1s
         later 1s
         advance a
         hook ready tells=three
         turn-interrupted a.3
         hook ready
         turn-done a.4",
        "system iteration_failed
         system iteration_started a.2
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued two from ready
         system turn_started a.2 to work welcome? two
         system iteration_postponed a.2 until 2026-01-17T10:00:02.000Z
         system iteration_started a.3
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued three from ready
         system turn_started a.3 to work welcome? three
         system iteration_interrupted a.3
         system iteration_started a.4
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system turn_started a.4 to work welcome?
         system feedback_delivered welcome
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.5",
    );
}

#[test]
fn wall_time_counts_only_while_session_runs() {
    check(
        "session a time=100s
         --
         later 60s
         turn-interrupted a.1
         later 9000s
         resume a by=w1
         later 39s
         turn-done a.2
         later 1s
         turn-done a.3",
        "system iteration_interrupted a.1
         system iteration_started a.2
         system turn_started a.2 to work
         system session_resumed by w1
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.3
         system turn_started a.3 to work
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system session_ended Limit, the wall time of 100 s is used up",
    );
}

#[test]
fn wall_time_excludes_wait_for_answer() {
    check(
        "session a time=100s
         later 60s
         turn-interrupted a.1
         --
         later 9000s
         say a look at the manual
         later 9000s
         resume a by=w1
         later 39s
         turn-done a.2",
        "system message_added by ada
         system feedback_queued look at the manual from ada
         system session_resumed by w1
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.3
         system turn_started a.3 to work look at the manual",
    );
    let mut project = ScriptProject::after(
        loop_rules(&["check"]),
        "session a time=100s retries=0 limit=ask\nlater 60s\nturn-done a.1",
    );
    project.run_script("hook check out=block tells=red\nlater 9000s\ntell a continue\nadvance a");
    assert!(project.find_session("a").current_turn().is_some(), "{:?}", project.find_session("a"));
    assert_eq!(project.find_session("a").watch.lasted, Duration::from_mins(1));
}

/// An agent's claim has the time of the system clock, which may have been set since its turn began.
#[test]
fn claim_of_an_agent_passes_no_time() {
    let mut project = ScriptProject::after(default_rules(), "add one\nsession a task=T1 time=100s\nlater 9000s");
    project.run_script("complete T1 run=a.1");
    assert!(project.find_task("T1").claim.is_some());
    assert_eq!(project.find_session("a").watch.lasted, Duration::ZERO);
}

#[test]
fn cost_budget_counts_every_turn() {
    let mut project = ScriptProject::after(loop_rules(&["note"]), "session a cost=1000000");
    let first = project.run_script("turn-done a.1 costs=600000\nhook note tells=late");
    assert_eq!(first.last().unwrap(), "system turn_started a.2 to work late");
    let second = project.run_script("turn-done a.2 costs=400000\nhook note tells=last");
    let reason = "Limit, $1.00 were spent, and the cost limit is $1.00";
    assert_eq!(second.last().unwrap(), &format!("system session_ended {reason}"));
    assert_eq!(project.find_session("a").watch.used.cost, Some(UsdCost(1_000_000)));
}

#[test]
fn usage_of_interrupted_turn_counts_towards_limits() {
    let ended = |terms: &str, used: &str| {
        let mut project = ScriptProject::after(default_rules(), &format!("session a {terms}"));
        project.run_script(&format!("turn-interrupted a.1 {used}\nturn-interrupted a.2 {used}")).pop().unwrap()
    };
    let spent = "system session_ended Limit, $1.20 were spent, and the cost limit is $1.00";
    assert_eq!(ended("cost=1000000", "costs=600000"), spent);
    let used = "system session_ended Limit, 1,200 tokens were used, and the limit is 1,000";
    assert_eq!(ended("tokens=1000", "reads=500 writes=100"), used);
    let project =
        ScriptProject::after(default_rules(), "session a goal=work\nturn-interrupted a.1 reads=500 writes=100");
    assert_eq!(project.find_task("T1").used.total_tokens(), 600, "also for the task");
}

#[test]
fn tokens_are_counted_for_the_session_and_the_task() {
    let mut project = ScriptProject::after(default_rules(), "session a goal=work tokens=1000");
    project.run_script("turn-done a.1 reads=500 writes=200");
    let completed = project.event_data(EventType::IterationCompleted);
    assert_eq!(completed["used"], serde_json::json!({"input": 500, "output": 200}));
    let last = project.run_script("turn-done a.2 reads=200 writes=100");
    assert_eq!(last.last().unwrap(), "T1 session_ended Limit, 1,000 tokens were used, and the limit is 1,000");
    assert_eq!(project.find_session("a").watch.used.total_tokens(), 1000);
    let task = project.find_session("a").task.unwrap();
    assert_eq!(project.find_task(&task.to_string()).used.total_tokens(), 1000);
}

#[test]
fn session_repeating_same_change_and_result_escalates_as_thrashing() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "session a strict=true");
    let turn = |iteration: u32, tree: &str| {
        format!("turn-done a.{iteration} tree={tree}\nhook check out=failure tells=3-failed-in-{iteration}s")
    };
    project.run_script(&[turn(1, "x"), turn(2, "y"), turn(3, "y"), "crash".to_owned()].join("\n"));
    let last = project.run_script(&turn(4, "y"));
    let why = "thrashing: the same change with the same result 3 times in a row";
    assert!(last.contains(&format!("system gate_decided Fail: Escalated, {why}")), "{last:?}");
}

/// After a rate limit with an absurd time, the session retries within a week.
#[test]
fn rate_limit_wait_is_at_most_a_week() {
    let mut project = ScriptProject::after(default_rules(), "session a");
    let postponed = project.run_script("turn-limited a.1 for=9999999s");
    assert_eq!(postponed, ["system iteration_postponed a.1 until 2026-01-24T10:00:00.000Z"]);
}

#[test]
fn interruptions_are_counted_from_the_last_turn_that_was_finished() {
    let interrupted =
        |(from, to): (u32, u32)| (from..=to).map(|at| format!("turn-interrupted a.{at}\n")).collect::<String>();
    let script = [(1, 9), (11, 19)].map(interrupted).join("turn-done a.10\n");
    let project = ScriptProject::after(default_rules(), &format!("session a\n{script}"));
    assert_eq!(project.find_session("a").ending_kind(), None);
}

#[test]
fn failures_are_counted_per_task() {
    let script = "add one
         add two
         session a work=graph failures=2
         turn-failed a.1
         later 1s
         advance a
         forced block T1
         turn-interrupted a.2
         turn-failed a.3";
    let session = ScriptProject::after(default_rules(), script).find_session("a");
    assert_eq!((session.ending_kind(), session.failures), (None, 1));
}

#[test]
fn repetitions_are_counted_per_task() {
    let script = "add one
         add two
         session a work=graph thrashing=3
         turn-done a.1 tree=x
         turn-done a.2 tree=x says=blocked
         turn-done a.3 tree=x";
    let lines = ScriptProject::new(default_rules()).run_script(script);
    assert!(lines.contains(&"T2 gate_decided Pass: Continue".to_owned()), "{lines:?}");
}

/// Even after a rate limit, which otherwise keeps the count.
#[test]
fn send_backs_are_counted_per_task() {
    let script = "add one
         add two
         session a work=graph retries=1
         turn-done a.1
         hook check out=block tells=red
         turn-limited a.1 for=60s
         forced block T1
         advance a";
    let mut project = ScriptProject::after(loop_rules(&["check"]), script);
    let session = project.find_session("a");
    assert_eq!((session.retries, session.sent_back.len()), (0, 0), "{session:?}");
    let lines = project.run_script("later 60s\nadvance a\nturn-done a.2\nhook check out=block tells=red");
    assert!(lines.contains(&"T2 gate_decided Block: send back 1".to_owned()), "{lines:?}");
}
