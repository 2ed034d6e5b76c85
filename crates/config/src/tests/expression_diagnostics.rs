//! Tests of error messages for expressions, matchers, numbers and requests of hooks.

use crate::tests::diagnostics::render_problems;

/// Returns a stop hook with additional lines.
fn stop_hook_with(lines: &str) -> String {
    format!("hooks:\n  stop:\n    - command: ./check.sh\n      {lines}\n")
}

fn render_hook_problems(lines: &[&str]) -> String {
    let texts: Vec<_> = lines.iter().map(|lines| stop_hook_with(lines)).collect();
    render_problems(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn unknown_name_in_condition_is_shown() {
    let shown = render_hook_problems(&[
        "when: iteraton > 2",
        "when: \"'agent' in task.lables\"",
        "when: |\n        iteration > 2 and\n        retrys < 3",
        "when: goal | uper",
    ]);
    insta::assert_snapshot!(shown, @r#"
    error: `when`: unknown name `iteraton`
     --> config.yaml:4:13
      |
    4 |       when: iteraton > 2
      |             ^^^^^^^^
    hint: did you mean `iteration`?

    error: `when`: unknown name `task.lables`
     --> config.yaml:4:25
      |
    4 |       when: "'agent' in task.lables"
      |                         ^^^^^^^^^^^
    hint: did you mean `task.labels`?

    error: `when`: unknown name `retrys`
     --> config.yaml:6:9
      |
    6 |         retrys < 3
      |         ^^^^^^
    hint: did you mean `retries`?

    error: `when`: unknown filter `uper`
     --> config.yaml:4:20
      |
    4 |       when: goal | uper
      |                    ^^^^
    hint: did you mean `upper`?
    "#);
}

#[test]
fn unreadable_condition_is_shown() {
    let shown = render_hook_problems(&["when: iteration > 2 ?? retries", "when: '{{ iteration > 2 }}'", "when: ''"]);
    insta::assert_snapshot!(shown, @r"
    error: `when`: unexpected character
     --> config.yaml:4:27
      |
    4 |       when: iteration > 2 ?? retries
      |                           ^
    hint: write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language

    error: `when`: an expression is written without braces
     --> config.yaml:4:13
      |
    4 |       when: '{{ iteration > 2 }}'
      |             ^^^^^^^^^^^^^^^^^^^^^
    hint: write it as in `iteration > 2`

    error: `when`: an expression must not be empty
     --> config.yaml:4:13
      |
    4 |       when: ''
      |             ^^
    ");
}

#[test]
fn unknown_name_in_template_is_shown() {
    let shown = render_hook_problems(&["feedback: 'it said {{ outputs }}'", "feedback: '{% include \"x\" %}'"]);
    insta::assert_snapshot!(shown, @r#"
    error: `feedback`: unknown name `outputs`
     --> config.yaml:4:29
      |
    4 |       feedback: 'it said {{ outputs }}'
      |                             ^^^^^^^
    hint: did you mean `output`?

    error: `feedback`: unknown statement include
     --> config.yaml:4:21
      |
    4 |       feedback: '{% include "x" %}'
      |                     ^^^^^^^
    hint: write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language
    "#);
    let prompts = render_problems(&[
        "hooks:\n  stop:\n    - prompt: 'why {{ errors }}'\n",
        "hooks:\n  stop:\n    - prompt: ''\n",
    ]);
    insta::assert_snapshot!(prompts, @r"
    error: `prompt`: unknown name `errors`
     --> config.yaml:3:23
      |
    3 |     - prompt: 'why {{ errors }}'
      |                       ^^^^^^
    hint: did you mean `error`?

    error: `prompt` is empty
     --> config.yaml:3:15
      |
    3 |     - prompt: ''
      |               ^^
    ");
}

#[test]
fn unknown_name_in_rule_is_shown() {
    let rules = |rule: &str| format!("hooks:\n  stop:\n    - rules:\n        - {rule}\n");
    let texts = [
        "{when: filesModifed, action: complete}",
        "{all_of: [iteration > 2, drafttype], action: complete}",
        "{any_of: [iteration is od], action: complete}",
        "{action: continue, reason: 'in {{ itertion }}'}",
        "{action: continue, nextPrompt: 'in {{ task.gaol }}'}",
        "tddd",
        "always",
    ];
    let texts: Vec<_> = texts.iter().map(|rule| rules(rule)).collect();
    insta::assert_snapshot!(render_problems(&texts.iter().map(String::as_str).collect::<Vec<_>>()), @r"
    error: `when`: unknown name `filesModifed`
     --> config.yaml:4:18
      |
    4 |         - {when: filesModifed, action: complete}
      |                  ^^^^^^^^^^^^
    hint: did you mean `filesModified`?

    error: `all_of`: unknown name `drafttype`
     --> config.yaml:4:36
      |
    4 |         - {all_of: [iteration > 2, drafttype], action: complete}
      |                                    ^^^^^^^^^
    hint: did you mean `draftType`?

    error: `any_of`: unknown test `od`
     --> config.yaml:4:34
      |
    4 |         - {any_of: [iteration is od], action: complete}
      |                                  ^^
    hint: did you mean `odd`?

    error: `reason`: unknown name `itertion`
     --> config.yaml:4:45
      |
    4 |         - {action: continue, reason: 'in {{ itertion }}'}
      |                                             ^^^^^^^^
    hint: did you mean `iteration`?

    error: `nextPrompt`: unknown name `task.gaol`
     --> config.yaml:4:49
      |
    4 |         - {action: continue, nextPrompt: 'in {{ task.gaol }}'}
      |                                                 ^^^^^^^^^
    hint: did you mean `task.goal`?

    error: unknown rules `tddd`
     --> config.yaml:4:11
      |
    4 |         - tddd
      |           ^^^^
    hint: did you mean `tdd`?

    error: unknown rules `always`
     --> config.yaml:4:11
      |
    4 |         - always
      |           ^^^^^^
    hint: known here: `tdd`, `security-remediation`, `checkpoint-every`
    ");
}

#[test]
fn unusable_matcher_is_shown() {
    insta::assert_snapshot!(render_hook_problems(&["matcher: Edit(", "matcher: '|'"]), @r"
    error: `matcher`: this is not a regular expression: found open group without closing ')'
     --> config.yaml:4:16
      |
    4 |       matcher: Edit(
      |                ^^^^^

    error: `matcher`: this matcher names no tool
     --> config.yaml:4:16
      |
    4 |       matcher: '|'
      |                ^^^
    ");
}

#[test]
fn implausible_time_is_shown() {
    let shown = render_hook_problems(&["timeout: 30000", "timeout: 90001", "timeout: 200h", "retry: {backoff: 2h}"]);
    insta::assert_snapshot!(shown, @"
    error: `timeout`: a number as large as 30000 needs a unit
     --> config.yaml:4:16
      |
    4 |       timeout: 30000
      |                ^^^^^
    hint: write `30000ms` if you mean milliseconds, `30000s` if you mean seconds

    error: `timeout`: a number as large as 90001 needs a unit
     --> config.yaml:4:16
      |
    4 |       timeout: 90001
      |                ^^^^^
    hint: write `90001ms` if you mean milliseconds, `90001s` if you mean seconds

    error: `timeout`: must not be longer than 7 days
     --> config.yaml:4:16
      |
    4 |       timeout: 200h
      |                ^^^^
    hint: write `168h` or less

    error: `backoff`: must not be longer than an hour
     --> config.yaml:4:24
      |
    4 |       retry: {backoff: 2h}
      |                        ^^
    hint: it doubles with every further try
    ");
}

#[test]
fn plausible_time_is_read() {
    for timeout in ["1", "0.5", "999", "999.9", "1000s", "30000ms", "168h", "86400.0s"] {
        assert!(crate::config::parse_settings(&stop_hook_with(&format!("timeout: {timeout}"))).is_ok(), "{timeout}");
    }
}

#[test]
fn out_of_range_number_is_shown() {
    insta::assert_snapshot!(render_hook_problems(&["max_output: 0", "max_output: 262145", "retry: {max: 101}"]), @"
    error: `max_output`: expected 1 to 262144 bytes
     --> config.yaml:4:19
      |
    4 |       max_output: 0
      |                   ^

    error: `max_output`: expected 1 to 262144 bytes
     --> config.yaml:4:19
      |
    4 |       max_output: 262145
      |                   ^^^^^^

    error: `max`: a hook is tried again at most 100 times
     --> config.yaml:4:20
      |
    4 |       retry: {max: 101}
      |                    ^^^
    ");
}

#[test]
fn invalid_request_is_shown() {
    let request =
        |rest: &str| format!("hooks:\n  stop:\n    - http:\n        url: https://example.org\n        {rest}\n");
    let texts = [
        request("method: post"),
        request("method: FETCH"),
        request("headers: {'X Key': a}"),
        request("headers: {X-Key: \"a\\r\\nHost: b\"}"),
        "notify:\n  - http: {url: https://example.org, method: SEND}\n".to_owned(),
    ];
    insta::assert_snapshot!(render_problems(&texts.iter().map(String::as_str).collect::<Vec<_>>()), @r#"
    error: unknown method `post`
     --> config.yaml:5:17
      |
    5 |         method: post
      |                 ^^^^
    hint: did you mean `POST`?

    error: unknown method `FETCH`
     --> config.yaml:5:17
      |
    5 |         method: FETCH
      |                 ^^^^^
    hint: known here: `GET`, `POST`, `PUT`, `PATCH`, `DELETE`

    error: `X Key` is not the name of a header
     --> config.yaml:5:19
      |
    5 |         headers: {'X Key': a}
      |                   ^^^^^^^
    hint: a name is letters, digits and `-`

    error: the header `X-Key` has a line break or another control character
     --> config.yaml:5:26
      |
    5 |         headers: {X-Key: "a\r\nHost: b"}
      |                          ^^^^^^^^^^^^^^
    hint: a header is one line

    error: unknown method `SEND`
     --> config.yaml:2:46
      |
    2 |   - http: {url: https://example.org, method: SEND}
      |                                              ^^^^
    hint: known here: `GET`, `POST`, `PUT`, `PATCH`, `DELETE`
    "#);
}

#[test]
fn repeated_point_is_shown() {
    insta::assert_snapshot!(render_hook_problems(&["events: [on_error, Stop]", "events: [on_error, onError]"]), @"
    error: this hook runs at `stop` already
     --> config.yaml:4:26
      |
    4 |       events: [on_error, Stop]
      |                          ^^^^

    error: this hook runs at `on_error` already
     --> config.yaml:4:26
      |
    4 |       events: [on_error, onError]
      |                          ^^^^^^^
    ");
}
