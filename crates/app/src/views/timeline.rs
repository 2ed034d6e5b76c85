//! The history of a session, grouped by iteration: turns, hooks, decisions of the gate, waits and messages.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{
    Event, EventRecord, EventType, NextAction, Seq, Session, SessionEnd, Timestamp, WorkSource, payload,
};
use windlass_store::EventFilter;

use super::engine_names::EventTypeName;
use super::excerpt;
use super::question::OpenQuestion;
use super::session::SessionSummary;
use crate::answer_choice::AnswerChoice;
use crate::context::OpenedProject;
use crate::event_text::{describe_interruption, describe_task_event, event_tone};
use crate::hook_runs::{HookRunOutcome, find_turn_record, read_last_recorded_lines, turn_record_name};
use crate::tone::TextTone;
use crate::turn_end::ends_turn;
use crate::why::{WhyFact, build_facts};
use crate::{Failure, environment, hints};

/// The most events of a session that its timeline reads; the newest count.
const MAX_TIMELINE_EVENTS: usize = 4000;
const MAX_EVIDENCE_LINES: usize = 400;
/// The most characters of a text.
const MAX_TEXT_LENGTH: usize = 20_000;
/// The newest turns without an answer whose output is read from its file.
const MAX_READ_TURNS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimelineItemKind {
    Turn,
    Hook,
    Gate,
    /// The delivery of feedback and messages with a prompt.
    Feedback,
    /// A rate limit, or a wait before the next try.
    Wait,
    /// A message of a person.
    Message,
    Event,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    /// The position of its last event.
    pub seq: u64,
    /// The position of its first event.
    pub start_seq: u64,
    /// The type of its last event.
    #[schemars(with = "EventTypeName")]
    pub event: String,
    pub kind: TimelineItemKind,
    pub title: String,
    pub tone: TextTone,
    /// Whether a person should look at it: it is a failure, or something that blocks or waits.
    pub needs_attention: bool,
    pub started_at: i64,
    /// The end; for a wait, the time of the next try, which may lie in the future.
    pub ended_at: Option<i64>,
    pub is_pending: bool,
    /// The agent's answer, or what it wrote before its turn was cut short; the message; the pieces of a delivery.
    pub text: Option<String>,
    pub evidence: Vec<String>,
    pub details: Vec<String>,
    pub related_seqs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineGroup {
    /// Zero before the first iteration.
    pub iteration: u32,
    /// The task of the iteration, if the session takes several tasks.
    pub task: Option<String>,
    pub items: Vec<TimelineItem>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTimeline {
    pub session: SessionSummary,
    pub groups: Vec<TimelineGroup>,
    /// Feedback that no finished turn has delivered. Messages of the timeline are items.
    pub pending_feedback: Vec<String>,
    /// The answers that a person can give now.
    pub answers: Vec<AnswerChoice>,
    /// The question that these answers are for.
    pub question: Option<OpenQuestion>,
    /// Whether older events were left out.
    pub is_cut: bool,
}

/// Builds the timeline of a session.
pub fn build_session_timeline(opened: &OpenedProject, session: &Session) -> Result<SessionTimeline, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let filter = EventFilter { session: Some(session.name.clone()), ..EventFilter::default() };
    let mut records =
        opened.store.read_events_back(&filter, None, MAX_TIMELINE_EVENTS + 1).map_err(hints::store_failure)?;
    let is_cut = records.len() > MAX_TIMELINE_EVENTS;
    records.truncate(MAX_TIMELINE_EVENTS);
    records.reverse();
    let summary = SessionSummary::from_session(opened, &snapshot, session.clone())?;
    let facts = build_facts(opened, records)?;
    let mut builder = TimelineBuilder {
        named_texts: load_named_texts(opened, &facts)?,
        pending: session.pending.iter().map(|piece| piece.at).collect(),
        has_tasks: session.work == WorkSource::Graph,
        ..TimelineBuilder::default()
    };
    facts.iter().for_each(|fact| builder.add_fact(fact));
    if summary.resume_command.is_some() {
        let file = session.current_turn().map(|turn| turn_record_name(&session.name, turn.effect));
        builder.end_deserted_turn(file.and_then(|file| read_unanswered_output(opened, &file)));
    }
    let is_item = |at: Seq| facts.iter().any(|fact| fact.run.is_none() && fact.record.seq == at);
    let pending = session.pending.iter().map(|piece| piece.at).filter(|at| !is_item(*at));
    let asks = session.next_action() == NextAction::Answer;
    Ok(SessionTimeline {
        answers: if asks { AnswerChoice::list_for_gate() } else { Vec::new() },
        question: asks.then(|| OpenQuestion::load_for_session(opened, session)).transpose()?,
        groups: builder.finish_groups(summary.is_running, environment::current_timestamp()),
        session: summary,
        pending_feedback: pending.map(|at| read_feedback_text(opened, at)).collect::<Result<_, _>>()?,
        is_cut,
    })
}

/// Loads the texts that events only name: the pieces of a delivery, and the output of the newest turns without an answer.
fn load_named_texts(opened: &OpenedProject, facts: &[WhyFact]) -> Result<BTreeMap<Seq, String>, Failure> {
    let (mut texts, mut read_turns) = (BTreeMap::new(), 0);
    for record in facts.iter().rev().map(|fact| &fact.record) {
        let text = match &record.envelope.event {
            Event::FeedbackDelivered(delivered) => {
                let pieces = delivered.feedback.iter().map(|at| read_feedback_text(opened, *at));
                Some(excerpt(&pieces.collect::<Result<Vec<_>, _>>()?.join("\n\n"), MAX_TEXT_LENGTH))
            }
            _ => match find_turn_record(record).filter(|_| read_turns < MAX_READ_TURNS) {
                Some(file) => {
                    read_turns += 1;
                    read_unanswered_output(opened, &file)
                }
                None => None,
            },
        };
        texts.extend(text.map(|text| (record.seq, text)));
    }
    Ok(texts)
}

/// Reads a piece of feedback, with its source.
fn read_feedback_text(opened: &OpenedProject, at: Seq) -> Result<String, Failure> {
    let record = opened.store.read_event(at).map_err(hints::store_failure)?;
    Ok(match record.map(|record| record.envelope.event) {
        Some(Event::FeedbackQueued(payload::FeedbackQueued { source, text, .. })) => {
            format!("{source}: {}", excerpt(&text, MAX_TEXT_LENGTH))
        }
        _ => format!("event {at}"),
    })
}

/// Reads the end of what an agent wrote in a turn without an answer.
fn read_unanswered_output(opened: &OpenedProject, file: &str) -> Option<String> {
    let lines = read_last_recorded_lines(Some(file), &opened.project.record_directory(), MAX_EVIDENCE_LINES)?;
    Some(cut_start(&lines.join("\n"), MAX_TEXT_LENGTH)).filter(|text| !text.trim().is_empty())
}

/// Returns the last characters of a text.
fn cut_start(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((at, dropped)) => format!("…{}", &text[at + dropped.len_utf8()..]),
        None => text.to_owned(),
    }
}

#[derive(Default)]
struct TimelineBuilder {
    groups: Vec<TimelineGroup>,
    /// The items of hooks, by the positions of the feedback that they have queued.
    feedback_items: BTreeMap<u64, u64>,
    /// The texts that events only name.
    named_texts: BTreeMap<Seq, String>,
    /// The feedback that no finished turn has delivered.
    pending: BTreeSet<Seq>,
    /// Whether the session takes several tasks.
    has_tasks: bool,
    /// The request to end the session that came after the last turn had begun.
    stopping: Option<SessionEnd>,
    /// Whether another process has taken the session over during the last turn.
    has_lost_process: bool,
}

impl TimelineBuilder {
    fn add_fact(&mut self, fact: &WhyFact) {
        let record = &fact.record;
        let at = record.envelope.timestamp.millis();
        self.note_interruption(&record.envelope.event);
        if matches!(record.kind(), EventType::TurnStarted | EventType::SessionEnded) {
            self.end_waits(at);
        }
        if let Event::TurnStarted(_) = &record.envelope.event {
            let turn = self.build_item(fact, TimelineItemKind::Turn);
            return self.add_item(record, TimelineItem { is_pending: true, ended_at: None, ..turn });
        }
        let postpones = record.kind() == EventType::IterationPostponed;
        let ended = ends_turn(record.kind()).then(|| self.build_item(fact, TimelineItemKind::Turn));
        if let Some(ended) = ended
            && let Some(turn) = self.find_open_turn()
        {
            if !postpones {
                turn.seq = ended.seq;
            }
            turn.event = ended.event;
            turn.title = ended.title;
            turn.tone = ended.tone;
            turn.text = ended.text;
            turn.details = ended.details;
            turn.ended_at = Some(at);
            turn.is_pending = false;
            self.extend_group(at);
            if !postpones {
                return;
            }
        }
        if let Some((queued, _)) = fact.run.as_ref().and_then(|run| run.feedback.as_ref()) {
            self.feedback_items.insert(queued.0, record.seq.0);
        }
        if is_shown(&record.envelope.event) {
            let mut item = self.build_item(fact, item_kind(fact));
            for seq in &mut item.related_seqs {
                *seq = self.feedback_items.get(seq).copied().unwrap_or(*seq);
            }
            self.add_item(record, item);
        }
    }

    /// Notes what interrupts the last turn. The event of an interruption has no reason.
    fn note_interruption(&mut self, event: &Event) {
        match event {
            Event::TurnStarted(_) => (self.stopping, self.has_lost_process) = (None, false),
            Event::SessionResumed(_) => self.has_lost_process = self.find_open_turn().is_some(),
            Event::SessionStopping(payload::SessionStopping { ending, reason, .. }) => {
                self.stopping = Some(SessionEnd { ending: *ending, reason: reason.clone() });
            }
            _ => {}
        }
    }

    fn build_item(&self, fact: &WhyFact, kind: TimelineItemKind) -> TimelineItem {
        let mut item = build_item(fact, kind);
        if matches!(fact.record.kind(), EventType::IterationInterrupted | EventType::DeliveryInterrupted) {
            item.title = describe_interruption(self.stopping.as_ref(), self.has_lost_process);
        }
        // The wait after a turn follows the item of the turn, which has the output.
        if kind != TimelineItemKind::Wait
            && let Some(text) = self.named_texts.get(&fact.record.seq)
        {
            item.text = Some(text.clone());
        }
        if kind == TimelineItemKind::Message {
            item.is_pending = self.pending.contains(&fact.record.seq);
        }
        if let Some((tone, title)) = describe_task_event(&fact.record).filter(|_| self.has_tasks) {
            (item.tone, item.title) = (tone, title);
        }
        item
    }

    fn add_item(&mut self, record: &EventRecord, item: TimelineItem) {
        let iteration = record.envelope.iteration.unwrap_or_default();
        if self.groups.last().is_none_or(|group| group.iteration != iteration) {
            let (started_at, task) = (item.started_at, None);
            self.groups.push(TimelineGroup { iteration, task, items: Vec::new(), started_at, ended_at: None });
        }
        let task = record.envelope.node.task_id().filter(|_| self.has_tasks);
        // A wait may end before its time.
        let end = item.ended_at.filter(|_| item.kind != TimelineItemKind::Wait).unwrap_or(item.started_at);
        if let Some(group) = self.groups.last_mut() {
            group.task = group.task.take().or_else(|| task.map(|task| task.to_string()));
            group.items.push(item);
        }
        self.extend_group(end);
    }

    fn end_waits(&mut self, at: i64) {
        let Some(group) = self.groups.last_mut() else { return };
        for wait in group.items.iter_mut().filter(|item| item.kind == TimelineItemKind::Wait) {
            wait.ended_at = wait.ended_at.min(Some(at));
            group.ended_at = group.ended_at.max(wait.ended_at);
        }
    }

    fn extend_group(&mut self, to: i64) {
        if let Some(group) = self.groups.last_mut() {
            group.ended_at = group.ended_at.max(Some(to));
        }
    }

    fn find_open_turn(&mut self) -> Option<&mut TimelineItem> {
        let items = self.groups.iter_mut().rev().flat_map(|group| group.items.iter_mut().rev());
        items.into_iter().find(|item| item.kind == TimelineItemKind::Turn && item.is_pending)
    }

    /// Ends the turn of a process that has died.
    fn end_deserted_turn(&mut self, output: Option<String>) {
        let title = describe_interruption(self.stopping.as_ref(), true);
        if let Some(turn) = self.find_open_turn() {
            (turn.is_pending, turn.tone, turn.text, turn.title) = (false, TextTone::Warning, output, title);
        }
    }

    /// Returns the groups. The last one of a running session has no end, and a wait is pending until its time.
    fn finish_groups(mut self, is_running: bool, now: Timestamp) -> Vec<TimelineGroup> {
        for item in self.groups.iter_mut().flat_map(|group| &mut group.items) {
            item.needs_attention = item.tone.needs_attention();
            if item.kind == TimelineItemKind::Wait {
                item.is_pending = is_running && item.ended_at.is_some_and(|until| until > now.millis());
            }
        }
        if let Some(last) = self.groups.last_mut().filter(|_| is_running) {
            last.ended_at = None;
        }
        self.groups
    }
}

/// Returns whether a timeline has an item for the event. Bookkeeping has none. A message has one as queued feedback.
fn is_shown(event: &Event) -> bool {
    !matches!(
        event,
        Event::IterationStarted(_)
            | Event::IterationCompleted(_)
            | Event::ConversationOpened(_)
            | Event::ConfigRecorded(_)
            | Event::AgentMetrics(_)
            | Event::MessageAdded(_)
            | Event::TaskUpdated(_)
    )
}

fn item_kind(fact: &WhyFact) -> TimelineItemKind {
    match &fact.record.envelope.event {
        _ if fact.run.is_some() => TimelineItemKind::Hook,
        Event::GateDecided(_) | Event::GateAnswered(_) => TimelineItemKind::Gate,
        Event::IterationPostponed(_) => TimelineItemKind::Wait,
        Event::FeedbackQueued(_) => TimelineItemKind::Message,
        Event::FeedbackDelivered(_) => TimelineItemKind::Feedback,
        event if ends_turn(event.kind()) => TimelineItemKind::Turn,
        _ => TimelineItemKind::Event,
    }
}

fn build_item(fact: &WhyFact, kind: TimelineItemKind) -> TimelineItem {
    let envelope = &fact.record.envelope;
    let at = envelope.timestamp.millis();
    let (text, ended_at) = match &envelope.event {
        Event::TurnFinished(finished) => (Some(finished.output.as_str()), Some(at)),
        Event::DeliveryFinished(finished) => (Some(finished.output.as_str()), Some(at)),
        Event::FeedbackQueued(queued) => (Some(queued.text.as_str()), Some(at)),
        Event::IterationPostponed(postponed) => (None, Some(postponed.until.millis())),
        _ => (None, Some(at)),
    };
    let run = fact.run.as_ref();
    let is_pending = run.is_some_and(|run| run.outcome == HookRunOutcome::Running);
    let tone = if fact.tone == TextTone::Plain { event_tone(&envelope.event) } else { fact.tone };
    let related_seqs = match &envelope.event {
        Event::FeedbackDelivered(delivered) => delivered.feedback.iter().map(|seq| seq.0).collect(),
        _ => fact.cause_positions().iter().map(|seq| seq.0).collect(),
    };
    let title = match &envelope.event {
        Event::FeedbackQueued(queued) => queued.source.clone(),
        _ => fact.full_sentence(),
    };
    let evidence = if text.is_some() { &[][..] } else { &fact.evidence[..] };
    TimelineItem {
        seq: fact.record.seq.0,
        start_seq: fact.record.seq.0,
        event: fact.record.kind().name().to_owned(),
        kind,
        title,
        tone,
        // The tone may still change.
        needs_attention: false,
        started_at: run.and_then(|run| run.started).map_or(at, |started| started.millis()),
        ended_at: if is_pending { None } else { ended_at },
        is_pending,
        text: text.map(|text| excerpt(text, MAX_TEXT_LENGTH)),
        evidence: evidence.iter().take(MAX_EVIDENCE_LINES).cloned().collect(),
        details: fact.details.clone(),
        related_seqs,
    }
}

#[cfg(test)]
mod tests {
    use windlass_engine::{
        AgentUsage, EffectId, EventEnvelope, EventMetadata, EventSubject, HookOutcome, MessageAuthor, Seq,
        SessionEndKind, SessionTerms, TurnPurpose, payload,
    };

    use super::*;

    fn build_fact(seq: u64, event: Event) -> WhyFact {
        let triggered_by = "run-1".to_owned();
        let metadata = EventMetadata { triggered_by, cause: None, depth: 0, via: None, forced: false, owes: None };
        let timestamp = Timestamp::from_millis(i64::try_from(seq).unwrap() * 1000);
        let (node, session) = (EventSubject::System, None);
        let envelope = EventEnvelope { timestamp, node, session, iteration: Some(1), event, metadata };
        WhyFact::from_event(EventRecord { seq: Seq(seq), envelope }, &[])
    }

    #[test]
    fn long_output_keeps_its_end() {
        assert_eq!(cut_start("größer", 6), "größer");
        assert_eq!(cut_start("größer", 3), "…ßer");
        assert_eq!(cut_start("größer", 4), "…ößer");
    }

    fn started() -> Event {
        let owner = "run-1".parse().unwrap();
        payload::TurnStarted { run: "pump.1.7".parse().unwrap(), owner, purpose: TurnPurpose::Work, feedback: 0 }.into()
    }

    fn postponed(until: i64) -> Event {
        payload::IterationPostponed {
            run: "pump.1.7".parse().unwrap(),
            error: "rate limited".to_owned(),
            until: Timestamp::from_millis(until),
            record: None,
            usage: AgentUsage::default(),
        }
        .into()
    }

    fn list_items(events: Vec<Event>, now: i64) -> Vec<(u64, TimelineItemKind, bool, Option<i64>)> {
        let mut builder = TimelineBuilder::default();
        for (seq, event) in (1..).zip(events) {
            builder.add_fact(&build_fact(seq, event));
        }
        let groups = builder.finish_groups(true, Timestamp::from_millis(now));
        let items = groups.into_iter().flat_map(|group| group.items);
        items.map(|item| (item.seq, item.kind, item.is_pending, item.ended_at)).collect()
    }

    #[test]
    fn message_is_one_item_until_its_delivery() {
        let (source, text) = ("ann".to_owned(), "Close the valve.".to_owned());
        let voice = MessageAuthor::Person;
        let added = payload::MessageAdded { source: source.clone(), text: text.clone(), voice };
        let queued = payload::FeedbackQueued { source, text, voice, reason: None, own: None, passing: false };
        let delivered = payload::FeedbackDelivered { run: "pump.1.7".parse().unwrap(), feedback: vec![Seq(2)] };
        let mut builder = TimelineBuilder {
            named_texts: [(Seq(3), "ann: Close the valve.".to_owned())].into(),
            pending: [Seq(2)].into(),
            ..TimelineBuilder::default()
        };
        for (seq, event) in (1..).zip([added.into(), queued.into(), delivered.into()]) {
            builder.add_fact(&build_fact(seq, event));
        }
        let groups = builder.finish_groups(true, Timestamp::from_millis(0));
        let [message, delivery] = groups[0].items.as_slice() else { panic!("{groups:?}") };
        assert_eq!((message.seq, message.kind, message.is_pending), (2, TimelineItemKind::Message, true));
        assert_eq!((message.title.as_str(), message.text.as_deref()), ("ann", Some("Close the valve.")));
        assert_eq!((delivery.kind, &delivery.related_seqs), (TimelineItemKind::Feedback, &vec![2]));
        assert_eq!(delivery.text.as_deref(), Some("ann: Close the valve."));
    }

    #[test]
    fn interrupted_turn_names_recorded_reason() {
        let stopping = |ending, reason: Option<&str>| -> Event {
            payload::SessionStopping { ending, reason: reason.map(str::to_owned), commits: vec![] }.into()
        };
        let cancelled = || stopping(SessionEndKind::Cancelled, Some("wrong branch"));
        let resumed = || -> Event {
            payload::SessionResumed { owner: "run-2".parse().unwrap(), terms: SessionTerms::default() }.into()
        };
        let interrupted = || -> Event {
            let (record, usage) = (None, AgentUsage::default());
            payload::IterationInterrupted { run: "pump.1.7".parse().unwrap(), record, usage }.into()
        };
        let find_title = |events: Vec<Event>, is_deserted: bool| {
            let mut builder = TimelineBuilder::default();
            for (seq, event) in (1..).zip(events) {
                builder.add_fact(&build_fact(seq, event));
            }
            if is_deserted {
                builder.end_deserted_turn(None);
            }
            let mut items = builder.groups.into_iter().flat_map(|group| group.items);
            items.rfind(|item| item.kind == TimelineItemKind::Turn).map(|turn| turn.title)
        };
        let died = "interrupted: its process has died";
        let expired = stopping(SessionEndKind::Limit, Some("the wall time of 5 min is used up"));
        let cases = [
            (vec![started(), interrupted()], false, "interrupted"),
            (vec![started(), cancelled(), interrupted()], false, "interrupted: cancelled: wrong branch"),
            (vec![started(), expired, interrupted()], false, "interrupted: stopped: the wall time of 5 min is used up"),
            (vec![started(), resumed(), interrupted()], false, died),
            (vec![started(), cancelled(), resumed(), interrupted()], false, "interrupted: cancelled: wrong branch"),
            // The request came before this turn.
            (vec![cancelled(), resumed(), started(), interrupted()], false, "interrupted"),
            (vec![started()], true, died),
            (vec![started(), stopping(SessionEndKind::Cancelled, None)], true, "interrupted: cancelled"),
        ];
        for (events, is_deserted, title) in cases {
            assert_eq!(find_title(events, is_deserted).as_deref(), Some(title));
        }
    }

    #[test]
    fn item_needs_attention_if_it_blocks_or_interrupts() {
        let finished = |outcome: HookOutcome| -> Event {
            let hook = "tests".to_owned();
            let effect = EffectId { seq: Seq(1), index: 0 };
            payload::HookFinished {
                effect,
                hook,
                outcome,
                message: None,
                feedback: None,
                duration_ms: None,
                record: None,
                actions: vec![],
                context: Default::default(),
                approved: None,
                used: AgentUsage::default(),
                head: None,
                unstarted: false,
                results: vec![],
            }
            .into()
        };
        let mut builder = TimelineBuilder::default();
        let hooks = [HookOutcome::Success, HookOutcome::Block, HookOutcome::Failure].map(finished);
        for (seq, event) in (1..).zip([started()].into_iter().chain(hooks)) {
            builder.add_fact(&build_fact(seq, event));
        }
        builder.end_deserted_turn(None);
        let groups = builder.finish_groups(false, Timestamp::from_millis(0));
        let marks: Vec<bool> = groups[0].items.iter().map(|item| item.needs_attention).collect();
        assert_eq!(marks, [true, false, true, true]);
    }

    #[test]
    fn rate_limit_ends_turn_and_begins_wait() {
        let turn = (1, TimelineItemKind::Turn, false, Some(2000));
        let wait = |is_pending, end| (2, TimelineItemKind::Wait, is_pending, Some(end));
        assert_eq!(list_items(vec![started(), postponed(60_000)], 10_000), [turn, wait(true, 60_000)]);
        assert_eq!(list_items(vec![started(), postponed(60_000)], 70_000), [turn, wait(false, 60_000)]);
        let next = (3, TimelineItemKind::Turn, true, None);
        assert_eq!(list_items(vec![started(), postponed(60_000), started()], 10_000), [turn, wait(false, 3000), next]);
    }
}
