//! MCP clients of other projects.
//!
//! `scripts/clients` installs the clients. A test whose client is missing prints a message and passes.

#![expect(clippy::print_stderr, reason = "a skipped test prints a message")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::http::HttpServerProcess;
use crate::support::{TestWorld, WINDLASS};

/// Returns the path of an installed client. `None` if `scripts/clients` has not installed it.
#[expect(clippy::disallowed_methods, reason = "an environment variable names the directory of the clients")]
fn find_installed(name: &str) -> Option<PathBuf> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let file = std::env::var_os("WINDLASS_CLIENTS").map_or_else(usual, PathBuf::from).join(name);
    if !file.exists() {
        eprintln!("LEFT OUT: there is no {}; `scripts/clients` installs it", file.display());
    }
    file.exists().then(|| file.canonicalize().unwrap())
}

/// Returns the command for an npm script. `None` if it is not installed.
fn node_command(world: &TestWorld, script: &str) -> Option<std::process::Command> {
    // The command uses the path of the link, because a package finds its files relative to this path.
    let (node, script) =
        (find_installed("node")?, find_installed("packages")?.parent()?.join("node_modules").join(script));
    let mut command = world.program(node);
    command.arg(script);
    Some(command)
}

/// Scenarios that need tools, prompts, resources or extensions of a special server. These lists only shrink.
const UNSUPPORTED_SCENARIOS: &[&str] = &[
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "resources-read-binary",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "tools-call-audio",
    "tools-call-elicitation",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-sampling",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
];

/// More such scenarios, in the newest suite only.
const UNSUPPORTED_NEWER_SCENARIOS: &[&str] = &[
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
];

/// Checks of supported scenarios that need features of a special server.
const UNSUPPORTED_CHECKS: &[&str] = &[
    // These checks need three tools for diagnosis.
    "server-stateless/sep-2575-server-rejects-undeclared-capability",
    "server-stateless/sep-2575-missing-capability-http-400",
    "server-stateless/sep-2575-http-server-no-independent-requests-on-stream",
    "server-stateless/sep-2575-server-no-log-without-loglevel",
];

/// Runs every scenario of a suite, and compares the failures with the allowed ones.
fn check_conformance(suite: &str, unsupported: &[&[&str]], checks: &[&str]) {
    let world = TestWorld::new();
    let Some(mut command) = node_command(&world, &format!("{suite}/dist/index.js")) else { return };
    let server = HttpServerProcess::start(&world);
    let results = world.path("results");
    command.args([
        "server",
        "--suite",
        "all",
        "--url",
        &server.url_with_token(),
        "--output-dir",
        results.to_str().unwrap(),
    ]);
    let ran = world.run_command(&mut command);
    let (mut scenarios, mut failed) = (0, BTreeSet::new());
    for entry in fs::read_dir(results).unwrap_or_else(|_| panic!("it did nothing\n{ran}")) {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let scenario =
            name.strip_prefix("server-").and_then(|name| name.get(..name.len() - "-2026-01-01T00-00-00-000Z".len()));
        let scenario = scenario.unwrap_or_else(|| panic!("`{name}` is no result"));
        scenarios += 1;
        let check_results: Vec<Value> =
            serde_json::from_slice(&fs::read(entry.path().join("checks.json")).unwrap()).unwrap();
        let failed_checks = check_results
            .iter()
            .filter(|check| check["status"] == "FAILURE")
            .map(|check| check["id"].as_str().unwrap());
        let failed_checks: Vec<_> = failed_checks.map(|check| format!("{scenario}/{check}")).collect();
        match unsupported.iter().any(|names| names.contains(&scenario)) {
            true if failed_checks.is_empty() => panic!("{scenario} passes: take it out of the list"),
            true => {}
            false => failed.extend(failed_checks),
        }
    }
    let left_out: usize = unsupported.iter().map(|names| names.len()).sum();
    assert!(scenarios > left_out, "{scenarios} scenarios were run\n{ran}");
    assert_eq!(failed, checks.iter().map(|check| (*check).to_owned()).collect(), "\n{ran}");
    server.shut_down();
}

#[test]
fn mcp_server_passes_conformance_suite_of_handshake_revisions() {
    check_conformance("conformance-2025", &[UNSUPPORTED_SCENARIOS], &[]);
}

#[test]
fn mcp_server_passes_conformance_suite_of_newest_revision() {
    check_conformance("conformance-2026", &[UNSUPPORTED_SCENARIOS, UNSUPPORTED_NEWER_SCENARIOS], UNSUPPORTED_CHECKS);
}

#[test]
fn inspector_creates_task_over_stdio_and_lists_tools_over_http() {
    let world = TestWorld::new();
    let run_inspector = |words: &[&str]| {
        let mut command = node_command(&world, ".bin/mcp-inspector")?;
        let ran = world.run_command(command.arg("--cli").args(words));
        assert_eq!(ran.code, 0, "{ran}");
        Some(serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|_| panic!("{ran}")))
    };
    // The inspector does not pass environment variables on.
    let state = format!("WINDLASS_STATE_DIR={}", world.path("../state").display());
    let Some(called) = run_inspector(&[
        "-e",
        &state,
        WINDLASS,
        "mcp",
        "--method",
        "tools/call",
        "--tool-name",
        "task_create",
        "--tool-arg",
        "goal=Mend the pump",
    ]) else {
        return;
    };
    assert_eq!(called["structuredContent"]["id"], "T1", "{called}");
    let server = HttpServerProcess::start(&world);
    let listed = run_inspector(&[&server.url_with_token(), "--transport", "http", "--method", "tools/list"]).unwrap();
    let count = listed["tools"].as_array().unwrap().len();
    assert!(count >= 7, "{listed}");
    server.shut_down();
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump");
}

/// The MCP client of PyPI, with a driver script that makes the requested calls.
struct PypiClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl PypiClient {
    /// Starts a client, which starts a server with standard streams or connects over HTTP.
    fn start(world: &TestWorld, mode: &str, server: &[&str]) -> Option<Self> {
        // With the resolved path, the interpreter would not find its packages.
        let python = find_installed("wheels")?.parent()?.join("python/bin/python");
        let mut command = world.program(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/drive.py")).arg(mode).args(server);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut driver = Self { child, input, output };
        let tools: Vec<String> = serde_json::from_value(driver.read_answer()).unwrap();
        assert!(tools.contains(&"iteration_validate".to_owned()), "{tools:?}");
        Some(driver)
    }

    fn read_answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the client has ended: {line}"))
    }

    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Value {
        writeln!(self.input.as_ref().unwrap(), "{}", json!([tool, arguments])).unwrap();
        self.read_answer()
    }

    fn shut_down(mut self) {
        self.input = None;
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for PypiClient {
    fn drop(&mut self) {
        // The child still exists only if a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The typical flow of a self-driving agent. Another client with another transport and lifecycle continues the flow, and no
/// state is lost.
#[test]
fn pypi_client_completes_iteration_flow_across_stdio_and_http() {
    let world = TestWorld::new();
    let Some(mut agent) = PypiClient::start(&world, "legacy", &[WINDLASS, "mcp"]) else { return };
    assert_eq!(agent.call_tool("task_create", &json!({"title": "Mend the pump"}))["id"], "T1");
    assert_eq!(agent.call_tool("task_get", &json!({"taskId": "T1"}))["goal"], "Mend the pump");
    let about = json!({"description": "promises first"});
    let hook = agent.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "default", "metadata": about}));
    assert_eq!((&hook["hookType"], &hook["enabled"], &hook["metadata"]), (&json!("default"), &json!(true), &about));
    let promises = json!(["COMPLETE", "BLOCKED"]);
    let rule = json!({"type": "file_existence", "name": "mended", "config": {"paths": ["pump.txt"]}});
    let series = agent.call_tool(
        "iteration_start",
        &json!({"taskId": "T1", "maxIterations": 10, "completionPromises": promises, "validationRules": [rule]}),
    );
    assert_eq!((&series["iterationNumber"], &series["maxIterations"]), (&json!(1), &json!(10)), "{series}");
    let series = series["iterationId"].clone();
    let judged = agent.call_tool("iteration_validate", &json!({"iterationId": series, "agentOutput": "I have begun."}));
    assert_eq!(
        (&judged["completionSignal"], &judged["validationPassed"]),
        (&json!("CONTINUE"), &json!(false)),
        "{judged}"
    );
    assert_eq!(judged["hookDecision"]["hookId"], hook["hookId"], "{judged}");
    assert_eq!(agent.call_tool("iteration_next", &json!({"iterationId": series}))["iterationNumber"], 2);
    assert_eq!(agent.call_tool("task_get", &json!({"taskId": "../../etc"}))["error"]["code"], "invalid");
    assert_eq!(agent.call_tool("no_such_tool", &json!({})), json!({"refused": -32602}));
    agent.shut_down();

    let server = HttpServerProcess::start(&world);
    let mut agent = PypiClient::start(&world, "2026-07-28", &[&server.url_with_token()]).expect("it was there");
    let listed = agent.call_tool("hook_list", &json!({"taskId": "T1"}));
    assert_eq!((&listed["hookCount"], &listed["hooks"][0]["id"]), (&json!(1), &hook["hookId"]), "{listed}");
    world.write("pump.txt", "mended");
    let said = "It is mended. <promise>COMPLETE</promise>";
    let asked = json!({"iterationId": series, "agentOutput": said, "filesModified": ["pump.txt"]});
    assert_eq!(agent.call_tool("hook_evaluate", &asked)["action"], "complete");
    let judged = agent.call_tool("iteration_validate", &asked);
    assert_eq!(
        (&judged["completionSignal"], &judged["validationPassed"]),
        (&json!("COMPLETE"), &json!(true)),
        "{judged}"
    );
    let completed =
        agent.call_tool("iteration_complete", &json!({"iterationId": series, "completionPromise": "COMPLETE"}));
    assert_eq!((&completed["taskId"], &completed["totalIterations"]), (&json!("T1"), &json!(2)), "{completed}");
    assert_eq!(agent.call_tool("hook_clear", &json!({"taskId": "T1"}))["taskId"], "T1");
    agent.shut_down();
    server.shut_down();
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
}
