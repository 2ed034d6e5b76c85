//! The choice of hooks: the project's, those of a task type instead, those of the agent in addition; none without trust.

use super::script::{SESSION_CONFIG, ScriptProject, check_with, default_rules};
use crate::decide::{ConfigTrust, EngineRules, HookPlan, HookScope, PlannedHook};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;

/// Returns a hook called `name` at a point, with its scope.
fn planned_hook(name: &str, point: &str, scope: HookScope) -> PlannedHook {
    let (hook, point, class) = (name.to_owned(), point.parse().expect("a hook point"), HookClass::Other);
    let owed = HookEffect { hook, point, class, on_failure: HookFailurePolicy::Ignore, send_backs: None };
    PlannedHook { scope, ..PlannedHook::from(owed) }
}

fn bug_scope() -> HookScope {
    HookScope::TaskType("bug".parse().unwrap())
}

/// Returns rules in which tasks of type `bug` have their own hooks at `task_created` and none at `task_ready`, and `claude` adds hooks.
///
/// Two points belong to the start of a task. The lists are in order of priority, as the configuration gives them.
fn scoped_rules(trust: ConfigTrust) -> EngineRules {
    use HookScope::{Agent, Project};
    let claude = || Agent("claude".to_owned());
    let hooks = [
        (
            EventType::TaskCreated,
            vec![
                planned_hook("theirs-early", "task_created", bug_scope()),
                planned_hook("ours", "task_created", Project),
                planned_hook("theirs-late", "task_created", bug_scope()),
            ],
        ),
        (EventType::TaskReady, vec![planned_hook("ours-ready", "task_ready", Project)]),
        (
            EventType::TaskStarted,
            vec![
                planned_hook("start", "task_started", Project),
                planned_hook("theirs-begin", "notification", bug_scope()),
                planned_hook("begin", "notification", Project),
            ],
        ),
        (
            EventType::SessionStarted,
            vec![
                planned_hook("agent-first", "session_start", claude()),
                planned_hook("greet", "session_start", Project),
            ],
        ),
        (
            EventType::IterationStarted,
            vec![
                planned_hook("first", "pre_iteration", Project),
                planned_hook("bug-iteration", "pre_iteration", bug_scope()),
                planned_hook("agent-iteration", "pre_iteration", claude()),
                planned_hook("last", "pre_iteration", Project),
            ],
        ),
    ];
    let effects = HookPlan {
        trust,
        hooks: hooks.into_iter().collect(),
        overrides: ["task_created", "task_ready", "notification"]
            .map(|point| ("bug".parse().unwrap(), point.parse().expect("a hook point")))
            .into_iter()
            .collect(),
        ..HookPlan::for_all_tasks(SESSION_CONFIG, "w1".parse().unwrap(), [])
    };
    EngineRules { effects: Some(effects), ..default_rules() }
}

/// Checks the hooks that the last line of a script enqueues, in the order in which they run.
#[track_caller]
fn check_enqueued_hooks(script: &str, expected: &[&str]) {
    let (before, last) = script.trim().rsplit_once('\n').unwrap_or(("", script));
    let mut project = ScriptProject::after(scoped_rules(ConfigTrust::Yes), before);
    let from = project.log.len();
    project.run_script(last);
    let owes = project.log[from..].iter().filter_map(|record| record.envelope.metadata.owes.as_ref());
    let names: Vec<&str> = owes.flat_map(|owes| &owes.hooks).map(|hook| hook.hook.as_str()).collect();
    assert_eq!(names, expected, "{script}");
    project.simulate_crash();
}

#[test]
fn task_type_hooks_override_project_hooks_where_configured() {
    check_enqueued_hooks("add one", &["ours", "ours-ready"]);
    check_enqueued_hooks("add one type=feature", &["ours", "ours-ready"]);
    // An empty list means none.
    check_enqueued_hooks("add one type=bug", &["theirs-early", "theirs-late"]);
    // Other points of the same event keep the project's.
    check_enqueued_hooks("add one\nstart T1", &["start", "begin"]);
    check_enqueued_hooks("add one type=bug\nstart T1", &["start", "theirs-begin"]);
    // If the type overrides nothing, its hooks come in addition.
    check_enqueued_hooks("add one type=bug\nsession a task=T1", &["greet", "start", "theirs-begin"]);
}

#[test]
fn agent_hooks_run_only_in_sessions_of_that_agent() {
    check_enqueued_hooks("session a agent=claude", &["agent-first", "greet"]);
    check_enqueued_hooks("session a agent=other", &["greet"]);
    let iteration = |session: &str, greeting: &str| format!("add one type=bug\n{session}\n{greeting}");
    let both = "hook agent-first\nhook greet";
    let begun = |greeting: &str| format!("{greeting}\nhook start\nhook theirs-begin");
    check_enqueued_hooks(&iteration("session a agent=claude", both), &["first", "agent-iteration", "last"]);
    check_enqueued_hooks(
        &iteration("session a agent=claude task=T1", &begun(both)),
        &["first", "bug-iteration", "agent-iteration", "last"],
    );
    check_enqueued_hooks(
        &iteration("session a agent=other task=T1", &begun("hook greet")),
        &["first", "bug-iteration", "last"],
    );
}

#[test]
fn hooks_of_all_scopes_run_in_order_of_plan() {
    let script =
        "add one type=bug\nsession a task=T1 agent=claude\nhook agent-first\nhook greet\nhook start\nhook theirs-begin";
    let project = ScriptProject::after(scoped_rules(ConfigTrust::Yes), script);
    let waits: Vec<u32> = project.find_session("a").pending_hooks.iter().map(|effect| effect.index).collect();
    assert_eq!(waits, [0, 1, 2, 3]);
}

#[test]
fn command_that_triggers_untrusted_hooks_is_refused_without_changes() {
    let refused = |hooks: &str| {
        format!("! this project's hooks are not trusted in their present form, and this would run {hooks}")
    };
    let mut project = ScriptProject::new(scoped_rules(ConfigTrust::No));
    let nothing = project.memory.clone();
    assert_eq!(project.run_script("add one"), [refused("ours")]);
    assert_eq!(project.run_script("add one type=bug"), [refused("theirs-early and theirs-late")]);
    assert_eq!(project.run_script("session a agent=claude"), [refused("agent-first and greet")]);
    assert_eq!((project.memory, project.log), (nothing, vec![]));
}

#[test]
fn command_that_triggers_no_hooks_is_accepted_without_trust() {
    let mut rules = scoped_rules(ConfigTrust::No);
    let hooks = &mut rules.effects.as_mut().unwrap().hooks;
    hooks.retain(|event, _| *event == EventType::TaskCompleted || *event == EventType::TaskStarted);
    hooks.insert(EventType::TaskReady, vec![planned_hook("ready", "task_ready", HookScope::Project)]);
    check_with(
        rules,
        "add one type=bug
         relabel T1 labels=x
         block T1
         add two after=T1 type=bug
         add three
         start T1",
        "T1 task_created
         T1 task_ready
         T1 task_updated
         T1 task_blocked because
         T2 task_created
         T2 dependency_added depends_on T1
         ! this project's hooks are not trusted in their present form, and this would run ready
         ! cannot start T1: it is blocked, and that is possible only from ready or needs_continuation",
    );
}

/// The actions of pure hooks are part of the command, so a refusal discards them too.
#[test]
fn command_is_refused_when_pure_hooks_trigger_untrusted_hook() {
    let mut rules = scoped_rules(ConfigTrust::No);
    let hooks = &mut rules.effects.as_mut().unwrap().hooks;
    hooks.clear();
    hooks
        .insert(EventType::DependencySatisfied, vec![planned_hook("tell", "dependency_satisfied", HookScope::Project)]);
    let mut project = ScriptProject::after(rules, "add one\nadd two after=T1");
    let before = project.memory.clone();
    let refused = "! this project's hooks are not trusted in their present form, and this would run tell";
    assert_eq!(project.run_script("complete T1"), [refused]);
    assert_eq!(project.memory, before);
}
