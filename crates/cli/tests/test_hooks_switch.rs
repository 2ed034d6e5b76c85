//! `windlass hooks enable` and `windlass hooks disable`: they change one flag of the configuration, and nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use insta::assert_snapshot;

use crate::support::{TestWorld, WINDLASS};
use crate::test_run::{RUN, create_agent_project};

const COMMENTED_CONFIG: &str = "\
# ours
version: 1

hooks:   # all of them
  Stop:
  -   name: 'lint: all'   # quick

      # what it does
      command: |
        make lint
        # and nothing else

  - {command: make test, timeout: 3}
  before_submit: [rebase_on_main, run_tests, create_pr]
task_types:
  web:
    hooks:
      before_submit:
        - run_tests # in a browser
        - create_pr
notify:
  - command: ./tell.sh
";

fn read_config(world: &TestWorld) -> String {
    fs::read_to_string(world.path(".windlass/config.yaml")).unwrap()
}

fn create_configured_project(text: &str) -> TestWorld {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", text);
    world.run_ok(&["trust", "--yes"]);
    world
}

#[test]
fn enabled_flag_is_edited_without_reformatting_messy_config() {
    let world = create_configured_project(COMMENTED_CONFIG);
    assert_snapshot!(world.run(&["hooks", "disable", "lint: all"]), @"
    `lint: all` is switched off in $WORK/.windlass/config.yaml:
        7 +       enabled: false
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    ");
    assert_eq!(read_config(&world), COMMENTED_CONFIG.replace("# quick\n", "# quick\n      enabled: false\n"));
    assert_snapshot!(world.run(&["hooks", "list", "--point", "stop"]), @"
    stop (gate)
       100  lint: all  make lint⏎# and nothing else⏎  (line 6)
                       never runs: it is switched off
       100  stop[1]    make test  (line 14)
    Types of tasks with hooks of their own: web (--type)
    ");
    assert_eq!(world.json(&["trust", "--show"])["trust"], "changed");
    assert_snapshot!(world.run(&["hooks", "enable", "lint: all"]), @"
    `lint: all` is switched on in $WORK/.windlass/config.yaml:
        7 -       enabled: false
    ");
    assert_eq!(read_config(&world), COMMENTED_CONFIG);
    assert_eq!(world.json(&["trust", "--show"])["trust"], "trusted");

    let check = |name: &str, old: &str, new: &str| {
        world.write(".windlass/config.yaml", COMMENTED_CONFIG);
        world.run_ok(&["hooks", "disable", name]);
        assert_eq!(read_config(&world), COMMENTED_CONFIG.replacen(old, new, 1), "{name}");
        world.run_ok(&["config", "check"]);
        world.run_ok(&["hooks", "enable", name]);
        assert_eq!(read_config(&world), COMMENTED_CONFIG, "{name}");
    };
    check("stop[1]", "{command", "{enabled: false, command");
    check("before_submit[1]:run_tests", "run_tests,", "{use: run_tests, enabled: false},");
    check("web.before_submit[0]:run_tests", "- run_tests #", "- {use: run_tests, enabled: false} #");
    check("notify[0]", "./tell.sh\n", "./tell.sh\n    enabled: false\n");
}

#[test]
fn config_is_not_written_for_redundant_or_dry_run_switch() {
    let world = create_configured_project(COMMENTED_CONFIG);
    let file = world.path(".windlass/config.yaml");
    let before = fs::metadata(&file).unwrap();
    assert_snapshot!(world.run(&["hooks", "enable", "stop[1]"]), @"`stop[1]` is on already; nothing was written");
    assert_snapshot!(world.run(&["hooks", "enable", "stop[1]", "--json"]), @r#"{"added":[],"changed":false,"config":"$WORK/.windlass/config.yaml","enabled":true,"hook":"stop[1]","line":null,"removed":[],"trust":null,"written":false}"#);
    assert_snapshot!(world.run(&["hooks", "enable", "check-dependency-satisfaction"]), @"`check-dependency-satisfaction` is on already; nothing was written");
    assert_snapshot!(world.run(&["hooks", "disable", "auto-label-by-keyword"]), @"`auto-label-by-keyword` is off already; nothing was written");
    // Only shown.
    assert_snapshot!(world.run(&["hooks", "disable", "before_submit[1]:run_tests", "--dry-run"]), @"
    `before_submit[1]:run_tests` would be switched off in $WORK/.windlass/config.yaml:
       14 -   before_submit: [rebase_on_main, run_tests, create_pr]
       14 +   before_submit: [rebase_on_main, {use: run_tests, enabled: false}, create_pr]
    ");
    assert_snapshot!(world.run(&["hooks", "disable", "stop[1]", "--dry-run", "--json"]), @r#"{"added":["  - {enabled: false, command: make test, timeout: 3}"],"changed":true,"config":"$WORK/.windlass/config.yaml","enabled":false,"hook":"stop[1]","line":13,"removed":["  - {command: make test, timeout: 3}"],"trust":null,"written":false}"#);
    let after = fs::metadata(&file).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_snapshot!(world.run(&["trust"]), @"$WORK is trusted already");
}

#[test]
fn names_that_are_none_and_names_of_several() {
    let world = create_configured_project(COMMENTED_CONFIG);
    assert_snapshot!(world.expect_failure(&["hooks", "disable", "lint"]), @"
    error: there is no hook `lint`
    hint: did you mean `lint: all`?
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "disable", "stop[2]"]), @"
    error: there is no hook `stop[2]`
    hint: did you mean `stop[1]`?
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "disable", "before_submit[0]"]), @"
    error: there is no hook `before_submit[0]`
    hint: did you mean `before_submit[0]:rebase_on_main`?
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "disable", "something\u{1b}[31m else"]), @r#"
    error: there is no hook `something\u{1b}[31m else`
    hint: `windlass hooks list` shows them all
    [1 not_found]
    "#);
    assert_snapshot!(world.expect_failure(&["hooks", "disable", "run_tests"]), @"
    error: several hooks use `run_tests`
    hint: say which one: `before_submit[1]:run_tests` ($WORK/.windlass/config.yaml:14), `web.before_submit[0]:run_tests` ($WORK/.windlass/config.yaml:19)
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "enable", "merge_pr"]), @"
    error: no hook uses `merge_pr`
    hint: write `- merge_pr` under the point of `hooks` at which it is to run
    [1 not_found]
    ");
    assert_eq!(read_config(&world), COMMENTED_CONFIG);
    // A hook that is the only user of a built-in has its short name.
    assert_snapshot!(world.run(&["hooks", "disable", "rebase_on_main"]), @"
    `before_submit[0]:rebase_on_main` is switched off in $WORK/.windlass/config.yaml:
       14 -   before_submit: [rebase_on_main, run_tests, create_pr]
       14 +   before_submit: [{use: rebase_on_main, enabled: false}, run_tests, create_pr]
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    ");
}

#[test]
fn built_ins_that_stand_nowhere() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "version: 1\n");
    assert_snapshot!(world.run(&["hooks", "enable", "auto-label-by-keyword"]), @"
    `auto-label-by-keyword` is switched on in $WORK/.windlass/config.yaml:
        2 +
        3 + hooks:
        4 +   task_created:
        5 +     - use: auto-label-by-keyword
        6 +       enabled: true
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    ");
    assert_snapshot!(world.run(&["hooks", "disable", "track-agent-task-lifecycle", "--json"]), @r#"{"added":["    - use: track-agent-task-lifecycle","      enabled: false"],"changed":true,"config":"$WORK/.windlass/config.yaml","enabled":false,"hook":"track-agent-task-lifecycle","line":7,"removed":[],"trust":"changed","written":true}"#);
    assert_snapshot!(world.run(&["hooks", "disable", "create_pr"]), @"
    `create_pr (default)` is switched off in $WORK/.windlass/config.yaml:
        9 +   before_submit:
       10 +     - use: create_pr
       11 +       enabled: false
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    ");
    assert_snapshot!(read_config(&world), @"
    version: 1

    hooks:
      task_created:
        - use: auto-label-by-keyword
          enabled: true
        - use: track-agent-task-lifecycle
          enabled: false
      before_submit:
        - use: create_pr
          enabled: false
    ");
    // From then on it is a hook like any other.
    world.run_ok(&["hooks", "enable", "create_pr"]);
    world.run_ok(&["hooks", "disable", "auto-label-by-keyword"]);
    assert_snapshot!(read_config(&world), @"
    version: 1

    hooks:
      task_created:
        - use: auto-label-by-keyword
          enabled: false
        - use: track-agent-task-lifecycle
          enabled: false
      before_submit:
        - use: create_pr
    ");
    assert_snapshot!(world.run(&["hooks", "list"]), @"
    before_submit (gate)
       100  before_submit[0]:create_pr  create_pr (git: push the branch, and open a change on the forge)  (line 10)
    task_created
         5  auto-label-by-keyword       suggests labels by words of the goal  (line 5)
                                        never runs: it is switched off
        50  track-agent-task-lifecycle  records how long an agent's task took  (line 7)
                                        never runs: it is switched off
    task_started
        50  track-agent-task-lifecycle  records how long an agent's task took  (line 7)
                                        never runs: it is switched off
    task_completed
        10  auto-create-review-task        makes a review task when an agent's task is completed  (built in)
        20  check-dependency-satisfaction  makes dependents ready when their last dependency is completed  (built in)
        50  track-agent-task-lifecycle     records how long an agent's task took  (line 7)
                                           never runs: it is switched off
    ");

    // A project without a configuration gets one.
    fs::remove_file(world.path(".windlass/config.yaml")).unwrap();
    world.run_ok(&["hooks", "disable", "auto-create-review-task"]);
    assert_snapshot!(read_config(&world), @"
    version: 1

    hooks:
      task_completed:
        - use: auto-create-review-task
          enabled: false
    ");
}

#[test]
fn disabled_hook_stays_off_until_enabled_and_trusted_again() {
    let world =
        create_configured_project("hooks:\n  task_completed:\n    - name: tell\n      command: echo told >> told\n");
    let complete = |goal: &str| {
        world.run_ok(&["trust", "--yes"]);
        let task = world.json(&["task", "add", goal])["id"].as_str().unwrap().to_owned();
        world.run_ok(&["task", "complete", &task]);
        fs::read_to_string(world.path("told")).unwrap_or_default().lines().count()
    };
    assert_eq!(complete("one"), 1);
    world.run_ok(&["hooks", "disable", "tell"]);
    assert_eq!(complete("two"), 1);
    world.run_ok(&["hooks", "enable", "tell"]);
    assert_eq!(complete("three"), 2);
    // Nothing of it runs before a person has looked.
    world.run_ok(&["hooks", "disable", "tell"]);
    let flipped = read_config(&world).replace("echo", "printf");
    world.write(".windlass/config.yaml", flipped);
    world.run_ok(&["hooks", "enable", "tell"]);
    let ran = world.run(&["task", "complete", world.json(&["task", "add", "four"])["id"].as_str().unwrap()]);
    assert_snapshot!(ran, @"
    error: this project's hooks are not trusted in their present form, and this would run tell
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [exit 64]
    ");
    assert_eq!(fs::read_to_string(world.path("told")).unwrap().lines().count(), 2);
}

#[test]
fn disabled_notification_is_not_sent() {
    let notices = "notify:\n  - command: echo a >> told\n  - command: echo b >> told\n";
    let world = create_agent_project(notices, "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["hooks", "disable", "notify[0]"]);
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(RUN);
    assert_eq!((ran.code, &*world.read_file("told")), (0, "b\n"), "{ran}");
}

#[test]
fn links_modes_and_marks_stay() {
    let world = TestWorld::new();
    let text = "\u{feff}hooks:\r\n  stop:\r\n    - command: x\r\n";
    let real = world.write("ours.yaml", text);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = world.path(".windlass/config.yaml");
    fs::remove_file(&link).unwrap();
    symlink("../ours.yaml", &link).unwrap();
    world.run_ok(&["hooks", "disable", "stop[0]"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read_to_string(&real).unwrap(), format!("{text}      enabled: false\r\n"));
    assert_eq!(fs::read_dir(world.path(".")).unwrap().count(), 2, "nothing is left beside it");
    world.run_ok(&["hooks", "enable", "stop[0]"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), text);
}

#[test]
fn unsupported_config_edit_is_refused_and_leaves_file_unchanged() {
    let world = TestWorld::new();
    let said = |text: &str, name: &str| {
        world.write(".windlass/config.yaml", text);
        let said = world.expect_failure(&["hooks", "disable", name]);
        assert_eq!(read_config(&world), text);
        said
    };
    assert_snapshot!(said("hooks:\n  stop:\n    - &one\n      command: x\n  on_error:\n    - *one\n", "on_error[0]"), @"
    error: cannot switch `on_error[0]` off in `$WORK/.windlass/config.yaml`: its text has a form that Windlass does not edit, such as an anchor that repeats it or a list on one line
    hint: write `enabled: false` to the hook of on_error at $WORK/.windlass/config.yaml:4 by hand, without an anchor; nothing was written
    [64 config]
    ");
    assert_snapshot!(said("hooks: {stop: [{command: x}]}\n", "auto-create-review-task"), @"
    error: cannot switch `auto-create-review-task` off in `$WORK/.windlass/config.yaml`: its text has a form that Windlass does not edit, such as an anchor that repeats it or a list on one line
    hint: write `- {use: auto-create-review-task, enabled: false}` under `task_completed` of `hooks` in $WORK/.windlass/config.yaml by hand; nothing was written
    [64 config]
    ");
    assert_snapshot!(said("hooks:\n  before_merge: [merge_pr]\n", "create_pr"), @"
    error: cannot switch `create_pr (default)` off in `$WORK/.windlass/config.yaml`: the configuration would be wrong then: `merge_pr` has nothing to merge: no hook is `create_pr`
    hint: correct what it names first; nothing was written
    [64 config]
    ");
    assert_snapshot!(said("hook: {}\n", "create_pr"), @"
    error: unknown key `hook`
     --> $WORK/.windlass/config.yaml:1:1
      |
    1 | hook: {}
      | ^^^^
    hint: did you mean `hooks`?
    [64 config]
    ");
}

#[test]
fn agent_cannot_disable_stop_hook_that_judges_it() {
    let agent = "
        windlass hooks disable check 2>> said
        env -u WINDLASS_RUN -u WINDLASS_DEBT windlass hooks disable check 2>> said
        windlass hooks enable check --dry-run 2>> said
        touch done; echo '<promise>COMPLETE</promise>'";
    let text = "hooks:\n  stop:\n    - name: check\n      command: windlass hooks disable check 2>> heard; test -e done || exit 2\n";
    let world = create_agent_project(text, agent);
    symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(read_config(&world), text);
    assert_snapshot!(world.read_file("said"), @"
    error: only a person can switch hooks on and off
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    error: only a person can switch hooks on and off
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    error: only a person can switch hooks on and off
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    ");
    assert_snapshot!(world.read_file("heard"), @"
    error: only a person can switch hooks on and off
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    ");
    world.run_ok(&["hooks", "disable", "check"]);
}

#[test]
fn unknown_registered_hook_is_answered_with_the_list_of_its_task() {
    let world = TestWorld::new();
    let said = world.expect_failure(&["hooks", "show", "HOOK-3"]);
    assert!(said.contains("hint: `windlass hooks list --task ID` shows the hooks that are registered"), "{said}");
}
