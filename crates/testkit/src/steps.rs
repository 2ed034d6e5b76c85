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

use crate::bridge_calls::{call, caller, point, verdict};
use crate::delivery::{about_gates, change, moved_head, ready_work};
use crate::history::{EffectStep, NONCE, OutsideReply, Step, StepAction, StepAuthority, TASKS, Turn, owner, stop};
use crate::hook_actions::actions;
use crate::series_steps::driving;
use crate::workflow_steps::{flow_steps, triggering};

/// Generates histories of at most this many steps.
pub fn histories(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    // A graph and a session come first, since most steps would otherwise name something that does not exist.
    let first = (vec(new_task(), 3..6), start_session()).prop_map(|(tasks, session)| {
        let tasks = (0..).zip(tasks).map(|(others, new)| StepAction::Plain(Command::CreateTask(among(others, new))));
        tasks.chain([session]).map(Step::from).collect::<Vec<_>>()
    });
    (first, vec(step(), steps / 2..steps)).prop_map(|(first, rest)| [first, rest].concat())
}

/// Generates histories that are mostly about sessions.
pub fn histories_of_sessions(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let task = || Step::from(StepAction::Plain(Command::CreateTask(a_task())));
    // Half of the sessions have no budget, so that they get far.
    let session = prop_oneof![1 => start_session(), 1 => start_session_with(lasting(), Just(WorkspaceMode::InPlace))];
    let session = session.prop_map(Step::from);
    let go_on = (self::session(), answer()).prop_map(|(name, answer)| StepAction::GoOn(name, answer));
    let ask = prop_oneof![12 => about_sessions(), 12 => go_on, 2 => effects(), 1 => about_a_task()];
    let asked = (option::weighted(0.2, turn()), option::weighted(0.1, 0..3_usize), ask);
    let step = asked.prop_map(|(inside, via, ask)| Step { inside, via, ..Step::from(ask) });
    (session, vec(step, steps / 2..steps))
        .prop_map(move |(session, rest)| [vec![task(), task(), task(), session], rest].concat())
}

/// Generates histories in which most work gets done and reaches the gates.
pub fn histories_of_gates(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let new = || Step::from(StepAction::Plain(Command::CreateTask(a_task())));
    // Only the gates limit these sessions.
    let completion = || lasting().prop_map(|terms| SessionTerms { completion: CompletionMode::Gate, ..terms });
    let grounds = || prop_oneof![1 => Just(WorkspaceMode::InPlace), 4 => Just(WorkspaceMode::Worktrees)];
    let first = start_session_with(completion(), grounds()).prop_map(Step::from);
    let go_on = (session(), obliging()).prop_map(|(name, answer)| StepAction::GoOn(name, answer));
    let ask = prop_oneof![
        40 => go_on,
        2 => start_session_with(completion(), grounds()),
        2 => about_gates(),
        1 => session().prop_map(say),
        1 => (task(), any::<bool>()).prop_map(|(id, late)| StepAction::Expire { id, late }),
        2 => about_sessions(),
        2 => effects(),
        2 => about_a_task(),
    ];
    let asked = (option::weighted(0.05, turn()), option::weighted(0.05, 0..3_usize), right(), ask);
    let step = asked.prop_map(|(inside, via, right, ask)| Step { inside, via, right, ..Step::from(ask) });
    (first, vec(step, steps / 2..steps))
        .prop_map(move |(first, rest)| [vec![new(), new(), new(), first], rest].concat())
}

/// Generates histories in which a gate cannot run, and another session resumes the work.
pub fn histories_of_stalls(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let go_on = |name: &'static str, answer: OutsideReply| {
        Step::from(StepAction::GoOn(name.parse().expect("a session name"), answer))
    };
    let first = (obliging(), 0..20_usize).prop_map(move |(answer, steps)| {
        let [well, fails] = [HookOutcome::Success, HookOutcome::Failure].map(|outcome| {
            let done = Some(Promise::Complete);
            OutsideReply { outcome, promise: done, fails: false, feedback: None, actions: vec![], ..answer.clone() }
        });
        let tasks = [(); 3].map(|()| Step::from(StepAction::Plain(Command::CreateTask(a_task()))));
        let begun = [tasks.to_vec(), vec![Step::from(in_a_worktree("a"))]].concat();
        let passed = vec![go_on("a", well.clone()); steps];
        [begun, passed, vec![go_on("a", fails); 6]].concat()
    });
    let then = prop_oneof![
        12 => obliging().prop_map(move |answer| go_on("b", answer)),
        1 => about_sessions().prop_map(Step::from),
        1 => session().prop_map(|name| Step::from(say(name))),
        1 => about_gates().prop_map(Step::from),
        1 => effects().prop_map(Step::from),
        1 => about_a_task().prop_map(Step::from),
    ];
    let between = vec(about_a_task().prop_map(Step::from), 0..2);
    (first, between, vec(then, steps / 4..steps / 2))
        .prop_map(|(first, between, rest)| [first, between, vec![Step::from(in_a_worktree("b"))], rest].concat())
}

/// Starts a session in a worktree with the first task.
fn in_a_worktree(name: &str) -> StepAction {
    StepAction::Plain(Command::StartSession(NewSession {
        name: name.parse().expect("a session name"),
        task: Some(TaskId(1)),
        goal: None,
        work: WorkSource::Given,
        grounds: WorkspaceMode::Worktrees,
        config: "hooks: {}".to_owned(),
        protected: None,
        agent: "command:true".to_owned(),
        // The first rejection escalates to a person.
        terms: SessionTerms { max_rejections: 0, ..SessionTerms::default() },
        owner: owner("w1"),
        nonce: NONCE,
        fresh: false,
    }))
}

fn say(session: SessionName) -> StepAction {
    StepAction::Plain(Command::Say { session, text: "stay calm".to_owned() })
}

fn a_task() -> NewTask {
    NewTask { goal: "mend the test".to_owned(), ..NewTask::default() }
}

/// Adapts a task so that it refers only to this many existing ones.
fn among(others: u64, mut new: NewTask) -> NewTask {
    new.depends_on.retain(|id| id.0 <= others);
    new.parent = new.parent.filter(|id| id.0 <= others);
    new
}

/// Generates one step of any kind.
pub fn step() -> impl Strategy<Value = Step> {
    let create = new_task().prop_map(|new| StepAction::Plain(Command::CreateTask(new)));
    let trigger = triggering(option::weighted(0.7, task())).prop_map(StepAction::Plain);
    let flow = (0..3_usize, flow_steps())
        .prop_map(|(nth, step)| StepAction::PendingEffect { nth, step: EffectStep::Flow(step) });
    let ask = prop_oneof![2 => create, 2 => trigger, 5 => flow, 10 => about_a_task(), 4 => about_edges(), 9 => about_sessions(), 3 => effects(), 4 => about_drive(), 3 => about_calls()];
    let from = (option::weighted(0.2, turn()), option::weighted(0.1, 0..3_usize));
    (prop_oneof![3 => 0..20_i64, 1 => 20..200_i64], right(), from, ask)
        .prop_map(|(after, right, (inside, via), ask)| Step { after, right, inside, via, ask })
}

fn right() -> impl Strategy<Value = StepAuthority> {
    prop_oneof![
        6 => Just(StepAuthority::Person),
        4 => Just(StepAuthority::Forced),
        5 => Just(StepAuthority::Holder),
        1 => Just(StepAuthority::FormerHolder),
    ]
}

/// Generates mostly one of a few tasks, so that much happens to the same task.
fn task() -> impl Strategy<Value = TaskId> {
    prop_oneof![3 => 1..=3_u64, 1 => 1..=TASKS].prop_map(TaskId)
}

pub(crate) fn session() -> impl Strategy<Value = SessionName> {
    prop_oneof![3 => Just("a"), 1 => Just("b")].prop_map(|name| name.parse().expect("a session name"))
}

fn worker() -> impl Strategy<Value = OwnerName> {
    select(vec!["w1", "w2"]).prop_map(owner)
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![3 => session().prop_map(Turn::Present), 1 => session().prop_map(Turn::Past)]
}

fn priority() -> impl Strategy<Value = TaskPriority> {
    (0..=4_u8).prop_map(|number| number.try_into().expect("0 to 4"))
}

fn labels() -> impl Strategy<Value = Vec<String>> {
    let label = select(vec!["agent", "review", "research"]).prop_map(str::to_owned);
    prop_oneof![2 => Just(vec![]), 1 => vec(label, 0..3)]
}

fn new_task() -> impl Strategy<Value = NewTask> {
    let kind = option::weighted(0.3, Just("bug".parse().expect("a type's name")));
    (priority(), labels(), vec(task(), 0..3), option::weighted(0.2, task()), kind).prop_map(
        |(priority, labels, depends_on, parent, kind)| {
            let goal = "mend the test".to_owned();
            NewTask { goal, priority, labels, depends_on, parent, kind, ..NewTask::default() }
        },
    )
}

fn about_a_task() -> impl Strategy<Value = StepAction> {
    use Command as C;
    let why = || "because".to_owned();
    prop_oneof![
        2 => (priority(), option::of(labels()), labels(), labels(), task()).prop_map(|(priority, labels, add_labels, remove_labels, id)| Ask::Plain(C::UpdateTask {
            id,
            patch: TaskPatch { priority: Some(priority), labels, add_labels, remove_labels, ..TaskPatch::default() },
        })),
        5 => (option::of(task()), worker(), -5..120_i64)
            .prop_map(|(id, owner, lease)| Ask::Claim { id, owner, lease }),
        3 => task().prop_map(|id| Ask::Plain(C::StartTask { id, context: json!({"why": ["asked", 1.5]}) })),
        2 => task().prop_map(|id| Ask::Plain(C::SubmitTask { id })),
        7 => (task(), option::of(Just("done".to_owned()))).prop_map(|(id, result)| {
            Ask::Plain(C::CompleteTask { id, result, artifacts: vec![] })
        }),
        2 => task().prop_map(move |id| Ask::Plain(C::BlockTask { id, reason: why(), required_knowledge: vec![] })),
        2 => task().prop_map(|id| Ask::Plain(C::UnblockTask { id })),
        3 => (task(), select(Resolution::ALL.to_vec()), option::of(Just("so be it".to_owned()))).prop_map(
            |(id, answer, text)| Ask::Plain(C::AnswerTask { id, answer, text, ignores: vec![], work: None }),
        ),
        1 => task().prop_map(move |id| Ask::Plain(C::NeedContinuation { id, reason: why() })),
        1 => task().prop_map(move |id| Ask::Plain(C::ReleaseTask { id, reason: why() })),
        3 => task().prop_map(move |id| Ask::Plain(C::FailTask { id, reason: why() })),
        3 => task().prop_map(move |id| Ask::Plain(C::ReopenTask { id, reason: why() })),
        1 => (option::of(task()), select(NoteKind::ALL.to_vec()))
            .prop_map(|(task, kind)| Ask::Plain(C::AddNote { task, kind, text: "look".to_owned() })),
        1 => (task(), any::<bool>()).prop_map(|(id, late)| Ask::Expire { id, late }),
        1 => task().prop_map(|id| Ask::Plain(C::RecordMerge { id, commit: "def".to_owned(), seen: None })),
        2 => (task(), select(vec![Deletion::Alone, Deletion::Cascade, Deletion::BlockDependents]))
            .prop_map(|(id, deletion)| Ask::Plain(C::DeleteTask { id, deletion })),
    ]
}

fn about_drive() -> impl Strategy<Value = StepAction> {
    // Mostly the same task, since a series has several steps.
    let task = prop_oneof![3 => Just(TaskId(1)), 1 => task()];
    (task, driving()).prop_map(|(task, driving)| StepAction::Drive(task, driving))
}

fn about_calls() -> impl Strategy<Value = StepAction> {
    prop_oneof![
        1 => call().prop_map(|call| StepAction::Plain(Command::Call(Box::new(call)))),
        2 => (caller(), point(), verdict()).prop_map(|(caller, point, verdict)| StepAction::Answer { caller, point, verdict }),
    ]
}

fn about_edges() -> impl Strategy<Value = StepAction> {
    let waiting = select(vec![EdgeKind::DependsOn, EdgeKind::Blocks]);
    let kind = prop_oneof![3 => waiting, 1 => select(EdgeKind::ALL.to_vec())];
    prop_oneof![
        3 => (task(), kind, task()).prop_map(|(from, kind, to)| StepAction::Plain(Command::AddEdge { from, kind, to })),
        2 => (task(), 0..4_usize).prop_map(|(from, nth)| StepAction::RemoveSomeEdge { from, nth }),
    ]
}

fn terms() -> impl Strategy<Value = SessionTerms> {
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
fn lasting() -> impl Strategy<Value = SessionTerms> {
    terms().prop_map(|terms| SessionTerms {
        max_iterations: terms.max_iterations + 2,
        wall_time: None,
        cost: None,
        tokens: None,
        thrashing: 0,
        ..terms
    })
}

fn start_session() -> impl Strategy<Value = StepAction> {
    start_session_with(terms(), prop_oneof![4 => Just(WorkspaceMode::InPlace), 1 => Just(WorkspaceMode::Worktrees)])
}

fn start_session_with(
    terms: impl Strategy<Value = SessionTerms>,
    grounds: impl Strategy<Value = WorkspaceMode>,
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
    let owner = prop_oneof![3 => Just(owner("w1")), 1 => worker()];
    let place = (work, grounds);
    let agent = (agent, prop_oneof![3 => Just(false), 1 => Just(true)]);
    (session(), place, config, agent, terms, owner).prop_map(|(name, (work, grounds), config, agent, terms, owner)| {
        let (agent, fresh) = agent;
        let (task, goal, work) = work;
        let (agent, config) = (agent.to_owned(), config.to_owned());
        StepAction::Plain(Command::StartSession(NewSession {
            name,
            task,
            goal,
            work,
            grounds,
            config,
            protected: None,
            agent,
            terms,
            owner,
            nonce: NONCE,
            fresh,
        }))
    })
}

fn answer() -> impl Strategy<Value = OutsideReply> {
    use HookOutcome as O;
    let fails = select(vec![O::Skip, O::Failure, O::TimedOut, O::Cancelled, O::Continue, O::Escalate]);
    let outcome = prop_oneof![4 => Just(O::Success), 3 => Just(O::Block), 1 => fails];
    let feedback = select(vec!["mend it", "and this"]).prop_map(str::to_owned);
    let said = (outcome, option::weighted(0.5, feedback));
    let done = (ready_work(), change(), moved_head(), any::<bool>());
    (said, promise(), prop::bool::weighted(0.35), actions(), gate_answer(), done).prop_map(
        |((outcome, feedback), promise, fails, actions, to_the_gate, (readied, change, head, unstarted))| {
            OutsideReply { outcome, feedback, promise, fails, actions, to_the_gate, readied, change, head, unstarted }
        },
    )
}

/// Generates mostly answers that let the work proceed.
fn obliging() -> impl Strategy<Value = OutsideReply> {
    use HookOutcome as O;
    let outcome = prop_oneof![8 => Just(O::Success), 3 => Just(O::Block), 2 => Just(O::Continue)];
    (answer(), option::weighted(0.9, outcome), prop::bool::weighted(0.05)).prop_map(|(answer, outcome, fails)| {
        OutsideReply {
            outcome: outcome.unwrap_or(answer.outcome),
            promise: answer.promise.filter(|promise| *promise == Promise::Complete),
            fails,
            actions: if fails { answer.actions } else { vec![] },
            ..answer
        }
    })
}

fn gate_answer() -> impl Strategy<Value = GateAnswer> {
    select(vec![GateAnswer::Continue, GateAnswer::Abort, GateAnswer::Ignore])
}

fn promise() -> impl Strategy<Value = Option<Promise>> {
    prop_oneof![
        4 => Just(None),
        2 => Just(Some(Promise::Complete)),
        1 => select(vec![Some(Promise::Escalate), Some(Promise::Blocked)]),
    ]
}

fn about_sessions() -> impl Strategy<Value = StepAction> {
    use SessionEndKind as E;
    let ending = select(vec![E::Completed, E::Limit, E::Escalated, E::Cancelled, E::Error]);
    prop_oneof![
        2 => start_session(),
        2 => about_gates(),
        24 => (session(), answer()).prop_map(|(name, answer)| Ask::GoOn(name, answer)),
        1 => (session(), ending).prop_map(|(name, ending)| Ask::Plain(stop(name, ending))),
        1 => session().prop_map(|name| Ask::Plain(Command::CancelSession { name, reason: None })),
        1 => session().prop_map(|name| Ask::Plain(Command::AdvanceSession { name })),
        2 => session().prop_map(say),
        1 => (session(), worker(), option::of(1..4_u32))
            .prop_map(|(name, owner, max_iterations)| Ask::Resume { name, owner, max_iterations }),
        1 => (turn(), 0..2_u8, any::<bool>()).prop_map(|(turn, number, anew)| Ask::OpenConversation(turn, number, anew)),
        3 => (turn(), promise()).prop_map(|(turn, promise)| Ask::FinishTurn(turn, promise)),
        2 => session().prop_map(Ask::SayDone),
        3 => turn().prop_map(Ask::FailTurn),
        2 => (turn(), option::weighted(0.8, -50..400_i64)).prop_map(|(turn, wait)| Ask::PostponeTurn(turn, wait)),
        1 => session().prop_map(|name| Ask::Plain(Command::AdvanceSession { name })),
        1 => (session(), gate_answer())
            .prop_map(|(session, answer)| Ask::Plain(Command::AnswerGate { session, answer, text: None })),
        3 => turn().prop_map(Ask::InterruptTurn),
    ]
}

fn effects() -> impl Strategy<Value = StepAction> {
    let step = prop_oneof![
        3 => Just(EffectStep::BeginByOwner),
        1 => worker().prop_map(EffectStep::BeginBy),
        1 => Just(EffectStep::Rest),
        1 => Just(EffectStep::Retry),
        3 => answer().prop_map(|answer| EffectStep::Finish(Box::new(answer))),
        3 => worker().prop_map(EffectStep::Recover),
    ];
    (0..6_usize, step).prop_map(|(nth, step)| StepAction::PendingEffect { nth, step })
}
