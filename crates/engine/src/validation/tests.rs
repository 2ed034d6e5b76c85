//! What is taken, what is refused and in which words, and that what is written reads back the same.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(rules: &Value) -> Result<Vec<ValidationRule>, RuleError> {
    ValidationRule::read_all("validationRules", rules, Path::new("/home/me/project"))
}

fn rule(kind: &str, config: &Value) -> Value {
    json!([{"type": kind, "name": "it", "config": config}])
}

/// What is kept of a rule is what was given of it.
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

#[track_caller]
fn check_refused(rules: &Value, message: &str, remedy: &str) {
    let error = read(rules).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.remedy.as_str()), (message, remedy));
}

#[test]
fn no_rules_are_taken_too() {
    assert_eq!(read(&json!([])), Ok(vec![]));
    assert_eq!(read(&Value::Null), Ok(vec![]));
}

#[test]
fn what_was_not_given_is_not_written_down() {
    let plain = check_kept("command", &json!({"command": "cargo test"}));
    let RuleKind::Command(command) = plain.kind else { panic!("{plain:?}") };
    assert_eq!((command.timeout(), command.successes()), (Duration::from_secs(60), vec![0]));
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
    let RuleKind::Command(command) = check_kept("command", &full).kind else { panic!("no command") };
    assert_eq!((command.timeout(), command.successes()), (CommandRule::LONGEST, vec![1, 0, 255]));
    let full = json!({"pattern": "a.b", "target": "agent_output", "flags": "gimsux", "mustMatch": false});
    check_kept("content_pattern", &full);
    check_kept("coverage", &json!({"minCoverage": 99.95, "format": "cobertura", "reportPath": "target/a b.xml"}));
    check_kept("file_existence", &json!({"paths": ["a", "b/c"], "allMustExist": false}));
}

#[test]
fn numbers_and_paths_are_kept_in_one_way() {
    check_read("command", &json!({"command": "a", "timeout": 5e3}), &json!({"command": "a", "timeout": 5000}));
    let inside = json!({"command": "a", "workingDirectory": "/home/me/project/sub"});
    check_read("command", &inside, &json!({"command": "a", "workingDirectory": "sub"}));
    let inside = json!({"command": "a", "workingDirectory": "/home/me/project/"});
    check_read("command", &inside, &json!({"command": "a", "workingDirectory": "."}));
    let report = |least: Value| json!({"minCoverage": least, "format": "json", "reportPath": "x.json"});
    check_read("coverage", &report(json!(80.0)), &report(json!(80)));
    check_read("coverage", &report(json!(-0.0)), &report(json!(0)));
}

#[test]
fn a_list_that_is_none_or_too_long_is_refused() {
    let remedy = "give a list of rules, `[{type, name, config}]`";
    check_refused(&json!({}), "`validationRules` is an object, not a list", remedy);
    check_refused(&json!("tests"), "`validationRules` is the text \"tests\", not a list", remedy);
    let many: Vec<_> = (0..21).map(|number| json!({"type": "custom", "name": number.to_string()})).collect();
    check_refused(
        &json!(many),
        "`validationRules` has 21 rules; at most 20 are taken",
        "join some of them in one `command` rule that runs a script",
    );
}

#[test]
fn a_rule_needs_its_type_and_a_name_of_its_own() {
    let types = "`command`, `content_pattern`, `coverage`, `file_existence`, `custom`";
    let config = json!({"validatorId": "lint"});
    check_refused(&json!([7]), "`validationRules[0]` is 7, not an object", "give `{type, name, config}`");
    check_refused(&json!([{"name": "a"}]), "`validationRules[0].type` is missing", &format!("give one of {types}"));
    check_refused(
        &json!([{"type": "comand", "name": "a"}]),
        "`validationRules[0].type` is the text \"comand\", not a word that is known",
        &format!("did you mean `command`? it is one of {types}"),
    );
    check_refused(
        &json!([{"type": 3, "name": "a"}]),
        "`validationRules[0].type` is 3, not a word that is known",
        &format!("it is one of {types}"),
    );
    let name = "give what the rule checks, in a few words";
    check_refused(&json!([{"type": "custom", "config": config}]), "`validationRules[0].name` is missing", name);
    check_refused(
        &json!([{"type": "custom", "name": " ", "config": config}]),
        "`validationRules[0].name` is empty",
        "give a text that is not blank, or leave the rule out",
    );
    check_refused(
        &json!([{"type": "custom", "name": "a\u{1b}[2J", "config": config}]),
        "`validationRules[0].name` has a control character in it",
        "give the name in one plain line",
    );
    check_refused(
        &json!([{"type": "custom", "name": "x".repeat(257), "config": config}]),
        "`validationRules[0].name` has 257 bytes; at most 256 are taken",
        "write it shorter",
    );
    let twice = json!({"type": "custom", "name": "lint", "config": config});
    check_refused(
        &json!([twice, twice]),
        "`validationRules[1].name` is \"lint\", as another rule's name is",
        "give each rule a name of its own: results go by it",
    );
    check_refused(
        &json!([{"type": "custom", "name": "a", "validatorId": "lint"}]),
        "`validationRules[0]` has a field \"validatorId\", which is not known here",
        "known are `type`, `name`, `config`",
    );
}

#[test]
fn a_wrong_command_is_refused() {
    let check = |config: &Value, message: &str, remedy: &str| {
        let message = format!("`validationRules[0].config{message}");
        check_refused(&rule("command", config), &message, remedy);
    };
    check(&json!({}), ".command` is missing", "give the shell command to run");
    check(&json!(null), ".command` is missing", "give the shell command to run");
    check(
        &json!("cargo test"),
        "` is the text \"cargo test\", not an object",
        "give `{command}`, with the shell command to run",
    );
    check(&json!({"command": ["ls"]}), ".command` is a list, not a text", "give a text");
    check(&json!({"command": "a\0"}), ".command` has a NUL byte in it", "write it without");
    check(
        &json!({"command": "x".repeat(16 * 1024 + 1)}),
        ".command` has 16385 bytes; at most 16384 are taken",
        "write it shorter",
    );
    check(
        &json!({"command": "a", "expected_exit_code": 1}),
        "` has a field \"expected_exit_code\", which is not known here",
        "did you mean `expectedExitCode`? known are `command`, `expectedExitCode`, `successExitCodes`, `timeout`, \
         `workingDirectory`",
    );
    let times = "give milliseconds as a whole number from 1 to 600000; 60000 is the default";
    let shown = [(json!(2.5), "2.5"), (json!(-1), "-1"), (json!(0), "0"), (json!(600_001), "600001")];
    let other = [(json!("5s"), "the text \"5s\""), (json!(1e300), "1e300"), (json!(true), "true")];
    for (timeout, shown) in shown.into_iter().chain(other) {
        let message = format!(".timeout` is {shown}, not a number of milliseconds that is taken");
        check(
            &json!({"command": "a", "timeout": timeout}),
            &message.replace("1e300", &json!(1e300).to_string()),
            times,
        );
    }
    let code = "give an exit code from 0 to 255";
    check(&json!({"command": "a", "expectedExitCode": 256}), ".expectedExitCode` is 256, not an exit code", code);
    check(&json!({"command": "a", "successExitCodes": [0, -1]}), ".successExitCodes[1]` is -1, not an exit code", code);
    check(
        &json!({"command": "a", "successExitCodes": 1}),
        ".successExitCodes` is 1, not a list",
        "give a list of exit codes, such as `[0, 1]`",
    );
}

#[test]
fn a_path_out_of_the_project_is_refused() {
    let remedy = "give a path inside the project, relative to its directory";
    let at = "`validationRules[0].config.workingDirectory`";
    for up in ["..", "a/../../b", "/home/me/project/../other"] {
        let config = json!({"command": "a", "workingDirectory": up});
        check_refused(&rule("command", &config), &format!("{at} is {up:?}, with a `..` in it"), remedy);
    }
    for outside in ["/etc", "/home/me/project2", "/"] {
        let config = json!({"command": "a", "workingDirectory": outside});
        check_refused(&rule("command", &config), &format!("{at} is {outside:?}, which is outside the project"), remedy);
    }
    let config = json!({"minCoverage": 1, "format": "lcov", "reportPath": "/etc/passwd"});
    let at = "`validationRules[0].config.reportPath`";
    check_refused(
        &rule("coverage", &config),
        &format!("{at} is \"/etc/passwd\", which is outside the project"),
        remedy,
    );
    let config = json!({"paths": ["a", "../b"]});
    let at = "`validationRules[0].config.paths[1]`";
    check_refused(&rule("file_existence", &config), &format!("{at} is \"../b\", with a `..` in it"), remedy);
}

#[test]
fn a_wrong_pattern_is_refused() {
    let check = |config: &Value, message: &str, remedy: &str| {
        check_refused(&rule("content_pattern", config), &format!("`validationRules[0].config.{message}"), remedy);
    };
    let broken = |pattern: &str| json!({"pattern": pattern, "target": "agent_output"});
    check(&json!({"target": "agent_output"}), "pattern` is missing", "give a regular expression");
    check(&json!({"pattern": "a"}), "target` is missing", "give one of `agent_output`, `task_notes`");
    check(
        &json!({"pattern": "a", "target": "output"}),
        "target` is the text \"output\", not a word that is known",
        "it is one of `agent_output`, `task_notes`",
    );
    check(
        &broken("done("),
        "pattern` is no regular expression that can be used: found open group without closing ')'",
        "escape what is meant as it stands, such as `\\(` or `\\[`; in JSON a backslash is written twice",
    );
    check(
        &broken("(?=a)b"),
        "pattern` is no regular expression that can be used: look-around is not supported",
        "write it without look-around and back references: use two rules, one of them with `mustMatch: false`",
    );
    check(
        &broken("(a{1000}){1000}"),
        "pattern` is no regular expression that can be used: compiled regex exceeded size limit",
        "write it shorter, or with fewer and smaller repetitions; `.*` costs nothing",
    );
    check(&broken(&"x".repeat(1025)), "pattern` has 1025 bytes; at most 1024 are taken", "write it shorter");
    let known = "give some of `i` (any case), `m` (`^` and `$` at every line), `s` (`.` is any character), `x` (spaces and `#` \
                 comments do not count); `d`, `g`, `u` and `v` change nothing";
    let flags = |flags: Value| json!({"pattern": "a", "target": "agent_output", "flags": flags});
    check(&flags(json!("iy")), "flags` has 'y' in it, which is no flag that is known", known);
    check(&flags(json!(["i"])), "flags` is a list, not a text", known);
    check(&flags(json!("g".repeat(9))), "flags` names a flag twice", known);
    check(
        &json!({"pattern": "a", "target": "agent_output", "mustMatch": "yes"}),
        "mustMatch` is the text \"yes\", not true or false",
        "give `true` or `false`, without quotes",
    );
}

#[test]
fn a_wrong_report_or_list_of_files_is_refused() {
    let least = "give the percentage of lines that the tests have to reach, from 0 to 100";
    for (given, shown) in [(json!(-1), "-1"), (json!(100.5), "100.5"), (json!("80%"), "the text \"80%\"")] {
        let config = json!({"minCoverage": given, "format": "lcov", "reportPath": "a"});
        let message = format!("`validationRules[0].config.minCoverage` is {shown}, not a percentage");
        check_refused(&rule("coverage", &config), &message, least);
    }
    check_refused(
        &rule("coverage", &json!({"minCoverage": 1, "format": "clover", "reportPath": "a"})),
        "`validationRules[0].config.format` is the text \"clover\", not a word that is known",
        "it is one of `lcov`, `json`, `cobertura`",
    );
    let files = "give a list of paths in the project, such as `[\"README.md\"]`";
    let check = |paths: Value, message: &str, remedy: &str| {
        let message = format!("`validationRules[0].config.paths{message}");
        check_refused(&rule("file_existence", &json!({"paths": paths})), &message, remedy);
    };
    check(json!(null), "` is missing", "give the files that have to be there");
    check(json!([]), "` is empty", files);
    check(json!("README.md"), "` is the text \"README.md\", not a list", files);
    check(json!(["a", 3]), "[1]` is 3, not a text", files);
    check(json!([""]), "[0]` is empty", "give a text that is not blank, or leave the rule out");
    check(json!(vec!["a"; 101]), "` has 101 items; at most 100 are taken", files);
}

#[test]
fn flags_mean_what_they_mean_in_javascript() {
    let check = |pattern: &str, flags: &str, text: &str, found: bool| {
        let config = json!({"pattern": pattern, "target": "agent_output", "flags": flags});
        let RuleKind::ContentPattern(rule) = check_kept("content_pattern", &config).kind else { panic!("no pattern") };
        assert_eq!(rule.regex().unwrap().is_match(text), found, "{pattern:?} {flags:?} {text:?}");
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
fn a_percentage_is_never_shown_larger_than_it_is() {
    let check = |percent: f64, shown: &str| assert_eq!(Percent::new(percent).unwrap().to_string(), shown);
    check(80.0, "80%");
    check(79.999, "79.99%");
    check(57.3, "57.3%");
    check(0.5, "0.5%");
    assert_eq!([f64::NAN, -0.1, 100.1, f64::INFINITY].map(Percent::new), [None; 4]);
}

/// Any JSON, with the words of rules among its names and texts.
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

/// A rule that is taken, with and without what may be left out.
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

/// What was left out is not written; a file may be called `null`.
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
    fn nothing_that_is_given_brings_the_reader_down(given in any_json()) {
        if let Err(error) = read(&given) {
            prop_assert!(!error.cause.is_empty() && !error.remedy.is_empty());
            prop_assert!(error.to_string().len() < 1024);
        }
        if let Err(error) = read(&json!([given])) {
            prop_assert!(error.path.starts_with("validationRules"));
        }
    }

    /// What is kept reads back the same, from the log and as something given.
    #[test]
    fn what_is_written_reads_back_the_same(given in any_rule()) {
        let rules = read(&json!([given])).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let text = serde_json::to_string(&rules).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Vec<ValidationRule>>(&text).unwrap(), &rules);
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read(&value).unwrap(), rules);
        prop_assert!(!holds_null(&value), "{}", text);
    }
}
