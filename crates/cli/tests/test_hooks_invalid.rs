//! Wrong configurations, each with its own error, through the real program: nothing runs, and nothing is recorded
//!
//! Snapshots of whole errors are in `crates/config/src/tests`.

use crate::support::TestWorld;

/// The output of `config check`: the place, the mistake, and the remedy.
#[track_caller]
fn check_config_error(world: &TestWorld, text: &str, expected: &str) {
    world.write(".windlass/config.yaml", text);
    let ran = world.run(&["--json", "config", "check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (64, ""), "{text}\n{ran}");
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let error = &object["error"];
    let message = error["message"].as_str().unwrap();
    let place = format!("{}:", world.path(".windlass/config.yaml").display());
    let hint = error["hint"].as_str().map(|hint| format!(" | {hint}")).unwrap_or_default();
    assert_eq!(message.strip_prefix(&place).unwrap().to_owned() + &hint, expected, "{text}");
    assert_eq!(error["code"], "config", "{text}");
}

/// Keys beside the command of a stop hook.
const INVALID_FIELDS: &[(&str, &str)] = &[
    ("events: [on_eror]", "3:34: unknown point `on_eror` | did you mean `on_error`?"),
    ("events: [stop]", "3:34: this hook runs at `stop` already"),
    ("events: [on_error, on_error]", "3:44: this hook runs at `on_error` already"),
    ("use: run_tests", "3:7: a hook is either `command` or `use`, not both | write two hooks"),
    ("rules: [{action: complete}]", "3:7: a hook is either `command` or `rules`, not both | write two hooks"),
    ("pipe_ouput: true", "3:25: unknown key `pipe_ouput` | did you mean `pipe_output`?"),
    ("name: ''", "3:31: the name of a hook is one line of 1 to 128 bytes"),
    ("timeout: 0", "3:34: `timeout`: must be longer than 0"),
    ("timeout: 0s", "3:34: `timeout`: must be longer than 0"),
    ("timeout: -1", "3:34: `timeout`: must be longer than 0"),
    ("timeout: -500ms", "3:34: `timeout`: must be longer than 0"),
    (
        "timeout: 1000",
        "3:34: `timeout`: a number as large as 1000 needs a unit | write `1000ms` if you mean milliseconds, `1000s` if you mean seconds",
    ),
    (
        "timeout: 30000",
        "3:34: `timeout`: a number as large as 30000 needs a unit | write `30000ms` if you mean milliseconds, `30000s` if you mean seconds",
    ),
    ("timeout: 99999999999", "3:34: `timeout`: must not be longer than a year"),
    ("timeout: 1e308", "3:34: `timeout`: must not be longer than a year"),
    (
        "timeout: 8d",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `8d`",
    ),
    ("timeout: 200h", "3:34: `timeout`: must not be longer than 7 days | write `168h` or less"),
    (
        "timeout: .nan",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `.nan`",
    ),
    (
        "timeout: .inf",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `.inf`",
    ),
    (
        "timeout: soon",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `soon`",
    ),
    (
        "timeout: 5 lightyears",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `5 lightyears`",
    ),
    (
        "timeout: ''",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text ``",
    ),
    (
        "timeout: [5]",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found a list",
    ),
    (
        "timeout: 1m30",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `1m30`",
    ),
    (
        "timeout: true",
        "3:34: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found boolean `true`",
    ),
    ("priority: high", "3:35: `priority`: expected a whole number, found the text `high`"),
    ("priority: 1.5", "3:35: `priority`: expected a whole number, found floating point `1.5`"),
    (
        "priority: 99999999999999999999",
        "3:35: `priority`: expected a whole number, found floating point `100000000000000000000.0`",
    ),
    ("retry: 3", "3:32: `retry`: expected a map of keys and values, found integer `3`"),
    ("retry: {max: -1}", "3:38: `max`: expected a whole number, 0 or more, found integer `-1`"),
    ("retry: {max: 101}", "3:38: `max`: a hook is tried again at most 100 times"),
    ("retry: {backoff: 2h}", "3:42: `backoff`: must not be longer than an hour | it doubles with every further try"),
    ("retry: {times: 3}", "3:33: unknown key `times` | known here: `max`, `backoff`, `jitter`"),
    ("max_output: 0", "3:37: `max_output`: expected 1 to 262144 bytes"),
    ("max_output: 1GB", "3:37: `max_output`: expected a whole number, 0 or more, found the text `1GB`"),
    ("max_output: 999999999", "3:37: `max_output`: expected 1 to 262144 bytes"),
    ("enabled: yes", "3:34: `enabled`: expected `true` or `false`, found the text `yes` | write `true`"),
    ("enabled: maybe", "3:34: `enabled`: expected `true` or `false`, found the text `maybe`"),
    ("pipe_output: yes", "3:38: `pipe_output`: expected `true`, `false` or `on_failure`"),
    ("idempotent: 1", "3:37: `idempotent`: expected `true` or `false`, found integer `1`"),
    ("on_failure: explode", "3:37: `on_failure`: unknown value `explode` | known here: `ignore`, `block`, `escalate`"),
    ("metadata: [a]", "3:35: `metadata`: expected a map of keys and values, found a list"),
    ("when: iteraton > 2", "3:31: `when`: unknown name `iteraton` | did you mean `iteration`?"),
    (
        "when: 'iteration >'",
        "3:42: `when`: unexpected end of input, expected expression | write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language",
    ),
    (
        "when: 'goal ?? 1'",
        "3:37: `when`: unexpected character | write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language",
    ),
    (
        "when: '{{ iteration }}'",
        "3:31: `when`: an expression is written without braces | write it as in `iteration > 2`",
    ),
    ("when: ''", "3:31: `when`: an expression must not be empty"),
    (
        r#"when: "goal.upper()""#,
        "3:36: `when`: values have no methods: `upper` | write a filter, as in `task.labels | length`; docs/reference/expressions.md lists them",
    ),
    (
        "when: 'goal ~ goal'",
        "3:32: `when`: `~` is not part of the language | in a template, write the two one after the other",
    ),
    ("matcher: 'Edit('", "3:34: `matcher`: this is not a regular expression: found open group without closing ')'"),
    ("matcher: '|'", "3:34: `matcher`: this matcher names no tool"),
    ("feedback: '{{ outputs }}'", "3:39: `feedback`: unknown name `outputs` | did you mean `output`?"),
    (
        r#"feedback: '{% include "x" %}'"#,
        "3:39: `feedback`: unknown statement include | write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language",
    ),
    (
        "feedback: '{% if a'",
        "3:42: `feedback`: unexpected end of input, expected end of block | write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language",
    ),
];

/// A hook of a point.
const INVALID_HOOKS: &[(&str, &str, &str)] = &[
    ("pre_iterations", "command: ./c.sh", "2:3: unknown point `pre_iterations` | did you mean `pre_iteration`?"),
    ("task_complete", "command: ./c.sh", "2:3: unknown point `task_complete` | did you mean `task_completed`?"),
    ("deploy", "command: ./c.sh", "2:3: unknown point `deploy`"),
    (
        "stop",
        "{use: run_tests, http: 'https://example.org'}",
        "3:7: a hook is either `use` or `http`, not both | write two hooks",
    ),
    (
        "stop",
        "{timeout: 5}",
        "3:7: this hook does not say what it runs | add one of `command`, `use`, `rules`, `prompt`, `http`, `workflow`, `gatekeeper`",
    ),
    (
        "stop",
        "{}",
        "3:7: this hook does not say what it runs | add one of `command`, `use`, `rules`, `prompt`, `http`, `workflow`, `gatekeeper`",
    ),
    ("stop", "name: run_tests", "3:7: this hook does not say what it runs | write `use: run_tests`"),
    ("stop", "run_test", "3:7: unknown built-in hook `run_test` | did you mean `run_tests`?"),
    ("stop", "use: creat_pr", "3:7: unknown built-in hook `creat_pr` | did you mean `create_pr`?"),
    (
        "stop",
        "use: 7",
        "3:7: unknown built-in hook `7` | known here: `rebase_on_main`, `run_tests`, `create_pr`, `merge_pr`, `gatekeeper`, `auto-label-by-keyword`, `auto-create-review-task`, `check-dependency-satisfaction`, `track-agent-task-lifecycle`",
    ),
    ("stop", "./c.sh --all", "3:7: unknown built-in hook `./c.sh --all` | write a command as `- command: …`"),
    ("stop", "[run_tests]", "3:7: expected a name or a map, found a list"),
    ("stop", "command: ''", "3:7: `command` is empty"),
    ("stop", "command: [ls, -l]", "3:16: `command`: expected text, found a list"),
    ("stop", "{comand: ./c.sh}", "3:8: unknown key `comand` | did you mean `command`?"),
    (
        "stop",
        "http: example.org",
        "3:13: `example.org` is not an address of the web | an address starts with `https://` or `http://`",
    ),
    (
        "stop",
        "http: 'ftp://example.org'",
        "3:13: `ftp://example.org` is not an address of the web | an address starts with `https://` or `http://`",
    ),
    (
        "stop",
        "{name: tell, http: {url: 'example.org'}}",
        "3:32: `example.org` is not an address of the web | an address starts with `https://` or `http://`",
    ),
    (
        "stop",
        "http: {url: 'https://example.org', method: FETCH}",
        "3:50: unknown method `FETCH` | known here: `GET`, `POST`, `PUT`, `PATCH`, `DELETE`",
    ),
    (
        "stop",
        "http: {url: 'https://example.org', headers: {'X Key': a}}",
        "3:52: `X Key` is not the name of a header | a name is letters, digits and `-`",
    ),
    ("stop", "http: {method: POST}", "3:13: `http`: the key `url` is missing here"),
    ("stop", "prompt: ''", "3:15: `prompt` is empty"),
    ("stop", "workflow: ''", "3:7: `workflow` is empty"),
    ("stop", "gatekeeper: qa", "3:19: `gatekeeper`: expected a list, found the text `qa` | start each entry with `- `"),
    (
        "task_completed",
        "auto-create-review-tsk",
        "3:7: unknown built-in hook `auto-create-review-tsk` | did you mean `auto-create-review-task`?",
    ),
    (
        "stop",
        "rules: [{when: itertion > 1, action: complete}]",
        "3:22: `when`: unknown name `itertion` | did you mean `iteration`?",
    ),
    (
        "stop",
        "rules: [{action: finish}]",
        "3:24: `action`: unknown value `finish` | known here: `complete`, `continue`, `escalate`",
    ),
    ("stop", "rules: []", "3:7: `rules` is an empty list"),
    ("stop", "rules: [tddd]", "3:15: unknown rules `tddd` | did you mean `tdd`?"),
    (
        "on_error",
        r#"command: "echo '{{error}}'""#,
        "3:23: cannot put `{{error}}` in single quotes: nothing is filled in there | write double quotes around it, or end the quotes before it: `'…'{{error}}'…'`",
    ),
    (
        "on_error",
        "command: 'eval {{error}}'",
        r#"3:22: cannot put `{{error}}` in the arguments of `eval`: it runs text as commands | put the command in a script of its own, which reads "$WINDLASS_ERROR""#,
    ),
    (
        "on_error",
        r#"command: sh -c "echo {{task_content}}""#,
        r#"3:28: cannot put `{{task_content}}` in the arguments of `sh`: it runs text as commands | put the command in a script of its own, which reads "$WINDLASS_TASK_CONTENT""#,
    ),
    (
        "on_error",
        r#"command: "cat <<E\n{{error}}\nE""#,
        r#"3:26: cannot put `{{error}}` in a command with a here-document, `<( … )` or `>( … )`: only plain commands are followed | put the command in a script of its own, which reads "$WINDLASS_ERROR""#,
    ),
    (
        "on_error",
        "command: 'echo $(echo {{error}})'",
        r#"3:29: cannot put `{{error}}` in `$( … )`: what is in it is a command of its own | assign it first: `text={{error}}`, then use "$text" inside"#,
    ),
    (
        "on_error",
        "command: '{{error}}'",
        r#"3:17: cannot put `{{error}}` in the place of a command: the text would choose what runs | put the command in a script of its own, which reads "$WINDLASS_ERROR""#,
    ),
    (
        "on_error",
        "command: 'ssh host {{task_content}}'",
        r#"3:26: cannot put `{{task_content}}` in the arguments of `ssh`: it runs text as commands | put the command in a script of its own, which reads "$WINDLASS_TASK_CONTENT""#,
    ),
    (
        "on_error",
        "command: {{error}}",
        "3:17: a list or a map cannot be a key | put text that begins with one of `{[@*&!%` in quotes",
    ),
];

/// Whole files.
const INVALID_FILES: &[(&str, &str)] = &[
    (
        "hooks:\n  stop: []\n  Stop: []\n",
        "3:3: the point `stop` is given twice, in two spellings | the first one is on line 2",
    ),
    ("hooks:\n  7: []\n", "2:3: unknown point `7`"),
    ("hooks: stop\n", "1:8: `hooks`: expected a map from points to lists of hooks, found the text `stop`"),
    ("hooks:\n  stop: {command: ./c.sh}\n", "2:9: `stop`: expected a list, found a map | start each entry with `- `"),
    (
        "hooks:\n  stop:\n    - {command: ./c.sh, name: a}\n    - {command: ./c.sh, name: a}\n",
        "4:31: two hooks have the name `a` | the first one is on line 3; give each its own name",
    ),
    ("limits: {max_iterations: 0}\n", "1:26: `max_iterations`: expected a whole number, 1 or more, found integer `0`"),
    ("agents: {a: {driver: acp}}\n", "1:13: the agent `a` has a driver that needs a `command`"),
    ("agents: {a: {driver: scripted}}\n", "1:13: the agent `a` plays a script: its `command` is the script's file"),
    (
        "agents: {a: {command: x, model: big}}\n",
        "1:13: the agent `a` has a `model`, and its driver cannot pass it | put it into `command` or `args`",
    ),
    (
        "agents: {codex: {permissions: read-only}}\n",
        "1:17: the agent `codex` has `permissions`, and its driver does not use the Agent Client Protocol | set them in `args` as the program expects, or drive it with `driver: acp`",
    ),
    (
        "agents: {gemini: {tools: true}}\n",
        "1:18: the agent `gemini` has `tools: true`, and its driver cannot pass tools | add `windlass mcp` to its own settings, if it has any for such servers",
    ),
    (
        "agents: {codex: {mcp_servers: {a: {command: x}}}}\n",
        "1:17: the agent `codex` has `mcp_servers`, and its driver does not use the Agent Client Protocol | write them into its own configuration, or drive it with `driver: acp`",
    ),
    (
        "agents: {kimi: {permissions: ask}}\n",
        "1:30: `permissions`: unknown value `ask` | known here: `allow`, `deny`, `read-only`",
    ),
    (
        "agents: {kimi: {permissions: {shell: deny}}}\n",
        "1:30: `permissions`: unknown field `shell`, expected one of `default`, `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, `other`",
    ),
    ("agents: {kimi: {driver: amp}}\n", "1:25: `driver`: unknown value `amp` | did you mean `acp`?"),
    ("limits: {tokens: 0}\n", "1:18: `tokens`: expected a whole number, 1 or more, found integer `0`"),
    ("limits: {cost: -1}\n", "1:16: `cost` must be more than 0"),
    ("version: 2\n", "1:10: version 2 of the configuration is not known | this version of windlass reads `version: 1`"),
    ("- version: 1\n", "1:1: expected a map of keys and values, found a list"),
    (
        "hooks: [stop: {\n",
        "1:15: not valid YAML: unclosed bracket '{' | put text that begins with one of `{[@*&!%` in quotes",
    ),
    ("agent: a\nagent: b\n", "2:1: the key `agent` is given twice | keep one of them"),
    ("agent: cluade\n", "1:8: unknown agent `cluade` | did you mean `claude`?"),
    (
        "secrets: [sk-live-0123]\n",
        "1:11: this is not the name of an environment variable | write the variable's name here, never the secret itself",
    ),
    ("secrets: API_KEY\n", "1:10: `secrets`: expected a list, found the text `API_KEY` | start each entry with `- `"),
    ("protected: '*.sh'\n", "1:12: `protected`: expected a list, found the text `*.sh` | start each entry with `- `"),
    (
        "protected: ['[']\n",
        "1:13: unclosed character class; missing ']' | write a path or a pattern relative to the project's directory: `tests/**/*.rs`",
    ),
    ("max_iterations: 3\n", "1:1: unknown key `max_iterations` | write it under `limits`"),
    ("hoooks: {}\n", "1:1: unknown key `hoooks` | did you mean `hooks`?"),
    ("completion: promis\n", "1:13: `completion`: unknown value `promis` | did you mean `promise`?"),
    (
        "on_retry_limit: shrug\n",
        "1:17: `on_retry_limit`: unknown value `shrug` | known here: `escalate`, `complete`, `ask`",
    ),
    ("strict: maybe\n", "1:9: `strict`: expected `true` or `false`, found the text `maybe`"),
    ("a: &a [*a]\n", "1:8: this alias is inside the value that it repeats"),
    (
        "version: !!int 1\nhooks: !x {}\n",
        "1:10: tags are not supported | put text that begins with one of `{[@*&!%` in quotes",
    ),
    ("task_types:\n  hot fix: {}\n", "2:3: `hot fix` is not a task type's name (letters, digits, _ and -, at most 64)"),
    ("task_types: {x: {hooks: {stop: [{command: ./c.sh, timeout: 0}]}}}\n", "1:60: `timeout`: must be longer than 0"),
    (
        "task_types: {x: {hooks: {task_completed: [auto-create-review-task]}}}\n",
        "1:43: `auto-create-review-task` belongs to the whole project | configure it under the `hooks` at the top of the file",
    ),
    (
        "notify: [{on: [escalated]}]\n",
        "1:10: this notice does not say what it runs: `command`, `http` or `desktop: true`",
    ),
    ("notify: [{desktop: false}]\n", "1:10: `desktop: false` shows no notice | leave the whole notice out"),
    (
        "notify: [{desktop: true, command: ./c.sh}]\n",
        "1:10: a notice is one of `command`, `http` and `desktop`, not several | write two notices",
    ),
    (
        "hooks: {notify: [{command: ./c.sh}]}\n",
        "1:9: notices are not written under `hooks` | write them under `notify` at the top of the file",
    ),
    (
        "hooks: {stop: [{name: 'notify[0]', command: ./c.sh}]}\nnotify: [{desktop: true}]\n",
        "2:10: line 1 has a hook with the name `notify[0]`, which this notice has | give that hook another name",
    ),
    (
        "notify: [{command: ./c.sh, on: [sunrise]}]\n",
        "1:33: unknown value `sunrise` | known here: `escalated`, `completed`, `ended`, `failed`, `cancelled`",
    ),
    ("hooks: {}\n---\nhooks: {}\n", "2:1: a second document starts here | remove the `---`"),
    ("\"\\u0000\": 1\n", r#"1:1: unknown key `\u{0}` | `windlass config schema` lists every key"#),
];

#[test]
fn invalid_hook_field_is_rejected_with_position_and_hint() {
    let world = TestWorld::new();
    for (field, expected) in INVALID_FIELDS {
        check_config_error(&world, &format!("hooks:\n  stop:\n    - {{command: ./c.sh, {field}}}\n"), expected);
    }
    let deep = format!("when: '{}goal{}'", "(".repeat(200), ")".repeat(200));
    let expected = "3:106: `when`: template exceeds maximum recursion limits | write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language";
    check_config_error(&world, &format!("hooks:\n  stop:\n    - {{command: ./c.sh, {deep}}}\n"), expected);
}

#[test]
fn invalid_hook_definition_is_rejected_with_position_and_hint() {
    let world = TestWorld::new();
    for (point, hook, expected) in INVALID_HOOKS {
        check_config_error(&world, &format!("hooks:\n  {point}:\n    - {hook}\n"), expected);
    }
}

#[test]
fn invalid_config_file_is_rejected_with_position_and_hint() {
    let world = TestWorld::new();
    for (text, expected) in INVALID_FILES {
        check_config_error(&world, text, expected);
    }
}

/// A command that would run hooks has the same error, and does nothing.
#[test]
fn commands_under_invalid_config_are_refused_without_side_effects() {
    let world = TestWorld::with_tasks(&["One"]);
    let before = world.json_lines(&["events"]);
    for text in
        ["hooks: {task_created: [{command: touch ran, timeout: 0}]}", "hooks: {task_created: [{comand: touch ran}]}"]
    {
        world.write(".windlass/config.yaml", text);
        let checked = world.expect_failure(&["config", "check"]);
        for line in [
            "task add Two",
            "task start T1",
            "run x --agent command:true",
            "hooks test task_created --run",
            "hooks list",
        ] {
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(world.expect_failure(&words), checked, "{line}");
            let trusted = [&["--trust"], words.as_slice()].concat();
            assert_eq!(world.expect_failure(&trusted), checked, "{line}");
        }
    }
    assert_eq!(world.json_lines(&["events"]), before);
    assert!(!world.path("ran").exists());
}
