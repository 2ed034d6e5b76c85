//! The subjects of `windlass why`: the events that belong to each, and its state.

use std::collections::BTreeSet;

use windlass_app::context::Opened;
use windlass_app::hook_runs::RUN_EVENTS;
use windlass_app::next_step::next_step;
use windlass_app::session_view::SessionView;
use windlass_app::typed_step::NextStep;
use windlass_app::{Failure, conversations, environment, hints};
use windlass_bridge::Agent;
use windlass_engine::{
    CallRuling, Caller, Decision, Event, EventType, HookId, HookPoint, Move, Record, Seq, SeriesId, SessionName, State,
    Task, TaskId, View, awaited,
};
use windlass_store::{Filter, Store};
use windlass_text as text;

use super::fact::{WhyFact, build_facts};
use super::report::WhyReport;
use crate::commands::task::driven;
use crate::output::Tone;
use crate::show::{self, bridge, drive};

/// The largest number of causes that are followed.
const MAX_CAUSES: usize = 64;

pub enum WhySubject {
    Task(TaskId),
    Session(SessionName),
    /// A stop hook that is or was registered for a task.
    Hook(TaskId, HookId),
    /// A series of iterations on a task.
    Series(TaskId, SeriesId),
    Conversation(Caller),
}

impl WhySubject {
    pub fn report(&self, opened: &Opened) -> Result<WhyReport, Failure> {
        // While the snapshot is open, the rows and the log are of one moment.
        let _moment = opened.store.snapshot().map_err(hints::store)?;
        match self {
            Self::Task(id) => report_task(opened, *id),
            Self::Session(name) => report_session(opened, name),
            Self::Hook(task, id) => report_hook(opened, *task, *id),
            Self::Series(task, id) => report_series(opened, *task, *id),
            Self::Conversation(caller) => report_conversation(opened, caller),
        }
    }
}

fn read_events(opened: &Opened, filter: &Filter) -> Result<Vec<Record>, Failure> {
    opened.store.read(filter, Seq::START, usize::MAX).map_err(hints::store)
}

fn read_task(opened: &Opened, id: TaskId) -> Result<Vec<Record>, Failure> {
    read_events(opened, &Filter { task: Some(id), ..Filter::default() })
}

/// Returns the first step that is not `windlass why` again.
fn find_next(steps: impl IntoIterator<Item = NextStep>) -> Option<String> {
    steps.into_iter().find(|step| !step.command.starts_with("windlass why")).map(|step| step.line())
}

fn count_times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn report_task(opened: &Opened, id: TaskId) -> Result<WhyReport, Failure> {
    let task = opened.task(id)?;
    let records = read_task(opened, id)?;
    let now = environment::now();
    let mut about = vec![("goal", task.goal.clone())];
    if let Some(blocked) = &task.blocked {
        about.push(("blocked", blocked.reason.clone()));
        about.extend(blocked.by.map(|by| ("by", format!("the end of {by}"))));
        about.extend(blocked.required_knowledge.iter().map(|needed| ("needs", needed.clone())));
    }
    about.extend(task.reason.as_ref().map(|reason| ("reason", reason.clone())));
    about.extend(task.result.as_ref().map(|result| ("result", result.clone())));
    about.extend(task.lease.as_ref().map(|lease| ("held by", show::holder(lease, now))));
    about.extend(trace_causes(opened, id, &records)?.into_iter().map(|cause| ("because", cause)));
    about.extend(list_open_dependencies(opened, &task)?.into_iter().map(|open| ("waits for", open)));
    about.extend(show::pipeline::details(&task, None));
    about.extend(task.claim.as_ref().map(|claim| ("claimed done", format!("in {}", claim.run))));
    about.extend(driven::details(opened, &task, now)?);
    for record in records.iter().filter(|record| record.envelope.metadata.forced) {
        let by = &record.envelope.metadata.triggered_by;
        about.push(("forced", format!("{} {} by {by}", record.kind(), record.seq)));
    }
    Ok(WhyReport {
        kind: "task",
        name: id.to_string(),
        standing: (show::tone(task.state), task.state.to_string()),
        about,
        facts: build_facts(opened, records)?,
        next: find_next(next_step(opened, id)?),
    })
}

/// Returns the event that set the state of a task, and its causes, back to a command.
fn trace_causes(opened: &Opened, id: TaskId, records: &[Record]) -> Result<Vec<String>, Failure> {
    let sets_state = |record: &&Record| record.kind() == EventType::TaskCreated || Move::on(record.kind()).is_some();
    let mut lines = Vec::new();
    let mut next = records.iter().rev().find(sets_state).cloned();
    while lines.len() < MAX_CAUSES
        && let Some(record) = next.take()
    {
        next = match record.cause() {
            Some(cause) => opened.store.event(cause).map_err(hints::store)?,
            None => None,
        };
        lines.push(WhyFact::of_event(record, &[]).line(id));
    }
    lines.extend(next.map(|_| "and so on; `windlass events` shows everything".to_owned()));
    Ok(lines)
}

/// Returns the tasks that a task waits for, each with the reason why it is not completed.
fn list_open_dependencies(opened: &Opened, task: &Task) -> Result<Vec<String>, Failure> {
    if show::waits(task) == 0 {
        return Ok(Vec::new());
    }
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let mut open = Vec::new();
    for other in awaited(&snapshot, task.id).map_err(hints::view)? {
        open.extend(snapshot.task(other).map_err(hints::view)?.filter(|other| other.state != State::Completed));
    }
    let describe = |task: &Task| {
        let why = match (&task.blocked, &task.lease, &task.reason, show::waits(task)) {
            (Some(blocked), ..) => format!(": {}", blocked.reason),
            (None, Some(lease), ..) => format!(": held by {}", lease.holder()),
            (None, None, Some(reason), _) => format!(": {reason}"),
            (None, None, None, 0) => String::new(),
            (None, None, None, open) => format!(": waits for {open}"),
        };
        format!("{} ({}{why})  {}", task.id, task.state, text::fit(&task.goal, 60))
    };
    Ok(open.iter().map(describe).collect())
}

fn report_session(opened: &Opened, name: &SessionName) -> Result<WhyReport, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let seen = SessionView::of(opened, opened.session(name)?);
    let records = read_events(opened, &Filter { session: Some(name.clone()), ..Filter::default() })?;
    let session = &seen.session;
    let find = |kind: EventType| records.iter().find(|record| record.kind() == kind);
    let at = |kind: EventType| find(kind).map(|record| show::moment(record.envelope.timestamp));
    let reason = find(EventType::SessionEnded).and_then(|record| match &record.envelope.event {
        Event::SessionEnded(ended) => ended.reason.as_ref().map(|reason| format!(": {reason}")),
        _ => None,
    });
    let (tone, words) = show::session_words(&seen);
    let standing = match session.is_over() {
        true => {
            let iterations = drive::many(session.iteration as usize, "iteration", "iterations");
            format!("{words} after {iterations}{}", reason.unwrap_or_default())
        }
        false => format!("{words} in iteration {}", session.iteration),
    };
    let is_sent_back = |record: &&Record| matches!(&record.envelope.event, Event::GateDecided(decided) if decided.decision == Decision::SendBack);
    let times = |count: usize| (count > 0).then(|| count_times(count));
    let unheard: Vec<String> = find_unheard(&records).iter().map(Seq::to_string).collect();
    let about = [
        ("goal", session.goal.clone()),
        ("task", session.task.map(|task| task.to_string())),
        ("agent", Some(session.agent.clone())),
        ("started", at(EventType::SessionStarted)),
        ("ended", at(EventType::SessionEnded)),
        ("waits for", seen.waits_for(&snapshot)?),
        ("sent back", times(records.iter().filter(is_sent_back).count())),
        ("interrupted", times(session.interrupted as usize)),
        ("undelivered", (!unheard.is_empty()).then(|| format!("feedback {}", unheard.join(", ")))),
    ];
    Ok(WhyReport {
        kind: "session",
        name: name.to_string(),
        standing: (tone, standing),
        about: about.into_iter().filter_map(|(label, what)| Some((label, what?))).collect(),
        next: find_next(seen.next_steps(opened)?),
        facts: build_facts(opened, records)?,
    })
}

/// Returns the pieces of feedback that no finished turn has delivered.
fn find_unheard(records: &[Record]) -> BTreeSet<Seq> {
    let mut unheard = BTreeSet::new();
    for record in records {
        if matches!(&record.envelope.event, Event::FeedbackQueued(queued) if !queued.passing) {
            unheard.insert(record.seq);
        }
        if let Event::FeedbackDelivered(delivered) = &record.envelope.event {
            unheard.retain(|piece| !delivered.feedback.contains(piece));
        }
    }
    unheard
}

fn report_hook(opened: &Opened, task: TaskId, id: HookId) -> Result<WhyReport, Failure> {
    let mut is_asked_at_gate = false;
    let is_own = |record: &Record| match &record.envelope.event {
        Event::HookRegistered(_) => record.seq == Seq(id.0),
        Event::HookSwitched(switched) => switched.hook == id,
        Event::HooksCleared(cleared) => cleared.hooks.contains(&id),
        Event::ValidationFinished(finished) => finished.hook == Some(id),
        Event::HookEvaluated(evaluated) => {
            let is_own = evaluated.hook == Some(id);
            is_asked_at_gate |= is_own && evaluated.series.is_none();
            is_own
        }
        Event::GateDecided(_) => std::mem::take(&mut is_asked_at_gate),
        _ => false,
    };
    let row = opened.task(task)?;
    let standing = match row.drive.hooks.iter().find(|hook| hook.id == id).map(|hook| hook.enabled) {
        Some(true) => (Tone::Good, "in force"),
        Some(false) => (Tone::Warning, "disabled"),
        None => (Tone::Faint, "no longer registered"),
    };
    report_judge(opened, &row, ("hook", id.to_string()), standing, is_own)
}

fn report_series(opened: &Opened, task: TaskId, id: SeriesId) -> Result<WhyReport, Failure> {
    let is_own = |record: &Record| match &record.envelope.event {
        Event::SeriesStarted(_) => record.seq == Seq(id.0),
        Event::HookEvaluated(evaluated) => evaluated.series == Some(id),
        Event::ValidationFinished(finished) => finished.series == id,
        Event::SeriesAdvanced(advanced) => advanced.series == id,
        Event::SeriesEnded(ended) => ended.series == id,
        _ => false,
    };
    let row = opened.task(task)?;
    let standing = row.drive.series(id).map_or_else(|| "over".to_owned(), drive::series);
    report_judge(opened, &row, ("series", id.to_string()), (Tone::Plain, &standing), is_own)
}

/// Reports on a registered stop hook or a series of iterations, which judge the work on a task from within.
fn report_judge(
    opened: &Opened,
    task: &Task,
    (kind, name): (&'static str, String),
    (tone, standing): (Tone, &str),
    mut is_own: impl FnMut(&Record) -> bool,
) -> Result<WhyReport, Failure> {
    let mut facts = build_facts(opened, read_task(opened, task.id)?)?;
    facts.retain(|fact| is_own(&fact.record));
    let decisions = facts.iter().filter(|fact| fact.record.kind() == EventType::HookEvaluated).count();
    let decisions = if decisions == 0 { "nothing yet".to_owned() } else { count_times(decisions) };
    let about = vec![("task", format!("{} ({})  {}", task.id, task.state, task.goal)), ("decided", decisions)];
    let (standing, next) = ((tone, standing.to_owned()), find_next(next_step(opened, task.id)?));
    Ok(WhyReport { kind, name, standing, about, facts, next })
}

fn report_conversation(opened: &Opened, caller: &Caller) -> Result<WhyReport, Failure> {
    let records = read_conversation(opened, caller)?;
    let calls: Vec<&Record> = records.iter().filter(|record| record.kind() == EventType::BridgeCalled).collect();
    let answers = records.iter().filter_map(|record| match &record.envelope.event {
        Event::BridgeAnswered(answered) => Some(answered),
        _ => None,
    });
    let standing = answers.clone().next_back().map(|answered| {
        let (tone, words) = bridge::outcome(answered);
        (tone, format!("at {}: {words}", answered.point))
    });
    let agent = caller.agent.parse::<Agent>().map_or_else(|_| caller.agent.clone(), |agent| agent.title().to_owned());
    let moment = |call: Option<&&Record>| {
        let envelope = &call?.envelope;
        Some(format!("{}, for {}", show::moment(envelope.timestamp), envelope.metadata.triggered_by))
    };
    let times = |count: usize| (count > 0).then(|| count_times(count));
    let is_sent_back = |point: &HookPoint, ruling| point.sends_back() && ruling == CallRuling::Block;
    let sent_back = answers.clone().filter(|answered| is_sent_back(&answered.point, answered.ruling)).count();
    let about = [
        ("agent", Some(agent)),
        ("first call", moment(calls.first())),
        ("last call", moment(calls.last())),
        ("calls", Some(calls.len().to_string())),
        ("sent back", times(sent_back)),
        ("let go", times(answers.filter(|answered| answered.let_go.is_some()).count())),
    ];
    let about = about.into_iter().filter_map(|(label, what)| Some((label, what?))).collect();
    Ok(WhyReport {
        kind: "conversation",
        name: caller.conversation.clone(),
        standing: standing.unwrap_or((Tone::Plain, "nothing was answered yet".to_owned())),
        about,
        facts: build_facts(opened, records)?,
        next: None,
    })
}

/// Reads the calls of a conversation, the runs of their hooks, and the answers.
fn read_conversation(opened: &Opened, caller: &Caller) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    let mut calls = BTreeSet::new();
    conversations::read(opened, &[EventType::BridgeCalled], Seq::START, |record| match &record.envelope.event {
        Event::BridgeCalled(called) if conversations::is_of(caller, called) => {
            calls.insert(record.seq);
            records.push(record);
        }
        _ => {}
    })?;
    let types: Vec<EventType> = RUN_EVENTS.into_iter().chain([EventType::BridgeAnswered]).collect();
    conversations::read(opened, &types, calls.first().copied().unwrap_or(Seq::START), |record| {
        let call = match &record.envelope.event {
            Event::HookStarted(started) => Some(started.effect.seq),
            Event::HookFinished(finished) => Some(finished.effect.seq),
            _ => record.cause(),
        };
        if call.is_some_and(|call| calls.contains(&call)) {
            records.push(record);
        }
    })?;
    records.sort_unstable_by_key(|record| record.seq);
    Ok(records)
}
