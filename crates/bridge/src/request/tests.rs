//! Recorded requests of real agents, and malformed ones.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns all recorded payloads, with their agent, event and file name.
fn recordings() -> Vec<(BridgeAgent, AgentHookEvent, String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut files: Vec<PathBuf> = BridgeAgent::ALL
        .iter()
        .flat_map(|agent| fs::read_dir(directory.join(agent.name())).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let recording = |file: PathBuf| {
        let agent = file.parent().unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let event = AgentHookEvent::from_point(&name.split('.').next().unwrap().parse().unwrap()).unwrap();
        (agent, event, name, fs::read(file).unwrap())
    };
    files.into_iter().map(recording).collect()
}

#[test]
fn every_recording_has_claude_codes_words() {
    for (agent, event, name, bytes) in recordings() {
        let call = AgentHookRequest::parse_payload(agent, event, &bytes).unwrap();
        assert!(call.conversation.is_some(), "{agent} {name}");
        assert_eq!(call.payload["hook_event_name"], event.claude_event_name(), "{agent} {name}");
        assert_eq!(call.payload["session_id"], json!(call.conversation), "{agent} {name}");
        if event == AgentHookEvent::Stop {
            assert_eq!(call.is_sent_back == Some(true), name == "stop.sent_back" && agent != BridgeAgent::Goose);
        }
        if call.tool.as_ref().is_some_and(|tool| ["Write", "Edit", "Read"].contains(&tool.name.as_str())) {
            assert_eq!(call.payload["tool_input"]["file_path"], "/home/dev/project/a.txt", "{agent} {name}");
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a line for every recording")]
fn recorded_payloads_are_parsed() {
    let mut seen = String::new();
    for (agent, event, name, bytes) in recordings() {
        let call = AgentHookRequest::parse_payload(agent, event, &bytes).unwrap();
        seen += &(summary(&name, call) + "\n");
    }
    insta::assert_snapshot!(seen, @r#"
    claude post_tool_use.edit: Edit (Edit) file_path,new_string,old_string,replace_all -> object
    claude post_tool_use: Bash (Bash) command -> object
    claude pre_compact:
    claude pre_tool_use.edit: Edit (Edit) file_path,new_string,old_string,replace_all
    claude pre_tool_use: Bash (Bash) command
    claude pre_tool_use.read: Read (Read) file_path
    claude pre_tool_use.write: Write (Write) content,file_path
    claude session_end:
    claude session_start:
    claude stop: Some(false) Some("All done.")
    claude stop.sent_back: Some(true) Some("Done again.")
    claude subagent_stop:
    claude user_prompt_submit: "Please do the work."
    codex post_tool_use: Bash (Bash) command -> text
    codex pre_tool_use: Bash (Bash) command
    codex session_end:
    codex session_start:
    codex stop: Some(false) Some("All done.")
    codex stop.sent_back: Some(true) Some("Done again.")
    codex user_prompt_submit: "Please do the work."
    copilot notification:
    copilot post_tool_use.edit: Edit (Edit) file_path,new_str,new_string,old_str,old_string,path -> object
    copilot post_tool_use: Bash (Bash) command,description -> object
    copilot pre_tool_use.edit: Edit (Edit) file_path,new_str,new_string,old_str,old_string,path
    copilot pre_tool_use: Bash (Bash) command,description
    copilot pre_tool_use.read: Read (Read) file_path,path
    copilot pre_tool_use.write: Write (Write) content,file_path,file_text,path
    copilot session_end:
    copilot session_start:
    copilot stop: Some(false) None
    copilot stop.sent_back: Some(true) None
    copilot user_prompt_submit: "Please do the work."
    copilot user_prompt_submit.sent_back: "WHY-stop1"
    cursor post_tool_use: Bash (Shell) command,working_directory -> text
    cursor pre_compact:
    cursor pre_tool_use: Bash (Shell) command,working_directory
    cursor pre_tool_use.write: Write (Write) content,contents,file_path,path
    cursor session_end:
    cursor session_start:
    cursor stop: Some(false) None
    cursor stop.sent_back: Some(true) None
    cursor subagent_stop:
    cursor user_prompt_submit: "Please do the work."
    gemini notification:
    gemini post_tool_use.edit: Edit (replace) file_path,instruction,new_string,old_string -> object
    gemini post_tool_use: Bash (run_shell_command) command -> object
    gemini pre_compact:
    gemini pre_tool_use.edit: Edit (replace) file_path,instruction,new_string,old_string
    gemini pre_tool_use: Bash (run_shell_command) command
    gemini pre_tool_use.read: Read (read_file) file_path
    gemini pre_tool_use.write: Write (write_file) content,file_path
    gemini session_end:
    gemini session_start:
    gemini stop: None Some("All done. done.")
    gemini stop.sent_back: Some(true) Some("All done. done.\nDone again. again.")
    gemini stop.sent_back_and_used_a_tool: None Some("one\ntwo")
    gemini user_prompt_submit: "Please do the work."
    gemini user_prompt_submit.sent_back: "WHY-stop1"
    goose post_tool_use.edit: Edit (edit) after,before,file_path,new_string,old_string,path
    goose post_tool_use: Bash (shell) command
    goose pre_tool_use.edit: Edit (edit) after,before,file_path,new_string,old_string,path
    goose pre_tool_use: Bash (shell) command
    goose pre_tool_use.write: Write (write) content,file_path,path
    goose session_end: nowhere
    goose session_start: nowhere
    goose stop: None Some("All done.")
    goose stop.sent_back: None Some("Done again.")
    goose user_prompt_submit: nowhere "Please do the work."
    kimi post_tool_use.edit: Edit (Edit) file_path,new_string,old_string,path -> text
    kimi post_tool_use: Bash (Bash) command -> text
    kimi pre_tool_use.edit: Edit (Edit) file_path,new_string,old_string,path
    kimi pre_tool_use: Bash (Bash) command
    kimi pre_tool_use.read: Read (Read) file_path,path
    kimi pre_tool_use.write: Write (Write) content,file_path,path
    kimi session_start:
    kimi stop: Some(false) None
    kimi user_prompt_submit: "Please do the work."
    qwen notification:
    qwen post_tool_use.edit: Edit (edit) file_path,new_string,old_string -> object
    qwen post_tool_use: Bash (run_shell_command) command -> object
    qwen pre_tool_use.edit: Edit (edit) file_path,new_string,old_string
    qwen pre_tool_use: Bash (run_shell_command) command
    qwen pre_tool_use.read: Read (read_file) file_path
    qwen pre_tool_use.write: Write (write_file) content,file_path
    qwen session_start:
    qwen stop: Some(false) Some("All done.")
    qwen stop.sent_back: Some(true) Some("Done again.")
    qwen subagent_stop:
    qwen user_prompt_submit.after_tool: ""
    qwen user_prompt_submit: "Please do the work."
    qwen user_prompt_submit.sent_back: "WHY-err1"
    "#);
}

/// Summarizes a request in one line.
fn summary(name: &str, call: AgentHookRequest) -> String {
    let mut line = format!("{} {name}:", call.agent);
    if call.directory.is_none() {
        line += " nowhere";
    }
    if call.event == AgentHookEvent::UserPromptSubmit {
        let prompt = &call.call.prompt;
        write!(line, " {prompt:?}").unwrap();
    }
    if let Some(tool) = call.tool {
        let keys: Vec<&str> = tool.input.keys().map(String::as_str).collect();
        write!(line, " {} ({}) {}", tool.name, tool.own_name, keys.join(",")).unwrap();
    }
    if call.event == AgentHookEvent::Stop {
        write!(line, " {:?} {:?}", call.is_sent_back, Some(&call.call.output).filter(|output| !output.is_empty()))
            .unwrap();
    }
    if let Some(response) = call.payload.get("tool_response") {
        write!(line, " -> {}", kind(response)).unwrap();
    }
    line
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::String(_) => "text",
        _ => "other",
    }
}

#[test]
fn recorded_payloads_identify_their_agent() {
    for (agent, event, name, bytes) in recordings() {
        let call = AgentHookRequest::parse_unnamed_payload(event, &bytes, |_| false).unwrap();
        assert_eq!(call.agent, agent, "{name}");
    }
}

#[test]
fn environment_identifies_agent_of_unclear_payload() {
    let check = |set: &[&str], agent| {
        let call =
            AgentHookRequest::parse_unnamed_payload(AgentHookEvent::Stop, b"{}", |name| set.contains(&name)).unwrap();
        assert_eq!(call.agent, agent, "{set:?}");
    };
    check(&[], BridgeAgent::Claude);
    check(&["CLAUDE_PROJECT_DIR"], BridgeAgent::Claude);
    check(&["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"], BridgeAgent::Gemini);
    check(&["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR"], BridgeAgent::Qwen);
    check(&["CLAUDE_PROJECT_DIR", "COPILOT_PROJECT_DIR"], BridgeAgent::Copilot);
    check(&["CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR"], BridgeAgent::Cursor);
}

#[test]
fn only_payloads_that_are_not_objects_are_refused() {
    let check = |bytes: &[u8], expected: &str| {
        let error = AgentHookRequest::parse_payload(BridgeAgent::Claude, AgentHookEvent::Stop, bytes).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(b" \n", "standard input is empty; an agent's hook system writes a JSON object there");
    check(b"[1]", "standard input is not a JSON object: invalid type: sequence, expected a map at line 1 column 0");
    check(b"{", "standard input is not a JSON object: EOF while parsing an object at line 1 column 1");
    let read =
        |bytes: &[u8]| AgentHookRequest::parse_payload(BridgeAgent::Codex, AgentHookEvent::PreToolUse, bytes).unwrap();
    assert_eq!(read(b"\xef\xbb\xbf{\"session_id\": 7}").conversation.as_deref(), Some("7"));
    assert_eq!(read(b"{\"session_id\": \"a\xffb\"}").conversation.as_deref(), Some("a\u{fffd}b"));
    let odd = read(
        br#"{"session_id": [], "cwd": 1, "tool_name": {}, "tool_input": 3, "prompt": null, "stop_hook_active": "yes"}"#,
    );
    assert_eq!((odd.conversation, odd.directory, odd.tool, odd.is_sent_back), (None, None, None, None));
}

#[test]
fn claude_code_payload_is_unchanged() {
    let said = json!({"session_id": "s", "cwd": "/p", "tool_name": "Task", "tool_input": {"path": "a"}, "prompt": "x"});
    let call =
        AgentHookRequest::parse_payload(BridgeAgent::Claude, AgentHookEvent::PreToolUse, said.to_string().as_bytes())
            .unwrap();
    let mut expected = said.clone();
    expected["agent_tool_name"] = json!("Task");
    assert_eq!(Value::Object(call.payload), expected);
}

#[test]
fn updated_input_returns_under_own_keys() {
    let check = |agent, said: Value, wanted: Value, expected: Value| {
        let said = json!({"cwd": "/p", "tool_name": said["name"], "tool_input": said["input"]});
        let call =
            AgentHookRequest::parse_payload(agent, AgentHookEvent::PreToolUse, said.to_string().as_bytes()).unwrap();
        let wanted = wanted.as_object().unwrap().clone();
        assert_eq!(Value::Object(call.tool.unwrap().to_own_input(wanted).unwrap()), expected);
    };
    // The input that the hook got, with one change.
    check(
        BridgeAgent::Goose,
        json!({"name": "edit", "input": {"path": "a.txt", "before": "x", "after": "y"}}),
        json!({"path": "a.txt", "before": "x", "after": "y", "file_path": "/p/a.txt", "old_string": "x", "new_string": "z"}),
        json!({"path": "a.txt", "before": "x", "after": "z"}),
    );
    // Only the keys that the hook knows.
    check(
        BridgeAgent::Copilot,
        json!({"name": "bash", "input": {"command": "rm x", "description": "clean up"}}),
        json!({"command": "true"}),
        json!({"command": "true", "description": "clean up"}),
    );
    check(
        BridgeAgent::Copilot,
        json!({"name": "create", "input": {"path": "a", "file_text": "x"}}),
        json!({"file_path": "/p/b", "content": "y"}),
        json!({"path": "/p/b", "file_text": "y"}),
    );
    check(
        BridgeAgent::Gemini,
        json!({"name": "write_file", "input": {"file_path": "a.txt", "content": "x"}}),
        json!({"file_path": "/p/a.txt", "content": "y"}),
        json!({"file_path": "a.txt", "content": "y"}),
    );
    // Claude Code replaces the old input by the new one.
    check(
        BridgeAgent::Claude,
        json!({"name": "Bash", "input": {"command": "ls", "timeout": 5}}),
        json!({"command": "pwd"}),
        json!({"command": "pwd"}),
    );
}

#[test]
fn unchanged_input_is_not_an_update() {
    let said = json!({"cwd": "/p", "tool_name": "edit", "tool_input": {"path": "a", "before": "x", "after": "y"}});
    let tool =
        AgentHookRequest::parse_payload(BridgeAgent::Goose, AgentHookEvent::PreToolUse, said.to_string().as_bytes())
            .unwrap()
            .tool
            .unwrap();
    assert_eq!(tool.to_own_input(tool.input.clone()), None);
    assert!(tool.to_own_input(Map::from_iter([("new_string".to_owned(), json!("z"))])).is_some());
}

/// A guard that cannot parse a request lets it pass, so deep values must not hide the ones beside them.
#[test]
fn values_beside_deep_ones_are_read() {
    for depth in [60, 100, 200, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let tool = format!("{{\"command\": \"rm -rf /\", \"more\": {deep}}}");
        let text = Value::String(tool.clone()).to_string();
        for (agent, input) in [(BridgeAgent::Claude, &tool), (BridgeAgent::Codex, &tool), (BridgeAgent::Cursor, &text)]
        {
            let said = format!("{{\"session_id\": \"s\", \"tool_name\": \"Bash\", \"tool_input\": {input}}}");
            let call = AgentHookRequest::parse_payload(agent, AgentHookEvent::PreToolUse, said.as_bytes()).unwrap();
            assert_eq!(call.tool.unwrap().input["command"], "rm -rf /", "{agent} {depth}");
            let is_cut = depth > 60 && agent != BridgeAgent::Cursor;
            assert_eq!(call.payload.contains_key("agent_payload_cut"), is_cut, "{agent} {depth}");
        }
    }
}

/// Cursor's subagents have no names, and must not count for the conversation that they belong to.
#[test]
fn subagent_has_its_own_conversation() {
    let check = |agent, more: Value, expected: Value| {
        let mut said = json!({"conversation_id": "c", "loop_count": 0});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call =
            AgentHookRequest::parse_payload(agent, AgentHookEvent::SubagentStop, said.to_string().as_bytes()).unwrap();
        assert_eq!(call.payload.get("agent_id").cloned().unwrap_or_default(), expected);
    };
    check(BridgeAgent::Cursor, json!({"subagent_type": "explore"}), json!("explore"));
    check(BridgeAgent::Cursor, json!({"subagent_type": "explore", "agent_transcript_path": "/t/1"}), json!("/t/1"));
    check(BridgeAgent::Cursor, json!({"subagent_id": "7", "agent_transcript_path": "/t/1"}), json!("7"));
    check(BridgeAgent::Cursor, json!({}), json!("subagent"));
    check(BridgeAgent::Qwen, json!({"agent_id": "a", "agent_type": "b"}), json!("a"));
    let stop = AgentHookRequest::parse_payload(
        BridgeAgent::Cursor,
        AgentHookEvent::Stop,
        br#"{"conversation_id": "c", "subagent_type": "x"}"#,
    )
    .unwrap();
    assert!(!stop.payload.contains_key("agent_id"));
}

#[test]
fn patch_request_covers_all_files() {
    let check = |said: Value, names: &[&str], files: &[&str]| {
        let call = AgentHookRequest::parse_payload(
            BridgeAgent::Codex,
            AgentHookEvent::PreToolUse,
            said.to_string().as_bytes(),
        )
        .unwrap();
        let tool = call.tool.clone().unwrap();
        let seen: Vec<&str> = std::iter::once(&tool.name).chain(&tool.also_acts_as).map(String::as_str).collect();
        assert_eq!(seen, names, "{said}");
        let judged: Vec<AgentHookRequest> = call.split_by_file();
        let file = |call: &AgentHookRequest| call.payload["tool_input"].get("file_path").cloned().unwrap_or_default();
        assert_eq!(judged.iter().map(file).collect::<Vec<_>>(), files, "{said}");
        for call in judged.iter().filter(|_| files.len() > 1) {
            assert_eq!(call.payload["tool_input"]["file_paths"], json!(files));
            assert_eq!(call.tool.as_ref().unwrap().input["file_path"], file(call));
            assert_eq!(call.tool.as_ref().unwrap().own_input, tool.own_input);
        }
    };
    let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: sub/b.rs\n@@\n-x\n+*** Add File: no\n*** Delete File: /etc/c\n  *** Update File: a.rs\n*** End Patch";
    let files = ["/p/a.rs", "/p/sub/b.rs", "/etc/c"];
    let tool = |name: &str, input: Value| json!({"cwd": "/p", "tool_name": name, "tool_input": input});
    check(tool("apply_patch", json!({"input": patch})), &["Edit", "Write"], &files);
    check(tool("apply_patch", json!({"command": ["apply_patch", patch]})), &["Edit", "Write"], &files);
    check(tool("apply_patch", json!({"diff": patch})), &["Edit", "Write"], &files);
    check(tool("apply_patch", json!(patch)), &["Edit", "Write"], &files);
    // Other fields beside the patch do not count.
    let other = json!({"patch": patch, "file_path": "harmless", "path": "harmless", "file_paths": ["harmless"]});
    let call = tool("apply_patch", other).to_string();
    let call =
        AgentHookRequest::parse_payload(BridgeAgent::Copilot, AgentHookEvent::PreToolUse, call.as_bytes()).unwrap();
    assert_eq!(call.split_by_file().len(), 3);

    let shell = format!("apply_patch <<'EOF'\n{patch}\nEOF\n");
    let names = ["Bash", "Edit", "Write"];
    check(tool("exec_command", json!({"cmd": shell})), &names, &files);
    check(tool("Bash", json!({"command": format!("echo '***'; {shell}")})), &names, &files);
    check(tool("Bash", json!({"command": ["bash", "-lc", shell]})), &names, &files);
    check(tool("Bash", json!({"command": format!("apply_patch '{patch}'")})), &names, &files);
    let below = ["/p/in/a.rs", "/p/in/sub/b.rs", "/etc/c"];
    check(tool("Bash", json!({"command": format!("cd in && {shell}")})), &names, &below);
    check(tool("exec_command", json!({"cmd": shell, "workdir": "/p/in"})), &names, &below);
    let one = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF";
    check(tool("Bash", json!({"command": one})), &["Bash", "Edit"], &["/p/a"]);
    for command in ["ls", "grep apply_patch .", "cat <<'EOF'\n*** Update File: a\nEOF"] {
        let call = tool("Bash", json!({"command": command})).to_string();
        let call =
            AgentHookRequest::parse_payload(BridgeAgent::Codex, AgentHookEvent::PreToolUse, call.as_bytes()).unwrap();
        assert_eq!((call.tool.clone().unwrap().also_acts_as.len(), call.split_by_file().len()), (0, 1), "{command}");
    }
}

#[test]
fn tool_names_map_to_claude_code_names() {
    let check = |agent, said: Value, name: &str, file: Option<&str>| {
        let call =
            AgentHookRequest::parse_payload(agent, AgentHookEvent::PreToolUse, said.to_string().as_bytes()).unwrap();
        let tool = call.tool.unwrap();
        assert_eq!(tool.name, name);
        assert_eq!(tool.input.get("file_path").and_then(Value::as_str), file);
        assert_eq!(call.payload["agent_tool_name"], said["tool_name"]);
    };
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: b\n+z\n*** End Patch";
    let patch = json!({"cwd": "/p", "tool_name": "apply_patch", "tool_input": {"command": patch}});
    check(BridgeAgent::Codex, patch, "Edit", Some("/p/src/a.rs"));
    check(BridgeAgent::Codex, json!({"tool_name": "mcp__windlass__task_list"}), "mcp__windlass__task_list", None);
    check(BridgeAgent::Goose, json!({"tool_name": "windlass__task_list"}), "mcp__windlass__task_list", None);
    let from_server =
        json!({"tool_name": "mcp_a_b_c", "mcp_context": {"server_name": "a_b", "tool_name": "c"}, "tool_input": {}});
    check(BridgeAgent::Gemini, from_server, "mcp__a_b__c", None);
    check(
        BridgeAgent::Cursor,
        json!({"tool_name": "Delete", "tool_input": "{\"file_path\": \"/x\"}"}),
        "Delete",
        Some("/x"),
    );
}

#[test]
fn stop_hook_feedback_is_not_a_fresh_start() {
    for (agent, event, name, bytes) in recordings() {
        let call = AgentHookRequest::parse_payload(agent, event, &bytes).unwrap();
        let sent_back = name.contains("sent_back");
        let tells = !matches!(agent, BridgeAgent::Goose | BridgeAgent::Gemini);
        match event {
            AgentHookEvent::Stop if tells => assert_eq!(call.is_fresh_start(), !sent_back, "{agent} {name}"),
            AgentHookEvent::UserPromptSubmit if agent == BridgeAgent::Gemini => {}
            _ if sent_back => assert!(!call.is_fresh_start(), "{agent} {name}"),
            _ => {}
        }
        let is_own = agent == BridgeAgent::Qwen && name.starts_with("user_prompt_submit.");
        assert_eq!(call.is_continuation_prompt(), is_own, "{agent} {name}");
    }
}

#[test]
fn matcher_subjects_are_tool_names_or_the_matched_field() {
    let check = |agent: BridgeAgent, event: AgentHookEvent, said: Value, expected: &[&str]| {
        let call = AgentHookRequest::parse_payload(agent, event, said.to_string().as_bytes()).unwrap();
        assert_eq!(call.matcher_subjects(), expected, "{said}");
    };
    let bash = json!({"tool_name": "run_shell_command", "source": "startup"});
    check(BridgeAgent::Gemini, AgentHookEvent::PreToolUse, bash, &["Bash", "run_shell_command"]);
    check(BridgeAgent::Claude, AgentHookEvent::PreToolUse, json!({"tool_name": "Bash"}), &["Bash"]);
    check(BridgeAgent::Claude, AgentHookEvent::SessionStart, json!({"source": "compact", "reason": "x"}), &["compact"]);
    check(BridgeAgent::Claude, AgentHookEvent::SessionEnd, json!({"reason": "logout"}), &["logout"]);
    check(BridgeAgent::Claude, AgentHookEvent::PreCompact, json!({"trigger": "manual"}), &["manual"]);
    check(
        BridgeAgent::Claude,
        AgentHookEvent::Notification,
        json!({"notification_type": "idle_prompt"}),
        &["idle_prompt"],
    );
    check(BridgeAgent::Claude, AgentHookEvent::SubagentStop, json!({"agent_type": "Explore"}), &["Explore"]);
    check(BridgeAgent::Claude, AgentHookEvent::SessionStart, json!({"source": 7}), &[]);
    check(BridgeAgent::Claude, AgentHookEvent::Stop, json!({"reason": "end_turn", "agent_type": "Explore"}), &[]);
}

proptest! {
    /// No input causes a panic, and every object is parsed.
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), agent in 0..BridgeAgent::ALL.len(), event in 0..AgentHookEvent::ALL.len()) {
        let _ = AgentHookRequest::parse_payload(BridgeAgent::ALL[agent], AgentHookEvent::ALL[event], &bytes);
    }

    #[test]
    fn odd_fields_do_not_break_it(field in "session_id|cwd|tool_name|tool_input|prompt|message|workspace_roots|loop_count|mcp_context|working_dir", value in odd(), agent in 0..BridgeAgent::ALL.len(), event in 0..AgentHookEvent::ALL.len()) {
        let mut payload = json!({"session_id": "s", "cwd": "/p", "tool_name": "shell", "tool_input": {"command": "ls"}});
        payload[field] = value;
        let call = AgentHookRequest::parse_payload(BridgeAgent::ALL[agent], AgentHookEvent::ALL[event], payload.to_string().as_bytes());
        prop_assert!(call.is_ok());
    }
}

fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"text": "a"}, 1])),
        Just(json!({"path": 1, "server_name": "", "tool_name": 2})),
    ]
}
