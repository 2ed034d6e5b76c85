//! The decisions of stop hooks, and the syntax of their rules.

use serde_json::{Map, Value, json};

use super::{AgentContext, DetectedPromise, RuleListSource, StopHook, StopRuling, evaluate_stop_hooks};
use crate::evaluation::RegisteredStopHook;
use crate::evaluation::decision_rule::RuleAction;
use crate::evaluation::validation::RuleResult;
use crate::log::id::{HookId, TaskId};
use crate::log::time::Timestamp;
use crate::session::promise::Promise;

fn context(promises: &[Promise], results: &[(&str, bool)]) -> AgentContext {
    AgentContext {
        task_id: Some(TaskId(1)),
        iteration: 3,
        execution_phase: Some("testing".to_owned()),
        files_modified: vec!["src/a.rs".to_owned()],
        validation_results: results
            .iter()
            .map(|(name, passed)| RuleResult {
                rule_name: (*name).to_owned(),
                passed: *passed,
                message: "as found".to_owned(),
                broken: false,
            })
            .collect(),
        completion_promises: promises
            .iter()
            .map(|it| DetectedPromise::from_promise(*it, Timestamp::from_millis(0)))
            .collect(),
        agent_output: None,
        draft_content: None,
        draft_type: None,
    }
}

fn registered(id: u64, hook: StopHook, enabled: bool) -> RegisteredStopHook {
    RegisteredStopHook { id: HookId(id), hook, enabled, inside: false, metadata: Map::new() }
}

fn rules(text: Value) -> StopHook {
    StopHook::Rules { rules: RuleListSource::parse_rules(&text).unwrap() }
}

/// Returns the decision of one hook: its action and its reason.
fn said(hook: StopHook, context: &AgentContext) -> (RuleAction, String) {
    let mut no_evaluator = |_: &RegisteredStopHook| panic!("no outside code is asked");
    let ruling = evaluate_stop_hooks(&[registered(1, hook, true)], context, &mut no_evaluator).ruling;
    (ruling.action, ruling.reason)
}

#[test]
fn preset_hooks_decide_by_promises_and_results() {
    use Promise::{Blocked, Complete, Escalate};
    use RuleAction as A;
    let (good, bad): (&[_], &[_]) = (&[("tests", true), ("lint", true)], &[("tests", false), ("lint", true)]);
    type Case<'a> = (&'a [Promise], &'a [(&'a str, bool)], A, A, A);
    #[rustfmt::skip]
    let table: [Case<'_>; 11] = [
        // promises, results, default, validation, promise
        (&[], &[], A::Continue, A::Continue, A::Continue),
        (&[Complete], &[], A::Complete, A::Continue, A::Complete),
        (&[Escalate], &[], A::Escalate, A::Continue, A::Escalate),
        (&[Blocked], &[], A::Escalate, A::Continue, A::Escalate),
        (&[Complete], bad, A::Complete, A::Continue, A::Complete),
        (&[Blocked], good, A::Escalate, A::Complete, A::Escalate),
        (&[], good, A::Complete, A::Complete, A::Continue),
        (&[], bad, A::Continue, A::Continue, A::Continue),
        (&[Complete, Escalate], bad, A::Complete, A::Continue, A::Complete),
        (&[Blocked, Escalate], good, A::Escalate, A::Complete, A::Escalate),
        (&[Blocked, Complete], bad, A::Complete, A::Continue, A::Complete),
    ];
    for (promises, results, default, validation, promise) in table {
        let context = context(promises, results);
        for (hook, expected) in
            [(StopHook::Default, default), (StopHook::Validation, validation), (StopHook::Promise, promise)]
        {
            assert_eq!(said(hook.clone(), &context).0, expected, "{hook} of {promises:?} {results:?}");
        }
    }
}

#[test]
fn default_preset_reports_reason_and_next_prompt_for_failed_rules() {
    let failing = context(&[], &[("tests", false), ("lint", false), ("docs", true)]);
    let evaluated = evaluate_stop_hooks(&[registered(7, StopHook::Default, true)], &failing, &mut |_| unreachable!());
    assert_eq!(evaluated.hook, Some(HookId(7)));
    assert_eq!(evaluated.ruling.reason, "2 of 3 validation rules failed: tests, lint");
    let next = evaluated.ruling.next_prompt.unwrap();
    assert_eq!(next, "Fix what the validation rules found:\n- tests: as found\n- lint: as found");
    let both = context(&[Promise::Blocked, Promise::Escalate], &[]);
    assert_eq!(said(StopHook::Default, &both).1, "the agent asks for a person: <promise>ESCALATE</promise>");
}

#[test]
fn hooks_are_asked_in_order_until_one_does_not_continue() {
    let answers = |actions: &'static [RuleAction], disabled: &[usize]| {
        let command = |_| StopHook::Command { command: "judge".to_owned() };
        let hooks: Vec<_> = (0..actions.len())
            .map(|place| registered(place as u64 + 1, command(place), !disabled.contains(&place)))
            .collect();
        let mut asked = Vec::new();
        let evaluated = evaluate_stop_hooks(&hooks, &context(&[], &[]), &mut |hook| {
            asked.push(hook.id.0);
            Ok(StopRuling::new(actions[hook.id.0 as usize - 1], format!("by {}", hook.id)))
        });
        (asked, evaluated.hook.map(|hook| hook.0), evaluated.ruling.action, evaluated.ruling.reason)
    };
    use RuleAction::{Complete, Continue, Escalate};
    let reason = |text: &str| text.to_owned();
    assert_eq!(answers(&[Continue, Complete, Escalate], &[]), (vec![1, 2], Some(2), Complete, reason("by HOOK-2")));
    assert_eq!(answers(&[Continue, Complete, Escalate], &[1]), (vec![1, 3], Some(3), Escalate, reason("by HOOK-3")));
    assert_eq!(answers(&[Continue, Continue], &[]), (vec![1, 2], Some(2), Continue, reason("by HOOK-2")));
    assert_eq!(answers(&[Continue, Complete], &[1]), (vec![1], Some(1), Continue, reason("by HOOK-1")));
    assert_eq!(answers(&[], &[]), (vec![], None, Continue, reason("No hooks registered for this task")));
    assert_eq!(answers(&[Complete], &[0]), (vec![], None, Continue, reason("every hook of the task is disabled")));
}

#[test]
fn failed_stop_hook_escalates_with_error_in_metadata() {
    let hooks =
        [registered(1, StopHook::Closure { name: "gone".to_owned() }, true), registered(2, StopHook::Promise, true)];
    let done = context(&[Promise::Complete], &[]);
    let evaluated = evaluate_stop_hooks(&hooks, &done, &mut |_| Err("the program is missing".to_owned()));
    assert_eq!((evaluated.hook, evaluated.ruling.action), (Some(HookId(1)), RuleAction::Escalate));
    assert_eq!(evaluated.ruling.reason, "the hook failed: the program is missing");
    assert_eq!(Value::Object(evaluated.ruling.metadata), json!({"error": "the program is missing"}));
    // A rule over a missing field fails when it is evaluated.
    let (action, reason) = said(rules(json!([{"when": "agentOutput | length > 3", "action": "complete"}])), &done);
    assert_eq!(action, RuleAction::Escalate);
    assert!(reason.starts_with("the hook failed: "), "{reason}");
}

#[test]
fn rules_know_the_whole_context() {
    let full = AgentContext {
        agent_output: Some("all green".to_owned()),
        draft_content: Some("fn main() {}".to_owned()),
        draft_type: Some("implementation".to_owned()),
        ..context(&[Promise::Complete], &[("tests", true)])
    };
    for when in [
        "taskId == 'T1'",
        "iteration == 3",
        "executionPhase == 'testing'",
        "'src/a.rs' in filesModified",
        "validationResults[0].passed and validationResults[0].ruleName == 'tests'",
        "not validationResults[0].broken",
        "completionPromises | selectattr('type', 'eq', 'COMPLETE') | list",
        "'green' in agentOutput",
        "draftContent | length == 12",
        "draftType == 'implementation'",
    ] {
        let rule = json!([{"when": when, "action": "complete"}]);
        assert_eq!(said(rules(rule), &full).0, RuleAction::Complete, "{when}");
    }
    let empty = context(&[], &[]);
    for when in ["agentOutput is none", "draftType is none", "not completionPromises", "not validationResults"] {
        let rule = json!([{"when": when, "action": "complete"}]);
        assert_eq!(said(rules(rule), &empty).0, RuleAction::Complete, "{when}");
    }
}

#[test]
fn rules_combine_conditions_and_render_texts() {
    let hook = rules(json!([
        {"allOf": ["iteration > 2", "filesModified"], "anyOf": ["iteration == 9", "draftType is none"],
         "action": "continue", "reason": "iteration {{ iteration }}", "nextPrompt": "look at {{ filesModified | join(', ') }}",
         "checkpointData": {"executionPhase": "midpoint"}},
        {"action": "escalate"},
    ]));
    let evaluated =
        evaluate_stop_hooks(&[registered(1, hook.clone(), true)], &context(&[], &[]), &mut |_| unreachable!());
    assert_eq!(
        evaluated.ruling,
        StopRuling {
            next_prompt: Some("look at src/a.rs".to_owned()),
            checkpoint_data: Some(json!({"executionPhase": "midpoint"})),
            ..StopRuling::new(RuleAction::Continue, "iteration 3")
        }
    );
    let early = AgentContext { iteration: 1, ..context(&[], &[]) };
    assert_eq!(said(hook, &early), (RuleAction::Escalate, "a rule matches".to_owned()));
    let silent = rules(json!([{"when": "iteration > 99", "action": "complete"}]));
    assert_eq!(said(silent, &early), (RuleAction::Continue, "none of its rules matches".to_owned()));
}

#[test]
fn named_templates_decide_by_their_rules() {
    let check = |template: Value, iteration: u32, results: &[(&str, bool)], expected: RuleAction| {
        let context = AgentContext { iteration, ..context(&[], results) };
        assert_eq!(said(rules(template.clone()), &context).0, expected, "{template} at {iteration} with {results:?}");
    };
    use RuleAction::{Complete, Continue, Escalate};
    check(json!("tdd"), 1, &[("tests_pass", true)], Complete);
    check(json!("tdd"), 1, &[("tests_pass", false)], Continue);
    check(json!("tdd"), 1, &[], Continue);
    check(json!(r#"[{"action": "escalate"}]"#), 1, &[], Escalate);
    check(json!({"action": "escalate"}), 1, &[], Escalate);
    check(json!({"template": "tdd", "rule": "cargo"}), 1, &[("cargo", true)], Complete);
    check(json!("security-remediation"), 1, &[("vulns_fixed", true), ("sast_clean", true)], Complete);
    check(json!("security-remediation"), 9, &[("vulns_fixed", true), ("sast_clean", false)], Continue);
    check(json!("security-remediation"), 10, &[("vulns_fixed", true)], Escalate);
    check(json!("security-remediation"), 10, &[("vulns_fixed", true), ("sast_clean", true)], Complete);
    check(json!({"template": "security-remediation", "rules": ["audit"], "maxIterations": 2}), 2, &[], Escalate);
    for (iteration, every, made) in [(5, 5, true), (4, 5, false), (10, 5, true), (4, 2, true)] {
        let hook = registered(1, rules(json!({"template": "checkpoint-every", "every": every})), true);
        let context = AgentContext { iteration, ..context(&[Promise::Complete], &[]) };
        let ruling = evaluate_stop_hooks(&[hook], &context, &mut |_| unreachable!()).ruling;
        assert_eq!((ruling.action, ruling.checkpoint_data.is_some()), (Continue, made), "{iteration} of {every}");
    }
}

#[test]
fn invalid_stop_rule_is_refused_with_its_path() {
    let check = |text: Value, expected: &str| {
        let refusal = RuleListSource::parse_rules(&text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{text}: {refusal}");
    };
    check(
        json!(7),
        "has to be a list of rules, or the name of a template (tdd, security-remediation, checkpoint-every)",
    );
    check(json!([]), "is an empty list");
    check(json!(["tdd"]), "[0] cannot be read");
    check(json!([{"action": "complete"}, {"when": "true"}]), "[1] cannot be read: missing field `action`");
    check(json!([{"action": "stop"}]), "[0].action cannot be read: unknown variant `stop`");
    check(
        json!([{"action": "complete", "whn": "true"}]),
        "[0].whn cannot be read: unknown field `whn`, expected one of `when`",
    );
    check(json!([{"action": "complete", "when": "iteratoin > 2"}]), "[0].when: ");
    check(json!([{"action": "complete", "when": "iteratoin > 2"}]), "did you mean `iteration`?");
    check(json!([{"action": "complete", "when": "iteration >"}]), "[0].when: ");
    check(json!([{"action": "complete", "when": 7}]), "[0].when cannot be read");
    check(json!([{"action": "complete", "reason": "{{ nothing }}"}]), "[0].reason: ");
    check(
        json!([{"action": "continue", "checkpointData": {"executionPhase": " "}}]),
        "[0].checkpointData: executionPhase is empty",
    );
    check(json!("ttd"), "unknown variant `ttd`, expected one of `tdd`");
    check(json!({"rule": "x"}), "rules need an `action` each, in a list, or a `template`: tdd");
    check(json!({"template": "tdd", "rulez": "x"}), "unknown field `rulez`");
    check(json!({"template": "tdd", "rule": "it's"}), "without quotes");
    check(json!({"template": "checkpoint-every", "every": 0}), "at least 1");
    check(json!({"template": "checkpoint-every", "every": 2.5}), "invalid type");
    check(Value::from(vec![json!({"action": "complete"}); 33]), "has 33 rules; at most 32 are allowed");
}

#[test]
fn rules_are_logged_as_they_were_written() {
    for text in [
        json!([{"when": "iteration > 2", "action": "escalate"}]),
        json!({"template": "tdd", "rule": "tests_pass"}),
        json!({"template": "checkpoint-every", "every": 3}),
    ] {
        let read = RuleListSource::parse_rules(&text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), text);
        assert_eq!(serde_json::from_value::<RuleListSource>(text).unwrap(), read);
    }
}
