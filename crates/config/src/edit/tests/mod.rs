//! Tests of fields that are set in hand-written texts, and of texts that cannot be edited.

mod properties;

use std::path::Path;

use super::{EditObstacle, HookField, set_hook_field};
use crate::Config;

fn parse_config(text: &str) -> Config {
    Config::from_text(Path::new("config.yaml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Toggles the hook of that name.
fn toggle_hook(text: &str, name: &str) -> Result<String, EditObstacle> {
    let config = parse_config(text);
    let index = config.hooks.iter().position(|hook| hook.name == name);
    let index = index.unwrap_or_else(|| panic!("no `{name}`\n{text}"));
    let field = HookField::Enabled(!config.hooks[index].is_enabled());
    set_hook_field(&config, index, field).map(|edited| edited.text().to_string())
}

/// Checks that toggling a hook replaces `old` by `new` in the text, and that toggling it back restores a text without the field.
#[track_caller]
fn check_toggle(text: &str, name: &str, old: &str, new: &str) {
    let edited = toggle_hook(text, name).unwrap_or_else(|obstacle| panic!("{obstacle}\n{text}"));
    assert_eq!(edited, text.replacen(old, new, 1), "\n{edited}");
    let back = toggle_hook(&edited, name).expect("the field is there");
    if !text.contains("enabled:") {
        assert_eq!(back, text);
    }
    assert_eq!(toggle_hook(&back, name), Ok(edited));
}

#[test]
fn present_field_gets_new_value() {
    let text = "hooks:\n  stop:\n    - command: x\n      enabled: true   # for now\n      timeout: 3\n";
    check_toggle(text, "stop[0]", "true", "false");
    check_toggle("hooks: {stop: [{enabled: false, command: x}]}\n", "stop[0]", "enabled: false, ", "");
    check_toggle("hooks: {stop: [{command: x, enabled: false}]}\n", "stop[0]", "false", "true");
    check_toggle("hooks: {stop: [{command: x, enabled: ~}]}\n", "stop[0]", "~", "false");
    check_toggle("hooks:\n  stop:\n  - {\"command\": \"x\", \"enabled\":false}", "stop[0]", "false", "true");
}

#[test]
fn enabled_hook_loses_field_unless_it_has_comment() {
    let text = "hooks:\n  stop:\n    - command: x\n      enabled: false\n\n      # why\n      timeout: 3\n";
    check_toggle(text, "stop[0]", "\n      enabled: false", "");
    let text = "hooks:\n  stop:\n    - command: x\n      enabled: false   # it is slow\n      timeout: 3\n";
    check_toggle(text, "stop[0]", "false", "true");
    check_toggle("hooks:\n  stop:\n    - enabled: false\n      # slow\n      command: x\n", "stop[0]", "false", "true");
    let text = "hooks:\n  stop:\n    - command: x\n      # slow\n      enabled: false\n      timeout: 3\n";
    check_toggle(text, "stop[0]", "false", "true");
}

#[test]
fn block_entry_gets_field_below_its_first_line() {
    let new = "\n      enabled: false";
    check_toggle("hooks:\n  stop:\n    - command: x\n", "stop[0]", "x", &format!("x{new}"));
    let text = "hooks:\n  stop:\n    - name: a # first\n\n      # what it does\n      command: x\n    - command: y\n";
    check_toggle(text, "a", "# first", &format!("# first{new}"));
    let text = "hooks:\n  stop:\n  - command: x\n  - command: y\n\n  # next\n  on_error:\n  - command: z\n";
    check_toggle(text, "stop[1]", "y", "y\n    enabled: false");
    // Unusual indentation, and no newline at the end.
    check_toggle("hooks:\n stop:\n -   command: x", "stop[0]", "x", "x\n     enabled: false");
    let text = "hooks:\n  stop:\n    -\n      command: x\n      timeout: 3\n";
    check_toggle(text, "stop[0]", "x", &format!("x{new}"));
    let text = "--- # one\nhooks:\n  stop:\n    - command: a\n      events:\n      - on_error\n...\n";
    check_toggle(text, "stop[0]", "a\n", &format!("a{new}\n"));
    let text = "\"hooks\":\r\n  'Stop':\r\n    - \"name\": \"a: b\"\t# \ttab\r\n      \"command\": x\r\n";
    check_toggle(text, "a: b", "# \ttab", "# \ttab\r\n      enabled: false");
}

#[test]
fn block_entry_with_long_first_value_gets_field_above() {
    for first in [
        "command: |\n        a\n        # b\n\n",
        "command: >-\n        a\n        # b\n      # c\n      timeout: 3\n",
        "command: |+\n        a\n\n",
        "command: 'a\n\n        # b'\n",
        "command: a\n        b\n    # the end\n",
        "rules:\n      - {when: iteration > 3, action: escalate}\n",
        "? command\n      : x\n",
    ] {
        let text = format!("hooks:\n  stop:\n    - {first}    - command: y\n");
        check_toggle(&text, "stop[0]", "- ", "- enabled: false\n      ");
    }
}

#[test]
fn word_becomes_map_on_its_line() {
    let text = "hooks:\n  before_submit:\n    - rebase_on_main\n    - run_tests # all of them\n    - create_pr\n";
    check_toggle(text, "before_submit[1]:run_tests", "run_tests", "{use: run_tests, enabled: false}");
    check_toggle(
        "hooks:\n  stop:\n  -  'run_tests'",
        "stop[0]:run_tests",
        "'run_tests'",
        "{use: 'run_tests', enabled: false}",
    );
    let text = "hooks: {before_submit: [rebase_on_main, run_tests]}\n";
    check_toggle(text, "before_submit[1]:run_tests", "run_tests", "{use: run_tests, enabled: false}");
    let text = "hooks:\r\n  stop:\r\n    -\r\n      run_tests\r\n";
    check_toggle(text, "stop[0]:run_tests", "run_tests", "{use: run_tests, enabled: false}");
}

#[test]
fn braces_get_field_first() {
    let text = "hooks:\n  stop: [{command: x}, { command: 'y' } ] # both\n";
    check_toggle(text, "stop[0]", "{", "{enabled: false, ");
    check_toggle(text, "stop[1]", "{ ", "{ enabled: false, ");
    let text = "hooks:\n  stop:\n    - {\n        command: x, # the first\n        timeout: 3, # the last\n      }\n";
    check_toggle(text, "stop[0]", "command", "enabled: false, command");
    let text = "# é 😀\nhooks:\n  stop:\n    - name: é\n      command: echo 😀\n    - {name: 猫, command: 'é'}\n";
    check_toggle(text, "猫", "{", "{enabled: false, ");
    check_toggle("{\"hooks\": {\"stop\": [{\"command\": \"x}\"}]}}\n", "stop[0]", "{\"c", "{enabled: false, \"c");
}

#[test]
fn hooks_of_types_agents_and_notices_are_found() {
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
    check_toggle(text, "zoe.stop[0]", "{command: a}", "{enabled: false, command: a}");
    check_toggle(text, "bob.stop[0]", "b, hooks: {stop: [{", "b, hooks: {stop: [{enabled: false, ");
    check_toggle(text, "web.stop[0]", "        - command: a\n", "        - command: a\n          enabled: false\n");
    check_toggle(text, "web.stop[1]:run_tests", "run_tests", "{use: run_tests, enabled: false}");
    check_toggle(text, "notify[0]", "    on:", "    enabled: false\n    on:");
    check_toggle(text, "notify[1]", "desktop: true\n", "desktop: true\n    enabled: false\n");
    check_toggle(text, "stop[0]", "  stop:\n    - command: a\n", "  stop:\n    - command: a\n      enabled: false\n");
}

#[test]
fn anchor_is_kept_where_nothing_repeats_the_hook() {
    let new = "x\n      enabled: false";
    check_toggle("hooks:\n  stop:\n    - &one\n      command: x\n", "stop[0]", "x", new);
    let text = "hooks:\n  stop:\n    - command: &one x\n    - name: b\n      command: *one\n";
    check_toggle(text, "stop[0]", "x", new);
    let text = "hooks:\n  stop:\n    - &one\n      command: x\n      enabled: true\n    - <<: *one\n      name: b\n";
    check_toggle(text, "b", "*one", "*one\n      enabled: false");
}

#[test]
fn text_that_cannot_be_edited_is_refused() {
    let both = "hooks:\n  stop:\n    - &one\n      command: x\n  on_error:\n    - *one\n";
    for (text, name) in [
        (both, "stop[0]"),
        (both, "on_error[0]"),
        ("hooks:\n  stop: &all\n    - command: x\n  on_error: *all\n", "on_error[0]"),
        ("hooks:\n  stop:\n    - command: x\n      enabled: &no false\n    - {command: y, enabled: *no}\n", "stop[1]"),
        ("hooks:\n  stop:\n    - enabled:   # soon\n      command: x\n", "stop[0]"),
    ] {
        assert_eq!(toggle_hook(text, name), Err(EditObstacle::Layout), "{text}");
    }
    let text = "hooks:\n  before_submit:\n    - create_pr\n  before_merge:\n    - merge_pr\n";
    let obstacle = toggle_hook(text, "before_submit[0]:create_pr").expect_err("nothing is left to merge");
    assert!(obstacle.to_string().starts_with("the configuration would be wrong then: `merge_pr` has nothing"));
}

#[test]
fn priority_is_set_as_well() {
    let text = "hooks:\n  stop:\n    - command: x # mine\n    - {command: y, priority: 7} # why\n";
    let set = |hook| set_hook_field(&parse_config(text), hook, HookField::Priority(-5)).expect("both can be edited");
    assert_eq!(&**set(0).text(), text.replace("# mine\n", "# mine\n      priority: -5\n"));
    assert_eq!(&**set(1).text(), text.replace('7', "-5"));
}
