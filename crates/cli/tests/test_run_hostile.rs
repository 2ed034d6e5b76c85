//! `windlass run` with hostile programs, repositories and timing

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{WINDLASS, World};
use crate::test_run::{RUN, world};

#[test]
fn a_gate_that_cannot_be_kept_does_not_stand_open() {
    let world = world("", "echo '<promise>COMPLETE</promise>'");
    world.write(".windlass/config.yaml", "hooks: {stop: [{workflow: check}]}");
    let ran = world.run(&[RUN, &["--trust"]].concat());
    assert_eq!(ran.code, 64, "{ran}");
    let why = "error: the hook `stop[0]` runs the workflow `check`, and there is none\n --> $WORK/.windlass/config.yaml:1:27\n";
    assert!(ran.to_string().starts_with(why), "{ran}");
}

#[test]
fn a_hook_that_says_no_in_json_is_heard() {
    let config = r#"
hooks:
  stop:
    - command: |
        test -e fixed || echo '{"decision": "block", "reason": "two tests fail"}'
"#;
    let world = world(config, "test $turn -lt 2 || touch fixed; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("stop[0] blocks\n  [Hook retry 1/5: two tests fail]\n"), "{ran}");
    assert!(fs::read_to_string(world.path("prompt.2")).unwrap().contains("two tests fail"));
}

/// A store is a file of the project: its content is not the person's word.
#[test]
fn a_store_that_came_with_the_project_starts_nothing() {
    let victim = world("", "touch pwned; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status)");
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
    let world = world("", &agent).with_windlass();
    let ran = world.run(RUN);
    assert_eq!((ran.code, world.read("turns").as_str()), (0, "3\n"), "{ran}");
    let refused = "error: cannot start a run within 3 nested programs of Windlass\n\
                   hint: `windlass task add` adds work for a later run\n";
    assert_eq!(world.read("said.3"), refused);
    assert_eq!(world.lines(&["session", "list", "--all", "--json"]).len(), 3);
}

/// The system would end a writer beyond the limit, without a message.
#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let world = world("", "echo '<promise>COMPLETE</promise>'");
    let mut command = world.program("sh");
    command.args(["-c", "ulimit -f 100; exec \"$0\" \"$@\"", WINDLASS]).args(RUN);
    let ran = world.finish(&mut command);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.starts_with("error: cannot "), "{ran}");
}

#[test]
fn links_in_place_of_own_directories_are_refused() {
    let world = world("", "head -c 400000 /dev/zero; echo '<promise>COMPLETE</promise>'");
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
fn no_output_is_too_much_or_too_strange() {
    let agents = [
        "head -c 90000 /dev/zero | tr '\\0' '\\377'",
        "head -c 90000 /dev/zero | tr '\\0' '\\377' >&2; exit 9",
        "printf 'a\\0b' >&2; exit 1",
        "printf '\\033]0;never closed\\n<promise>COMPLETE</promise>\\n'",
    ];
    let config = "hooks: {post_iteration: [{command: echo after, pipe_output: true}]}";
    for (agent, code) in agents.iter().zip([3, 3, 3, 0]) {
        let world = world(config, agent);
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert_eq!(ran.code, code, "{agent}\n{ran}");
        assert!(world.ok(&["doctor"]).contains("ok"), "{agent}");
    }
}

#[test]
fn an_agent_that_removes_the_project_is_noticed() {
    let world = world("", "rm -rf .windlass; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("was removed or replaced while it was in use"), "{ran}");
}

/// Acknowledged events are not lost with the log that had them.
#[test]
fn an_agent_that_removes_the_log_is_noticed() {
    for tampering in ["rm .windlass/windlass.db-wal", "rm .windlass/windlass.db-*"] {
        let world = world("", &format!("{tampering}; echo '<promise>COMPLETE</promise>'"));
        let ran = world.run(RUN);
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("was removed or replaced while it was in use"), "{ran}");
        world.ok(&["doctor"]);
        assert_eq!(world.lines(&["events", "--type", "turn_started"]).len(), 1, "{tampering}");
    }
}

/// Type, labels and words of a task decide how its work is judged: the judged agent cannot change them, in any way.
#[test]
fn an_agent_does_not_change_what_it_is_judged_by() {
    let config = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2', when: '\"strict\" in task.labels'}]}\n\
                  task_types: {product: {}, chore: {hooks: {stop: []}}}";
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task_update", "arguments": {"taskId": "T1", "type": "chore"}}}"#;
    let agent = format!(
        "test $turn -gt 1 || {{
            exec > said 2>&1
            windlass task update T1 --type chore
            env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass task update T1 --remove-label strict
            WINDLASS_RUN=nobody.1.00000000000000ff windlass task update T1 --goal less
            WINDLASS_RUN=nobody.1.00000000000000ff windlass task complete T1 --force
            WINDLASS_RUN=ended.1.00000000000000ff windlass task update T1 --goal less
            windlass task update T2 --type chore
            windlass task update T2 --priority 1
            echo '{call}' | windlass mcp
            echo '{call}' | env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass mcp
            exit
        }}
        echo '<promise>COMPLETE</promise>'"
    );
    let world = world(config, &agent).with_windlass();
    world.ok(&["init"]);
    world.ok(&["task", "add", "Ship the product", "--type", "product", "--label", "strict"]);
    world.ok(&["task", "add", "Later", "--type", "product"]);
    let other = ["run", "Other", "--session", "ended", "--max-iterations", "1", "--agent", "command:cat"];
    assert_eq!(world.run(&other).code, 3);
    let ran = world.run(&["run", "--task", "T1", "--session", "one", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    let task = world.ok(&["task", "show", "T1"]);
    assert!(task.contains("T1  blocked  P2  Ship the product") && task.contains("strict"), "{task}");
    let (said, refused) = (world.read("said"), "only a person can change or move T1: it is the task of session `one`");
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
    let world = world(config, &agent).with_windlass();
    world.ok(&["init"]);
    world.ok(&["task", "add", "Mend the pump"]);
    world.ok(&["task", "add", "Ship the product", "--type", "product"]);
    world.ok(&["task", "add", "Move the servers", "--type", "infra"]);
    world.ok(&["task", "add", "Paint it"]);
    world.ok(&["task", "add", "Sell the product", "--type", "product"]);
    let start = json!({"taskId": "T2", "maxIterations": 3, "completionPromises": ["COMPLETE"]});
    world.write("series", world.call("iteration_start", &start)["iterationId"].as_str().unwrap());
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read("said");
    let parked = "cannot start T5 from inside a session: tasks of the type `product` must pass their gates (stop)";
    assert_eq!(said.lines().filter(|line| line.contains(parked)).count(), 2, "{said}");
    let gated = "cannot complete T2 from inside a session: tasks of the type `product` must pass their gates (stop)";
    assert_eq!(said.lines().filter(|line| line.contains(gated)).count(), 4, "{said}");
    assert!(said.contains("hint: leave it to `windlass run --task T2`; `windlass note add --task T2 TEXT`"), "{said}");
    assert!(said.contains("T3 is of the type `infra`, on which `command:sh agent.sh` may not work"), "{said}");
    let listed = world.ok(&["task", "list", "--all"]);
    let states: Vec<&str> = listed.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(states, ["completed", "active", "ready", "completed", "ready"], "{listed}");
    world.ok(&["task", "complete", "T2"]);
}

/// The same holds for the stop hooks of others and their series: whatever an agent unsets, it stays an agent.
#[test]
fn an_agent_does_not_take_away_what_others_have_registered() {
    let agent = r#"exec 2> said
        env -u WINDLASS_RUN windlass tool call hook_clear '{"taskId": "T1"}' > cleared
        env -u WINDLASS_RUN windlass tool call iteration_start "$(cat start)" >&2
        echo '<promise>BLOCKED</promise>'"#;
    let world = world("", agent).with_windlass();
    world.ok(&["init"]);
    world.ok(&["task", "add", "Mend the pump"]);
    world.ok(&["task", "add", "Later"]);
    world.call("hook_register", &json!({"taskId": "T1", "hookType": "default"}));
    let start = json!({"taskId": "T2", "maxIterations": 9, "completionPromises": ["COMPLETE"]});
    world.write("start", start.to_string());
    world.call("iteration_start", &start);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(world.data_of("hooks_cleared").len(), 0, "{}", world.read("cleared"));
    assert!(world.read("cleared").contains("\"hooksCleared\": 0"), "{}", world.read("cleared"));
    assert_eq!(world.data_of("series_started").len(), 1, "{}", world.read("said"));
    assert!(world.read("said").contains("was started for T2 by another"), "{}", world.read("said"));
}

#[test]
fn agent_without_its_variables_is_offered_no_force_for_a_held_task() {
    let agent = "env -u WINDLASS_RUN windlass task complete T2 2> said
        env -u WINDLASS_RUN windlass task complete T2 --force 2>> said
        echo '<promise>COMPLETE</promise>'";
    let world = world("", agent).with_windlass();
    world.ok(&["init"]);
    world.ok(&["task", "add", "Mend the pump"]);
    world.ok(&["task", "add", "Later"]);
    world.ok(&["task", "claim", "T2"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read("said");
    let hint = "hint: leave it to ann; `windlass note add --task T2 TEXT` tells it what you know\n";
    assert_eq!((said.matches(hint).count(), said.contains("--force")), (2, false), "{said}");
}

#[test]
fn hook_of_a_session_is_offered_no_force() {
    let asks = ["complete T2", "reopen T3", "delete T1"].map(|ask| format!("windlass task {ask} 2>> said; "));
    let config = format!("hooks: {{stop: [{{command: '{}true'}}]}}", asks.concat());
    let world = world(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.ok(&["init"]);
    world.ok(&["task", "add", "Base"]);
    world.ok(&["task", "add", "Held"]);
    world.ok(&["task", "claim", "T2"]);
    world.ok(&["task", "add", "Done"]);
    world.ok(&["task", "complete", "T3"]);
    world.ok(&["task", "add", "Dependent", "--depends", "T1"]);
    let ran = world.run(&["run", "Mend it", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.read("said");
    assert_eq!((said.matches("hint: ").count(), said.contains("--force")), (3, false), "{said}");
    assert!(said.contains("hint: leave it to ann; `windlass note add --task T2 TEXT`"), "{said}");
}

/// Names of runs mean nothing there, even if a session has the same one.
#[test]
fn agent_acts_as_ordinary_caller_in_another_project() {
    let agent = "cd ../other && windlass task update T1 --goal 'Mend both' > said 2>&1
        windlass task complete T2 > /dev/null 2>> said; echo '<promise>COMPLETE</promise>'";
    let world = world("", agent).with_windlass();
    world.write("../other/file", "");
    let there = |words: &[&str]| world.run_in("../other", words);
    let run = ["run", "Mend it", "--session", "one", "--agent"];
    assert_eq!(there(&[&run[..], &["command:echo '<promise>BLOCKED</promise>'"]].concat()).code, 4);
    assert_eq!(there(&["task", "add", "Paint it"]).code, 0);
    let ran = world.run(&[&run[..], &["command:sh agent.sh"]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let (listed, said) = (there(&["task", "list", "--all"]).stdout, world.read("../other/said"));
    assert_eq!(listed, "T1  blocked    P2  Mend both\nT2  completed  P2  Paint it\n", "{said}");
}

/// Knowledge of a session's name gives no rights in it.
#[test]
fn a_run_is_known_by_its_number_too() {
    let claim = "WINDLASS_RUN=one.1.00000000000000ff windlass task complete T1 2> said";
    let play = json!({"turns": [{"do": [{"run": claim}, {"promise": "COMPLETE"}]}]});
    let world = World::played("", &play.to_string()).with_windlass();
    let ran = world.run(&["run", "Mend it", "--session", "one", "--agent", "scripted:play.yaml"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.read("said").contains("the turn one.1.00000000000000ff is over"), "{}", world.read("said"));
    assert!(world.data_of("completion_claimed").is_empty());
}

/// A hook may do what an agent may not. A hook that the agent has caused itself gives it no rights.
#[test]
fn an_agent_is_no_hook_by_its_name() {
    let config = "hooks: {task_created: [{command: 'test ! -e begun || { echo $WINDLASS_DEBT > debt; cat go; }'}]}";
    let agent = "echo > begun; windlass task add other >/dev/null & read debt < debt
        WINDLASS_DEBT=$debt windlass task update T1 --goal less 2> said; echo > go; wait
        echo '<promise>COMPLETE</promise>'";
    let world = world(config, agent).with_windlass();
    world.make_pipe("debt");
    world.make_pipe("go");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.read("said").contains("only a person can change or move T1"), "{}", world.read("said"));
}

/// An agent cannot complete work that its gate blocks.
#[test]
fn an_agent_does_not_complete_what_its_gate_has_not() {
    let config = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}";
    let evade = "windlass task unblock T1; windlass task complete T1; env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass task complete T1";
    let world =
        world(config, &format!("{{ {evade}; }} >> said 2>&1; echo '<promise>COMPLETE</promise>'")).with_windlass();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(world.ok(&["task", "show", "T1"]).contains("T1  blocked"), "{ran}{}", world.read("said"));
    let said = world.read("said");
    assert!(said.contains("recorded as a claim") && !said.contains("T1  completed"), "{said}");
}

#[test]
fn a_hook_may_do_what_a_person_may() {
    let windlass = WINDLASS;
    let config = format!("hooks: {{pre_iteration: [{{command: '{windlass} task complete T1'}}]}}");
    let world = world(&config, "echo '<promise>COMPLETE</promise>'");
    world.ok(&["init"]);
    world.ok(&["task", "add", "One"]);
    let ran = world.run(RUN);
    assert!(ran.stdout.contains("pre_iteration[0] ok"), "{ran}");
    assert!(world.ok(&["task", "show", "T1"]).contains("completed"));
}

#[test]
fn a_project_without_a_configuration_gets_one() {
    let world = world("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert!(world.ok(&["init"]).starts_with("created "));
    assert!(world.path(".windlass/config.yaml").exists());
    assert!(world.ok(&["init"]).starts_with("There is a project already"));
}

#[test]
fn store_of_unconfigured_project_is_ignored_by_git() {
    let world = world("", "echo '<promise>COMPLETE</promise>'");
    world.finish(world.program("git").args(["init", "-q"]));
    assert_eq!(world.run(RUN).code, 0);
    let status = world.finish(world.program("git").args(["status", "--porcelain"]));
    assert!(!status.stdout.contains(".windlass"), "{status}");
}

#[test]
fn a_program_that_is_missing_later_is_an_ordinary_failure() {
    let world = World::empty();
    let ran = world.run(&["run", "x", "--agent", "command:echo half done; no-such-program", "--max-iterations", "1"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("failed: exit 127: sh"), "{ran}");
}
