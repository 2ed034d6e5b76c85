//! Agents' own hook systems call: their hooks are run, and what these say is added up to one answer.
//!
//! ```text
//! call ─► bridge_called ─► its hooks, one after another ─► added up ─► bridge_answered: passed on, or let go at the limit
//! ```
//!
//! Invariants:
//! - Only a hook that says no blocks. One that fails does so only where its entry has `on_failure: block`.
//! - The strictest ruling counts, and no reason is lost.
//!
//! Not here: how agents say it and want to hear it (`bridge`, the crate).

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_engine::{
    Call, CallRuling, CallVerdict, Command, Digest, EffectKind, Event, HookEffect, HookOutcome, HookPoint, HookReport,
    Limits, Objector, OnFailure, Origin, Seq,
};
use windlass_hooks::response::{Decision, Permission};
use windlass_hooks::{HookResponse, clean, cut, silent_no};

use crate::change::Looker;
use crate::hook::HookAttempt;
use crate::{Dispatch, RunError};

/// What people are told where a stop hook let pass what it has not seen.
const CHANGED_UNDER_GATE: &str =
    "files have changed while the stop hooks judged the work: what is there now was not judged";

/// What an agent's hook system says, and all of it in its own words.
#[derive(Debug)]
pub struct Called {
    pub call: Call,
    pub payload: Map<String, Value>,
}

/// What hooks have come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Replied {
    pub ruling: CallRuling,
    /// Why, in the words of whoever says it.
    pub reason: String,
    /// Who says no.
    pub objectors: Vec<String>,
    /// The agent is to end altogether.
    pub halt: Option<String>,
    /// For the agent to read.
    pub context: String,
    pub updated_input: Option<Map<String, Value>>,
    /// What the agent is to read instead of what a tool answered.
    pub updated_output: Option<Value>,
    /// For people.
    pub messages: Vec<String>,
}

impl Dispatch<'_> {
    /// Runs the hooks of a call and answers what they come to; `None` where there are none.
    pub fn answer_call(&mut self, origin: &Origin, called: Called) -> Result<Option<Replied>, RunError> {
        let called = Arc::new(called);
        let records = self.give_for(origin, &Command::Call(Box::new(called.call.clone())))?;
        let at = records.iter().find(|record| matches!(record.envelope.event, Event::BridgeCalled(_)));
        let Some(at) = at.filter(|record| record.envelope.metadata.owes.is_some()).map(|record| record.seq) else {
            return Ok(None);
        };
        let mut looker = Looker::default();
        let judged = (called.call.point.is_stop()).then(|| self.look_in_place(&mut looker)).flatten();
        self.called = Some(called.clone());
        let sum = self.run_called(at);
        self.called = None;
        let (mut replied, verdict) = sum?.finish(&called.call.point, called.call.max_retries);
        let passes = verdict.ruling == CallRuling::Pass;
        if let Some(judged) = judged.filter(|_| passes)
            && self.look_in_place(&mut looker).is_some_and(|now| now != judged)
        {
            replied.messages.push(CHANGED_UNDER_GATE.to_owned());
        }
        if let Some(why) = self.record_answer(origin, at, &called.call, verdict)? {
            replied.let_go(&why);
        }
        self.settle()?;
        Ok(Some(replied))
    }

    /// Returns what the files are now that an agent works on in place, as far as git knows of them.
    fn look_in_place(&self, looker: &mut Looker) -> Option<Digest> {
        looker.look(&self.settings.directory, &self.settings.environment, &|spec| self.look_with(spec))
    }

    fn run_called(&mut self, at: Seq) -> Result<Sum, RunError> {
        let mut sum = Sum::default();
        while let Some(effect) = self.next(|_, effect| effect.id.seq == at)? {
            self.give(&Command::BeginEffect { effect: effect.id, owner: self.owner.clone() })?;
            let HookAttempt { report, response, .. } = self.run_hook(&effect)?;
            let cancelled = report.outcome == HookOutcome::Cancelled;
            self.give(&Command::FinishEffect {
                effect: effect.id,
                owner: self.owner.clone(),
                report: report.clone().into(),
            })?;
            if let EffectKind::Hook(owed) = &effect.kind {
                sum.add(owed, report, response.map(|response| *response).unwrap_or_default());
            }
            if cancelled {
                self.give_up(at)?;
                return Err(RunError::Killed);
            }
        }
        Ok(sum)
    }

    /// What has not begun never will: nobody waits for the answer any more.
    fn give_up(&mut self, at: Seq) -> Result<(), RunError> {
        while let Some(effect) = self.next(|_, effect| effect.id.seq == at)? {
            let (dead, owner) = (self.owner.clone(), self.owner.clone());
            self.give(&Command::RecoverEffect { effect: effect.id, dead, owner })?;
        }
        Ok(())
    }

    /// Records the answer, where there is one to record. Answers why the agent is let go all the same, if it is.
    fn record_answer(
        &mut self,
        origin: &Origin,
        at: Seq,
        call: &Call,
        verdict: CallVerdict,
    ) -> Result<Option<String>, RunError> {
        let silent = verdict.ruling == CallRuling::Pass && verdict.told.is_none();
        if silent && !call.point.sends_back() {
            return Ok(None);
        }
        let (caller, point) = (call.caller.clone(), call.point.clone());
        let answer = Command::AnswerCall { at, caller, point, verdict: Box::new(verdict) };
        let records = self.give_for(origin, &answer)?;
        Ok(records.into_iter().find_map(|record| match record.envelope.event {
            Event::BridgeAnswered(answered) => answered.let_go,
            _ => None,
        }))
    }
}

/// What the hooks of a call have said so far.
#[derive(Default)]
struct Sum {
    reasons: Vec<(CallRuling, String)>,
    objectors: Vec<Objector>,
    halt: Option<String>,
    context: Vec<String>,
    updated_input: Option<Map<String, Value>>,
    updated_output: Option<Value>,
    messages: Vec<String>,
}

impl Sum {
    fn add(&mut self, owed: &HookEffect, report: HookReport, said: HookResponse) {
        let HookReport { outcome, message, feedback, unstarted, .. } = report;
        let name = &owed.hook;
        let why = message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        self.messages.extend(said.system_message.as_deref().map(clean).filter(|text| !text.trim().is_empty()));
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => self.agreed(owed, feedback, said),
            HookOutcome::Block | HookOutcome::Continue | HookOutcome::Again => self.object(owed, feedback),
            HookOutcome::Escalate if said.goes_on == Some(false) => {
                self.halt.get_or_insert(said.stop_reason.or(feedback).map(|text| clean(&text)).unwrap_or_default());
            }
            HookOutcome::Escalate => self.ask(owed, feedback, format!("`{name}` asks for a person{why}")),
            HookOutcome::Failure | HookOutcome::TimedOut => {
                let what = if outcome == HookOutcome::TimedOut { "was too slow" } else { "failed" };
                let told = format!("hook `{name}` {what}{why}");
                match owed.on_failure {
                    // The agent cannot answer for a hook that could not run.
                    OnFailure::Block if unstarted => self.messages.push(told),
                    OnFailure::Ignore => self.messages.push(told),
                    OnFailure::Block => self.object(owed, feedback.or(Some(told))),
                    OnFailure::Escalate => self.ask(owed, feedback, told),
                }
            }
            HookOutcome::Cancelled | HookOutcome::Interrupted => {
                self.messages.push(format!("hook `{name}` was cancelled"));
            }
        }
    }

    fn agreed(&mut self, owed: &HookEffect, feedback: Option<String>, said: HookResponse) {
        let specific = said.specific;
        // Whoever adds something for the agent to read at its end wants it to be read, as in Claude Code.
        if owed.point.sends_back() && specific.additional_context.is_some() {
            return self.object(owed, specific.additional_context.map(|text| clean(&text)));
        }
        // Claude Code's older word for the same.
        let older = said.decision.filter(|decision| *decision == Decision::Allow).map(|_| Permission::Allow);
        if specific.permission.or(older) == Some(Permission::Allow) {
            let why = specific.permission_reason.or(said.reason).unwrap_or_default();
            self.reasons.push((CallRuling::Allow, clean(&why)));
        }
        self.context.extend(feedback.or(specific.additional_context).map(|text| clean(&text)));
        // The later one has seen no more than the earlier one, but its priority says that it comes after.
        self.updated_input = specific.updated_input.or(self.updated_input.take());
        self.updated_output = specific.updated_output.or(self.updated_output.take());
    }

    fn object(&mut self, owed: &HookEffect, feedback: Option<String>) {
        let usual = || silent_no(&owed.hook, Some(&owed.point));
        self.reasons.push((CallRuling::Block, feedback.unwrap_or_else(usual)));
        self.objectors.push(Objector { hook: owed.hook.clone(), most: owed.send_backs });
    }

    /// Before a tool a person can be asked; elsewhere they can only be told.
    fn ask(&mut self, owed: &HookEffect, feedback: Option<String>, told: String) {
        match owed.point {
            HookPoint::PreToolUse => self.reasons.push((CallRuling::Ask, feedback.unwrap_or(told))),
            _ => self.messages.push(told),
        }
    }

    /// Returns what is answered, and what of it the log keeps.
    fn finish(self, point: &HookPoint, max_retries: u32) -> (Replied, CallVerdict) {
        let strictest = self.reasons.iter().map(|(ruling, _)| *ruling).max().unwrap_or(CallRuling::Pass);
        // Allowing is for tools alone.
        let ruling = if strictest == CallRuling::Allow && *point != HookPoint::PreToolUse {
            CallRuling::Pass
        } else {
            strictest
        };
        let reasons = self.reasons.into_iter().filter(|(own, text)| *own == ruling && !text.trim().is_empty());
        let replied = Replied {
            ruling,
            reason: reasons.map(|(_, text)| text).collect::<Vec<_>>().join("\n\n"),
            objectors: self.objectors.iter().map(|objector| objector.hook.clone()).collect(),
            halt: self.halt,
            context: self.context.join("\n\n"),
            updated_input: self.updated_input.filter(|_| ruling != CallRuling::Block),
            updated_output: self.updated_output.filter(|_| *point == HookPoint::PostToolUse),
            messages: self.messages,
        };
        let verdict = CallVerdict {
            ruling,
            reason: kept(&replied.reason),
            objectors: self.objectors,
            max_retries,
            told: kept(&replied.told()),
        };
        (replied, verdict)
    }
}

impl Replied {
    /// What was blocked is let go, and people are told.
    fn let_go(&mut self, why: &str) {
        let hooks: Vec<String> = self.objectors.iter().map(|hook| format!("`{hook}`")).collect();
        let says = if hooks.len() == 1 { "says" } else { "say" };
        let hooks = hooks.join(", ");
        self.ruling = CallRuling::Pass;
        self.messages.push(format!("{why}; it is let go, but {hooks} still {says} no: {}", self.reason));
    }

    /// What the agent is told besides a ruling.
    fn told(&self) -> String {
        let updated = self.updated_input.as_ref().map(|input| Value::Object(input.clone()).to_string());
        let output = self.updated_output.as_ref().map(ToString::to_string);
        let told = [Some(&self.context), updated.as_ref(), output.as_ref()];
        told.into_iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// A text as the log takes it.
fn kept(text: &str) -> Option<String> {
    Some(cut(text, Limits::FEEDBACK)).filter(|text| !text.trim().is_empty())
}
