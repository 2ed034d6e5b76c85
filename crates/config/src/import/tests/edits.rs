//! Tests of imports into hand-written texts, and of texts that cannot be edited.

use std::path::Path;

use crate::Config;
use crate::import::{ConfigAdditions, import_hooks};

const TWO: &str = r#"{"hooks": {
  "Stop": [{"hooks": [{"type": "command", "command": "./a.sh"}]}],
  "Notification": [{"hooks": [{"type": "command", "command": "./b.sh", "timeout": 5}]}]
}}"#;

fn parse_config(text: &str) -> Config {
    Config::from_text(Path::new("config.yaml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the text with both hooks. A second import adds nothing.
#[track_caller]
fn apply_import(text: &str) -> String {
    let import = import_hooks(Path::new(".claude/settings.json"), TWO, None).unwrap();
    let before = parse_config(text);
    let after = ConfigAdditions::from_import(&import, &before).apply_to_config(&before);
    let after = after.unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
    let edited = after.text().to_string();
    assert_eq!(after.hooks.len(), before.hooks.len() + 2, "{edited}");
    assert!(ConfigAdditions::from_import(&import, &after).is_empty(), "{edited}");
    edited
}

#[track_caller]
fn check_added(text: &str, expected: &str) {
    assert_eq!(added(text), expected, "\n{}", added(text));
}

const STOP: &str = "- name: claude-a\n  command: ./a.sh\n";
const NOTIFICATION: &str = "- name: claude-b\n  command: ./b.sh\n  timeout: 5s\n";

/// Indents lines.
fn indent_lines(indent: usize, lines: &str) -> String {
    lines.lines().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

fn both_hooks_text() -> String {
    format!("hooks:\n  stop:\n{}  notification:\n{}", by(4, STOP), by(4, NOTIFICATION))
}

#[test]
fn import_into_file_without_hooks_appends_section() {
    let both = both_hooks_text();
    check_added("", &format!("version: 1\n\n{both}"));
    check_added("# nothing yet\n", &format!("# nothing yet\n\n{both}"));
    check_added("version: 1\n", &format!("version: 1\n\n{both}"));
    check_added("version: 1", format!("version: 1\n\n{both}").trim_end());
    check_added("agent: claude # mine\n\n# the end\n", &format!("agent: claude # mine\n\n# the end\n\n{both}"));
}

#[test]
fn import_extends_present_points_and_adds_others() {
    let new = format!("  notification:\n{}", by(4, NOTIFICATION));
    check_added(
        "hooks:\n  stop:\n    - command: ./own.sh # mine\n\n# next\nagent: claude\n",
        &format!("hooks:\n  stop:\n    - command: ./own.sh # mine\n{}{new}\n# next\nagent: claude\n", by(4, STOP)),
    );
    // Another spelling of the point, and dashes without indentation.
    check_added(
        "hooks:\n  Stop:\n  - command: ./own.sh\n    timeout: 3\n",
        &format!("hooks:\n  Stop:\n  - command: ./own.sh\n    timeout: 3\n{}{new}", by(2, STOP)),
    );
    // The last point is another one, with a block scalar whose lines look like YAML.
    let text = "hooks:\n    on_error:\n        - command: |\n            a\n            # b\n          timeout: 3\n        # the end\n";
    check_added(text, &format!("{text}    stop:\n{}    notification:\n{}", by(6, STOP), by(6, NOTIFICATION)));
    check_added(
        "hooks:\n  #stop:\n  #  - command: x\n\nagent: claude\n",
        &format!("hooks:\n  stop:\n{}{new}  #stop:\n  #  - command: x\n\nagent: claude\n", by(4, STOP)),
    );
    // No newline at the end of the file.
    check_added(
        "hooks:\n  stop:\n    - command: ./own.sh",
        format!("hooks:\n  stop:\n    - command: ./own.sh\n{}{new}", by(4, STOP)).trim_end(),
    );
}

/// A new point, and another hook for the last point.
#[test]
fn lines_of_last_point_stay_with_it() {
    let text = "hooks:\n  notification:\n    - command: ./own.sh\n";
    let expected = format!("{text}{}  stop:\n{}", by(4, NOTIFICATION), by(4, STOP));
    check_added(text, &expected);
    check_added("  agent: claude\n", &format!("  agent: claude\n\n{}", by(2, &both())));
}

#[test]
fn import_keeps_existing_lines() {
    for text in [
        "hooks: # all of them\n\n  stop: # gates\n\n    # first\n    - command: >-\n        a\n        b\n\n    # second\n    - {command: ./c.sh}\n\n    # third\n    - name: x\n      command: 'a\n        b'\n\n\n# more\nlimits: {max_iterations: 3}\n",
        "\"hooks\":\n  'stop':\n    - command: x\n  \"on_error\": [{command: y}]\n",
        "task_types:\n  a: {hooks: {stop: []}}\nhooks:\n  stop:\n    -   command: x\n        matcher: '*'\n",
        "hooks:\r\n  stop:\r\n    - command: x\r\nagent: claude\r\n",
        "hooks: &one\n  stop: &all\n    - command: x\n",
        "agent: claude\nhooks:\n  session_start:\n  - command: x\n  - run_tests\n",
    ] {
        let edited = apply_import(text);
        let mut rest = edited.as_str();
        for line in text.split_inclusive('\n') {
            let found = rest.find(line).unwrap_or_else(|| panic!("{line:?} is gone\n{edited}"));
            rest = &rest[found + line.len()..];
        }
    }
    assert!(!apply_import("hooks:\r\n  stop:\r\n    - command: x\r\n").replace("\r\n", "").contains('\n'));
}

#[test]
fn text_without_editable_lists_is_refused() {
    let import = import_hooks(Path::new(".claude/settings.json"), TWO, None).unwrap();
    for text in [
        "{version: 1}\n",
        "hooks: {stop: [{command: x}]}\n",
        "hooks: {}\n",
        "hooks: ~\n",
        "hooks:\n  stop: [{command: x}]\n",
        "hooks:\n  stop: []\n",
        "hooks:\n  stop:\n    - &one\n      command: x\n",
        "hooks:\n  stop:\n    -\n      command: x\n",
        "task_types:\n  a:\n    hooks: &all\n      stop: []\nhooks: *all\n",
        "version: 1\n...\n",
    ] {
        let before = parse_config(text);
        assert!(ConfigAdditions::from_import(&import, &before).apply_to_config(&before).is_err(), "{text}");
    }
}

#[test]
fn import_adds_limits_and_settings_once() {
    let codemie =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./a.sh"}]}]}, "maxHookRetries": 7}"#;
    let import = import_hooks(Path::new("codemie.json"), codemie, None).unwrap();
    let check = |text: &str, line: &str| {
        let before = parse_config(text);
        let additions = ConfigAdditions::from_import(&import, &before);
        let after = additions.apply_to_config(&before).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
        let edited: &str = after.text();
        assert!(edited.contains(line), "{edited}");
        assert_eq!(after.settings.limits.max_hook_retries, 7, "{edited}");
        assert!(ConfigAdditions::from_import(&import, &after).is_empty(), "{edited}");
    };
    check("version: 1\n", "\nlimits:\n  max_hook_retries: 7\nstrict: false\non_retry_limit: complete\n");
    check("limits:\n", "limits:\n  max_hook_retries: 7\n");
    check("limits:\n   max_iterations: 3 # x\n\nagent: claude\n", "3 # x\n   max_hook_retries: 7\n\nagent");

    // Existing settings stay, and the import does not loosen an existing gate.
    let before = parse_config("limits: {maxHookRetries: 2}\nhooks:\n  stop:\n    - command: ./own.sh\n");
    let additions = ConfigAdditions::from_import(&import, &before);
    assert!(additions.settings.is_empty());
    let notes: Vec<&str> = additions.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes[0].starts_with("`max_hook_retries` is 2 in the configuration and 7 in this file"), "{notes:?}");
    assert!(
        notes.len() == 3 && notes[1].contains("`strict: false`") && notes[2].contains("`on_retry_limit: complete`"),
        "{notes:?}"
    );
}

#[test]
fn imported_names_are_made_unique() {
    let before = parse_config(
        "hooks:\n  stop:\n    - {name: claude-a, command: other}\n  on_error:\n    - {name: claude-b, command: other}\n    - {name: claude-b-2, command: other}\n",
    );
    let import = import_hooks(Path::new(".claude/settings.json"), TWO, None).unwrap();
    let names: Vec<String> =
        ConfigAdditions::from_import(&import, &before).hooks.into_iter().map(|hook| hook.name).collect();
    assert_eq!(names, ["claude-a-2", "claude-b-3"]);
}
