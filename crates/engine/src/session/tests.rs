//! Direct tests of the session's next step: every phase, and every combination of claim and verdict.

use core::time::Duration;

use super::*;
use crate::command::limits::EngineLimits;
use crate::effects::hook_outcome::{HookFailurePolicy, HookOutcome};

pub(crate) fn session(phase: SessionPhase) -> Session {
    Session {
        name: "a".parse().unwrap(),
        config: ConfigDigest::ZERO,
        protected: None,
        task: None,
        hold: TaskHold::Never,
        finished: false,
        work: WorkSource::Given,
        workspace_mode: WorkspaceMode::InPlace,
        workspace: None,
        report: false,
        judged_done_at: None,
        resumes_at_gate: false,
        remediations: 0,
        rechecks: 0,
        rejudged: false,
        released_tasks: vec![],
        lost_tasks: Vec::new(),
        last_words: None,
        escalated: vec![],
        goal: None,
        agent: "command:true".to_owned(),
        terms: SessionTerms {
            max_iterations: 3,
            max_hook_retries: 2,
            max_failures: 2,
            failure_span: Duration::ZERO,
            ..SessionTerms::default()
        },
        nonce: 7,
        fresh: false,
        nesting: 0,
        owner: "w1".parse().unwrap(),
        phase,
        pending_hooks: vec![],
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
        ignored_hooks: Vec::new(),
        ignored_blocks: Vec::new(),
        waivers: Vec::new(),
        checked: false,
        unchecked: 0,
        verdict: GateVerdict::Pass,
        pending: vec![],
        last_turn: None,
        delivered: false,
        keeps_feedback: true,
        conversation: None,
        stopping: None,
        watch: GuardState::default(),
        started: Seq(1),
        started_at: Timestamp::from_millis(0),
        ended_at: None,
        version: Seq(9),
    }
}

fn run() -> RunId {
    RunId { session: "a".parse().unwrap(), iteration: 1, nonce: 7 }
}

fn effect() -> EffectId {
    EffectId { seq: Seq(5), index: 0 }
}

fn feedback_ref() -> FeedbackRef {
    FeedbackRef { at: Seq(6), possibly_seen: false, passing: false, person: false }
}

fn session_end(ending: SessionEndKind) -> SessionEnd {
    SessionEnd { ending, reason: None }
}

fn turn(purpose: TurnPurpose) -> SessionPhase {
    SessionPhase::Turn(AgentTurn { run: run(), effect: effect(), purpose, feedback: vec![], claimed: false })
}

/// Returns every phase that a session can be in.
fn all_phases() -> Vec<SessionPhase> {
    let close = || AfterIteration::Close(session_end(SessionEndKind::Completed));
    vec![
        SessionPhase::Started,
        SessionPhase::Preparing(run()),
        turn(TurnPurpose::Work),
        turn(TurnPurpose::SendBack),
        turn(TurnPurpose::Recovery),
        turn(TurnPurpose::Delivery),
        turn(TurnPurpose::UnjudgedDelivery(session_end(SessionEndKind::Limit))),
        SessionPhase::Judging(run(), None),
        SessionPhase::Judging(run(), Some(Promise::Complete)),
        SessionPhase::Decided(run(), GateDecision::SendBack),
        SessionPhase::Decided(run(), GateDecision::Next(AfterIteration::Continue)),
        SessionPhase::Decided(run(), GateDecision::Next(close())),
        SessionPhase::Asking(run(), None, None),
        SessionPhase::Asking(run(), None, Some(GateAnswer::Continue)),
        SessionPhase::Postponed(Timestamp::from_millis(1000)),
        SessionPhase::Failed(run()),
        SessionPhase::Recovering(run()),
        SessionPhase::Settled(AfterIteration::Continue),
        SessionPhase::Settled(AfterIteration::TakeUp),
        SessionPhase::Settled(close()),
        SessionPhase::Closing(session_end(SessionEndKind::Limit)),
        SessionPhase::Ended(SessionEndKind::Completed),
    ]
}

/// Returns the kind of an ending, and whether it has a reason.
fn ending(closing: &SessionEnd) -> (SessionEndKind, bool) {
    (closing.ending, closing.reason.is_some())
}

#[test]
fn each_phase_has_expected_next_step() {
    let steps: Vec<SessionStep> = all_phases().into_iter().map(|phase| session(phase).next_step()).collect();
    let complete = || GateDecision::Next(AfterIteration::Close(session_end(SessionEndKind::Completed)));
    let expected = [
        SessionStep::StartIteration,
        SessionStep::StartTurn(run(), TurnPurpose::Work),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::DecideGate(run(), GateDecision::Next(AfterIteration::Continue)),
        SessionStep::DecideGate(run(), complete()),
        SessionStep::StartTurn(run(), TurnPurpose::SendBack),
        SessionStep::CompleteIteration(run()),
        SessionStep::CompleteIteration(run()),
        SessionStep::Wait(NextAction::Answer),
        SessionStep::DecideGate(run(), GateDecision::SendBack),
        SessionStep::Wait(NextAction::WaitUntil(Timestamp::from_millis(1000))),
        SessionStep::StartIteration,
        SessionStep::StartTurn(run(), TurnPurpose::Recovery),
        SessionStep::StartIteration,
        SessionStep::StartIteration,
        SessionStep::End(session_end(SessionEndKind::Completed)),
        SessionStep::End(session_end(SessionEndKind::Limit)),
        SessionStep::Wait(NextAction::Nothing),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn pending_hook_is_awaited_in_every_phase() {
    let second = EffectId { index: 1, ..effect() };
    for phase in all_phases() {
        let waiting = Session { pending_hooks: vec![effect(), second], ..session(phase) };
        assert_eq!(waiting.next_step(), SessionStep::Wait(NextAction::Hook(effect())), "{:?}", waiting.phase);
        assert_eq!(waiting.next_action(), NextAction::Hook(effect()));
        assert!(!waiting.is_over(), "{:?}", waiting.phase);
    }
    assert!(session(SessionPhase::Ended(SessionEndKind::Completed)).is_over());
}

#[test]
fn stop_request_ends_session_from_every_phase() {
    let asked = || session_end(SessionEndKind::Cancelled);
    let steps: Vec<SessionStep> = all_phases()
        .into_iter()
        .map(|phase| Session { stopping: Some(asked()), ..session(phase) }.next_step())
        .collect();
    let expected = [
        SessionStep::End(asked()),
        SessionStep::InterruptIteration(run()),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::Wait(NextAction::Turn(effect())),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::InterruptIteration(run()),
        SessionStep::End(asked()),
        SessionStep::End(asked()),
        SessionStep::End(asked()),
        SessionStep::End(asked()),
        SessionStep::End(asked()),
        SessionStep::End(session_end(SessionEndKind::Completed)),
        SessionStep::End(session_end(SessionEndKind::Limit)),
        SessionStep::Wait(NextAction::Nothing),
    ];
    assert_eq!(steps, expected);
}

/// Hooks that have started are still awaited, and the hooks of the end itself run in any case.
#[test]
fn stop_request_skips_all_hooks_but_end_hooks() {
    for phase in all_phases() {
        let over = matches!(phase, SessionPhase::Ended(_));
        let stopping = Some(session_end(SessionEndKind::Cancelled));
        let waiting = Session { pending_hooks: vec![effect()], stopping, ..session(phase) };
        let expected =
            if over { SessionStep::Wait(NextAction::Hook(effect())) } else { SessionStep::SkipHook(effect()) };
        assert_eq!(waiting.next_step(), expected, "{:?}", waiting.phase);
        assert_eq!(waiting.next_action(), NextAction::Hook(effect()));
    }
}

/// Returns the decision about a turn: `send back`, `ask`, `continue`, or an ending; `let pass` if it is complete
/// although hooks block.
fn judge_turn_result(claim: Option<Promise>, verdict: GateVerdict, change: impl FnOnce(&mut Session)) -> String {
    let blocks = (verdict == GateVerdict::Block).then(|| blocker("check", None));
    let mut session =
        Session { verdict, blocking: Vec::from_iter(blocks), ..session(SessionPhase::Judging(run(), claim)) };
    change(&mut session);
    match session.next_step() {
        SessionStep::DecideGate(_, GateDecision::SendBack) => "send back".to_owned(),
        SessionStep::DecideGate(_, GateDecision::Ask) => "ask".to_owned(),
        SessionStep::DecideGate(_, GateDecision::Next(AfterIteration::Continue)) => "continue".to_owned(),
        SessionStep::DecideGate(_, GateDecision::Next(AfterIteration::Close(closing))) => match ending(&closing) {
            (SessionEndKind::Completed, false) => "completed".to_owned(),
            (SessionEndKind::Completed, true) => "let pass".to_owned(),
            (ending, true) => format!("{ending:?}"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn blocker(hook: &str, most: Option<u32>) -> BlockingHook {
    BlockingHook { hook: hook.to_owned(), most, reason: None }
}

const CLAIMS: [Option<Promise>; 4] = [None, Some(Promise::Complete), Some(Promise::Escalate), Some(Promise::Blocked)];
const VERDICTS: [GateVerdict; 5] =
    [GateVerdict::Pass, GateVerdict::Fail, GateVerdict::Continue, GateVerdict::Block, GateVerdict::Escalate];

/// Checks the decisions: one row per claim, one column per verdict.
#[track_caller]
fn check_gate(change: impl Fn(&mut Session), expected: [[&str; 5]; 4]) {
    let table = CLAIMS.map(|claim| VERDICTS.map(|verdict| judge_turn_result(claim, verdict, &change)));
    assert_eq!(table, expected.map(|row| row.map(str::to_owned)));
}

const STUCK: [&str; 5] = ["Escalated"; 5];

#[test]
fn default_terms_complete_on_promise_and_passing_hooks() {
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
fn gate_completion_treats_every_turn_as_claim() {
    check_gate(
        |session| session.terms.completion = CompletionMode::Gate,
        [
            ["completed", "continue", "continue", "send back", "Escalated"],
            ["completed", "continue", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
}

#[test]
fn failed_hooks_do_not_block_when_not_strict() {
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
        |session| (session.terms.strict, session.terms.completion) = (false, CompletionMode::Gate),
        [
            ["completed", "completed", "continue", "send back", "Escalated"],
            ["completed", "completed", "continue", "send back", "Escalated"],
            STUCK,
            STUCK,
        ],
    );
}

#[test]
fn send_backs_stop_at_retry_limit() {
    for (retries, most, expected) in
        [(0, 2, "send back"), (1, 2, "send back"), (2, 2, "limit"), (3, 2, "limit"), (0, 0, "limit")]
    {
        let limits = [
            (RetryLimitAction::Escalate, ["Escalated"; 2]),
            (RetryLimitAction::Complete, ["continue", "let pass"]),
            (RetryLimitAction::Ask, ["ask"; 2]),
        ];
        for (on_retry_limit, at_limit) in limits {
            for (claim, at_limit) in [None, Some(Promise::Complete)].into_iter().zip(at_limit) {
                let given = judge_turn_result(claim, GateVerdict::Block, |session| {
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
    assert_eq!(judge_turn_result(Some(Promise::Complete), GateVerdict::Pass, at_limit), "completed");
    assert_eq!(judge_turn_result(Some(Promise::Complete), GateVerdict::Fail, at_limit), "continue");
    assert_eq!(judge_turn_result(None, GateVerdict::Escalate, at_limit), "Escalated");
}

/// The session's limit, two send-backs here, holds for each hook without its own.
#[test]
fn hook_limit_bounds_the_send_backs_of_that_hook_alone() {
    let judged_by = |blockers: &[(&str, Option<u32>, u32)], claim, on_retry_limit| {
        judge_turn_result(claim, GateVerdict::Block, |session| {
            session.blocking.clear();
            session.terms.on_retry_limit = on_retry_limit;
            for (hook, most, sent) in blockers {
                session.blocking.push(blocker(hook, *most));
                session.sent_back.insert((*hook).to_owned(), *sent);
            }
        })
    };
    let escalating = |blockers: &[(&str, Option<u32>, u32)]| judged_by(blockers, None, RetryLimitAction::Escalate);
    assert_eq!(escalating(&[("check", Some(2), 1)]), "send back");
    assert_eq!(escalating(&[("check", Some(2), 2)]), "Escalated");
    assert_eq!(escalating(&[("check", Some(0), 0)]), "Escalated");
    assert_eq!(escalating(&[("check", None, 2)]), "Escalated");
    assert_eq!(escalating(&[("check", Some(7), 6)]), "send back", "its own limit may be higher than the session's");
    // While one of them is below its limit, the gate stays closed.
    let at_limits = |lint, claim| {
        [RetryLimitAction::Escalate, RetryLimitAction::Complete, RetryLimitAction::Ask]
            .map(|on| judged_by(&[("slow", Some(1), 1), lint], claim, on))
    };
    for claim in [None, Some(Promise::Complete)] {
        assert_eq!(at_limits(("lint", None, 1), claim), ["send back"; 3]);
    }
    assert_eq!(at_limits(("lint", None, 2), None), ["Escalated", "continue", "ask"]);
    assert_eq!(at_limits(("lint", None, 2), Some(Promise::Complete)), ["Escalated", "let pass", "ask"]);
    // A hook that does not block this time has no influence.
    let other = |session: &mut Session| session.sent_back = BTreeMap::from([("lint".to_owned(), 9)]);
    assert_eq!(judge_turn_result(None, GateVerdict::Block, other), "send back");
}

#[test]
fn verdict_is_strictest_hook_outcome() {
    use HookOutcome as O;
    let of = |outcome| {
        [HookFailurePolicy::Ignore, HookFailurePolicy::Block, HookFailurePolicy::Escalate]
            .map(|on| GateVerdict::from_hook_outcome(outcome, on))
    };
    for outcome in [O::Success, O::Skip] {
        assert_eq!(of(outcome), [GateVerdict::Pass; 3], "{outcome:?}");
    }
    for (outcome, verdict) in
        [(O::Block, GateVerdict::Block), (O::Continue, GateVerdict::Continue), (O::Escalate, GateVerdict::Escalate)]
    {
        assert_eq!(of(outcome), [verdict; 3]);
    }
    for outcome in [O::Failure, O::TimedOut, O::Cancelled, O::Interrupted] {
        assert_eq!(of(outcome), [GateVerdict::Fail, GateVerdict::Block, GateVerdict::Escalate], "{outcome:?}");
    }
    assert!(VERDICTS.is_sorted(), "mildest first");
}

/// Returns the ending after an iteration; `None` means another iteration.
fn settled_ending(next: AfterIteration, change: impl FnOnce(&mut Session)) -> Option<SessionEndKind> {
    let mut session = session(SessionPhase::Settled(next));
    change(&mut session);
    match session.next_step() {
        SessionStep::StartIteration => None,
        SessionStep::End(closing) => Some(closing.ending),
        other => panic!("{other:?}"),
    }
}

#[test]
fn iteration_limit_ignores_interrupted_iterations() {
    for next in [AfterIteration::Continue, AfterIteration::TakeUp] {
        let after = |iteration, interrupted| {
            settled_ending(next.clone(), |session| (session.iteration, session.interrupted) = (iteration, interrupted))
        };
        assert_eq!(after(2, 0), None);
        assert_eq!(after(3, 0), Some(SessionEndKind::Limit));
        assert_eq!(after(4, 0), Some(SessionEndKind::Limit));
        assert_eq!(after(3, 1), None);
        assert_eq!(after(7, 5), None);
        assert_eq!(after(8, 5), Some(SessionEndKind::Limit));
    }
}

#[test]
fn failure_limit_precedes_iteration_limit() {
    let after = |failures, iteration| {
        settled_ending(AfterIteration::Continue, |session| {
            (session.failures, session.iteration) = (failures, iteration)
        })
    };
    assert_eq!(after(1, 1), None);
    assert_eq!(after(2, 2), Some(SessionEndKind::Escalated));
    assert_eq!(after(1, 3), Some(SessionEndKind::Limit));
    assert_eq!(after(2, 3), Some(SessionEndKind::Escalated));
}

/// A recovery turn requires that another iteration may follow.
#[test]
fn failed_iteration_recovers_when_hooks_report() {
    let after = |phase: SessionPhase, failures, iteration| {
        let pending = vec![feedback_ref()];
        Session { failures, iteration, pending, ..session(phase) }.next_step()
    };
    let (failed, recovering) = (|| SessionPhase::Failed(run()), || SessionPhase::Recovering(run()));
    assert_eq!(after(failed(), 1, 1), SessionStep::StartIteration, "what is pending from before can wait");
    assert_eq!(after(recovering(), 1, 1), SessionStep::StartTurn(run(), TurnPurpose::Recovery));
    for phase in [failed(), recovering()] {
        let SessionStep::End(closing) = after(phase.clone(), 2, 1) else { panic!("it goes on") };
        assert_eq!(ending(&closing), (SessionEndKind::Escalated, true));
        let SessionStep::End(closing) = after(phase, 1, 3) else { panic!("no iteration would follow the recovery") };
        assert_eq!(ending(&closing), (SessionEndKind::Limit, true));
    }
    for phase in [failed(), recovering()] {
        let stopping = Some(session_end(SessionEndKind::Cancelled));
        let stopped = Session { stopping, pending: vec![feedback_ref()], failures: 1, ..session(phase) };
        assert_eq!(stopped.next_step(), SessionStep::End(session_end(SessionEndKind::Cancelled)));
    }
}

/// A limit of zero allows no failure, but does not turn a successful iteration into one.
#[test]
fn first_failure_ends_session_when_none_is_allowed() {
    let after = |failures| {
        settled_ending(AfterIteration::Continue, |session| {
            (session.failures, session.terms.max_failures) = (failures, 0)
        })
    };
    assert_eq!(after(0), None);
    assert_eq!(after(1), Some(SessionEndKind::Escalated));
}

#[test]
fn delivery_turn_follows_only_passed_work() {
    use SessionEndKind as E;
    for ending in [E::Completed, E::Limit, E::Escalated, E::Cancelled, E::Error] {
        let close = || SessionEnd { ending, reason: Some("so".to_owned()) };
        let decided =
            || Session { last_turn: Some(Seq(3)), ..session(SessionPhase::Settled(AfterIteration::Close(close()))) };
        let stopped = || Session {
            stopping: Some(close()),
            last_turn: Some(Seq(3)),
            pending: vec![feedback_ref()],
            ..session(SessionPhase::Settled(AfterIteration::Continue))
        };
        assert_eq!(decided().next_step(), SessionStep::End(close()), "nothing is pending");
        assert_eq!(stopped().next_step(), SessionStep::End(close()), "the end was asked for");
        let pending = Session { pending: vec![feedback_ref()], ..decided() };
        let expected = match ending {
            E::Completed => SessionStep::StartTurn(run(), TurnPurpose::Delivery),
            _ => SessionStep::End(close()),
        };
        assert_eq!(pending.next_step(), expected);
        assert_eq!(
            Session { delivered: true, ..pending }.next_step(),
            SessionStep::End(close()),
            "once in an iteration"
        );
    }
}

#[test]
fn delivery_turn_follows_iteration_limit_only() {
    let pending = || Session {
        pending: vec![feedback_ref()],
        last_turn: Some(Seq(3)),
        ..session(SessionPhase::Settled(AfterIteration::Continue))
    };
    assert_eq!(pending().next_step(), SessionStep::StartIteration, "the next iteration will carry it");
    let limit = || Session { iteration: 3, ..pending() };
    let SessionStep::StartTurn(run, TurnPurpose::Delivery) = limit().next_step() else {
        panic!("{:?}", limit().next_step())
    };
    assert_eq!(run.iteration, 3);
    let SessionStep::End(closing) = (Session { delivered: true, ..limit() }).next_step() else { panic!("it goes on") };
    assert_eq!(ending(&closing), (SessionEndKind::Limit, true));
    let mut spent = limit();
    spent.terms.tokens = Some(1);
    spent.watch.used.input = 5;
    let SessionStep::End(closing) = spent.next_step() else { panic!("{:?}", spent.next_step()) };
    assert_eq!(ending(&closing), (SessionEndKind::Limit, true));
    let failed = Session { failures: 2, ..pending() };
    let SessionStep::End(closing) = failed.next_step() else { panic!("{:?}", failed.next_step()) };
    assert_eq!(ending(&closing), (SessionEndKind::Escalated, true));
}

/// A request to end the session does not undo an earlier decision.
#[test]
fn stop_request_keeps_earlier_decision() {
    let stopping = Some(session_end(SessionEndKind::Cancelled));
    let settled = session(SessionPhase::Settled(AfterIteration::Close(session_end(SessionEndKind::Completed))));
    assert_eq!(Session { stopping, ..settled }.next_step(), SessionStep::End(session_end(SessionEndKind::Completed)));
}

/// The work itself may crash the program again and again.
#[test]
fn consecutive_interruptions_end_session() {
    let interrupted = |times| Session {
        iteration: times,
        interrupted: times,
        interrupted_in_a_row: times,
        ..session(SessionPhase::Settled(AfterIteration::TakeUp))
    };
    assert_eq!(interrupted(EngineLimits::INTERRUPTIONS_IN_A_ROW - 1).next_step(), SessionStep::StartIteration);
    let SessionStep::End(closing) = interrupted(EngineLimits::INTERRUPTIONS_IN_A_ROW).next_step() else {
        panic!("it goes on")
    };
    assert_eq!(ending(&closing), (SessionEndKind::Error, true));
}
