//! Tests of the language by example: values, refusals, hostile input.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::bounds::{MAX_EXPRESSION_TOKENS, MAX_OUTPUT_BYTES, MAX_TEMPLATE_STATEMENTS, MAX_TEXT_BYTES};
use crate::*;

pub(crate) fn sample_context() -> Value {
    json!({
        "point": "stop",
        "session": "main",
        "iteration": 3,
        "retries": 0,
        "goal": "mend <it> & \"that\"",
        "error": "",
        "output": "line one\nline two",
        "promise": "COMPLETE",
        "task": {"id": "T1", "labels": ["agent", "ui"], "priority": 0, "deliverables": []},
        "event": {"type": "turn_finished", "data": {"exit": 1, "files": [{"path": "a.rs", "lines": 3}], "big": u64::MAX}},
        "tool_input": {"command": "rm -rf /"},
        "reason": "no",
        "exit": 1.5,
    })
}

fn check_condition(text: &str, holds: bool) {
    let condition =
        Condition::parse(text, &ExpressionNames::for_hook()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(condition.is_satisfied(&sample_context()), Ok(holds), "{text}");
}

fn check_template(text: &str, rendered: &str) {
    let template =
        TextTemplate::parse(text, &ExpressionNames::for_feedback()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(template.render(&sample_context()).as_deref(), Ok(rendered), "{text}");
}

/// Returns the message, the marked part of the text, and the suggestion.
fn describe_refusal(error: ExpressionError, text: &str) -> String {
    let ExpressionError { message, at, suggestion } = error;
    let marked = at.map(|at| format!(" at `{}`", &text[at])).unwrap_or_default();
    message + &marked + &suggestion.map(|suggestion| format!("; {suggestion}")).unwrap_or_default()
}

fn check_refused(text: &str, expected: &str) {
    let error = Condition::parse(text, &ExpressionNames::for_hook()).expect_err(text);
    assert_eq!(describe_refusal(error, text), expected, "{text}");
}

fn check_template_refused(text: &str, expected: &str) {
    let error = TextTemplate::parse(text, &ExpressionNames::for_hook()).expect_err(text);
    assert_eq!(describe_refusal(error, text), expected, "{text}");
}

/// Returns why the evaluation of a valid condition fails.
fn evaluation_failure(text: &str) -> String {
    let condition =
        Condition::parse(text, &ExpressionNames::for_hook()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    condition.is_satisfied(&sample_context()).expect_err(text).reason
}

fn render_failure(text: &str) -> String {
    let template =
        TextTemplate::parse(text, &ExpressionNames::for_hook()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    template.render(&sample_context()).expect_err(text).reason
}

#[test]
fn conditions_hold_or_do_not() {
    check_condition("'agent' in task.labels and iteration > 2", true);
    check_condition("'docs' in task.labels or iteration > 3", false);
    check_condition("'docs' not in task.labels", true);
    check_condition("not error", true);
    check_condition("output", true);
    check_condition("retries", false);
    check_condition("task.deliverables", false);
    check_condition("task.priority == 0", true);
    check_condition("task['labels'][1] == 'ui'", true);
    check_condition("task.labels[-1] == 'ui'", true);
    check_condition("task.labels[:1] == ['agent']", true);
    check_condition("1 < iteration < 5", true);
    check_condition("iteration % 2 == 1", true);
    check_condition("iteration * 2 + 1 == 7", true);
    check_condition("iteration is odd", true);
    check_condition("promise == 'COMPLETE'", true);
    check_condition("event.data.exit == 1 and event.data.files[0].path == 'a.rs'", true);
    check_condition("event.data.missing is defined", false);
    check_condition("event.data.missing | default(false)", false);
    check_condition("event.data.big == 18446744073709551615", true);
    check_condition("tool_input.command is startingwith 'rm'", true);
    check_condition("event.data.files | map(attribute='lines') | max == 3", true);
    check_condition("event.data.files | selectattr('lines', 'gt', 2) | list | length == 1", true);
    check_condition("task.labels | map('upper') | first == 'AGENT'", true);
    check_condition("output | lines | length == 2", true);
    check_condition("true if iteration else false", true);
}

#[test]
fn templates_become_texts() {
    check_template("", "");
    check_template("no names at all", "no names at all");
    check_template("{{ goal }}", "mend <it> & \"that\"");
    check_template("exit {{ exit }}: {{ reason }}", "exit 1.5: no");
    check_template("{{ task.labels | join(', ') }}", "agent, ui");
    check_template("{{ task.labels }}", "['agent', 'ui']");
    check_template("{% if iteration > 2 %}late{% else %}early{% endif %}", "late");
    check_template("{% for l in task.labels %}{{ loop.index }}={{ l }} {% endfor %}", "1=agent 2=ui ");
    check_template("{% for d in task.deliverables %}x{% else %}none{% endfor %}", "none");
    check_template("{% for i in range(3) %}{{ i }}{% endfor %}", "012");
    check_template("{% for i in range(2, 4) %}{{ i }}{% endfor %}{{ range(3, 1) | length }}", "230");
    check_template("{% for f in event.data.files %}{{ f.path }}:{{ f['lines'] }}{% endfor %}", "a.rs:3");
    check_template("{# hidden #}{% raw %}{{ shown }}{% endraw %}", "{{ shown }}");
    check_template("{{ output | indent(2) }}", "line one\n  line two");
    check_template("{{ output | replace('line', 'row') | upper }}", "ROW ONE\nROW TWO");
    check_template("{{ tool_input | tojson }}", r#"{"command": "rm -rf /"}"#);
    check_template("{{ event.data.missing | default('-') }}", "-");
    check_template("{{ task.labels | string }}", "['agent', 'ui']");
}

#[test]
fn unknown_name_is_refused_at_parse_time_with_suggestion() {
    check_refused("iteraton > 2", "unknown name `iteraton` at `iteraton`; did you mean `iteration`?");
    check_refused("1 + task.lables", "unknown name `task.lables` at `task.lables`; did you mean `task.labels`?");
    check_refused("'a' in labels", "unknown name `labels` at `labels`; did you mean `task.labels`?");
    check_refused("task['lables']", "unknown name `task.lables` at `task['lables']`; did you mean `task.labels`?");
    check_refused(
        "event.data.x and event.kind",
        "unknown name `event.kind` at `event.kind`; known here: `event.type`, `event.node_id`, `event.nodeId`, `event.timestamp`, `event.session`, `event.iteration`, `event.data`, `event.triggered_by`, `event.triggeredBy`, `event.depth`, `event.metadata`",
    );
    check_refused(
        "task.labels.first",
        "unknown name `task.labels.first` at `task.labels.first`; `task.labels` has no fields here",
    );
    check_refused("iteration.x.y", "unknown name `iteration.x` at `iteration.x`; `iteration` has no fields here");
    check_refused(
        "nope[1:2]",
        "unknown name `nope` at `nope`; known here: `point`, `hook`, `session`, `iteration`, `retries`, `goal`, `error`, `output`, `prompt`, `promise`, `agent`, `conversation`, `task_id`, `taskId`, `task_content`, `task`, `task_title`, `task_path`, `task_type`, `branch_name`, `base_branch`, `worktree`, `agent_name`, `commits_count`, `extra`, `event`, `tool_name`, `tool_input`, `tool_response`, `project_dir`",
    );
    check_refused("task[gaol]", "unknown name `gaol` at `gaol`; did you mean `goal`?");
    check_refused("output | default(erorr)", "unknown name `erorr` at `erorr`; did you mean `error`?");
    check_refused(
        "validationResults",
        "unknown name `validationResults` at `validationResults`; known here: `point`, `hook`, `session`, `iteration`, `retries`, `goal`, `error`, `output`, `prompt`, `promise`, `agent`, `conversation`, `task_id`, `taskId`, `task_content`, `task`, `task_title`, `task_path`, `task_type`, `branch_name`, `base_branch`, `worktree`, `agent_name`, `commits_count`, `extra`, `event`, `tool_name`, `tool_input`, `tool_response`, `project_dir`",
    );
    check_template_refused("{{ goal }} {{ taks.goal }}", "unknown name `taks` at `taks`; did you mean `task`?");
    check_template_refused(
        "{% for x in task.labels %}{% endfor %}{{ x }}",
        "unknown name `x` at `x`; known here: `point`, `hook`, `session`, `iteration`, `retries`, `goal`, `error`, `output`, `prompt`, `promise`, `agent`, `conversation`, `task_id`, `taskId`, `task_content`, `task`, `task_title`, `task_path`, `task_type`, `branch_name`, `base_branch`, `worktree`, `agent_name`, `commits_count`, `extra`, `event`, `tool_name`, `tool_input`, `tool_response`, `project_dir`",
    );
    check_template_refused(
        "{% for x in [1] %}{{ loop.idnex }}{% endfor %}",
        "unknown name `loop.idnex` at `loop.idnex`; did you mean `loop.index`?",
    );
}

#[test]
fn known_names_differ_by_place() {
    Condition::parse("filesModified and validationResults[0].passed and draftType", &ExpressionNames::for_rules())
        .unwrap();
    TextTemplate::parse(
        "{{ stdout }}{{ stderr }}{{ retry }}/{{ max_retries }}{{ reason }}",
        &ExpressionNames::for_feedback(),
    )
    .unwrap();
    Condition::parse("stdout", &ExpressionNames::for_hook()).unwrap_err();
    Condition::parse("stdout", &ExpressionNames::for_rules()).unwrap_err();
    assert!(ExpressionNames::for_rules().root_names().any(|name| name == "agentOutput"));
}

#[test]
fn unknown_filters_tests_and_functions_are_found_when_read() {
    check_refused("goal | uper", "unknown filter `uper` at `uper`; did you mean `upper`?");
    check_refused("iteration is od", "unknown test `od` at `od`; did you mean `odd`?");
    let filters = "write a filter, as in `task.labels | length`; docs/reference/expressions.md lists them";
    check_refused("rnge(3)", &format!("unknown function `rnge` at `rnge`; the only function is `range`; {filters}"));
    check_refused("goal.upper()", &format!("values have no methods: `upper` at `.upper()`; {filters}"));
    check_refused("(goal)()", &format!("unknown function `goal` at `goal`; the only function is `range`; {filters}"));
    check_refused("task.labels | map('uper')", "unknown filter `uper` at `'uper'`; did you mean `upper`?");
    check_refused("task.labels | map(goal)", "the name of the filter must be written out at `map(goal)`");
    check_refused("task.labels | select('od')", "unknown test `od` at `'od'`; did you mean `odd`?");
    check_refused("tool_input.x | selectattr('a', 'qe')", "unknown test `qe` at `'qe'`; did you mean `eq`?");
    check_refused("range(*task.labels)", "arguments are written one by one at `range(*task.labels)`");
}

#[test]
fn unsupported_syntax_is_refused_with_hint() {
    check_refused("", "an expression must not be empty");
    check_refused(" \n", "an expression must not be empty");
    check_refused("{{ iteration > 2 }}", "an expression is written without braces; write it as in `iteration > 2`");
    check_refused(
        "goal ~ goal",
        "`~` is not part of the language at `goal ~ goal`; in a template, write the two one after the other",
    );
    check_refused("goal[::-1]", "a slice has no step at `-1`");
    let hint =
        "write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language";
    for (text, expected) in [
        ("iteration >", "unexpected end of input, expected expression at `>`"),
        ("iteration = 3", "unexpected input after expression at `=`"),
        ("error ? 1 : 2", "unexpected character at `?`"),
        ("!error || task?.id", "unexpected character at `?`"),
        ("error ===", "unexpected end of input, expected expression at `===`"),
        ("iteration > 2 and (", "unexpected end of input, expected expression at `(`"),
        ("goal == 'x'$", "unexpected character at `$`"),
        ("goal == 'x''open", "unexpected end of string"),
        ("'open", "unexpected end of string"),
    ] {
        check_refused(text, &format!("{expected}; {hint}"));
    }
    check_template_refused(
        "{{ goal",
        &format!("unexpected end of input, expected end of variable block at `goal`; {hint}"),
    );
    check_template_refused(
        "{% if iteration %}x",
        &format!("unexpected end of input, expected end of block at `x`; {hint}"),
    );
    let known = "known here: `if`, `for`";
    check_template_refused("{% include 'a' %}", &format!("unknown statement include at `include`; {hint}"));
    check_template_refused("{% import 'a' as a %}", &format!("unknown statement import at `import`; {hint}"));
    check_template_refused("{% extends 'a' %}", &format!("unknown statement extends at `extends`; {hint}"));
    check_template_refused("{% macro a() %}{% endmacro %}", &format!("unknown statement macro at `macro`; {hint}"));
    check_template_refused("{% set a = 1 %}", &format!("`set` is not part of the language at `set`; {known}"));
    check_template_refused(
        "{% with a = 1 %}{% endwith %}",
        &format!("`with` is not part of the language at `with`; {known}"),
    );
    check_template_refused(
        "{% filter upper %}{% endfilter %}",
        &format!("`filter` is not part of the language at `filter`; {known}"),
    );
    check_template_refused(
        "{% autoescape true %}{% endautoescape %}",
        &format!("`autoescape` is not part of the language at `autoescape`; {known}"),
    );
    check_template_refused("{% do range(3) %}", &format!("`do` is not part of the language at `do`; {known}"));
}

#[test]
fn undefined_values_are_faults() {
    let undefined = "undefined value";
    assert!(evaluation_failure("event.data.missing").contains("undefined"));
    assert!(
        evaluation_failure("event.data.missing.deeper == 1").starts_with(undefined),
        "{}",
        evaluation_failure("event.data.missing.deeper")
    );
    assert!(evaluation_failure("not event.data.missing").starts_with(undefined));
    assert!(
        evaluation_failure("task_content == 'x' and agent").contains("undefined"),
        "known, but not in this context"
    );
    assert!(render_failure("{{ event.data.missing }}").starts_with(undefined));
    assert!(render_failure("{% for x in event.data.missing %}{% endfor %}").starts_with(undefined));
    let shown = Condition::parse("event.data.missing", &ExpressionNames::for_hook())
        .unwrap()
        .is_satisfied(&json!(null))
        .unwrap_err();
    assert!(shown.to_string().starts_with("cannot evaluate `event.data.missing`: "), "{shown}");
}

/// Without bounds, each of these texts would exhaust the stack, the memory or the time.
#[test]
fn hostile_text_is_refused_before_evaluation() {
    let too_long = "x".repeat(MAX_TEXT_BYTES + 1);
    check_refused(&too_long, "has 65537 bytes; at most 65536 are allowed");
    check_template_refused(&too_long, "has 65537 bytes; at most 65536 are allowed");
    TextTemplate::parse(&too_long[1..], &ExpressionNames::for_hook()).unwrap();
    TextTemplate::parse(&"\n".repeat(MAX_TEXT_BYTES), &ExpressionNames::for_hook()).unwrap();

    let many = |part: &str| part.repeat((MAX_TEXT_BYTES - 32) / part.len());
    let bombs = [
        format!("1{}", many("+1")),
        format!("iteration{}", many(".a")),
        format!("goal{}", many("|trim")),
        format!("goal{}", many("[0]")),
        format!("range{}", many("()")),
        format!("1{}", many(" or 1")),
        format!("1{}", many(" if 1 else 1")),
        format!("1{}", many(" is odd")),
        many("("),
        many("["),
        many("{1:"),
        many("-"),
        many("not "),
        many("goal("),
    ];
    for bomb in bombs {
        let error = Condition::parse(&bomb, &ExpressionNames::for_hook()).expect_err("a bomb");
        assert!(error.message.starts_with("too intricate: an expression has at most"), "{error}");
        TextTemplate::parse(&format!("{{{{ {bomb} }}}}"), &ExpressionNames::for_hook()).unwrap_err();
        TextTemplate::parse(&format!("{{% if {bomb} %}}{{% endif %}}"), &ExpressionNames::for_hook()).unwrap_err();
    }
    let bombs = ["{% if 1 %}", "{% if 1 %}{% elif 1 %}", "{% for x in [1] %}"];
    for bomb in bombs.map(many).into_iter().chain([format!("{{% if 1 %}}{}", many("{% elif 1 %}"))]) {
        let error = TextTemplate::parse(&bomb[..bomb.len().min(MAX_TEXT_BYTES)], &ExpressionNames::for_hook())
            .expect_err("a bomb");
        assert_eq!(
            error.message,
            format!("too intricate: a template has at most {MAX_TEMPLATE_STATEMENTS} statements")
        );
    }
}

/// The largest allowed expressions compile and evaluate on a small stack.
#[test]
fn largest_allowed_expressions_evaluate_on_small_stack() {
    for largest in
        ["1{+1}", "goal{|trim}", "{-}1", "{not }1", "{(}1{)}", "{[}1{]}", "1{ or 1}", "1{ if 1 else 1}", "goal{[0]}"]
    {
        let mut text = largest.to_owned();
        while let Some((before, rest)) = text.split_once('{') {
            let (part, after) = rest.split_once('}').unwrap();
            let tokens = match part {
                "-" | "(" | ")" | "[" | "]" | "not " => 1,
                " if 1 else 1" => 4,
                _ => 2,
            };
            text = [before, &part.repeat((MAX_EXPRESSION_TOKENS - 1) / tokens), after].concat();
        }
        for text in [text.clone(), text.replace("1", "iteration")] {
            if let Ok(condition) = Condition::parse(&text, &ExpressionNames::for_hook()) {
                let _ = condition.is_satisfied(&sample_context());
            }
        }
    }
    let elifs = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(MAX_TEMPLATE_STATEMENTS - 2));
    TextTemplate::parse(&elifs, &ExpressionNames::for_hook()).unwrap().render(&sample_context()).unwrap();
}

#[test]
fn evaluation_is_bounded() {
    let nested = "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}";
    assert_eq!(render_failure(nested), "it takes too many steps");
    assert_eq!(evaluation_failure("range(1000000000)"), "a range has at most 10000 elements");
    assert_eq!(
        evaluation_failure("range(-9223372036854775807, 9223372036854775807)"),
        "a range has at most 10000 elements"
    );
    let flood = format!("{{% for a in range(5000) %}}{}{{% endfor %}}", "x".repeat(100));
    assert_eq!(render_failure(&flood), format!("its result is longer than {MAX_OUTPUT_BYTES} bytes"));
    let most = format!("the result of a filter is longer than {MAX_OUTPUT_BYTES} bytes");
    assert_eq!(
        evaluation_failure("output|replace('', output)|replace('', output)|replace('', output)|replace('', output)"),
        most
    );
    assert_eq!(evaluation_failure("range(10000) | join(goal * 1000)"), most);
    assert_eq!(evaluation_failure("output | indent(1000000000)"), most);
    assert_eq!(evaluation_failure(&format!("goal{}", " | tojson".repeat(60))), most);
    check_condition(&format!("goal{} | length < 1000", " | string".repeat(60)), true);
    let lists = format!("{}goal{}", "[".repeat(60), "] | string".repeat(60));
    assert_eq!(evaluation_failure(&lists), most);
    check_refused("[1] * 1000000000", "one side of `*` must be a number, at most 1000 at `[1] * 1000000000`");
    check_refused(
        "task.labels * iteration",
        "one side of `*` must be a number, at most 1000 at `task.labels * iteration`",
    );
    check_refused("[1] * 1000 * 1000", "a product cannot be multiplied again at `[1] * 1000`");
}

/// Odd arguments of filters give errors or values, never panics.
#[test]
fn filters_survive_odd_arguments() {
    let texts = [
        "'12' | int(base=99)",
        "(0 - 9223372036854775807 - 1) | abs",
        "1.5 | round(2000000000)",
        "1.5 | round(-2000000000)",
        "10 ** 10000",
        "10 ** -1",
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "(0 - 9223372036854775807 - 1) // -1",
        "170141183460469231731687303715884105727 + 1",
        "-170141183460469231731687303715884105727 - 2",
        "goal[99999999999999999999]",
        "goal[-9223372036854775807:]",
        "goal[9223372036854775807:-9223372036854775807]",
        "task.labels[:-9223372036854775807]",
        "output | split('', -1)",
        "output | split(maxsplits=99)",
        "'é' | trim('é') | first",
        "[] | first",
        "[] | max",
        "[[], {}, 1, 'a', none] | sort",
        "[[], {}, 1, 'a', none] | unique | list",
        "{} | dictsort",
        "1 | items",
        "1 | join",
        "goal | join",
        "task is divisibleby(0)",
        "3 is divisibleby(0)",
        "1e308 * 1000",
        "1e400",
        "99999999999999999999999999999999999999999999999999",
        "'\\ud800'",
        "'\\x'",
        "goal in 1",
    ];
    for text in texts {
        evaluate_without_panic(text);
    }
}

fn evaluate_without_panic(text: &str) {
    if let Ok(condition) = Condition::parse(text, &ExpressionNames::for_hook()) {
        let _ = condition.is_satisfied(&sample_context());
    }
    if let Ok(template) = TextTemplate::parse(&format!("{{{{ {text} }}}}"), &ExpressionNames::for_hook()) {
        let _ = template.render(&sample_context());
    }
}

/// Generates expressions whose parts do not fit together.
pub(crate) fn hostile_expression() -> impl Strategy<Value = String> {
    let atoms = ["0", "-1", "1.5", "1e308", "9223372036854775807", "''", "'é\\n'", "none", "true", "[]", "{}"];
    let names =
        ["goal", "iteration", "task", "task.labels", "event.data", "event.data.missing", "tool_input['command']"];
    let leaf = select([&atoms[..], &names[..]].concat()).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = ["+", "-", "/", "//", "%", "**", "==", "<", "in", "not in", "and", "or", "* 3 +"];
        let (filters, tests) = (select(language::FILTERS), select(language::TESTS));
        prop_oneof![
            (inner.clone(), select(operators.to_vec()), inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), filters.clone()).prop_map(|(a, filter)| format!("({a} | {filter})")),
            (inner.clone(), filters, inner.clone()).prop_map(|(a, filter, b)| format!("({a} | {filter}({b}))")),
            (inner.clone(), tests, inner.clone()).prop_map(|(a, test, b)| format!("({a} is {test}({b}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a})[{b}:{c}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("range({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {{1: {b}}}]")),
            inner.prop_map(|a| format!("(not {a})")),
        ]
    })
}

proptest! {
    #[test]
    fn odd_expression_does_not_panic(text in hostile_expression()) {
        evaluate_without_panic(&text);
    }

    #[test]
    fn random_text_does_not_panic(text in "[-a-z0-9 '(){}\\[\\].,|%~+*/<>=#\"é\\n]{0,60}") {
        evaluate_without_panic(&text);
        let _ = TextTemplate::parse(&text, &ExpressionNames::for_hook());
    }
}

#[test]
fn everything_listed_is_part_of_the_language() {
    for filter in language::FILTERS {
        let text = format!("goal | {filter}");
        let reason = Condition::parse(&text, &ExpressionNames::for_hook())
            .unwrap()
            .is_satisfied(&sample_context())
            .err()
            .map(|fault| fault.reason);
        assert!(!reason.as_deref().unwrap_or_default().contains("unknown"), "{filter}: {reason:?}");
    }
    for test in language::TESTS {
        let text = format!("goal is {test}(1)");
        let reason = Condition::parse(&text, &ExpressionNames::for_hook())
            .unwrap()
            .is_satisfied(&sample_context())
            .err()
            .map(|fault| fault.reason);
        assert!(!reason.as_deref().unwrap_or_default().contains("unknown"), "{test}: {reason:?}");
    }
}

#[test]
fn conditions_and_templates_are_send_and_sync() {
    fn check<T: Clone + fmt::Debug + Send + Sync + 'static>(_: &T) {}
    let condition = Condition::parse("iteration > 2", &ExpressionNames::for_hook()).unwrap();
    let template = TextTemplate::parse("{{ goal }}", &ExpressionNames::for_hook()).unwrap();
    check(&condition);
    check(&template);
    assert_eq!(format!("{condition:?} {template:?}"), r#"ValueExpression("iteration > 2") TextTemplate("{{ goal }}")"#);
    assert_eq!((condition.text(), template.text()), ("iteration > 2", "{{ goal }}"));
}
