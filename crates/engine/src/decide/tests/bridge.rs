//! Calls of agents' own hook systems: the hooks that they enqueue, the limit of send-backs, and recovery after a crash.

use serde_json::json;
use windlass_expr::{Condition, ExpressionNames, ToolMatcher};

use super::script::{ScriptProject, default_rules};
use crate::bridge::{BlockingBridgeHook, BridgeCall, BridgeCaller, CallRuling, CallVerdict};
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command, CommandOrigin};
use crate::decide::{ConfigTrust, EngineRules, HookPlan, HookScope, PlannedHook, decide, hooks_for_call};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::outbox::RecoveryAction;
use crate::log::event::{Event, payload};
use crate::log::event_type::EventType;
use crate::log::id::Seq;
use crate::view::StateView;

const OWNER: &str = "w1";

fn planned_hook(hook: &str, point: &str, matcher: &str, when: Option<&str>) -> PlannedHook {
    let owed = HookEffect {
        hook: hook.to_owned(),
        point: point.parse().expect("a hook point"),
        class: HookClass::Bridge,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    };
    PlannedHook {
        matcher: ToolMatcher::parse(matcher).unwrap(),
        when: when.map(|when| Condition::parse(when, &ExpressionNames::for_hook()).unwrap()),
        ..PlannedHook::from(owed)
    }
}

fn bridge_rules(trust: ConfigTrust) -> EngineRules {
    let hooks = vec![
        planned_hook("tests", "stop", "", None),
        planned_hook("guard", "pre_tool_use", "Bash", None),
        planned_hook("edits", "pre_tool_use", "Edit|Write", None),
        planned_hook("greeting", "session_start", "startup|clear", Some("tool_name == ''")),
        planned_hook("careful", "pre_tool_use", "", Some("'rm ' in tool_input.command")),
    ];
    let effects = HookPlan::for_all_tasks("hooks: {}", OWNER.parse().unwrap(), []);
    let hooks = [(EventType::BridgeCalled, hooks)].into();
    EngineRules { effects: Some(HookPlan { hooks, trust, ..effects }), ..default_rules() }
}

fn bridge_caller(conversation: &str) -> BridgeCaller {
    BridgeCaller { agent: "claude".to_owned(), conversation: conversation.to_owned() }
}

fn bridge_call(point: &str, tool: &[&str], command: &str, anew: bool) -> BridgeCall {
    BridgeCall {
        caller: bridge_caller("one"),
        point: point.parse().expect("a hook point"),
        tool: tool.first().map(|tool| (*tool).to_owned()),
        matched: tool.iter().map(|tool| (*tool).to_owned()).collect(),
        tool_input: json!({ "command": command }),
        tool_response: json!({}),
        prompt: String::new(),
        output: String::new(),
        about: command.to_owned(),
        anew,
        max_retries: 3,
    }
}

fn commit_bridge_command(project: &mut ScriptProject, command: &Command) -> Result<Vec<Event>, Refusal> {
    let at = "2026-01-17T10:00:00Z".parse().unwrap();
    let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
    let records: Vec<_> = {
        let decided = decide(&project.memory, &project.rules, &origin, command)?;
        decided.entries().iter().map(|entry| entry.record.clone()).collect()
    };
    records.iter().for_each(|record| project.memory.apply_event(record).unwrap());
    project.log.extend(records.iter().cloned());
    Ok(records.into_iter().map(|record| record.envelope.event).collect())
}

/// Returns the hooks that a call enqueues.
fn enqueued_hooks(call: BridgeCall) -> Vec<String> {
    let mut project = ScriptProject::new(bridge_rules(ConfigTrust::Yes));
    commit_bridge_command(&mut project, &Command::Call(Box::new(call))).unwrap();
    let owes = project.log.iter().find_map(|record| record.envelope.metadata.owes.clone());
    owes.map(|owed| owed.hooks.into_iter().map(|hook| hook.hook).collect()).unwrap_or_default()
}

#[test]
fn call_enqueues_hooks_matching_its_point_and_tool() {
    assert_eq!(enqueued_hooks(bridge_call("stop", &[], "", true)), ["tests"]);
    assert_eq!(enqueued_hooks(bridge_call("pre_tool_use", &["Bash"], "ls", true)), ["guard"]);
    assert_eq!(
        enqueued_hooks(bridge_call("pre_tool_use", &["Bash", "run_shell_command"], "rm x", true)),
        ["guard", "careful"]
    );
    assert_eq!(enqueued_hooks(bridge_call("pre_tool_use", &["replace", "Edit"], "ls", true)), ["edits"]);
    assert_eq!(enqueued_hooks(bridge_call("post_tool_use", &["Bash"], "ls", true)), [""; 0]);
    // This tool has another input, so a condition on `command` does not apply to it.
    let read =
        BridgeCall { tool_input: json!({"file_path": "rm "}), ..bridge_call("pre_tool_use", &["Read"], "", true) };
    assert_eq!(enqueued_hooks(read), [""; 0]);
}

#[test]
fn matcher_filters_session_start_hooks_by_source() {
    let begun = |source: &[&str]| {
        let matched = source.iter().map(|source| (*source).to_owned()).collect();
        enqueued_hooks(BridgeCall { matched, ..bridge_call("session_start", &[], "", true) })
    };
    assert_eq!(begun(&["clear"]), ["greeting"]);
    assert_eq!(begun(&["resume"]), [""; 0]);
    // A call without a reason matches every hook.
    assert_eq!(begun(&[]), ["greeting"]);
}

#[test]
fn untrusted_configuration_enqueues_no_bridge_hooks() {
    let mut project = ScriptProject::new(bridge_rules(ConfigTrust::No));
    let refused =
        commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("stop", &[], "", true)))).unwrap_err();
    assert!(matches!(refused, Refusal::Untrusted { .. }), "{refused}");
    let quiet = commit_bridge_command(
        &mut project,
        &Command::Call(Box::new(bridge_call("post_tool_use", &["Bash"], "ls", true))),
    );
    assert_eq!(quiet.unwrap().len(), 1);
}

/// Returns the answer to a stop that one hook blocks.
fn answer_with_block(
    project: &mut ScriptProject,
    conversation: &str,
    reason: &str,
    most: Option<u32>,
) -> payload::BridgeAnswered {
    let verdict = CallVerdict {
        ruling: CallRuling::Block,
        reason: Some(reason.to_owned()),
        objectors: vec![BlockingBridgeHook { hook: "tests".to_owned(), max_send_backs: most }],
        max_retries: 3,
        told: None,
    };
    answer_stop(project, conversation, verdict)
}

fn answer_stop(project: &mut ScriptProject, conversation: &str, verdict: CallVerdict) -> payload::BridgeAnswered {
    answer_call("stop", project, conversation, verdict)
}

fn answer_call(
    point: &str,
    project: &mut ScriptProject,
    conversation: &str,
    verdict: CallVerdict,
) -> payload::BridgeAnswered {
    let (at, caller, point) = (Seq(1), bridge_caller(conversation), point.parse().expect("a hook point"));
    let answered = Command::AnswerCall { at, caller, point, verdict: Box::new(verdict) };
    match commit_bridge_command(project, &answered).unwrap().remove(0) {
        Event::BridgeAnswered(answered) => answered,
        other => panic!("{other:?}"),
    }
}

fn bridge_project() -> ScriptProject {
    let mut project = ScriptProject::new(bridge_rules(ConfigTrust::Yes));
    commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("stop", &[], "", true)))).unwrap();
    project
}

#[test]
fn agent_is_let_go_at_limit_of_send_backs() {
    let mut project = bridge_project();
    for turn in 1..=3 {
        let sent = answer_with_block(&mut project, "one", &format!("{turn} tests fail"), None);
        assert_eq!((sent.ruling, sent.retries, sent.let_go), (CallRuling::Block, turn, None));
    }
    let end = answer_with_block(&mut project, "one", "4 tests fail", None);
    let why = "`tests` has sent the agent back 3 times (`max_hook_retries`)";
    assert_eq!((end.ruling, end.retries, end.let_go.as_deref()), (CallRuling::Pass, 3, Some(why)));
    // The agent may call twice and is let go twice; a prompt of a person starts anew.
    assert_eq!(answer_with_block(&mut project, "one", "5 tests fail", None).ruling, CallRuling::Pass);
    commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("user_prompt_submit", &[], "", true))))
        .unwrap();
    assert_eq!(answer_with_block(&mut project, "one", "6 tests fail", None).retries, 1);
}

#[test]
fn conversations_count_send_backs_separately() {
    let mut project = bridge_project();
    assert_eq!(answer_with_block(&mut project, "one", "a", None).retries, 1);
    assert_eq!(answer_with_block(&mut project, "two", "a", None).retries, 1);
    assert_eq!(answer_with_block(&mut project, "one", "b", None).retries, 2);
}

#[test]
fn prompt_of_person_resets_send_backs() {
    let mut project = bridge_project();
    answer_with_block(&mut project, "one", "a", None);
    commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("stop", &[], "", false)))).unwrap();
    assert_eq!(answer_with_block(&mut project, "one", "b", None).retries, 2);
    commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("user_prompt_submit", &[], "", true))))
        .unwrap();
    assert_eq!(answer_with_block(&mut project, "one", "c", None).retries, 1);
}

/// Gemini CLI reports a block reason as a prompt of a person.
#[test]
fn repeated_block_reason_as_prompt_resets_nothing() {
    let mut project = bridge_project();
    answer_with_block(&mut project, "one", "a", None);
    let prompt =
        |text: &str| BridgeCall { prompt: text.to_owned(), ..bridge_call("user_prompt_submit", &[], "", true) };
    commit_bridge_command(&mut project, &Command::Call(Box::new(prompt("a\n")))).unwrap();
    assert_eq!(answer_with_block(&mut project, "one", "b", None).retries, 2);
    commit_bridge_command(&mut project, &Command::Call(Box::new(prompt("go on")))).unwrap();
    assert_eq!(answer_with_block(&mut project, "one", "c", None).retries, 1);
}

#[test]
fn third_identical_block_lets_agent_go() {
    let mut project = bridge_project();
    assert_eq!(answer_with_block(&mut project, "one", "same", None).let_go, None);
    assert_eq!(answer_with_block(&mut project, "one", "same", None).let_go, None);
    let end = answer_with_block(&mut project, "one", "same", None);
    assert_eq!(end.let_go.as_deref(), Some("the same reason 3 times in a row"));
}

#[test]
fn hook_with_its_own_limit_is_let_go_by_that_alone() {
    let mut project = bridge_project();
    assert_eq!(answer_with_block(&mut project, "one", "a", Some(1)).let_go, None);
    let end = answer_with_block(&mut project, "one", "b", Some(1));
    assert_eq!(end.let_go.as_deref(), Some("`tests` has sent the agent back once (its `retry.max`)"));
    let never = answer_with_block(&mut project, "two", "a", Some(0));
    assert_eq!(never.let_go.as_deref(), Some("`tests` may not send the agent back (its `retry.max` is 0)"));
    for turn in 1..=4 {
        assert_eq!(
            answer_with_block(&mut project, "three", &turn.to_string(), Some(4)).let_go,
            None,
            "more than usual"
        );
    }
    assert!(answer_with_block(&mut project, "three", "5", Some(4)).let_go.is_some());
}

#[test]
fn hook_at_its_limit_opens_the_gate_for_no_other() {
    let mut project = bridge_project();
    let mut end = |reason: &str, hooks: &[(&str, Option<u32>)]| {
        let objectors = hooks
            .iter()
            .map(|(hook, most)| BlockingBridgeHook { hook: (*hook).to_owned(), max_send_backs: *most })
            .collect();
        let (ruling, reason, told) = (CallRuling::Block, Some(reason.to_owned()), None);
        answer_stop(&mut project, "one", CallVerdict { ruling, reason, objectors, max_retries: 3, told }).let_go
    };
    let (slow, tests) = (("slow", Some(1)), ("tests", None));
    for turn in 1..=3 {
        assert_eq!(end(&turn.to_string(), &[slow, tests]), None);
    }
    let why = "`slow` has sent the agent back once (its `retry.max`); `tests` has sent the agent back 3 times \
               (`max_hook_retries`)";
    assert_eq!(end("4", &[slow, tests]).as_deref(), Some(why));
    assert_eq!(end("5", &[slow, ("lint", None)]), None, "`lint` has sent it back never");
}

#[test]
fn let_go_reason_names_limit() {
    let mut project = bridge_project();
    let mut end = |max_retries| {
        let objectors = vec![BlockingBridgeHook { hook: "tests".to_owned(), max_send_backs: None }];
        let (ruling, reason, told) = (CallRuling::Block, Some(format!("{max_retries} fail")), None);
        let verdict = CallVerdict { ruling, reason, objectors, max_retries, told };
        answer_stop(&mut project, "one", verdict).let_go
    };
    assert_eq!(end(0).as_deref(), Some("`tests` may not send the agent back (`max_hook_retries` is 0)"));
    assert_eq!(end(1), None);
    assert_eq!(end(1).as_deref(), Some("`tests` has sent the agent back once (`max_hook_retries`)"));
}

#[test]
fn hooks_of_another_agent_are_not_owed() {
    let codex = PlannedHook { scope: HookScope::Agent("codex".to_owned()), ..planned_hook("tests", "stop", "", None) };
    let typed =
        PlannedHook { scope: HookScope::TaskType("bug".parse().unwrap()), ..planned_hook("typed", "stop", "", None) };
    let stop = bridge_call("stop", &[], "", true);
    let from = |agent: &str| {
        let caller = BridgeCaller { agent: agent.to_owned(), ..stop.caller.clone() };
        !hooks_for_call(&BridgeCall { caller, ..stop.clone() }, vec![codex.clone(), typed.clone()]).is_empty()
    };
    assert!(from("codex") && !from("claude"));
    let own = PlannedHook { scope: HookScope::Agent("claude".to_owned()), ..planned_hook("tests", "stop", "", None) };
    let mut rules = bridge_rules(ConfigTrust::Yes);
    rules.effects.as_mut().unwrap().hooks = [(EventType::BridgeCalled, vec![codex.clone(), own])].into();
    let mut project = ScriptProject::new(rules);
    commit_bridge_command(&mut project, &Command::Call(Box::new(stop.clone()))).unwrap();
    assert_eq!(project.pending_effects().len(), 1);
}

#[test]
fn passed_call_resets_send_backs() {
    let mut project = bridge_project();
    answer_with_block(&mut project, "one", "a", None);
    let passed = CallVerdict { ruling: CallRuling::Pass, reason: None, objectors: vec![], max_retries: 3, told: None };
    answer_stop(&mut project, "one", passed);
    assert_eq!(project.memory.find_conversation(&bridge_caller("one")).unwrap(), None);
}

#[test]
fn hooks_of_a_dead_caller_are_not_run_again() {
    let mut project = bridge_project();
    let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
    assert_eq!(effect.recovery_action(), RecoveryAction::Record(HookFailurePolicy::Ignore));
    let (dead, owner) = (OWNER.parse().unwrap(), "w2".parse().unwrap());
    let events =
        commit_bridge_command(&mut project, &Command::RecoverEffect { effect: effect.id, dead, owner }).unwrap();
    assert_eq!(events.iter().map(Event::kind).collect::<Vec<_>>(), [EventType::HookFinished]);
    assert_eq!(project.memory.next_pending_effect(None).unwrap(), None);
}

#[test]
fn call_without_conversation_is_refused() {
    let mut nameless = bridge_call("stop", &[], "", true);
    nameless.caller.conversation = " ".to_owned();
    let refused = commit_bridge_command(&mut bridge_project(), &Command::Call(Box::new(nameless))).unwrap_err();
    assert_eq!(refused.to_string(), "the conversation is empty");
}

/// The limit applies only to stop hooks, because only a refused stop makes the agent continue.
#[test]
fn tool_call_is_blocked_every_time_despite_retry_limit() {
    let mut project = bridge_project();
    for _ in 0..5 {
        let objectors = vec![BlockingBridgeHook { hook: "guard".to_owned(), max_send_backs: Some(1) }];
        let (ruling, reason, told) = (CallRuling::Block, Some("never".to_owned()), None);
        let verdict = CallVerdict { ruling, reason, objectors, max_retries: 1, told };
        let answered = answer_call("pre_tool_use", &mut project, "one", verdict);
        assert_eq!((answered.ruling, answered.retries, answered.let_go), (CallRuling::Block, 0, None));
    }
}

/// A skipped hook would leave the gate open.
#[test]
fn stop_hook_runs_when_its_condition_cannot_be_evaluated() {
    let mut rules = bridge_rules(ConfigTrust::Yes);
    let hooks = vec![planned_hook("tests", "stop", "", Some("tool_input.missing.deeper == 1"))];
    rules.effects.as_mut().unwrap().hooks = [(EventType::BridgeCalled, hooks)].into();
    let mut project = ScriptProject::new(rules);
    commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("stop", &[], "", true)))).unwrap();
    assert_eq!(project.pending_effects().len(), 1);
}

#[test]
fn conditions_of_a_call_are_answered_once_where_they_can_be() {
    let check = |condition: &str, expected: Option<bool>| {
        let hooks = hooks_for_call(
            &bridge_call("stop", &[], "", true),
            vec![planned_hook("tests", "stop", "", Some(condition))],
        );
        assert_eq!(hooks.first().map(|hook| hook.when.is_some()), expected, "{condition}");
    };
    check("retries > 0", Some(true));
    check("tool_name == 'Bash'", None);
    check("tool_name == ''", Some(false));
    check("tool_input.missing.deeper == 1", Some(true));
}

#[test]
fn hook_whose_condition_cannot_be_answered_stays_beside_one_that_runs() {
    let call = bridge_call("pre_tool_use", &["Bash"], "", false);
    let hooks = |conditions: &[&str]| {
        let hooks = conditions.iter().map(|condition| planned_hook("guard", "pre_tool_use", "", Some(condition)));
        hooks_for_call(&call, hooks.collect()).len()
    };
    assert_eq!(hooks(&["iteration > '0'", "iteration >= 0"]), 2, "its problem is recorded");
    assert_eq!(hooks(&["iteration > '0'"]), 0, "alone it has no call recorded");
}

/// The values that conditions see.
#[test]
fn conditions_see_zero_retries_after_new_prompt() {
    let mut project = bridge_project();
    answer_with_block(&mut project, "one", "a", None);
    let mut retries = |anew: bool| {
        commit_bridge_command(&mut project, &Command::Call(Box::new(bridge_call("stop", &[], "", anew)))).unwrap();
        project.event_data(EventType::BridgeCalled)["retries"].as_u64().unwrap_or(0)
    };
    assert_eq!((retries(false), retries(true)), (1, 0));
}
