//! Why a task is in the state that it is in.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::{EventType, Move, Record, Seq, SessionName, State, Task, TaskId, View, awaited};
use windlass_store::{Filter, Store};

use super::delivery::Delivery;
use super::judged::{Focus, Judged};
use super::{Evidence, agency, detail, labelled};
use crate::commands::hooks::collect;
use crate::commands::hooks::runs::{Cause, Run};
use crate::commands::next_step;
use crate::context::Opened;
use crate::environment;
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::{remedy, show, text};

/// So many causes are followed.
const CAUSES: usize = 64;
/// So many events of the history are shown to a person.
const HISTORY: usize = 50;

/// An event on the way to the present state, and the hooks that ran for it.
struct Link {
    record: Record,
    runs: Vec<Run>,
}

/// Everything that speaks for a task's state.
struct Answer {
    task: Task,
    /// What it waits for and is not completed.
    open: Vec<Task>,
    /// The event that set the state first, then what led to it.
    links: Vec<Link>,
    /// Whether there are more causes than are followed.
    cut: bool,
    history: Vec<Record>,
    delivery: Delivery,
}

pub fn run(opened: &Opened, id: TaskId, out: &mut Output) -> Done {
    let answer = answer(opened, id)?;
    if out.is_json() {
        return out.object(&to_json(&answer, opened));
    }
    show::line(&answer.task, out)?;
    let next = next_step::for_change(opened, &answer.task)?;
    for (label, value) in standing(&answer, next) {
        labelled(label, &value, out)?;
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "because")))?;
    let records = opened.project.records();
    for (link, before) in with_causes(&answer.links) {
        show::whole_event(&link.record, 8, out)?;
        detail(8, Tone::Faint, &agency(&link.record, before), out)?;
        let cause = Cause::of(&link.record);
        for run in &link.runs {
            Evidence { run, cause: Some(&cause), fate: None, records: &records }.show(8, out)?;
        }
    }
    if answer.cut {
        detail(8, Tone::Faint, "and so on; `windlass events` shows everything", out)?;
    }
    if !answer.delivery.is_empty() {
        out.line(format_args!("\n{}", out.paint(Tone::Strong, "delivery")))?;
        answer.delivery.show(&records, out)?;
    }
    let judged = Judged::of(&answer.task, &answer.history, Focus::Newest);
    if !judged.is_empty() {
        out.line(format_args!("\n{}", out.paint(Tone::Strong, "judged")))?;
        judged.show(out)?;
    }
    history(&answer, out)
}

/// How the work on a task was judged, as far as that is asked about.
pub fn run_judged(opened: &Opened, id: TaskId, focus: Focus, out: &mut Output) -> Done {
    // The row and the log at one moment, although somebody may be at work.
    let _moment = opened.store.snapshot().map_err(remedy::store)?;
    let task = opened.task(id)?;
    let history = history_of(opened, id)?;
    let judged = Judged::of(&task, &history, focus);
    if out.is_json() {
        let mut told = judged.to_json();
        told["kind"] = json!(if matches!(focus, Focus::Hook(_)) { "hook" } else { "series" });
        told["task"] = json!(id);
        return out.object(&told);
    }
    show::line(&task, out)?;
    judged.show(out)
}

fn history_of(opened: &Opened, id: TaskId) -> Result<Vec<Record>, Failure> {
    let filter = Filter { task: Some(id), ..Filter::default() };
    opened.store.read(&filter, Seq::START, usize::MAX).map_err(remedy::store)
}

fn history(answer: &Answer, out: &mut Output) -> Done {
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "history")))?;
    let earlier = answer.history.len().saturating_sub(HISTORY);
    if earlier > 0 {
        let id = answer.task.id;
        detail(8, Tone::Faint, &format!("{earlier} earlier events; `windlass events --task {id}` shows them"), out)?;
    }
    answer.history[earlier..].iter().try_for_each(|record| show::whole_event(record, 8, out))
}

fn answer(opened: &Opened, id: TaskId) -> Result<Answer, Failure> {
    // The rows and the log at one moment, although somebody may be at work.
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let task = opened.task(id)?;
    let mut open = Vec::new();
    if show::waits(&task) > 0 {
        for other in awaited(&snapshot, id).map_err(remedy::view)? {
            open.extend(snapshot.task(other).map_err(remedy::view)?.filter(|other| other.state != State::Completed));
        }
    }
    let history = history_of(opened, id)?;
    let sets_state = |record: &&Record| record.kind() == EventType::TaskCreated || Move::on(record.kind()).is_some();
    let mut links = Vec::new();
    let mut places = Places { opened, known: BTreeMap::new() };
    let mut next = history.iter().rev().find(sets_state).cloned();
    while links.len() < CAUSES
        && let Some(record) = next.take()
    {
        next = match record.cause() {
            Some(cause) => opened.store.event(cause).map_err(remedy::store)?,
            None => None,
        };
        let runs = places.runs_for(&record)?;
        links.push(Link { record, runs });
    }
    let delivery = Delivery::of(opened, &task, &history)?;
    Ok(Answer { task, open, links, cut: next.is_some(), history, delivery })
}

/// The hooks that ran around the causes, each place read once: they are where their event is, in the history of its
/// task, else in its session.
struct Places<'o> {
    opened: &'o Opened,
    known: BTreeMap<(Option<TaskId>, Option<SessionName>), Vec<Run>>,
}

impl Places<'_> {
    fn runs_for(&mut self, record: &Record) -> Result<Vec<Run>, Failure> {
        if record.envelope.metadata.owes.is_none() {
            return Ok(Vec::new());
        }
        let task = record.envelope.node.task();
        let session = record.envelope.session.clone().filter(|_| task.is_none());
        let place = (task, session.clone());
        if !self.known.contains_key(&place) {
            let filter = Filter { types: collect::TYPES.to_vec(), task, session };
            let records = self.opened.store.read(&filter, Seq::START, usize::MAX).map_err(remedy::store)?;
            self.known.insert(place.clone(), collect::among(self.opened, &records)?);
        }
        Ok(self.known[&place].iter().filter(|run| run.event == Some(record.seq)).cloned().collect())
    }
}

/// How things stand now, in labelled lines.
fn standing(answer: &Answer, next: Option<String>) -> Vec<(&'static str, String)> {
    let task = &answer.task;
    let now = environment::now();
    let mut lines = Vec::new();
    if let Some(blocked) = &task.blocked {
        lines.push(("blocked", blocked.reason.clone()));
        lines.extend(blocked.by.map(|by| ("by", format!("the end of {by}"))));
        lines.extend(blocked.required_knowledge.iter().map(|needed| ("needs", needed.clone())));
    }
    lines.extend(task.reason.as_ref().map(|reason| ("reason", reason.clone())));
    lines.extend(task.result.as_ref().map(|result| ("result", result.clone())));
    if let Some(lease) = &task.lease {
        lines.push(("held by", show::holder(lease, now)));
    }
    lines.extend(show::pipeline::details(task, next));
    lines.extend(task.claim.as_ref().map(|claim| ("claimed done", format!("in {}", claim.run))));
    lines.extend(answer.open.iter().map(|other| ("waits for", waited(other))));
    for record in overrides(answer) {
        let by = &record.envelope.metadata.triggered_by;
        lines.push(("forced", format!("{} {} by {by}", record.kind(), record.seq)));
    }
    lines
}

/// A task that another waits for, and why it is not completed.
fn waited(task: &Task) -> String {
    let why = why_open(task).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} ({}{why})  {}", task.id, task.state, text::fit(&task.goal, 60))
}

fn why_open(task: &Task) -> Option<String> {
    match (&task.blocked, &task.lease, &task.reason, show::waits(task)) {
        (Some(blocked), ..) => Some(blocked.reason.clone()),
        (None, Some(lease), ..) => Some(format!("held by {}", lease.holder())),
        (None, None, Some(reason), _) => Some(reason.clone()),
        (None, None, None, 0) => None,
        (None, None, None, open) => Some(format!("waits for {open}")),
    }
}

/// Each link with the event that led to it: the next one.
fn with_causes(links: &[Link]) -> impl Iterator<Item = (&Link, Option<&Record>)> {
    links.iter().enumerate().map(|(place, link)| (link, links.get(place + 1).map(|before| &before.record)))
}

/// What somebody did although the rules said no.
fn overrides(answer: &Answer) -> impl Iterator<Item = &Record> {
    let linked = answer.links.iter().map(|link| &link.record);
    let linked = linked.filter(|record| record.envelope.node.task() != Some(answer.task.id));
    answer.history.iter().chain(linked).filter(|record| record.envelope.metadata.forced)
}

fn to_json(answer: &Answer, opened: &Opened) -> Value {
    let records = opened.project.records();
    let causes = with_causes(&answer.links).map(|(link, before)| {
        let cause = Cause::of(&link.record);
        json!({
            "event": link.record,
            "how": agency(&link.record, before),
            "hooks": link.runs.iter().map(|run| run.to_json(Some(&cause), &records)).collect::<Vec<_>>(),
        })
    });
    let mut told = Judged::of(&answer.task, &answer.history, Focus::Newest).to_json();
    let mut own = json!({
        "kind": "task",
        "task": answer.task,
        "waitsFor": answer.open.iter().map(|task| json!({
            "id": task.id, "state": task.state, "goal": task.goal, "why": why_open(task),
        })).collect::<Vec<_>>(),
        "causes": causes.collect::<Vec<_>>(),
        "moreCauses": answer.cut,
        "forced": overrides(answer).map(|record| record.seq).collect::<Vec<_>>(),
        "history": answer.history,
        "delivery": answer.delivery.to_json(&records),
    });
    if let (Some(own), Some(told)) = (own.as_object_mut(), told.as_object_mut()) {
        own.append(told);
    }
    own
}
