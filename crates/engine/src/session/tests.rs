//! Direct tests of the session's next step: every phase, and every combination of claim and verdict.

use core::time::Duration;

use super::*;
use crate::command::limits::Limits;
use crate::effects::hook_outcome::{HookOutcome, OnFailure};

pub(crate) fn session(phase: Phase) -> Session {
    Session {
        name: "a".parse().unwrap(),
        config: ConfigDigest::ZERO,
        protected: None,
        task: None,
        hold: Hold::Never,
        finished: false,
        work: Work::Given,
        grounds: Grounds::InPlace,
        workspace: None,
        report: false,
        done_at: None,
        resumes: false,
        remediations: 0,
        rechecks: 0,
        rejudged: false,
        left: vec![],
        lost: Vec::new(),
        plea: None,
        escalated: vec![],
        goal: None,
        agent: "command:true".to_owned(),
        terms: Terms {
            max_iterations: 3,
            max_hook_retries: 2,
            max_failures: 2,
            failure_span: Duration::ZERO,
            ..Terms::default()
        },
        nonce: 7,
        fresh: false,
        nesting: 0,
        owner: "w1".parse().unwrap(),
        phase,
        owed: vec![],
        iteration: 1,
        iterations_before: 0,
        interrupted: 0,
        interrupted_in_a_row: 0,
        failures: 0,
        retries: 0,
        sent_back: BTreeMap::new(),
        asking: None,
        broken_gate: false,
        blocking: Vec::new(),
        ignores: Vec::new(),
        overlooked: Vec::new(),
        waivers: Vec::new(),
        checked: false,
        unchecked: 0,
        verdict: Verdict::Pass,
        pending: vec![],
        last_turn: None,
        delivered: false,
        keeps_feedback: true,
        conversation: None,
        stopping: None,
        watch: Watch::default(),
        version: Seq(9),
    }
}

fn run() -> RunId {
    RunId { session: "a".parse().unwrap(), iteration: 1, nonce: 7 }
}

fn effect() -> EffectId {
    EffectId { seq: Seq(5), index: 0 }
}

fn piece() -> Piece {
    Piece { at: Seq(6), possibly_seen: false, passing: false, person: false }
}

fn closing(ending: Ending) -> Closing {
    Closing { ending, reason: None }
}

fn turn(purpose: Purpose) -> Phase {
    Phase::Turn(Turn { run: run(), effect: effect(), purpose, feedback: vec![], claimed: false })
}

/// Returns every phase that a session can be in.
fn phases() -> Vec<Phase> {
    let close = || Next::Close(closing(Ending::Completed));
    vec![
        Phase::Started,
        Phase::Preparing(run()),
        turn(Purpose::Work),
        turn(Purpose::SendBack),
        turn(Purpose::Recovery),
        turn(Purpose::Delivery),
        turn(Purpose::UnjudgedDelivery(closing(Ending::Limit))),
        Phase::Judging(run(), None),
        Phase::Judging(run(), Some(Promise::Complete)),
        Phase::Decided(run(), Decision::SendBack),
        Phase::Decided(run(), Decision::Next(Next::Continue)),
        Phase::Decided(run(), Decision::Next(close())),
        Phase::Asking(run(), None, None),
        Phase::Asking(run(), None, Some(GateAnswer::Continue)),
        Phase::Postponed(Timestamp::from_millis(1000)),
        Phase::Failed(run()),
        Phase::Recovering(run()),
        Phase::Settled(Next::Continue),
        Phase::Settled(Next::TakeUp),
        Phase::Settled(close()),
        Phase::Closing(closing(Ending::Limit)),
        Phase::Ended(Ending::Completed),
    ]
}

/// Returns the kind of an ending, and whether it has a reason.
fn ending(closing: &Closing) -> (Ending, bool) {
    (closing.ending, closing.reason.is_some())
}

#[test]
fn each_phase_leads_to_the_next() {
    let steps: Vec<Step> = phases().into_iter().map(|phase| session(phase).step()).collect();
    let complete = || Decision::Next(Next::Close(closing(Ending::Completed)));
    let expected = [
        Step::StartIteration,
        Step::StartTurn(run(), Purpose::Work),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::DecideGate(run(), Decision::Next(Next::Continue)),
        Step::DecideGate(run(), complete()),
        Step::StartTurn(run(), Purpose::SendBack),
        Step::CompleteIteration(run()),
        Step::CompleteIteration(run()),
        Step::Wait(Wanted::Answer),
        Step::DecideGate(run(), Decision::SendBack),
        Step::Wait(Wanted::Moment(Timestamp::from_millis(1000))),
        Step::StartIteration,
        Step::StartTurn(run(), Purpose::Recovery),
        Step::StartIteration,
        Step::StartIteration,
        Step::End(closing(Ending::Completed)),
        Step::End(closing(Ending::Limit)),
        Step::Wait(Wanted::Nothing),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn in_every_phase_the_first_hook_is_waited_for() {
    let second = EffectId { index: 1, ..effect() };
    for phase in phases() {
        let waiting = Session { owed: vec![effect(), second], ..session(phase) };
        assert_eq!(waiting.step(), Step::Wait(Wanted::Hook(effect())), "{:?}", waiting.phase);
        assert_eq!(waiting.wanted(), Wanted::Hook(effect()));
        assert!(!waiting.is_over(), "{:?}", waiting.phase);
    }
    assert!(session(Phase::Ended(Ending::Completed)).is_over());
}

#[test]
fn stopping_leads_to_the_end_from_every_phase() {
    let asked = || closing(Ending::Cancelled);
    let steps: Vec<Step> =
        phases().into_iter().map(|phase| Session { stopping: Some(asked()), ..session(phase) }.step()).collect();
    let expected = [
        Step::End(asked()),
        Step::InterruptIteration(run()),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::Wait(Wanted::Turn(effect())),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::InterruptIteration(run()),
        Step::End(asked()),
        Step::End(asked()),
        Step::End(asked()),
        Step::End(asked()),
        Step::End(asked()),
        Step::End(closing(Ending::Completed)),
        Step::End(closing(Ending::Limit)),
        Step::Wait(Wanted::Nothing),
    ];
    assert_eq!(steps, expected);
}

/// Hooks that have started are still awaited, and the hooks of the end itself run in any case.
#[test]
fn stopping_skips_hooks_but_for_those_of_the_end() {
    for phase in phases() {
        let over = matches!(phase, Phase::Ended(_));
        let stopping = Some(closing(Ending::Cancelled));
        let waiting = Session { owed: vec![effect()], stopping, ..session(phase) };
        let expected = if over { Step::Wait(Wanted::Hook(effect())) } else { Step::SkipHook(effect()) };
        assert_eq!(waiting.step(), expected, "{:?}", waiting.phase);
        assert_eq!(waiting.wanted(), Wanted::Hook(effect()));
    }
}

/// Returns the decision about a turn: `send back`, `ask`, `continue`, or an ending; `let pass` if it is complete
/// although hooks block.
fn judged(claim: Option<Promise>, verdict: Verdict, change: impl FnOnce(&mut Session)) -> String {
    let blocks = (verdict == Verdict::Block).then(|| blocker("check", None));
    let mut session = Session { verdict, blocking: Vec::from_iter(blocks), ..session(Phase::Judging(run(), claim)) };
    change(&mut session);
    match session.step() {
        Step::DecideGate(_, Decision::SendBack) => "send back".to_owned(),
        Step::DecideGate(_, Decision::Ask) => "ask".to_owned(),
        Step::DecideGate(_, Decision::Next(Next::Continue)) => "continue".to_owned(),
        Step::DecideGate(_, Decision::Next(Next::Close(closing))) => match ending(&closing) {
            (Ending::Completed, false) => "completed".to_owned(),
            (Ending::Completed, true) => "let pass".to_owned(),
            (ending, true) => format!("{ending:?}"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn blocker(hook: &str, most: Option<u32>) -> Blocker {
    Blocker { hook: hook.to_owned(), most, reason: None }
}

const CLAIMS: [Option<Promise>; 4] = [None, Some(Promise::Complete), Some(Promise::Escalate), Some(Promise::Blocked)];
const VERDICTS: [Verdict; 5] = [Verdict::Pass, Verdict::Fail, Verdict::Continue, Verdict::Block, Verdict::Escalate];

/// Checks the decisions: one row per claim, one column per verdict.
#[track_caller]
fn check_gate(change: impl Fn(&mut Session), expected: [[&str; 5]; 4]) {
    let table = CLAIMS.map(|claim| VERDICTS.map(|verdict| judged(claim, verdict, &change)));
    assert_eq!(table, expected.map(|row| row.map(str::to_owned)));
}

const STUCK: [&str; 5] = ["Escalated"; 5];

#[test]
fn by_default_the_work_is_complete_when_the_agent_says_so_and_every_hook_passes() {
    check_gate(
        |_| {},
        [
            ["continue", "continue", "continue", "send back", "Escalated"],
            ["completed", "continue", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
}

#[test]
fn without_a_promise_every_turn_is_a_claim() {
    check_gate(
        |session| session.terms.completion = Completion::Gate,
        [
            ["completed", "continue", "continue", "send back", "Escalated"],
            ["completed", "continue", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
}

#[test]
fn hooks_that_fail_are_let_go_where_it_is_not_strict() {
    check_gate(
        |session| session.terms.strict = false,
        [
            ["continue", "continue", "continue", "send back", "Escalated"],
            ["completed", "completed", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
    check_gate(
        |session| (session.terms.strict, session.terms.completion) = (false, Completion::Gate),
        [
            ["completed", "completed", "continue", "send back", "Escalated"],
            ["completed", "completed", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
}

#[test]
fn the_agent_is_sent_back_only_so_often() {
    for (retries, most, expected) in
        [(0, 2, "send back"), (1, 2, "send back"), (2, 2, "limit"), (3, 2, "limit"), (0, 0, "limit")]
    {
        let limits = [
            (OnRetryLimit::Escalate, ["Escalated"; 2]),
            (OnRetryLimit::Complete, ["continue", "let pass"]),
            (OnRetryLimit::Ask, ["ask"; 2]),
        ];
        for (on_retry_limit, at_limit) in limits {
            for (claim, at_limit) in [None, Some(Promise::Complete)].into_iter().zip(at_limit) {
                let given = judged(claim, Verdict::Block, |session| {
                    session.sent_back = BTreeMap::from([("check".to_owned(), retries)]);
                    session.terms.max_hook_retries = most;
                    session.terms.on_retry_limit = on_retry_limit;
                });
                let expected = if expected == "limit" { at_limit } else { expected };
                assert_eq!(given, expected, "{retries} of {most}, {on_retry_limit:?}, {claim:?}");
            }
        }
    }
    // The limit concerns blocks only.
    let at_limit = |session: &mut Session| session.sent_back = BTreeMap::from([("check".to_owned(), 2)]);
    assert_eq!(judged(Some(Promise::Complete), Verdict::Pass, at_limit), "completed");
    assert_eq!(judged(Some(Promise::Complete), Verdict::Fail, at_limit), "continue");
    assert_eq!(judged(None, Verdict::Escalate, at_limit), "Escalated");
}

/// The session's limit, two send-backs here, holds for each hook without its own.
#[test]
fn hook_limit_bounds_the_send_backs_of_that_hook_alone() {
    let judged_by = |blockers: &[(&str, Option<u32>, u32)], claim, on_retry_limit| {
        judged(claim, Verdict::Block, |session| {
            session.blocking.clear();
            session.terms.on_retry_limit = on_retry_limit;
            for (hook, most, sent) in blockers {
                session.blocking.push(blocker(hook, *most));
                session.sent_back.insert((*hook).to_owned(), *sent);
            }
        })
    };
    let escalating = |blockers: &[(&str, Option<u32>, u32)]| judged_by(blockers, None, OnRetryLimit::Escalate);
    assert_eq!(escalating(&[("check", Some(2), 1)]), "send back");
    assert_eq!(escalating(&[("check", Some(2), 2)]), "Escalated");
    assert_eq!(escalating(&[("check", Some(0), 0)]), "Escalated");
    assert_eq!(escalating(&[("check", None, 2)]), "Escalated");
    assert_eq!(escalating(&[("check", Some(7), 6)]), "send back", "its own limit may be higher than the session's");
    // While one of them is below its limit, the gate stays closed.
    let at_limits = |lint, claim| {
        [OnRetryLimit::Escalate, OnRetryLimit::Complete, OnRetryLimit::Ask]
            .map(|on| judged_by(&[("slow", Some(1), 1), lint], claim, on))
    };
    for claim in [None, Some(Promise::Complete)] {
        assert_eq!(at_limits(("lint", None, 1), claim), ["send back"; 3]);
    }
    assert_eq!(at_limits(("lint", None, 2), None), ["Escalated", "continue", "ask"]);
    assert_eq!(at_limits(("lint", None, 2), Some(Promise::Complete)), ["Escalated", "let pass", "ask"]);
    // A hook that does not block this time has no influence.
    let other = |session: &mut Session| session.sent_back = BTreeMap::from([("lint".to_owned(), 9)]);
    assert_eq!(judged(None, Verdict::Block, other), "send back");
}

#[test]
fn a_verdict_is_the_strictest_of_what_hooks_come_to() {
    use HookOutcome as O;
    let of = |outcome| [OnFailure::Ignore, OnFailure::Block, OnFailure::Escalate].map(|on| Verdict::of(outcome, on));
    for outcome in [O::Success, O::Skip] {
        assert_eq!(of(outcome), [Verdict::Pass; 3], "{outcome:?}");
    }
    for (outcome, verdict) in
        [(O::Block, Verdict::Block), (O::Continue, Verdict::Continue), (O::Escalate, Verdict::Escalate)]
    {
        assert_eq!(of(outcome), [verdict; 3]);
    }
    for outcome in [O::Failure, O::TimedOut, O::Cancelled, O::Interrupted] {
        assert_eq!(of(outcome), [Verdict::Fail, Verdict::Block, Verdict::Escalate], "{outcome:?}");
    }
    assert!(VERDICTS.is_sorted(), "mildest first");
}

/// Returns the ending after an iteration; `None` means another iteration.
fn settled(next: Next, change: impl FnOnce(&mut Session)) -> Option<Ending> {
    let mut session = session(Phase::Settled(next));
    change(&mut session);
    match session.step() {
        Step::StartIteration => None,
        Step::End(closing) => Some(closing.ending),
        other => panic!("{other:?}"),
    }
}

#[test]
fn iterations_are_limited_and_interrupted_ones_do_not_count() {
    for next in [Next::Continue, Next::TakeUp] {
        let after = |iteration, interrupted| {
            settled(next.clone(), |session| (session.iteration, session.interrupted) = (iteration, interrupted))
        };
        assert_eq!(after(2, 0), None);
        assert_eq!(after(3, 0), Some(Ending::Limit));
        assert_eq!(after(4, 0), Some(Ending::Limit));
        assert_eq!(after(3, 1), None);
        assert_eq!(after(7, 5), None);
        assert_eq!(after(8, 5), Some(Ending::Limit));
    }
}

#[test]
fn failures_in_a_row_are_limited_before_iterations_are() {
    let after = |failures, iteration| {
        settled(Next::Continue, |session| (session.failures, session.iteration) = (failures, iteration))
    };
    assert_eq!(after(1, 1), None);
    assert_eq!(after(2, 2), Some(Ending::Escalated));
    assert_eq!(after(1, 3), Some(Ending::Limit));
    assert_eq!(after(2, 3), Some(Ending::Escalated));
}

/// A recovery turn requires that another iteration may follow.
#[test]
fn a_failed_iteration_recovers_once_hooks_have_something_to_say() {
    let after = |phase: Phase, failures, iteration| {
        let pending = vec![piece()];
        Session { failures, iteration, pending, ..session(phase) }.step()
    };
    let (failed, recovering) = (|| Phase::Failed(run()), || Phase::Recovering(run()));
    assert_eq!(after(failed(), 1, 1), Step::StartIteration, "what is pending from before can wait");
    assert_eq!(after(recovering(), 1, 1), Step::StartTurn(run(), Purpose::Recovery));
    for phase in [failed(), recovering()] {
        let Step::End(closing) = after(phase.clone(), 2, 1) else { panic!("it goes on") };
        assert_eq!(ending(&closing), (Ending::Escalated, true));
        let Step::End(closing) = after(phase, 1, 3) else { panic!("no iteration would follow the recovery") };
        assert_eq!(ending(&closing), (Ending::Limit, true));
    }
    for phase in [failed(), recovering()] {
        let stopping = Some(closing(Ending::Cancelled));
        let stopped = Session { stopping, pending: vec![piece()], failures: 1, ..session(phase) };
        assert_eq!(stopped.step(), Step::End(closing(Ending::Cancelled)));
    }
}

/// A limit of zero allows no failure, but does not turn a successful iteration into one.
#[test]
fn where_no_failure_is_allowed_the_first_one_ends_it() {
    let after =
        |failures| settled(Next::Continue, |session| (session.failures, session.terms.max_failures) = (failures, 0));
    assert_eq!(after(0), None);
    assert_eq!(after(1), Some(Ending::Escalated));
}

#[test]
fn delivery_follows_passed_work_alone() {
    use Ending as E;
    for ending in [E::Completed, E::Limit, E::Escalated, E::Cancelled, E::Error] {
        let close = || Closing { ending, reason: Some("so".to_owned()) };
        let decided = || Session { last_turn: Some(Seq(3)), ..session(Phase::Settled(Next::Close(close()))) };
        let stopped = || Session {
            stopping: Some(close()),
            last_turn: Some(Seq(3)),
            pending: vec![piece()],
            ..session(Phase::Settled(Next::Continue))
        };
        assert_eq!(decided().step(), Step::End(close()), "nothing is pending");
        assert_eq!(stopped().step(), Step::End(close()), "the end was asked for");
        let pending = Session { pending: vec![piece()], ..decided() };
        let expected = match ending {
            E::Completed => Step::StartTurn(run(), Purpose::Delivery),
            _ => Step::End(close()),
        };
        assert_eq!(pending.step(), expected);
        assert_eq!(Session { delivered: true, ..pending }.step(), Step::End(close()), "once in an iteration");
    }
}

#[test]
fn delivery_comes_at_iteration_limit_and_at_no_other() {
    let pending =
        || Session { pending: vec![piece()], last_turn: Some(Seq(3)), ..session(Phase::Settled(Next::Continue)) };
    assert_eq!(pending().step(), Step::StartIteration, "the next iteration will carry it");
    let limit = || Session { iteration: 3, ..pending() };
    let Step::StartTurn(run, Purpose::Delivery) = limit().step() else { panic!("{:?}", limit().step()) };
    assert_eq!(run.iteration, 3);
    let Step::End(closing) = (Session { delivered: true, ..limit() }).step() else { panic!("it goes on") };
    assert_eq!(ending(&closing), (Ending::Limit, true));
    let mut spent = limit();
    spent.terms.tokens = Some(1);
    spent.watch.used.input = 5;
    let Step::End(closing) = spent.step() else { panic!("{:?}", spent.step()) };
    assert_eq!(ending(&closing), (Ending::Limit, true));
    let failed = Session { failures: 2, ..pending() };
    let Step::End(closing) = failed.step() else { panic!("{:?}", failed.step()) };
    assert_eq!(ending(&closing), (Ending::Escalated, true));
}

/// A request to end the session does not undo an earlier decision.
#[test]
fn what_was_decided_before_a_stop_stays_decided() {
    let stopping = Some(closing(Ending::Cancelled));
    let settled = session(Phase::Settled(Next::Close(closing(Ending::Completed))));
    assert_eq!(Session { stopping, ..settled }.step(), Step::End(closing(Ending::Completed)));
}

/// The work itself may crash the program again and again.
#[test]
fn interruptions_in_a_row_come_to_an_end() {
    let interrupted = |times| Session {
        iteration: times,
        interrupted: times,
        interrupted_in_a_row: times,
        ..session(Phase::Settled(Next::TakeUp))
    };
    assert_eq!(interrupted(Limits::INTERRUPTIONS - 1).step(), Step::StartIteration);
    let Step::End(closing) = interrupted(Limits::INTERRUPTIONS).step() else { panic!("it goes on") };
    assert_eq!(ending(&closing), (Ending::Error, true));
}
