//! How tasks and events look to a person.

pub mod bridge;
pub mod drive;
pub mod pipeline;
pub mod workflow;

use windlass_app::hook_runs::HookRunOutcome;
use windlass_app::project::Project;
use windlass_app::session_view::SessionView;
use windlass_engine::{
    Decision, Ending, Event, GateAnswer, HookOutcome, Next, Node, Opening, Promise, Purpose, Record, RunId, State,
    Task, TaskId, Timestamp, Wanted,
};
use windlass_text as text;

use crate::output::{Done, Messages, Output, Tone};

pub use windlass_app::times::{holder, millis, moment, span};

/// So much of a text is shown, broken where the terminal ends.
pub const LONG: usize = 1000;
/// Fewer columns are no room for a text.
const NARROW: usize = 30;

/// The colour of a state.
pub fn tone(state: State) -> Tone {
    match state {
        State::Ready => Tone::Good,
        State::Active | State::Submitted => Tone::Name,
        State::Completed | State::Deleted => Tone::Faint,
        State::Blocked | State::Failed => Tone::Bad,
        State::NeedsContinuation => Tone::Warning,
        State::Created => Tone::Plain,
    }
}

/// How many tasks it waits for; a task that is over waits for none, whatever was left open.
pub fn waits(task: &Task) -> u64 {
    match task.state {
        State::Completed | State::Failed | State::Deleted => 0,
        _ => u64::from(task.open_dependencies),
    }
}

/// Tasks as an aligned table.
pub fn table(tasks: &[Task], out: &mut Output) -> Done {
    let width = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let ids = width(&mut tasks.iter().map(|task| task.id.to_string().len()));
    let states = width(&mut tasks.iter().map(|task| task.state.name().len()));
    for task in tasks {
        let id = text::pad(&task.id.to_string(), ids);
        let state = text::pad(task.state.name(), states);
        let line = format!(
            "{}  {}  {}  ",
            out.paint(Tone::Strong, id),
            out.paint(tone(task.state), state),
            out.paint(Tone::Faint, format_args!("P{}", task.priority))
        );
        let used = ids + states + 8;
        let waits = match waits(task) {
            0 => String::new(),
            open => format!(" (waits for {open})"),
        };
        let labels: String = task.labels.iter().map(|label| format!(" #{}", text::line(label))).collect();
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used + waits.len()).max(20));
        let goal = text::fit(&task.goal, room);
        let left = room.saturating_sub(text::width(&goal));
        let labels = if text::width(&labels) <= left { labels } else { String::new() };
        let (waits, labels) = (out.paint(Tone::Faint, waits), out.paint(Tone::Faint, labels));
        out.line(format_args!("{line}{goal}{labels}{waits}"))?;
    }
    Ok(())
}

/// One task as one line.
pub fn line(task: &Task, out: &mut Output) -> Done {
    table(std::slice::from_ref(task), out)
}

/// What a command about one task led to besides: tasks that waited for it, reviews, failures of hooks.
pub fn consequences(subject: TaskId, records: &[Record], out: &mut Output) -> Done {
    tell(Some(Node::Task(subject)), records, out)
}

/// What a command led to, whichever task it concerns.
pub fn all_consequences(records: &[Record], out: &mut Output) -> Done {
    tell(None, records, out)
}

fn tell(subject: Option<Node>, records: &[Record], out: &mut Output) -> Done {
    let mut messages = Messages::new();
    for record in records {
        let node = record.envelope.node;
        match &record.envelope.event {
            Event::HookError(error) if error.effect.is_some() => {}
            Event::HookError(error) => {
                messages.warning(&format!("hook `{}` failed: {}", error.hook_name, error.error));
            }
            Event::ActionError(error) => messages.warning(&format!("{} failed: {}", error.action_type, error.error)),
            _ if out.is_json() || Some(node) == subject => {}
            Event::TaskReady(_) => out.line(format_args!("{} {node} is ready", out.paint(Tone::Good, "→")))?,
            Event::TaskWaiting(_) => out.line(format_args!("{} {node} waits again", out.paint(Tone::Warning, "→")))?,
            Event::TaskBlocked(blocked) => {
                let reason = text::line(&blocked.reason).into_owned();
                out.line(format_args!("{} {node} is blocked: {reason}", out.paint(Tone::Bad, "→")))?;
            }
            Event::TaskCreated(created) => {
                let goal = text::fit(&created.goal, 100);
                out.line(format_args!("{} {node} created: {goal}", out.paint(Tone::Name, "→")))?;
            }
            Event::LeaseExpired(expired) => {
                let owner = &expired.owner;
                out.line(format_args!("{} the lease of {owner} on {node} ran out", out.paint(Tone::Warning, "→")))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same as far as there is room: a narrow terminal has none for the year, a narrower one none for the day.
pub fn short_moment(at: Timestamp, out: &Output) -> String {
    let at = moment(at);
    match out.columns() {
        Some(..80) => at[11..].to_owned(),
        Some(80..100) => at[5..].to_owned(),
        _ => at,
    }
}

/// Returns how a run ended, in words.
pub fn run_outcome(run: HookRunOutcome) -> (Tone, &'static str) {
    match run {
        HookRunOutcome::Ended(outcome) => outcome_words(outcome),
        HookRunOutcome::Error => (Tone::Bad, "error"),
        HookRunOutcome::Running => (Tone::Name, "is running"),
        HookRunOutcome::Left => (Tone::Warning, "was left"),
    }
}

/// How a run of a hook ended, in words.
pub fn outcome_words(outcome: HookOutcome) -> (Tone, &'static str) {
    match outcome {
        HookOutcome::Success => (Tone::Good, "ok"),
        HookOutcome::Skip => (Tone::Faint, "skipped"),
        HookOutcome::Block => (Tone::Warning, "blocks"),
        HookOutcome::Continue => (Tone::Warning, "wants another iteration"),
        HookOutcome::Again => (Tone::Plain, "judged again"),
        HookOutcome::Escalate => (Tone::Warning, "asks for a person"),
        HookOutcome::Failure => (Tone::Bad, "failed"),
        HookOutcome::TimedOut => (Tone::Bad, "timed out"),
        HookOutcome::Cancelled => (Tone::Faint, "cancelled"),
        HookOutcome::Interrupted => (Tone::Warning, "was interrupted"),
    }
}

/// How a session ended, in words.
pub fn ending_word(ending: Ending) -> (Tone, &'static str) {
    match ending {
        Ending::Completed => (Tone::Good, "complete"),
        Ending::Limit => (Tone::Warning, "ended"),
        Ending::Escalated => (Tone::Warning, "a person is needed"),
        Ending::Cancelled => (Tone::Warning, "cancelled"),
        Ending::Error => (Tone::Bad, "failed"),
    }
}

/// What a session says with an event about the task that it works on: that it takes it up, or how it leaves it.
pub fn of_task(record: &Record) -> Option<(Tone, String)> {
    let id = record.envelope.node;
    if record.envelope.session.is_none() || record.envelope.metadata.depth > 0 {
        return None;
    }
    Some(match &record.envelope.event {
        Event::TaskClaimed(_) => (Tone::Plain, format!("takes {id} up")),
        Event::TaskCompleted(_) => (Tone::Good, format!("{id} is completed")),
        Event::TaskBlocked(blocked) => (Tone::Warning, format!("{id} is blocked: {}", blocked.reason)),
        Event::TaskNeedsContinuation(left) => (Tone::Warning, format!("{id} is to be taken up again: {}", left.reason)),
        _ => return None,
    })
}

/// When the agent is tried again after a failure, where that is not at once.
pub fn retry_moment(record: &Record) -> Option<Timestamp> {
    let Event::IterationFailed(failed) = &record.envelope.event else { return None };
    failed.until.filter(|until| until.millis() - record.envelope.timestamp.millis() >= 1000)
}

/// Returns where a session stands, in a few words.
pub fn session_words(view: &SessionView) -> (Tone, String) {
    match (view.session.ended().filter(|_| view.session.is_over()), view.alive, &view.session.stopping) {
        (Some(ending), ..) => {
            let (tone, word) = ending_word(ending);
            (tone, word.to_owned())
        }
        _ if view.session.wanted() == Wanted::Answer => (Tone::Warning, "asks a person".to_owned()),
        (None, true, None) => (Tone::Name, "running".to_owned()),
        (None, true, Some(_)) => (Tone::Name, "ending".to_owned()),
        (None, false, None) => (Tone::Warning, "unfinished".to_owned()),
        (None, false, Some(_)) => (Tone::Warning, "unfinished, to be ended".to_owned()),
    }
}

/// What an event says, in a few words.
pub fn summary(record: &Record) -> String {
    let text = match &record.envelope.event {
        Event::TaskCreated(created) => created.goal.clone(),
        Event::TaskClaimed(claimed) => format!("by {} (epoch {})", claimed.owner, claimed.epoch),
        Event::LeaseExpired(expired) => format!("of {} (epoch {})", expired.owner, expired.epoch),
        Event::TaskCompleted(completed) => completed.result.clone().unwrap_or_default(),
        Event::TaskBlocked(blocked) => blocked.reason.clone(),
        Event::TaskAnswered(answered) => {
            let said = answered.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("{}{said}", answered.answer)
        }
        Event::TaskNeedsContinuation(payload) => payload.reason.clone(),
        Event::TaskReleased(payload) => payload.reason.clone(),
        Event::TaskFailed(payload) => payload.reason.clone(),
        Event::TaskReopened(payload) => format!("from {}: {}", payload.from, payload.reason),
        Event::DependencyAdded(edge) => format!("{} {} {}", edge.from_id, edge.edge_type, edge.to_id),
        Event::DependencyRemoved(edge) => format!("{} no longer linked to {}", edge.from_id, edge.to_id),
        Event::DependencySatisfied(payload) => format!("by {}", payload.completed_task_id),
        Event::AgentMetrics(metrics) => metrics.duration_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
        Event::AutoLabelSuggestion(suggestion) => suggestion.labels.join(", "),
        Event::FactLogged(fact) if fact.data.is_empty() => String::new(),
        Event::FactLogged(fact) => serde_json::Value::Object(fact.data.clone()).to_string(),
        Event::NoteAdded(note) => format!("{}: {}", note.kind, note.text),
        Event::CompletionClaimed(claim) => format!("in {}", claim.run),
        Event::HookError(error) => format!("{}: {}", error.hook_name, error.error),
        Event::ActionError(error) => format!("{}: {}", error.action_type, error.error),
        Event::HookStarted(hook) => hook.hook.clone(),
        Event::HookRetrying(hook) => format!("{} failed and is tried again: {}", hook.hook, hook.error),
        Event::HookFinished(hook) => {
            let outcome = serde_json::to_value(hook.outcome).unwrap_or_default();
            let why = hook.message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{} {}{why}", hook.hook, outcome.as_str().unwrap_or_default().replace('_', " "))
        }
        Event::IterationFailed(failed) => match retry_moment(record) {
            Some(until) => format!("{}; tried again at {}", failed.error, moment(until)),
            None => failed.error.clone(),
        },
        event => {
            let known = drive::summary(record.seq, event)
                .or_else(|| bridge::summary(event))
                .or_else(|| pipeline::summary(event))
                .or_else(|| workflow::summary(event));
            known.unwrap_or_else(|| session_summary(event))
        }
    };
    if record.envelope.metadata.forced { format!("(forced) {text}") } else { text }
}

fn session_summary(event: &Event) -> String {
    let turn = |run: &RunId| format!("{} {}", run.session, run.iteration);
    match event {
        Event::SessionStarted(started) => format!("{} by {}", started.agent, started.owner),
        Event::SessionResumed(resumed) => format!("by {}", resumed.owner),
        Event::SessionStopping(stopping) => ending(stopping.ending, stopping.reason.as_deref()),
        Event::SessionEnded(ended) => ending(ended.ending, ended.reason.as_deref()),
        Event::IterationStarted(started) => turn(&started.run),
        Event::TurnStarted(started) => {
            let purpose = match started.purpose {
                Purpose::Work => "to work",
                Purpose::SendBack => "sent back",
                Purpose::Recovery => "to recover",
                Purpose::Delivery | Purpose::UnjudgedDelivery(_) => "to listen",
            };
            match started.feedback {
                0 => purpose.to_owned(),
                pieces => format!("{purpose}, with {}", self::pieces(pieces)),
            }
        }
        Event::ConversationOpened(opened) => match (opened.opening, &opened.reason) {
            (Opening::New, _) => format!("{}, new", opened.conversation),
            (Opening::Loaded, _) => format!("{}, taken up again", opened.conversation),
            (Opening::Anew, None) => format!("{}, anew", opened.conversation),
            (Opening::Anew, Some(reason)) => format!("{}, anew: {reason}", opened.conversation),
        },
        Event::TurnFinished(finished) => first_line(&finished.output),
        Event::DeliveryFinished(finished) => first_line(&finished.output),
        Event::PromiseDetected(detected) => match detected.promise {
            Promise::Complete => "COMPLETE".to_owned(),
            Promise::Escalate => "ESCALATE".to_owned(),
            Promise::Blocked => "BLOCKED".to_owned(),
        },
        Event::GateDecided(decided) => match &decided.decision {
            Decision::SendBack => match decided.max_retries {
                Some(most) => format!("sent back ({} of {most})", decided.retries),
                None => format!("sent back (time {})", decided.retries),
            },
            Decision::Ask => "a person is asked".to_owned(),
            Decision::Next(Next::Continue | Next::TakeUp) => "another iteration".to_owned(),
            Decision::Next(Next::GiveUp(reason)) => format!("left for the next run: {reason}"),
            Decision::Next(Next::Close(closing)) => ending(closing.ending, closing.reason.as_deref()),
        },
        Event::GateAnswered(answered) => answer(answered.answer).to_owned(),
        Event::IterationPostponed(postponed) => format!("until {}: {}", moment(postponed.until), postponed.error),
        Event::DeliveryFailed(failed) => failed.error.clone(),
        Event::MessageAdded(said) => format!("{}: {}", said.source, said.text),
        Event::FeedbackQueued(queued) => format!("{}: {}", queued.source, queued.text),
        Event::FeedbackDelivered(delivered) => pieces(u32::try_from(delivered.feedback.len()).unwrap_or(u32::MAX)),
        _ => String::new(),
    }
}

/// What a person has said, in words.
pub fn answer(answer: GateAnswer) -> &'static str {
    match answer {
        GateAnswer::Continue => "continue: the agent is sent back, and the count starts again",
        GateAnswer::Abort => "abort: a person takes over",
        GateAnswer::Ignore => "ignore-hook: the block counts as passed, this time",
    }
}

fn ending(ending: Ending, reason: Option<&str>) -> String {
    let word = match ending {
        Ending::Completed => "complete",
        Ending::Limit => "at a limit",
        Ending::Escalated => "a person is needed",
        Ending::Cancelled => "cancelled",
        Ending::Error => "failed",
    };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}

/// So much feedback, in words.
pub fn pieces(pieces: u32) -> String {
    if pieces == 1 { "one piece of feedback".to_owned() } else { format!("{pieces} pieces of feedback") }
}

/// Agents say a lot; how they begin has to do.
fn first_line(output: &str) -> String {
    output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// One event as one line.
pub fn event(record: &Record, out: &mut Output) -> Done {
    let (head, used) = event_head(record, out);
    let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used));
    out.line(format!("{head}{}", text::fit(&summary(record), room)).trim_end())
}

/// Returns an event and a text about it as rows: what has no room comes below, so far to the right.
pub fn event_rows(record: &Record, tone: Tone, what: &str, indent: usize, out: &Output) -> Vec<String> {
    let (head, used) = event_head(record, out);
    let columns = out.columns().unwrap_or(usize::MAX);
    let below = columns.saturating_sub(indent).max(NARROW);
    // A column of a few letters is hard to read.
    let rows = match columns.saturating_sub(used) {
        room @ ..NARROW if text::width(what) > room => [vec![String::new()], text::wrap(what, below, below)].concat(),
        room => text::wrap(what, room, below),
    };
    let row = |(number, row): (usize, &String)| match number {
        0 => format!("{head}{}", out.paint(tone, row)).trim_end().to_owned(),
        _ => format!("{}{}", " ".repeat(indent), out.paint(tone, row)),
    };
    rows.iter().enumerate().map(row).collect()
}

/// What an event's line begins with, and how wide that is.
fn event_head(record: &Record, out: &Output) -> (String, usize) {
    let node = match record.envelope.node {
        Node::System => String::new(),
        Node::Task(id) => id.to_string(),
    };
    let depth = usize::from(record.envelope.metadata.depth);
    let kind = format!("{}{}", "  ".repeat(depth.min(4)), record.envelope.event.type_name());
    let at = short_moment(record.envelope.timestamp, out);
    let used = 6 + 2 + at.len() + 2 + 6 + 1 + text::width(&kind).max(24) + 2;
    let head = format!(
        "{}  {}  {} {}  ",
        out.paint(Tone::Faint, format_args!("{:>6}", record.seq.0)),
        out.paint(Tone::Faint, &at),
        out.paint(Tone::Strong, text::pad(&node, 6)),
        out.paint(Tone::Name, text::pad(&kind, 24)),
    );
    (head, used)
}

/// Warns of what stands in the place of files that Windlass and git read.
pub fn obstacles(project: &Project, out: &mut Output) -> Done {
    windlass_app::obstacles::find(project).iter().try_for_each(|obstacle| {
        out.line(out.paint(Tone::Warning, format!("{obstacle}: remove it, or put a file in its place")))
    })
}
