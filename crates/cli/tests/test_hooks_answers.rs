//! Answers of hooks: a misunderstood one is never a success, every mistake has its own message, and the command before the hook
//! stays done

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::{COMPLETING_AGENT, FaultyHookPoint, create_hook_project};
use crate::test_run::RUN;

/// Answers that are none, or that say nothing: for the parser they are text.
const TEXT_ANSWERS: &[&str] = &[
    "all is well",
    "{",
    r#"{"status": "success",}"#,
    "[1, 2]",
    r#""text""#,
    "null",
    r#"{"status": "success"} and more"#,
    r#"{"status": null}"#,
    r#"{"status": "success", "colour": "red", "statsu": 1}"#,
    r#"{"action": "continue"}"#,
];

/// Checks answers of an event's hook: its outcome, and its message to people, line by line.
const EVENT_ANSWERS: &[(&str, &str, &str)] = &[
    (
        r#"{"status": 7}"#,
        "failure",
        "hook `bad` failed: bad answer: `status`: invalid type: integer `7`, expected string or map",
    ),
    (
        r#"{"status": "sucess"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `status`: unknown variant `sucess`, expected one of `success`, `failure`, `skip`"#,
    ),
    (
        r#"{"decision": "maybe"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `decision`: unknown variant `maybe`, expected one of `allow`, `approve`, `block`, `deny`"#,
    ),
    (
        r#"{"action": ["complete"]}"#,
        "failure",
        "hook `bad` failed: bad answer: `action`: invalid type: sequence, expected string or map",
    ),
    (
        r#"{"continue": "no"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `continue`: invalid type: string "no", expected a boolean"#,
    ),
    (
        r#"{"reason": {"a": 1}}"#,
        "failure",
        "hook `bad` failed: bad answer: `reason`: invalid type: map, expected a string",
    ),
    (
        r#"{"context": "x"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `context`: invalid type: string "x", expected a map"#,
    ),
    (
        r#"{"metadata": [1]}"#,
        "failure",
        "hook `bad` failed: bad answer: `metadata`: invalid type: sequence, expected a map",
    ),
    (
        r#"{"suppressOutput": 1}"#,
        "failure",
        "hook `bad` failed: bad answer: `suppressOutput`: invalid type: integer `1`, expected a boolean",
    ),
    (
        r#"{"hookSpecificOutput": 3}"#,
        "failure",
        "hook `bad` failed: bad answer: `hookSpecificOutput`: invalid type: integer `3`, expected struct HookSpecificOutput",
    ),
    (
        r#"{"hookSpecificOutput": {"permissionDecision": "perhaps"}}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `hookSpecificOutput.permissionDecision`: unknown variant `perhaps`, expected one of `allow`, `deny`, `ask`, `defer`"#,
    ),
    (
        r#"{"nextPrompt": 1, "action": "continue"}"#,
        "failure",
        "hook `bad` failed: bad answer: `nextPrompt`: invalid type: integer `1`, expected a string",
    ),
    (
        r#"{"status": "success", "decision": "block"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `status` "success" and `decision` "block" contradict each other; say one of them"#,
    ),
    (
        r#"{"action": "complete", "status": "failure"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `action` "complete" and `status` "failure" contradict each other; say one of them"#,
    ),
    (
        r#"{"decision": "allow", "action": "escalate"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `decision` "allow" and `action` "escalate" contradict each other; say one of them"#,
    ),
    (
        r#"{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `decision` "allow" and `permissionDecision` "deny" contradict each other; say one of them"#,
    ),
    (
        r#"{"status": "success", "status": "failure"}"#,
        "failure",
        "hook `bad` failed: bad answer: duplicate field `status` at line 1 column 30",
    ),
    (
        r#"{"nextPrompt": "a", "next_prompt": "b"}"#,
        "failure",
        "hook `bad` failed: bad answer: duplicate field `nextPrompt`",
    ),
    (
        r#"{"actions": "x"}"#,
        "failure",
        r#"hook `bad` failed: bad answer: `actions`: invalid type: string "x", expected a sequence"#,
    ),
    (
        r#"{"actions": [1]}"#,
        "failure",
        "hook `bad` failed: bad answer: `actions[0]`: invalid type: integer `1`, expected struct ActionRequest",
    ),
    (r#"{"actions": [{}]}"#, "failure", "hook `bad` failed: bad answer: `actions[0]`: missing field `type`"),
    (
        r#"{"actions": [{"type": 7}]}"#,
        "failure",
        "hook `bad` failed: bad answer: `actions[0].type`: invalid type: integer `7`, expected a string",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": []}]}"#,
        "failure",
        "hook `bad` failed: bad answer: `actions[0].payload`: expected an object",
    ),
    (
        r#"{"actions": [{"type": "explode", "payload": {}}]}"#,
        "success",
        "cannot carry out `explode`: the action `explode` is not known; it is one of create_task, update_task, execute_workflow or log",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: missing field `goal`",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": 7}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: `goal`: invalid type: integer `7`, expected a string",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": ""}}]}"#,
        "success",
        "cannot carry out `create_task`: the goal is empty",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "priority": 9}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: `priority`: 9 is not a priority: 0 (most urgent) to 4",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "priority": "high"}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: `priority`: invalid type: string \"high\", expected u8",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "labels": "red"}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: `labels`: invalid type: string \"red\", expected a sequence",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "depends_on": ["T99"]}}]}"#,
        "success",
        "cannot carry out `create_task`: there is no task T99",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "type": "hot fix"}}]}"#,
        "success",
        "cannot carry out `create_task`: the action cannot be read: `type`: `hot fix` is not a task type's name (letters, digits, _ and -, at most 64)",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "x", "parentTaskId": "T99"}}]}"#,
        "success",
        "cannot carry out `create_task`: there is no task T99",
    ),
    (
        r#"{"actions": [{"type": "create_task", "payload": {"goal": "a\u0000b"}}]}"#,
        "success",
        "cannot carry out `create_task`: the goal contains a NUL byte",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T99", "action": "start"}}]}"#,
        "success",
        "cannot carry out `update_task`: there is no task T99",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "x", "action": "start"}}]}"#,
        "success",
        "cannot carry out `update_task`: the action cannot be read: `task_id`: `x` is not a task id such as T12",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"action": "start"}}]}"#,
        "success",
        "cannot carry out `update_task`: the action cannot be read: missing field `task_id`",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T1", "action": "paint"}}]}"#,
        "success",
        "cannot carry out `update_task`: the action cannot be read: unknown variant `paint`, expected one of `ready`, `transition_to_ready`, `start`, `complete`, `block`, `unblock`, `fail`, `set_labels`, `add_labels`, `remove_labels`",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T1", "action": "block"}}]}"#,
        "success",
        "cannot carry out `update_task`: the action cannot be read: `block`: missing field `reason`",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T1", "action": "unblock"}}]}"#,
        "success",
        "cannot carry out `update_task`: cannot unblock T1: it is ready, and that is possible only from blocked",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T2", "action": "start"}}]}"#,
        "success",
        "cannot carry out `update_task`: cannot start T2: it is deleted, and that is possible only from ready or needs_continuation",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T2", "action": "add_labels", "labels": ["x"]}}]}"#,
        "success",
        "cannot carry out `update_task`: cannot update T2: it is deleted",
    ),
    (
        r#"{"actions": [{"type": "update_task", "payload": {"taskId": "T1", "action": "set_labels", "labels": ["a\nb"]}}]}"#,
        "success",
        "cannot carry out `update_task`: a label contains a control character",
    ),
    (
        r#"{"actions": [{"type": "execute_workflow", "payload": {}}]}"#,
        "success",
        "cannot carry out `execute_workflow`: the action cannot be read: missing field `workflow_id`",
    ),
    (
        r#"{"actions": [{"type": "execute_workflow", "payload": {"workflowId": "w"}}]}"#,
        "success",
        "hook `workflow: w` failed: there is no workflow `w`: `windlass workflow list` names them",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {}}]}"#,
        "success",
        "cannot carry out `log`: the action cannot be read: missing field `type`",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {"type": "task_completed", "nodeId": "T1", "data": {}}}]}"#,
        "success",
        "cannot carry out `log`: a log action cannot make a `task_completed`: write dependency_satisfied, agent_metrics, auto_label_suggestion, or a type with a namespace such as `review.passed`",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {"type": "session_ended", "data": {}}}]}"#,
        "success",
        "cannot carry out `log`: a log action cannot make a `session_ended`: write dependency_satisfied, agent_metrics, auto_label_suggestion, or a type with a namespace such as `review.passed`",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {"type": "nonsense"}}]}"#,
        "success",
        "cannot carry out `log`: a log action cannot make a `nonsense`: write dependency_satisfied, agent_metrics, auto_label_suggestion, or a type with a namespace such as `review.passed`",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {"type": "agent_metrics", "data": 7}}]}"#,
        "success",
        "cannot carry out `log`: the action cannot be read: `data`: invalid type: integer `7`, expected a map",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": {"type": "hook_finished", "data": {"debt": "1-0"}}}]}"#,
        "success",
        "cannot carry out `log`: a log action cannot make a `hook_finished`: write dependency_satisfied, agent_metrics, auto_label_suggestion, or a type with a namespace such as `review.passed`",
    ),
    (
        r#"{"actions": [{"type": "explode", "payload": {}}, {"type": "create_task", "payload": {"goal": "Made"}}, {"type": "update_task", "payload": {"taskId": "T99", "action": "start"}}]}"#,
        "success",
        "cannot carry out `explode`: the action `explode` is not known; it is one of create_task, update_task, execute_workflow or log / cannot carry out `update_task`: there is no task T99",
    ),
    (r#"{"status": "failure", "message": "no compiler"}"#, "failure", "hook `bad` failed: no compiler"),
    (r#"{"decision": "block", "reason": "not today"}"#, "failure", "hook `bad` failed: not today"),
    (r#"{"action": "escalate", "reason": "ask Ann"}"#, "escalate", "hook `bad` asks for a person: ask Ann"),
    (r#"{"continue": false, "stopReason": "enough"}"#, "escalate", "hook `bad` asks for a person: enough"),
    (r#"{"status": "skip", "message": "nothing to do"}"#, "skip", ""),
];

/// Checks answers of a stop hook: the exit code of the session, the hook's outcome, and its message to people.
const STOP_ANSWERS: &[(&str, i32, &str, &str)] = &[
    (
        r#"{"status": "success",}"#,
        3,
        "failure",
        "its output looks like JSON but is not: trailing comma at line 1 column 22",
    ),
    (r#"{"status": 7}"#, 3, "failure", "bad answer: `status`: invalid type: integer `7`, expected string or map"),
    (
        r#"{"status": "sucess"}"#,
        3,
        "failure",
        r#"bad answer: `status`: unknown variant `sucess`, expected one of `success`, `failure`, `skip`"#,
    ),
    (
        r#"{"decision": "maybe"}"#,
        3,
        "failure",
        r#"bad answer: `decision`: unknown variant `maybe`, expected one of `allow`, `approve`, `block`, `deny`"#,
    ),
    (
        r#"{"action": ["complete"]}"#,
        3,
        "failure",
        "bad answer: `action`: invalid type: sequence, expected string or map",
    ),
    (r#"{"continue": "no"}"#, 3, "failure", r#"bad answer: `continue`: invalid type: string "no", expected a boolean"#),
    (r#"{"reason": {"a": 1}}"#, 3, "failure", "bad answer: `reason`: invalid type: map, expected a string"),
    (r#"{"context": "x"}"#, 3, "failure", r#"bad answer: `context`: invalid type: string "x", expected a map"#),
    (r#"{"metadata": [1]}"#, 3, "failure", "bad answer: `metadata`: invalid type: sequence, expected a map"),
    (
        r#"{"suppressOutput": 1}"#,
        3,
        "failure",
        "bad answer: `suppressOutput`: invalid type: integer `1`, expected a boolean",
    ),
    (
        r#"{"hookSpecificOutput": 3}"#,
        3,
        "failure",
        "bad answer: `hookSpecificOutput`: invalid type: integer `3`, expected struct HookSpecificOutput",
    ),
    (
        r#"{"hookSpecificOutput": {"permissionDecision": "perhaps"}}"#,
        3,
        "failure",
        r#"bad answer: `hookSpecificOutput.permissionDecision`: unknown variant `perhaps`, expected one of `allow`, `deny`, `ask`, `defer`"#,
    ),
    (
        r#"{"nextPrompt": 1, "action": "continue"}"#,
        3,
        "failure",
        "bad answer: `nextPrompt`: invalid type: integer `1`, expected a string",
    ),
    (
        r#"{"status": "success", "decision": "block"}"#,
        3,
        "failure",
        r#"bad answer: `status` "success" and `decision` "block" contradict each other; say one of them"#,
    ),
    (
        r#"{"action": "complete", "status": "failure"}"#,
        3,
        "failure",
        r#"bad answer: `action` "complete" and `status` "failure" contradict each other; say one of them"#,
    ),
    (
        r#"{"decision": "allow", "action": "escalate"}"#,
        3,
        "failure",
        r#"bad answer: `decision` "allow" and `action` "escalate" contradict each other; say one of them"#,
    ),
    (
        r#"{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}"#,
        3,
        "failure",
        r#"bad answer: `decision` "allow" and `permissionDecision` "deny" contradict each other; say one of them"#,
    ),
    (
        r#"{"status": "success", "status": "failure"}"#,
        3,
        "failure",
        "bad answer: duplicate field `status` at line 1 column 30",
    ),
    (r#"{"nextPrompt": "a", "next_prompt": "b"}"#, 3, "failure", "bad answer: duplicate field `nextPrompt`"),
    (
        r#"{"status": "success", "colour": "red", "statsu": 1}"#,
        0,
        "success",
        "its answer has unknown fields: `colour`, `statsu`",
    ),
    (r#"{"actions": "x"}"#, 3, "failure", r#"bad answer: `actions`: invalid type: string "x", expected a sequence"#),
    (
        r#"{"actions": [1]}"#,
        3,
        "failure",
        "bad answer: `actions[0]`: invalid type: integer `1`, expected struct ActionRequest",
    ),
    (r#"{"actions": [{}]}"#, 3, "failure", "bad answer: `actions[0]`: missing field `type`"),
    (
        r#"{"actions": [{"type": 7}]}"#,
        3,
        "failure",
        "bad answer: `actions[0].type`: invalid type: integer `7`, expected a string",
    ),
    (
        r#"{"actions": [{"type": "log", "payload": []}]}"#,
        3,
        "failure",
        "bad answer: `actions[0].payload`: expected an object",
    ),
    (r#"{"status": "failure", "message": "no compiler"}"#, 4, "block", "no compiler"),
    (r#"{"decision": "block", "reason": "not today"}"#, 4, "block", ""),
    (r#"{"action": "escalate", "reason": "ask Ann"}"#, 4, "escalate", "ask Ann"),
    (r#"{"continue": false, "stopReason": "enough"}"#, 4, "escalate", "enough"),
    (r#"{"action": "continue"}"#, 3, "continue", ""),
    (r#"{"status": "skip", "message": "nothing to do"}"#, 0, "skip", "nothing to do"),
];

/// A project with one existing and one deleted task.
fn create_event_hook_project() -> TestWorld {
    let world = TestWorld::with_tasks(&["Zero", "Gone"]);
    world.run_ok(&["task", "delete", "T2"]);
    let config = "hooks: {task_created: [{name: bad, command: cat answer, when: \"goal == 'One'\"}, {name: good, command: touch good}]}";
    world.write(".windlass/config.yaml", config);
    world.run_ok(&["trust", "--yes"]);
    world
}

/// Adds a task whose hook gives this answer. Returns the hook's outcome and message.
#[track_caller]
fn run_hook_with_answer(world: &TestWorld, answer: &str) -> (String, Vec<String>) {
    world.write("answer", answer);
    let _ = std::fs::remove_file(world.path("good"));
    let before = world.json_lines(&["task", "list", "--all"]).len();
    let errors = world.event_payloads("action_error").len();
    let ran = world.run(&["--json", "task", "add", "One"]);
    assert_eq!(ran.code, 0, "{answer:.500}\n{ran}");
    assert_eq!(ran.stdout.lines().count(), 1, "{answer:.500}\n{ran}");
    assert!(
        world.has_file("good") && world.json_lines(&["task", "list", "--all"]).len() > before,
        "{answer:.500}\n{ran}"
    );
    let (outcome, message) = world.last_hook_outcome("bad");
    let said: Vec<String> = ran.stderr.lines().map(|line| line.strip_prefix("warning: ").unwrap().to_owned()).collect();
    // The message is the recorded one, with control sequences cleaned.
    let same = |said: &str, recorded: &str| said == recorded || !recorded.is_ascii() || recorded.contains('\u{0}');
    assert!(outcome != "failure" || same(&said[0], &format!("hook `bad` failed: {message}")), "{said:?}");
    for (error, said) in world.event_payloads("action_error")[errors..].iter().zip(&said) {
        let text = |name: &str| error[name].as_str().unwrap();
        let told = format!("cannot carry out `{}`: {}", text("actionType"), text("error"));
        assert!(same(said, &told), "{said}\n{told}");
    }
    (outcome, said)
}

#[test]
fn event_hook_answer_produces_expected_outcome_and_warning() {
    let world = create_event_hook_project();
    for (answer, outcome, said) in EVENT_ANSWERS {
        let (found, told) = run_hook_with_answer(&world, answer);
        assert_eq!((found.as_str(), told.join(" / ").as_str()), (*outcome, *said), "{answer}");
    }
    for text in TEXT_ANSWERS {
        assert_eq!(run_hook_with_answer(&world, text), ("success".to_owned(), Vec::new()), "{text}");
    }
    world.run_ok(&["doctor"]);
}

/// Too long, too deep, too many: each is a failure that names the limit.
#[test]
fn oversized_hook_answer_fails_and_reports_limit() {
    let world = create_event_hook_project();
    let log = json!({"type": "log"});
    let check = |answer: String, why: &str| {
        let (outcome, said) = run_hook_with_answer(&world, &answer);
        assert_eq!(
            (outcome.as_str(), said.join("").as_str()),
            ("failure", format!("hook `bad` failed: bad answer: {why}").as_str())
        );
    };
    check(json!({"actions": vec![log.clone(); 65]}).to_string(), "it has 65 actions; at most 64 are allowed");
    check(json!({"actions": vec![log; 10_000]}).to_string(), "it has 10000 actions; at most 64 are allowed");
    check(
        json!({"actions": [{"type": "x".repeat(300)}]}).to_string(),
        "`actions[0].type`: expected a name of at most 256 bytes",
    );
    check(
        "{\"a\":".repeat(100) + "1" + &"}".repeat(100),
        "it has 100 levels of lists and objects; at most 64 are allowed",
    );
    check(json!({"message": "x".repeat(300_000)}).to_string(), TOO_LONG_MESSAGE);
    check("{\"a\":[".repeat(50_000) + &"]}".repeat(50_000), TOO_LONG_MESSAGE);
    let large = json!({"actions": [{"type": "create_task", "payload": {"goal": "x".repeat(70_000)}}]}).to_string();
    let (outcome, said) = run_hook_with_answer(&world, &large);
    assert_eq!((outcome.as_str(), said.len()), ("success", 1));
    assert_eq!(said[0], "cannot carry out `create_task`: the goal has 70000 bytes; at most 65536 are allowed");
}

const TOO_LONG_MESSAGE: &str = "it is longer than the part that is kept; at most 262144 bytes are allowed";

fn run_gate_with_answer(answer: &str) -> (TestWorld, i32) {
    let world = create_hook_project(
        "hooks: {stop: [{name: bad, command: cat answer}, {name: good, command: touch good}]}\nlimits: {max_hook_retries: 1}",
    );
    world.write("answer", answer);
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
    assert!(world.has_file("good") && ran.stderr.is_empty(), "{answer:.500}\n{ran}");
    (world, ran.code)
}

#[test]
fn stop_hook_answer_produces_expected_outcome_and_exit_code() {
    for (answer, code, outcome, message) in STOP_ANSWERS {
        let (world, found) = run_gate_with_answer(answer);
        assert_eq!(
            (found, world.last_hook_outcome("bad")),
            (*code, ((*outcome).to_owned(), (*message).to_owned())),
            "{answer}"
        );
    }
}

/// An unreadable block is not a pass.
#[test]
fn unreadable_block_answer_does_not_pass_stop_gate() {
    let no = json!({"decision": "block", "reason": "x".repeat(300_000)}).to_string();
    let (world, code) = run_gate_with_answer(&no);
    assert_eq!(
        (code, world.last_hook_outcome("bad")),
        (3, ("failure".to_owned(), format!("bad answer: {TOO_LONG_MESSAGE}")))
    );
    for answer in [r#"{"decision": "block", "reason": "\ud83d"}"#, r#"{"decision": "block", "score": 1e999}"#] {
        let (world, code) = run_gate_with_answer(answer);
        assert_eq!((code, world.last_hook_outcome("bad").0.as_str()), (3, "failure"), "{answer}");
    }
    let (world, code) = run_gate_with_answer("\u{feff}\r\n{\"decision\": \"block\", \"reason\": \"no\"}\r\n");
    assert_eq!((code, world.last_hook_outcome("bad").0.as_str()), (4, "block"));
    let (world, code) = run_gate_with_answer(&"{\"decision\": \"block\"}\n".repeat(20_000));
    assert_eq!((code, world.last_hook_outcome("bad").0.as_str()), (3, "failure"));
    // Many programs print several lines of JSON, which are no answer.
    let (world, code) = run_gate_with_answer(&"{\"type\": \"test\", \"event\": \"ok\"}\n".repeat(20_000));
    assert_eq!((code, world.last_hook_outcome("bad").0.as_str()), (0, "success"));
}

/// One block is a block, whatever the other hooks and the other stream say.
#[test]
fn hooks_that_contradict_each_other() {
    let check = |first: &str, second: &str, code: i32| {
        let world = FaultyHookPoint::Stop.create_project(first, "retry: {max: 0}");
        world.write("good.sh", format!("touch good; {second}"));
        let ran = world.run(&FaultyHookPoint::Stop.trigger_command());
        assert!(ran.code == code && world.has_file("good"), "{first}, {second}\n{ran}");
    };
    let say = |answer: Value| format!("echo '{answer}'");
    let (yes, no) = (say(json!({"decision": "approve"})), say(json!({"decision": "block", "reason": "no"})));
    let (on, person) = (say(json!({"action": "continue"})), say(json!({"action": "escalate", "reason": "ask"})));
    check(&yes, &yes, 0);
    check(&yes, &no, 4);
    check(&no, &yes, 4);
    check(&format!("{yes}; exit 2"), &yes, 4);
    check(&yes, &on, 3);
    check(&on, &person, 4);
    check(&yes, "exit 1", 3);
}

/// Texts that would harm a terminal or a log are cleaned first.
#[test]
fn hostile_text_in_hook_answer_is_cleaned_before_display() {
    let world = create_event_hook_project();
    let hostile = "a\u{0}b\u{1b}[31mc\u{7}\u{202e}d\r\n";
    for answer in [
        json!({"status": "failure", "message": hostile}),
        json!({"decision": "block", "reason": hostile, "systemMessage": hostile}),
        json!({"action": "escalate", "reason": hostile}),
        json!({"status": hostile}),
        json!({hostile: 1}),
        json!({"actions": [{"type": hostile, "payload": {hostile: hostile}}]}),
        json!({"actions": [{"type": "update_task", "payload": {"taskId": hostile, "action": hostile}}]}),
        json!({"actions": [{"type": "create_task", "payload": {"goal": "x", "labels": [hostile]}}]}),
        json!({"actions": [{"type": "log", "payload": {"a": serde_json::from_str::<Value>(&nested_lists(55)).unwrap()}}]}),
    ] {
        let (_, said) = run_hook_with_answer(&world, &answer.to_string());
        assert!(said.iter().all(|line| !line.contains(char::is_control)), "{answer}\n{said:?}");
        let shown = world.run_ok(&["hooks", "history", "--limit", "3"]);
        assert!(!shown.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{shown:?}");
    }
    world.run_ok(&["doctor"]);
}

/// Lists within lists.
fn nested_lists(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Actions at the stop gate run one by one; people see which were refused.
#[test]
fn actions_of_stop_hooks() {
    let actions = json!({"actions": [
        {"type": "explode"},
        {"type": "create_task", "payload": {"goal": "Made"}},
        {"type": "update_task", "payload": {"taskId": "T99", "action": "start"}},
    ]});
    let world = FaultyHookPoint::Stop.create_project("cat answer", "timeout: 10s");
    world.write("answer", actions.to_string());
    let ran = world.run(&FaultyHookPoint::Stop.trigger_command());
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("  cannot carry out `explode`: the action `explode` is not known"), "{ran}");
    assert!(ran.stdout.contains("  cannot carry out `update_task`: there is no task T99\n"), "{ran}");
    let errors = world.event_payloads("action_error");
    let kinds: Vec<&Value> = errors.iter().map(|error| &error["actionType"]).collect();
    assert_eq!(kinds, ["explode", "update_task"]);
    assert_eq!(world.json(&["task", "show", "T2"])["goal"], "Made");
}

/// A log entry may have any type except those of tasks and sessions.
#[test]
fn log_action_with_reserved_event_type_is_refused() {
    let world = create_event_hook_project();
    let data = json!({"result": "done", "artifacts": [], "duration": 1});
    let log = |kind: &str, data: &Value| {
        json!({"actions": [{"type": "log", "payload": {"type": kind, "nodeId": "T1", "data": data}}]}).to_string()
    };
    for kind in ["task_completed", "task_deleted", "session_ended", "hook_finished", "gate_decided", "feedback_queued"]
    {
        let (_, said) = run_hook_with_answer(&world, &log(kind, &data));
        assert!(said.len() == 1 && said[0].starts_with("cannot carry out `log`: "), "{kind}: {said:?}");
        assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
    }
    let logged = log("auto_label_suggestion", &json!({"labels": ["x"], "keywords": ["y"]}));
    assert_eq!(run_hook_with_answer(&world, &logged), ("success".to_owned(), Vec::new()));
    assert_eq!(world.event_payloads("auto_label_suggestion").len(), 1);
}
