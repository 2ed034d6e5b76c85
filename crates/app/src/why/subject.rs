//! The subjects of `windlass why`: the events that belong to each, and its state.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::context::OpenedProject;
use crate::next_step::find_next_step;
use crate::session_view::SessionView;
use crate::typed_step::NextStep;
use crate::{Failure, FailureCode, conversations, environment, hints, time_format};
use windlass_engine::{
    BridgeCaller, Event, EventRecord, EventType, GateDecision, HookId, Seq, SeriesId, SessionName, StateView, Task,
    TaskId, TaskState, TaskTransition, awaited_tasks,
};
use windlass_store::EventFilter;
use windlass_text as text;

use super::conversation::report_conversation;
use super::drive_details;
use super::fact::{WhyFact, build_facts};
use super::report::{WhyCause, WhyReport};
use crate::event_text::{self, drive};
use crate::tone::TextTone;

/// The columns of an unknown name in an error.
const MAX_NAME_COLUMNS: usize = 60;
/// The most events that a report reads; the newest count.
const MAX_REPORT_EVENTS: usize = 4000;
/// The largest number of causes that are followed.
const MAX_CAUSES: usize = 64;

pub enum WhySubject {
    Task(TaskId),
    Session(SessionName),
    /// A stop hook that is or was registered for a task.
    Hook(TaskId, HookId),
    /// A series of iterations on a task.
    Series(TaskId, SeriesId),
    Conversation(BridgeCaller),
}

impl WhySubject {
    /// Finds the subject of a name.
    pub fn find_subject(opened: &OpenedProject, name: &str) -> Result<Self, Failure> {
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        let id = name.parse::<TaskId>().ok();
        if let Some(id) = id
            && snapshot.find_task(id).map_err(hints::view_failure)?.is_some()
        {
            return Ok(Self::Task(id));
        }
        if let Ok(session) = name.parse::<SessionName>()
            && snapshot.find_session(&session).map_err(hints::view_failure)?.is_some()
        {
            return Ok(Self::Session(session));
        }
        if let Some(id) = id {
            return Err(hints::refusal_failure(&windlass_engine::Refusal::UnknownTask(id)));
        }
        if let Ok(hook) = name.parse::<HookId>() {
            return Ok(Self::Hook(find_hook_task(opened, hook)?, hook));
        }
        if let Ok(series) = name.parse::<SeriesId>() {
            let kind = EventType::SeriesStarted;
            let found = find_event_task(opened, Seq(series.0), kind)?.map(|task| Self::Series(task, series));
            return found.ok_or_else(|| unknown_name_failure("series of iterations", &series, kind));
        }
        if let Some(caller) = conversations::find_conversation(opened, name)? {
            return Ok(Self::Conversation(caller));
        }
        let sessions = snapshot.all_sessions().map_err(hints::store_failure)?;
        if sessions.iter().any(|session| session.name.as_str().starts_with(name)) {
            return opened.find_referenced_session(name).map(|session| Self::Session(session.name));
        }
        let shown = text::fit_to_width(name, MAX_NAME_COLUMNS);
        let hint = match hints::suggest_session(name, &sessions) {
            near if near.ends_with('?') => near,
            known => format!("{known}; tasks are named like T12; {}", conversations::CONVERSATION_ID_HINT),
        };
        let message = format!("`{shown}` is no task, session, conversation, stop hook or series of iterations");
        Err(Failure::new(FailureCode::NotFound, message).with_hint(hint))
    }

    /// Returns the conversation of the agent that called last.
    pub fn find_newest_conversation(opened: &OpenedProject) -> Result<Self, Failure> {
        let newest = conversations::find_newest_conversation(opened)?;
        newest.map(Self::Conversation).ok_or_else(|| {
            Failure::new(FailureCode::NotFound, "no agent has called yet")
                .with_hint("`windlass hook` is what agents' own hook systems call")
        })
    }

    pub fn build_report(&self, opened: &OpenedProject) -> Result<WhyReport, Failure> {
        // While the snapshot is open, the rows and the log are of one moment.
        let _moment = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        match self {
            Self::Task(id) => report_task(opened, *id),
            Self::Session(name) => report_session(opened, name),
            Self::Hook(task, id) => report_hook(opened, *task, *id),
            Self::Series(task, id) => report_series(opened, *task, *id),
            Self::Conversation(caller) => report_conversation(opened, caller),
        }
    }
}

/// Returns the task that a stop hook is or was registered for.
fn find_hook_task(opened: &OpenedProject, hook: HookId) -> Result<TaskId, Failure> {
    let kind = EventType::HookRegistered;
    find_event_task(opened, Seq(hook.0), kind)?.ok_or_else(|| unknown_name_failure("stop hook", &hook, kind))
}

/// Returns the task of the event at a position, if the event is of that type.
fn find_event_task(opened: &OpenedProject, at: Seq, kind: EventType) -> Result<Option<TaskId>, Failure> {
    let record = opened.store.read_event(at).map_err(hints::store_failure)?.filter(|record| record.kind() == kind);
    Ok(record.and_then(|record| record.envelope.node.task_id()))
}

fn unknown_name_failure(what: &str, id: &dyn Display, kind: EventType) -> Failure {
    let all = format!("`windlass why TASK` names those of a task, `windlass events --type {kind}` all of them");
    Failure::new(FailureCode::NotFound, format!("there is no {what} {id}")).with_hint(all)
}

/// The newest events of a subject, oldest first.
struct SubjectEvents {
    records: Vec<EventRecord>,
    /// A note about older events, if they were left out.
    note: Option<(&'static str, String)>,
}

/// Reads the newest events that match a filter. The command shows all of them.
fn read_events(opened: &OpenedProject, filter: &EventFilter, command: &str) -> Result<SubjectEvents, Failure> {
    let mut records =
        opened.store.read_events_back(filter, None, MAX_REPORT_EVENTS + 1).map_err(hints::store_failure)?;
    let is_cut = records.len() > MAX_REPORT_EVENTS;
    records.truncate(MAX_REPORT_EVENTS);
    records.reverse();
    let note = format!("only the newest {MAX_REPORT_EVENTS} events count; `{command}` shows all");
    Ok(SubjectEvents { records, note: is_cut.then_some(("older", note)) })
}

fn read_task_events(opened: &OpenedProject, id: TaskId) -> Result<SubjectEvents, Failure> {
    let filter = EventFilter { task: Some(id), ..EventFilter::default() };
    read_events(opened, &filter, &format!("windlass events --task {id}"))
}

/// Returns the first step that is not `windlass why` again.
fn find_next_command(steps: impl IntoIterator<Item = NextStep>) -> Option<String> {
    steps.into_iter().find(|step| !step.command.starts_with("windlass why")).map(|step| step.shell_line())
}

pub fn format_times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn report_task(opened: &OpenedProject, id: TaskId) -> Result<WhyReport, Failure> {
    let task = opened.require_task(id)?;
    let SubjectEvents { records, note } = read_task_events(opened, id)?;
    let now = environment::current_timestamp();
    let mut about = vec![("goal", task.goal.clone())];
    about.extend(note);
    if let Some(blocked) = &task.blocked {
        about.push(("blocked", blocked.reason.clone()));
        about.extend(blocked.by.map(|by| ("by", format!("the end of {by}"))));
        about.extend(blocked.required_knowledge.iter().map(|needed| ("needs", needed.clone())));
    }
    about.extend(task.reason.as_ref().map(|reason| ("reason", reason.clone())));
    about.extend(task.result.as_ref().map(|result| ("result", result.clone())));
    about.extend(task.lease.as_ref().map(|lease| ("held by", time_format::describe_lease_holder(lease, now))));
    let facts = build_facts(opened, records)?;
    let (causes, has_more_causes) = trace_causes(opened, id, &facts)?;
    let waits = list_open_dependencies(opened, &task)?.into_iter().map(|open| ("waits for", open));
    let mut details: Vec<(&str, String)> = waits.collect();
    details.extend(event_text::pipeline::list_pipeline_details(&task, None));
    details.extend(task.claim.as_ref().map(|claim| ("claimed done", format!("in {}", claim.run))));
    details.extend(drive_details::collect_drive_details(opened, &task, now)?);
    for record in facts.iter().map(|fact| &fact.record).filter(|record| record.envelope.metadata.forced) {
        let by = &record.envelope.metadata.triggered_by;
        details.push(("forced", format!("{} {} by {by}", record.kind(), record.seq)));
    }
    Ok(WhyReport {
        kind: "task",
        name: id.to_string(),
        state: (event_text::state_tone(task.state), task.state.to_string()),
        about,
        causes,
        has_more_causes,
        details,
        facts,
        next: find_next_command(find_next_step(opened, id)?),
    })
}

/// Returns the event that set the state of a task, and its causes, back to a command, and whether some are left out. Several hooks
/// may cause one decision.
fn trace_causes(opened: &OpenedProject, id: TaskId, facts: &[WhyFact]) -> Result<(Vec<WhyCause>, bool), Failure> {
    let sets_state = |fact: &&WhyFact| {
        let kind = fact.record.kind();
        kind == EventType::TaskCreated || TaskTransition::for_event_type(kind).is_some()
    };
    let mut found = Vec::new();
    let mut next: BTreeSet<Seq> = facts.iter().rev().find(sets_state).map(|fact| fact.record.seq).into_iter().collect();
    while found.len() < MAX_CAUSES && !next.is_empty() {
        let mut causes = BTreeSet::new();
        for seq in next {
            if let Some((cause, before)) = describe_cause(opened, id, facts, seq)? {
                found.push(cause);
                causes.extend(before);
            }
        }
        next = causes;
    }
    Ok((found, !next.is_empty()))
}

/// Describes the event at a position, which may be outside of the facts, and returns its causes.
fn describe_cause(
    opened: &OpenedProject,
    id: TaskId,
    facts: &[WhyFact],
    seq: Seq,
) -> Result<Option<(WhyCause, Vec<Seq>)>, Failure> {
    let describe = |fact: &WhyFact| {
        let cause = WhyCause { seq: fact.record.seq.0, text: fact.format_line(id) };
        (cause, fact.cause_positions())
    };
    if let Some(fact) = facts.iter().find(|fact| fact.is_about(seq)) {
        return Ok(Some(describe(fact)));
    }
    let record = opened.store.read_event(seq).map_err(hints::store_failure)?;
    Ok(record.map(|record| describe(&WhyFact::from_event(record, &[]))))
}

/// Returns the tasks that a task waits for, each with the reason why it is not completed.
fn list_open_dependencies(opened: &OpenedProject, task: &Task) -> Result<Vec<String>, Failure> {
    if event_text::count_open_dependencies(task) == 0 {
        return Ok(Vec::new());
    }
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut open = Vec::new();
    for other in awaited_tasks(&snapshot, task.id).map_err(hints::view_failure)? {
        open.extend(
            snapshot.find_task(other).map_err(hints::view_failure)?.filter(|other| other.state != TaskState::Completed),
        );
    }
    let describe = |task: &Task| {
        let why = match (&task.blocked, &task.lease, &task.reason, event_text::count_open_dependencies(task)) {
            (Some(blocked), ..) => format!(": {}", blocked.reason),
            (None, Some(lease), ..) => format!(": held by {}", lease.holder_name()),
            (None, None, Some(reason), _) => format!(": {reason}"),
            (None, None, None, 0) => String::new(),
            (None, None, None, open) => format!(": waits for {open}"),
        };
        format!("{} ({}{why})  {}", task.id, task.state, text::fit_to_width(&task.goal, 60))
    };
    Ok(open.iter().map(describe).collect())
}

fn report_session(opened: &OpenedProject, name: &SessionName) -> Result<WhyReport, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let seen = SessionView::from_session(opened, opened.require_session(name)?);
    let filter = EventFilter { session: Some(name.clone()), ..EventFilter::default() };
    let SubjectEvents { records, note } = read_events(opened, &filter, &format!("windlass session logs {name}"))?;
    let session = &seen.session;
    let find = |kind: EventType| records.iter().find(|record| record.kind() == kind);
    let reason = find(EventType::SessionEnded).and_then(|record| match &record.envelope.event {
        Event::SessionEnded(ended) => ended.reason.as_ref().map(|reason| format!(": {reason}")),
        _ => None,
    });
    let (tone, words) = event_text::describe_session_state(&seen);
    let state = match session.is_over() {
        true => {
            let iterations = drive::format_count(session.iteration as usize, "iteration", "iterations");
            format!("{words} after {iterations}{}", reason.unwrap_or_default())
        }
        false => format!("{words} in iteration {}", session.iteration),
    };
    let is_sent_back = |record: &&EventRecord| matches!(&record.envelope.event, Event::GateDecided(decided) if decided.decision == GateDecision::SendBack);
    let times = |count: usize| (count > 0).then(|| format_times(count));
    let unheard: Vec<String> = find_unheard(&records).iter().map(Seq::to_string).collect();
    let about = [
        ("goal", session.goal.clone()),
        ("task", session.task.map(|task| task.to_string())),
        ("agent", Some(session.agent.clone())),
        ("started", Some(time_format::format_local_time(session.started_at))),
        ("ended", session.ended_at.map(time_format::format_local_time)),
        ("waits for", seen.describe_awaited(&snapshot)?),
        ("sent back", times(records.iter().filter(is_sent_back).count())),
        ("interrupted", times(session.interrupted as usize)),
        ("undelivered", (!unheard.is_empty()).then(|| format!("feedback {}", unheard.join(", ")))),
    ];
    let about = about.into_iter().filter_map(|(label, what)| Some((label, what?)));
    Ok(WhyReport {
        kind: "session",
        name: name.to_string(),
        state: (tone, state),
        about: about.chain(note).collect(),
        causes: Vec::new(),
        has_more_causes: false,
        details: Vec::new(),
        next: find_next_command(seen.list_next_steps(opened)?),
        facts: build_facts(opened, records)?,
    })
}

/// Returns the pieces of feedback that no finished turn has delivered.
fn find_unheard(records: &[EventRecord]) -> BTreeSet<Seq> {
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

fn report_hook(opened: &OpenedProject, task: TaskId, id: HookId) -> Result<WhyReport, Failure> {
    let mut is_asked_at_gate = false;
    let is_own = |record: &EventRecord| match &record.envelope.event {
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
    let row = opened.require_task(task)?;
    let state = match row.evaluation.hooks.iter().find(|hook| hook.id == id).map(|hook| hook.enabled) {
        Some(true) => (TextTone::Good, "enabled"),
        Some(false) => (TextTone::Warning, "disabled"),
        None => (TextTone::Faint, "no longer registered"),
    };
    report_judge(opened, &row, ("hook", id.to_string()), state, is_own)
}

fn report_series(opened: &OpenedProject, task: TaskId, id: SeriesId) -> Result<WhyReport, Failure> {
    let is_own = |record: &EventRecord| match &record.envelope.event {
        Event::SeriesStarted(_) => record.seq == Seq(id.0),
        Event::HookEvaluated(evaluated) => evaluated.series == Some(id),
        Event::ValidationFinished(finished) => finished.series == id,
        Event::SeriesAdvanced(advanced) => advanced.series == id,
        Event::SeriesEnded(ended) => ended.series == id,
        _ => false,
    };
    let row = opened.require_task(task)?;
    let state = row.evaluation.find_series(id).map_or_else(|| "over".to_owned(), drive::format_series);
    report_judge(opened, &row, ("series", id.to_string()), (TextTone::Plain, &state), is_own)
}

/// Reports on a registered stop hook or a series of iterations, which judge the work on a task from within.
fn report_judge(
    opened: &OpenedProject,
    task: &Task,
    (kind, name): (&'static str, String),
    (tone, state): (TextTone, &str),
    mut is_own: impl FnMut(&EventRecord) -> bool,
) -> Result<WhyReport, Failure> {
    let SubjectEvents { records, note } = read_task_events(opened, task.id)?;
    let mut facts = build_facts(opened, records)?;
    facts.retain(|fact| is_own(&fact.record));
    let decisions = facts.iter().filter(|fact| fact.record.kind() == EventType::HookEvaluated).count();
    let decisions = if decisions == 0 { "nothing yet".to_owned() } else { format_times(decisions) };
    let mut about = vec![("task", format!("{} ({})  {}", task.id, task.state, task.goal)), ("decided", decisions)];
    about.extend(note);
    let (state, next) = ((tone, state.to_owned()), find_next_command(find_next_step(opened, task.id)?));
    let (causes, details) = (Vec::new(), Vec::new());
    Ok(WhyReport { kind, name, state, about, causes, has_more_causes: false, details, facts, next })
}
