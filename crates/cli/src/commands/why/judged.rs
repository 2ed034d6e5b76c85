//! How the work on a task was judged by what is registered for it: which hook decided what, on which evidence.
//!
//! ```text
//! hook_evaluated ─► validation_finished      one judgement, where both come of one command
//! hook_evaluated                             one in which only the hooks were asked
//! hook_evaluated ─► gate_decided             one at the gate of a session; with a series, validation_finished is between
//! validation_finished                        one without hooks
//! ```
//!
//! Not here: what else has a say at the gate of a session (`session`).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::validation::RuleResult;
use windlass_engine::{
    Event, HookId, Promise, Record, Seq, SeriesId, SessionName, Signal, StopHook, Task, Timestamp, Verdict, payload,
};

use super::story::verdict_name;
use super::{detail, labelled};
use crate::output::{Done, Output, Tone};
use crate::show;
use crate::show::drive;

/// So many judgements are shown to a person.
const SHOWN: usize = 10;
/// So many earlier series are named.
const NAMED: usize = 5;
/// So many lines of what the agent is told next.
const PROMPT: usize = 3;

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The newest series of the task, and the gates of its sessions.
    Newest,
    Series(SeriesId),
    /// Whatever this hook decided, in any series and at any gate.
    Hook(HookId),
}

/// What the history of a task tells of it.
pub struct Judged<'h> {
    task: &'h Task,
    focus: Focus,
    hooks: BTreeMap<HookId, Registration<'h>>,
    series: Option<SeriesSeen<'h>>,
    /// The others that the task has had, oldest first.
    others: Vec<SeriesId>,
    /// Oldest first.
    judgements: Vec<Judgement<'h>>,
}

/// A hook, and when it was registered.
struct Registration<'h> {
    at: Timestamp,
    said: &'h payload::HookRegistered,
}

struct SeriesSeen<'h> {
    id: SeriesId,
    at: Timestamp,
    started: &'h payload::SeriesStarted,
    iteration: u32,
    ended: Option<Promise>,
}

/// Where the work was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'h> {
    Series(SeriesId),
    /// At the gate of a session, if the log knows of which.
    Gate(Option<&'h SessionName>),
}

/// One judgement: what the hooks said, what it came to, or both.
struct Judgement<'h> {
    seq: Seq,
    at: Timestamp,
    place: Place<'h>,
    iteration: u32,
    decided: Option<&'h payload::HookEvaluated>,
    finished: Option<&'h payload::ValidationFinished>,
    /// What the gate came to, where it was judged at one.
    gate: Option<GateSeen<'h>>,
}

#[derive(Clone, Copy)]
struct GateSeen<'h> {
    record: &'h Record,
    verdict: Verdict,
}

impl<'h> Judged<'h> {
    pub fn of(task: &'h Task, history: &'h [Record], focus: Focus) -> Self {
        let mut judged =
            Self { task, focus, hooks: BTreeMap::new(), series: None, others: Vec::new(), judgements: Vec::new() };
        let mut all: Vec<SeriesSeen<'h>> = Vec::new();
        for record in history {
            let (seq, at) = (record.seq, record.envelope.timestamp);
            match &record.envelope.event {
                Event::HookRegistered(said) => drop(judged.hooks.insert(HookId(seq.0), Registration { at, said })),
                Event::SeriesStarted(started) => {
                    all.push(SeriesSeen { id: SeriesId(seq.0), at, started, iteration: 1, ended: None });
                }
                Event::SeriesAdvanced(advanced) => {
                    if let Some(series) = all.iter_mut().find(|series| series.id == advanced.series) {
                        series.iteration = advanced.iteration;
                    }
                }
                Event::SeriesEnded(ended) => {
                    if let Some(series) = all.iter_mut().find(|series| series.id == ended.series) {
                        series.ended = Some(ended.promise);
                    }
                }
                Event::HookEvaluated(said) => judged.judgements.push(Judgement {
                    seq,
                    at,
                    place: said.series.map_or(Place::Gate(record.envelope.session.as_ref()), Place::Series),
                    iteration: said.iteration,
                    decided: Some(said),
                    finished: None,
                    gate: None,
                }),
                Event::ValidationFinished(finished) => judged.finish(seq, at, finished),
                Event::GateDecided(decided) => judged.decide_gate(GateSeen { record, verdict: decided.verdict }),
                _ => {}
            }
        }
        judged.narrow(all);
        judged
    }

    /// What a judgement came to. Whoever is registered is asked with every one, so that the last words are its own.
    fn finish(&mut self, seq: Seq, at: Timestamp, finished: &'h payload::ValidationFinished) {
        let (place, iteration) = (Place::Series(finished.series), finished.iteration);
        let own = |last: &&mut Judgement<'h>| {
            let hook = last.decided.map(|said| said.hook);
            last.finished.is_none()
                && (last.at, last.place, last.iteration, hook) == (at, place, iteration, Some(finished.hook))
        };
        // What the hooks decided at a gate tells what their series came to there.
        let is_told = |last: &Judgement<'h>| {
            let hook = last.decided.map(|said| said.hook);
            matches!(last.place, Place::Gate(_)) && (last.at, hook) == (at, Some(finished.hook))
        };
        if self.judgements.last().is_some_and(is_told) {
            return;
        }
        match self.judgements.last_mut().filter(own) {
            Some(last) => last.finished = Some(finished),
            None => {
                let finished = Some(finished);
                self.judgements.push(Judgement { seq, at, place, iteration, decided: None, finished, gate: None });
            }
        }
    }

    /// What a gate came to: whoever was asked at it since the one before has been asked for this one.
    fn decide_gate(&mut self, gate: GateSeen<'h>) {
        let place = Place::Gate(gate.record.envelope.session.as_ref());
        let of_session = self.judgements.iter_mut().rev().filter(|judgement| judgement.place == place);
        of_session.take_while(|judgement| judgement.gate.is_none()).for_each(|judgement| judgement.gate = Some(gate));
    }

    /// Leaves out what was not asked about.
    fn narrow(&mut self, mut all: Vec<SeriesSeen<'h>>) {
        let wanted = match self.focus {
            Focus::Newest => all.last().map(|series| series.id),
            Focus::Series(id) => Some(id),
            Focus::Hook(id) => {
                self.judgements.retain(|judgement| judgement.decided.is_some_and(|said| said.hook == Some(id)));
                return;
            }
        };
        self.others = all.iter().map(|series| series.id).filter(|id| Some(*id) != wanted).collect();
        self.judgements.retain(|judgement| match judgement.place {
            Place::Series(id) => Some(id) == wanted,
            Place::Gate(_) => self.focus == Focus::Newest,
        });
        self.series = all.iter().position(|series| Some(series.id) == wanted).map(|place| all.swap_remove(place));
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.task.drive.hooks.is_empty() && self.series.is_none() && self.judgements.is_empty()
    }

    /// The hooks that are registered now, in their order.
    fn in_force(&self) -> impl Iterator<Item = (HookId, &StopHook, bool)> {
        let hooks = self.task.drive.hooks.iter();
        hooks.filter_map(|hook| Some((hook.id, &self.hooks.get(&hook.id)?.said.hook, hook.enabled)))
    }

    fn kind(&self, id: HookId) -> &'static str {
        self.hooks.get(&id).map_or("unknown", |registration| registration.said.hook.name())
    }

    pub fn show(&self, out: &mut Output) -> Done {
        if let Focus::Hook(id) = self.focus {
            self.show_hook(id, out)?;
        } else {
            self.show_series(out)?;
        }
        let earlier = self.judgements.len().saturating_sub(SHOWN);
        if earlier > 0 {
            let judgements = drive::many(earlier, "earlier judgement", "earlier judgements");
            detail(2, Tone::Faint, &format!("{judgements}; --json shows them"), out)?;
        }
        self.judgements[earlier..].iter().try_for_each(|judgement| judgement.show(self, out))
    }

    fn show_hook(&self, id: HookId, out: &mut Output) -> Done {
        let Some(registration) = self.hooks.get(&id) else { return Ok(()) };
        let now = self.task.drive.hooks.iter().find(|hook| hook.id == id);
        let standing = match now.map(|hook| hook.enabled) {
            Some(true) => "in force",
            Some(false) => "disabled",
            None => "no longer registered",
        };
        labelled("stop hook", &format!("{id} {}, {standing}", registration.said.hook), out)?;
        labelled("registered", &show::moment(registration.at), out)?;
        match &registration.said.hook {
            StopHook::Command { command } => labelled("command", command, out)?,
            StopHook::Rules { rules } => labelled("rules", &json!(rules).to_string(), out)?,
            StopHook::Closure { name } => labelled("closure", name, out)?,
            StopHook::Default | StopHook::Validation | StopHook::Promise => {}
        }
        match self.judgements.is_empty() {
            true => detail(2, Tone::Faint, "it has not decided anything yet", out),
            false => Ok(()),
        }
    }

    fn show_series(&self, out: &mut Output) -> Done {
        if let Some(series) = &self.series {
            labelled("series", &self.standing(series), out)?;
            labelled("until", &drive::promises(&series.started.completion_promises), out)?;
            for rule in &series.started.validation_rules {
                labelled(
                    "rule",
                    &format!("{} ({})", rule.name, json!(rule)["type"].as_str().unwrap_or_default()),
                    out,
                )?;
            }
        }
        for (id, hook, enabled) in self.in_force() {
            labelled("stop hook", &drive::hook(id, hook.name(), enabled), out)?;
        }
        if let Some(last) = self.others.len().checked_sub(1) {
            let named = &self.others[(last + 1).saturating_sub(NAMED)..];
            let named: Vec<String> = named.iter().map(SeriesId::to_string).collect();
            let more = if named.len() <= last { "…, " } else { "" };
            labelled("other series", &format!("{more}{}", named.join(", ")), out)?;
        }
        Ok(())
    }

    /// How a series stands or ended.
    fn standing(&self, series: &SeriesSeen<'_>) -> String {
        let SeriesSeen { id, iteration, started, .. } = series;
        let strict = if started.strict { ", strict" } else { "" };
        match (self.task.drive.series(*id), series.ended) {
            (Some(live), _) => format!("{}{strict}", drive::series(live)),
            (None, Some(promise)) => {
                let after = drive::many(*iteration as usize, "iteration", "iterations");
                format!("{id}, ended with {} after {after}{strict}", promise.name())
            }
            (None, None) => format!("{id}, left in iteration {iteration} of {}{strict}", started.max_iterations),
        }
    }

    pub fn to_json(&self) -> Value {
        let hook =
            |id: HookId, hook: &StopHook, enabled: bool| json!({"id": id, "type": hook.name(), "enabled": enabled});
        let mut told = json!({
            "judgements": self.judgements.iter().map(|judgement| judgement.to_json(self)).collect::<Vec<_>>(),
        });
        if let Focus::Hook(id) = self.focus {
            if let Some(Registration { at, said }) = self.hooks.get(&id) {
                let now = self.task.drive.hooks.iter().find(|hook| hook.id == id);
                let mut object = hook(id, &said.hook, said.enabled);
                object["registered"] = json!(now.is_some());
                object["registeredAt"] = json!(at);
                object["metadata"] = json!(said.metadata);
                object["definition"] = json!(said.hook);
                told["hook"] = object;
            }
            return told;
        }
        let hooks = self.in_force().map(|(id, kind, enabled)| hook(id, kind, enabled));
        told["stopHooks"] = hooks.collect::<Vec<_>>().into();
        told["otherSeries"] = json!(self.others);
        told["series"] = self.series.as_ref().map_or(Value::Null, |series| {
            json!({
                "id": series.id,
                "startedAt": series.at,
                "iteration": series.iteration,
                "underWay": self.task.drive.series(series.id).is_some(),
                "endedWith": series.ended,
                "config": series.started,
            })
        });
        told
    }
}

impl Judgement<'_> {
    /// What the validation rules said.
    fn results(&self) -> &[RuleResult] {
        let of_finished = self.finished.map(|finished| finished.results.as_slice());
        of_finished.or_else(|| self.decided.map(|said| said.results.as_slice())).unwrap_or_default()
    }

    fn show(&self, judged: &Judged<'_>, out: &mut Output) -> Done {
        let asked = match (self.place, self.finished) {
            (Place::Gate(_), _) => ", at the gate",
            (Place::Series(_), None) => ", only the hooks were asked",
            (Place::Series(_), Some(_)) => "",
        };
        let whole = match self.place {
            Place::Series(id) => id.to_string(),
            Place::Gate(session) => session.map_or_else(|| "a session".to_owned(), SessionName::to_string),
        };
        let title = out.paint(Tone::Strong, format!("iteration {} of {whole}", self.iteration)).to_string();
        let rest = out.paint(Tone::Faint, format!("{}{asked}", show::moment(self.at))).to_string();
        out.line(format_args!("  {title}  {rest}"))?;
        for result in self.results() {
            let (tone, word) = if result.passed { (Tone::Good, "passed") } else { (Tone::Bad, "failed") };
            detail(4, tone, &format!("{} {word}: {}", result.rule_name, result.message), out)?;
        }
        if let Some(finished) = self.finished.filter(|finished| !finished.promises.is_empty()) {
            detail(4, Tone::Plain, &format!("the agent promises {}", drive::promises(&finished.promises)), out)?;
        }
        self.show_decision(judged, out)?;
        if let Some(gate) = self.gate {
            let tone = if gate.verdict == Verdict::Pass { Tone::Good } else { Tone::Warning };
            let line = format!("the gate says {}, so: {}", verdict_name(gate.verdict), show::summary(gate.record));
            detail(4, tone, &line, out)?;
        }
        let Some(finished) = self.finished else { return Ok(()) };
        for line in &finished.feedback {
            // What rules said stands above already.
            let known = |result: &RuleResult| *line == format!("{}: {}", result.rule_name, result.message);
            if !finished.results.iter().any(known) {
                detail(4, Tone::Warning, line, out)?;
            }
        }
        detail(4, tone(finished.signal), &format!("so: {}", finished.signal.name()), out)
    }

    fn show_decision(&self, judged: &Judged<'_>, out: &mut Output) -> Done {
        let Some(said) = self.decided else { return Ok(()) };
        let by = said.hook.map_or_else(|| "no hook".to_owned(), |id| format!("{id} ({})", judged.kind(id)));
        let line = format!("{by} says {}: {}", said.action.name(), said.reason);
        detail(4, tone(Signal::from(said.action)), &line, out)?;
        let prompt = said.next_prompt.as_deref().unwrap_or_default();
        let mut lines = prompt.lines().filter(|line| !line.trim().is_empty());
        for line in lines.by_ref().take(PROMPT) {
            detail(6, Tone::Plain, &format!("| {line}"), out)?;
        }
        match lines.count() {
            0 => Ok(()),
            more => detail(6, Tone::Faint, &drive::many(more, "more line", "more lines"), out),
        }
    }

    fn to_json(&self, judged: &Judged<'_>) -> Value {
        let decision = self.decided.map(|said| {
            json!({
                "hook": said.hook,
                "type": said.hook.map(|id| judged.kind(id)),
                "action": said.action,
                "reason": said.reason,
                "nextPrompt": said.next_prompt,
                "metadata": said.metadata,
            })
        });
        let finished = self.finished;
        let (series, session, asked) = match self.place {
            Place::Series(id) => (Some(id), None, if finished.is_some() { "validation" } else { "hooks" }),
            Place::Gate(session) => (None, session, "gate"),
        };
        json!({
            "seq": self.seq,
            "at": self.at,
            "series": series,
            "session": session,
            "iteration": self.iteration,
            "asked": asked,
            "results": self.results(),
            "promises": finished.map(|finished| &finished.promises),
            "decision": decision,
            "guard": finished.and_then(|finished| finished.guard),
            "feedback": finished.map(|finished| &finished.feedback),
            "signal": finished.map(|finished| finished.signal),
            "verdict": self.gate.map(|gate| gate.verdict),
            "filesModified": finished.map(|finished| &finished.files_modified),
            "output": finished.and_then(|finished| finished.output.as_ref()),
        })
    }
}

fn tone(signal: Signal) -> Tone {
    match signal {
        Signal::Complete => Tone::Good,
        Signal::Continue => Tone::Warning,
        Signal::Blocked | Signal::Escalate => Tone::Bad,
    }
}
