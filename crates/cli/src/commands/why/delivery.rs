//! How the work of a task went: each attempt, what it submitted, which hooks said what about it, and what became of it.
//!
//! Not here: what the events say (`engine`), how hooks are put together (`hooks::collect`).

use std::path::Path;

use serde_json::{Value, json};
use windlass_engine::{Event, Record, Remedy, Seq, Task, Timestamp};

use super::{Evidence, detail};
use crate::commands::hooks::collect;
use crate::commands::hooks::runs::{Cause, Run};
use crate::context::Opened;
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::show;

/// Somebody at work on a task, from when they took it.
struct Attempt {
    seq: Seq,
    at: Timestamp,
    /// Who, in words.
    who: String,
    agent: Option<String>,
    session: Option<String>,
    epoch: u64,
    steps: Vec<Step>,
}

/// Something that happened to the work.
struct Step {
    record: Record,
    tone: Tone,
    words: String,
    hooks: Vec<Run>,
}

/// All attempts, and what was done after the last one.
#[derive(Default)]
pub struct Delivery {
    attempts: Vec<Attempt>,
    afterwards: Vec<Step>,
    is_delivered: bool,
}

impl Delivery {
    pub fn of(opened: &Opened, task: &Task, history: &[Record]) -> Result<Self, Failure> {
        let mut delivery = Self::default();
        let is_step = |record: &Record| {
            matches!(
                record.envelope.event,
                Event::WorkspaceOpened(_) | Event::SubmissionStarted(_) | Event::ChangeOpened(_)
            )
        };
        delivery.is_delivered = task.workspace.is_some() || history.iter().any(is_step);
        if !delivery.is_delivered {
            return Ok(delivery);
        }
        let runs = collect::among(opened, history)?;
        for record in history {
            if let Event::TaskClaimed(claimed) = &record.envelope.event {
                let agent = claimed.session.as_ref().and_then(|name| opened.session(name).ok());
                delivery.attempts.push(Attempt {
                    seq: record.seq,
                    at: record.envelope.timestamp,
                    who: claimed.owner.to_string(),
                    agent: agent.map(|session| session.agent),
                    session: claimed.session.as_ref().map(ToString::to_string),
                    epoch: claimed.epoch.0,
                    steps: Vec::new(),
                });
            } else if let Some((tone, words)) = words(record) {
                let hooks = runs.iter().filter(|run| run.event == Some(record.seq)).cloned().collect();
                delivery.add(Step { record: record.clone(), tone, words, hooks });
            }
        }
        Ok(delivery)
    }

    /// What a person does, outside any session, belongs to no attempt. A lease is that of one, whoever has seen it run out.
    fn add(&mut self, step: Step) {
        if let Event::LeaseExpired(expired) = &step.record.envelope.event
            && let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.epoch == expired.epoch.0)
        {
            attempt.steps.push(step);
            return;
        }
        let within = step.record.envelope.session.is_some();
        match self.attempts.last_mut() {
            Some(attempt) if within || attempt.session.is_none() => attempt.steps.push(step),
            _ => self.afterwards.push(step),
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.is_delivered
    }

    pub fn show(&self, records: &Path, out: &mut Output) -> Done {
        let mut outside = self.afterwards.iter().peekable();
        let tell = |step: &Step, out: &mut Output| {
            let by = &step.record.envelope.metadata.triggered_by;
            step.show_as(&format!("{} by {by}", step.words), 2, records, out)
        };
        for (number, attempt) in (1..).zip(&self.attempts) {
            while let Some(step) = outside.next_if(|step| step.record.seq < attempt.seq) {
                tell(step, out)?;
            }
            let agent = attempt.agent.as_deref().unwrap_or(&attempt.who);
            let session = attempt.session.as_ref().map(|name| format!(", in {name}")).unwrap_or_default();
            let at = show::moment(attempt.at);
            let heading = format!("attempt {number}  {agent}{session}, epoch {}, from {at}", attempt.epoch);
            detail(2, Tone::Strong, &heading, out)?;
            attempt.steps.iter().try_for_each(|step| step.show(4, records, out))?;
        }
        outside.try_for_each(|step| tell(step, out))
    }

    pub fn to_json(&self, records: &Path) -> Value {
        let steps = |steps: &[Step]| -> Vec<Value> { steps.iter().map(|step| step.to_json(records)).collect() };
        let attempts = self.attempts.iter().map(|attempt| {
            json!({
                "seq": attempt.seq,
                "at": attempt.at,
                "owner": attempt.who,
                "agent": attempt.agent,
                "session": attempt.session,
                "epoch": attempt.epoch,
                "steps": steps(&attempt.steps),
            })
        });
        json!({"attempts": attempts.collect::<Vec<_>>(), "afterwards": steps(&self.afterwards)})
    }
}

impl Step {
    fn show(&self, indent: usize, records: &Path, out: &mut Output) -> Done {
        self.show_as(&self.words, indent, records, out)
    }

    fn show_as(&self, words: &str, indent: usize, records: &Path, out: &mut Output) -> Done {
        detail(indent, self.tone, words, out)?;
        let cause = Cause::of(&self.record);
        for run in &self.hooks {
            Evidence { run, cause: Some(&cause), fate: None, records }.show(indent + 2, out)?;
        }
        Ok(())
    }

    fn to_json(&self, records: &Path) -> Value {
        let cause = Cause::of(&self.record);
        json!({
            "seq": self.record.seq,
            "type": self.record.envelope.event.type_name(),
            "at": self.record.envelope.timestamp,
            "by": self.record.envelope.metadata.triggered_by,
            "words": self.words,
            "hooks": self.hooks.iter().map(|run| run.to_json(Some(&cause), records)).collect::<Vec<_>>(),
        })
    }
}

/// What an event says about the work, if it is about that.
fn words(record: &Record) -> Option<(Tone, String)> {
    Some(match &record.envelope.event {
        Event::PipelineFailed(failed) if failed.remedy == Remedy::Hear => {
            (Tone::Plain, show::pipeline::heard_first(failed))
        }
        Event::PipelineFailed(failed) if failed.remedy != Remedy::Again => {
            let follows = show::pipeline::follows(failed);
            (Tone::Warning, format!("{} does not let it pass: {}; {follows}", failed.hook, failed.reason))
        }
        Event::SubmissionStarted(started) => {
            let work = started.work.as_ref().map(|work| format!(": {}", show::pipeline::size(work)));
            let mended = match started.remediations {
                0 => String::new(),
                1 => ", mended once".to_owned(),
                many => format!(", mended {many} times"),
            };
            (Tone::Plain, format!("submission{}{mended}", work.unwrap_or_default()))
        }
        Event::TaskSubmitted(_) => (Tone::Good, "submitted".to_owned()),
        Event::TaskRejected(rejected) => (Tone::Warning, format!("rejected by {}: {}", rejected.by, rejected.reason)),
        Event::TaskCompleted(_) => (Tone::Good, "completed".to_owned()),
        Event::TaskBlocked(blocked) => (Tone::Warning, format!("left to a person: {}", blocked.reason)),
        Event::TaskNeedsContinuation(left) => (Tone::Warning, format!("left for the next run: {}", left.reason)),
        Event::TaskReleased(released) => (Tone::Warning, format!("given back: {}", released.reason)),
        Event::TaskFailed(failed) => (Tone::Bad, format!("failed: {}", failed.reason)),
        Event::LeaseExpired(expired) => (Tone::Warning, format!("the lease of {} ran out", expired.owner)),
        Event::TaskAnswered(_) => (Tone::Plain, format!("answered {}", show::summary(record))),
        Event::TaskReopened(_) => (Tone::Plain, format!("taken up again {}", show::summary(record))),
        _ => return show::pipeline::progress(record),
    })
}
