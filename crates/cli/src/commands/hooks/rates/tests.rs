//! What counts as what, told by short logs.

use serde_json::{Map, json};
use windlass_engine::{Decision, Envelope, Metadata, Next, Node, Seq, SeriesId, StopHook, payload};

use super::*;

fn action(word: &str) -> RuleAction {
    match word {
        "complete" => RuleAction::Complete,
        "continue" => RuleAction::Continue,
        _ => RuleAction::Escalate,
    }
}

/// One event: a task, what happens, how, and in which session, if in one. A hook decides at its gate then.
fn event(line: &str) -> (TaskId, Event, Option<SessionName>) {
    let words: Vec<&str> = line.split(' ').collect();
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let series = SeriesId(1);
    let session = words.get(3).map(|name| name.parse().unwrap());
    let in_series = session.is_none().then_some(series);
    let event = match word(1) {
        "registers" => {
            let hook = if word(2) == "promise" { StopHook::Promise } else { StopHook::Validation };
            payload::HookRegistered { hook, enabled: true, metadata: Map::new() }.into()
        }
        "judged" => {
            let signal = if word(2) == "COMPLETE" { Signal::Complete } else { Signal::Continue };
            payload::ValidationFinished {
                series,
                iteration: 1,
                passed: true,
                signal,
                results: vec![],
                promises: vec![],
                hook: None,
                guard: None,
                feedback: vec![],
                output: None,
                files_modified: vec![],
                alike: None,
            }
            .into()
        }
        "advances" => payload::SeriesAdvanced { series, iteration: 2 }.into(),
        "gate" => {
            let verdict = if word(2) == "pass" { Verdict::Pass } else { Verdict::Block };
            let (decision, run) = (Decision::Next(Next::Continue), "main.3.00000000000000ff".parse().unwrap());
            payload::GateDecided { run, verdict, decision, retries: 0, max_retries: None, reason: None }.into()
        }
        "completed" => payload::TaskCompleted { result: None, artifacts: vec![] }.into(),
        "reopened" => {
            let from = if word(2) == "failed" { State::Failed } else { State::Completed };
            payload::TaskReopened { from, reason: String::new() }.into()
        }
        "nobody" => evaluated(in_series, None, word(2)),
        hook => evaluated(in_series, Some(hook.parse().unwrap()), word(2)),
    };
    (word(0).parse().unwrap(), event, session)
}

fn evaluated(series: Option<SeriesId>, hook: Option<HookId>, word: &str) -> Event {
    let failed = word == "failed";
    let metadata = if failed { Map::from_iter([("error".to_owned(), json!("it broke"))]) } else { Map::new() };
    let (action, reason) = (action(word), String::new());
    let results = vec![];
    payload::HookEvaluated { series, iteration: 1, hook, action, reason, next_prompt: None, metadata, results }.into()
}

/// Counts a log: an event is at the position of its line, and so many seconds after the beginning.
fn counted(wanted: Wanted, lines: &[&str]) -> Rates {
    let mut rates = Rates::new(wanted);
    for (seq, line) in (1..).zip(lines) {
        let (task, event, session) = event(line);
        let metadata =
            Metadata { triggered_by: "ann".to_owned(), cause: None, depth: 0, via: None, forced: false, owes: None };
        let (node, timestamp) = (Node::Task(task), at(seq));
        let envelope = Envelope { timestamp, node, session, iteration: None, event, metadata };
        rates.take(&Record { seq: Seq(seq), envelope });
    }
    rates
}

fn at(seq: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(seq).unwrap() * 1000)
}

/// Of a log that begins with the registration of HOOK-1, how many said complete, and how many of them did not hold.
fn check(lines: &[&str], expected: (usize, usize)) {
    let all = [&["T1 registers"], lines].concat();
    let total = counted(Wanted::default(), &all).total();
    assert_eq!((total.complete, total.rejected), expected, "{lines:?}");
}

#[test]
fn a_complete_holds_until_something_speaks_against_it() {
    check(&["T1 HOOK-1 complete"], (1, 0));
    check(&["T1 HOOK-1 complete", "T1 judged COMPLETE", "T1 completed"], (1, 0));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 complete", "T1 completed"], (2, 0));
    check(&["T1 HOOK-1 complete", "T1 gate pass", "T1 completed"], (1, 0));
    check(&["T1 HOOK-1 continue", "T1 advances", "T1 HOOK-1 complete", "T1 completed"], (1, 0));
}

#[test]
fn what_speaks_against_it() {
    check(&["T1 HOOK-1 complete", "T1 advances"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 judged CONTINUE"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 continue"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 escalate"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 nobody continue"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 gate block"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 completed", "T1 reopened completed"], (1, 1));
}

#[test]
fn nothing_is_rejected_twice_and_nothing_by_another_task() {
    check(&["T1 HOOK-1 complete", "T1 advances", "T1 judged CONTINUE", "T1 gate block"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 advances", "T1 completed", "T1 reopened completed"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 complete", "T1 advances", "T1 HOOK-1 complete"], (3, 2));
    check(&["T1 HOOK-1 complete", "T2 advances", "T2 judged CONTINUE", "T2 gate block"], (1, 0));
    check(&["T1 HOOK-1 complete", "T1 completed", "T2 reopened completed"], (1, 0));
    check(&["T1 HOOK-1 complete", "T1 reopened failed"], (1, 0));
    let again = ["T1 completed", "T1 reopened completed", "T1 completed", "T1 reopened completed"];
    check(&[&["T1 HOOK-1 complete"], &again[..]].concat(), (1, 1));
}

#[test]
fn a_complete_at_a_gate_is_settled_by_that_gate() {
    let said = "T1 HOOK-1 complete pump";
    check(&[said], (1, 0));
    check(&[said, "T1 gate pass pump", "T1 completed"], (1, 0));
    check(&[said, "T1 gate block pump"], (1, 1));
    check(&[said, "T1 gate block pump", said, "T1 gate pass pump", "T1 completed"], (2, 1));
    check(&[said, "T1 gate pass pump", "T1 completed", "T1 reopened completed"], (1, 1));
    check(&[said, "T1 gate block pump", "T1 completed", "T1 reopened completed"], (1, 1));
    // What comes later is about other work, and so is the gate of another session.
    check(&[said, "T1 gate pass pump", "T1 HOOK-1 continue pump", "T1 gate block pump"], (1, 0));
    check(&[said, "T1 gate block valve"], (1, 0));
    check(&[said, "T1 judged CONTINUE", "T1 advances", "T1 gate pass pump"], (1, 0));
    // The same question once more, after a crash.
    check(&[said, said, "T1 gate block pump"], (2, 2));
    // Somebody completes the task while the gate is at it.
    check(&[said, "T1 completed", "T1 reopened completed"], (1, 1));
}

#[test]
fn a_gate_speaks_against_a_complete_in_a_series() {
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 continue pump"], (1, 1));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 complete pump", "T1 gate block pump"], (2, 2));
    check(&["T1 HOOK-1 complete", "T1 HOOK-1 complete pump", "T1 gate pass pump", "T1 advances"], (2, 1));
}

const TWO: &[&str] = &[
    "T1 registers validation",
    "T2 registers promise",
    "T1 HOOK-1 continue",
    "T2 HOOK-2 complete",
    "T1 HOOK-1 failed",
    "T2 advances",
    "T1 HOOK-1 complete",
    "T2 nobody continue",
];

#[test]
fn each_hook_each_type_and_all_of_them() {
    let rates = counted(Wanted::default(), TWO);
    let first = Tally { complete: 1, goes_on: 1, escalate: 1, errors: 1, rejected: 0, last: Some(at(7)) };
    let second = Tally { complete: 1, rejected: 1, last: Some(at(4)), ..Tally::default() };
    let rated = |hook, kind, task, tally| Rated { hook: HookId(hook), kind, task: Some(TaskId(task)), tally };
    assert_eq!(rates.hooks(), [rated(1, "validation", 1, first), rated(2, "promise", 2, second)]);
    assert_eq!(rates.types(), BTreeMap::from([("validation", first), ("promise", second)]));
    assert_eq!(rates.total(), Tally { complete: 2, rejected: 1, ..first });
    let told = first.to_json();
    assert_eq!(
        (&told["evaluations"], &told["continueRate"], &told["rejectedRate"]),
        (&json!(3), &json!(0.3333), &json!(0.0))
    );
    assert_eq!(Tally::default().to_json()["rejectedRate"], json!(null));
}

#[test]
fn one_hook_or_those_of_late() {
    let of_one = counted(Wanted { hook: Some(HookId(2)), since: None }, TWO);
    assert_eq!(of_one.total(), Tally { complete: 1, rejected: 1, last: Some(at(4)), ..Tally::default() });
    let of_late = counted(Wanted { hook: None, since: Some(at(5)) }, TWO);
    assert_eq!(of_late.hooks().len(), 1, "HOOK-2 has decided before that");
    assert_eq!(of_late.total().evaluations(), 2);
    let at_gates = ["T1 registers", "T1 HOOK-1 complete pump", "T1 HOOK-9 escalate pump"];
    let of_one = counted(Wanted { hook: Some(HookId(1)), since: None }, &at_gates);
    assert_eq!(
        of_one.types(),
        BTreeMap::from([("validation", Tally { complete: 1, last: Some(at(2)), ..Tally::default() })])
    );
    assert!(counted(Wanted { hook: Some(HookId(9)), since: None }, TWO).is_empty());
}
