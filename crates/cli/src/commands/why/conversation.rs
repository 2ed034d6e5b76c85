//! How a conversation went whose agent called by itself: each call that ran hooks, what they had to say, and what the agent
//! was answered.
//!
//! ```text
//! bridge_called 12 ─► hook_started 12.0 ─► hook_finished 12.0 ─► … ─► bridge_answered, caused by 12      one call
//! ```
//!
//! A call whose hooks have nothing to say, where the agent does not want to end, has no answer.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use windlass_bridge::Agent;
use windlass_engine::{CallRuling, Caller, Event, EventType, HookOutcome, Record, Seq, payload, sends_back};

use super::{Evidence, FEEDBACK, detail, labelled};
use crate::callers;
use crate::commands::hooks::collect;
use crate::commands::hooks::runs::{Cause, Outcome, Run};
use crate::context::Opened;
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::show::{bridge, drive};
use crate::{remedy, show, text};

/// So many calls are shown to a person.
const CALLS: usize = 20;

/// One call, with everything that came of it.
struct Call {
    record: Record,
    called: payload::BridgeCalled,
    cause: Cause,
    runs: Vec<Run>,
    answer: Option<Answer>,
}

struct Answer {
    record: Record,
    answered: payload::BridgeAnswered,
}

/// A conversation, its calls oldest first.
struct Story {
    caller: Caller,
    calls: Vec<Call>,
}

pub fn run(opened: &Opened, caller: Caller, out: &mut Output) -> Done {
    let story = Story::read(opened, caller)?;
    let records = opened.project.records();
    if out.is_json() {
        return out.object(&story.to_json(&records));
    }
    story.head(out)?;
    let telling: Vec<&Call> = story.calls.iter().filter(|call| !call.runs.is_empty()).collect();
    let earlier = telling.len().saturating_sub(CALLS);
    if earlier > 0 {
        let calls = drive::many(earlier, "earlier call", "earlier calls");
        out.line("")?;
        detail(0, Tone::Faint, &format!("{calls}; --json shows them"), out)?;
    }
    telling[earlier..].iter().try_for_each(|call| call.show(&story, &records, out))
}

impl Story {
    fn read(opened: &Opened, caller: Caller) -> Result<Self, Failure> {
        // All of the log at one moment, although somebody may call just now.
        let _moment = opened.store.snapshot().map_err(remedy::store)?;
        let mut calls: BTreeMap<Seq, Call> = BTreeMap::new();
        callers::read(opened, &[EventType::BridgeCalled], Seq::START, |record| match &record.envelope.event {
            Event::BridgeCalled(called) if callers::is_of(&caller, called) => {
                let (called, cause) = (called.clone(), Cause::of(&record));
                let call = Call { called, cause, runs: Vec::new(), answer: None, record };
                calls.insert(call.record.seq, call);
            }
            _ => {}
        })?;
        let first = calls.keys().next().copied().unwrap_or(Seq::START);
        let types: Vec<EventType> = collect::TYPES.into_iter().chain([EventType::BridgeAnswered]).collect();
        let mut told = Vec::new();
        callers::read(opened, &types, first, |record| match &record.envelope.event {
            Event::BridgeAnswered(answered) => {
                if let Some(call) = record.cause().and_then(|at| calls.get_mut(&at)) {
                    call.answer = Some(Answer { answered: answered.clone(), record });
                }
            }
            _ if led_to(&record).is_some_and(|at| calls.contains_key(&at)) => told.push(record),
            _ => {}
        })?;
        for run in collect::among(opened, &told)? {
            if let Some(call) = run.event.and_then(|at| calls.get_mut(&at)) {
                call.runs.push(run);
            }
        }
        Ok(Self { caller, calls: calls.into_values().collect() })
    }

    fn answers(&self) -> impl DoubleEndedIterator<Item = &payload::BridgeAnswered> {
        self.calls.iter().filter_map(|call| call.answer.as_ref()).map(|answer| &answer.answered)
    }

    fn sent_back(&self) -> usize {
        self.answers().filter(|answered| is_sent_back(answered)).count()
    }

    /// Whether a person has spoken after the agent was sent back, so that the count starts again with this call.
    fn starts_again(&self, call: &Call) -> bool {
        let same = |answered: &&payload::BridgeAnswered| {
            answered.conversation == call.called.conversation && sends_back(&answered.point)
        };
        let before = self.calls.iter().take_while(|other| other.record.seq < call.record.seq);
        let before = before.filter_map(|other| other.answer.as_ref()).map(|answer| &answer.answered);
        call.called.anew && before.filter(same).last().is_some_and(is_sent_back)
    }

    fn let_go(&self) -> usize {
        self.answers().filter(|answered| answered.let_go.is_some()).count()
    }

    /// How it stands, by what the agent was answered last.
    fn standing(&self) -> (Tone, String) {
        match self.answers().next_back() {
            Some(answered) => {
                let (tone, words) = bridge::outcome(answered);
                (tone, format!("at {}: {words}", answered.point))
            }
            None => (Tone::Plain, "nothing was answered yet".to_owned()),
        }
    }

    fn head(&self, out: &mut Output) -> Done {
        let (tone, words) = self.standing();
        let title = format!("conversation {}", text::line(&self.caller.conversation));
        for (number, row) in super::rows(&words, text::width(&title) + 2, 2, out).into_iter().enumerate() {
            let before = if number == 0 { out.paint(Tone::Strong, &title).to_string() } else { String::new() };
            out.line(format_args!("{before}  {}", out.paint(tone, row)))?;
        }
        let title = self.caller.agent.parse::<Agent>().map(Agent::title);
        labelled("agent", title.unwrap_or(&self.caller.agent), out)?;
        for (label, call) in [("first call", self.calls.first()), ("last call", self.calls.last())] {
            if let Some(call) = call {
                let envelope = &call.record.envelope;
                let by = &envelope.metadata.triggered_by;
                labelled(label, &format!("{}, for {by}", show::moment(envelope.timestamp)), out)?;
            }
        }
        let quiet = match self.calls.iter().filter(|call| call.runs.is_empty()).count() {
            0 => String::new(),
            quiet => format!(", {quiet} of them without hooks, as no condition held"),
        };
        labelled("calls", &format!("{}{quiet}", self.calls.len()), out)?;
        let times = |count: usize| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        for (label, count) in [("sent back", self.sent_back()), ("let go", self.let_go())] {
            if count > 0 {
                labelled(label, &times(count), out)?;
            }
        }
        Ok(())
    }

    fn to_json(&self, records: &Path) -> Value {
        let at = |call: Option<&Call>| call.map(|call| call.record.envelope.timestamp);
        json!({
            "kind": "conversation",
            "agent": self.caller.agent,
            "conversation": self.caller.conversation,
            "standing": self.standing().1,
            "firstCallAt": at(self.calls.first()),
            "lastCallAt": at(self.calls.last()),
            "sentBack": self.sent_back(),
            "letGo": self.let_go(),
            "calls": self.calls.iter().map(|call| call.to_json(records)).collect::<Vec<_>>(),
        })
    }
}

fn is_sent_back(answered: &payload::BridgeAnswered) -> bool {
    sends_back(&answered.point) && answered.ruling == CallRuling::Block
}

/// The event that one about a hook belongs to.
fn led_to(record: &Record) -> Option<Seq> {
    match &record.envelope.event {
        Event::HookStarted(started) => Some(started.debt.seq),
        Event::HookFinished(finished) => Some(finished.debt.seq),
        _ => record.cause(),
    }
}

impl Call {
    fn show(&self, story: &Story, records: &Path, out: &mut Output) -> Done {
        let envelope = &self.record.envelope;
        let title = out.paint(Tone::Strong, &self.called.point).to_string();
        let tool = self.called.tool.as_ref().map(|tool| format!("  {}", text::fit(tool, 40))).unwrap_or_default();
        let subagent = match self.called.conversation == story.caller.conversation {
            true => String::new(),
            false => format!(", {}", bridge::short(&self.called.conversation)),
        };
        let session = envelope.session.as_ref().map(|session| format!(", in {session}")).unwrap_or_default();
        let rest = format!("{}{subagent}{session}", show::moment(envelope.timestamp));
        out.line(format_args!("\n{title}{tool}  {}", out.paint(Tone::Faint, rest)))?;
        if story.starts_again(self) {
            detail(2, Tone::Plain, "a person has spoken, so the count starts again", out)?;
        }
        if let Some(about) = &self.called.about {
            detail(2, Tone::Plain, &format!("about: {about}"), out)?;
        }
        for run in &self.runs {
            // Where the agent is stands above already.
            let elsewhere = self.cause.point(run).is_some_and(|point| point != self.called.point);
            let cause = Some(&self.cause).filter(|_| elsewhere);
            Evidence { run, cause, fate: None, records }.show(2, out)?;
        }
        self.show_answer(out)
    }

    fn show_answer(&self, out: &mut Output) -> Done {
        let Some(Answer { answered, .. }) = &self.answer else {
            let (tone, words) = self.unanswered();
            return detail(2, tone, words, out);
        };
        let (tone, words) = bridge::outcome(answered);
        let by = match (answered.hooks.as_slice(), &answered.let_go) {
            ([], _) => String::new(),
            (hooks, None) => format!(" by {}", hooks.join(", ")),
            (hooks, Some(_)) => format!("; no from {}", hooks.join(", ")),
        };
        detail(2, tone, &format!("answer: {words}{by}"), out)?;
        // What hooks said stands above already.
        let feedback = self.runs.iter().filter_map(|run| run.feedback.as_ref());
        let known: Vec<&str> = feedback.flat_map(|(_, said)| said.lines()).collect();
        for (label, text) in [("", &answered.reason), ("told: ", &answered.told)] {
            let lines = text.iter().flat_map(|text| text.lines());
            let mut lines = lines.filter(|line| !line.trim().is_empty() && !known.contains(line));
            for line in lines.by_ref().take(FEEDBACK) {
                detail(4, Tone::Plain, &format!("| {label}{line}"), out)?;
            }
            match lines.count() {
                0 => {}
                more => detail(4, Tone::Faint, &drive::many(more, "more line", "more lines"), out)?,
            }
        }
        Ok(())
    }

    /// Why a call has no answer.
    fn unanswered(&self) -> (Tone, &'static str) {
        let any = |wanted: &[Outcome]| self.runs.iter().any(|run| wanted.contains(&run.outcome));
        let cut_off = [Outcome::Left, Outcome::Ended(HookOutcome::Cancelled), Outcome::Ended(HookOutcome::Interrupted)];
        if any(&[Outcome::Running]) {
            (Tone::Name, "answer: not yet")
        } else if any(&cut_off) || sends_back(&self.called.point) {
            (Tone::Warning, "answer: none, it was cut off; the agent went on")
        } else {
            (Tone::Good, "answer: nothing to say, so the agent went on")
        }
    }

    fn to_json(&self, records: &Path) -> Value {
        let payload::BridgeCalled { conversation, point, tool, about, anew, .. } = &self.called;
        let answer = self.answer.as_ref().map(|Answer { record, answered }| {
            json!({
                "seq": record.seq,
                "at": record.envelope.timestamp,
                "ruling": answered.ruling,
                "words": bridge::outcome(answered).1,
                "reason": answered.reason,
                "decidedBy": answered.hooks,
                "retries": answered.retries,
                "maxRetries": answered.max_retries,
                "letGo": answered.let_go,
                "told": answered.told,
            })
        });
        json!({
            "seq": self.record.seq,
            "at": self.record.envelope.timestamp,
            "by": self.record.envelope.metadata.triggered_by,
            "conversation": conversation,
            "session": self.record.envelope.session,
            "point": point,
            "tool": tool,
            "about": about,
            "anew": anew,
            "hooks": self.runs.iter().map(|run| run.to_json(Some(&self.cause), records)).collect::<Vec<_>>(),
            "answer": answer,
        })
    }
}
