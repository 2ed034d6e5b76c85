//! Tests of errors and warnings about delivery pipelines.

use std::path::Path;

use crate::Config;
use crate::tests::diagnostics::render_problems;

/// Returns the warnings, one per line.
fn render_warnings(text: &str) -> String {
    let config = Config::from_text(Path::new("config.yaml"), text).expect(text);
    let line = |warning: crate::ConfigWarning| {
        let hint = warning.suggestion.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let (line, column) = warning.place.expect("it is about a place");
        format!("{line}:{column}: {}{hint}", warning.message)
    };
    config.find_warnings().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a configuration with these `before_submit` and `before_merge` lists.
fn submit_and_merge_hooks(submit: &str, merge: &str) -> String {
    format!("hooks:\n  before_submit: [{submit}]\n  before_merge: [{merge}]\n")
}

#[test]
fn change_hooks_outside_delivery_are_refused() {
    let shown = render_problems(&[
        "hooks:\n  before_submit:\n    - create_pr\n    - merge_pr\n",
        "hooks:\n  stop:\n    - rebase_on_main\n",
        "hooks:\n  task_completed:\n    - create_pr\n",
        "hooks:\n  before_submit:\n    - gatekeeper: [qa]\n",
        "hooks:\n  before_merge:\n    - gatekeeper: [qa]\n      events: [stop]\n",
        "hooks:\n  before_merge:\n    - gatekeeper: [qa, qa]\n",
        "hooks:\n  before_merge:\n    - gatekeeper: ['']\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `merge_pr` does not run at `before_submit`
     --> config.yaml:4:7
      |
    4 |     - merge_pr
      |       ^^^^^^^^
    hint: it runs at before_merge: write it there

    error: `rebase_on_main` does not run at `stop`
     --> config.yaml:3:7
      |
    3 |     - rebase_on_main
      |       ^^^^^^^^^^^^^^
    hint: it runs at before_submit, before_merge: write it there

    error: `create_pr` does not run at `task_completed`
     --> config.yaml:3:7
      |
    3 |     - create_pr
      |       ^^^^^^^^^
    hint: it runs at before_submit, before_merge: write it there

    error: `gatekeeper` does not run at `before_submit`
     --> config.yaml:3:7
      |
    3 |     - gatekeeper: [qa]
      |       ^^^^^^^^^^^^^^^^
    hint: it runs at before_merge: write it there

    error: `gatekeeper` does not run at `stop`
     --> config.yaml:3:7
      |
    3 |     - gatekeeper: [qa]
      |       ^^^^^^^^^^^^^^^^
    hint: it runs at before_merge: write it there

    error: `gatekeeper` names `qa` twice
     --> config.yaml:3:7
      |
    3 |     - gatekeeper: [qa, qa]
      |       ^^^^^^^^^^^^^^^^^^^^

    error: the name of a review is one line of 1 to 64 bytes
     --> config.yaml:3:7
      |
    3 |     - gatekeeper: ['']
      |       ^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn pipeline_that_can_never_pass_is_refused() {
    let shown = render_problems(&[
        &submit_and_merge_hooks("create_pr", "merge_pr, gatekeeper: [qa]"),
        &submit_and_merge_hooks("create_pr", "merge_pr, create_pr"),
        &submit_and_merge_hooks("run_tests", "merge_pr"),
        // The running order counts, not the order of definition.
        "hooks:\n  before_merge:\n    - {gatekeeper: [qa], priority: 200}\n    - merge_pr\n",
        // The type's own list at one point, and the project's at the others.
        "hooks:\n  before_merge:\n    - merge_pr\ntask_types:\n  docs:\n    hooks:\n      before_submit: []\n",
        "task_types:\n  a:\n    hooks:\n      before_merge:\n        - gatekeeper: [qa]\n    agents:\n      gatekeeper: []\n",
        // With the hooks of an agent.
        "hooks:\n  before_merge:\n    - merge_pr\nagents:\n  x:\n    command: x\n    hooks:\n      before_merge:\n        - gatekeeper: [qa]\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `before_merge[1]:gatekeeper` runs after `merge_pr`, when the change is merged
     --> config.yaml:3:28
      |
    3 |   before_merge: [merge_pr, gatekeeper: [qa]]
      |                            ^^^^^^^^^^^^^^^^^
    hint: let it run before `merge_pr`

    error: `before_merge[1]:create_pr` runs after `merge_pr`, when the change is merged
     --> config.yaml:3:28
      |
    3 |   before_merge: [merge_pr, create_pr]
      |                            ^^^^^^^^^
    hint: let it run before `merge_pr`

    error: `merge_pr` has nothing to merge: no hook is `create_pr`
     --> config.yaml:3:18
      |
    3 |   before_merge: [merge_pr]
      |                  ^^^^^^^^
    hint: add `create_pr` to `before_submit`

    error: `before_merge[0]:gatekeeper` runs after `merge_pr`, when the change is merged
     --> config.yaml:3:7
      |
    3 |     - {gatekeeper: [qa], priority: 200}
      |       ^
    hint: let it run before `merge_pr`

    error: `merge_pr` has nothing to merge: no hook is `create_pr`
     --> config.yaml:3:7
      |
    3 |     - merge_pr
      |       ^^^^^^^^
    hint: add `create_pr` to `before_submit`

    error: tasks of the type `a` are judged, and no agent may judge them
     --> config.yaml:7:19
      |
    7 |       gatekeeper: []
      |                   ^
    hint: name an agent, or leave `gatekeeper` out of `agents` for the default one

    error: `x.before_merge[0]:gatekeeper` runs after `merge_pr`, when the change is merged
     --> config.yaml:9:11
      |
    9 |         - gatekeeper: [qa]
      |           ^^^^^^^^^^^^^^^^
    hint: let it run before `merge_pr`
    ");
    let apart = "agents:\n  a: {command: a, hooks: {before_merge: [merge_pr]}}\n  b: {command: b, hooks: {before_merge: [gatekeeper: [qa]]}}\n";
    crate::config::parse_settings(apart).expect("the hooks of two agents never meet");
}

#[test]
fn pipeline_that_may_pass_is_accepted_without_warnings() {
    for text in [
        submit_and_merge_hooks("create_pr", "gatekeeper: [qa], merge_pr"),
        submit_and_merge_hooks("rebase_on_main, run_tests, create_pr", ""),
        submit_and_merge_hooks("", "create_pr, merge_pr"),
        submit_and_merge_hooks("create_pr", "merge_pr, command: ./deploy.sh"),
        // Without a list, the default hook opens a change.
        "hooks:\n  before_merge: [merge_pr]\n".to_owned(),
        "hooks: {before_merge: [merge_pr]}\ntask_types: {a: {hooks: {before_merge: []}}}\n".to_owned(),
        // A disabled hook does nothing.
        "hooks:\n  before_merge:\n    - merge_pr\n    - {gatekeeper: [qa], enabled: false}\n".to_owned(),
        // A hook with a condition may never run.
        "hooks:\n  before_merge:\n    - {use: merge_pr, when: iteration > 1}\n    - gatekeeper: [qa]\n".to_owned(),
        // An agent's hook may open the change.
        "hooks: {before_submit: [run_tests], before_merge: [merge_pr]}\nagents: {x: {command: x, hooks: {before_submit: [create_pr]}}}\n".to_owned(),
    ] {
        assert_eq!(render_warnings(&text), "", "{text}");
    }
}

#[test]
fn unknown_agents_and_unread_briefs_are_warned_about() {
    let check = |text: &str, expected: &str| assert_eq!(render_warnings(text), expected, "{text}");
    check(
        "briefs:\n  qua: text\n  qa: text\nhooks:\n  before_merge:\n    - gatekeeper: [qa]\n",
        "2:8: no `gatekeeper` asks for the brief `qua`",
    );
    check(
        "agents: {reviewer: {command: x}}\ntask_types:\n  a:\n    agents: {implementer: [reviwer, 'command:x', deploy]}\n",
        "4:28: `reviwer` is not a known agent (did you mean `reviewer`?)\n\
         4:50: `deploy` is not a known agent (define it under `agents`)",
    );
}

#[test]
fn invalid_bases_and_methods_are_shown() {
    let shown = render_problems(&[
        "base_branch: --upload-pack=x\n",
        "base_branch: refs/heads/main\n",
        "base_branch: HEAD\n",
        "base_branch: '@{u}'\n",
        "merge:\n  method: ff\n",
        "briefs:\n  qa: ''\n",
        "worktrees: maybe\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `base_branch`: `--upload-pack=x` is not a branch name
     --> config.yaml:1:14
      |
    1 | base_branch: --upload-pack=x
      |              ^^^^^^^^^^^^^^^
    hint: write the branch's own name, such as `main`

    error: `base_branch`: `refs/heads/main` is not a branch name
     --> config.yaml:1:14
      |
    1 | base_branch: refs/heads/main
      |              ^^^^^^^^^^^^^^^
    hint: write the branch's own name, such as `main`

    error: `base_branch`: `HEAD` is not a branch name
     --> config.yaml:1:14
      |
    1 | base_branch: HEAD
      |              ^^^^
    hint: write the branch's own name, such as `main`

    error: `base_branch`: `@{u}` is not a branch name
     --> config.yaml:1:14
      |
    1 | base_branch: '@{u}'
      |              ^^^^^^
    hint: write the branch's own name, such as `main`

    error: `method`: unknown value `ff`
     --> config.yaml:2:11
      |
    2 |   method: ff
      |           ^^
    hint: known here: `merge`, `squash`, `rebase`

    error: the brief `qa` is empty
     --> config.yaml:2:7
      |
    2 |   qa: ''
      |       ^^

    error: `worktrees`: expected `true` or `false`, found the text `maybe`
     --> config.yaml:1:12
      |
    1 | worktrees: maybe
      |            ^^^^^
    ");
}

#[test]
fn invalid_forge_settings_are_shown() {
    let shown = render_problems(&[
        "forge:\n  remote: -x\n",
        "forge:\n  kind: gitea\n",
        "forge:\n  api: api.example.com\n",
        "forge:\n  api: https://me:secret@example.com/api\n",
        "forge:\n  token: x\n",
    ]);
    insta::assert_snapshot!(shown, @"
    error: `remote`: `-x` is not a name that git accepts
     --> config.yaml:2:11
      |
    2 |   remote: -x
      |           ^^

    error: `kind`: unknown value `gitea`
     --> config.yaml:2:9
      |
    2 |   kind: gitea
      |         ^^^^^
    hint: known here: `github`, `gitlab`

    error: `api` is an address that begins with `https://`
     --> config.yaml:2:8
      |
    2 |   api: api.example.com
      |        ^^^^^^^^^^^^^^^

    error: `api` holds a password or a token
     --> config.yaml:2:8
      |
    2 |   api: https://me:secret@example.com/api
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: leave it out: a token is read from the environment

    error: unknown key `token`
     --> config.yaml:2:3
      |
    2 |   token: x
      |   ^^^^^
    hint: known here: `kind`, `api`, `remote`
    ");
}

#[test]
fn completion_by_gate_without_a_stop_hook_is_warned_about() {
    let warning = "1:13: `completion: gate` without a `stop` hook: work counts as complete when a turn ends, and nothing checks \
                   it (add `stop: [run_tests]` under `hooks`)";
    assert_eq!(render_warnings("completion: gate\n"), warning);
    assert_eq!(render_warnings("completion: gate\nhooks: {stop: [run_tests]}\n"), "");
    assert_eq!(render_warnings("completion: promise\n"), "");
    let typed = "completion: gate\nhooks: {stop: [run_tests]}\ntask_types: {docs: {hooks: {stop: []}}}\n";
    assert!(
        render_warnings(typed).contains("without a `stop` hook for tasks of the type `docs`"),
        "{}",
        render_warnings(typed)
    );
    let rules = "[{type: command, name: tests, config: {command: make test}}]";
    assert_eq!(render_warnings(&format!("completion: gate\nvalidation: {rules}\n")), "");
    let unruled = format!("completion: gate\nvalidation: {rules}\ntask_types: {{docs: {{validation: []}}}}\n");
    assert!(
        render_warnings(&unruled).contains("without a `stop` hook for tasks of the type `docs`"),
        "{}",
        render_warnings(&unruled)
    );
}

#[test]
fn stop_hook_that_is_one_program_is_warned_about() {
    let warned_at = |entry: &str| render_warnings(&format!("hooks:\n  stop:\n    - {entry}\n"));
    let pytest = "3:7: at `stop` only exit 2 sends the agent back, and most programs fail with exit 1: `pytest -q` (write \
                  `pytest -q || exit 2`, or `on_failure: block` beside it)";
    assert_eq!(warned_at("command: pytest -q"), pytest);
    for entry in ["command: npm test", "command: python -m pytest", "command: cargo test --all"] {
        assert!(warned_at(entry).contains("only exit 2"), "{entry}");
    }
    for entry in [
        "command: pytest || exit 2",
        "command: ./check.sh",
        "command: sh check.sh",
        "command: python3 check.py",
        "command: exit 2",
        "command: 'true'",
        "{command: pytest, on_failure: block}",
        "run_tests",
    ] {
        assert_eq!(warned_at(entry), "", "{entry}");
    }
    assert_eq!(render_warnings("hooks:\n  post_iteration:\n    - command: pytest\n"), "");
}

#[test]
fn hook_with_the_name_of_a_built_in_is_refused() {
    let shown = render_problems(&["hooks:\n  stop:\n    - command: ./tests.sh\n      name: run_tests\n"]);
    insta::assert_snapshot!(shown, @"
    error: no hook can have the name `run_tests`: a built-in hook has it
     --> config.yaml:4:13
      |
    4 |       name: run_tests
      |             ^^^^^^^^^
    hint: write `use: run_tests` for that hook, or another name
    ");
    assert_eq!(render_warnings("hooks:\n  stop:\n    - {use: run_tests, name: run_tests}\n"), "");
}

#[test]
fn gate_of_tests_alone_is_found_for_each_type() {
    let check = |text: &str, expected: &[(&str, Option<&str>)]| {
        let config = Config::from_text(Path::new("config.yaml"), text).expect(text);
        let gates = config.find_test_gates();
        let found: Vec<_> = gates.iter().map(|(point, kind)| (point.name(), *kind)).collect();
        assert_eq!(found, expected, "{text}");
    };
    let project = "hooks: {stop: [run_tests], before_submit: [run_tests, create_pr]}\n";
    let own = "{hooks: {stop: [{command: 'true'}]}}";
    let both = [("stop", None), ("before_submit", None)];
    check(project, &both);
    check(&format!("{project}task_types: {{docs: {own}}}\n"), &both);
    check(&format!("{project}agents: {{claude: {own}}}\n"), &both);
    check(&format!("{project}agent: claude\nagents: {{claude: {own}}}\n"), &both[1..]);
    let typed = "hooks: {stop: [{command: 'true'}]}\ntask_types: {docs: {hooks: {stop: [run_tests]}}}\n";
    check(typed, &[("stop", Some("docs"))]);
    check("hooks: {before_submit: [create_pr]}\n", &[]);
    check("validation: [{type: command, name: a, config: {command: 'true'}}]\nhooks: {stop: [run_tests]}\n", &[]);
}
