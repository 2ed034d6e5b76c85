//! What is added to texts as people write them, and texts to which nothing can be added.

use std::path::Path;

use super::moving::moved;
use super::{Additions, translate};
use crate::config::{Config, Point};
use crate::import::edit;

const TWO: &str = r#"{"hooks": {
  "Stop": [{"hooks": [{"type": "command", "command": "./a.sh"}]}],
  "Notification": [{"hooks": [{"type": "command", "command": "./b.sh", "timeout": 5}]}]
}}"#;

fn config(text: &str) -> Config {
    Config::of(Path::new("config.yaml"), text)
        .unwrap_or_else(|error| panic!("{}\n{text}", crate::failure::Failure::from(error)))
}

/// The text with both hooks, to which nothing more is added by a second time.
#[track_caller]
fn added(text: &str) -> String {
    let import = translate(Path::new(".claude/settings.json"), TWO, None).unwrap();
    let before = config(text);
    let edited =
        edit(&before, &Additions::of(&import, &before)).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
    let after = config(&edited);
    assert_eq!(after.hooks.len(), before.hooks.len() + 2, "{edited}");
    assert!(Additions::of(&import, &after).is_empty(), "{edited}");
    edited
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(added(text), expected, "\n{}", added(text));
}

const STOP: &str = "- name: claude-a\n  command: ./a.sh\n";
const NOTIFICATION: &str = "- name: claude-b\n  command: ./b.sh\n  timeout: 5s\n";

/// Lines, each so far to the right.
fn by(indent: usize, lines: &str) -> String {
    lines.lines().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

#[test]
fn a_file_without_hooks() {
    let both = format!("hooks:\n  stop:\n{}  notification:\n{}", by(4, STOP), by(4, NOTIFICATION));
    check("", &both);
    check("# nothing yet\n", &format!("# nothing yet\n\n{both}"));
    check("version: 1\n", &format!("version: 1\n\n{both}"));
    check("version: 1", &format!("version: 1\n\n{both}"));
    check("agent: claude # mine\n\n# the end\n", &format!("agent: claude # mine\n\n# the end\n\n{both}"));
}

#[test]
fn points_that_are_there_and_points_that_are_not() {
    let new = format!("  notification:\n{}", by(4, NOTIFICATION));
    check(
        "hooks:\n  stop:\n    - command: ./own.sh # mine\n\n# next\nagent: claude\n",
        &format!("hooks:\n  stop:\n    - command: ./own.sh # mine\n{}{new}\n# next\nagent: claude\n", by(4, STOP)),
    );
    // Another spelling, and dashes that are not indented.
    check(
        "hooks:\n  Stop:\n  - command: ./own.sh\n    timeout: 3\n",
        &format!("hooks:\n  Stop:\n  - command: ./own.sh\n    timeout: 3\n{}{new}", by(2, STOP)),
    );
    // The last point is another one, with several lines of text that look like something else.
    check(
        "hooks:\n    stop: []   # none\n    on_error:\n        - command: |\n            a\n            # b\n          timeout: 3\n        # the end\n",
        &format!(
            "hooks:\n    stop:   # none\n{}    on_error:\n        - command: |\n            a\n            # b\n          timeout: 3\n        # the end\n    notification:\n{}",
            by(6, STOP),
            by(6, NOTIFICATION)
        ),
    );
    check(
        "hooks:\n  #stop:\n  #  - command: x\n\nagent: claude\n",
        &format!("hooks:\n  stop:\n{}{new}  #stop:\n  #  - command: x\n\nagent: claude\n", by(4, STOP)),
    );
    // A file whose last line has no end.
    check(
        "hooks:\n  stop:\n    - command: ./own.sh",
        &format!("hooks:\n  stop:\n    - command: ./own.sh\n{}{new}", by(4, STOP)),
    );
}

/// A new point, and more for the one that was the last.
#[test]
fn what_belongs_to_the_last_point_stays_with_it() {
    let text = "hooks:\n  notification:\n    - command: ./own.sh\n";
    let expected = format!("{text}{}  stop:\n{}", by(4, NOTIFICATION), by(4, STOP));
    check(text, &expected);
    check("  agent: claude\n", &format!("  agent: claude\n\n{}", by(2, &added(""))));
}

#[test]
fn what_is_written_is_kept_to_the_letter() {
    for text in [
        "hooks: # all of them\n\n  stop: # gates\n\n    # first\n    - command: >-\n        a\n        b\n\n    # second\n    - {command: ./c.sh}\n\n    # third\n    - name: x\n      command: 'a\n        b'\n\n\n# more\nlimits: {max_iterations: 3}\n",
        "\"hooks\":\n  'stop':\n    - command: x\n  \"on_error\": [{command: y}]\n",
        "task_types:\n  a: {hooks: {stop: []}}\nhooks:\n  stop:\n    -   command: x\n        matcher: '*'\n",
        "hooks:\r\n  stop:\r\n    - command: x\r\nagent: claude\r\n",
        "agent: claude\nhooks:\n  session_start:\n  - command: x\n  - run_tests\n",
    ] {
        let edited = added(text);
        let mut rest = edited.as_str();
        for line in text.split_inclusive('\n') {
            let found = rest.find(line).unwrap_or_else(|| panic!("{line:?} is gone\n{edited}"));
            rest = &rest[found + line.len()..];
        }
    }
    assert!(!added("hooks:\r\n  stop:\r\n    - command: x\r\n").replace("\r\n", "").contains('\n'));
}

#[test]
fn what_cannot_be_added_to_is_left_alone() {
    let import = translate(Path::new(".claude/settings.json"), TWO, None).unwrap();
    for text in [
        "{version: 1}\n",
        "hooks: {stop: [{command: x}]}\n",
        "hooks: {}\n",
        "hooks: ~\n",
        "hooks:\n  stop: [{command: x}]\n",
        "hooks:\n  stop: &all\n    - command: x\n",
        "hooks:\n  stop:\n    - &one\n      command: x\n",
        "hooks:\n  stop:\n    -\n      command: x\n",
        "hooks: &all\n  stop:\n    - command: x\n",
        "task_types:\n  a:\n    hooks: &all\n      stop: []\nhooks: *all\n",
        "version: 1\n...\n",
    ] {
        let before = config(text);
        let result = edit(&before, &Additions::of(&import, &before));
        assert!(result.is_err(), "{text}\n{}", result.unwrap_or_default());
    }
}

#[test]
fn limits_and_settings() {
    let codemie =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./a.sh"}]}]}, "maxHookRetries": 7}"#;
    let import = translate(Path::new("codemie.json"), codemie, None).unwrap();
    let check = |text: &str, line: &str| {
        let before = config(text);
        let additions = Additions::of(&import, &before);
        let edited = edit(&before, &additions).unwrap_or_else(|obstacle| panic!("{obstacle:?}\n{text}"));
        assert!(edited.contains(line), "{edited}");
        let after = config(&edited);
        assert_eq!(after.settings.limits.max_hook_retries, 7, "{edited}");
        assert!(Additions::of(&import, &after).is_empty(), "{edited}");
    };
    check("version: 1\n", "\nlimits:\n  max_hook_retries: 7\nstrict: false\non_retry_limit: complete\n");
    check("limits:\n", "limits:\n  max_hook_retries: 7\n");
    check("limits:\n   max_iterations: 3 # x\n\nagent: claude\n", "3 # x\n   max_hook_retries: 7\n\nagent");

    // A number that nobody has chosen gives way.
    check("limits:\n  max_hook_retries: 5 # tries\n  max_iterations: 3\n", "max_hook_retries: 7 # tries\n  max_iter");
    check("limits: {maxHookRetries: 5}\n", "limits: {maxHookRetries: 7}\n");
    let additions = Additions::of(&import, &config("limits: {max_hook_retries: 5}\n"));
    let told = "`max_hook_retries` is 5 in the configuration, as usual; it becomes 7, as in this file";
    assert!(additions.notes.iter().any(|note| note.text == told), "{:?}", additions.notes);

    // What the configuration says itself stays, and a gate that is there is not loosened.
    let before = config("limits: {maxHookRetries: 2}\nhooks:\n  stop:\n    - command: ./own.sh\n");
    let additions = Additions::of(&import, &before);
    assert!(additions.settings.is_empty());
    let notes: Vec<&str> = additions.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes[0].starts_with("`max_hook_retries` is 2 in the configuration and 7 in this file"), "{notes:?}");
    assert!(
        notes.len() == 3 && notes[1].contains("`strict: false`") && notes[2].contains("`on_retry_limit: complete`"),
        "{notes:?}"
    );
}

#[test]
fn names_are_nobody_elses() {
    let before = config(
        "hooks:\n  stop:\n    - {name: claude-a, command: other}\n  on_error:\n    - {name: claude-b, command: other}\n    - {name: claude-b-2, command: other}\n",
    );
    let import = translate(Path::new(".claude/settings.json"), TWO, None).unwrap();
    let names: Vec<String> = Additions::of(&import, &before).hooks.into_iter().map(|hook| hook.name).collect();
    assert_eq!(names, ["claude-a-2", "claude-b-3"]);
}

#[track_caller]
fn moves(text: &str, name: &str, to: &str, expected: &str) {
    let moved = moved(&config(text), name, Point::parse(to).unwrap());
    let moved = moved.unwrap_or_else(|obstacle| panic!("{obstacle}\n{text}"));
    assert_eq!(&**moved.text(), expected, "\n{}", &**moved.text());
}

#[test]
fn a_hook_is_moved_with_its_lines() {
    let one = "hooks:\n  stop:\n    # first\n    - name: a   # mine\n      command: |\n        x\n\n        # y\n      timeout: 3\n    # next\n    - name: b\n      command: z\n";
    moves(
        one,
        "a",
        "on_error",
        "hooks:\n  stop:\n    # first\n    # next\n    - name: b\n      command: z\n  on_error:\n    - name: a   # mine\n      command: |\n        x\n\n        # y\n      timeout: 3\n",
    );
    // To a list that is there, with dashes that are not indented; and the list that it leaves is none.
    moves(
        "hooks:\n  on_error:\n  - name: c\n    command: w\n  stop:\n      - {name: a, command: x}\nagent: claude\n",
        "a",
        "on_error",
        "hooks:\n  on_error:\n  - name: c\n    command: w\n  - {name: a, command: x}\n  stop: []\nagent: claude\n",
    );
    moves(
        "hooks:\r\n  stop:\r\n    - name: a\r\n      command: x\r\n",
        "a",
        "on_error",
        "hooks:\r\n  stop: []\r\n  on_error:\r\n    - name: a\r\n      command: x\r\n",
    );
    for text in [
        "hooks: {stop: [{name: a, command: x}]}\n",
        "hooks:\n  stop: [{name: a, command: x}]\n",
        // Another one would be called otherwise.
        "hooks:\n  stop:\n    - {name: a, command: x}\n    - command: y\n",
        "agents:\n  claude:\n    hooks:\n      stop:\n        - {name: a, command: x}\n",
        "hooks:\n  stop:\n    - name: a\n      command: &it x\n    - name: b\n      command: *it\n",
    ] {
        assert!(moved(&config(text), "a", Point::parse("on_error").unwrap()).is_err(), "{text}");
    }
}
