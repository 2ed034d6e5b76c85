//! Good and bad responses.

use serde_json::json;

use super::*;

fn said(stdout: &str) -> HookResponse {
    parse_response(stdout).expect("a good answer").expect("a JSON object")
}

#[test]
fn output_without_object_is_text() {
    for text in ["", " \n", "ok", "[1]", "\"{}\"", "3", "null", "true", "{", "{]", "{} {}", "{}x", "x{}", "{'a': 1}"] {
        assert_eq!(parse_response(text), Ok(None), "{text}");
    }
}

#[test]
fn truncated_response_object_is_reported_as_cut() {
    let cut = |object: &str| {
        format!("{}\n[9 bytes left out]\n{}", &object[..MAX_RESPONSE_BYTES / 2], &object[MAX_RESPONSE_BYTES / 2 + 9..])
    };
    let long = format!("{{\"decision\": \"block\", \"reason\": \"{}\"}}", "x".repeat(MAX_RESPONSE_BYTES));
    assert_eq!(parse_response(&cut(&long)), Err(HookResponseError::Cut));
    assert_eq!(parse_response(&cut(&format!("  \n{long}\n"))), Err(HookResponseError::Cut));
    let deep = "{\"a\":[".repeat(MAX_RESPONSE_BYTES / 4) + &"]}".repeat(MAX_RESPONSE_BYTES / 4);
    assert_eq!(parse_response(&cut(&deep)), Err(HookResponseError::Cut));
    // Lines of JSON, and text that resembles it.
    assert_eq!(parse_response(&cut(&"{\"decision\": \"block\"}\n".repeat(MAX_RESPONSE_BYTES / 10))), Ok(None));
    assert_eq!(parse_response(&cut(&"{ make: x }\n".repeat(MAX_RESPONSE_BYTES / 10))), Ok(None));
}

/// The object is valid JSON but too deep to read.
#[test]
fn response_object_with_unreadable_value_is_refused() {
    for (text, why) in [
        (r#"{"reason": "\ud800"}"#, "unexpected end of hex escape at line 1 column 19"),
        (r#"{"reason": 1e999}"#, "number out of range at line 1 column 16"),
    ] {
        bad(text, &format!("`reason`: {why}"));
    }
}

#[test]
fn byte_order_mark_before_response_is_ignored() {
    assert_eq!(said("\u{feff}\n{\"decision\": \"block\"}").decision, Some(ResponseDecision::Block));
}

#[test]
fn broken_json_is_reported_as_near_miss() {
    assert_eq!(explain_near_miss("{}"), None);
    assert_eq!(explain_near_miss("make: {x"), None);
    assert_eq!(explain_near_miss("{'a': 1}").as_deref(), Some("key must be a string at line 1 column 2"));
    assert_eq!(explain_near_miss("{\"a\": 1,}\n").as_deref(), Some("trailing comma at line 1 column 9"));
    assert_eq!(explain_near_miss("{\"decision\": \"block\"}\ndone").as_deref(), Some("something else follows it"));
    assert!(explain_near_miss("{\"decision\": \"block\"").is_some_and(|why| why.starts_with("EOF while parsing")));
    assert_eq!(explain_near_miss("{\"type\": \"suite\"}\n{\"type\": \"test\"}"), None, "what many programs write");
}

#[test]
fn empty_object_or_null_fields_parse_as_default_response() {
    assert_eq!(said("{}"), HookResponse::default());
    let nulls = r#"{"status":null,"message":null,"context":null,"nextPrompt":null,"continue":null,"actions":null,
        "hookSpecificOutput":null,"suppress_output":null}"#;
    assert_eq!(said(nulls), HookResponse::default());
}

#[test]
fn every_field_is_read_in_both_spellings() {
    let camel = json!({
        "status": "failure", "message": "red", "context": {"pr_url": "u"}, "remediationPrompt": "mend it",
        "action": "continue", "reason": "why", "nextPrompt": "go on", "checkpointData": {"step": 5}, "metadata": {"a": 1},
        "decision": "deny", "continue": false, "stopReason": "enough", "systemMessage": "look", "suppressOutput": true,
        "hookSpecificOutput": {
            "hookEventName": "Stop", "permissionDecision": "deny", "permissionDecisionReason": "no",
            "additionalContext": "more", "updatedInput": {"command": "ls"},
            "updatedToolOutput": ["a", 1],
        },
        "actions": [{"type": "log", "payload": {"message": "hi"}}, {"type": "create_task"}],
    });
    let expected = HookResponse {
        status: Some(ResponseStatus::Failure),
        message: Some("red".to_owned()),
        context: object(json!({"pr_url": "u"})),
        remediation_prompt: Some("mend it".to_owned()),
        action: Some(ResponseAction::Continue),
        reason: Some("why".to_owned()),
        next_prompt: Some("go on".to_owned()),
        checkpoint_data: object(json!({"step": 5})),
        metadata: object(json!({"a": 1})),
        decision: Some(ResponseDecision::Block),
        goes_on: Some(false),
        stop_reason: Some("enough".to_owned()),
        system_message: Some("look".to_owned()),
        suppress_output: true,
        specific: HookSpecificOutput {
            event: Some("Stop".to_owned()),
            permission: Some(ResponsePermission::Deny),
            permission_reason: Some("no".to_owned()),
            additional_context: Some("more".to_owned()),
            updated_input: Some(object(json!({"command": "ls"}))),
            updated_output: Some(json!(["a", 1])),
            unknown: Map::new(),
        },
        actions: vec![
            ActionRequest { kind: "log".to_owned(), payload: json!({"message": "hi"}) },
            ActionRequest { kind: "create_task".to_owned(), payload: json!({}) },
        ],
        unknown: Map::new(),
    };
    assert_eq!(said(&camel.to_string()), expected);
    let mut snake = camel.to_string();
    for (from, to) in [
        ("remediationPrompt", "remediation_prompt"),
        ("nextPrompt", "next_prompt"),
        ("checkpointData", "checkpoint_data"),
        ("stopReason", "stop_reason"),
        ("systemMessage", "system_message"),
        ("suppressOutput", "suppress_output"),
        ("hookSpecificOutput", "hook_specific_output"),
        ("hookEventName", "hook_event_name"),
        ("permissionDecisionReason", "permission_decision_reason"),
        ("permissionDecision\"", "permission_decision\""),
        ("additionalContext", "additional_context"),
        ("updatedInput", "updated_input"),
        ("updatedToolOutput", "updated_tool_output"),
    ] {
        assert!(snake.contains(from), "{from}");
        snake = snake.replace(from, to);
    }
    assert_eq!(said(&snake), expected);
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("an object") };
    object
}

#[test]
fn unknown_fields_are_noted() {
    let odd = r#"{"decison": "block", "hookSpecificOutput": {"decision": {"behavior": "deny"}},
        "actions": [{"type": "log"}], "hook_id": 1}"#;
    assert_eq!(said(odd).unknown_fields(), ["decison", "hook_id", "hookSpecificOutput.decision"]);
}

#[track_caller]
fn bad(stdout: &str, expected: &str) {
    let error = parse_response(stdout).expect_err(stdout);
    assert_eq!(error.to_string(), expected, "{stdout}");
}

/// Checks that the error names the place; the JSON library words the rest.
#[track_caller]
fn bad_at(stdout: &str, place: &str) {
    let error = parse_response(stdout).expect_err(stdout).to_string();
    assert!(error.starts_with(&format!("`{place}`: ")), "{stdout}: {error}");
}

#[test]
fn response_field_with_wrong_value_or_type_is_refused() {
    for (stdout, place) in [
        (r#"{"decision": "Block"}"#, "decision"),
        (r#"{"decision": true}"#, "decision"),
        (r#"{"decision": ["block"]}"#, "decision"),
        (r#"{"status": "ok"}"#, "status"),
        (r#"{"status": 0}"#, "status"),
        (r#"{"status": ""}"#, "status"),
        (r#"{"action": "stop"}"#, "action"),
        (r#"{"action": {}}"#, "action"),
        (r#"{"message": 3.5}"#, "message"),
        (r#"{"reason": ["a"]}"#, "reason"),
        (r#"{"remediation_prompt": {}}"#, "remediation_prompt"),
        (r#"{"nextPrompt": false}"#, "nextPrompt"),
        (r#"{"stop_reason": 1}"#, "stop_reason"),
        (r#"{"systemMessage": []}"#, "systemMessage"),
        (r#"{"context": "x"}"#, "context"),
        (r#"{"checkpointData": [1]}"#, "checkpointData"),
        (r#"{"metadata": 1}"#, "metadata"),
        (r#"{"continue": "false"}"#, "continue"),
        (r#"{"continue": 0}"#, "continue"),
        (r#"{"suppressOutput": "yes"}"#, "suppressOutput"),
        (r#"{"hookSpecificOutput": "x"}"#, "hookSpecificOutput"),
        (r#"{"hookSpecificOutput": {"permissionDecision": "no"}}"#, "hookSpecificOutput.permissionDecision"),
        (r#"{"hook_specific_output": {"additional_context": 1}}"#, "hook_specific_output.additional_context"),
        (r#"{"hookSpecificOutput": {"updatedInput": "ls"}}"#, "hookSpecificOutput.updatedInput"),
        (r#"{"hookSpecificOutput": {"hookEventName": 7}}"#, "hookSpecificOutput.hookEventName"),
        (r#"{"hookSpecificOutput": {"permissionDecisionReason": {}}}"#, "hookSpecificOutput.permissionDecisionReason"),
        (r#"{"actions": {}}"#, "actions"),
        (r#"{"actions": "log"}"#, "actions"),
        (r#"{"actions": ["log"]}"#, "actions[0]"),
        (r#"{"actions": [{"type": "log"}, null]}"#, "actions[1]"),
        (r#"{"actions": [{"payload": {}}]}"#, "actions[0]"),
        (r#"{"actions": [{"type": 1}]}"#, "actions[0].type"),
        (r#"{"actions": [{"type": " "}]}"#, "actions[0].type"),
        (r#"{"actions": [{"type": "log", "payload": "x"}]}"#, "actions[0].payload"),
        (r#"{"actions": [{"type": "log", "payload": []}]}"#, "actions[0].payload"),
        (r#"{"actions": [{"type": "log", "retries": 3}]}"#, "actions[0].retries"),
    ] {
        bad_at(stdout, place);
    }
    bad(
        r#"{"decision": "maybe"}"#,
        "`decision`: unknown variant `maybe`, expected one of `allow`, `approve`, `block`, `deny`",
    );
    let long = parse_response(&json!({"status": "é".repeat(1000)}).to_string()).unwrap_err().to_string();
    assert!(long.len() < 1000, "{long}");
}

#[test]
fn actions_have_bounds() {
    let many = |count: usize| json!({"actions": vec![json!({"type": "log"}); count]}).to_string();
    assert_eq!(said(&many(MAX_ACTIONS)).actions.len(), MAX_ACTIONS);
    bad(&many(MAX_ACTIONS + 1), "it has 65 actions; at most 64 are allowed");
    let named = |length: usize| json!({"actions": [{"type": "x".repeat(length)}]}).to_string();
    assert_eq!(said(&named(EngineLimits::LABEL_BYTES)).actions.len(), 1);
    bad(&named(EngineLimits::LABEL_BYTES + 1), "`actions[0].type`: expected a name of at most 256 bytes");
}

#[test]
fn yes_and_no_together_are_a_bad_answer() {
    let both = |yes: &str, no: &str| format!("{yes} and {no} contradict each other; say one of them");
    for (stdout, yes, no) in [
        (r#"{"status": "failure", "decision": "allow"}"#, r#"`decision` "allow""#, r#"`status` "failure""#),
        (r#"{"status": "failure", "decision": "approve"}"#, r#"`decision` "allow""#, r#"`status` "failure""#),
        (r#"{"status": "success", "decision": "block"}"#, r#"`status` "success""#, r#"`decision` "block""#),
        (r#"{"status": "skip", "decision": "deny"}"#, r#"`status` "skip""#, r#"`decision` "block""#),
        (r#"{"action": "complete", "status": "failure"}"#, r#"`action` "complete""#, r#"`status` "failure""#),
        (r#"{"action": "continue", "status": "success"}"#, r#"`status` "success""#, r#"`action` "continue""#),
        (r#"{"action": "escalate", "decision": "allow"}"#, r#"`decision` "allow""#, r#"`action` "escalate""#),
        (
            r#"{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "ask"}}"#,
            r#"`decision` "allow""#,
            r#"`permissionDecision` "ask""#,
        ),
        (
            r#"{"decision": "block", "hookSpecificOutput": {"permissionDecision": "allow"}}"#,
            r#"`permissionDecision` "allow""#,
            r#"`decision` "block""#,
        ),
    ] {
        bad(stdout, &both(yes, no));
    }
    for twice in [
        r#"{"nextPrompt": "a", "next_prompt": "b"}"#,
        r#"{"decision": "allow", "decision": "block"}"#,
        r#"{"hookSpecificOutput": {"additionalContext": "a", "additional_context": "b"}}"#,
    ] {
        let error = parse_response(twice).expect_err(twice).to_string();
        assert!(error.contains("duplicate field"), "{error}");
    }
    for stdout in [
        r#"{"status": "success", "action": "complete", "decision": "approve"}"#,
        r#"{"status": "failure", "action": "escalate", "decision": "block"}"#,
        r#"{"decision": "approve", "continue": false}"#,
    ] {
        said(stdout);
    }
}

#[test]
fn response_beyond_depth_or_size_limit_is_refused() {
    let deep =
        |levels: usize| format!("{{\"context\":{}{}}}", "{\"a\":".repeat(levels - 2) + "{}", "}".repeat(levels - 2));
    said(&deep(EngineLimits::VALUE_DEPTH));
    bad(&deep(EngineLimits::VALUE_DEPTH + 1), "it has 65 levels of lists and objects; at most 64 are allowed");
    bad(&deep(100_000 / 6), "it has 16666 levels of lists and objects; at most 64 are allowed");
    said(&json!({"reason": "[".repeat(100) + "\\\"[{"}).to_string());
    let long = |bytes: usize| format!("{{\"reason\":\"{}\"}}", "x".repeat(bytes - 13));
    said(&long(MAX_RESPONSE_BYTES));
    bad(&long(MAX_RESPONSE_BYTES + 1), "it has 262145 bytes; at most 262144 are allowed");
}
