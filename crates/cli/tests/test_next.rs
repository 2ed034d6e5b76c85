//! The commands that are offered next: they can be typed as printed, and fit the present state

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::TestWorld;
use crate::test_run::{PausedRun, RUN, create_agent_project};

const SESSION_NAME: &str = "mend-the-pump-e01275de";
const RESUME_COMMAND: &str = "windlass run --session mend-the-pump-e01275de --agent 'command:sh agent.sh'";
const RETRY_COMMAND: &str = "windlass run --task T1 --agent 'command:sh agent.sh'";
const COMPLETING_AGENT: &str = "echo '<promise>COMPLETE</promise>'";

/// A project whose session was killed in its first turn.
pub fn create_killed_session(config: &str) -> TestWorld {
    let mut waiting = PausedRun::new(config);
    waiting.send_signal(Signal::KILL);
    waiting.await_exit();
    waiting.world.with_windlass()
}

/// A project in which T1 is blocked by a stop hook, until there is a file `fixed`.
pub fn create_escalated_task(terms: &str) -> TestWorld {
    let hook = "{name: tests, command: 'test -e fixed || { echo red >&2; exit 2; }'}";
    let world = create_agent_project(
        &format!("limits: {{max_hook_retries: 0}}\n{terms}\nhooks: {{stop: [{hook}]}}\n"),
        COMPLETING_AGENT,
    );
    assert_eq!(world.run(RUN).code, 4);
    world.with_windlass()
}

#[test]
fn resume_command_names_the_agent_of_the_session() {
    let world = create_killed_session("");
    assert!(world.run_ok(&["status"]).contains(&format!("\n  {RESUME_COMMAND}\n")), "{}", world.run_ok(&["status"]));
    assert_eq!(world.json(&["session", "show", SESSION_NAME])["next"][0], RESUME_COMMAND);
    let mut follow = world.command(&["session", "logs", SESSION_NAME, "--follow"]);
    let mut follower = follow.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut noted = BufReader::new(follower.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(noted.next().unwrap(), format!("note: no process runs it now: `{RESUME_COMMAND}` resumes it"));
    let ran = world.run_shell_command(RESUME_COMMAND);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn resume_command_omits_configured_agent() {
    let world = create_killed_session("agent: command:sh agent.sh");
    let next = format!("windlass run --session {SESSION_NAME}");
    assert_eq!(world.json(&["session", "show", SESSION_NAME])["next"][0], next.as_str());
    assert_eq!(world.run_shell_command(&next).code, 0);
    world.run_ok(&["task", "add", "Another"]);
    world.run_ok(&["task", "block", "T2", "--reason", "which?"]);
    assert!(world.run_ok(&["answer", "T2", "continue"]).ends_with("\n`windlass run --task T2` resumes it\n"));
}

/// A command without trust is not offered as if it had trust: a store can come with a repository.
#[test]
fn trust_option_is_offered_only_to_its_user() {
    let world = create_killed_session("hooks: {session_end: [{command: 'true'}]}");
    world.run_ok(&["trust", "--revoke"]);
    let offered = |words: &[&str]| world.json(&[words, &["session", "show", SESSION_NAME]].concat())["next"][0].clone();
    assert_eq!(offered(&[]), format!("{RESUME_COMMAND}  # not trusted now: see `windlass trust`, or say --trust"));
    assert_eq!(world.run_shell_command(RESUME_COMMAND).code, 64);
    assert_eq!(offered(&["--trust"]), format!("{RESUME_COMMAND} --trust"));
    assert_eq!(world.run_shell_command(&format!("{RESUME_COMMAND} --trust")).code, 0);
}

#[test]
fn answer_prints_the_next_command() {
    let world = create_escalated_task("");
    assert_snapshot!(world.run_ok(&["answer", "T1", "ignore-hook"]), @"
    T1  ready  P2  Mend the pump
    `windlass run --task T1 --agent 'command:sh agent.sh'` resumes it
    ");
    assert_eq!(world.run_shell_command(RETRY_COMMAND).code, 0);

    let world = create_escalated_task("on_retry_limit: ask");
    assert_snapshot!(world.run_ok(&["answer", "T1", "ignore-hook"]), @"
    session mend-the-pump-e01275de continues with this answer
    once `windlass run --session mend-the-pump-e01275de --agent 'command:sh agent.sh'` runs it
    ");
    assert_eq!(world.run_shell_command(RESUME_COMMAND).code, 0);

    // The person chooses an agent if none has worked on it.
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    world.run_ok(&["task", "block", "T1", "--reason", "which?"]);
    let answered = world.run_ok(&["answer", "T1", "continue"]);
    assert!(answered.ends_with("\n`windlass run --task T1 --agent AGENT` resumes it\n"), "{answered}");
}

#[test]
fn ended_session_offers_command_matching_task_state() {
    let world = create_escalated_task("");
    let next = || world.json(&["session", "show", SESSION_NAME])["next"].clone();
    let why = format!("windlass why {SESSION_NAME}");
    assert_eq!(next(), json!([why, "windlass answer T1 continue"]));
    world.run_ok(&["answer", "T1", "reject", "never"]);
    assert_eq!(next(), json!([why, "windlass answer T1 retry"]));
    assert_eq!(world.run_shell_command("windlass answer T1 retry").code, 0);
    assert_eq!(next(), json!([why, RETRY_COMMAND]));
    world.run_ok(&["task", "claim", "T1"]);
    assert_eq!(next(), json!([why]));
    world.run_ok(&["task", "release", "T1", "--force"]);
    world.write("fixed", "");
    assert_eq!(world.run_shell_command(RETRY_COMMAND).code, 0);
    assert_eq!(next(), json!([why]));
}

#[test]
fn cancelled_session_offers_command_to_retry_its_task() {
    let world = create_killed_session("");
    world.run_ok(&["session", "cancel", SESSION_NAME]);
    world.run_ok(&["doctor", "--settle"]);
    let shown = world.run_ok(&["session", "show", SESSION_NAME]);
    assert!(shown.ends_with(&format!("\n  {RETRY_COMMAND}  try again\n")), "{shown}");
    assert_eq!(world.run_shell_command(RETRY_COMMAND).code, 0);
}

#[test]
fn status_says_what_to_type_for_what_has_failed_and_how_much_is_not_shown() {
    let world = TestWorld::with_tasks(&["1", "2", "3", "4", "5", "6", "7", "8"]);
    world.run_ok(&["task", "fail", "T1", "--reason", "no pump"]);
    (2..=8).for_each(|id| drop(world.run_ok(&["task", "block", &format!("T{id}"), "--reason", "which?"])));
    (0..7).for_each(|_| drop(world.run_ok(&["task", "add", "More"])));
    let shown = world.run_ok(&["status"]);
    let (_, shown) = shown.split_once("\n\n").unwrap();
    assert_snapshot!(shown, @r#"
    needs a person
    T1  failed   P2  1
    T2  blocked  P2  2
    T3  blocked  P2  3
    T4  blocked  P2  4
    T5  blocked  P2  5
      T1: no pump
      windlass answer T1 retry
      T2: which?
      windlass answer T2 continue
      T3: which?
      windlass answer T3 continue
      T4: which?
      windlass answer T4 continue
      T5: which?
      windlass answer T5 continue
    and 3 more: `windlass task list --state blocked --state failed`

    next
    T9   ready  P2  More
    T10  ready  P2  More
    T11  ready  P2  More
    T12  ready  P2  More
    T13  ready  P2  More
    and 2 more: `windlass task ready`
    "#);
    assert_eq!(world.run_ok(&["task", "list", "--state", "blocked", "--state", "failed"]).lines().count(), 8);
    assert_eq!(world.run_ok(&["task", "ready"]).lines().count(), 7);
    world.run_ok(&["answer", "T1", "retry"]);
}

/// The hook has not passed by itself, and the ending says so.
#[test]
fn hook_overridden_by_person_is_named_in_ending() {
    let world = create_escalated_task("");
    world.run_ok(&["answer", "T1", "ignore-hook"]);
    let ran = world.run_shell_command(RETRY_COMMAND);
    let passed = "complete after one iteration: `tests` did not pass, and a person let it pass\n";
    assert!(ran.code == 0 && ran.stdout.contains(passed), "{ran}");
    let shown = world.run_ok(&["session", "show", "t1-mend-the-pump"]);
    assert!(
        shown.starts_with("session t1-mend-the-pump  complete: `tests` did not pass, and a person let it pass\n"),
        "{shown}"
    );

    // A passed hook needs no permission.
    let world = create_escalated_task("");
    world.run_ok(&["answer", "T1", "ignore-hook"]);
    world.write("fixed", "");
    let ran = world.run_shell_command(RETRY_COMMAND);
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration\n"), "{ran}");
}
