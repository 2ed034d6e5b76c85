//! The steps of random histories, and their frequencies.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use windlass_engine::{
    Command, CompletionMode, DeletionMode, EdgeKind, GateAnswer, HookOutcome, NewSession, NewTask, NoteKind, OwnerName,
    Promise, RetryLimitAction, SessionEndKind, SessionName, SessionTerms, TaskId, TaskPatch, TaskPriority,
    TaskResolution, UsdCost, WorkSource, WorkspaceMode,
};

use crate::bridge_calls::{arbitrary_call, arbitrary_caller, arbitrary_point, arbitrary_verdict};
use crate::delivery::{arbitrary_change, arbitrary_moved_head, arbitrary_submission, gate_steps};
use crate::history::{
    EffectStep, HistoryStep, NAMED_TASKS, OutsideReply, SESSION_NONCE, StepAction, StepAuthority, TurnReference,
    owner_name, stop_session,
};
use crate::hook_actions::arbitrary_actions;
use crate::series_steps::arbitrary_series_step;
use crate::workflow_steps::{workflow_step_actions, workflow_triggers};

/// Generates histories of at most this many steps.
pub fn histories(steps: usize) -> impl Strategy<Value = Vec<HistoryStep>> {
    // A graph and a session come first, since most steps would otherwise name something that does not exist.
    let first = (vec(arbitrary_new_task(), 3..6), session_starts()).prop_map(|(tasks, session)| {
        let tasks =
            (0..).zip(tasks).map(|(others, new)| StepAction::Fixed(Command::CreateTask(limit_references(others, new))));
        tasks.chain([session]).map(HistoryStep::from).collect::<Vec<_>>()
    });
    (first, vec(arbitrary_step(), steps / 2..steps)).prop_map(|(first, rest)| [first, rest].concat())
}

/// Generates histories that are mostly about sessions.
pub fn session_histories(steps: usize) -> impl Strategy<Value = Vec<HistoryStep>> {
    let task = || HistoryStep::from(StepAction::Fixed(Command::CreateTask(sample_task())));
    // Half of the sessions have no budget, so that they get far.
    let session =
        prop_oneof![1 => session_starts(), 1 => session_starts_with(generous_terms(), Just(WorkspaceMode::InPlace))];
    let session = session.prop_map(HistoryStep::from);
    let go_on =
        (arbitrary_session(), arbitrary_reply()).prop_map(|(name, answer)| StepAction::ContinueSession(name, answer));
    let action = prop_oneof![12 => session_steps(), 12 => go_on, 2 => effect_steps(), 1 => task_steps()];
    let parts = (option::weighted(0.2, arbitrary_turn()), option::weighted(0.1, 0..3_usize), action);
    let step = parts.prop_map(|(inside, via, action)| HistoryStep { inside, via, ..HistoryStep::from(action) });
    (session, vec(step, steps / 2..steps))
        .prop_map(move |(session, rest)| [vec![task(), task(), task(), session], rest].concat())
}

/// Generates histories in which most work gets done and reaches the gates.
pub fn gate_histories(steps: usize) -> impl Strategy<Value = Vec<HistoryStep>> {
    let new = || HistoryStep::from(StepAction::Fixed(Command::CreateTask(sample_task())));
    // Only the gates limit these sessions.
    let completion = || generous_terms().prop_map(|terms| SessionTerms { completion: CompletionMode::Gate, ..terms });
    let workspace_mode = || prop_oneof![1 => Just(WorkspaceMode::InPlace), 4 => Just(WorkspaceMode::Worktrees)];
    let first = session_starts_with(completion(), workspace_mode()).prop_map(HistoryStep::from);
    let go_on =
        (arbitrary_session(), cooperative_reply()).prop_map(|(name, answer)| StepAction::ContinueSession(name, answer));
    let action = prop_oneof![
        40 => go_on,
        2 => session_starts_with(completion(), workspace_mode()),
        2 => gate_steps(),
        1 => arbitrary_session().prop_map(say_step),
        1 => (arbitrary_task_id(), any::<bool>()).prop_map(|(id, late)| StepAction::ExpireLease { id, late }),
        2 => session_steps(),
        2 => effect_steps(),
        2 => task_steps(),
    ];
    let parts =
        (option::weighted(0.05, arbitrary_turn()), option::weighted(0.05, 0..3_usize), arbitrary_authority(), action);
    let step = parts.prop_map(|(inside, via, authority, action)| HistoryStep {
        inside,
        via,
        authority,
        ..HistoryStep::from(action)
    });
    (first, vec(step, steps / 2..steps))
        .prop_map(move |(first, rest)| [vec![new(), new(), new(), first], rest].concat())
}

/// Generates histories in which a gate cannot run, and another session resumes the work.
pub fn stall_histories(steps: usize) -> impl Strategy<Value = Vec<HistoryStep>> {
    let go_on = |name: &'static str, answer: OutsideReply| {
        HistoryStep::from(StepAction::ContinueSession(name.parse().expect("a session name"), answer))
    };
    let first = (cooperative_reply(), 0..20_usize).prop_map(move |(answer, steps)| {
        let [well, fails] = [HookOutcome::Success, HookOutcome::Failure].map(|outcome| {
            let done = Some(Promise::Complete);
            OutsideReply { outcome, promise: done, fails: false, feedback: None, actions: vec![], ..answer.clone() }
        });
        let tasks = [(); 3].map(|()| HistoryStep::from(StepAction::Fixed(Command::CreateTask(sample_task()))));
        let prepared = [tasks.to_vec(), vec![HistoryStep::from(start_worktree_session("a"))]].concat();
        let passed = vec![go_on("a", well.clone()); steps];
        [prepared, passed, vec![go_on("a", fails); 6]].concat()
    });
    let then = prop_oneof![
        12 => cooperative_reply().prop_map(move |answer| go_on("b", answer)),
        1 => session_steps().prop_map(HistoryStep::from),
        1 => arbitrary_session().prop_map(|name| HistoryStep::from(say_step(name))),
        1 => gate_steps().prop_map(HistoryStep::from),
        1 => effect_steps().prop_map(HistoryStep::from),
        1 => task_steps().prop_map(HistoryStep::from),
    ];
    let between = vec(task_steps().prop_map(HistoryStep::from), 0..2);
    (first, between, vec(then, steps / 4..steps / 2)).prop_map(|(first, between, rest)| {
        [first, between, vec![HistoryStep::from(start_worktree_session("b"))], rest].concat()
    })
}

/// Returns the session `main`, which works in place on the first task.
pub fn sample_session() -> NewSession {
    NewSession {
        name: "main".parse().expect("a session name"),
        task: Some(TaskId(1)),
        goal: None,
        work: WorkSource::Given,
        workspace_mode: WorkspaceMode::InPlace,
        config: "hooks: {}".to_owned(),
        protected: None,
        agent: "command:true".to_owned(),
        terms: SessionTerms::default(),
        owner: owner_name("w1"),
        nonce: SESSION_NONCE,
        fresh: false,
    }
}

/// Starts a session in a worktree with the first task.
fn start_worktree_session(name: &str) -> StepAction {
    StepAction::Fixed(Command::StartSession(NewSession {
        name: name.parse().expect("a session name"),
        workspace_mode: WorkspaceMode::Worktrees,
        // The first rejection escalates to a person.
        terms: SessionTerms { max_rejections: 0, ..SessionTerms::default() },
        ..sample_session()
    }))
}

fn say_step(session: SessionName) -> StepAction {
    StepAction::Fixed(Command::Say { session, text: "stay calm".to_owned() })
}

fn sample_task() -> NewTask {
    NewTask { goal: "mend the test".to_owned(), ..NewTask::default() }
}

/// Adapts a task so that it refers only to this many existing ones.
fn limit_references(others: u64, mut new: NewTask) -> NewTask {
    new.depends_on.retain(|id| id.0 <= others);
    new.parent = new.parent.filter(|id| id.0 <= others);
    new
}

/// Generates one step of any kind.
pub fn arbitrary_step() -> impl Strategy<Value = HistoryStep> {
    let create = arbitrary_new_task().prop_map(|new| StepAction::Fixed(Command::CreateTask(new)));
    let trigger = workflow_triggers(option::weighted(0.7, arbitrary_task_id())).prop_map(StepAction::Fixed);
    let flow = (0..3_usize, workflow_step_actions())
        .prop_map(|(nth, step)| StepAction::PendingEffect { nth, step: EffectStep::WorkflowStep(step) });
    let action = prop_oneof![2 => create, 2 => trigger, 5 => flow, 10 => task_steps(), 4 => edge_steps(), 9 => session_steps(), 3 => effect_steps(), 4 => series_commands(), 3 => bridge_call_steps()];
    let from = (option::weighted(0.2, arbitrary_turn()), option::weighted(0.1, 0..3_usize));
    (prop_oneof![3 => 0..20_i64, 1 => 20..200_i64], arbitrary_authority(), from, action)
        .prop_map(|(after, authority, (inside, via), action)| HistoryStep { after, authority, inside, via, action })
}

fn arbitrary_authority() -> impl Strategy<Value = StepAuthority> {
    prop_oneof![
        6 => Just(StepAuthority::Person),
        4 => Just(StepAuthority::Forced),
        5 => Just(StepAuthority::Holder),
        1 => Just(StepAuthority::FormerHolder),
    ]
}

/// Generates mostly one of a few tasks, so that much happens to the same task.
fn arbitrary_task_id() -> impl Strategy<Value = TaskId> {
    prop_oneof![3 => 1..=3_u64, 1 => 1..=NAMED_TASKS].prop_map(TaskId)
}

pub(crate) fn arbitrary_session() -> impl Strategy<Value = SessionName> {
    prop_oneof![3 => Just("a"), 1 => Just("b")].prop_map(|name| name.parse().expect("a session name"))
}

fn arbitrary_owner() -> impl Strategy<Value = OwnerName> {
    select(vec!["w1", "w2"]).prop_map(owner_name)
}

fn arbitrary_turn() -> impl Strategy<Value = TurnReference> {
    prop_oneof![3 => arbitrary_session().prop_map(TurnReference::Current), 1 => arbitrary_session().prop_map(TurnReference::Previous)]
}

fn arbitrary_priority() -> impl Strategy<Value = TaskPriority> {
    (0..=4_u8).prop_map(|number| number.try_into().expect("0 to 4"))
}

fn arbitrary_labels() -> impl Strategy<Value = Vec<String>> {
    let label = select(vec!["agent", "review", "research"]).prop_map(str::to_owned);
    prop_oneof![2 => Just(vec![]), 1 => vec(label, 0..3)]
}

fn arbitrary_new_task() -> impl Strategy<Value = NewTask> {
    let kind = option::weighted(0.3, Just("bug".parse().expect("a type's name")));
    (
        arbitrary_priority(),
        arbitrary_labels(),
        vec(arbitrary_task_id(), 0..3),
        option::weighted(0.2, arbitrary_task_id()),
        kind,
    )
        .prop_map(|(priority, labels, depends_on, parent, kind)| {
            let goal = "mend the test".to_owned();
            NewTask { goal, priority, labels, depends_on, parent, kind, ..NewTask::default() }
        })
}

fn task_steps() -> impl Strategy<Value = StepAction> {
    use Command as C;
    let why = || "because".to_owned();
    prop_oneof![
        2 => (arbitrary_priority(), option::of(arbitrary_labels()), arbitrary_labels(), arbitrary_labels(), arbitrary_task_id()).prop_map(|(priority, labels, add_labels, remove_labels, id)| StepAction::Fixed(C::UpdateTask {
            id,
            patch: TaskPatch { priority: Some(priority), labels, add_labels, remove_labels, ..TaskPatch::default() },
        })),
        5 => (option::of(arbitrary_task_id()), arbitrary_owner(), -5..120_i64)
            .prop_map(|(id, owner, lease)| StepAction::ClaimTask { id, owner, lease }),
        3 => arbitrary_task_id().prop_map(|id| StepAction::Fixed(C::StartTask { id, context: json!({"why": ["asked", 1.5]}) })),
        2 => arbitrary_task_id().prop_map(|id| StepAction::Fixed(C::SubmitTask { id })),
        7 => (arbitrary_task_id(), option::of(Just("done".to_owned()))).prop_map(|(id, result)| {
            StepAction::Fixed(C::CompleteTask { id, result, artifacts: vec![] })
        }),
        2 => arbitrary_task_id().prop_map(move |id| StepAction::Fixed(C::BlockTask { id, reason: why(), required_knowledge: vec![] })),
        2 => arbitrary_task_id().prop_map(|id| StepAction::Fixed(C::UnblockTask { id })),
        3 => (arbitrary_task_id(), select(TaskResolution::ALL.to_vec()), option::of(Just("so be it".to_owned()))).prop_map(
            |(id, answer, text)| StepAction::Fixed(C::AnswerTask { id, answer, text, ignores: vec![], work: None }),
        ),
        1 => arbitrary_task_id().prop_map(move |id| StepAction::Fixed(C::NeedContinuation { id, reason: why() })),
        1 => arbitrary_task_id().prop_map(move |id| StepAction::Fixed(C::ReleaseTask { id, reason: why() })),
        3 => arbitrary_task_id().prop_map(move |id| StepAction::Fixed(C::FailTask { id, reason: why() })),
        3 => arbitrary_task_id().prop_map(move |id| StepAction::Fixed(C::ReopenTask { id, reason: why() })),
        1 => (option::of(arbitrary_task_id()), select(NoteKind::ALL.to_vec()))
            .prop_map(|(task, kind)| StepAction::Fixed(C::AddNote { task, kind, text: "look".to_owned() })),
        1 => (arbitrary_task_id(), any::<bool>()).prop_map(|(id, late)| StepAction::ExpireLease { id, late }),
        1 => arbitrary_task_id().prop_map(|id| StepAction::Fixed(C::RecordMerge { id, commit: "def".to_owned(), seen: None })),
        2 => (arbitrary_task_id(), select(vec![DeletionMode::Alone, DeletionMode::Cascade, DeletionMode::BlockDependents]))
            .prop_map(|(id, deletion)| StepAction::Fixed(C::DeleteTask { id, deletion })),
    ]
}

fn series_commands() -> impl Strategy<Value = StepAction> {
    // Mostly the same task, since a series has several steps.
    let task = prop_oneof![3 => Just(TaskId(1)), 1 => arbitrary_task_id()];
    (task, arbitrary_series_step()).prop_map(|(task, step)| StepAction::CommandSeries(task, step))
}

fn bridge_call_steps() -> impl Strategy<Value = StepAction> {
    prop_oneof![
        1 => arbitrary_call().prop_map(|call| StepAction::Fixed(Command::Call(Box::new(call)))),
        2 => (arbitrary_caller(), arbitrary_point(), arbitrary_verdict()).prop_map(|(caller, point, verdict)| StepAction::AnswerCall { caller, point, verdict }),
    ]
}

fn edge_steps() -> impl Strategy<Value = StepAction> {
    let waiting = select(vec![EdgeKind::DependsOn, EdgeKind::Blocks]);
    let kind = prop_oneof![3 => waiting, 1 => select(EdgeKind::ALL.to_vec())];
    prop_oneof![
        3 => (arbitrary_task_id(), kind, arbitrary_task_id()).prop_map(|(from, kind, to)| StepAction::Fixed(Command::AddEdge { from, kind, to })),
        2 => (arbitrary_task_id(), 0..4_usize).prop_map(|(from, nth)| StepAction::RemoveSomeEdge { from, nth }),
    ]
}

fn arbitrary_terms() -> impl Strategy<Value = SessionTerms> {
    let completion = prop_oneof![3 => Just(CompletionMode::Promise), 1 => Just(CompletionMode::Gate)];
    let on_retry_limit = prop_oneof![1 => Just(RetryLimitAction::Escalate), 1 => Just(RetryLimitAction::Complete), 4 => Just(RetryLimitAction::Ask)];
    let max_hook_retries = prop_oneof![1 => Just(0_u32), 1 => 1..4_u32];
    let max_failures = prop_oneof![1 => 0..2_u32, 2 => 2..5_u32];
    let failure_span = (0..800_u64).prop_map(Duration::from_millis);
    let wall_time = option::weighted(0.2, (0..800_u64).prop_map(Duration::from_millis));
    let tokens = option::weighted(0.1, 0..200_u64);
    let gates = (prop_oneof![1 => 0..2_u32, 1 => Just(3_u32)], 0..4_u32);
    let budgets = (wall_time, option::weighted(0.2, (0..800_u64).prop_map(UsdCost)), tokens, 0..5_u32);
    let failures = (max_failures, failure_span);
    (1..5_u32, max_hook_retries, failures, completion, any::<bool>(), on_retry_limit, budgets, gates).prop_map(
        |(
            max_iterations,
            max_hook_retries,
            (max_failures, failure_span),
            completion,
            strict,
            on_retry_limit,
            budgets,
            gates,
        )| {
            let (wall_time, cost, tokens, thrashing) = budgets;
            let (max_remediations, max_rejections) = gates;
            SessionTerms {
                max_iterations,
                max_hook_retries,
                max_failures,
                failure_span,
                completion,
                strict,
                on_retry_limit,
                wall_time,
                cost,
                tokens,
                thrashing,
                max_remediations,
                max_rejections,
            }
        },
    )
}

/// Generates terms with limits that no session reaches soon.
fn generous_terms() -> impl Strategy<Value = SessionTerms> {
    arbitrary_terms().prop_map(|terms| SessionTerms {
        max_iterations: terms.max_iterations + 2,
        wall_time: None,
        cost: None,
        tokens: None,
        thrashing: 0,
        ..terms
    })
}

fn session_starts() -> impl Strategy<Value = StepAction> {
    session_starts_with(
        arbitrary_terms(),
        prop_oneof![4 => Just(WorkspaceMode::InPlace), 1 => Just(WorkspaceMode::Worktrees)],
    )
}

fn session_starts_with(
    terms: impl Strategy<Value = SessionTerms>,
    workspace_mode: impl Strategy<Value = WorkspaceMode>,
) -> impl Strategy<Value = StepAction> {
    let config = select(vec!["hooks: {}", "hooks: {stop: []}"]);
    let work = prop_oneof![
        3 => (1..=3_u64).prop_map(|id| (Some(TaskId(id)), None, WorkSource::Given)),
        2 => Just((None, Some("mend the test".to_owned()), WorkSource::Given)),
        3 => Just((None, None, WorkSource::Graph)),
        // Sessions of older versions look like this.
        2 => Just((None, None, WorkSource::Given)),
    ];
    let agent = select(vec!["command:true", "command:false"]);
    // Mostly the owner of the hooks, which the session then waits for.
    let owner = prop_oneof![3 => Just(owner_name("w1")), 1 => arbitrary_owner()];
    let place = (work, workspace_mode);
    let agent = (agent, prop_oneof![3 => Just(false), 1 => Just(true)]);
    (arbitrary_session(), place, config, agent, terms, owner).prop_map(
        |(name, (work, workspace_mode), config, agent, terms, owner)| {
            let (agent, fresh) = agent;
            let (task, goal, work) = work;
            let (agent, config) = (agent.to_owned(), config.to_owned());
            StepAction::Fixed(Command::StartSession(NewSession {
                name,
                task,
                goal,
                work,
                workspace_mode,
                config,
                protected: None,
                agent,
                terms,
                owner,
                nonce: SESSION_NONCE,
                fresh,
            }))
        },
    )
}

fn arbitrary_reply() -> impl Strategy<Value = OutsideReply> {
    use HookOutcome as O;
    let fails = select(vec![O::Skip, O::Failure, O::TimedOut, O::Cancelled, O::Continue, O::Escalate]);
    let outcome = prop_oneof![4 => Just(O::Success), 3 => Just(O::Block), 1 => fails];
    let feedback = select(vec!["mend it", "and this"]).prop_map(str::to_owned);
    let said = (outcome, option::weighted(0.5, feedback));
    let done = (arbitrary_submission(), arbitrary_change(), arbitrary_moved_head(), any::<bool>());
    (said, arbitrary_promise(), prop::bool::weighted(0.35), arbitrary_actions(), arbitrary_gate_answer(), done)
        .prop_map(
            |((outcome, feedback), promise, fails, actions, gate_answer, (submission, change, head, unstarted))| {
                OutsideReply {
                    outcome,
                    feedback,
                    promise,
                    fails,
                    actions,
                    gate_answer,
                    submission,
                    change,
                    head,
                    unstarted,
                }
            },
        )
}

/// Generates mostly answers that let the work proceed.
fn cooperative_reply() -> impl Strategy<Value = OutsideReply> {
    use HookOutcome as O;
    let outcome = prop_oneof![8 => Just(O::Success), 3 => Just(O::Block), 2 => Just(O::Continue)];
    (arbitrary_reply(), option::weighted(0.9, outcome), prop::bool::weighted(0.05)).prop_map(
        |(answer, outcome, fails)| OutsideReply {
            outcome: outcome.unwrap_or(answer.outcome),
            promise: answer.promise.filter(|promise| *promise == Promise::Complete),
            fails,
            actions: if fails { answer.actions } else { vec![] },
            ..answer
        },
    )
}

fn arbitrary_gate_answer() -> impl Strategy<Value = GateAnswer> {
    select(vec![GateAnswer::Continue, GateAnswer::Abort, GateAnswer::Ignore])
}

fn arbitrary_promise() -> impl Strategy<Value = Option<Promise>> {
    prop_oneof![
        4 => Just(None),
        2 => Just(Some(Promise::Complete)),
        1 => select(vec![Some(Promise::Escalate), Some(Promise::Blocked)]),
    ]
}

fn session_steps() -> impl Strategy<Value = StepAction> {
    use SessionEndKind as E;
    let ending = select(vec![E::Completed, E::Limit, E::Escalated, E::Cancelled, E::Error]);
    prop_oneof![
        2 => session_starts(),
        2 => gate_steps(),
        24 => (arbitrary_session(), arbitrary_reply()).prop_map(|(name, answer)| StepAction::ContinueSession(name, answer)),
        1 => (arbitrary_session(), ending).prop_map(|(name, ending)| StepAction::Fixed(stop_session(name, ending))),
        1 => arbitrary_session().prop_map(|name| StepAction::Fixed(Command::CancelSession { name, reason: None })),
        1 => arbitrary_session().prop_map(|name| StepAction::Fixed(Command::AdvanceSession { name })),
        2 => arbitrary_session().prop_map(say_step),
        1 => (arbitrary_session(), arbitrary_owner(), option::of(1..4_u32))
            .prop_map(|(name, owner, max_iterations)| StepAction::ResumeSession { name, owner, max_iterations }),
        1 => (arbitrary_turn(), 0..2_u8, any::<bool>()).prop_map(|(turn, number, anew)| StepAction::OpenConversation(turn, number, anew)),
        3 => (arbitrary_turn(), arbitrary_promise()).prop_map(|(turn, promise)| StepAction::FinishTurn(turn, promise)),
        2 => arbitrary_session().prop_map(StepAction::DeclareTaskDone),
        3 => arbitrary_turn().prop_map(StepAction::FailTurn),
        2 => (arbitrary_turn(), option::weighted(0.8, -50..400_i64)).prop_map(|(turn, wait)| StepAction::PostponeTurn(turn, wait)),
        1 => arbitrary_session().prop_map(|name| StepAction::Fixed(Command::AdvanceSession { name })),
        1 => (arbitrary_session(), arbitrary_gate_answer())
            .prop_map(|(session, answer)| StepAction::Fixed(Command::AnswerGate { session, answer, text: None })),
        3 => arbitrary_turn().prop_map(StepAction::InterruptTurn),
    ]
}

fn effect_steps() -> impl Strategy<Value = StepAction> {
    let step = prop_oneof![
        3 => Just(EffectStep::BeginByOwner),
        1 => arbitrary_owner().prop_map(EffectStep::BeginBy),
        1 => Just(EffectStep::Rest),
        1 => Just(EffectStep::Retry),
        3 => arbitrary_reply().prop_map(|answer| EffectStep::Finish(Box::new(answer))),
        3 => arbitrary_owner().prop_map(EffectStep::Recover),
    ];
    (0..6_usize, step).prop_map(|(nth, step)| StepAction::PendingEffect { nth, step })
}
