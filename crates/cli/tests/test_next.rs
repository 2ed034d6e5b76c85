//! The commands that are offered next: they can be typed as printed, and fit the present state

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::World;
use crate::test_run::{RUN, Waiting, world};

const NAME: &str = "mend-the-pump-e01275de";
const GO_ON: &str = "windlass run --session mend-the-pump-e01275de --agent 'command:sh agent.sh'";
const AGAIN: &str = "windlass run --task T1 --agent 'command:sh agent.sh'";
const DONE: &str = "echo '<promise>COMPLETE</promise>'";

/// A project whose session was killed in its first turn.
pub fn left(config: &str) -> World {
    let mut waiting = Waiting::new(config);
    waiting.signal(Signal::KILL);
    waiting.end();
    waiting.world.with_windlass()
}

/// A project in which T1 is blocked by a stop hook, until there is a file `fixed`.
pub fn escalated(terms: &str) -> World {
    let hook = "{name: tests, command: 'test -e fixed || { echo red >&2; exit 2; }'}";
    let world = world(&format!("limits: {{max_hook_retries: 0}}\n{terms}\nhooks: {{stop: [{hook}]}}\n"), DONE);
    assert_eq!(world.run(RUN).code, 4);
    world.with_windlass()
}

#[test]
fn resume_command_names_the_agent_of_the_session() {
    let world = left("");
    assert!(world.ok(&["status"]).contains(&format!("\n  {GO_ON}\n")), "{}", world.ok(&["status"]));
    assert_eq!(world.json(&["session", "show", NAME])["next"][0], GO_ON);
    let mut follow = world.command(&["session", "logs", NAME, "--follow"]);
    let mut follower = follow.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut noted = BufReader::new(follower.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(noted.next().unwrap(), format!("note: no process runs it now: `{GO_ON}` resumes it"));
    let ran = world.types(GO_ON);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn resume_command_omits_configured_agent() {
    let world = left("agent: command:sh agent.sh");
    let next = format!("windlass run --session {NAME}");
    assert_eq!(world.json(&["session", "show", NAME])["next"][0], next.as_str());
    assert_eq!(world.types(&next).code, 0);
    world.ok(&["task", "add", "Another"]);
    world.ok(&["task", "block", "T2", "--reason", "which?"]);
    assert!(world.ok(&["answer", "T2", "continue"]).ends_with("\n`windlass run --task T2` resumes it\n"));
}

/// A command without trust is not offered as if it had trust: a store can come with a repository.
#[test]
fn trust_option_is_offered_only_to_its_user() {
    let world = left("hooks: {session_end: [{command: 'true'}]}");
    world.ok(&["trust", "--revoke"]);
    let offered = |words: &[&str]| world.json(&[words, &["session", "show", NAME]].concat())["next"][0].clone();
    assert_eq!(offered(&[]), format!("{GO_ON}  # not trusted now: see `windlass trust`, or say --trust"));
    assert_eq!(world.types(GO_ON).code, 64);
    assert_eq!(offered(&["--trust"]), format!("{GO_ON} --trust"));
    assert_eq!(world.types(&format!("{GO_ON} --trust")).code, 0);
}

#[test]
fn answer_prints_the_next_command() {
    let world = escalated("");
    assert_snapshot!(world.ok(&["answer", "T1", "ignore-hook"]), @"
    T1  ready  P2  Mend the pump
    `windlass run --task T1 --agent 'command:sh agent.sh'` resumes it
    ");
    assert_eq!(world.types(AGAIN).code, 0);

    let world = escalated("on_retry_limit: ask");
    assert_snapshot!(world.ok(&["answer", "T1", "ignore-hook"]), @"
    session mend-the-pump-e01275de continues with this answer
    once `windlass run --session mend-the-pump-e01275de --agent 'command:sh agent.sh'` runs it
    ");
    assert_eq!(world.types(GO_ON).code, 0);

    // The person chooses an agent if none has worked on it.
    let world = World::with_tasks(&["Mend the pump"]);
    world.ok(&["task", "block", "T1", "--reason", "which?"]);
    let answered = world.ok(&["answer", "T1", "continue"]);
    assert!(answered.ends_with("\n`windlass run --task T1 --agent AGENT` resumes it\n"), "{answered}");
}

#[test]
fn what_a_session_that_has_ended_offers_fits_its_task() {
    let world = escalated("");
    let next = || world.json(&["session", "show", NAME])["next"].clone();
    let why = format!("windlass why {NAME}");
    assert_eq!(next(), json!([why, "windlass answer T1 continue"]));
    world.ok(&["answer", "T1", "reject", "never"]);
    assert_eq!(next(), json!([why, "windlass answer T1 retry"]));
    assert_eq!(world.types("windlass answer T1 retry").code, 0);
    assert_eq!(next(), json!([why, AGAIN]));
    world.ok(&["task", "claim", "T1"]);
    assert_eq!(next(), json!([why]));
    world.ok(&["task", "release", "T1", "--force"]);
    world.write("fixed", "");
    assert_eq!(world.types(AGAIN).code, 0);
    assert_eq!(next(), json!([why]));
}

#[test]
fn a_session_that_was_cancelled_offers_to_try_again() {
    let world = left("");
    world.ok(&["session", "cancel", NAME]);
    world.ok(&["doctor", "--settle"]);
    let shown = world.ok(&["session", "show", NAME]);
    assert!(shown.ends_with(&format!("\n  {AGAIN}  try again\n")), "{shown}");
    assert_eq!(world.types(AGAIN).code, 0);
}

#[test]
fn status_says_what_to_type_for_what_has_failed_and_how_much_is_not_shown() {
    let world = World::with_tasks(&["1", "2", "3", "4", "5", "6", "7", "8"]);
    world.ok(&["task", "fail", "T1", "--reason", "no pump"]);
    (2..=8).for_each(|id| drop(world.ok(&["task", "block", &format!("T{id}"), "--reason", "which?"])));
    (0..7).for_each(|_| drop(world.ok(&["task", "add", "More"])));
    let shown = world.ok(&["status"]);
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
    assert_eq!(world.ok(&["task", "list", "--state", "blocked", "--state", "failed"]).lines().count(), 8);
    assert_eq!(world.ok(&["task", "ready"]).lines().count(), 7);
    world.ok(&["answer", "T1", "retry"]);
}

/// The hook has not passed by itself, and the ending says so.
#[test]
fn a_hook_that_a_person_has_let_pass_is_named_at_the_end() {
    let world = escalated("");
    world.ok(&["answer", "T1", "ignore-hook"]);
    let ran = world.types(AGAIN);
    let passed = "complete after one iteration: `tests` did not pass, and a person let it pass\n";
    assert!(ran.code == 0 && ran.stdout.contains(passed), "{ran}");
    let shown = world.ok(&["session", "show", "t1-mend-the-pump"]);
    assert!(
        shown.starts_with("session t1-mend-the-pump  complete: `tests` did not pass, and a person let it pass\n"),
        "{shown}"
    );

    // A passed hook needs no permission.
    let world = escalated("");
    world.ok(&["answer", "T1", "ignore-hook"]);
    world.write("fixed", "");
    let ran = world.types(AGAIN);
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration\n"), "{ran}");
}
