//! How a session went: each iteration, who decided what in it, and on which evidence.

use std::path::Path;

use serde_json::{Value, json};
use windlass_engine::{
    Decision, Event, Next, Phase, Promise, Purpose, Record, Seq, Session, SessionName, Verdict, Wanted, last_line,
};
use windlass_store::{Filter, Store};

use super::story::{Gate, Part, Step, Story, Turn, TurnEnd, verdict_name};
use super::{Evidence, detail, labelled};
use crate::commands::hooks::collect;
use crate::commands::hooks::runs::Run;
use crate::context::Opened;
use crate::output::{Done, Output, Stop, Tone};
use crate::{remedy, show, text};

/// So many iterations are shown to a person.
const ITERATIONS: usize = 20;

/// A session and everything that is known about it.
struct Answer {
    session: Session,
    alive: bool,
    /// What it began and ended with.
    start: Option<Record>,
    end: Option<Record>,
    story: Story,
}

pub fn run(opened: &Opened, name: &SessionName, out: &mut Output) -> Done {
    let answer = answer(opened, name)?;
    let records = opened.project.records();
    if out.is_json() {
        return out.object(&to_json(&answer, &records));
    }
    head(&answer, out)?;
    let parts = &answer.story.parts;
    let shown = parts.len().saturating_sub(ITERATIONS + 1);
    for (place, part) in parts.iter().enumerate() {
        if place > 0 && place < shown {
            continue;
        }
        if place == shown && shown > 1 {
            out.line("")?;
            detail(0, Tone::Faint, &format!("{} earlier iterations; --json shows them", shown - 1), out)?;
        }
        show_part(&answer, part, &records, out)?;
    }
    Ok(())
}

fn answer(opened: &Opened, name: &SessionName) -> Result<Answer, Stop> {
    // The row and the log at one moment, although somebody may be at work.
    let _moment = opened.store.snapshot().map_err(remedy::store)?;
    let session = opened.session(name)?;
    let filter = Filter { session: Some(name.clone()), ..Filter::default() };
    let records = opened.store.read(&filter, Seq::START, usize::MAX).map_err(remedy::store)?;
    let find = |wanted: fn(&Event) -> bool| records.iter().find(|record| wanted(&record.envelope.event)).cloned();
    let start = find(|event| matches!(event, Event::SessionStarted(_)));
    let end = find(|event| matches!(event, Event::SessionEnded(_)));
    let alive = windlass_process::is_alive(&opened.project.owners(), session.owner.as_str());
    let story = Story::new(&records, collect::among(opened, &records)?);
    Ok(Answer { session, alive, start, end, story })
}

/// Where a session stands, in a word for programs.
fn state(answer: &Answer) -> &'static str {
    match (answer.session.is_over(), answer.alive) {
        (true, _) => "ended",
        (false, true) => "running",
        (false, false) => "left",
    }
}

/// How it ended, or where it stands.
fn standing(answer: &Answer) -> (Tone, String) {
    let session = &answer.session;
    let turns = match session.iteration {
        1 => "one iteration".to_owned(),
        many => format!("{many} iterations"),
    };
    if let (true, Some(ending)) = (session.is_over(), session.ended()) {
        let (tone, word) = show::ending_word(ending);
        return (
            tone,
            format!("{word} after {turns}{}", reason(answer).map(|why| format!(": {why}")).unwrap_or_default()),
        );
    }
    let now = match (session.wanted(), &session.phase) {
        (Wanted::Hook(debt), _) => {
            let cause = answer.story.causes.get(&debt.seq);
            let owed = cause.and_then(|cause| cause.owed_under(debt));
            format!("{} has to run", owed.map_or("a hook", |owed| owed.hook.as_str()))
        }
        (Wanted::Turn(_), Phase::Turn(turn)) if turn.purpose == Purpose::Delivery => {
            "the agent hears what is pending".to_owned()
        }
        (Wanted::Turn(_), _) => "the agent has the word".to_owned(),
        (Wanted::Workspace, _) => "its task needs a worktree".to_owned(),
        (Wanted::Work, _) => "its work has to be committed".to_owned(),
        (Wanted::Answer, _) => "a person is asked what is to happen".to_owned(),
        (Wanted::Moment(until), _) => format!("the agent is left alone until {}", show::moment(until)),
        (Wanted::Decision, _) => "a person has answered".to_owned(),
        (Wanted::Nothing, _) => "it rests".to_owned(),
    };
    let place = format!("in iteration {}", session.iteration);
    match answer.alive {
        true => (Tone::Name, format!("running, {place}: {now}")),
        false => (Tone::Warning, format!("left {place}, when {now}; the same command goes on with it")),
    }
}

/// Why it ended so.
fn reason(answer: &Answer) -> Option<String> {
    match &answer.end.as_ref()?.envelope.event {
        Event::SessionEnded(ended) => ended.reason.clone(),
        _ => None,
    }
}

fn head(answer: &Answer, out: &mut Output) -> Done {
    let session = &answer.session;
    let (tone, words) = standing(answer);
    let title = format!("session {}", session.name);
    for (number, row) in super::rows(&words, text::width(&title) + 2, 2, out).into_iter().enumerate() {
        let before = if number == 0 { out.paint(Tone::Strong, &title).to_string() } else { String::new() };
        out.line(format_args!("{before}  {}", out.paint(tone, row)))?;
    }
    if let Some(goal) = &session.goal {
        labelled("goal", goal, out)?;
    }
    if let Some(task) = session.task {
        labelled("task", &task.to_string(), out)?;
    }
    labelled("agent", &session.agent, out)?;
    for (label, record) in [("started", &answer.start), ("ended", &answer.end)] {
        if let Some(record) = record {
            labelled(label, &show::moment(record.envelope.timestamp), out)?;
        }
    }
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    for (label, count) in [("sent back", answer.story.sent_back), ("interrupted", answer.story.interrupted)] {
        if count > 0 {
            labelled(label, &times(count), out)?;
        }
    }
    let unheard = answer.story.unheard();
    if !unheard.is_empty() {
        let pieces: Vec<String> = unheard.iter().map(ToString::to_string).collect();
        labelled("undelivered", &format!("feedback {}", pieces.join(", ")), out)?;
    }
    Ok(())
}

fn show_part(answer: &Answer, part: &Part, records: &Path, out: &mut Output) -> Done {
    match part.iteration {
        Some(number) => {
            let end = part.end.map(|end| format!(", {end}")).unwrap_or_default();
            let title = out.paint(Tone::Strong, format!("iteration {number}")).to_string();
            let rest = format!("{}{end}", show::moment(part.started));
            out.line(format_args!("\n{title}  {}", out.paint(Tone::Faint, rest)))?;
        }
        None if part.steps.is_empty() => return Ok(()),
        None => {
            let first = answer.story.parts.first().is_some_and(|first| std::ptr::eq(first, part));
            out.line(format_args!("\n{}", out.paint(Tone::Strong, if first { "start" } else { "end" })))?;
        }
    }
    for step in &part.steps {
        match step {
            Step::Turn(turn) => show_turn(answer, turn, out)?,
            Step::Hook(run) => evidence(answer, run, records).show(2, out)?,
            Step::Gate(gate) => show_gate(part, gate, out)?,
            Step::Note(_, note) => detail(2, Tone::Warning, note, out)?,
        }
    }
    Ok(())
}

fn evidence<'e>(answer: &'e Answer, run: &'e Run, records: &'e Path) -> Evidence<'e> {
    let cause = run.event.and_then(|seq| answer.story.causes.get(&seq));
    let fate = run.feedback.as_ref().map(|(seq, _)| match answer.story.delivered.get(seq) {
        Some(turn) => format!("delivered in turn {turn}"),
        None => "not delivered".to_owned(),
    });
    Evidence { run, cause, fate, records }
}

fn show_turn(answer: &Answer, turn: &Turn, out: &mut Output) -> Done {
    let purpose = match turn.purpose {
        Purpose::Work => "to work",
        Purpose::SendBack => "sent back",
        Purpose::Recovery => "to recover",
        Purpose::Delivery | Purpose::UnjudgedDelivery(_) => "final delivery",
    };
    let told = match (turn.told, turn.feedback.as_slice()) {
        (0, _) => String::new(),
        (_, []) => format!(
            ", with {} of feedback",
            if turn.told == 1 { "one piece".to_owned() } else { format!("{} pieces", turn.told) }
        ),
        (_, pieces) => {
            let pieces: Vec<String> = pieces.iter().map(Seq::to_string).collect();
            format!(", with feedback {}", pieces.join(", "))
        }
    };
    detail(2, Tone::Plain, &format!("turn {}, {purpose}{told}", turn.number), out)?;
    match &turn.end {
        TurnEnd::Open if answer.alive => detail(4, Tone::Name, "the agent works", out)?,
        TurnEnd::Open => detail(4, Tone::Warning, "it was left", out)?,
        TurnEnd::Interrupted => detail(4, Tone::Warning, "it was interrupted", out)?,
        TurnEnd::Failed(error) => detail(4, Tone::Bad, &format!("failed: {error}"), out)?,
        TurnEnd::Said(output) => {
            if let Some(last) = last_line(output) {
                detail(4, Tone::Plain, &format!("agent: {last}"), out)?;
            }
        }
    }
    match turn.promise {
        None => Ok(()),
        Some(Promise::Complete) => detail(4, Tone::Plain, "the agent says that it is done", out),
        Some(Promise::Blocked) => detail(4, Tone::Plain, "the agent says that it is blocked", out),
        Some(Promise::Escalate) => detail(4, Tone::Plain, "the agent asks for a person", out),
    }
}

fn show_gate(part: &Part, gate: &Gate, out: &mut Output) -> Done {
    let by = if gate.by.is_empty() { String::new() } else { format!(" by {}", gate.by.join(", ")) };
    let tone = match gate.decided.verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Fail | Verdict::Continue | Verdict::Block | Verdict::Escalate => Tone::Warning,
    };
    let unclaimed = gate.decided.verdict == Verdict::Pass
        && gate.decided.decision == Decision::Next(Next::Continue)
        && !part.steps.iter().any(|step| matches!(step, Step::Turn(turn) if turn.promise.is_some()));
    let note = if unclaimed { ", as the agent has not said that it is done" } else { "" };
    let verdict = verdict_name(gate.decided.verdict);
    detail(2, tone, &format!("gate: {verdict}{by}, so: {}{note}", gate.words), out)
}

fn to_json(answer: &Answer, records: &Path) -> Value {
    let session = &answer.session;
    let at = |record: &Option<Record>| record.as_ref().map(|record| record.envelope.timestamp);
    let by = |record: &Option<Record>| record.as_ref().map(|record| record.envelope.metadata.triggered_by.clone());
    let steps =
        |part: &Part| -> Vec<Value> { part.steps.iter().map(|step| step_json(answer, step, records)).collect() };
    let (first, last) = (answer.story.parts.first(), answer.story.parts.last());
    let outside = |part: Option<&Part>| part.filter(|part| part.iteration.is_none()).map(steps).unwrap_or_default();
    let iterations = answer.story.parts.iter().filter_map(|part| {
        part.iteration.map(|number| {
            json!({
                "iteration": number,
                "startedAt": part.started,
                "outcome": part.end,
                "steps": steps(part),
            })
        })
    });
    json!({
        "kind": "session",
        "session": session.name,
        "task": session.task,
        "goal": session.goal,
        "agent": session.agent,
        "state": state(answer),
        "standing": standing(answer).1,
        "ending": session.ended(),
        "reason": reason(answer),
        "startedAt": at(&answer.start),
        "startedBy": by(&answer.start),
        "endedAt": at(&answer.end),
        "sentBack": answer.story.sent_back,
        "interrupted": answer.story.interrupted,
        "undelivered": answer.story.unheard(),
        "start": outside(first),
        "iterations": iterations.collect::<Vec<_>>(),
        "end": if answer.story.parts.len() > 1 { outside(last) } else { Vec::new() },
    })
}

fn step_json(answer: &Answer, step: &Step, records: &Path) -> Value {
    match step {
        Step::Turn(turn) => turn.to_json(),
        Step::Gate(gate) => gate.to_json(),
        Step::Note(seq, note) => json!({"type": "note", "seq": seq, "note": note}),
        Step::Hook(run) => {
            let cause = run.event.and_then(|seq| answer.story.causes.get(&seq));
            let mut object = run.to_json(cause, records);
            object["type"] = json!("hook");
            object["deliveredInTurn"] =
                json!(run.feedback.as_ref().and_then(|(seq, _)| answer.story.delivered.get(seq)));
            object
        }
    }
}
