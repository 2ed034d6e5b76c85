//! Tests of rules with real programs, files and texts.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_engine::validation::CommandRule;
use windlass_process::overlay_environment;

use super::*;

/// A project with rules to check.
struct ValidationScene {
    place: TempDir,
    environment: Environment,
    mask: SecretMask,
    owner_lock: OwnerLock,
    permission: ProgramPermission,
    agent_output: Option<String>,
    notes: Vec<String>,
    control: RunControl,
}

impl ValidationScene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let owner_lock = OwnerLock::acquire(&place.path().join("owners"), 1).unwrap();
        fs::create_dir(place.path().join("project")).unwrap();
        Self {
            place,
            environment: overlay_environment(
                &[],
                vec![("PATH", "/usr/bin:/bin".into()), ("WINDLASS_RUN", "run-7".into())],
            ),
            mask: SecretMask::new([("TOKEN", "s3cr3t-value")]),
            owner_lock,
            permission: ProgramPermission {
                trust: ExecutionTrust::Trusted,
                agent_commands: AgentCommandPermission::Allow,
                validators: BTreeMap::new(),
            },
            agent_output: None,
            notes: Vec::new(),
            control: RunControl::new(),
        }
    }

    fn project_directory(&self) -> PathBuf {
        self.place.path().join("project")
    }

    fn make_pipe(&self, name: &str) {
        rustix::fs::mkfifoat(rustix::fs::CWD, self.project_directory().join(name), 0o600.into()).unwrap();
    }

    fn add_validator(&mut self, name: &str, command: &str) {
        self.permission.validators.insert(name.to_owned(), parse_command_rule(&json!({"command": command})));
    }

    fn parse_rules(&self, rules: &Value) -> Vec<ValidationRule> {
        ValidationRule::read_rule_list("validationRules", rules, &self.project_directory()).unwrap()
    }

    fn validate(&self, rules: &Value) -> Result<Vec<RuleResult>, ValidationCancellation> {
        let matter = ValidationInput {
            agent_output: self.agent_output.as_deref(),
            task_notes: &self.notes,
            context: &json!({"taskId": "T-3", "iteration": 2, "agentOutput": self.agent_output}),
        };
        validate_rules(&self.parse_rules(rules), matter, &self.workshop(), &self.control)
    }

    fn workshop(&self) -> ValidatorEnv<'_> {
        ValidatorEnv {
            directory: self.project_directory(),
            environment: self.environment.clone(),
            mask: self.mask.clone(),
            permission: self.permission.clone(),
            launcher: None,
            owner_lock: &self.owner_lock,
        }
    }

    fn check_one(&self, kind: &str, config: Value) -> (bool, String) {
        let rules = json!([{"type": kind, "name": "it", "config": config}]);
        let [result] = &self.validate(&rules).unwrap()[..] else { panic!("one rule, one result") };
        assert_eq!(result.rule_name, "it");
        (result.passed, result.message.clone())
    }

    fn check_command(&self, config: Value) -> (bool, String) {
        self.check_one("command", config)
    }
}

fn parse_command_rule(config: &Value) -> CommandRule {
    serde_json::from_value(config.clone()).unwrap()
}

fn command_rules(commands: impl IntoIterator<Item = String>) -> Value {
    let rule = |(at, command): (usize, String)| json!({"type": "command", "name": format!("rule {at}"), "config": {"command": command}});
    commands.into_iter().enumerate().map(rule).collect()
}

fn expected_result(passed: bool, message: &str) -> (bool, String) {
    (passed, message.to_owned())
}

#[test]
fn command_that_names_a_missing_script_is_broken() {
    let mut scene = ValidationScene::new();
    scene.add_validator("missing", "python gone.py");
    let rules = json!([
        {"type": "command", "name": "script", "config": {"command": "sh gone.sh"}},
        {"type": "custom", "name": "validator", "config": {"validatorId": "missing"}},
        {"type": "command", "name": "expected", "config": {"command": "sh gone.sh", "successExitCodes": [2, 127]}},
        {"type": "command", "name": "verdict", "config": {"command": "exit 2"}},
    ]);
    let results = scene.validate(&rules).unwrap();
    assert_eq!(results.iter().map(|result| result.broken).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(results.iter().map(|result| result.passed).collect::<Vec<_>>(), [false, false, true, false]);
    let expected = format!("the rule is broken: `gone.sh` does not exist in {}", scene.project_directory().display());
    assert!(results[0].message.starts_with(&expected), "{results:?}");
}

#[test]
fn command_rule_passes_only_on_accepted_exit_code() {
    let scene = ValidationScene::new();
    let check = |config: Value, passed: bool, message: &str| {
        assert_eq!(scene.check_command(config), expected_result(passed, message))
    };
    check(json!({"command": "true"}), true, "`true` ended with exit 0");
    check(json!({"command": "exit 3"}), false, "`exit 3` ended with exit 3; exit 0 would pass. It wrote nothing");
    check(json!({"command": "exit 3", "expectedExitCode": 3}), true, "`exit 3` ended with exit 3");
    check(json!({"command": "exit 1", "successExitCodes": [0, 1]}), true, "`exit 1` ended with exit 1");
    check(
        json!({"command": "echo no; exit 0", "successExitCodes": [4, 5]}),
        false,
        "`echo no; exit 0` ended with exit 0; exit 4 or 5 would pass. It wrote:\nno",
    );
    check(json!({"command": "kill -9 $$"}), false, "`kill -9 $$` was ended by signal 9. It wrote nothing");
    let (passed, message) = scene.check_command(json!({"command": "no-such-program-here --x"}));
    assert!(!passed && message.contains("exit 127") && message.contains("not found"), "{message}");
}

#[test]
fn command_runs_in_its_working_directory() {
    let scene = ValidationScene::new();
    fs::create_dir_all(scene.project_directory().join("packages/a")).unwrap();
    fs::write(scene.project_directory().join("packages/a/mark"), "").unwrap();
    let run = |config| scene.check_command(config);
    assert!(run(json!({"command": "test -e mark", "workingDirectory": "packages/a"})).0);
    assert!(!run(json!({"command": "test -e mark"})).0);
    assert_eq!(
        run(json!({"command": "true", "workingDirectory": "packages/b"})),
        expected_result(
            false,
            "`true` was not run: there is no directory `packages/b` in the project; make it, or correct `workingDirectory`"
        )
    );
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), scene.project_directory().join("packages/out")).unwrap();
    std::os::unix::fs::symlink("a", scene.project_directory().join("packages/in")).unwrap();
    let (passed, message) = run(json!({"command": "true", "workingDirectory": "packages/out"}));
    assert!(!passed && message.contains("`packages/out` leads out of the project by a link"), "{message}");
    assert!(run(json!({"command": "test -e mark", "workingDirectory": "packages/in"})).0);
}

#[test]
fn command_is_ended_with_its_children_at_timeout() {
    let scene = ValidationScene::new();
    let began = Instant::now();
    let hangs = "echo waiting; (sleep 1000 & echo $! >child); trap '' TERM; sleep 1000";
    let (passed, message) = scene.check_one("command", json!({"command": hangs, "timeout": 200}));
    assert!(!passed);
    assert!(
        message.ends_with(
            "was ended after 200 ms, its timeout: make it faster, see why it hangs, or give it more time. It wrote:\nwaiting"
        ),
        "{message}"
    );
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let child = fs::read_to_string(scene.project_directory().join("child")).unwrap();
    let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(child).is_err(), "nothing of it is left");
}

#[test]
fn output_excerpt_is_masked_and_bounded() {
    let scene = ValidationScene::new();
    fs::write(
        scene.project_directory().join("test.sh"),
        "for i in $(seq 8000); do echo \"test number $i ... ok\"; [ $i = 4000 ] && echo 'error: s3cr3t-value is wrong'; done\n\
         printf '\\033[31mred\\033[0m\\a\\n' >&2\nexit 1\n",
    )
    .unwrap();
    let (passed, message) = scene.check_command(json!({"command": "sh test.sh # s3cr3t-value"}));
    assert!(!passed && message.len() < 5000, "{}", message.len());
    assert!(message.starts_with("`sh test.sh # [secret TOKEN]` ended with exit 1"), "{message}");
    assert!(message.contains("test number 1 ... ok") && message.ends_with("red"), "{message}");
    assert!(
        message.contains(" bytes left out]") && !message.contains("s3cr3t") && !message.contains('\u{1b}'),
        "{message}"
    );
    assert!(message.contains("\nerror: [secret TOKEN] is wrong\n"), "from the middle of it: {message}");
}

#[test]
fn five_rules_run_at_once_and_results_are_in_order() {
    let scene = ValidationScene::new();
    // None of these can end before the fifth has begun.
    for number in 0..4 {
        scene.make_pipe(&format!("pipe{number}"));
    }
    let waiting = (0..4).map(|number| format!("read line <pipe{number}; exit $line"));
    let last = "for number in 0 1 2 3; do echo $number >pipe$number; done; exit 4".to_owned();
    let results = scene.validate(&command_rules(waiting.chain([last]))).unwrap();
    let names: Vec<_> = results.iter().map(|result| (result.rule_name.as_str(), result.passed)).collect();
    assert_eq!(names, [("rule 0", true), ("rule 1", false), ("rule 2", false), ("rule 3", false), ("rule 4", false)]);
    for (number, result) in results.iter().enumerate() {
        assert!(result.message.contains(&format!("ended with exit {number}")), "{result:?}");
    }
    // Never more than five at once.
    fs::create_dir(scene.project_directory().join("marks")).unwrap();
    let counts = "mkdir marks/$$; set -- marks/*; rmdir marks/$$; [ $# -le 5 ]".to_owned();
    let results = scene.validate(&command_rules(vec![counts; ValidationRule::MAX_RULES])).unwrap();
    assert!(results.iter().all(|result| result.passed), "{results:?}");
}

#[test]
fn cancelled_validation_has_no_results() {
    let scene = ValidationScene::new();
    scene.make_pipe("begun");
    thread::scope(|scope| {
        let control = &scene.control;
        let pipe = scene.project_directory().join("begun");
        scope.spawn(move || {
            // The pipe opens only once the program has begun.
            fs::read_to_string(pipe).unwrap();
            control.cancel_runs();
        });
        let rules = command_rules(["echo >begun; sleep 1000".to_owned(), "true".to_owned()]);
        assert_eq!(scene.validate(&rules), Err(ValidationCancellation));
    });
    assert_eq!(scene.validate(&command_rules(["true".to_owned()])), Err(ValidationCancellation), "it stays called off");
    assert_eq!(scene.validate(&json!([])), Err(ValidationCancellation));
}

#[test]
fn validator_gets_the_context_and_command_gets_no_input() {
    let mut scene = ValidationScene::new();
    scene.agent_output = Some("all done".to_owned());
    scene.add_validator(
        "heard",
        "cat; echo; echo \"$WINDLASS_RULE $WINDLASS_TASK_ID $WINDLASS_ITERATION [$WINDLASS_RUN]\"; exit 1",
    );
    let (passed, message) = scene.check_one("custom", json!({"validatorId": "heard"}));
    assert!(!passed);
    assert_eq!(
        message,
        "the validator `heard` ended with exit 1; exit 0 would pass. It wrote:\n\
         {\"agentOutput\":\"all done\",\"iteration\":2,\"taskId\":\"T-3\"}\nit T-3 2 []"
    );
    let (_, message) = scene
        .check_command(json!({"command": "cat; echo \"$WINDLASS_RULE $WINDLASS_TASK_ID [$WINDLASS_RUN]\"; exit 1"}));
    assert!(message.ends_with("It wrote:\nit T-3 [run-7]"), "{message}");
}

#[test]
fn permission_decides_which_programs_run() {
    let mut scene = ValidationScene::new();
    let touch = || json!({"command": "touch ran"});
    let custom = || json!({"validatorId": "mark"});
    let ran = |scene: &ValidationScene| fs::remove_file(scene.project_directory().join("ran")).is_ok();
    scene.permission.agent_commands = AgentCommandPermission::Named;
    let refused = "`touch ran` may not be run: this project runs only commands that its configuration names (`agent_commands: \
                   named`): ask a person to add it under `validators:`, or to set `agent_commands: allow`";
    assert_eq!(scene.check_command(touch()), expected_result(false, refused));
    assert_eq!(
        scene.check_one("custom", custom()),
        expected_result(
            false,
            "there is no validator `mark`: the configuration has none: ask a person to add one under `validators:`"
        )
    );
    scene.add_validator("marks", "touch  ran");
    assert_eq!(
        scene.check_one("custom", custom()),
        expected_result(false, "there is no validator `mark`: did you mean `marks`? known are `marks`")
    );
    let (passed, message) = scene.check_command(touch());
    assert!(!passed && message.ends_with("use one of `marks`: by its name in a rule of `type: custom`, or its command word for word; or ask a person to add this one under `validators:`"), "{message}");
    assert!(!ran(&scene));
    scene.add_validator("mark", "touch ran");
    assert!(scene.check_one("custom", custom()).0 && ran(&scene));
    assert!(scene.check_command(touch()).0 && ran(&scene), "word for word what a person has written down");
    fs::create_dir(scene.project_directory().join("elsewhere")).unwrap();
    assert!(
        !scene.check_command(json!({"command": "touch ran", "workingDirectory": "elsewhere"})).0,
        "but not elsewhere"
    );
    let never = [
        (
            AgentCommandPermission::Deny,
            ExecutionTrust::Trusted,
            "this project runs no commands for agents (`agent_commands: deny`): use rules of another type, or ask a person to set `agent_commands: named`",
        ),
        (
            AgentCommandPermission::Allow,
            ExecutionTrust::Untrusted,
            "this project's configuration is not trusted, so nothing is run for it: ask a person to run `windlass trust`: it shows what would run and asks",
        ),
        (
            AgentCommandPermission::Allow,
            ExecutionTrust::Nested,
            "a program that judges work cannot start more programs for that: let the rule's or hook's command do the work itself",
        ),
    ];
    for (agent_commands, trust, message) in never {
        (scene.permission.agent_commands, scene.permission.trust) = (agent_commands, trust);
        assert_eq!(scene.check_command(touch()), expected_result(false, message));
        assert_eq!(scene.check_one("custom", custom()), expected_result(false, message));
        assert!(!ran(&scene));
    }
}

#[test]
fn patterns_are_looked_for_in_the_output() {
    let mut scene = ValidationScene::new();
    let pattern = |pattern: &str, must: bool| json!({"pattern": pattern, "target": "agent_output", "mustMatch": must});
    let none = "there is no agent output to search: give it as `agentOutput`";
    assert_eq!(scene.check_one("content_pattern", pattern("a", true)), expected_result(false, none));
    assert_eq!(
        scene.check_one("content_pattern", pattern("a", false)),
        expected_result(false, none),
        "nothing was checked"
    );
    scene.agent_output = Some("one\n  12   tests passed\nthree".to_owned());
    let check = |given: Value, passed: bool, message: &str| {
        assert_eq!(scene.check_one("content_pattern", given), expected_result(passed, message));
    };
    let line = "in line 2: `12 tests passed`";
    check(pattern(r"\d+ +tests", true), true, &format!("`\\d+ +tests` is in the agent's output, {line}"));
    check(
        pattern("failed", true),
        false,
        "`failed` is not in the agent's output: it has to say something that matches",
    );
    check(pattern("failed", false), true, "`failed` is not in the agent's output");
    check(
        pattern("passed", false),
        false,
        &format!("`passed` must not be in the agent's output, and is, {line}: fix what it reports"),
    );
    scene.agent_output = Some(format!("{}s3cr3t-value", "x".repeat(195)));
    let (_, message) = scene.check_one("content_pattern", pattern("x", false));
    assert!(message.ends_with("x[secr…`: fix what it reports"), "masked, then cut: {message}");
    scene.agent_output = Some("x".repeat(300 * 1024));
    let (passed, message) = scene.check_one("content_pattern", pattern("x", true));
    assert!(!passed && message.contains("has 307200 bytes, and at most 131072 are searched"), "{message}");
}

#[test]
fn patterns_are_looked_for_in_the_notes() {
    let mut scene = ValidationScene::new();
    let pattern = |pattern: &str, must: bool| json!({"pattern": pattern, "target": "task_notes", "mustMatch": must});
    let look = |scene: &ValidationScene, given: Value| scene.check_one("content_pattern", given);
    assert_eq!(
        look(&scene, pattern("seen", true)),
        expected_result(false, "`seen` is not in the task's notes, because there are none: add one with `note_add`")
    );
    assert!(look(&scene, pattern("seen", false)).0);
    scene.notes = vec!["I have seen it".to_owned(), "and written\nit down".to_owned()];
    assert_eq!(
        look(&scene, pattern("seen", true)),
        expected_result(true, "`seen` is in the task's notes: line 1: `I have seen it`")
    );
    assert!(!look(&scene, pattern("down", false)).0);
    assert!(!look(&scene, pattern("seen it.*and", true)).0, "each note is a text of its own");
    scene.notes.insert(0, "old ".repeat(40_000));
    assert!(look(&scene, pattern("seen", true)).0);
    let (passed, message) = look(&scene, pattern("old", false));
    assert!(!passed && message.contains("not in the newest 2 notes, and the 1 older ones are too long"), "{message}");
}

/// About the worst case of a pattern within its bounds: every state is alive at every letter.
#[test]
fn worst_case_pattern_is_evaluated_within_time_limit() {
    let mut scene = ValidationScene::new();
    scene.agent_output = Some("a".repeat(8 * 1024));
    let began = Instant::now();
    let pattern = json!({"pattern": "(?:a?){600}b", "target": "agent_output"});
    assert!(!scene.check_one("content_pattern", pattern).0);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn files_that_are_missing_are_named() {
    let scene = ValidationScene::new();
    fs::write(scene.project_directory().join("a"), "").unwrap();
    fs::create_dir(scene.project_directory().join("d")).unwrap();
    std::os::unix::fs::symlink("nowhere", scene.project_directory().join("link")).unwrap();
    let check = |config: Value, passed: bool, message: &str| {
        assert_eq!(scene.check_one("file_existence", config), expected_result(passed, message));
    };
    let rest = "Paths are relative to the project's directory: make what is missing, or correct the rule's `paths`";
    check(json!({"paths": ["a"]}), true, "`a` is there");
    check(json!({"paths": ["a", "d", "./d/"]}), true, "all 3 paths are there");
    check(
        json!({"paths": ["a", "b", "link"]}),
        false,
        &format!("2 of 3 paths missing: `b`, `link` (a link to nothing). {rest}"),
    );
    check(json!({"paths": ["b", "a"], "allMustExist": false}), true, "1 of 2 paths are there, and one is enough");
    check(
        json!({"paths": ["b", "c"], "allMustExist": false}),
        false,
        "2 of 2 paths missing: `b`, `c`. Paths are relative to the project's directory: make one of them, or correct the rule's \
         `paths`",
    );
    let (_, message) = scene.check_one("file_existence", json!({"paths": ["a/b"]}));
    assert!(message.contains("`a/b` (Not a directory"), "{message}");
    let many: Vec<_> = (0..100).map(|number| format!("file{number}")).collect();
    let (_, message) = scene.check_one("file_existence", json!({"paths": many}));
    assert!(
        message.starts_with("100 of 100 paths missing: `file0`, ") && message.contains(" and 90 more. "),
        "{message}"
    );
}

#[test]
fn invalid_rule_of_older_log_fails() {
    let scene = ValidationScene::new();
    let rule = json!({"type": "content_pattern", "name": "it", "config": {"pattern": "(", "target": "task_notes"}});
    let rules: Vec<ValidationRule> = serde_json::from_value(json!([rule])).unwrap();
    let matter = ValidationInput { agent_output: None, task_notes: &[], context: &Value::Null };
    let results = validate_rules(&rules, matter, &scene.workshop(), &scene.control).unwrap();
    assert!(!results[0].passed && results[0].message.contains("is not a valid regular expression"), "{results:?}");
}
