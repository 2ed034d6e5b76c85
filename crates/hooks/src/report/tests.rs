//! Tables of runs of hooks and their reports.

use std::time::Duration;

use windlass_engine::ActionRequest;
use windlass_process::CapturedOutput;

use super::*;
use crate::{HookScript, PipeOutput, RunnableKind};

use HookOutcome::{Block, Cancelled, Continue, Escalate, Failure, Skip, Success, TimedOut};
use HookRole::{Observer, Pipeline, Stop};

const SILENT: &str = "`tests` says without a reason that the work is not done.";
const WANTED: &str = "`tests` asks for a person without a reason.";
const ROLES: [HookRole; 3] = [Stop, Pipeline, Observer];

fn hook(pipes: bool) -> RunnableHook {
    let timeout = Duration::from_secs(30);
    let kind = RunnableKind::Command(HookScript::parse("make test").expect("it names nothing"));
    RunnableHook {
        name: "tests".to_owned(),
        kind,
        timeout,
        pipes: Some(PipeOutput::from_flag(pipes)),
        max_output: 400,
        retry: None,
        feedback: None,
    }
}

fn ran(exit: ProgramExit, stdout: &str, stderr: &str) -> Result<ProgramOutcome, ProgramStartError> {
    let captured = |text: &str| CapturedOutput {
        head: text.as_bytes().to_vec(),
        total: text.len() as u64,
        ..CapturedOutput::default()
    };
    let (stdout, stderr) = (captured(stdout), captured(stderr));
    Ok(ProgramOutcome { exit, stdout, stderr, leaky: false, took: Duration::from_millis(7) })
}

/// Builds the report of a hook that runs without a subject.
fn answer(hook: &RunnableHook, role: HookRole, ran: &Result<ProgramOutcome, ProgramStartError>) -> HookReport {
    build_report(hook, role, ran, &windlass_engine::EventContext::empty_values())
}

/// An outcome, the message for people, the feedback for the agent; an empty text is none.
type Told<'t> = (HookOutcome, &'t str, &'t str);

#[track_caller]
fn check(role: HookRole, pipes: bool, run: (ProgramExit, &str, &str), expected: Told<'_>) {
    let report = answer(&hook(pipes), role, &ran(run.0, run.1, run.2));
    let (message, feedback) = (report.message.unwrap_or_default(), report.feedback.unwrap_or_default());
    assert_eq!((report.outcome, message.as_str(), feedback.as_str()), expected, "{role:?} {pipes} {run:?}");
    assert_eq!(report.took, Some(Duration::from_millis(7)));
}

/// Checks a run with stderr `err` at each role, with its output piped and not.
#[track_caller]
fn everywhere(exit: ProgramExit, stdout: &str, quiet: [Told<'_>; 3], piped: [Told<'_>; 3]) {
    for (pipes, expected) in [(false, quiet), (true, piped)] {
        for (role, expected) in ROLES.into_iter().zip(expected) {
            check(role, pipes, (exit, stdout, "err\n"), expected);
        }
    }
}

#[test]
fn hook_without_response_gets_outcome_from_program_exit() {
    let same = |told| [told; 3];
    everywhere(ProgramExit::Code(0), "out\n", same((Success, "", "")), same((Success, "", "out\nerr")));
    everywhere(ProgramExit::Code(0), "[1]", same((Success, "", "")), same((Success, "", "[1]\nerr")));
    let (block, failed) = ((Block, "", "err\n\nout"), (Failure, "exit 2", "out\nerr\n[exit 2]"));
    everywhere(ProgramExit::Code(2), "out\n", [block, block, (Failure, "exit 2", "")], [block, block, failed]);
    for (exit, why) in [
        (ProgramExit::Code(1), "exit 1"),
        (ProgramExit::Code(3), "exit 3"),
        (ProgramExit::Code(127), "exit 127"),
        (ProgramExit::Signal(9), "ended by signal 9"),
        (ProgramExit::Lost, "it was lost with its supervisor"),
    ] {
        let told = format!("out\nerr\n[{why}]");
        let told = (Failure, why, told.as_str());
        everywhere(exit, "out\n", [told, told, (Failure, why, "")], [told; 3]);
    }
    let late = (TimedOut, "timed out after 30 s", "out\nerr\n[timed out after 30 s]");
    everywhere(ProgramExit::TimedOut, "out\n", [late, late, (TimedOut, "timed out after 30 s", "")], [late; 3]);
    everywhere(ProgramExit::Cancelled, "out\n", same((Cancelled, "", "")), same((Cancelled, "", "")));
    let json = r#"{"decision": "block", "reason": "no", "actions": [{"type": "log"}]}"#;
    let told = format!("{json}\nerr\n[exit 1]");
    let told = (Failure, "exit 1", told.as_str());
    everywhere(ProgramExit::Code(1), json, [told, told, (Failure, "exit 1", "")], [told; 3]);
}

#[test]
fn responses_map_to_outcomes_as_in_table() {
    let same = |told| [told; 3];
    let yes: &[(&str, HookOutcome, &str, &str)] = &[
        ("{}", Success, "", "err"),
        (r#"{"continue": true}"#, Success, "", "err"),
        (r#"{"status": "success", "message": "made a change"}"#, Success, "made a change", "made a change\nerr"),
        (r#"{"status": "skip", "message": "no tests"}"#, Skip, "no tests", "no tests\nerr"),
        (r#"{"action": "complete", "reason": "all pass"}"#, Success, "all pass", "all pass\nerr"),
        (r#"{"decision": "allow", "reason": "fine"}"#, Success, "fine", "fine\nerr"),
        (r#"{"decision": "approve"}"#, Success, "", "err"),
        (r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#, Success, "", "err"),
        (r#"{"hookSpecificOutput": {"additionalContext": "it is June"}}"#, Success, "", "it is June\nerr"),
        (r#"{"systemMessage": "slow today"}"#, Success, "slow today", "err"),
        (r#"{"message": "m", "suppressOutput": true}"#, Success, "m", "err"),
        (
            r#"{"message": "m", "suppress_output": true, "hookSpecificOutput": {"additionalContext": "c"}}"#,
            Success,
            "m",
            "c\nerr",
        ),
        (r#"{"decison": "block"}"#, Success, "its answer has unknown fields: `decison`", "err"),
    ];
    for &(stdout, outcome, message, told) in yes {
        everywhere(ProgramExit::Code(0), stdout, same((outcome, message, "")), same((outcome, message, told)));
    }
    let go_on = r#"{"action": "continue", "reason": "2 left", "nextPrompt": "do the rest"}"#;
    let (stop, pipeline) = ((Continue, "", "do the rest"), (Block, "", "do the rest"));
    let told = (Success, "2 left", "2 left\n\ndo the rest\nerr");
    everywhere(ProgramExit::Code(0), go_on, [stop, pipeline, (Success, "2 left", "")], [stop, pipeline, told]);
    let bare = r#"{"action": "continue"}"#;
    let (stop, pipeline) = ((Continue, "", SILENT), (Block, "", SILENT));
    everywhere(ProgramExit::Code(0), bare, [stop, pipeline, (Success, "", "")], [stop, pipeline, (Success, "", "err")]);
}

#[test]
fn blocking_response_stops_gates_and_fails_elsewhere() {
    // The response; the message and the feedback at a gate; the message at an observer, and its feedback if output is piped.
    for (stdout, for_people, told, why, piped) in [
        (r#"{"decision": "block", "reason": "red"}"#, "", "red", "red", "red\nerr"),
        (r#"{"decision": "deny", "reason": "red"}"#, "", "red", "red", "red\nerr"),
        (r#"{"decision": "block"}"#, "", SILENT, "", "err"),
        (r#"{"decision": "block", "message": "red"}"#, "red", "red", "red", "red\nerr"),
        (r#"{"status": "failure", "message": "red"}"#, "red", "red", "red", "red\nerr"),
        (
            r#"{"status": "failure", "message": "red", "remediation_prompt": "mend"}"#,
            "red",
            "mend",
            "mend",
            "red\n\nmend\nerr",
        ),
        (
            r#"{"decision": "block", "reason": "red", "hookSpecificOutput": {"additionalContext": "see log"}}"#,
            "",
            "red\n\nsee log",
            "red",
            "red\n\nsee log\nerr",
        ),
        (
            r#"{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no rm"}}"#,
            "",
            "no rm",
            "no rm",
            "no rm\nerr",
        ),
        (
            r#"{"status": "failure", "message": "a", "decision": "block", "reason": "b", "suppressOutput": true}"#,
            "a",
            "a\n\nb",
            "a\n\nb",
            "err",
        ),
        (r#"{"action": "continue", "decision": "block", "reason": "red"}"#, "", "red", "red", "red\nerr"),
        (r#"{"decision": "block", "reason": "red", "systemMessage": "psst"}"#, "psst", "red", "red; psst", "red\nerr"),
    ] {
        let gate = (Block, for_people, told);
        everywhere(ProgramExit::Code(0), stdout, [gate, gate, (Failure, why, "")], [gate, gate, (Failure, why, piped)]);
    }
    let silent = "`tests` asks for a person without a reason";
    for (stdout, message, told, piped) in [
        (r#"{"action": "escalate", "reason": "stuck"}"#, "stuck", "stuck", "stuck\nerr"),
        (r#"{"action": "escalate"}"#, silent, WANTED, "err"),
        (r#"{"continue": false, "stopReason": "budget"}"#, "budget", "budget", "budget\nerr"),
        (r#"{"continue": false}"#, silent, WANTED, "err"),
        (r#"{"continue": false, "decision": "block", "reason": "red"}"#, "red", "red", "red\nerr"),
        (r#"{"continue": false, "decision": "approve", "stop_reason": "late"}"#, "late", "late", "late\nerr"),
        (
            r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}"#,
            "sure?",
            "sure?",
            "sure?\nerr",
        ),
    ] {
        let (gate, observer) = ((Escalate, message, told), (Escalate, message, ""));
        everywhere(ProgramExit::Code(0), stdout, [gate, gate, observer], [gate, gate, (Escalate, message, piped)]);
    }
}

#[test]
fn strictest_of_several_verdicts_counts() {
    for (stdout, outcome) in [
        (r#"{"action": "continue", "decision": "block", "reason": "red"}"#, Block),
        (r#"{"status": "failure", "message": "red", "action": "escalate"}"#, Escalate),
        (r#"{"decision": "block", "reason": "red", "continue": false}"#, Escalate),
    ] {
        let report = answer(&hook(false), Stop, &ran(ProgramExit::Code(0), stdout, ""));
        assert_eq!(report.outcome, outcome, "{stdout}: {report:?}");
    }
}

#[test]
fn exit_2_blocks_despite_any_response() {
    let although = |what: &str| format!("exit 2 blocks, although its answer says {what}");
    for (stdout, message, told) in [
        (r#"{"decision": "block", "reason": "red"}"#, String::new(), "err\n\nred"),
        (r#"{"status": "failure", "message": "a", "remediation_prompt": "b"}"#, "a".to_owned(), "err\n\na\n\nb"),
        (r#"{"decision": "allow", "reason": "fine"}"#, although("that the hook passes"), "err\n\nfine"),
        (r#"{"status": "skip"}"#, although("that it was skipped"), "err"),
        (r#"{"action": "escalate", "reason": "r"}"#, although("that a person is needed"), "err\n\nr"),
        (r#"{"action": "continue", "nextPrompt": "n"}"#, String::new(), "err\n\nn"),
        ("{}", String::new(), "err"),
        (r#"{"systemMessage": "psst"}"#, "psst".to_owned(), "err"),
        (r#"{"context": {"failing": 3}}"#, String::new(), "err\n\n{\"context\": {\"failing\": 3}}"),
        (
            r#"{"reason": "r", "errors": ["e"]}"#,
            "its answer has unknown fields: `errors`".to_owned(),
            "err\n\n{\"reason\": \"r\", \"errors\": [\"e\"]}",
        ),
        (
            r#"{"decision": 1}"#,
            "bad answer: `decision`: invalid type: integer `1`, expected string or map".to_owned(),
            "err\n\n{\"decision\": 1}",
        ),
    ] {
        let (gate, observer) = ((Block, message.as_str(), told), (Failure, "exit 2", ""));
        let piped = format!("{stdout}\nerr\n[exit 2]");
        everywhere(ProgramExit::Code(2), stdout, [gate, gate, observer], [gate, gate, (Failure, "exit 2", &piped)]);
    }
    check(Stop, false, (ProgramExit::Code(2), " \n", ""), (Block, "", SILENT));
    check(Pipeline, false, (ProgramExit::Code(2), "", ""), (Block, "", SILENT));
    check(Stop, false, (ProgramExit::Code(2), "out", ""), (Block, "", "out"));
    check(Stop, false, (ProgramExit::Code(2), "{\"decision\": \"block\"}", ""), (Block, "", SILENT));
}

#[test]
fn uninterpretable_response_is_failure() {
    for (stdout, why) in [
        (
            r#"{"decision": "maybe"}"#,
            "`decision`: unknown variant `maybe`, expected one of `allow`, `approve`, `block`, `deny`",
        ),
        (r#"{"actions": {}}"#, "`actions`: invalid type: map, expected a sequence"),
        (
            r#"{"status": "failure", "decision": "allow"}"#,
            "`decision` \"allow\" and `status` \"failure\" contradict each other; say one of them",
        ),
    ] {
        let message = format!("bad answer: {why}");
        let told = format!("{stdout}\nerr\n[{message}]");
        let (gate, observer) = ((Failure, message.as_str(), told.as_str()), (Failure, message.as_str(), ""));
        everywhere(ProgramExit::Code(0), stdout, [gate, gate, observer], [gate; 3]);
    }
    let near = "its output looks like JSON but is not: trailing comma at line 1 column 19";
    let stdout = "{\"decision\": \"no\",}";
    let (told, failed) = (format!("{stdout}\nerr"), format!("{stdout}\nerr\n[{near}]"));
    let gate = (Failure, near, failed.as_str());
    let piped = [gate, gate, (Success, near, told.as_str())];
    everywhere(ProgramExit::Code(0), stdout, [gate, gate, (Success, near, "")], piped);
    everywhere(ProgramExit::Code(0), "{ echo; ", [(Success, "", ""); 3], [(Success, "", "{ echo;\nerr"); 3]);
}

#[test]
fn actions_come_with_exit_0_only() {
    let stdout = r#"{"decision": "block", "reason": "r", "actions": [
        {"type": "log", "payload": {"message": "hi"}}, {"type": "create_task"}]}"#;
    let asked = [("log", serde_json::json!({"message": "hi"})), ("create_task", serde_json::json!({}))];
    let asked = asked.map(|(kind, payload)| ActionRequest { kind: kind.to_owned(), payload });
    for role in ROLES {
        for (exit, expected) in [(0, asked.as_slice()), (1, &[]), (2, &[])] {
            let report = answer(&hook(false), role, &ran(ProgramExit::Code(exit), stdout, ""));
            assert_eq!(report.actions, expected, "{role:?} {exit}");
        }
        let bad = stdout.replace("\"block\"", "\"maybe\"");
        assert!(answer(&hook(false), role, &ran(ProgramExit::Code(0), &bad, "")).actions.is_empty());
    }
}

#[test]
fn only_hooks_of_the_pipeline_open_a_change() {
    let ran = ran(ProgramExit::Code(0), r#"{"status": "success", "context": {"pr_url": "http://x/1"}}"#, "");
    let opens = ROLES.map(|role| answer(&hook(false), role, &ran).change.is_some());
    assert_eq!(opens, [false, true, false]);
}

#[test]
fn report_texts_are_clean_and_within_bounds() {
    let dirty = r#"{"decision": "block", "reason": "\u001b[31mred\u0000\u001b[0m\r\n", "systemMessage": "a\u0000b"}"#;
    check(Stop, false, (ProgramExit::Code(0), dirty, ""), (Block, "ab", "red"));
    let long = "x\n".repeat(60_000);
    let stdout = serde_json::json!({"action": "escalate", "reason": long, "systemMessage": long}).to_string();
    let wide = RunnableHook { max_output: usize::MAX, ..hook(false) };
    let report = answer(&wide, Stop, &ran(ProgramExit::Code(0), &stdout, ""));
    assert!(report.message.is_some_and(|message| message.len() <= EngineLimits::REASON_BYTES));
    assert!(report.feedback.is_some_and(|feedback| feedback.len() > EngineLimits::REASON_BYTES));
    let huge = "y".repeat(300 * 1024);
    let report = answer(&wide, Stop, &ran(ProgramExit::Code(1), &huge, &huge));
    assert!(report.feedback.is_some_and(|feedback| feedback.len() <= EngineLimits::FEEDBACK_BYTES));
    let long = format!("\x1b[31mfirst\x1b[0m\n{}last\n", "x\0\n".repeat(400));
    let feedback = answer(&hook(true), Observer, &ran(ProgramExit::Code(0), &long, "")).feedback.expect("it is piped");
    assert!(feedback.len() <= 400 && feedback.starts_with("first\nx\n") && feedback.ends_with("last"), "{feedback}");
    assert!(feedback.contains("bytes left out]"), "{feedback}");
    let unknown = (0..20).map(|number| format!("\"a{number:02}\": 1")).collect::<Vec<_>>().join(", ");
    let report = answer(&hook(false), Stop, &ran(ProgramExit::Code(0), &format!("{{{unknown}}}"), ""));
    assert!(report.message.is_some_and(|message| message.ends_with("`a07` and 12 more")));
}

#[test]
fn report_names_start_failures_and_leftover_processes() {
    let missing = Err(ProgramStartError::NotFound { program: "nope".into() });
    for (role, told) in [(Stop, Some("[cannot find the program nope]")), (Observer, None)] {
        let report = answer(&hook(false), role, &missing);
        assert_eq!((report.outcome, report.took), (Failure, None));
        assert_eq!(report.message.as_deref(), Some("cannot find the program nope"));
        assert_eq!(report.feedback.as_deref(), told);
    }
    let leaky = |exit| ran(exit, "", "").map(|finished| ProgramOutcome { leaky: true, ..finished });
    let message = |exit| answer(&hook(false), Stop, &leaky(exit)).message;
    assert_eq!(
        message(ProgramExit::Code(0)).as_deref(),
        Some("it left processes behind; Windlass ended those that it could")
    );
    assert_eq!(
        message(ProgramExit::Code(1)).as_deref(),
        Some("exit 1; it left processes behind; Windlass ended those that it could")
    );
}

#[test]
fn feedback_template_words_agent_text() {
    let template =
        |text: &str| Some(TextTemplate::parse(text, &windlass_expr::ExpressionNames::for_feedback()).unwrap());
    let told = |text: &str, exit, stdout: &str| {
        let hook = RunnableHook { feedback: template(text), ..hook(false) };
        answer(&hook, Stop, &ran(exit, stdout, "two tests fail"))
    };
    let block = told("{{ hook }}{{ exit }}: {{ stderr }} ({{ retry }})", ProgramExit::Code(2), "");
    assert_eq!(block.feedback.as_deref(), Some("exit 2: two tests fail (1)"));
    let said = told("Mend this: {{ reason }}", ProgramExit::Code(0), r#"{"decision": "block", "reason": "red"}"#);
    assert_eq!(said.feedback.as_deref(), Some("Mend this: red"));
    let nothing = told("never", ProgramExit::Code(0), "fine");
    assert_eq!(nothing.feedback, None, "where nothing is told, nothing is worded");
}

/// The fingerprint covers what the hook wrote, before a template words it and before it is cut.
#[test]
fn output_fingerprint_ignores_template_and_cut() {
    let template =
        |text: &str| Some(TextTemplate::parse(text, &windlass_expr::ExpressionNames::for_feedback()).unwrap());
    let own = |text: Option<&str>, stdout: &str| {
        let hook = RunnableHook { feedback: text.and_then(template), ..hook(false) };
        answer(&hook, Stop, &ran(ProgramExit::Code(2), stdout, "Tests failed")).own
    };
    assert_eq!(own(None, "4 failing"), None, "the agent is told all of it");
    let fixed = Some("Fix the tests.");
    assert!(own(fixed, "4 failing").is_some());
    assert_eq!(own(fixed, "4 failing"), own(Some("Attempt {{ retry }}."), "4 failing"));
    let exact = |stdout: &str| own(fixed, stdout).map(|own| own.exact);
    assert_ne!(exact("4 failing"), exact("3 failing"));
    let loose = |stdout: &str| own(fixed, stdout).map(|own| own.loose);
    assert_eq!(loose("4 failing"), loose("3 failing"));
    let long = |middle: &str| format!("{0}{middle}\n{0}", "dull\n".repeat(500));
    assert_eq!(own(None, &long("one")), own(None, &long("one")));
    assert_ne!(own(None, &long("one")), own(None, &long("two")), "where it is cut");
    let report = HookReport { feedback: Some(long("one")), ..Block.into() };
    assert_eq!(bound_report(report, &hook(false)).own, Some(Box::new(OutputFingerprint::from_text(&long("one")))));
}

#[test]
fn output_piped_on_failure_is_told_only_then() {
    let linter = RunnableHook { pipes: Some(PipeOutput::OnFailure), ..hook(false) };
    let told = |role, exit, stdout| answer(&linter, role, &ran(exit, stdout, "")).feedback;
    for role in ROLES {
        assert_eq!(told(role, ProgramExit::Code(0), "all good\n"), None, "{role:?}");
        let red = told(role, ProgramExit::Code(1), "1 warning\n").unwrap_or_default();
        assert!(red.starts_with("1 warning"), "{role:?}: {red}");
    }
    assert!(told(Observer, ProgramExit::Code(2), "1 warning\n").is_some());
}
