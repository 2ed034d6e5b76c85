//! Direct tests of the guards: each in the situation that trips it, and just before.

use super::*;
use crate::log::id::{Digest, RunId};
use crate::session::guard_state::GuardState;
use crate::session::usage::UsdCost;
use crate::session::{SessionPhase, SessionTerms};

fn run() -> RunId {
    RunId { session: "a".parse().unwrap(), iteration: 1, nonce: 7 }
}

fn session(phase: SessionPhase, change: impl FnOnce(&mut Session)) -> Session {
    let watch = GuardState { at: Some(at(0)), ..GuardState::default() };
    let mut session = Session { terms: SessionTerms::default(), watch, ..crate::session::tests::session(phase) };
    change(&mut session);
    session
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// Formats an end with its reason.
fn end_in_words(closing: &SessionEnd) -> String {
    format!("{:?}: {}", closing.ending, closing.reason.as_deref().unwrap_or_default())
}

/// Returns the step after an iteration.
fn settled_result(change: impl FnOnce(&mut Session)) -> String {
    match session(SessionPhase::Settled(AfterIteration::Continue), change).next_step() {
        SessionStep::StartIteration => "another".to_owned(),
        SessionStep::End(closing) => end_in_words(&closing),
        other => panic!("{other:?}"),
    }
}

/// Returns the decision after a turn.
fn judged_result(verdict: GateVerdict, claim: Option<Promise>, change: impl FnOnce(&mut Session)) -> String {
    let judged = session(SessionPhase::Judging(run(), claim), |session| {
        session.verdict = verdict;
        if verdict == GateVerdict::Block {
            session.blocking.push(BlockingHook { hook: "check".to_owned(), most: None, reason: None });
        }
        change(session);
    });
    match judged.next_step() {
        SessionStep::DecideGate(_, GateDecision::Next(AfterIteration::Close(closing))) => end_in_words(&closing),
        SessionStep::DecideGate(_, decision) => format!("{decision:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn session_ends_when_time_or_cost_is_used_up() {
    let time = |lasted: u64| {
        settled_result(|session| {
            session.terms.wall_time = Some(Duration::from_mins(90));
            session.watch.lasted = Duration::from_mins(lasted);
        })
    };
    assert_eq!(time(89), "another");
    assert_eq!(time(90), "Limit: the wall time of 90 min is used up");
    let cost = |spent: f64| {
        settled_result(|session| {
            session.terms.cost = UsdCost::from_dollars(2.5);
            session.watch.used.cost = UsdCost::from_dollars(spent);
        })
    };
    assert_eq!(cost(2.49), "another");
    assert_eq!(cost(2.6), "Limit: $2.60 were spent, and the cost limit is $2.50");
}

/// A used-up budget prevents a send-back, but not the completion of the work.
#[test]
fn budgets_are_checked_before_next_turn() {
    let spent = |session: &mut Session| {
        session.terms.wall_time = Some(Duration::from_secs(1));
        session.watch.lasted = Duration::from_secs(2);
    };
    assert_eq!(judged_result(GateVerdict::Block, None, spent), "Limit: the wall time of 1 s is used up");
    assert_eq!(
        judged_result(GateVerdict::Pass, None, spent),
        "Next(Continue)",
        "what comes after the iteration comes first"
    );
    assert_eq!(judged_result(GateVerdict::Pass, Some(Promise::Complete), spent), "Completed: ");
}

#[test]
fn guard_names_itself_in_end_reason() {
    assert_eq!(
        settled_result(|session| (session.failures, session.watch.failing_for) = (3, Duration::from_mins(5))),
        "Escalated: circuit breaker: 3 iterations failed in a row"
    );
    assert_eq!(
        settled_result(|session| (session.failures, session.terms.max_failures) = (1, 1)),
        "Escalated: circuit breaker: an iteration failed, and no failure is allowed"
    );
    assert_eq!(
        settled_result(|session| session.watch.postponed = 24),
        "Escalated: the agent was rate limited 24 times in a row"
    );
    assert_eq!(settled_result(|session| session.watch.postponed = 23), "another");
    assert_eq!(settled_result(|session| session.iteration = 25), "Limit: 25 iterations are the limit");
}

/// Sets a session up with a number of equal blocks in a row.
fn with_equal_blocks(before: u32) -> impl FnOnce(&mut Session) {
    move |session| {
        let block = Some(Digest::of_bytes(b"red"));
        session.blocking = vec![BlockingHook { hook: "check".to_owned(), most: None, reason: Some("red".to_owned()) }];
        (session.retries, session.watch.block) = (before, block);
        session.sent_back.insert("check".to_owned(), before);
        (session.watch.last_block, session.watch.same_blocks) = (block, before);
    }
}

#[test]
fn same_block_three_times_escalates_early() {
    let under = |limit: RetryLimitAction, before: u32| {
        judged_result(GateVerdict::Block, Some(Promise::Complete), |session| {
            with_equal_blocks(before)(session);
            session.terms.on_retry_limit = limit;
        })
    };
    assert_eq!(under(RetryLimitAction::Escalate, 1), "SendBack");
    let early = "Escalated: `check` blocks 3 times in a row with the same reason";
    assert_eq!(under(RetryLimitAction::Escalate, 2), early);
    assert_eq!(under(RetryLimitAction::Ask, 2), "Ask");
    // Under `complete`, the session does not escalate before the limit.
    assert_eq!(under(RetryLimitAction::Complete, 2), "SendBack");
    let passes =
        "Completed: `check` still blocks after sending the agent back 5 times; `on_retry_limit: complete` lets it pass";
    assert_eq!(under(RetryLimitAction::Complete, 5), passes);
    let other = |session: &mut Session| session.watch.block = Some(Digest::of_bytes(b"still red"));
    let changed = judged_result(GateVerdict::Block, None, |session| {
        with_equal_blocks(2)(session);
        other(session);
    });
    assert_eq!(changed, "SendBack");
}

#[test]
fn retry_limit_does_not_waive_other_hooks() {
    let beside = |besides: GateVerdict, strict: bool| {
        judged_result(GateVerdict::Block, Some(Promise::Complete), |session| {
            with_equal_blocks(5)(session);
            (session.terms.on_retry_limit, session.terms.strict) = (RetryLimitAction::Complete, strict);
            session.watch.besides = besides;
        })
    };
    assert_eq!(beside(GateVerdict::Fail, true), "Next(Continue)");
    assert_eq!(beside(GateVerdict::Continue, true), "Next(Continue)");
    assert_eq!(beside(GateVerdict::Continue, false), "Next(Continue)");
    assert!(beside(GateVerdict::Fail, false).starts_with("Completed: "), "`strict: false` lets it go");
    assert!(beside(GateVerdict::Pass, true).starts_with("Completed: "));
    let overlooked = judged_result(GateVerdict::Block, Some(Promise::Complete), |session| {
        with_equal_blocks(5)(session);
        (session.terms.on_retry_limit, session.ignored_blocks) = (RetryLimitAction::Complete, vec!["lint".to_owned()]);
    });
    assert!(overlooked.ends_with("; `lint` did not pass, and a person let it pass"), "{overlooked}");
}

#[test]
fn person_answer_continues_aborts_or_ignores() {
    let answered = |answer: GateAnswer, claim, besides| {
        let asking = session(SessionPhase::Asking(run(), claim, Some(answer)), |session| {
            with_equal_blocks(2)(session);
            session.verdict = GateVerdict::Block;
            session.watch.besides = besides;
        });
        let SessionStep::DecideGate(_, decision) = asking.next_step() else { panic!("{:?}", asking.next_step()) };
        match decision {
            GateDecision::Next(AfterIteration::Close(closing)) => end_in_words(&closing),
            decision => format!("{decision:?}"),
        }
    };
    let done = Some(Promise::Complete);
    assert_eq!(answered(GateAnswer::Continue, done, GateVerdict::Pass), "SendBack");
    assert_eq!(
        answered(GateAnswer::Abort, done, GateVerdict::Pass),
        "Escalated: `check` still blocks after sending the agent back 2 times, and a person ended it"
    );
    assert_eq!(
        answered(GateAnswer::Ignore, done, GateVerdict::Pass),
        "Completed: `check` still blocks after sending the agent back 2 times, and a person let it pass"
    );
    assert_eq!(answered(GateAnswer::Ignore, None, GateVerdict::Pass), "Next(Continue)");
    assert_eq!(
        answered(GateAnswer::Ignore, done, GateVerdict::Fail),
        "Next(Continue)",
        "others have failed by themselves"
    );
}

#[test]
fn thrashing_is_detected_before_next_turn() {
    let stood = |verdict, claim, before, most| {
        judged_result(verdict, claim, |session| {
            session.terms.thrashing = most;
            session.watch.begin_judging("said", Some(Digest::of_bytes(b"change")));
            session.watch.end_judging();
            session.watch.same_stands = before;
        })
    };
    let thrashing =
        |times| format!("Escalated: thrashing: the same change with the same result {times} times in a row");
    for verdict in [GateVerdict::Pass, GateVerdict::Fail, GateVerdict::Continue, GateVerdict::Block] {
        assert_eq!(stood(verdict, None, 2, 3), thrashing(3), "{verdict:?}");
        assert!(!stood(verdict, None, 1, 3).contains("thrashing"), "{verdict:?}");
        assert!(!stood(verdict, None, 9, 0).contains("thrashing"), "{verdict:?}: it is off");
    }
    assert_eq!(stood(GateVerdict::Pass, Some(Promise::Complete), 9, 3), "Completed: ");
}

#[test]
fn gate_reports_remaining_send_backs() {
    let most = |hooks: &[(Option<u32>, u32)], retries, session_most| {
        session(SessionPhase::Judging(run(), None), |session| {
            (session.verdict, session.retries, session.terms.max_hook_retries) =
                (GateVerdict::Block, retries, session_most);
            for (index, (most, sent)) in hooks.iter().enumerate() {
                let hook = index.to_string();
                session.sent_back.insert(hook.clone(), *sent);
                session.blocking.push(BlockingHook { hook, most: *most, reason: Some(format!("why {index}")) });
            }
        })
    };
    assert_eq!(most(&[(None, 1)], 1, 5).max_send_backs(), Some(5));
    assert_eq!(most(&[(Some(2), 1)], 1, 5).max_send_backs(), Some(2));
    assert_eq!(most(&[(Some(2), 1), (None, 3)], 3, 5).max_send_backs(), Some(5), "as the one with most left");
    assert_eq!(most(&[(Some(2), 2), (None, 5)], 6, 5).max_send_backs(), Some(6), "none is left");
    assert_eq!(most(&[(Some(9), 0)], 0, 0).max_send_backs(), Some(9));
    assert_eq!(most(&[(None, 0), (None, 0)], 0, 5).block_reason().as_deref(), Some("why 0; why 1"));
    let passes = session(SessionPhase::Judging(run(), None), |_| {});
    assert_eq!((passes.max_send_backs(), passes.block_reason()), (None, None));
}

#[test]
fn rate_limit_is_awaited_within_wall_time() {
    let waiting = |wall_time: Option<u64>| {
        session(SessionPhase::Postponed(at(600)), |session| {
            session.terms.wall_time = wall_time.map(Duration::from_secs);
            session.watch.postponed = 1;
        })
    };
    assert_eq!(waiting(None).next_step(), SessionStep::Wait(crate::NextAction::WaitUntil(at(600))));
    assert_eq!(waiting(None).next_step_at(Some(at(599))), SessionStep::Wait(crate::NextAction::WaitUntil(at(600))));
    assert_eq!(waiting(None).next_step_at(Some(at(600))), SessionStep::StartIteration);
    assert_eq!(waiting(Some(601)).next_step(), SessionStep::Wait(crate::NextAction::WaitUntil(at(600))));
    let SessionStep::End(closing) = waiting(Some(600)).next_step() else { panic!("it waits") };
    assert_eq!(end_in_words(&closing), "Limit: the wall time of 10 min is used up, before the agent's rate limit ends");
}

#[test]
fn reason_at_the_limit_names_each_hook_with_its_own_count() {
    let reason = |sent: [u32; 2]| {
        judged_result(GateVerdict::Block, None, |session| {
            session.blocking.clear();
            for (hook, most, sent) in [("check", Some(2), sent[0]), ("lint", Some(sent[1]), sent[1])] {
                session.blocking.push(BlockingHook { hook: hook.to_owned(), most, reason: None });
                session.sent_back.insert(hook.to_owned(), sent);
            }
        })
    };
    assert_eq!(reason([2, 2]), "Escalated: `check` and `lint` still block after sending the agent back 2 times");
    let apart = "Escalated: `check` still blocks after sending the agent back 2 times; \
                 `lint` still blocks after sending the agent back once";
    assert_eq!(reason([5, 1]), apart, "what it was sent back for by the other does not count");
    let never = "Escalated: `check` still blocks after sending the agent back 2 times; \
                 `lint` blocks, and may not send the agent back";
    assert_eq!(reason([2, 0]), never);
}
