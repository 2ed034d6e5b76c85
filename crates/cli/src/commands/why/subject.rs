//! The subjects of `windlass why`: the events that belong to each, and its state.

use std::collections::BTreeSet;

use windlass_app::context::OpenedProject;
use windlass_app::next_step::find_next_step;
use windlass_app::session_view::SessionView;
use windlass_app::typed_step::NextStep;
use windlass_app::{Failure, environment, hints};
use windlass_engine::{
    BridgeCaller, Event, EventRecord, EventType, GateDecision, HookId, Seq, SeriesId, SessionName, StateView, Task,
    TaskId, TaskState, TaskTransition, awaited_tasks,
};
use windlass_store::{EventFilter, Store};
use windlass_text as text;

use super::conversation::report_conversation;
use super::fact::{WhyFact, build_facts};
use super::report::WhyReport;
use crate::commands::task::drive_details;
use crate::output::Tone;
use crate::show::{self, drive};

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

fn read_events(opened: &OpenedProject, filter: &EventFilter) -> Result<Vec<EventRecord>, Failure> {
    opened.store.read_events(filter, Seq::START, usize::MAX).map_err(hints::store_failure)
}

fn read_task_events(opened: &OpenedProject, id: TaskId) -> Result<Vec<EventRecord>, Failure> {
    read_events(opened, &EventFilter { task: Some(id), ..EventFilter::default() })
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
    let records = read_task_events(opened, id)?;
    let now = environment::current_timestamp();
    let mut about = vec![("goal", task.goal.clone())];
    if let Some(blocked) = &task.blocked {
        about.push(("blocked", blocked.reason.clone()));
        about.extend(blocked.by.map(|by| ("by", format!("the end of {by}"))));
        about.extend(blocked.required_knowledge.iter().map(|needed| ("needs", needed.clone())));
    }
    about.extend(task.reason.as_ref().map(|reason| ("reason", reason.clone())));
    about.extend(task.result.as_ref().map(|result| ("result", result.clone())));
    about.extend(task.lease.as_ref().map(|lease| ("held by", show::describe_lease_holder(lease, now))));
    about.extend(trace_causes(opened, id, &records)?.into_iter().map(|cause| ("because", cause)));
    about.extend(list_open_dependencies(opened, &task)?.into_iter().map(|open| ("waits for", open)));
    about.extend(show::pipeline::list_pipeline_details(&task, None));
    about.extend(task.claim.as_ref().map(|claim| ("claimed done", format!("in {}", claim.run))));
    about.extend(drive_details::collect_drive_details(opened, &task, now)?);
    for record in records.iter().filter(|record| record.envelope.metadata.forced) {
        let by = &record.envelope.metadata.triggered_by;
        about.push(("forced", format!("{} {} by {by}", record.kind(), record.seq)));
    }
    Ok(WhyReport {
        kind: "task",
        name: id.to_string(),
        standing: (show::state_tone(task.state), task.state.to_string()),
        about,
        facts: build_facts(opened, records)?,
        next: find_next_command(find_next_step(opened, id)?),
    })
}

/// Returns the event that set the state of a task, and its causes, back to a command.
fn trace_causes(opened: &OpenedProject, id: TaskId, records: &[EventRecord]) -> Result<Vec<String>, Failure> {
    let sets_state = |record: &&EventRecord| {
        record.kind() == EventType::TaskCreated || TaskTransition::for_event_type(record.kind()).is_some()
    };
    let mut lines = Vec::new();
    let mut next = records.iter().rev().find(sets_state).cloned();
    while lines.len() < MAX_CAUSES
        && let Some(record) = next.take()
    {
        next = match record.cause_position() {
            Some(cause) => opened.store.read_event(cause).map_err(hints::store_failure)?,
            None => None,
        };
        lines.push(WhyFact::from_event(record, &[]).format_line(id));
    }
    lines.extend(next.map(|_| "and so on; `windlass events` shows everything".to_owned()));
    Ok(lines)
}

/// Returns the tasks that a task waits for, each with the reason why it is not completed.
fn list_open_dependencies(opened: &OpenedProject, task: &Task) -> Result<Vec<String>, Failure> {
    if show::count_open_dependencies(task) == 0 {
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
        let why = match (&task.blocked, &task.lease, &task.reason, show::count_open_dependencies(task)) {
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
    let records = read_events(opened, &EventFilter { session: Some(name.clone()), ..EventFilter::default() })?;
    let session = &seen.session;
    let find = |kind: EventType| records.iter().find(|record| record.kind() == kind);
    let at = |kind: EventType| find(kind).map(|record| show::format_local_time(record.envelope.timestamp));
    let reason = find(EventType::SessionEnded).and_then(|record| match &record.envelope.event {
        Event::SessionEnded(ended) => ended.reason.as_ref().map(|reason| format!(": {reason}")),
        _ => None,
    });
    let (tone, words) = show::describe_session_state(&seen);
    let standing = match session.is_over() {
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
        ("started", at(EventType::SessionStarted)),
        ("ended", at(EventType::SessionEnded)),
        ("waits for", seen.describe_awaited(&snapshot)?),
        ("sent back", times(records.iter().filter(is_sent_back).count())),
        ("interrupted", times(session.interrupted as usize)),
        ("undelivered", (!unheard.is_empty()).then(|| format!("feedback {}", unheard.join(", ")))),
    ];
    Ok(WhyReport {
        kind: "session",
        name: name.to_string(),
        standing: (tone, standing),
        about: about.into_iter().filter_map(|(label, what)| Some((label, what?))).collect(),
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
    let standing = match row.drive.hooks.iter().find(|hook| hook.id == id).map(|hook| hook.enabled) {
        Some(true) => (Tone::Good, "enabled"),
        Some(false) => (Tone::Warning, "disabled"),
        None => (Tone::Faint, "no longer registered"),
    };
    report_judge(opened, &row, ("hook", id.to_string()), standing, is_own)
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
    let standing = row.drive.find_series(id).map_or_else(|| "over".to_owned(), drive::format_series);
    report_judge(opened, &row, ("series", id.to_string()), (Tone::Plain, &standing), is_own)
}

/// Reports on a registered stop hook or a series of iterations, which judge the work on a task from within.
fn report_judge(
    opened: &OpenedProject,
    task: &Task,
    (kind, name): (&'static str, String),
    (tone, standing): (Tone, &str),
    mut is_own: impl FnMut(&EventRecord) -> bool,
) -> Result<WhyReport, Failure> {
    let mut facts = build_facts(opened, read_task_events(opened, task.id)?)?;
    facts.retain(|fact| is_own(&fact.record));
    let decisions = facts.iter().filter(|fact| fact.record.kind() == EventType::HookEvaluated).count();
    let decisions = if decisions == 0 { "nothing yet".to_owned() } else { format_times(decisions) };
    let about = vec![("task", format!("{} ({})  {}", task.id, task.state, task.goal)), ("decided", decisions)];
    let (standing, next) = ((tone, standing.to_owned()), find_next_command(find_next_step(opened, task.id)?));
    Ok(WhyReport { kind, name, standing, about, facts, next })
}
