//! Random histories: sequences of commands over a small graph.
//!
//! A step says what somebody tries, partly in terms of what is there when it is tried ("the second debt", "the turn
//! that runs now", "whoever holds it"), so that most steps mean something and a shrunk history still does.
//! [`Step::resolve`] makes the command of it. Any view of the same history resolves it to the same command.
//!
//! Invariant: a step is plain data. The same history gives the same commands, in whatever store it is carried out.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use windlass_engine::{
    ActionRequest, Answer, Authority, CallVerdict, Caller, Command, Completion, Cost, Debt, DebtId, Deletion, Digest,
    Direction, EdgeKind, Effect, Ending, Epoch, Failing, Fault, GateAnswer, Grounds, HookOutcome, HookReport, Looked,
    NewSession, NewTask, NoteKind, OnRetryLimit, Origin, OwnerName, Priority, Promise, Resolution, RunId, SessionName,
    TaskId, TaskPatch, Terms, Timestamp, Usage, View, Wanted, Work,
};

use crate::calling::{call, caller, point, verdict};
use crate::driving::{Driving, driving};
use crate::wishes::actions;

/// How many tasks the commands of a history name; later ones exist, but nobody asks for them by number.
pub const TASKS: u64 = 8;

/// By what right a step is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Person,
    Forced,
    /// Whoever holds the task that the step is about, or a person if nobody does.
    Holder,
    /// Whoever held it before.
    FormerHolder,
}

/// A turn of a session, named by what it is when the step is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The one that runs now, or would run next.
    Present(SessionName),
    /// The one before.
    Past(SessionName),
}

/// What a step tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A command that means the same whenever it is given.
    Plain(Command),
    /// Takes a task for so many milliseconds.
    Claim {
        id: Option<TaskId>,
        owner: OwnerName,
        lease: i64,
    },
    /// Removes one of the edges that begin at a task.
    RemoveSomeEdge {
        from: TaskId,
        nth: usize,
    },
    /// The conversation of this number, and whether it had to be begun anew.
    OpenConversation(Turn, u8, bool),
    FinishTurn(Turn, Option<Promise>),
    FailTurn(Turn),
    /// The agent was asked too often, and says for how many milliseconds, or not.
    PostponeTurn(Turn, Option<i64>),
    InterruptTurn(Turn),
    /// Takes a session over from whoever has it.
    Resume {
        name: SessionName,
        owner: OwnerName,
        max_iterations: Option<u32>,
    },
    /// Says from inside the turn of a session that its task is done.
    SayDone(SessionName),
    /// Does what a session waits for.
    GoOn(SessionName, Reply),
    /// What an agent does with a task to drive itself.
    Drive(TaskId, Driving),
    /// Answers the last event as if it were a call.
    Answer {
        caller: Caller,
        point: String,
        verdict: CallVerdict,
    },
    /// Does something about one of the debts.
    Debt {
        nth: usize,
        step: DebtStep,
    },
}

/// What the outside has to say when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub outcome: HookOutcome,
    pub feedback: Option<String>,
    pub promise: Option<Promise>,
    /// The agent does not answer at all.
    pub fails: bool,
    pub actions: Vec<ActionRequest>,
    /// What a person says who is asked.
    pub to_the_gate: GateAnswer,
}

/// What is done about a debt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebtStep {
    BeginByOwner,
    BeginBy(OwnerName),
    /// Tries it again.
    Retry,
    Finish(Reply),
    Recover(OwnerName),
}

/// One attempt to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Milliseconds since the step before.
    pub after: i64,
    pub right: Right,
    /// The turn from inside which it is tried.
    pub inside: Option<Turn>,
    /// The hook from inside which it is tried: one of those that run then.
    pub via: Option<usize>,
    pub ask: Ask,
}

impl From<Ask> for Step {
    /// What a person tries, right after what was tried before.
    fn from(ask: Ask) -> Self {
        Self { after: 1, right: Right::Person, inside: None, via: None, ask }
    }
}

impl Step {
    /// The command, and in whose name it is given, as things stand.
    pub fn resolve(&self, view: &dyn View, at: Timestamp) -> Looked<(Origin, Command)> {
        let command = self.command(view, at)?;
        let task = subject(&command).map(|id| view.task(id)).transpose()?.flatten();
        let lease = task.as_ref().and_then(|task| task.lease.as_ref());
        let authority = match self.right {
            Right::Person => Authority::Person,
            Right::Forced => Authority::Forced,
            Right::Holder => lease.map_or(Authority::Person, |lease| Authority::Holder(lease.epoch)),
            Right::FormerHolder => Authority::Holder(Epoch(task.map_or(0, |task| task.epoch.0.saturating_sub(1)))),
        };
        let own = match &self.ask {
            Ask::SayDone(name) => Some(Turn::Present(name.clone())),
            _ => None,
        };
        let run = own.as_ref().or(self.inside.as_ref()).map(|turn| run(view, turn)).transpose()?;
        let via = self.via.map(|nth| running_hook(view, nth)).transpose()?.flatten();
        Ok((Origin { by: "ada".to_owned(), at, authority, run, via }, command))
    }

    fn command(&self, view: &dyn View, at: Timestamp) -> Looked<Command> {
        Ok(match &self.ask {
            Ask::Plain(command) => command.clone(),
            Ask::Claim { id, owner, lease } => {
                Command::ClaimTask { id: *id, owner: owner.clone(), until: at.plus_millis(*lease), agent: None }
            }
            Ask::RemoveSomeEdge { from, nth } => {
                let edges = view.edges(*from, Direction::From)?;
                match edges.get(nth % edges.len().max(1)) {
                    Some(edge) => Command::RemoveEdge { from: *from, kind: edge.kind, to: edge.to_id },
                    None => Command::RemoveEdge { from: *from, kind: EdgeKind::DependsOn, to: TaskId(1) },
                }
            }
            Ask::OpenConversation(turn, number, anew) => Command::OpenConversation {
                run: run(view, turn)?,
                conversation: format!("c{number}"),
                anew: anew.then(|| "it is gone".to_owned()),
            },
            Ask::FinishTurn(turn, promise) => finish_turn(run(view, turn)?, *promise),
            Ask::FailTurn(turn) => fail_turn(run(view, turn)?),
            Ask::PostponeTurn(turn, wait) => {
                let until = wait.map(|wait| at.plus_millis(wait));
                Command::PostponeTurn { run: run(view, turn)?, failing: Failing::of("429"), until }
            }
            Ask::InterruptTurn(turn) => Command::InterruptTurn {
                run: run(view, turn)?,
                record: None,
                usage: Usage { output: 2, ..Usage::default() },
            },
            Ask::Resume { name, owner: by, max_iterations } => Command::ResumeSession {
                name: name.clone(),
                dead: view.session(name)?.map_or_else(|| owner("w1"), |session| session.owner),
                owner: by.clone(),
                max_iterations: *max_iterations,
            },
            Ask::SayDone(name) => {
                let id = view.session(name)?.and_then(|session| session.task).unwrap_or(TaskId(1));
                Command::CompleteTask { id, result: Some("done".to_owned()), artifacts: vec![] }
            }
            Ask::GoOn(name, answer) => go_on(view, name, answer)?,
            Ask::Drive(task, driving) => driving.command(view, *task)?,
            Ask::Answer { caller, point, verdict } => {
                let (caller, point, verdict) = (caller.clone(), point.clone(), Box::new(verdict.clone()));
                Command::AnswerCall { at: view.head()?, caller, point, verdict }
            }
            Ask::Debt { nth, step } => debt_command(view, *nth, step)?,
        })
    }
}

/// The task that a command is about, if it is about an existing one.
fn subject(command: &Command) -> Option<TaskId> {
    use Command as C;
    match command {
        C::UpdateTask { id, .. }
        | C::StartTask { id, .. }
        | C::SubmitTask { id }
        | C::CompleteTask { id, .. }
        | C::BlockTask { id, .. }
        | C::UnblockTask { id }
        | C::AnswerTask { id, .. }
        | C::NeedContinuation { id, .. }
        | C::ReleaseTask { id, .. }
        | C::FailTask { id, .. }
        | C::ReopenTask { id, .. }
        | C::DeleteTask { id, .. } => Some(*id),
        C::StartSeries { task, .. } | C::CompleteSeries { task, .. } => Some(*task),
        C::ClaimTask { id, .. } => *id,
        C::AddEdge { from, .. } | C::RemoveEdge { from, .. } => Some(*from),
        _ => None,
    }
}

/// The nonce of every session: who is who follows from the name and the number.
const NONCE: u64 = 7;

fn run(view: &dyn View, turn: &Turn) -> Looked<RunId> {
    let (Turn::Present(name) | Turn::Past(name)) = turn;
    let session = view.session(name)?;
    let running = session.as_ref().and_then(|session| session.turn()).map(|turn| turn.run.iteration);
    let last = running.unwrap_or_else(|| session.map_or(1, |session| session.iteration.max(1)));
    let iteration = if matches!(turn, Turn::Past(_)) { last.saturating_sub(1) } else { last };
    Ok(RunId { session: name.clone(), iteration, nonce: NONCE })
}

fn finish_turn(run: RunId, promise: Option<Promise>) -> Command {
    // As if nothing ever changed, and each turn had its price.
    let (output, tree) = ("said".to_owned(), Some(Digest::of(b"change")));
    let usage = Usage { input: 7, output: 3, cached: 1, cost: Some(Cost(100)) };
    Command::FinishTurn { run, answer: Answer { output, promise, usage, tree, ..Answer::default() } }
}

fn fail_turn(run: RunId) -> Command {
    Command::FailTurn {
        run,
        failing: Failing {
            usage: Usage { input: 5, ..Usage::default() },
            fault: Fault::OutOfTokens,
            ..Failing::of("no room")
        },
    }
}

/// The next thing that a session wants done; of one that wants nothing, that it ends.
fn go_on(view: &dyn View, name: &SessionName, answer: &Reply) -> Looked<Command> {
    Ok(match view.session(name)?.map(|session| session.wanted()) {
        Some(Wanted::Hook(debt)) => match view.debt(debt)? {
            Some(debt) if debt.attempts == 0 && is_cancelled(view, name)? => {
                Command::AdvanceSession { name: name.clone() }
            }
            Some(debt) if debt.attempts == 0 => Command::BeginEffect { debt: debt.id, owner: debt.owner },
            Some(debt) => finish(debt.id, debt.owner, answer),
            None => unknown_debt(),
        },
        Some(Wanted::Turn(_)) => {
            let run = run(view, &Turn::Present(name.clone()))?;
            if answer.fails { fail_turn(run) } else { finish_turn(run, answer.promise) }
        }
        Some(Wanted::Answer) => {
            // Hooks that have something to say go with people who have.
            let text = answer.feedback.clone();
            Command::AnswerGate { session: name.clone(), answer: answer.to_the_gate, text }
        }
        Some(Wanted::Workspace | Wanted::Work) => stop(name.clone(), Ending::Cancelled),
        Some(Wanted::Decision | Wanted::Moment(_)) => Command::AdvanceSession { name: name.clone() },
        Some(Wanted::Nothing) | None => stop(name.clone(), Ending::Cancelled),
    })
}

fn is_cancelled(view: &dyn View, name: &SessionName) -> Looked<bool> {
    Ok(view.session(name)?.is_some_and(|session| session.stopping.is_some() && session.ended().is_none()))
}

fn stop(name: SessionName, ending: Ending) -> Command {
    Command::StopSession { name, ending, reason: None }
}

fn finish(debt: DebtId, owner: OwnerName, answer: &Reply) -> Command {
    let (feedback, actions) = (answer.feedback.clone(), answer.actions.clone());
    let report = HookReport { feedback, actions, ..answer.outcome.into() };
    Command::FinishEffect { debt, owner, report }
}

fn unknown_debt() -> Command {
    let debt = "1.0".parse().expect("a debt id");
    Command::RecoverEffect { debt, dead: owner("w1"), owner: owner("w2") }
}

fn debts_of(view: &dyn View) -> Looked<Vec<Debt>> {
    let mut debts = Vec::new();
    while let Some(debt) = view.owed(debts.last().map(|debt: &Debt| debt.id))? {
        debts.push(debt);
    }
    Ok(debts)
}

/// One of the hooks that have begun.
fn running_hook(view: &dyn View, nth: usize) -> Looked<Option<DebtId>> {
    let runs = |debt: &Debt| debt.attempts > 0 && matches!(debt.effect, Effect::Hook(_));
    let running: Vec<DebtId> = debts_of(view)?.iter().filter(|debt| runs(debt)).map(|debt| debt.id).collect();
    Ok(running.get(nth % running.len().max(1)).copied())
}

fn debt_command(view: &dyn View, nth: usize, step: &DebtStep) -> Looked<Command> {
    let debts = debts_of(view)?;
    let Some(debt) = debts.get(nth % debts.len().max(1)) else { return Ok(unknown_debt()) };
    let (id, owner) = (debt.id, debt.owner.clone());
    Ok(match step {
        DebtStep::BeginByOwner => Command::BeginEffect { debt: id, owner },
        DebtStep::BeginBy(other) => Command::BeginEffect { debt: id, owner: other.clone() },
        DebtStep::Retry => Command::RetryEffect { debt: id, owner, after: "exit 1".to_owned() },
        DebtStep::Finish(answer) => finish(id, owner, answer),
        DebtStep::Recover(other) => Command::RecoverEffect { debt: id, dead: owner, owner: other.clone() },
    })
}

fn owner(name: &str) -> OwnerName {
    name.parse().expect("an owner's name")
}

// The strategies.

/// Histories of up to so many steps.
pub fn histories(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    // A graph and a session to work on come first: what follows would otherwise mostly name what is not there.
    let first = (vec(new_task(), 3..6), start_session()).prop_map(|(tasks, session)| {
        let tasks = (0..).zip(tasks).map(|(others, new)| Ask::Plain(Command::CreateTask(among(others, new))));
        tasks.chain([session]).map(Step::from).collect::<Vec<_>>()
    });
    (first, vec(step(), steps / 2..steps)).prop_map(|(first, rest)| [first, rest].concat())
}

/// Histories in which hardly anything happens but sessions.
pub fn histories_of_sessions(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let task = || Step::from(Ask::Plain(Command::CreateTask(a_task())));
    let session = start_session().prop_map(Step::from);
    let ask = prop_oneof![12 => about_sessions(), 2 => debts(), 1 => about_a_task()];
    let asked = (option::weighted(0.2, turn()), option::weighted(0.1, 0..3_usize), ask);
    let step = asked.prop_map(|(inside, via, ask)| Step { inside, via, ..Step::from(ask) });
    (session, vec(step, steps / 2..steps))
        .prop_map(move |(session, rest)| [vec![task(), task(), task(), session], rest].concat())
}

fn a_task() -> NewTask {
    NewTask { goal: "mend the test".to_owned(), ..NewTask::default() }
}

/// The task as it can be made when there are only so many others.
fn among(others: u64, mut new: NewTask) -> NewTask {
    new.depends_on.retain(|id| id.0 <= others);
    new.parent = new.parent.filter(|id| id.0 <= others);
    new
}

/// One step of any kind.
pub fn step() -> impl Strategy<Value = Step> {
    let right = prop_oneof![
        6 => Just(Right::Person),
        4 => Just(Right::Forced),
        5 => Just(Right::Holder),
        1 => Just(Right::FormerHolder),
    ];
    let create = new_task().prop_map(|new| Ask::Plain(Command::CreateTask(new)));
    let ask = prop_oneof![2 => create, 10 => about_a_task(), 4 => about_edges(), 9 => about_sessions(), 3 => debts(), 4 => about_drive(), 3 => about_calls()];
    let from = (option::weighted(0.2, turn()), option::weighted(0.1, 0..3_usize));
    (prop_oneof![3 => 0..20_i64, 1 => 20..200_i64], right, from, ask)
        .prop_map(|(after, right, (inside, via), ask)| Step { after, right, inside, via, ask })
}

/// Mostly one of a few, so that much happens to the same task.
fn task() -> impl Strategy<Value = TaskId> {
    prop_oneof![3 => 1..=3_u64, 1 => 1..=TASKS].prop_map(TaskId)
}

fn session() -> impl Strategy<Value = SessionName> {
    prop_oneof![3 => Just("a"), 1 => Just("b")].prop_map(|name| name.parse().expect("a session name"))
}

fn worker() -> impl Strategy<Value = OwnerName> {
    select(vec!["w1", "w2"]).prop_map(owner)
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![3 => session().prop_map(Turn::Present), 1 => session().prop_map(Turn::Past)]
}

fn priority() -> impl Strategy<Value = Priority> {
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

fn about_a_task() -> impl Strategy<Value = Ask> {
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
        2 => (task(), select(vec![Deletion::Alone, Deletion::Cascade, Deletion::BlockDependents]))
            .prop_map(|(id, deletion)| Ask::Plain(C::DeleteTask { id, deletion })),
    ]
}

fn about_drive() -> impl Strategy<Value = Ask> {
    // Mostly the same one: a series has several steps.
    let task = prop_oneof![3 => Just(TaskId(1)), 1 => task()];
    (task, driving()).prop_map(|(task, driving)| Ask::Drive(task, driving))
}

fn about_calls() -> impl Strategy<Value = Ask> {
    prop_oneof![
        1 => call().prop_map(|call| Ask::Plain(Command::Call(Box::new(call)))),
        2 => (caller(), point(), verdict()).prop_map(|(caller, point, verdict)| Ask::Answer { caller, point, verdict }),
    ]
}

fn about_edges() -> impl Strategy<Value = Ask> {
    let waiting = select(vec![EdgeKind::DependsOn, EdgeKind::Blocks]);
    let kind = prop_oneof![3 => waiting, 1 => select(EdgeKind::ALL.to_vec())];
    prop_oneof![
        3 => (task(), kind, task()).prop_map(|(from, kind, to)| Ask::Plain(Command::AddEdge { from, kind, to })),
        2 => (task(), 0..4_usize).prop_map(|(from, nth)| Ask::RemoveSomeEdge { from, nth }),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let completion = prop_oneof![3 => Just(Completion::Promise), 1 => Just(Completion::Gate)];
    let on_retry_limit =
        prop_oneof![1 => Just(OnRetryLimit::Escalate), 1 => Just(OnRetryLimit::Complete), 4 => Just(OnRetryLimit::Ask)];
    let max_hook_retries = prop_oneof![1 => Just(0_u32), 1 => 1..4_u32];
    let max_failures = prop_oneof![1 => 0..2_u32, 2 => 2..5_u32];
    let wall_time = option::weighted(0.2, (0..800_u64).prop_map(Duration::from_millis));
    let tokens = option::weighted(0.1, 0..200_u64);
    let budgets = (wall_time, option::weighted(0.2, (0..800_u64).prop_map(Cost)), tokens, 0..5_u32);
    (1..5_u32, max_hook_retries, max_failures, completion, any::<bool>(), on_retry_limit, budgets).prop_map(
        |(max_iterations, max_hook_retries, max_failures, completion, strict, on_retry_limit, budgets)| {
            let (wall_time, cost, tokens, thrashing) = budgets;
            Terms {
                max_iterations,
                max_hook_retries,
                max_failures,
                completion,
                strict,
                on_retry_limit,
                wall_time,
                cost,
                tokens,
                thrashing,
                ..Terms::default()
            }
        },
    )
}

fn start_session() -> impl Strategy<Value = Ask> {
    let config = select(vec!["hooks: {}", "hooks: {stop: []}"]);
    let work = prop_oneof![
        3 => (1..=3_u64).prop_map(|id| (Some(TaskId(id)), None, Work::Given)),
        2 => Just((None, Some("mend the test".to_owned()), Work::Given)),
        3 => Just((None, None, Work::Graph)),
        // As sessions of older versions were.
        2 => Just((None, None, Work::Given)),
    ];
    let agent = select(vec!["command:true", "command:false"]);
    // Mostly whoever owes the hooks as well, and so waits for them.
    let owner = prop_oneof![3 => Just(owner("w1")), 1 => worker()];
    (session(), work, config, agent, terms(), owner).prop_map(|(name, work, config, agent, terms, owner)| {
        let (task, goal, work) = work;
        let (agent, config) = (agent.to_owned(), config.to_owned());
        Ask::Plain(Command::StartSession(NewSession {
            name,
            task,
            goal,
            work,
            grounds: Grounds::InPlace,
            config,
            protected: None,
            agent,
            terms,
            owner,
            nonce: NONCE,
        }))
    })
}

fn answer() -> impl Strategy<Value = Reply> {
    use HookOutcome as O;
    let fails = select(vec![O::Skip, O::Failure, O::TimedOut, O::Cancelled, O::Continue, O::Escalate]);
    let outcome = prop_oneof![4 => Just(O::Success), 3 => Just(O::Block), 1 => fails];
    let feedback = select(vec!["mend it", "and this"]).prop_map(str::to_owned);
    (outcome, option::weighted(0.5, feedback), promise(), prop::bool::weighted(0.35), actions(), gate_answer())
        .prop_map(|(outcome, feedback, promise, fails, actions, to_the_gate)| Reply {
            outcome,
            feedback,
            promise,
            fails,
            actions,
            to_the_gate,
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

fn about_sessions() -> impl Strategy<Value = Ask> {
    use Ending as E;
    let ending = select(vec![E::Completed, E::Limit, E::Escalated, E::Cancelled, E::Error]);
    prop_oneof![
        2 => start_session(),
        24 => (session(), answer()).prop_map(|(name, answer)| Ask::GoOn(name, answer)),
        1 => (session(), ending).prop_map(|(name, ending)| Ask::Plain(stop(name, ending))),
        1 => session().prop_map(|name| Ask::Plain(Command::CancelSession { name, reason: None })),
        1 => session().prop_map(|name| Ask::Plain(Command::AdvanceSession { name })),
        2 => session().prop_map(|session| Ask::Plain(Command::Say { session, text: "stay calm".to_owned() })),
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

fn debts() -> impl Strategy<Value = Ask> {
    let step = prop_oneof![
        3 => Just(DebtStep::BeginByOwner),
        1 => worker().prop_map(DebtStep::BeginBy),
        1 => Just(DebtStep::Retry),
        3 => answer().prop_map(DebtStep::Finish),
        3 => worker().prop_map(DebtStep::Recover),
    ];
    (0..6_usize, step).prop_map(|(nth, step)| Ask::Debt { nth, step })
}
