//! An index gives what the file gives: for every event, whatever the configuration, whatever happened to the index.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use windlass_engine::Trusted;

use super::*;

const FILE: &str = "config.yaml";

/// Everything that is planned, as text.
fn planned(outline: &Arc<Outline>) -> String {
    let rules = plan::rules(outline, &"1-2-3".parse().unwrap(), Trusted::No).unwrap();
    let effects = rules.effects.as_ref().unwrap();
    let mut text = format!("{:?}\n{:?}\n{:?}\n", rules.registry, effects.config, effects.overrides);
    let hooks = plan::hooks(outline.clone());
    for (event, planned) in &effects.hooks {
        text += &format!("{event:?}: {:?}\n", planned.to_vec());
        for planned in planned.iter() {
            assert!(hooks.get(&planned.hook.hook).is_some(), "{planned:?}");
        }
    }
    for event in outline.events() {
        text += &format!("{event:?}: {:?}\n", outline.hooks_of(event));
    }
    let frame = outline.frame();
    text + &format!("{:?}\n{:?}\n{:?}\n", frame.protected(), frame.settings.secrets, frame.settings.limits)
}

/// The same, without any index, and from first principles: every hook, at every point of its own, in order of priority.
fn expected(config: Config) -> (String, Vec<(EventType, String)>) {
    let mut owed: Vec<(EventType, i64, String)> = Vec::new();
    for hook in config.hooks.iter().filter(|hook| plan::is_owing(hook)) {
        for point in hook.points() {
            owed.extend(point.events().map(|event| (event, plan::priority(hook), format!("{} {point}", hook.name))));
        }
    }
    owed.sort_by_key(|(event, priority, _)| (*event, *priority));
    let owed = owed.into_iter().map(|(event, _, hook)| (event, hook)).collect();
    (planned(&Arc::new(Outline::from(config))), owed)
}

fn owed(outline: &Arc<Outline>) -> Vec<(EventType, String)> {
    let rules = plan::rules(outline, &"1-2-3".parse().unwrap(), Trusted::Yes).unwrap();
    let hooks = rules.effects.unwrap().hooks;
    let named = |event: EventType, planned: &windlass_engine::Planned| {
        (event, format!("{} {}", planned.hook.hook, planned.hook.point))
    };
    hooks.iter().flat_map(|(event, planned)| planned.iter().map(|one| named(*event, one))).collect()
}

fn shelf(state: &Path) -> Option<Shelf> {
    Some(Shelf::under(state, "this program".to_owned()))
}

/// Plans a configuration without an index, with one that is made, and with one that is found.
pub fn check(text: &str) {
    let written = Written::of(Path::new(FILE), text);
    let (whole, order) = expected(Config::parse(written.clone()).unwrap());
    let state = tempfile::tempdir().unwrap();
    for round in ["made", "found"] {
        let outline = Arc::new(Outline::with(shelf(state.path()), written.clone()).unwrap());
        assert_eq!(outline.index.is_some(), round == "found", "{text}");
        assert_eq!(owed(&outline), order, "{round}: {text}");
        assert_eq!(planned(&outline), whole, "{round}: {text}");
        assert!(outline.whole.get().is_none(), "{round}: the index was of no use: {text}");
    }
}

const MIXED: &str = r#"
version: 1
secrets: [TOKEN]
protected: ['gates/*.sh']
hooks:
  task_created:
    - {name: plain, command: 'echo {{task_id}}', timeout: 5s, metadata: {a: [1, 2.5, null, true]}}
    - &twin {command: "printf '%s' \"{{task_content}}\"", priority: 7, events: [task_ready, on_task_complete]}
    - {command: never, enabled: false}
    - {use: auto-label-by-keyword, priority: 3}
  TaskReady: []
  on_task_complete:
    - {name: told, http: {url: 'https://example.com/{{x}}', method: PUT, headers: {A: b}}, retry: {max: 2, backoff: 500ms}}
    - {name: both, command: 'true', events: [task_completed], priority: -5, when: "'ä' in task.labels"}
  Stop:
    - rules: [{when: iteration > 2, action: escalate, reason: 'so {{ iteration }}', checkpointData: {a: 1}}]
    - {command: ./check.sh, feedback: 'Not yet: {{ output }}', max_output: 100, on_failure: block, retry: {max: 3}}
  before_submit: [create_pr]
  pre_tool_use:
    - {matcher: 'Edit|Write', command: ./guard.sh, events: [task_blocked]}
task_types:
  bug:
    hooks:
      task_created: []
      task_ready: [{command: triage, idempotent: true}]
    agents: {implementer: [claude]}
  42:
    hooks: {task_created: [{name: forty-two, command: 'true'}]}
agents:
  claude:
    env: {LEVEL: 3}
    hooks: {task_started: [{command: 'echo mine', pipe_output: true}]}
"#;

#[test]
fn every_kind_of_hook_in_every_scope() {
    check(MIXED);
    check("hooks: {task_created: [{command: 'true'}]}");
    check("version: 1");
    check("# nothing\n");
    check("hooks:\n  task_created: &list\n    - {command: 'true'}\ntask_types: {a: {hooks: {task_ready: *list}}}\n");
}

#[test]
fn the_documents_examples() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (guides, agents) = (fs::read_dir(&documents).unwrap(), fs::read_dir(documents.join("agents")).unwrap());
    let files = guides.chain(agents).map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut compared = 0;
    for document in files {
        let text = fs::read_to_string(&document).unwrap();
        let shown = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let given = text.split(".yaml <<'END'\n").skip(1).filter_map(|rest| rest.split("> END").next());
        let given = given.map(|lines| lines.lines().map(|line| format!("{}\n", &line[2.min(line.len())..])).collect());
        for example in shown.map(str::to_owned).chain(given) {
            let whole = example.trim_start().starts_with("agent");
            match Config::of(Path::new(FILE), example.as_str()) {
                Ok(_) => {
                    check(&example);
                    compared += 1;
                }
                // Others are parts of a file, or wrong on purpose.
                Err(error) => assert!(!whole, "{}: {error:?}", document.display()),
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn a_damaged_index_changes_nothing_and_is_made_again() {
    let written = Written::of(Path::new(FILE), MIXED);
    let whole = expected(Config::parse(written.clone()).unwrap()).0;
    let state = tempfile::tempdir().unwrap();
    let open = || Arc::new(Outline::with(shelf(state.path()), written.clone()).unwrap());
    open();
    let file = fs::read_dir(state.path().join("plans")).unwrap().next().unwrap().unwrap().path();
    let sound = fs::read(&file).unwrap();
    let damaged = (0..sound.len()).step_by(41).map(|place| {
        let mut bytes = sound.clone();
        bytes[place] ^= 1;
        bytes
    });
    let cut = [0, 1, 40, sound.len() / 2, sound.len() - 1].map(|length| sound[..length].to_vec());
    let foreign = Index::pack(&Config::of(Path::new(FILE), "version: 1").unwrap(), Digest::ZERO, plan::is_owing);
    for bytes in damaged.chain(cut).chain(foreign) {
        fs::write(&file, &bytes).unwrap();
        assert_eq!(planned(&open()), whole);
        open();
        assert_eq!(fs::read(&file).unwrap(), sound, "it was not made again");
    }
}

#[test]
fn a_wrong_configuration_is_as_wrong_as_ever() {
    let state = tempfile::tempdir().unwrap();
    let written = Written::of(Path::new(FILE), "hooks: {task_created: [{comand: x}]}");
    for _ in 0..2 {
        assert!(Outline::with(shelf(state.path()), written.clone()).is_err());
    }
    assert!(!state.path().join("plans").exists());
}

#[test]
fn without_a_shelf_everything_is_read_whole() {
    let outline = Arc::new(Outline::with(None, Written::of(Path::new(FILE), MIXED)).unwrap());
    assert_eq!(planned(&outline), expected(Config::of(Path::new(FILE), MIXED).unwrap()).0);
}

const PROMPT: &str = "prompt: 'go on with {{ task.goal }}'";

const KINDS: [&str; 6] = [
    "command: 'echo N'",
    "command: \"printf '%s' \\\"{{task_content}}\\\"\"",
    "http: 'https://example.com/N'",
    "rules: [{when: iteration > 2, action: complete}, {any_of: [iteration < 9], action: continue}]",
    PROMPT,
    "use: run_tests",
];

const FIELDS: [&str; 12] = [
    "enabled: false",
    "priority: N",
    "when: \"'N' in task.labels\"",
    "events: [task_updated, PostToolUse]",
    "timeout: 90",
    "feedback: 'N: {{ output }}'",
    "retry: {max: 2}",
    "on_failure: block",
    "name: 'hook N'",
    "metadata: {N: [N, N.5, ~, 'N']}",
    "matcher: Bash",
    "pipe_output: true",
];

const POINTS: [&str; 6] = ["task_created", "TaskReady", "on_task_complete", "task_completed", "stop", "before_merge"];

/// One hook; `N` stands for a number of its own.
fn entry() -> impl Strategy<Value = String> {
    let fields = prop::sample::subsequence(FIELDS.to_vec(), 0..5);
    (prop::sample::select(KINDS.to_vec()), fields)
        .prop_map(|(kind, fields)| format!("{{{}}}", [vec![kind], fields].concat().join(", ")))
}

/// What stands at some points, perhaps nothing.
fn points() -> impl Strategy<Value = String> {
    let hooks = prop::collection::vec(entry(), 0..4).prop_map(|hooks| format!("[{}]", hooks.join(", ")));
    let lists = prop::collection::vec(hooks, POINTS.len());
    (prop::sample::subsequence(POINTS.to_vec(), 0..POINTS.len()), lists).prop_map(|(points, lists)| {
        // A prompt decides nothing, so it stands at no gate.
        let fit = |point: &str, list: String| match ["stop", "before_merge"].contains(&point) {
            true => list.replace(PROMPT, KINDS[0]),
            false => list,
        };
        let points: Vec<String> =
            points.iter().zip(lists).map(|(point, list)| format!("{point}: {}", fit(point, list))).collect();
        format!("{{{}}}", points.join(", "))
    })
}

/// A configuration of all of it, each hook with a number of its own.
fn configuration() -> impl Strategy<Value = String> {
    (points(), points(), points(), points()).prop_map(|(project, bug, chore, agent)| {
        let text = format!(
            "hooks: {project}\ntask_types: {{bug: {{hooks: {bug}}}, chore: {{hooks: {chore}}}}}\n\
             agents: {{claude: {{hooks: {agent}}}}}\n"
        );
        // What is between two braces has a number of its own.
        let numbered = text.split_inclusive('{').enumerate().map(|(n, part)| part.replace('N', &n.to_string()));
        numbered.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing that can be written makes a difference between the file and its index.
    #[test]
    fn whatever_is_written(text in configuration()) {
        check(&text);
    }
}
