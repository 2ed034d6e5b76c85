//! The commands that are twins of tools: series of iterations, stop hooks, checkpoints.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::hooked::hooked;

const START: [&str; 7] = ["iteration", "start", "T1", "--max-iterations", "3", "--promise", "COMPLETE"];

/// The id of a new series on T1.
fn started(world: &World, more: &[&str]) -> String {
    let answer = world.json(&[&START[..], more].concat());
    answer["iterationId"].as_str().unwrap().to_owned()
}

#[test]
fn an_agents_output_comes_from_standard_input() {
    let world = World::with_tasks(&["one"]);
    let id = started(&world, &[]);
    let said = b"\x1b[31mdone\x1b[0m\n<promise>COMPLETE</promise>\n";
    let judged = world.feed(&["iteration", "validate", &id, "--output-file", "-", "--json"], said);
    let judged: Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged["completionSignal"], "COMPLETE");
    let evaluated = world.feed(&["hooks", "evaluate", &id, "--output-file", "-", "--json"], said);
    let evaluated: Value = serde_json::from_str(&evaluated.stdout).unwrap();
    assert_eq!((&evaluated["hookId"], &evaluated["action"]), (&json!("default"), &json!("continue")));
    let long = vec![b'x'; 1024 * 1024 + 1];
    let refused = world.feed(&["iteration", "validate", &id, "--output-file", "-"], &long);
    assert_eq!(refused.code, 64);
    assert!(refused.stderr.contains("standard input has more than 1048576 bytes"), "{}", refused.stderr);
}

#[test]
fn what_cannot_be_done_is_told_in_the_words_of_the_command_line() {
    let world = World::with_tasks(&["one"]);
    let id = started(&world, &[]);
    let over = |words: &[&str]| world.fails(words);
    let told = [
        over(&["iteration", "next", "IT-99"]),
        over(&["iteration", "next", "T1"]),
        over(&["iteration", "complete", &id, "BLOCKED"]),
        over(&["iteration", "start", "T9", "--max-iterations", "3", "--promise", "COMPLETE"]),
        over(&["iteration", "start", "T1", "--max-iterations", "-1", "--promise", "COMPLETE"]),
        over(&["hooks", "register", "T1", "--type", "rules"]),
        over(&["hooks", "register", "T1", "--type", "rules", "--rules", "tddd"]),
        over(&["hooks", "list", "--task", "T9"]),
        over(&["checkpoint", "resume", "T1"]),
        over(&["checkpoint", "create", "T1", "--context", "{"]),
    ];
    assert_snapshot!(told.join("\n"), @r#"
    error: there is no series of iterations IT-99
    hint: `windlass iteration start` begins one and tells its id; `windlass task show` tells the one that is under way
    [1 not_found]
    error: `T1` is not a value for ITERATION
    caused by: `T1` is not an iteration id such as IT-12
    hint: `windlass iteration next --help` shows how it is used
    [64 usage]
    error: IT-4 was not started with BLOCKED, but with COMPLETE
    hint: set T1 to blocked with `windlass task block`, for a person
    [1 refused]
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    error: `-1` is not a value for --max-iterations
    caused by: expected a whole number from 1 to 100
    hint: `windlass iteration start --help` shows how it is used
    [64 usage]
    error: rules: is missing; give the name of a template (tdd, security-remediation, checkpoint-every) or a list such as [{"when": "iteration > 3", "action": "escalate"}]
    [64 usage]
    error: rules: has no template `tddd`: did you mean `tdd`?
    [64 usage]
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    error: T1 has no checkpoint that could be resumed from
    hint: `windlass checkpoint create` makes one; `windlass task show` tells how the task stands
    [1 not_found]
    error: `{` is not a value for --context
    caused by: expected JSON: EOF while parsing an object at line 1 column 1
    hint: `windlass checkpoint create --help` shows how it is used
    [64 usage]
    "#);
}

#[test]
fn the_maximum_ends_a_series() {
    let world = World::with_tasks(&["one"]);
    let id = started(&world, &[]);
    world.ok(&["iteration", "next", &id]);
    world.ok(&["iteration", "next", &id]);
    assert_snapshot!(world.fails(&["iteration", "next", &id]), @"
    error: IT-4 is at its maximum of 3 iterations: T1 needs a person now, unless it is done
    hint: `windlass task show` shows how its series stands
    [1 refused]
    ");
    assert_snapshot!(world.ok(&["iteration", "validate", &id, "--output", "more"]), @"
    ESCALATE  iteration 3 of IT-4
      maximum: this was iteration 3 of 3
    a person is needed: `windlass task block T1 --reason WHY` says so
    ");
}

/// What an agent may have run says the configuration, and a person's trust.
#[test]
fn commands_are_run_as_the_configuration_allows() {
    let world = hooked("validators: {tests: 'test -e done'}\n");
    world.ok(&["task", "add", "one"]);
    let rule = |kind: &str, config: Value| json!({"type": kind, "name": "tests", "config": config}).to_string();
    let supplied = rule("command", json!({"command": "touch owned"}));
    let refused = world.run(&[&START[..], &["--rule", &supplied]].concat());
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("validationRules[0]: `touch owned` may not be run"), "{}", refused.stderr);
    let named = rule("custom", json!({"validatorId": "tests"}));
    let id = started(&world, &["--rule", &named]);
    let judged = world.json(&["iteration", "validate", &id]);
    assert_eq!((&judged["validationPassed"], &judged["completionSignal"]), (&json!(false), &json!("CONTINUE")));
    world.write("done", "");
    assert_eq!(world.json(&["iteration", "validate", &id])["validationPassed"], true);
    // Somebody changes what would be run: from now on nothing is.
    world.write(".windlass/config.yaml", "validators: {tests: 'touch owned'}\n");
    let judged = world.json(&["iteration", "validate", &id]);
    assert!(judged["results"][0]["message"].as_str().unwrap().contains("windlass trust"), "{judged}");
    assert!(!world.path("owned").exists());
}

#[test]
fn a_command_decides_and_its_output_stays_out_of_ours() {
    let world = hooked("agent_commands: allow\nhooks: {hook_evaluated: [{name: loud, command: echo loud}]}\n");
    world.ok(&["task", "add", "one"]);
    world.write("judge.sh", "jq -e '.agentOutput == \"ready\"' >&2 && exit 0\necho 'not ready' >&2\nexit 2\n");
    world.ok(&["hooks", "register", "T1", "--type", "command", "--command", "sh judge.sh"]);
    let id = started(&world, &[]);
    let judged = world.json(&["iteration", "validate", &id, "--output", "no"]);
    assert_eq!(
        (&judged["completionSignal"], &judged["hookDecision"]["action"]),
        (&json!("CONTINUE"), &json!("continue"))
    );
    assert!(judged["hookDecision"]["nextPrompt"].as_str().unwrap().contains("not ready"), "{judged}");
    let ran = world.run(&["iteration", "validate", &id, "--output", "ready", "--json"]);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    assert!(ran.stdout.contains("\"completionSignal\":\"COMPLETE\""), "{}", ran.stdout);
}

/// Inside a turn an agent claims, and the gates of its session judge.
#[test]
fn inside_a_turn_completing_a_series_is_a_claim() {
    let world = World::new();
    let agent = "windlass iteration start T1 --max-iterations 2 --promise COMPLETE --json > started
id=$(jq -r .iterationId started)
windlass iteration complete $id COMPLETE > completed
windlass task show T1 --json | jq -r .state > state
";
    world.write("agent.sh", agent);
    std::os::unix::fs::symlink(crate::support::WINDLASS, world.programs().join("windlass")).unwrap();
    world.run(&["run", "Fix the login", "--agent", "command:sh agent.sh", "--max-iterations", "1"]);
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    assert_eq!(read("state"), "active\n");
    assert!(read("completed").contains("recorded as a claim"), "{}", read("completed"));
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
}
