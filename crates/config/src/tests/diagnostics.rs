//! Tests of error messages for a wrong configuration.

use std::path::Path;

use annotate_snippets::Renderer;

use crate::ConfigError;
use crate::config::parse_settings;

/// Returns the message as a person sees it.
fn render_problem(text: &str) -> String {
    let problem = parse_settings(text).map(|_| ()).expect_err(text);
    let error = ConfigError::from_problem(Path::new("config.yaml"), text, problem);
    let picture = error.render_picture_with(&Renderer::plain()).expect("a place");
    let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
    picture + &hint.unwrap_or_default()
}

pub fn render_problems(texts: &[&str]) -> String {
    texts.iter().map(|text| render_problem(text)).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn unknown_key_is_shown_with_suggestion() {
    let shown = render_problems(&[
        "hook:\n  stop: []\n",
        "hooks:\n  stop:\n    - command: ./check.sh\n      pipe_ouput: true\n",
        "max_hook_retries: 3\n",
        "limits:\n  speed: 9\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: unknown key `hook`
     --> config.yaml:1:1
      |
    1 | hook:
      | ^^^^
    hint: did you mean `hooks`?

    error: unknown key `pipe_ouput`
     --> config.yaml:4:7
      |
    4 |       pipe_ouput: true
      |       ^^^^^^^^^^
    hint: did you mean `pipe_output`?

    error: unknown key `max_hook_retries`
     --> config.yaml:1:1
      |
    1 | max_hook_retries: 3
      | ^^^^^^^^^^^^^^^^
    hint: write it under `limits`

    error: unknown key `speed`
     --> config.yaml:2:3
      |
    2 |   speed: 9
      |   ^^^^^
    hint: known here: `max_iterations`, `maxHookRetries`, `max_hook_retries`, `max_remediations`, `max_rejections`, `max_failures`, `failure_span`, `thrashing`, `wall_time`, `lease`, `turn_time`, `silence`, `cost`, `tokens`
    ");
}

#[test]
fn unknown_point_is_shown_with_suggestion() {
    let shown = render_problems(&["hooks:\n  pre_iterations:\n    - command: ./lint.sh\n", "hooks:\n  deploy: []\n"]);
    insta::assert_snapshot!(shown, @r"
    error: unknown point `pre_iterations`
     --> config.yaml:2:3
      |
    2 |   pre_iterations:
      |   ^^^^^^^^^^^^^^
    hint: did you mean `pre_iteration`?

    error: unknown point `deploy`
     --> config.yaml:2:3
      |
    2 |   deploy: []
      |   ^^^^^^
    ");
}

#[test]
fn duplicate_key_is_shown() {
    let shown = render_problems(&[
        "hooks:\n  stop:\n    - command: ./check.sh\n      # seconds\n      timeout: 3\n      timeout: 4\n",
        "hooks:\n  stop: []\n  Stop: []\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: the key `timeout` is given twice
     --> config.yaml:6:7
      |
    6 |       timeout: 4
      |       ^^^^^^^
    hint: keep one of them

    error: the point `stop` is given twice, in two spellings
     --> config.yaml:3:3
      |
    3 |   Stop: []
      |   ^^^^
    hint: the first one is on line 2
    ");
}

#[test]
fn unsafe_free_text_in_command_is_shown() {
    let shown = render_problems(&[
        "hooks:\n  on_error:\n    - command: echo {{error}} '{{error}}'\n",
        "hooks:\n  on_error:\n    - command: |\n        true\n        sh -c \"echo {{ task_content }}\"\n",
        "hooks:\n  on_error:\n    - command: \"eval \\x7b{error}}\"\n",
    ]);
    insta::assert_snapshot!(shown, @r#"
    error: cannot put `{{error}}` in single quotes: nothing is filled in there
     --> config.yaml:3:32
      |
    3 |     - command: echo {{error}} '{{error}}'
      |                                ^^^^^^^^^
    hint: write double quotes around it, or end the quotes before it: `'…'{{error}}'…'`

    error: cannot put `{{task_content}}` in the arguments of `sh`: it runs text as commands
     --> config.yaml:5:21
      |
    5 |         sh -c "echo {{ task_content }}"
      |                     ^^^^^^^^^^^^^^^^^^
    hint: put the command in a script of its own, which reads "$WINDLASS_TASK_CONTENT"

    error: cannot put `{{error}}` in the arguments of `eval`: it runs text as commands
     --> config.yaml:3:16
      |
    3 |     - command: "eval \x7b{error}}"
      |                ^^^^^^^^^^^^^^^^^^^
    hint: put the command in a script of its own, which reads "$WINDLASS_ERROR"
    "#);
}

#[test]
fn wrong_type_is_shown_with_hint() {
    let shown = render_problems(&[
        "hooks:\n  stop:\n    - command: ./check.sh\n      pipe_output: yes\n",
        "hooks:\n  stop:\n    command: ./check.sh\n",
        "hooks:\n  stop: run_tests\n",
        "hooks:\n  stop:\n",
        "hooks: [stop]\n",
        "hooks:\n  on_error:\n    - command: {{error}}\n",
        "limits:\n  max_iterations: many\n",
        "limits:\n  max_iterations: -1\n",
        "version: 2\n",
        "- version: 1\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `pipe_output`: expected `true`, `false` or `on_failure`
     --> config.yaml:4:20
      |
    4 |       pipe_output: yes
      |                    ^^^

    error: `stop`: expected a list, found a map
     --> config.yaml:3:5
      |
    3 |     command: ./check.sh
      |     ^^^^^^^^^^^^^^^^^^^
    hint: start each entry with `- `

    error: `stop`: expected a list, found the text `run_tests`
     --> config.yaml:2:9
      |
    2 |   stop: run_tests
      |         ^^^^^^^^^
    hint: start each entry with `- `

    error: `stop`: expected a list of hooks, found nothing
     --> config.yaml:2:3
      |
    2 |   stop:
      |   ^^^^
    hint: write `[]` for none

    error: `hooks`: expected a map from points to lists of hooks, found a list
     --> config.yaml:1:8
      |
    1 | hooks: [stop]
      |        ^

    error: a list or a map cannot be a key
     --> config.yaml:3:17
      |
    3 |     - command: {{error}}
      |                 ^
    hint: put text that begins with one of `{[@*&!%` in quotes

    error: `max_iterations`: expected a whole number, 1 or more, found the text `many`
     --> config.yaml:2:19
      |
    2 |   max_iterations: many
      |                   ^^^^

    error: `max_iterations`: expected a whole number, 1 or more, found integer `-1`
     --> config.yaml:2:19
      |
    2 |   max_iterations: -1
      |                   ^^

    error: version 2 of the configuration is not known
     --> config.yaml:1:10
      |
    1 | version: 2
      |          ^
    hint: this version of windlass reads `version: 1`

    error: expected a map of keys and values, found a list
     --> config.yaml:1:1
      |
    1 | - version: 1
      | ^^^^^^^^^^^^
    ");
}

#[test]
fn bad_duration_is_shown() {
    let shown = render_problems(&[
        "hooks:\n  stop:\n    - command: ./check.sh\n      timeout: soon\n",
        "hooks:\n  stop:\n    - command: ./check.sh\n      timeout: 0\n",
    ]);
    insta::assert_snapshot!(shown, @r"
    error: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `soon`
     --> config.yaml:4:16
      |
    4 |       timeout: soon
      |                ^^^^

    error: `timeout`: must be longer than 0
     --> config.yaml:4:16
      |
    4 |       timeout: 0
      |                ^
    ");
}

#[test]
fn bad_priority_is_shown() {
    let shown = render_problems(&["hooks:\n  stop:\n    - command: ./check.sh\n      priority: high\n"]);
    insta::assert_snapshot!(shown, @r"
    error: `priority`: expected a whole number, found the text `high`
     --> config.yaml:4:17
      |
    4 |       priority: high
      |                 ^^^^
    ");
}

#[test]
fn unknown_word_is_shown_with_suggestion() {
    let shown = render_problems(&[
        "completion: promis\n",
        "agent: cluade\n",
        "hooks:\n  before_submit: [run_test]\n",
        "hooks:\n  stop: [./check.sh --all]\n",
    ]);
    insta::assert_snapshot!(shown, @r"
    error: `completion`: unknown value `promis`
     --> config.yaml:1:13
      |
    1 | completion: promis
      |             ^^^^^^
    hint: did you mean `promise`?

    error: unknown agent `cluade`
     --> config.yaml:1:8
      |
    1 | agent: cluade
      |        ^^^^^^
    hint: did you mean `claude`?

    error: unknown built-in hook `run_test`
     --> config.yaml:2:19
      |
    2 |   before_submit: [run_test]
      |                   ^^^^^^^^
    hint: did you mean `run_tests`?

    error: unknown built-in hook `./check.sh --all`
     --> config.yaml:2:10
      |
    2 |   stop: [./check.sh --all]
      |          ^^^^^^^^^^^^^^^^
    hint: write a command as `- command: …`
    ");
}

#[test]
fn hook_without_exactly_one_kind_is_shown() {
    let shown = render_problems(&[
        "hooks:\n  stop:\n    - command: ./check.sh\n      prompt: check it\n",
        "hooks:\n  stop:\n    - timeout: 5\n",
        "hooks:\n  task_completed:\n    - name: auto-create-review-task\n      enabled: false\n",
        "hooks:\n  stop:\n    - http: example.org/hook\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: a hook is either `command` or `prompt`, not both
     --> config.yaml:3:7
      |
    3 |     - command: ./check.sh
      |       ^^^^^^^^^^^^^^^^^^^
    hint: write two hooks

    error: this hook does not say what it runs
     --> config.yaml:3:7
      |
    3 |     - timeout: 5
      |       ^^^^^^^^^^
    hint: add one of `command`, `use`, `rules`, `prompt`, `http`, `workflow`, `gatekeeper`

    error: this hook does not say what it runs
     --> config.yaml:3:7
      |
    3 |     - name: auto-create-review-task
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: write `use: auto-create-review-task`

    error: `example.org/hook` is not an address of the web
     --> config.yaml:3:13
      |
    3 |     - http: example.org/hook
      |             ^^^^^^^^^^^^^^^^
    hint: an address starts with `https://` or `http://`
    ");
}

#[test]
fn taken_hook_name_is_shown() {
    let shown = render_problems(&[
        "hooks:\n  stop:\n    - {name: check, command: ./a.sh}\n  on_error:\n    - {name: check, command: ./b.sh}\n",
        "hooks:\n  stop:\n    - {name: registered, command: ./a.sh}\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: two hooks have the name `check`
     --> config.yaml:5:14
      |
    5 |     - {name: check, command: ./b.sh}
      |              ^^^^^
    hint: the first one is on line 3; give each its own name

    error: no hook can have the name `registered`: Windlass uses it
     --> config.yaml:3:14
      |
    3 |     - {name: registered, command: ./a.sh}
      |              ^^^^^^^^^^
    ");
}

#[test]
fn misplaced_registry_hook_is_shown() {
    let shown = render_problems(&[
        "task_types:\n  product:\n    hooks:\n      task_completed: [auto-create-review-task]\n",
        "hooks:\n  task_created: [track-agent-task-lifecycle]\n  task_completed: [track-agent-task-lifecycle]\n",
    ]);
    insta::assert_snapshot!(shown, @r"
    error: `auto-create-review-task` belongs to the whole project
     --> config.yaml:4:24
      |
    4 |       task_completed: [auto-create-review-task]
      |                        ^^^^^^^^^^^^^^^^^^^^^^^
    hint: configure it under the `hooks` at the top of the file

    error: `track-agent-task-lifecycle` is configured twice
     --> config.yaml:3:20
      |
    3 |   task_completed: [track-agent-task-lifecycle]
      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: the first time is on line 2
    ");
}

#[test]
fn secret_value_in_place_of_name_is_shown() {
    let shown = render_problems(&["secrets:\n  - sk-live-0123\n"]);
    insta::assert_snapshot!(shown, @r"
    error: this is not the name of an environment variable
     --> config.yaml:2:5
      |
    2 |   - sk-live-0123
      |     ^^^^^^^^^^^^
    hint: write the variable's name here, never the secret itself
    ");
}

#[test]
fn unusable_validator_is_shown() {
    let shown = render_problems(&[
        "agent_commands: never\n",
        "validators: {lint: ' '}\n",
        "validators:\n  '': make lint\n",
        "validators:\n  web: {command: npm test, working_directory: ../web}\n",
        "validators:\n  web: {comand: npm test}\n",
        "validators:\n  web: {command: npm test, success_exit_codes: [256]}\n",
        "validators:\n  web: [npm test]\n",
        "validators:\n  web: {command: npm test, timeout: 60000}\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `agent_commands`: unknown value `never`
     --> config.yaml:1:17
      |
    1 | agent_commands: never
      |                 ^^^^^
    hint: known here: `allow`, `named`, `deny`

    error: the validator `lint` has no command
     --> config.yaml:1:20
      |
    1 | validators: {lint: ' '}
      |                    ^^^
    hint: write the shell command to run

    error: the validator `` has a name that no rule can give
     --> config.yaml:2:7
      |
    2 |   '': make lint
      |       ^^^^^^^^^
    hint: name it in a few plain letters

    error: the validator `web` would work outside the project
     --> config.yaml:2:47
      |
    2 |   web: {command: npm test, working_directory: ../web}
      |                                               ^^^^^^
    hint: write a path relative to the project's directory: `packages/web`

    error: unknown key `comand`
     --> config.yaml:2:9
      |
    2 |   web: {comand: npm test}
      |         ^^^^^^
    hint: did you mean `command`?

    error: expected a whole number from 0 to 255, found integer `256`
     --> config.yaml:2:49
      |
    2 |   web: {command: npm test, success_exit_codes: [256]}
      |                                                 ^^^

    error: `web`: expected a name or a map, found a list
     --> config.yaml:2:8
      |
    2 |   web: [npm test]
      |        ^

    error: `timeout`: a number as large as 60000 needs a unit
     --> config.yaml:2:37
      |
    2 |   web: {command: npm test, timeout: 60000}
      |                                     ^^^^^
    hint: write `60000ms` if you mean milliseconds, `60000s` if you mean seconds
    ");
}
