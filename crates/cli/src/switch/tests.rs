//! Hooks that are switched in texts as people write them, and texts in which nothing can be switched.

use std::path::Path;

use super::{Said, edit, set};
use crate::config::{Config, Point};

fn config(text: &str) -> Config {
    Config::of(Path::new("config.yaml"), text)
        .unwrap_or_else(|error| panic!("{}\n{text}", crate::failure::Failure::from(error)))
}

/// The text with the hook of that name switched over, which takes it back when it is switched again.
#[track_caller]
fn switched(text: &str, name: &str) -> String {
    let before = config(text);
    let index = before.hooks.iter().position(|hook| hook.name == name);
    let index = index.unwrap_or_else(|| panic!("no `{name}` among {:?}\n{text}", names(&before)));
    let on = !before.hooks[index].enabled();
    let edited = edit(&before, index, on).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
    let after = config(&edited);
    assert_eq!(names(&after), names(&before), "{edited}");
    for (number, (before, after)) in before.hooks.iter().zip(&after.hooks).enumerate() {
        assert_eq!(after.enabled(), before.enabled() != (number == index), "{}\n{edited}", after.name);
    }
    // From then on only the word changes.
    let back = edit(&after, index, !on).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{edited}"));
    let again = edit(&config(&back), index, on).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{back}"));
    assert_eq!(again, edited);
    edited
}

fn names(config: &Config) -> Vec<&str> {
    config.hooks.iter().map(|hook| hook.name.as_str()).collect()
}

#[track_caller]
fn check(text: &str, name: &str, expected: &str) {
    assert_eq!(switched(text, name), expected, "\n{}", switched(text, name));
}

#[track_caller]
fn refused(text: &str, name: &str, why: &str) {
    let before = config(text);
    let index = before.hooks.iter().position(|hook| hook.name == name).expect("it is there");
    let obstacle = edit(&before, index, !before.hooks[index].enabled()).expect_err("nothing else may change");
    assert!(obstacle.to_string().contains(why), "{obstacle:?}");
}

#[test]
fn a_flag_that_is_there() {
    check(
        "hooks:\n  stop:\n    - command: x\n      enabled: true   # for now\n      timeout: 3\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: x\n      enabled: false   # for now\n      timeout: 3\n",
    );
    check(
        "hooks: {stop: [{enabled: false, command: x}]}\n",
        "stop[0]",
        "hooks: {stop: [{enabled: true, command: x}]}\n",
    );
    check(
        "hooks:\n  stop:\n    - enabled:   # soon\n      command: x\n",
        "stop[0]",
        "hooks:\n  stop:\n    - enabled: false   # soon\n      command: x\n",
    );
    check("hooks: {stop: [{command: x, enabled: ~}]}\n", "stop[0]", "hooks: {stop: [{command: x, enabled: false}]}\n");
    check(
        "hooks:\n  stop:\n  - {\"command\": \"x\", \"enabled\":false}",
        "stop[0]",
        "hooks:\n  stop:\n  - {\"command\": \"x\", \"enabled\":true}",
    );
}

#[test]
fn fields_below_each_other() {
    check(
        "hooks:\n  stop:\n    - command: x\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: x\n      enabled: false\n",
    );
    check(
        "hooks:\n  stop:\n    - name: a # first\n\n      # what it does\n      command: x\n    - name: b\n      command: y\n",
        "a",
        "hooks:\n  stop:\n    - name: a # first\n      enabled: false\n\n      # what it does\n      command: x\n    - name: b\n      command: y\n",
    );
    // The last of several, with what does not belong to it behind it.
    check(
        "hooks:\n  stop:\n  - command: x\n  - command: y\n\n  # next\n  on_error:\n  - command: z\n",
        "stop[1]",
        "hooks:\n  stop:\n  - command: x\n  - command: y\n    enabled: false\n\n  # next\n  on_error:\n  - command: z\n",
    );
    // Not indented as usual, and no end of the last line.
    check("hooks:\n stop:\n -   command: x", "stop[0]", "hooks:\n stop:\n -   command: x\n     enabled: false");
    check(
        "hooks:\n  stop:\n    -\n      command: x\n      timeout: 3\n",
        "stop[0]",
        "hooks:\n  stop:\n    -\n      command: x\n      enabled: false\n      timeout: 3\n",
    );
}

#[test]
fn commands_of_several_lines() {
    check(
        "hooks:\n  stop:\n    - command: |\n        a\n        # b\n\n    - command: y\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: |\n        a\n        # b\n      enabled: false\n\n    - command: y\n",
    );
    check(
        "hooks:\n  stop:\n    - command: >-\n        a\n        # b\n      # c\n      timeout: 3\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: >-\n        a\n        # b\n      enabled: false\n      # c\n      timeout: 3\n",
    );
    // Empty lines at the end are part of this one.
    check(
        "hooks:\n  stop:\n    - command: |+\n        a\n\n    - command: y\n",
        "stop[0]",
        "hooks:\n  stop:\n    - enabled: false\n      command: |+\n        a\n\n    - command: y\n",
    );
    check(
        "hooks:\n  stop:\n    - command: 'a\n\n        # b'\n    - command: \"c\n        d\"\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: 'a\n\n        # b'\n      enabled: false\n    - command: \"c\n        d\"\n",
    );
    check(
        "hooks:\n  stop:\n    - command: a\n        b\n    # the end\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: a\n        b\n      enabled: false\n    # the end\n",
    );
    check(
        "hooks:\n  stop:\n    - command: a\n      events:\n      - on_error\n      - session_end\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: a\n      enabled: false\n      events:\n      - on_error\n      - session_end\n",
    );
    check(
        "hooks:\n  stop:\n    - rules:\n      - {when: iteration > 3, action: escalate}\n",
        "stop[0]",
        "hooks:\n  stop:\n    - rules:\n      - {when: iteration > 3, action: escalate}\n      enabled: false\n",
    );
}

#[test]
fn words_get_fields() {
    check(
        "hooks:\n  before_submit:\n    - rebase_on_main\n    - run_tests # all of them\n    - create_pr\n",
        "before_submit[1]:run_tests",
        "hooks:\n  before_submit:\n    - rebase_on_main\n    - use: run_tests # all of them\n      enabled: false\n    - create_pr\n",
    );
    check(
        "hooks:\n  stop:\n  -  'run_tests'",
        "stop[0]:run_tests",
        "hooks:\n  stop:\n  -  use: 'run_tests'\n     enabled: false",
    );
    check(
        "hooks: {before_submit: [rebase_on_main, run_tests]}\n",
        "before_submit[1]:run_tests",
        "hooks: {before_submit: [rebase_on_main, {use: run_tests, enabled: false}]}\n",
    );
    check(
        "hooks: {\"before_submit\": [\n  \"run_tests\",\n]}\n",
        "before_submit[0]:run_tests",
        "hooks: {\"before_submit\": [\n  {\"use\": \"run_tests\", \"enabled\": false},\n]}\n",
    );
    check(
        "hooks:\n  stop:\n    -\n      run_tests\n",
        "stop[0]:run_tests",
        "hooks:\n  stop:\n    -\n      {use: run_tests, enabled: false}\n",
    );
}

#[test]
fn fields_in_braces() {
    check(
        "hooks:\n  stop: [{command: x}, { command: 'y' } ] # both\n",
        "stop[0]",
        "hooks:\n  stop: [{command: x, enabled: false}, { command: 'y' } ] # both\n",
    );
    check(
        "hooks:\n  stop: [{command: x}, { command: 'y' } ] # both\n",
        "stop[1]",
        "hooks:\n  stop: [{command: x}, { command: 'y', enabled: false } ] # both\n",
    );
    check(
        "hooks:\n  stop:\n    - {\n        command: x, # the first\n        timeout: 3, # the last\n      }\n",
        "stop[0]",
        "hooks:\n  stop:\n    - {\n        command: x, # the first\n        timeout: 3, enabled: false, # the last\n      }\n",
    );
    check(
        "{\"hooks\": {\"stop\": [{\"command\": \"x}\"}]}}\n",
        "stop[0]",
        "{\"hooks\": {\"stop\": [{\"command\": \"x}\", \"enabled\": false}]}}\n",
    );
    check(
        "hooks: {stop: [{command: x, retry: {max: 2}}]}\n",
        "stop[0]",
        "hooks: {stop: [{command: x, retry: {max: 2}, enabled: false}]}\n",
    );
    check(
        "hooks: {stop: [{command: x, events: [on_error]}]}\n",
        "stop[0]",
        "hooks: {stop: [{command: x, events: [on_error], enabled: false}]}\n",
    );
}

#[test]
fn types_agents_and_notices() {
    let text = "\
agents:
  zoe:
    command: z
    hooks: {stop: [{command: a}]}
  bob: {command: b, hooks: {stop: [{command: a}]}}
task_types:
  web:
    hooks:
      stop:
        - command: a
        - run_tests
  api: {}
notify:
  - command: a
    on: [failed]
  - desktop: true
hooks:
  stop:
    - command: a
";
    let check = |name, old: &str, new: &str| assert_eq!(switched(text, name), text.replacen(old, new, 1));
    check("zoe.stop[0]", "{command: a}", "{command: a, enabled: false}");
    check("bob.stop[0]", "b, hooks: {stop: [{command: a}", "b, hooks: {stop: [{command: a, enabled: false}");
    check("web.stop[0]", "        - command: a\n", "        - command: a\n          enabled: false\n");
    check("web.stop[1]:run_tests", "- run_tests\n", "- use: run_tests\n          enabled: false\n");
    check("notify[0]", "    on:", "    enabled: false\n    on:");
    check("notify[1]", "desktop: true\n", "desktop: true\n    enabled: false\n");
    check("stop[0]", "  stop:\n    - command: a\n", "  stop:\n    - command: a\n      enabled: false\n");
}

#[test]
fn quotes_marks_tabs_and_carriage_returns() {
    check(
        "\"hooks\":\r\n  'Stop':\r\n    - \"name\": \"a: b\"\t# \ttab\r\n      \"command\": x\r\n",
        "a: b",
        "\"hooks\":\r\n  'Stop':\r\n    - \"name\": \"a: b\"\t# \ttab\r\n      enabled: false\r\n      \"command\": x\r\n",
    );
    check(
        "hooks:\r\n  stop:\r\n    - run_tests\r\n",
        "stop[0]:run_tests",
        "hooks:\r\n  stop:\r\n    - use: run_tests\r\n      enabled: false\r\n",
    );
    check(
        "# é 😀\nhooks:\n  stop:\n    - name: é\n      command: echo 😀\n    - {name: 猫, command: 'é'}\n",
        "猫",
        "# é 😀\nhooks:\n  stop:\n    - name: é\n      command: echo 😀\n    - {name: 猫, command: 'é', enabled: false}\n",
    );
    check(
        "--- # one\nhooks:\n  stop:\n    - command: x\n...\n",
        "stop[0]",
        "--- # one\nhooks:\n  stop:\n    - command: x\n      enabled: false\n...\n",
    );
}

#[test]
fn anchors() {
    // Only where it is written, and nowhere else.
    check(
        "hooks:\n  stop:\n    - &one\n      command: x\n",
        "stop[0]",
        "hooks:\n  stop:\n    - &one\n      command: x\n      enabled: false\n",
    );
    check(
        "hooks:\n  stop:\n    - command: &one x\n    - name: b\n      command: *one\n",
        "stop[0]",
        "hooks:\n  stop:\n    - command: &one x\n      enabled: false\n    - name: b\n      command: *one\n",
    );
    check(
        "hooks:\n  stop:\n    - &one\n      command: x\n      timeout: 3\n    - <<: *one\n      name: b\n",
        "b",
        "hooks:\n  stop:\n    - &one\n      command: x\n      timeout: 3\n    - <<: *one\n      enabled: false\n      name: b\n",
    );
    let shared = "something else would change";
    refused("hooks:\n  stop:\n    - &one\n      command: x\n  on_error:\n    - *one\n", "stop[0]", shared);
    refused("hooks:\n  stop:\n    - &one\n      command: x\n  on_error:\n    - *one\n", "on_error[0]", shared);
    refused("hooks:\n  stop: &all\n    - command: x\n  on_error: *all\n", "on_error[0]", shared);
    refused(
        "hooks:\n  stop:\n    - command: x\n      enabled: &flag false\n    - command: y\n      enabled: *flag\n",
        "stop[1]",
        shared,
    );
}

#[test]
fn odd_ways_to_write_it() {
    check(
        "hooks:\n  stop:\n    - ? command\n      : x\n",
        "stop[0]",
        "hooks:\n  stop:\n    - ? command\n      : x\n      enabled: false\n",
    );
    // More comments than are looked through, and text that looks like them.
    let comments = "      # b\n".repeat(40);
    check(
        &format!(
            "hooks:\n  stop:\n    - command: |\n        a\n  {}{comments}      timeout: 3\n",
            "      # b\n  ".repeat(40)
        ),
        "stop[0]",
        &format!(
            "hooks:\n  stop:\n    - command: |\n        a\n  {}{comments}      enabled: false\n      timeout: 3\n",
            "      # b\n  ".repeat(40)
        ),
    );
}

#[test]
fn a_configuration_that_would_be_wrong() {
    let text = "hooks:\n  before_submit:\n    - create_pr\n  before_merge:\n    - merge_pr\n";
    refused(
        text,
        "before_submit[0]:create_pr",
        "the configuration would be wrong then: `merge_pr` has nothing to merge",
    );
}

/// The text in which this is said of a hook, after which it says that.
#[track_caller]
fn says(text: &str, index: usize, said: &Said, expected: &str) {
    let edited = set(&config(text), index, said).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
    assert_eq!(edited, expected, "{text}");
}

#[test]
fn when_it_runs() {
    let priority = Said::Priority(-5);
    let events = |names: &[&str]| Said::Events(names.iter().filter_map(|name| Point::parse(name)).collect());
    let two = events(&["task_started", "task_failed"]);
    let in_block =
        |fields: &str| format!("hooks:\n  stop:\n    - command: x # mine\n{fields}    # next\n    - run_tests\n");
    says(&in_block(""), 0, &priority, &in_block("      priority: -5\n"));
    says(&in_block("      priority: 7 # why\n"), 0, &priority, &in_block("      priority: -5 # why\n"));
    says(
        &in_block(""),
        1,
        &priority,
        "hooks:\n  stop:\n    - command: x # mine\n    # next\n    - use: run_tests\n      priority: -5\n",
    );
    says(&in_block(""), 0, &two, &in_block("      events: [task_started, task_failed]\n"));
    let written = in_block("      events: [ on_error, pre_iteration ] # both\n      timeout: 3\n");
    says(&written, 0, &two, &in_block("      events: [task_started, task_failed] # both\n      timeout: 3\n"));
    let written = in_block("      events:\n        - on_error\n        - pre_iteration\n      timeout: 3\n");
    says(&written, 0, &events(&[]), &in_block("      events: []\n      timeout: 3\n"));
    let braces = r#"{"hooks": {"stop": [{"command": "x", "events": ["on_error"]}]}}"#;
    says(braces, 0, &two, r#"{"hooks": {"stop": [{"command": "x", "events": ["task_started", "task_failed"]}]}}"#);
    says(braces, 0, &priority, r#"{"hooks": {"stop": [{"command": "x", "events": ["on_error"], "priority": -5}]}}"#);
    // A comment among them is not lost.
    let commented = config(&in_block("      events:\n        - on_error # why\n        - pre_iteration\n"));
    assert!(set(&commented, 0, &two).is_err());
}
