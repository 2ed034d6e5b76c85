//! Accepted rules, refused rules with their error texts, and that written rules read back the same.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(rules: &Value) -> Result<Vec<ValidationRule>, ValidationRuleError> {
    ValidationRule::read_rule_list("validationRules", rules, Path::new("/home/me/project"))
}

fn rule(kind: &str, config: &Value) -> Value {
    json!([{"type": kind, "name": "it", "config": config}])
}

/// Checks that a rule is kept as it was given.
#[track_caller]
fn check_kept(kind: &str, config: &Value) -> ValidationRule {
    check_read(kind, config, config)
}

#[track_caller]
fn check_read(kind: &str, config: &Value, kept: &Value) -> ValidationRule {
    let mut rules = read(&rule(kind, config)).unwrap();
    let written = serde_json::to_value(&rules).unwrap();
    assert_eq!(written, rule(kind, kept));
    assert_eq!(serde_json::from_value::<Vec<ValidationRule>>(written).unwrap(), rules);
    rules.remove(0)
}

/// Checks the place of an error, and some words of its cause.
#[track_caller]
fn check_refused(rules: &Value, place: &str, cause: &str) {
    let error = read(rules).unwrap_err();
    assert_eq!(error.path, format!("validationRules{place}"), "{error}");
    assert!(error.cause.contains(cause), "{error}");
    assert!(!error.remedy.is_empty(), "{error}");
}

#[test]
fn missing_or_empty_rules_are_accepted() {
    assert_eq!(read(&json!([])), Ok(vec![]));
    assert_eq!(read(&Value::Null), Ok(vec![]));
}

#[test]
fn omitted_rule_fields_stay_omitted_when_serialized() {
    let plain = check_kept("command", &json!({"command": "cargo test"}));
    let ValidationRuleKind::Command(command) = plain.kind else { panic!("{plain:?}") };
    assert_eq!((command.timeout(), command.success_codes()), (Duration::from_secs(60), vec![0]));
    check_kept("content_pattern", &json!({"pattern": "x", "target": "task_notes"}));
    check_kept("coverage", &json!({"minCoverage": 80, "format": "lcov", "reportPath": "lcov.info"}));
    check_kept("file_existence", &json!({"paths": ["README.md"]}));
    check_kept("custom", &json!({"validatorId": "lint"}));
    check_read("custom", &json!({"validatorId": "lint"}), &json!({"validatorId": "lint"}));
    check_read("file_existence", &json!({"paths": ["a"], "allMustExist": null}), &json!({"paths": ["a"]}));
}

#[test]
fn everything_that_may_be_given_is_kept() {
    let full = json!({
        "command": "npm test", "expectedExitCode": 1, "successExitCodes": [0, 255], "timeout": 600_000,
        "workingDirectory": "packages/a",
    });
    let ValidationRuleKind::Command(command) = check_kept("command", &full).kind else { panic!("no command") };
    assert_eq!((command.timeout(), command.success_codes()), (CommandRule::MAX_TIMEOUT, vec![1, 0, 255]));
    let full = json!({"pattern": "a.b", "target": "agent_output", "flags": "gimsux", "mustMatch": false});
    check_kept("content_pattern", &full);
    check_kept("coverage", &json!({"minCoverage": 99.95, "format": "cobertura", "reportPath": "target/a b.xml"}));
    check_kept("file_existence", &json!({"paths": ["a", "b/c"], "allMustExist": false}));
}

#[test]
fn numbers_and_paths_are_kept_in_one_way() {
    let inside = json!({"command": "a", "workingDirectory": "/home/me/project/sub"});
    check_read("command", &inside, &json!({"command": "a", "workingDirectory": "sub"}));
    let inside = json!({"command": "a", "workingDirectory": "/home/me/project/"});
    check_read("command", &inside, &json!({"command": "a", "workingDirectory": "."}));
    let report = |least: Value| json!({"minCoverage": least, "format": "json", "reportPath": "x.json"});
    check_read("coverage", &report(json!(80.0)), &report(json!(80)));
    check_read("coverage", &report(json!(-0.0)), &report(json!(0)));
}

#[test]
fn rule_list_of_wrong_type_or_length_is_refused() {
    check_refused(&json!({}), "", "it is not a list");
    check_refused(&json!("tests"), "", "it is not a list");
    let many: Vec<_> = (0..21).map(|number| json!({"type": "custom", "name": number.to_string()})).collect();
    check_refused(&json!(many), "", "it has 21 rules; at most 20 are allowed");
}

#[test]
fn rule_without_valid_type_and_unique_name_is_refused() {
    let config = json!({"validatorId": "lint"});
    let custom = |name: Value| json!([{"type": "custom", "name": name, "config": config}]);
    check_refused(&json!([7]), "[0]", "invalid type: integer `7`");
    check_refused(&json!([["custom", "a", config]]), "[0]", "it is a list, and has to be an object");
    check_refused(&rule("custom", &json!(["lint"])), "[0].config", "it is a list, and has to be an object");
    check_refused(&json!([{"name": "a"}]), "[0]", "missing field `type`");
    check_refused(&json!([{"type": "comand", "name": "a"}]), "[0].type", "no rule has the type `comand`");
    check_refused(&json!([{"type": 3, "name": "a"}]), "[0].type", "invalid type: integer `3`");
    check_refused(&json!([{"type": "custom", "config": config}]), "[0]", "missing field `name`");
    check_refused(&custom(json!(" ")), "[0].name", "it is empty");
    check_refused(&custom(json!("a\u{1b}[2J")), "[0].name", "a control character");
    check_refused(&custom(json!("x".repeat(257))), "[0].name", "it has 257 bytes");
    let twice = json!({"type": "custom", "name": "lint", "config": config});
    check_refused(&json!([twice, twice]), "[1].name", "another rule is called \"lint\" too");
    let flat = json!([{"type": "custom", "name": "a", "validatorId": "lint"}]);
    check_refused(&flat, "[0].validatorId", "unknown field `validatorId`, expected one of `type`, `name`, `config`");
}

#[test]
fn invalid_command_config_is_refused_with_place_and_cause() {
    let check = |config: &Value, place: &str, cause: &str| {
        check_refused(&rule("command", config), &format!("[0].config{place}"), cause);
    };
    check(&json!({}), "", "missing field `command`");
    check(&json!(null), "", "missing field `command`");
    check(&json!("cargo test"), "", "invalid type: string \"cargo test\"");
    check(&json!({"command": ["ls"]}), ".command", "invalid type: sequence, expected a string");
    check(&json!({"command": "a\0"}), ".command", "a NUL byte");
    check(&json!({"command": "x".repeat(16 * 1024 + 1)}), ".command", "it has 16385 bytes");
    check(&json!({"command": "a", "expected_exit_code": 1}), ".expected_exit_code", "`expectedExitCode`");
    for timeout in [json!(0), json!(600_001)] {
        check(&json!({"command": "a", "timeout": timeout}), ".timeout", "it is out of bounds");
    }
    for timeout in [json!(2.5), json!(-1), json!("5s"), json!(1e300), json!(true)] {
        check(&json!({"command": "a", "timeout": timeout}), ".timeout", "invalid ");
    }
    check(&json!({"command": "a", "expectedExitCode": 256}), ".expectedExitCode", "expected u8");
    check(&json!({"command": "a", "successExitCodes": [0, -1]}), ".successExitCodes[1]", "expected u8");
    check(&json!({"command": "a", "successExitCodes": 1}), ".successExitCodes", "expected a sequence");
    check(&json!({"command": "a", "successExitCodes": vec![0; 257]}), ".successExitCodes", "it has 257 entries");
}

#[test]
fn path_outside_project_is_refused() {
    let outside = "it leads out of the project";
    for path in ["..", "a/../../b", "/home/me/project/../other", "/etc", "/home/me/project2", "/"] {
        let config = json!({"command": "a", "workingDirectory": path});
        check_refused(&rule("command", &config), "[0].config.workingDirectory", outside);
    }
    let config = json!({"minCoverage": 1, "format": "lcov", "reportPath": "/etc/passwd"});
    check_refused(&rule("coverage", &config), "[0].config.reportPath", outside);
    check_refused(&rule("file_existence", &json!({"paths": ["a", "../b"]})), "[0].config.paths[1]", outside);
}

#[test]
fn invalid_content_pattern_is_refused_with_place_and_cause() {
    let check = |config: &Value, place: &str, cause: &str| {
        check_refused(&rule("content_pattern", config), &format!("[0].config{place}"), cause);
    };
    let broken = |pattern: &str| json!({"pattern": pattern, "target": "agent_output"});
    check(&json!({"target": "agent_output"}), "", "missing field `pattern`");
    check(&json!({"pattern": "a"}), "", "missing field `target`");
    check(&json!({"pattern": "a", "target": "output"}), ".target", "expected `agent_output` or `task_notes`");
    check(&broken("done("), ".pattern", "cannot be used: found open group without closing ')'");
    check(&broken("(?=a)b"), ".pattern", "look-around is not supported");
    check(&broken("(a{1000}){1000}"), ".pattern", "compiled regex exceeded size limit");
    check(&broken(&"x".repeat(1025)), ".pattern", "it has 1025 bytes");
    let flags = |flags: Value| json!({"pattern": "a", "target": "agent_output", "flags": flags});
    check(&flags(json!("iy")), ".flags", "a flag that is not known");
    check(&flags(json!(["i"])), ".flags", "expected a string");
    check(&flags(json!("g".repeat(9))), ".flags", "or one twice");
    check(&json!({"pattern": "a", "target": "agent_output", "mustMatch": "yes"}), ".mustMatch", "expected a boolean");
}

#[test]
fn invalid_coverage_or_file_list_is_refused_with_place() {
    for given in [json!(-1), json!(100.5), json!("80%")] {
        let config = json!({"minCoverage": given, "format": "lcov", "reportPath": "a"});
        check_refused(&rule("coverage", &config), "[0].config.minCoverage", "");
    }
    let config = json!({"minCoverage": 1, "format": "clover", "reportPath": "a"});
    check_refused(&rule("coverage", &config), "[0].config.format", "expected one of `lcov`, `json`, `cobertura`");
    let check = |paths: Value, place: &str, cause: &str| {
        check_refused(&rule("file_existence", &json!({"paths": paths})), &format!("[0].config.paths{place}"), cause);
    };
    check_refused(&rule("file_existence", &json!({"paths": null})), "[0].config", "missing field `paths`");
    check(json!([]), "", "it has 0 entries");
    check(json!("README.md"), "", "expected a sequence");
    check(json!(["a", 3]), "[1]", "expected a string");
    check(json!([""]), "[0]", "it is empty");
    check(json!(vec!["a"; 101]), "", "it has 101 entries");
}

#[test]
fn flags_mean_what_they_mean_in_javascript() {
    let check = |pattern: &str, flags: &str, text: &str, found: bool| {
        let config = json!({"pattern": pattern, "target": "agent_output", "flags": flags});
        let ValidationRuleKind::ContentPattern(rule) = check_kept("content_pattern", &config).kind else {
            panic!("no pattern")
        };
        assert_eq!(rule.build_regex().unwrap().is_match(text), found, "{pattern:?} {flags:?} {text:?}");
    };
    check("done", "", "DONE", false);
    check("done", "i", "DONE", true);
    check("^b$", "", "a\nb", false);
    check("^b$", "gm", "a\nb", true);
    check("a.b", "", "a\nb", false);
    check("a.b", "su", "a\nb", true);
    check("a b # c", "x", "ab", true);
    check(r"a\/b", "", "a/b", true);
    check(&"x".repeat(1024), "i", &"X".repeat(1024), true);
    check(r"(?<n>\d+) passed", "", "12 passed", true);
}

#[test]
fn coverage_percent_is_never_rounded_up_when_displayed() {
    let check = |percent: f64, shown: &str| assert_eq!(CoveragePercent::new(percent).unwrap().to_string(), shown);
    check(80.0, "80%");
    check(79.999, "79.99%");
    check(57.3, "57.3%");
    check(0.5, "0.5%");
    assert_eq!([f64::NAN, -0.1, 100.1, f64::INFINITY].map(CoveragePercent::new), [None; 4]);
}

/// Returns any JSON, with the words of rules among its names and texts.
fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "type",
        "name",
        "config",
        "command",
        "timeout",
        "content_pattern",
        "pattern",
        "target",
        "agent_output",
        "flags",
        "coverage",
        "minCoverage",
        "format",
        "lcov",
        "reportPath",
        "file_existence",
        "paths",
        "custom",
        "validatorId",
        "successExitCodes",
        "workingDirectory",
        "/home/me/project",
        "..",
        "a{9}{9}",
        "",
    ];
    let word = || prop_oneof![4 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(word(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns an accepted rule, with and without its optional fields.
fn any_rule() -> impl Strategy<Value = Value> {
    let path = || "[a-z]{1,8}(/[a-zé ]{1,8}){0,3}";
    let command = (".{1,40}", prop::option::of(0..=255u8), prop::option::of(1..=600_000u64), prop::option::of(path()));
    let command = command.prop_map(|(command, code, time, directory)| {
        (
            "command",
            json!({"command": format!("a{command}").replace('\0', ""), "expectedExitCode": code, "timeout": time,
            "workingDirectory": directory}),
        )
    });
    let pattern = ("[a-z.*]{0,9}", "[imsxgu]{0,5}", prop::option::of(any::<bool>())).prop_map(|(pattern, flags, must)| {
        let config = json!({"pattern": format!("a{}", pattern.replace("**", "*")), "target": "task_notes", "flags": flags, "mustMatch": must});
        ("content_pattern", config)
    });
    let coverage = (0.0..=100.0f64, path())
        .prop_map(|(least, path)| ("coverage", json!({"minCoverage": least, "format": "json", "reportPath": path})));
    let files = prop::collection::vec(path(), 1..5).prop_map(|paths| ("file_existence", json!({"paths": paths})));
    let custom = "[a-z]{1,9}".prop_map(|id| ("custom", json!({"validatorId": id})));
    let any = prop_oneof![command.boxed(), pattern.boxed(), coverage.boxed(), files.boxed(), custom.boxed()];
    any.prop_map(|(kind, config)| json!({"type": kind, "name": kind, "config": config}))
}

/// Returns whether a rule holds a null, which stands for a field that was left out; a file may be called `null`.
fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn reader_survives_any_json(given in any_json()) {
        if let Err(error) = read(&given) {
            prop_assert!(!error.cause.is_empty() && !error.remedy.is_empty());
            prop_assert!(error.to_string().len() < 4096);
        }
        if let Err(error) = read(&json!([given])) {
            prop_assert!(error.path.starts_with("validationRules"));
        }
    }

    /// A kept rule reads back the same, from the log and from outside.
    #[test]
    fn accepted_rule_reads_back_the_same(given in any_rule()) {
        let rules = read(&json!([given])).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let text = serde_json::to_string(&rules).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Vec<ValidationRule>>(&text).unwrap(), &rules);
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read(&value).unwrap(), rules);
        prop_assert!(!holds_null(&value), "{}", text);
    }
}
