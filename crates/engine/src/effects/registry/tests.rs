//! The registered hooks, and the order in which they run.

use serde_json::json;

use super::*;
use EventType::{TaskCompleted, TaskCreated, TaskStarted};

fn hook(name: &str) -> PureHook {
    PureHook::new(name, [TaskCreated], |_, _| Ok(vec![]))
}

fn order(registry: &HookRegistry, event: EventType) -> Vec<&str> {
    registry.hooks_for_event(event).map(|hook| hook.name.as_str()).collect()
}

/// Runs one word of a script: `a` or `a:5` registers, `-a` removes, `!a` disables, `~a` enables, `a=5` moves.
fn step(registry: &mut HookRegistry, word: &str) -> Result<(), RegistryError> {
    if let Some((name, priority)) = word.split_once('=') {
        return registry.set_priority(name, priority.parse().unwrap());
    }
    if let Some((name, priority)) = word.split_once(':') {
        return registry.register(hook(name).priority(priority.parse().unwrap()));
    }
    match word.split_at(1) {
        ("-", name) => registry.unregister(name).map(drop),
        ("!", name) => registry.disable_hook(name),
        ("~", name) => registry.enable_hook(name),
        _ => registry.register(hook(word)),
    }
}

/// Checks the order of the hooks after a script; a refused step names its reason instead.
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut registry = HookRegistry::default();
    let outcome = script.split_whitespace().try_for_each(|word| step(&mut registry, word));
    let found = outcome.map_or_else(|error| error.to_string(), |()| order(&registry, TaskCreated).join(" "));
    assert_eq!(found, expected, "{script}");
}

#[test]
fn lower_priorities_run_first_and_ties_keep_their_order() {
    check("", "");
    check("a", "a");
    check("a b c", "a b c");
    check("c b a", "c b a");
    check("a:2 b:1", "b a");
    check("late:100 first:0 also:100 negative:-1", "negative first late also");
    check("zero:0 one:1", "zero one");
    check("one:1 zero:0", "zero one");
    check("plain ninety:99 more:101", "ninety plain more");
    check("a:9223372036854775807 b:-9223372036854775808", "b a");
    check("a:1 b:1 c:0 d:1 e:0", "c e a b d");
}

#[test]
fn hooks_are_switched_moved_and_taken_out() {
    check("a b c !b", "a c");
    check("a b c !b ~b", "a b c");
    check("a b !a !a", "b");
    check("a b ~a", "a b");
    check("a b c -b", "a c");
    check("a b -a a", "b a");
    check("a:1 b:2 a=3", "b a");
    check("a:1 b:2 b=1", "a b");
    check("a:1 b:2 a=3 a=2", "a b");
    check("a b c a=0 c=0", "a c b");
    check("a b !a a=-5", "b");
    check("a b !b b=-5 ~b", "b a");
    check("a -a", "");
}

#[test]
fn refused_registration_names_reason() {
    check("a a", "there is already a hook `a`");
    check("a:1 a:2", "there is already a hook `a`");
    check("a !a a", "there is already a hook `a`");
    for script in ["-b", "!b", "~b", "b=1", "a b -b -b", "a b -b !b"] {
        check(script, "there is no hook `b`");
    }
    let mut registry = HookRegistry::default();
    for blank in ["", " ", "\t\n"] {
        assert_eq!(registry.register(hook(blank)), Err(RegistryError::NoName));
    }
    let deaf = PureHook::new("deaf", [], |_, _| Ok(vec![]));
    assert_eq!(registry.register(deaf), Err(RegistryError::NoEvents("deaf".to_owned())));
    assert_eq!(registry.hooks().len(), 0, "what is refused leaves nothing behind");
}

#[test]
fn names_differ_by_every_letter() {
    let mut registry = HookRegistry::default();
    for name in ["a", "A", "a ", "ä"] {
        registry.register(hook(name)).unwrap();
    }
    assert_eq!(registry.get("A").unwrap().name, "A");
    assert!(registry.get("Ä").is_none());
}

#[test]
fn new_hook_is_enabled_with_default_priority() {
    let plain = hook("plain");
    assert_eq!((plain.priority, plain.enabled, plain.description.as_str()), (100, true, ""));
    assert!(plain.metadata.is_empty());
    let told = hook("told").priority(0).disabled().description("tells").author("ada").version("1.2");
    assert_eq!((told.priority, told.enabled, told.description.as_str()), (0, false, "tells"));
    assert_eq!(Value::Object(told.metadata.clone()), json!({"author": "ada", "version": "1.2"}));
    let more = [("version".to_owned(), json!(2)), ("tier".to_owned(), json!("gold"))].into_iter().collect();
    let told = told.metadata(more);
    assert_eq!(Value::Object(told.metadata), json!({"author": "ada", "version": 2, "tier": "gold"}));
}

#[test]
fn hook_runs_once_for_each_event_it_names() {
    let mut registry = HookRegistry::default();
    let events = [TaskStarted, TaskCreated, TaskStarted];
    registry.register(PureHook::new("both", events, |_, _| Ok(vec![]))).unwrap();
    assert_eq!(registry.get("both").unwrap().events, [TaskStarted, TaskCreated]);
    assert_eq!(order(&registry, TaskStarted), ["both"]);
    assert_eq!(order(&registry, TaskCreated), ["both"]);
    assert_eq!(order(&registry, TaskCompleted), [""; 0]);
    registry.disable_hook("both").unwrap();
    assert_eq!(order(&registry, TaskStarted).len() + order(&registry, TaskCreated).len(), 0);
    registry.enable_hook("both").unwrap();
    registry.unregister("both").unwrap();
    assert_eq!(order(&registry, TaskStarted).len() + order(&registry, TaskCreated).len(), 0);
}

#[test]
fn hook_list_contains_all_hooks_in_registration_order() {
    let mut registry = HookRegistry::default();
    for word in ["late:9", "early:1", "off", "!off", "late=0"] {
        step(&mut registry, word).unwrap();
    }
    let listed: Vec<_> = registry.hooks().map(|hook| (&*hook.name, hook.priority, hook.enabled)).collect();
    assert_eq!(listed, [("late", 0, true), ("early", 1, true), ("off", 100, false)]);
    assert_eq!(registry.unregister("late").unwrap().priority, 0);
    assert_eq!(registry.hooks().len(), 2);
}

#[test]
fn hook_configuration_sets_enabled_state_and_priority_at_once() {
    let mut registry = HookRegistry::with_builtins();
    registry.configure_hook("auto-label-by-keyword", true, None).unwrap();
    registry.configure_hook("track-agent-task-lifecycle", true, Some(0)).unwrap();
    assert_eq!(order(&registry, TaskCreated), ["track-agent-task-lifecycle", "auto-label-by-keyword"]);
    registry.configure_hook("track-agent-task-lifecycle", false, Some(1)).unwrap();
    assert_eq!(order(&registry, TaskCreated), ["auto-label-by-keyword"]);
    let unknown = registry.configure_hook("two", true, None);
    assert_eq!(unknown, Err(RegistryError::Unknown("two".to_owned())));
}

#[test]
fn built_in_hook_is_replaceable_but_cannot_be_registered_twice() {
    let mut registry = HookRegistry::with_builtins();
    let mine = || PureHook::new("auto-create-review-task", [TaskCompleted], |_, _| Ok(vec![]));
    assert!(registry.register(mine()).is_err());
    registry.unregister("auto-create-review-task").unwrap();
    registry.register(mine()).unwrap();
    assert_eq!(order(&registry, TaskCompleted).last(), Some(&"auto-create-review-task"), "of the usual priority");
}

/// Changes to one copy do not reach the other.
#[test]
fn cloned_registry_is_unaffected_by_changes_to_original() {
    let mut one = HookRegistry::with_builtins();
    let two = one.clone();
    one.disable_hook("check-dependency-satisfaction").unwrap();
    assert_eq!((order(&one, TaskCompleted).len(), order(&two, TaskCompleted).len()), (2, 3));
}

/// After any changes, the order is that of sorting by priority and registration.
#[test]
fn registry_keeps_thousand_hooks_in_priority_order_after_changes() {
    let mut registry = HookRegistry::default();
    for number in 0..1000_i64 {
        registry.register(hook(&number.to_string()).priority(number * 37 % 11)).unwrap();
    }
    for number in (0..1000_i64).step_by(3) {
        registry.set_priority(&number.to_string(), number * 53 % 7).unwrap();
    }
    for number in (0..1000_i64).step_by(5) {
        registry.unregister(&number.to_string()).unwrap();
    }
    let mut expected: Vec<&PureHook> = registry.hooks().collect();
    expected.sort_by_key(|hook| hook.priority);
    let expected: Vec<_> = expected.into_iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(expected.len(), 800);
    assert_eq!(order(&registry, TaskCreated), expected);
}
