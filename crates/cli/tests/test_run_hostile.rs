//! `windlass run` with hostile programs, repositories and timing

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{TestWorld, WINDLASS};
use crate::test_run::{RUN, create_agent_project};

#[test]
fn stop_hook_with_missing_workflow_is_refused() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    world.write(".windlass/config.yaml", "hooks: {stop: [{workflow: check}]}");
    let ran = world.run(&[RUN, &["--trust"]].concat());
    assert_eq!(ran.code, 64, "{ran}");
    let why = "error: the hook `stop[0]` runs the workflow `check`, and there is none\n --> $WORK/.windlass/config.yaml:1:27\n";
    assert!(ran.to_string().starts_with(why), "{ran}");
}

#[test]
fn stop_hook_with_json_block_decision_sends_agent_back() {
    let config = r#"
hooks:
  stop:
    - command: |
        test -e fixed || echo '{"decision": "block", "reason": "two tests fail"}'
"#;
    let world = create_agent_project(config, "test $turn -lt 2 || touch fixed; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("stop[0] blocks\n  [Hook retry 1/5: two tests fail]\n"), "{ran}");
    assert!(fs::read_to_string(world.path("prompt.2")).unwrap().contains("two tests fail"));
}

/// A store is a file of the project: its content is not the person's word.
#[test]
fn agent_recorded_in_store_is_not_started_implicitly() {
    let victim = create_agent_project("", "touch pwned; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status)");
    victim.run(RUN);
    assert!(victim.path("pwned").exists());
    fs::remove_file(victim.path("pwned")).unwrap();
    let ran = victim.run(&["run", "Mend the pump"]);
    assert_eq!(ran.code, 64, "{ran}");
    assert!(ran.stderr.contains("works with `command:sh agent.sh`"), "{ran}");
    assert!(!victim.path("pwned").exists());
}

/// An agent can unset variables, but cannot change its parent processes.
#[test]
fn runs_within_turns_come_to_an_end() {
    let deeper = "env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass run deeper --fresh --agent 'command:sh agent.sh'";
    let agent = format!("mine=$turn; {deeper} > said.$mine 2>&1; echo '<promise>COMPLETE</promise>'");
    let world = create_agent_project("", &agent).with_windlass();
    let ran = world.run(RUN);
    assert_eq!((ran.code, world.read_file("turns").as_str()), (0, "3\n"), "{ran}");
    let refused = "error: cannot start a run within 3 nested programs of Windlass\n\
                   hint: `windlass task add` adds work for a later run\n";
    assert_eq!(world.read_file("said.3"), refused);
    assert_eq!(world.json_lines(&["session", "list", "--all", "--json"]).len(), 3);
}

/// The system would end a writer beyond the limit, without a message.
#[test]
fn exceeded_file_size_limit_is_reported_as_error() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    let mut command = world.program("sh");
    command.args(["-c", "ulimit -f 100; exec \"$0\" \"$@\"", WINDLASS]).args(RUN);
    let ran = world.run_command(&mut command);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.starts_with("error: cannot "), "{ran}");
}

#[test]
fn links_in_place_of_own_directories_are_refused() {
    let world = create_agent_project("", "head -c 400000 /dev/zero; echo '<promise>COMPLETE</promise>'");
    world.write("victim/precious", "gold");
    fs::create_dir(world.path(".windlass")).unwrap();
    symlink(world.path("victim"), world.path(".windlass/owners")).unwrap();
    assert_eq!(world.run(RUN).code, 64);
    assert_eq!(fs::read_to_string(world.path("victim/precious")).unwrap(), "gold");
    fs::remove_file(world.path(".windlass/owners")).unwrap();
    symlink(world.path("victim"), world.path(".windlass/runs")).unwrap();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 64, "{ran}");
    assert_eq!(fs::read_dir(world.path("victim")).unwrap().count(), 1);
}

#[test]
fn run_survives_large_and_malformed_agent_output() {
    let agents = [
        "head -c 90000 /dev/zero | tr '\\0' '\\377'",
        "head -c 90000 /dev/zero | tr '\\0' '\\377' >&2; exit 9",
        "printf 'a\\0b' >&2; exit 1",
        "printf '\\033]0;never closed\\n<promise>COMPLETE</promise>\\n'",
    ];
    let config = "hooks: {post_iteration: [{command: echo after, pipe_output: true}]}";
    for (agent, code) in agents.iter().zip([3, 3, 3, 0]) {
        let world = create_agent_project(config, agent);
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert_eq!(ran.code, code, "{agent}\n{ran}");
        assert!(world.run_ok(&["doctor"]).contains("ok"), "{agent}");
    }
}

#[test]
fn project_directory_removed_by_agent_is_reported() {
    let world = create_agent_project("", "rm -rf .windlass; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("was removed or replaced while it was in use"), "{ran}");
}

/// Acknowledged events are not lost with the log that had them.
#[test]
fn removed_write_ahead_log_is_reported_without_losing_events() {
    for tampering in ["rm .windlass/windlass.db-wal", "rm .windlass/windlass.db-*"] {
        let world = create_agent_project("", &format!("{tampering}; echo '<promise>COMPLETE</promise>'"));
        let ran = world.run(RUN);
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("was removed or replaced while it was in use"), "{ran}");
        world.run_ok(&["doctor"]);
        assert_eq!(world.json_lines(&["events", "--type", "turn_started"]).len(), 1, "{tampering}");
    }
}

/// Type, labels and words of a task decide how its work is judged: the judged agent cannot change them, in any way.
#[test]
fn agent_cannot_change_task_fields_that_decide_gates() {
    let config = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2', when: '\"strict\" in task.labels'}]}\n\
                  task_types: {product: {}, chore: {hooks: {stop: []}}}";
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task_update", "arguments": {"taskId": "T1", "type": "chore"}}}"#;
    let agent = format!(
        "test $turn -gt 1 || {{
            exec > said 2>&1
            windlass task update T1 --type chore
            env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass task update T1 --remove-label strict
            WINDLASS_RUN=absent.1.00000000000000ff windlass task update T1 --goal less
            WINDLASS_RUN=absent.1.00000000000000ff windlass task complete T1 --force
            WINDLASS_RUN=ended.1.00000000000000ff windlass task update T1 --goal less
            windlass task update T2 --type chore
            windlass task update T2 --priority 1
            echo '{call}' | windlass mcp
            echo '{call}' | env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass mcp
            exit
        }}
        echo '<promise>COMPLETE</promise>'"
    );
    let world = create_agent_project(config, &agent).with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Ship the product", "--type", "product", "--label", "strict"]);
    world.run_ok(&["task", "add", "Later", "--type", "product"]);
    let other = ["run", "Other", "--session", "ended", "--max-iterations", "1", "--agent", "command:cat"];
    assert_eq!(world.run(&other).code, 3);
    let ran = world.run(&["run", "--task", "T1", "--session", "one", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    let task = world.run_ok(&["task", "show", "T1"]);
    assert!(task.contains("T1  blocked  P2  Ship the product") && task.contains("strict"), "{task}");
    let (said, refused) =
        (world.read_file("said"), "only a person can change or move T1: it is the task of session `one`");
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("hint: ")).collect();
    let error = format!("error: {refused}");
    let of_types = "error: only a person can change the type or the labels of T2: they decide how work on it is judged";
    let claimed = [
        "T1  active  P2  Ship the product #strict",
        "recorded as a claim: the runner completes the task after its gates",
    ];
    assert_eq!(lines[..3], [&*error; 3], "{said}");
    assert_eq!(lines[3..5], claimed, "{said}");
    assert_eq!(lines[5..8], [&*error, of_types, "T2  ready  P1  Later"], "{said}");
    assert!(lines.len() == 10 && lines[8..].iter().all(|line| line.contains(refused)), "{said}");
    assert!(said.contains("hint: `windlass note add` leaves a note about it"), "{said}");
}

#[test]
fn agent_does_not_start_or_complete_gated_task_of_others() {
    let config = "task_types: {product: {hooks: {stop: [{name: tests, command: 'exit 2'}]}}, infra: {agents: {implementer: []}}}";
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "iteration_complete", "arguments": {"iterationId": "%s", "completionPromise": "COMPLETE"}}}"#;
    let complete = r#"{"iterationId": "%s", "completionPromise": "COMPLETE"}"#;
    let start = json!({"taskId": "T5", "maxIterations": 3, "completionPromises": ["COMPLETE"]});
    let agent = format!(
        "exec 3>&1 > said 2>&1
        windlass task complete T2
        env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass task complete T2 --force
        windlass task start T5
        windlass tool call iteration_start '{start}'
        id=$(cat series)
        printf '{complete}' $id | windlass tool call iteration_complete -
        printf '{call}\\n' $id | windlass mcp
        windlass task complete T3
        windlass task complete T4
        echo '<promise>COMPLETE</promise>' >&3"
    );
    let world = create_agent_project(config, &agent).with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Ship the product", "--type", "product"]);
    world.run_ok(&["task", "add", "Move the servers", "--type", "infra"]);
    world.run_ok(&["task", "add", "Paint it"]);
    world.run_ok(&["task", "add", "Sell the product", "--type", "product"]);
    let start = json!({"taskId": "T2", "maxIterations": 3, "completionPromises": ["COMPLETE"]});
    world.write("series", world.call_tool("iteration_start", &start)["iterationId"].as_str().unwrap());
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read_file("said");
    let parked = "cannot start T5 from inside a session: tasks of the type `product` must pass their gates (stop)";
    assert_eq!(said.lines().filter(|line| line.contains(parked)).count(), 2, "{said}");
    let gated = "cannot complete T2 from inside a session: tasks of the type `product` must pass their gates (stop)";
    assert_eq!(said.lines().filter(|line| line.contains(gated)).count(), 4, "{said}");
    assert!(said.contains("hint: leave it to `windlass run --task T2`; `windlass note add --task T2 TEXT`"), "{said}");
    assert!(said.contains("T3 is of the type `infra`, on which `command:sh agent.sh` may not work"), "{said}");
    let listed = world.run_ok(&["task", "list", "--all"]);
    let states: Vec<&str> = listed.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(states, ["completed", "active", "ready", "completed", "ready"], "{listed}");
    world.run_ok(&["task", "complete", "T2"]);
}

/// The same holds for the stop hooks of others and their series: whatever an agent unsets, it stays an agent.
#[test]
fn agent_cannot_clear_hooks_or_replace_series_of_others() {
    let agent = r#"exec 2> said
        env -u WINDLASS_RUN windlass tool call hook_clear '{"taskId": "T1"}' > cleared
        env -u WINDLASS_RUN windlass tool call iteration_start "$(cat start)" >&2
        echo '<promise>BLOCKED</promise>'"#;
    let world = create_agent_project("", agent).with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Later"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "default"}));
    let start = json!({"taskId": "T2", "maxIterations": 9, "completionPromises": ["COMPLETE"]});
    world.write("start", start.to_string());
    world.call_tool("iteration_start", &start);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(world.event_payloads("hooks_cleared").len(), 0, "{}", world.read_file("cleared"));
    assert!(world.read_file("cleared").contains("\"hooksCleared\": 0"), "{}", world.read_file("cleared"));
    assert_eq!(world.event_payloads("series_started").len(), 1, "{}", world.read_file("said"));
    assert!(world.read_file("said").contains("was started for T2 by another"), "{}", world.read_file("said"));
}

#[test]
fn agent_without_its_variables_is_offered_no_force_for_a_held_task() {
    let agent = "env -u WINDLASS_RUN windlass task complete T2 2> said
        env -u WINDLASS_RUN windlass task complete T2 --force 2>> said
        echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project("", agent).with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Later"]);
    world.run_ok(&["task", "claim", "T2"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read_file("said");
    let hint = "hint: leave it to ann; `windlass note add --task T2 TEXT` tells it what you know\n";
    assert_eq!((said.matches(hint).count(), said.contains("--force")), (2, false), "{said}");
}

#[test]
fn hook_of_a_session_is_offered_no_force() {
    let asks = ["complete T2", "reopen T3", "delete T1"].map(|ask| format!("windlass task {ask} 2>> said; "));
    let config = format!("hooks: {{stop: [{{command: '{}true'}}]}}", asks.concat());
    let world = create_agent_project(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Base"]);
    world.run_ok(&["task", "add", "Held"]);
    world.run_ok(&["task", "claim", "T2"]);
    world.run_ok(&["task", "add", "Done"]);
    world.run_ok(&["task", "complete", "T3"]);
    world.run_ok(&["task", "add", "Dependent", "--depends", "T1"]);
    let ran = world.run(&["run", "Mend it", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read_file("said");
    assert_eq!((said.matches("hint: ").count(), said.contains("--force")), (3, false), "{said}");
    assert!(said.contains("hint: leave it to ann; `windlass note add --task T2 TEXT`"), "{said}");
}

/// Names of runs mean nothing there, even if a session has the same one.
#[test]
fn agent_acts_as_ordinary_caller_in_another_project() {
    let agent = "cd ../other && windlass task update T1 --goal 'Mend both' > said 2>&1
        windlass task complete T2 > /dev/null 2>> said; echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project("", agent).with_windlass();
    world.write("../other/file", "");
    let there = |words: &[&str]| world.run_in("../other", words);
    let run = ["run", "Mend it", "--session", "one", "--agent"];
    assert_eq!(there(&[&run[..], &["command:echo '<promise>BLOCKED</promise>'"]].concat()).code, 4);
    assert_eq!(there(&["task", "add", "Paint it"]).code, 0);
    let ran = world.run(&[&run[..], &["command:sh agent.sh"]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let (listed, said) = (there(&["task", "list", "--all"]).stdout, world.read_file("../other/said"));
    assert_eq!(listed, "T1  blocked    P2  Mend both\nT2  completed  P2  Paint it\n", "{said}");
}

/// Knowledge of a session's name gives no rights in it.
#[test]
fn completion_claim_with_wrong_run_nonce_is_rejected() {
    let claim = "WINDLASS_RUN=one.1.00000000000000ff windlass task complete T1 2> said";
    let play = json!({"turns": [{"do": [{"run": claim}, {"promise": "COMPLETE"}]}]});
    let world = TestWorld::with_scripted_agent("", &play.to_string()).with_windlass();
    let ran = world.run(&["run", "Mend it", "--session", "one", "--agent", "scripted:play.yaml"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.read_file("said").contains("the turn one.1.00000000000000ff is over"), "{}", world.read_file("said"));
    assert!(world.event_payloads("completion_claimed").is_empty());
}

/// A hook may do what an agent may not. A hook that the agent has caused itself gives it no rights.
#[test]
fn agent_using_hook_variable_gains_no_hook_rights() {
    let config = "hooks: {task_created: [{command: 'test ! -e begun || { echo $WINDLASS_DEBT > debt; cat go; }'}]}";
    let agent = "echo > begun; windlass task add other >/dev/null & read debt < debt
        WINDLASS_DEBT=$debt windlass task update T1 --goal less 2> said; echo > go; wait
        echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project(config, agent).with_windlass();
    world.make_pipe("debt");
    world.make_pipe("go");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.read_file("said").contains("only a person can change or move T1"), "{}", world.read_file("said"));
}

/// An agent cannot complete work that its gate blocks.
#[test]
fn agent_cannot_complete_task_that_its_gate_blocks() {
    let config = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}";
    let evade = "windlass task unblock T1; windlass task complete T1; env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass task complete T1";
    let world =
        create_agent_project(config, &format!("{{ {evade}; }} >> said 2>&1; echo '<promise>COMPLETE</promise>'"))
            .with_windlass();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(world.run_ok(&["task", "show", "T1"]).contains("T1  blocked"), "{ran}{}", world.read_file("said"));
    let said = world.read_file("said");
    assert!(said.contains("recorded as a claim") && !said.contains("T1  completed"), "{said}");
}

#[test]
fn hook_is_allowed_to_complete_other_task() {
    let windlass = WINDLASS;
    let config = format!("hooks: {{pre_iteration: [{{command: '{windlass} task complete T1'}}]}}");
    let world = create_agent_project(&config, "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "One"]);
    let ran = world.run(RUN);
    assert!(ran.stdout.contains("pre_iteration[0] ok"), "{ran}");
    assert!(world.run_ok(&["task", "show", "T1"]).contains("completed"));
}

#[test]
fn init_creates_configuration_for_project_made_by_run() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert!(world.run_ok(&["init"]).starts_with("created "));
    assert!(world.path(".windlass/config.yaml").exists());
    assert!(world.run_ok(&["init"]).starts_with("There is a project already"));
}

#[test]
fn store_of_unconfigured_project_is_ignored_by_git() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    world.run_command(world.program("git").args(["init", "-q"]));
    assert_eq!(world.run(RUN).code, 0);
    let status = world.run_command(world.program("git").args(["status", "--porcelain"]));
    assert!(!status.stdout.contains(".windlass"), "{status}");
}

#[test]
fn command_missing_inside_agent_script_fails_iteration() {
    let world = TestWorld::empty();
    let ran = world.run(&["run", "x", "--agent", "command:echo half done; no-such-program", "--max-iterations", "1"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("iteration failed: exit 127: sh"), "{ran}");
}
