//! Every cascade of hooks terminates, and the log says where.

use super::script::{ScriptProject, default_rules};
use crate::command::limits::EngineLimits;
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::EventRecord;
use crate::log::event_type::EventType;
use crate::session::NextAction;

fn hook_effect(hook: &str, class: HookClass) -> HookEffect {
    let (hook, point) = (hook.to_owned(), HookPoint::PreIteration);
    HookEffect { hook, point, class, on_failure: HookFailurePolicy::Ignore, send_backs: None }
}

/// Returns rules with hooks at these events, each with a unique name.
fn rules_with_hooks(events: &[(EventType, usize)]) -> EngineRules {
    let hooks = events.iter().map(|(event, count)| {
        let class = if *event == EventType::TurnFinished { HookClass::Gate } else { HookClass::Other };
        (*event, (0..*count).map(|number| hook_effect(&format!("{event}-{number}"), class)).collect())
    });
    let effects = HookPlan::for_all_tasks(super::script::SESSION_CONFIG, "w1".parse().unwrap(), hooks);
    EngineRules { effects: Some(effects), ..default_rules() }
}

fn pending_hooks(project: &ScriptProject) -> Vec<PendingEffect> {
    project.pending_effects().into_iter().filter(|effect| matches!(effect.kind, EffectKind::Hook(_))).collect()
}

/// Runs all pending hooks: first the commands from inside each hook, then the actions at its end.
fn run_pending_hooks(project: &mut ScriptProject, inside: &str, asks: &str) {
    while let Some(effect) = pending_hooks(project).first() {
        let id = effect.id;
        project.run_script(&format!("begin {id}"));
        for line in inside.lines() {
            project.run_script(&format!("via={id} {line}"));
        }
        let refused: Vec<_> = project
            .run_script(&format!("finish {id}{asks}"))
            .into_iter()
            .filter(|line| line.starts_with('!'))
            .collect();
        assert_eq!(refused, [""; 0], "a hook can always end");
    }
    project.simulate_crash();
}

fn is_bookkeeping(record: &EventRecord) -> bool {
    use EventType as E;
    matches!(record.kind(), E::HookStarted | E::HookFinished | E::HookError | E::ActionError | E::ConfigRecorded)
}

/// Returns the number of events that hooks have caused, plus the number of hooks that these events have enqueued.
fn count_descendants(project: &ScriptProject) -> usize {
    let deep = project.log.iter().filter(|record| record.envelope.metadata.depth > 0);
    let events = deep.clone().filter(|record| !is_bookkeeping(record)).count();
    let owes = |record: &EventRecord| record.envelope.metadata.owes.as_ref().map_or(0, |owes| owes.hooks.len());
    events + deep.map(owes).sum::<usize>()
}

fn error_texts(project: &ScriptProject, kind: EventType) -> Vec<String> {
    let is_of_type = |record: &&EventRecord| record.kind() == kind;
    let text =
        |record: &EventRecord| serde_json::to_value(record).unwrap()["data"]["error"].as_str().unwrap().to_owned();
    project.log.iter().filter(is_of_type).map(text).collect()
}

const TWO_CREATIONS: &str = r#" asks=create_task:{"goal":"more"};create_task:{"goal":"more"}"#;

#[test]
fn hooks_that_cause_hooks_end_within_event_limit() {
    let created = |count| rules_with_hooks(&[(EventType::TaskCreated, count)]);
    let also_at_the_end = rules_with_hooks(&[(EventType::TaskCreated, 2), (EventType::HookFinished, 1)]);
    let at_the_beginning = rules_with_hooks(&[(EventType::TaskCreated, 1), (EventType::HookStarted, 3)]);
    let table = [
        ("at the beginning of hooks", at_the_beginning, "add more", TWO_CREATIONS),
        ("by actions", created(1), "", TWO_CREATIONS),
        ("by commands", created(1), "add more\nadd more", ""),
        ("by both", created(1), "add more\nadd more", TWO_CREATIONS),
        ("three of them by actions", created(3), "", TWO_CREATIONS),
        ("three of them by both", created(3), "add more\nadd more", TWO_CREATIONS),
        ("at the end of hooks as well", also_at_the_end, "add more", TWO_CREATIONS),
        (
            "at every error",
            rules_with_hooks(&[(EventType::TaskCreated, 1), (EventType::ActionError, 2)]),
            "",
            TWO_CREATIONS,
        ),
        (
            "at every failure",
            rules_with_hooks(&[(EventType::TaskCreated, 1), (EventType::HookError, 2)]),
            "add more",
            TWO_CREATIONS,
        ),
    ];
    for (name, rules, inside, asks) in table {
        let mut project = ScriptProject::after(rules, "add one");
        run_pending_hooks(&mut project, inside, asks);
        let count = count_descendants(&project);
        assert!(count <= EngineLimits::CASCADE_EVENTS as usize, "{name}: {count}");
        assert!(count >= 32, "{name}: {count}, so the bound is not what stops it");
        let deepest = project.log.iter().map(|record| record.envelope.metadata.depth).max();
        assert!(deepest <= Some(EngineLimits::CASCADE_DEPTH + 1), "{name}: {deepest:?}");
    }
}

#[test]
fn cascade_beyond_depth_limit_is_recorded_once() {
    let mut project = ScriptProject::after(rules_with_hooks(&[(EventType::TaskCreated, 1)]), "add one");
    run_pending_hooks(&mut project, "", r#" asks=create_task:{"goal":"more"}"#);
    let deepest =
        project.log.iter().filter(|record| !is_bookkeeping(record)).map(|record| record.envelope.metadata.depth);
    assert_eq!(deepest.max(), Some(EngineLimits::CASCADE_DEPTH));
    assert_eq!(project.memory.tasks().count(), 1 + usize::from(EngineLimits::CASCADE_DEPTH));
    let said = ["a cascade of hooks may make 8 steps; the rest is refused"];
    assert_eq!(error_texts(&project, EventType::HookError), said);
    let error = project.event_data(EventType::HookError);
    assert_eq!(error["hookName"], "task_created-0");
    assert_eq!(error["originalEvent"]["type"], "task_created");
}

#[test]
fn cascade_beyond_event_limit_is_recorded_once_per_event() {
    let mut project = ScriptProject::after(rules_with_hooks(&[(EventType::TaskCreated, 200)]), "add one");
    assert!(pending_hooks(&project).iter().all(|effect| effect.share == 1));
    let last = pending_hooks(&project).last().unwrap().id;
    for effect in pending_hooks(&project).iter().filter(|effect| effect.id != last) {
        project.run_script(&format!("hook {}", effect.id));
    }
    assert_eq!(pending_hooks(&project)[0].share, 200, "what the others did not use");
    let answered = project.run_script(&format!("hook {last}{TWO_CREATIONS}"));
    for (task, said) in ["T2", "T3"].into_iter().zip(answered[2..].chunks(3)) {
        assert_eq!((&said[0], &said[2]), (&format!("{task} task_created"), &format!("{task} task_ready")));
        assert!(said[1].starts_with(&format!("{task} hook_error task_created-0, task_created-1, ")), "{}", said[1]);
        assert!(said[1].ends_with(": a cascade of hooks may make 256 events; the rest is refused"), "{}", said[1]);
    }
    assert_eq!((answered.len(), pending_hooks(&project)), (8, vec![]));
}

#[test]
fn calls_nest_at_most_three_deep() {
    let mut project = ScriptProject::after(
        rules_with_hooks(&[(EventType::TaskStarted, 1)]),
        "add a\nadd b\nadd c\nadd d\nadd e\nstart T1",
    );
    for (call, task) in (1..=EngineLimits::NESTED_CALLS).zip(2..) {
        let hook = pending_hooks(&project).last().unwrap().id;
        let answered = project.run_script(&format!("begin {hook}\nvia={hook} start T{task}"));
        assert_eq!(answered[1], format!("T{task} task_started"), "call {call}");
        let inner = pending_hooks(&project).pop().unwrap();
        assert_eq!((inner.nesting, inner.depth), (call, call + 1));
    }
    let hook = pending_hooks(&project).last().unwrap().id;
    let answered = project.run_script(&format!("begin {hook}\nvia={hook} start T5"));
    assert_eq!(answered[1], "! a cascade of hooks may make 3 nested calls; the rest is refused");
    project.simulate_crash();
}

#[test]
fn command_from_hook_records_hook_and_reduces_its_share() {
    let mut project =
        ScriptProject::after(rules_with_hooks(&[(EventType::TaskStarted, 1)]), "add one\nstart T1\nbegin 4.0");
    assert_eq!(pending_hooks(&project)[0].share, EngineLimits::CASCADE_EVENTS);
    project.run_script("via=4.0 add more labels=x");
    let created = project.log.iter().rev().find(|record| record.kind() == EventType::TaskCreated).unwrap();
    let metadata = &created.envelope.metadata;
    assert_eq!(
        (metadata.via, metadata.depth, created.cause_position().map(|seq| seq.0)),
        (Some("4.0".parse().unwrap()), 1, Some(4))
    );
    assert_eq!(pending_hooks(&project)[0].share, EngineLimits::CASCADE_EVENTS - 2);
    // A start enqueues another hook, which gets half of the rest.
    project.run_script("via=4.0 start T2");
    let [outer, inner] = &pending_hooks(&project)[..] else { panic!("{:?}", pending_hooks(&project)) };
    assert_eq!(inner.share, (EngineLimits::CASCADE_EVENTS - 2 - 2) / 2);
    assert_eq!(outer.share, EngineLimits::CASCADE_EVENTS - 2 - 2 - inner.share);
    project.simulate_crash();
    // A command without events costs nothing, and a refused command is not recorded.
    let before = project.log.len();
    assert_eq!(project.run_script("via=4.0 relabel T2 labels=x\nvia=4.0 start T2").len(), 1);
    assert_eq!(project.log.len(), before);
}

/// The hook gets half of the share that remains after the events of the command.
#[test]
fn hook_enqueued_by_nested_command_gets_half_remaining_share() {
    let mut project = ScriptProject::after(
        rules_with_hooks(&[(EventType::TaskStarted, 1), (EventType::TaskReady, 1)]),
        "add one\nstart T1",
    );
    let outer = pending_hooks(&project).pop().unwrap();
    project.run_script(&format!("begin {}", outer.id));
    let before = pending_hooks(&project).iter().find(|effect| effect.id == outer.id).unwrap().share;
    // Two events, and one hook of theirs.
    assert_eq!(project.run_script(&format!("via={} add more", outer.id)).len(), 2);
    let [.., after, inner] = &pending_hooks(&project)[..] else { panic!("{:?}", pending_hooks(&project)) };
    assert_eq!(inner.share, (before - 3) / 2);
    assert_eq!((after.id, after.share), (outer.id, before - 3 - inner.share));
}

#[test]
fn command_of_hook_needs_enough_share() {
    // One event for each of the hooks: a new task would take two.
    let mut project =
        ScriptProject::after(rules_with_hooks(&[(EventType::TaskStarted, 200)]), "add one\nadd two\nstart T1");
    let id = pending_hooks(&project)[0].id;
    project.run_script(&format!("begin {id}"));
    let before = project.memory.clone();
    let refused = "! a cascade of hooks may make 256 events; the rest is refused";
    assert_eq!(project.run_script(&format!("via={id} add more")), [refused]);
    assert_eq!(project.memory, before);
    assert_eq!(
        project.run_script(&format!("via={id} relabel T2 labels=x\nvia={id} relabel T2 labels=y")),
        ["T2 task_updated", refused]
    );
    assert_eq!(project.run_script(&format!("finish {id}")).len(), 1, "it ends all the same");
}

#[test]
fn only_a_hook_that_runs_can_give_commands() {
    let mut project = ScriptProject::after(rules_with_hooks(&[(EventType::TaskStarted, 1)]), "add one\nstart T1");
    assert_eq!(project.run_script("via=4.0 add more"), ["! there is no pending effect 4.0"]);
    assert_eq!(project.run_script("hook 4.0\nvia=4.0 add more")[2..], ["! there is no pending effect 4.0"]);
}

/// The authority of a command stays the same when a hook gives it.
#[test]
fn command_from_hook_has_same_rights_as_person() {
    let mut project =
        ScriptProject::after(rules_with_hooks(&[(EventType::TaskStarted, 1)]), "add one\nclaim T1 by=w9 for=60s");
    let id = pending_hooks(&project)[0].id;
    project.run_script(&format!("begin {id}"));
    assert_eq!(project.run_script(&format!("via={id} block T1")), ["! T1 is held by w9 (epoch 1)"]);
    assert_eq!(project.run_script(&format!("forced via={id} block T1")), ["T1 task_blocked because (forced)"]);
}

// Sessions.

/// In every iteration the hooks ask for far more than their limit, and each gate still runs.
#[test]
fn loop_is_not_starved_by_cascades_of_its_hooks() {
    let busy_events = [(EventType::IterationStarted, 1), (EventType::TurnFinished, 2), (EventType::TaskCreated, 1)];
    let mut project = ScriptProject::after(rules_with_hooks(&busy_events), "session a max=6");
    for iteration in 1..=6 {
        run_pending_hooks(&mut project, "add more\nadd more", TWO_CREATIONS);
        project.run_script(&format!("turn-done a.{iteration}"));
        let gates = pending_hooks(&project);
        assert_eq!(gates.len(), 2, "{iteration}");
        assert!(
            gates
                .iter()
                .all(|gate| gate.depth == 1 && gate.share == EngineLimits::CASCADE_EVENTS / 2 && gate.nesting == 0)
        );
    }
    run_pending_hooks(&mut project, "add more\nadd more", TWO_CREATIONS);
    assert_eq!(project.find_session("a").next_action(), NextAction::Nothing);
    assert!(project.find_session("a").ending_kind().is_some());
}

/// A hook may start a session whose hooks start another session, up to a limit.
#[test]
fn sessions_nest_at_most_three_deep() {
    for event in [EventType::SessionStarted, EventType::IterationStarted, EventType::TurnFinished] {
        let mut project = ScriptProject::after(rules_with_hooks(&[(event, 1)]), "session s0");
        for nested in 1..=4 {
            if event == EventType::TurnFinished {
                project.run_script(&format!("turn-done s{}.1", nested - 1));
            }
            let hook = pending_hooks(&project).pop().unwrap();
            let answered = project.run_script(&format!("begin {}\nvia={} session s{nested}", hook.id, hook.id));
            let refused = "! a cascade of hooks may make 3 nested calls; the rest is refused";
            assert_eq!(answered[1] == refused, nested == 4, "{event} {nested}: {answered:?}");
        }
        let nesting = [0, 1, 2, 3].map(|nested| project.find_session(&format!("s{nested}")).nesting);
        assert_eq!(nesting, [0, 1, 2, 3]);
        project.simulate_crash();
    }
}

/// A session does not use the share of the hook that it runs inside, and continues when that share is used up.
#[test]
fn session_inside_hook_continues_when_hook_share_is_exhausted() {
    let hooks_of = [(EventType::TaskStarted, 100), (EventType::TurnFinished, 1)];
    let mut project = ScriptProject::after(rules_with_hooks(&hooks_of), "add one\nstart T1");
    let outer = pending_hooks(&project)[0].id;
    project.run_script(&format!("begin {outer}\nvia={outer} session inner max=2"));
    let share =
        |project: &ScriptProject| pending_hooks(project).iter().find(|effect| effect.id == outer).unwrap().share;
    assert_eq!(share(&project), 1, "its start is paid for");
    project.run_script(&format!("via={outer} relabel T1 labels=x"));
    assert_eq!(share(&project), 0);
    for iteration in 1..=2 {
        let mut give = |line: &str| {
            let answered = project.run_script(&format!("via={outer} {line}"));
            assert!(answered.iter().all(|line| !line.starts_with('!')), "{line}: {answered:?}");
        };
        give(&format!("turn-done inner.{iteration}"));
        give("begin turn_finished-0");
        give("finish turn_finished-0");
    }
    assert!(project.find_session("inner").ending_kind().is_some());
    project.simulate_crash();
}
