//! Tests of workflow errors, with their place and suggestion.

use super::*;

/// Returns a workflow with these steps.
fn of(steps: &str) -> String {
    format!("id: w\nsteps:\n{steps}")
}

/// Returns a workflow with one step of this type and configuration.
fn one(kind: &str, config: &str) -> String {
    of(&format!("  - id: a\n    type: {kind}\n    config: {config}\n"))
}

fn refused(text: &str) -> (String, String) {
    let problem = parse_workflow(text, "file", false).expect_err(text);
    let at = problem.at.and_then(|at| text.get(at)).unwrap_or_default();
    (format!("{} [{at}]", problem.message), problem.suggestion.unwrap_or_default())
}

#[track_caller]
fn check(text: &str, message: &str, suggestion: &str) {
    told(text, message, suggestion);
    let (said, instead) = refused(text);
    assert!(!instead.is_empty(), "it is not said what to write instead of\n{text}\n{said}");
}

#[track_caller]
fn told(text: &str, message: &str, suggestion: &str) {
    let (said, instead) = refused(text);
    assert!(said.contains(message), "{text}\n{said}");
    assert!(instead.contains(suggestion), "{text}\n{instead}");
}

#[test]
fn those_that_come_along_are_fine() {
    for (id, text) in SHIPPED {
        assert_eq!(shipped_workflow(id, text).expect(id).workflow.id, id);
    }
}

#[test]
fn files_may_be_json_with_the_names_of_the_seed() {
    let text = r#"{
        // The seed's own spelling.
        "id": "review", "name": "Review", "steps": [
            {"id": "make", "type": "create_task", "config": {"goal": "Review: ${context.task.goal}", "parentTaskId": {"fromContext": "task.id"}}, "onSuccess": "done"},
            {"id": "done", "type": "noop"}
        ]
    }"#;
    let workflow = parse_workflow(text, "x", true).expect("a workflow");
    assert_eq!((workflow.id.as_str(), workflow.steps.len()), ("review", 2));
    assert_eq!(parse_workflow("steps: [{id: a, type: noop}]", "by-its-file", false).expect("one").id, "by-its-file");
}

#[test]
fn the_file_itself() {
    check("", "a workflow is a map", "write `id: …`");
    check("- {id: a, type: noop}\n", "and this is a list", "write `steps:` above it");
    check("id: w\nsteps: [{id: a, type: noop}]\n---\nid: x\n", "a second document starts here", "remove the `---`");
    check("id: w\n", "this needs its `steps`", "write `steps: [{id: first, type: noop}]`");
    check("id: w\nsteps: {}\n", "`steps` is a list", "- id");
    check("id: w\nsteps: []\n", "from 1 to 200", "write `steps: [{");
    check("id: 'a b'\nsteps: [{id: a, type: noop}]\n", "the id of a workflow has letters, digits", "`check-1`");
    check("id: 7\nsteps: [{id: a, type: noop}]\n", "`id` is text [7]", "`id: '…'`");
    check("idd: w\nsteps: []\n", "unknown key `idd` [idd]", "did you mean `id`?");
    check("id: w\nsteps: [{id: a, type: noop}]\nsteps: []\n", "", "");
}

/// A file without an id takes its name as the id.
#[test]
fn the_name_of_the_file() {
    let problem = parse_workflow("steps: [{id: a, type: noop}]\n", "my flow (2)", false).expect_err("no id");
    assert!(
        problem.message.starts_with("without an `id` the name of the file is that of the workflow"),
        "{}",
        problem.message
    );
    assert_eq!(problem.suggestion.as_deref(), Some("write an `id`"));
}

#[test]
fn steps() {
    check(&of("  - type: noop\n"), "this needs an `id`", "write `id: check`");
    check(&of("  - id: a\n"), "this needs a `type`", "write `type: execute_command`");
    check(&of("  - {id: a, type: create_tsak}\n"), "unknown type of step `create_tsak` [create_tsak]", "create_task");
    check(&of("  - {id: a, type: noop, onsucces: b}\n"), "unknown key `onsucces`", "onSuccess");
    check(
        &of("  - {id: a, type: noop, onSuccess: b, on_success: c}\n"),
        "given twice, in two spellings",
        "leave one of the two out",
    );
    check(&of("  - {id: a/b, type: noop}\n"), "letters, digits", "`check-1`");
    check(&of("  - {id: 1, type: noop}\n"), "`id` is text [1]", "`id: '…'`");
    check(&of("  - {id: a, type: noop, onSuccess: [b]}\n"), "`onSuccess` is text [[", "`onSuccess: '…'`");
    check(
        &of("  - {id: a, type: noop, config: {x: 1}}\n"),
        "unknown key `x`",
        "a `noop` has no configuration: leave it out",
    );
    check(&of("  - noop\n"), "a step is a map", "write `id: …`");
}

#[test]
fn how_steps_lead_to_each_other() {
    check(
        &of("  - {id: a, type: noop, onSuccess: bb}\n  - {id: b, type: noop}\n"),
        "there is none outside of a `parallel` [bb]",
        "did you mean `b`?",
    );
    check(
        &of("  - {id: a, type: noop}\n  - {id: b, type: noop}\n"),
        "no step leads to `b` [b]",
        "write `onSuccess: b` in `a`",
    );
    check(
        &of("  - {id: a, type: noop, onSuccess: b}\n  - {id: b, type: noop, onSuccess: a}\n"),
        "go round for ever",
        "condition",
    );
    check(&of("  - {id: a, type: noop, onSuccess: a}\n"), "no way leads to the end", "");
    check(
        &of("  - {id: a, type: noop, onSuccess: a}\n  - {id: a, type: noop}\n"),
        "two steps are called `a`",
        "as in `id: a-2`",
    );
    let gate = "  - {id: a, type: condition, config: {predicate: 'true', onTrue: a, onFalse: nowhere}}\n  - {id: b, type: noop}\n";
    check(&of(gate), "`onFalse` names the step `nowhere`", "known here: `a`, `b`");
    let both = "  - {id: both, type: parallel, config: {steps: [{id: x, type: noop}]}, onSuccess: a}\n  - {id: a, type: noop, onFailure: x}\n";
    check(&of(both), "names the step `x`, and there is none outside of a `parallel` [x]", "`a`");
    // A way out only by failure does not count: a loop must end without an accident.
    check(
        &of("  - {id: a, type: noop, onSuccess: a, onFailure: b}\n  - {id: b, type: noop, onSuccess: a}\n"),
        "for ever",
        "",
    );
}

#[test]
fn values_are_refused_where_a_program_evaluates_them() {
    check(
        &one("execute_command", "{command: sh, args: [-c, 'echo ${task.goal}']}"),
        "cannot put a value in the arguments of `sh`: it runs text as commands ['echo ${task.goal}']",
        "`args: [-c, 'echo \"$1\"', sh, '${…}']`",
    );
    check(
        &one("execute_command", "{command: sh, args: [-c, {fromContext: task.goal}]}"),
        "cannot put a value in the arguments of `sh`",
        "",
    );
    check(
        &one("execute_command", "{command: git, args: [clone, '--upload-pack=${task.goal}', x]}"),
        "after `--upload-pack` of `git`: it may be run as a command ['--upload-pack=${task.goal}']",
        "give it to a script of yours",
    );
    check(
        &one("execute_command", "{command: bash, args: '${context.words}'}"),
        "cannot put a value in the arguments",
        "",
    );
    for command in [
        "${task.goal}",
        "${context.task.goal}",
        "./${data.x}",
        "${steps.a.data.stdout}",
        "${context | first}",
        "${context.x}",
        "${context.data.y}",
    ] {
        check(
            &one("execute_command", &format!("{{command: '{command}', storeAs: x}}")),
            "would choose what runs [",
            "context.NAME",
        );
    }
}

#[test]
fn ids_and_numbers_are_accepted_anywhere() {
    for config in [
        "{command: make, args: [deploy, 'TASK=${task.id}']}",
        "{command: docker, args: [build, -t, 'app:${task_id}-${iteration}', .]}",
        "{command: sh, args: [-c, 'exit ${steps.a.data.exitCode}']}",
        "{command: sh, args: [-c, 'exit $0', {fromContext: steps.a.data.exitCode}]}",
        "{command: type, args: ['${task.goal}']}",
    ] {
        let first = "  - {id: a, type: execute_command, config: {command: 'true'}, onSuccess: b}";
        let text = of(&format!("{first}\n  - {{id: b, type: execute_command, config: {config}}}\n"));
        let read = parse_workflow(&text, "file", false);
        assert!(read.is_ok(), "{config}: {read:?}");
    }
    for path in ["context.task.id", "task", "data.x", "context.session"] {
        let text = one("execute_command", &format!("{{command: sh, args: [-c, 'echo ${{{path}}}'], storeAs: x}}"));
        check(&text, "cannot put a value in the arguments of `sh`", "$1");
    }
}

#[test]
fn what_a_step_is_given() {
    check(&one("create_task", "{}"), "this needs a `goal`", "write `goal: 'Review ${task.goal}'`");
    check(&one("create_task", "{goal: ''}"), "`goal` is empty", "write something");
    check(&one("create_task", "{goal: [a]}"), "`goal` is text", "write ");
    check(&one("create_task", "{goal: x, labels: bug}"), "`labels` is a list [bug]", "write `[bug]`");
    check(&one("create_task", "{goal: x, priority: 9}"), "from 0 (most urgent) to 4 [9]", "");
    check(&one("create_task", "{goal: x, prio: 1}"), "unknown key `prio`", "");
    check(&one("update_task", "{action: start}"), "this needs a `taskId`", "");
    check(&one("update_task", "{taskId: T1}"), "this needs an `action`", "");
    check(&one("update_task", "{taskId: T1, action: finish}"), "unknown action `finish` [finish]", "");
    check(&one("execute_command", "{}"), "this needs a `command`", "write `command: make`");
    check(
        &one("execute_command", "{command: [echo, hi]}"),
        "`command` is the name of one program [[",
        "`args: [one, two]`",
    );
    check(
        &one("execute_command", "{command: npm test}"),
        "no shell looks at",
        "write `command: npm` and `args: [test]`",
    );
    check(
        &one("execute_command", "{command: \"echo 'hi' | wc\"}"),
        "no shell looks at",
        "`command: sh` and `args: [-c, '…']`",
    );
    check(&one("execute_command", "{command: cd x && make}"), "no shell looks at", "`args: [-c, '…']`");
    check(&one("execute_command", "{command: ls>x}"), "no shell looks at", "`args: [-c, '…']`");
    check(&one("execute_command", "{command: ls, args: [{a: b}]}"), "an argument is text", "tojson");
    check(&one("execute_command", "{command: ls, args: -l}"), "`args` is a list", "write `[-l]`");
    check(
        &one("execute_command", "{command: ls, timeout: 30000}"),
        "a number as large as 30000 needs a unit [30000]",
        "write `30000ms`",
    );
    check(&one("execute_command", "{command: ls, timeout: 0}"), "longer than 0", "write it as in `timeout: 30s`");
    check(&one("execute_command", "{command: ls, timeout: soon}"), "", "30s");
    check(&one("execute_command", "{command: ls, timeout: 200h}"), "must not be longer than 7 days", "168h");
    check(
        &one("execute_command", "{command: ls, captureOutput: yes}"),
        "`true` or `false`",
        "write `captureOutput: true`",
    );
    check(
        &one("execute_command", "{command: ls, captureOutput: 1}"),
        "`true` or `false` [1]",
        "write `captureOutput: true`",
    );
    check(&one("execute_command", "{command: ls, captureOutput: false, storeAs: x}"), "nothing to store", "");
    check(&one("execute_command", "{command: ls, storeAs: 'a b'}"), "letters, digits", "");
    check(&one("condition", "{}"), "this needs a `predicate`", "write `predicate: task.priority < 2`");
    check(&one("condition", "{predicate: true}"), "`predicate` is text [true]", "`predicate: '…'`");
    check(&one("condition", "{predicate: 'a ${task.id} b'}"), "one expression", "task.priority");
    check(&one("parallel", "{}"), "this needs `steps`", "write `steps: [{");
    check(
        &one("parallel", "{steps: [{id: x, type: condition, config: {predicate: 'true'}}]}"),
        "cannot be one of the steps",
        "",
    );
    check(&one("parallel", "{steps: [{id: x, type: noop, onSuccess: a}]}"), "has no place within", "");
}

/// Literal values are checked when the file is read, not when the step runs.
#[test]
fn tasks_that_could_never_be_made() {
    let make = |fields: &str| one("create_task", &format!("{{goal: x, {fields}}}"));
    check(&make("labels: [1]"), "an entry of `labels` is text [1]", "`labels: [one, 'two']`");
    check(&make("labels: [true]"), "an entry of `labels` is text [true]", "");
    check(&make("labels: ['']"), "an entry of `labels` is empty", "");
    check(&make("labels: [[a]]"), "an entry of `labels` is text", "");
    check(&make("labels: '${task.id} ${task.goal}'"), "`labels` is a list", "");
    check(&make("deliverables: [{a: b}]"), "an entry of `deliverables` is text", "");
    check(&make("priority: high"), "from 0 (most urgent) to 4 [high]", "write `priority: 1`");
    check(&make("priority: '2'"), "from 0 (most urgent) to 4", "write `priority: 1`");
    check(&make("priority: 'P${task.priority}'"), "from 0 (most urgent) to 4", "");
    check(&make("priority: 1.5"), "from 0 (most urgent) to 4 [1.5]", "");
    check(&make("depends: [7]"), "`depends` is the id of a task [7]", "write `T7`");
    check(&make("dependsOn: [review]"), "`dependsOn` is the id of a task [review]", "`${task.id}`");
    check(&make("parentTaskId: bogus"), "`parentTaskId` is the id of a task [bogus]", "`T7`");
    check(&make("parentTaskId: 3"), "the id of a task [3]", "write `T7`");
    check(&make("reviews: bogus"), "`reviews` is the id of a task [bogus]", "`T7`");
    check(&make("report: often"), "`report` is `true` or `false` [often]", "write `report: true`");
    check(
        &make("parentTaskId: {fromContext: 7}"),
        "`fromContext` is a path: names with dots between them [7]",
        "steps.make",
    );
    check(&make("parentTaskId: {fromContext: task.id, x: y}"), "`fromContext` stands alone [fromContext]", "");
    check(&make("parentTaskId: {task: id}"), "the id of a task", "");
    check(&make("type: [a]"), "`type` is text", "");
    check(&make("body: 7"), "`body` is text [7]", "`body: '…'`");
    check(&make("7: x"), "a key is text [7]", "");
    check(&one("create_task", "{goal: {a: b}}"), "`goal` is text", "write ");
    check(
        &one("create_task", "{goal: 'Review {{ task.goal }}'}"),
        "not filled in here ['Review {{ task.goal }}']",
        "write `${task.goal}`",
    );
    check(&one("create_task", "{goal: 'Review {{task_id}}'}"), "not filled in here", "");
    check(&make("body: 'a {{ task.goal }}'"), "not filled in here", "write `${task.goal}`");
    check(&make("labels: [a, '{{task.id}}']"), "not filled in here ['{{task.id}}']", "write `${task.id}`");
    check(&make("deliverables: ['{{task.id}}']"), "not filled in here", "");
    let fine = make(
        "labels: [a, '${task.labels}', 'n${task.id}'], priority: '${task.priority}', depends: ['${task.id}', T1], body: \"a ${'{{'} name }}\", parentTaskId: {fromContext: task.id}",
    );
    parse_workflow(&fine, "w", false).expect("all of this can be made");
    let braces = one("create_task", "{goal: \"Write ${'{{'} name }} for ${task.goal}\"}");
    parse_workflow(&braces, "w", false).expect("these are meant as they stand");
}

#[test]
fn changes_that_could_never_be_made() {
    let change = |fields: &str| one("update_task", &format!("{{taskId: T1, {fields}}}"));
    check(&one("update_task", "{taskId: 1, action: start}"), "`taskId` is the id of a task [1]", "write `T7`");
    check(&one("update_task", "{taskId: task.id, action: start}"), "is the id of a task [task.id]", "`${task.id}`");
    check(&change("action: [start]"), "`action` is text", "");
    check(&change("action: block"), "the action `block` needs `reason` [block]", "write `payload: {reason: why}`");
    check(&change("action: add_labels, payload: {}"), "needs `labels`", "write `payload: {labels: [one]}`");
    check(&change("action: start, payload: {raeson: x}"), "unknown key `raeson` [raeson]", "did you mean `reason`?");
    check(&change("action: start, payload: [x]"), "is a map of keys and values", "");
    check(&change("action: fail, payload: {reason: 7}"), "`reason` is text [7]", "`reason: '…'`");
    check(&change("action: add_labels, payload: {labels: a}"), "`labels` is a list [a]", "write `[a]`");
    check(&change("action: add_labels, payload: {labels: [1]}"), "an entry of `labels` is text [1]", "");
    check(&change("action: fail, reason: 'not {{task.goal}}'"), "not filled in here", "write `${task.goal}`");
    check(&change("action: complete, payload: {result: '{{task.goal}}'}"), "not filled in here", "");
    for fine in [
        "action: '${context.action}'",
        "action: block, payload: '${context.payload}'",
        "action: block, reason: x",
        "action: start, payload: {context: {any: [1]}}",
        "action: complete, payload: {result: done, artifacts: [a]}",
        "action: add_labels, payload: {labels: '${task.labels}'}",
    ] {
        parse_workflow(&change(fine), "w", false).expect(fine);
    }
}

#[test]
fn expressions() {
    check(
        &one("create_task", "{goal: '${task.gaol}'}"),
        "unknown name `task.gaol` [task.gaol]",
        "did you mean `task.goal`?",
    );
    check(&one("create_task", "{goal: '${context.task.gaol}'}"), "context.task.gaol", "goal");
    check(&one("create_task", "{goal: 'x ${task.goal'}"), "has no `}`", "$${");
    check(
        &one("create_task", "{goal: '${steps.later.data}'}"),
        "unknown name `steps.later` [steps.later.data]",
        "known here: `steps.a`",
    );
    check(&one("create_task", "{goal: '${data.x}'}"), "unknown name `data.x` [data.x]", "`data` has no fields here");
    check(&one("create_task", "{goal: '${context.steps.nope.data}'}"), "`context.steps.nope`", "`context.steps.a`");
    let path = "{goal: {fromContext: steps.nope.data.taskId}}";
    check(&one("create_task", path), "`context.steps.nope` [steps.nope.data.taskId]", "`context.steps.a`");
    let language = "docs/configuration.md has the language";
    check(&one("create_task", "{goal: x, labels: ['${task.labels.map(l => l)}']}"), "unexpected `>` [>]", language);
    check(&one("create_task", "{goal: '${task.id ? 1 : 2}'}"), "unexpected character [?]", language);
    check(&one("create_task", "{goal: '${task?.id}'}"), "unexpected character [?]", language);
    check(&one("create_task", "{goal: '${{ task.id }}'}"), "[", language);
    parse_workflow(&one("create_task", "{goal: x, body: \"${{'a': 1}}\"}"), "w", false).expect("a map");
    parse_workflow(&one("create_task", "{goal: '${task.labels.length}'}"), "w", false).expect("a number");
    told(&one("create_task", "{goal: '${}'}"), "must not be empty", "");
    check(&one("create_task", "{goal: \"${task.id || 'x}\"}"), "has no `}`", "close it, and the texts in it");
    check(&one("condition", "{predicate: task.labels.indexOf('x')}"), "no methods", "`task.labels | length`");
    check(&one("condition", "{predicate: '${iteration} > 2'}"), "is one expression", "write it without `${…}`");
    check(&one("condition", "{predicate: '{{ iteration > 2 }}'}"), "without braces", "`iteration > 2`");
    check(
        &one("create_task", "{goal: {fromContext: steps.a-b.data.taskId}}"),
        "unknown name `context.steps['a-b']` [steps.a-b",
        "",
    );
    check(&one("execute_command", "{command: ls, args: ['${nope}']}"), "unknown name `nope`", "");
    check(&one("create_task", "{goal: {fromContext: 'a b'}}"), "", "");
    check(&one("create_task", "{goal: {fromContext: task.idd}}"), "`context.task.idd` [task.idd]", "`context.task.id`");
    parse_workflow(&one("create_task", "{goal: {fromContext: context.steps.a.data.taskId}}"), "w", false)
        .expect("a path");
}

/// Errors in JavaScript syntax are marked at their place, also across lines.
#[test]
fn slips_are_marked_where_they_are() {
    let predicate = |text: &str| one("condition", &format!("\n      predicate: {text}"));
    let lines = "|\n        !task.goal ||\n        task.labels.includes('x') ||\n        task.gaol === 'x'";
    let problem = parse_workflow(&predicate(lines), "file", false).expect_err(lines);
    let line = |at: usize| predicate(lines)[..at].matches('\n').count() + 1;
    assert_eq!(problem.at.map(|at| line(at.start)), Some(9));
    for text in [
        lines,
        ">\n        task.labels &&\n        task.gaol",
        "\"!task.goal || task.gaol == 'x'\"",
        "context.a === null && [task.gaol]",
        "task.labels.includes(task.gaol) && task.goal.length > 2",
        "task.gaol.startsWith('task.gaol') || task.goal",
        "${task.goal || task.gaol}",
    ] {
        check(&predicate(text), "unknown name `task.gaol` [task.gaol]", "did you mean `task.goal`?");
    }
    check(&predicate("task.goal || task.id | uper"), "unknown filter `uper` [uper]", "upper");
    check(&predicate("task.goal || task.id is strng"), "unknown test `strng` [strng]", "string");
    check(&one("create_task", "{goal: 'Hi ${task.id || task.gaol}'}"), "[task.gaol]", "");
}

/// Returns two steps, each with this configuration.
fn after(first: &str, second: &str) -> String {
    of(&format!("  - {{id: a, {first}, onSuccess: b}}\n  - {{id: b, {second}}}\n"))
}

/// The type of a step determines the fields of its result.
#[test]
fn fields_of_what_steps_came_to() {
    let made = |goal: &str| {
        after("type: create_task, config: {goal: x}", &format!("type: create_task, config: {{goal: {goal}}}"))
    };
    let ran = |goal: &str| {
        after(
            "type: execute_command, config: {command: ls}",
            &format!("type: create_task, config: {{goal: \"{goal}\"}}"),
        )
    };
    check(&ran("${steps.a.succes}"), "unknown name `steps.a.succes` [steps.a.succes]", "mean `steps.a.success`?");
    check(&ran("${steps.a.data.stdot}"), "unknown name `steps.a.data.stdot` [", "did you mean `steps.a.data.stdout`?");
    check(&ran("${steps.a.data.taskId}"), "", "known here: `steps.a.data.exitCode`, `steps.a.data.stdout`");
    check(&ran("${steps['a'].data['stdot'] || 'none'}"), "`steps.a.data.stdot`", "stdout");
    check(&made("'${steps.a.data.taskid}'"), "`steps.a.data.taskid`", "did you mean `steps.a.data.taskId`?");
    check(&made("'${steps.a.nonsense}'"), "", "known here: `steps.a.success`, `steps.a.data`");
    check(
        &made("{fromContext: steps.a.data.taskid}"),
        "unknown name `context.steps.a.data.taskid` [steps.a.data.taskid]",
        "`context.steps.a.data.taskId`?",
    );
    let silent = "type: execute_command, config: {command: ls, captureOutput: false}";
    let tell = "type: create_task, config: {goal: '${steps.a.data.stdout}'}";
    check(&after(silent, tell), "`steps.a.data.stdout`", "known here: `steps.a.data.exitCode`");
    check(&after("type: noop", tell), "`steps.a.data.stdout`", "`steps.a.data` has no fields here");
    for fine in [
        "${steps.a.data.stdout}",
        "${steps.a.data}",
        "${steps.a}",
        "${steps.a.error | default('')}",
        "${steps.a.durationMs} ${steps.a.stepId}",
    ] {
        parse_workflow(&ran(fine), "w", false).expect(fine);
    }
}

#[test]
fn what_is_stored_and_what_is_given() {
    let stored = |goal: &str| {
        after(
            "type: execute_command, config: {command: ls, storeAs: found}",
            &format!("type: create_task, config: {{goal: '{goal}'}}"),
        )
    };
    check(&stored("${data.fond}"), "unknown name `data.fond` [data.fond]", "did you mean `data.found`?");
    check(&stored("${data.xyz}"), "", "known here: `data.found`");
    // The caller may supply these names.
    for fine in ["${context.data.fond}", "${context.fond}", "${data.found.any.thing}"] {
        parse_workflow(&stored(fine), "w", false).expect(fine);
    }
}

#[test]
fn what_runs_at_the_same_time_is_not_known() {
    let both = |label: &str, way: &str| {
        of(&format!(
            "  - id: both
    type: parallel
    onSuccess: more
    config:
      steps:
        - {{id: x, type: execute_command, config: {{command: ls, storeAs: found}}}}
        - {{id: y, type: create_task, config: {{goal: z, labels: ['${{{label}}}']}}}}
  - {{id: more, type: condition, config: {{predicate: data.found == '', onTrue: {way}}}}}
  - {{id: end, type: noop}}
"
        ))
    };
    check(&both("steps.x.data.stdout", "end"), "unknown name `steps.x` [steps.x.data.stdout]", "`steps.more`");
    check(&both("context.steps.y.success", "end"), "unknown name `context.steps.y`", "");
    check(&both("data.found", "end"), "unknown name `data.found`", "`data` has no fields here");
    check(&both("steps.both.success", "end"), "unknown name `steps.both`", "");
    // In the next round of a loop, results of this round are known.
    let again = both("steps.x.data.stdout || data.found", "both, onFalse: end");
    parse_workflow(&again, "w", false).expect("it is gone through again");
}

#[test]
fn an_expression_is_marked_where_it_stands() {
    let stored = |fields: &str| {
        after(
            "type: execute_command, config: {command: ls, storeAs: xyz}",
            &format!("type: create_task, config: {fields}"),
        )
    };
    let marked = |text: &str| {
        let at = parse_workflow(text, "w", false).expect_err(text).at.expect("a place");
        text[..at.end].rsplit('\n').next().unwrap_or_default().to_owned()
    };
    let line = marked(&stored("{goal: 'data.x is nice ${data.xyz}', labels: ['$${data.x}', 'of ${ data.x }']}"));
    assert!(line.ends_with("'of ${ data.x"), "{line}");
    let line = marked(&stored("{goal: 'data.x', labels: ['${data.x}']}"));
    assert!(line.ends_with("['${data.x"), "{line}");
    let line = marked(&stored("{goal: \"steps.q.data is ${steps.q.data}\"}"));
    assert!(line.ends_with("is ${steps.q.data"), "{line}");
    let line = marked(&stored("{goal: 'of steps.q.data', parentTaskId: {fromContext: steps.q.data}}"));
    assert!(line.ends_with("fromContext: steps.q.data"), "{line}");
}
