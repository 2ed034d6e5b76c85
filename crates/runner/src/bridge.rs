//! Hooks of agents' own hook systems: runs them, and combines their responses into one answer.
//!
//! ```text
//! AgentHookRequest ─► bridge_called ─► its hooks, one after another ─► HookAnswers ─┬─► CallVerdict ─► bridge_answered
//!                                        passed on, or let go at the limit:        └─► AgentHookResponse
//! ```
//!
//! Invariants:
//! - Only a hook that says no blocks. A failing hook blocks only if its entry has `on_failure: block`.
//! - The strictest ruling counts, and no reason is lost.
//!
//! Not here: the formats of agents' requests and answers (`bridge`, the crate).

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_bridge::{AgentHookRequest, AgentHookResponse};
use windlass_engine::{
    BridgeCall, CallRuling, CallVerdict, Command, Digest, EffectKind, Event, HookEffect, HookOutcome, HookPoint,
    HookReport, Limits, Objector, OnFailure, Origin, Seq,
};
use windlass_hooks::response::{Decision, Permission};
use windlass_hooks::{HookResponse, clean, cut, silent_no};

use crate::change::Looker;
use crate::hook::HookAttempt;
use crate::{EffectRunner, RunError};

/// Message for the person if files changed while a stop hook judged the work.
const CHANGED_UNDER_GATE: &str =
    "files have changed while the stop hooks judged the work: what is there now was not judged";

impl EffectRunner<'_> {
    /// Runs the hooks of a request and returns the combined answer. It is empty if no hook is planned.
    pub fn answer_request(
        &mut self,
        origin: &Origin,
        request: AgentHookRequest,
    ) -> Result<AgentHookResponse, RunError> {
        let request = Arc::new(request);
        let call = &request.call;
        let records = self.commit_as(origin, &Command::Call(Box::new(call.clone())))?;
        let at = records.iter().find(|record| matches!(record.envelope.event, Event::BridgeCalled(_)));
        let Some(at) = at.filter(|record| record.envelope.metadata.owes.is_some()).map(|record| record.seq) else {
            return Ok(AgentHookResponse::default());
        };
        let mut looker = Looker::default();
        let judged = (call.point.is_stop()).then(|| self.look_in_place(&mut looker)).flatten();
        self.request = Some(request.clone());
        let answers = self.run_called(at);
        self.request = None;
        let (mut response, verdict) = answers?.finish(&request);
        let passes = verdict.ruling == CallRuling::Pass;
        if let Some(judged) = judged.filter(|_| passes)
            && self.look_in_place(&mut looker).is_some_and(|now| now != judged)
        {
            tell_person(&mut response, CHANGED_UNDER_GATE);
        }
        let objectors: Vec<String> = verdict.objectors.iter().map(|objector| format!("`{}`", objector.hook)).collect();
        if let Some(why) = self.record_answer(origin, at, call, verdict)? {
            let_go(&mut response, &why, &objectors);
        }
        self.run_pending()?;
        Ok(response)
    }

    /// Returns a digest of the files that the agent works on, as far as git knows of them.
    fn look_in_place(&self, looker: &mut Looker) -> Option<Digest> {
        looker.look(&self.settings.directory, &self.settings.environment, &|spec| self.look_with(spec))
    }

    fn run_called(&mut self, at: Seq) -> Result<HookAnswers, RunError> {
        let mut answers = HookAnswers::default();
        while let Some(effect) = self.next(|_, effect| effect.id.seq == at)? {
            self.commit(&Command::BeginEffect { effect: effect.id, owner: self.owner.clone() })?;
            let HookAttempt { report, response, .. } = self.run_hook(&effect)?;
            let cancelled = report.outcome == HookOutcome::Cancelled;
            self.commit(&Command::FinishEffect {
                effect: effect.id,
                owner: self.owner.clone(),
                report: report.clone().into(),
            })?;
            if let EffectKind::Hook(owed) = &effect.kind {
                answers.add(owed, report, response.map(|response| *response).unwrap_or_default());
            }
            if cancelled {
                self.give_up(at)?;
                return Err(RunError::Killed);
            }
        }
        Ok(answers)
    }

    /// Recovers the effects that have not begun: the agent no longer waits for the answer.
    fn give_up(&mut self, at: Seq) -> Result<(), RunError> {
        while let Some(effect) = self.next(|_, effect| effect.id.seq == at)? {
            let (dead, owner) = (self.owner.clone(), self.owner.clone());
            self.commit(&Command::RecoverEffect { effect: effect.id, dead, owner })?;
        }
        Ok(())
    }

    /// Records the answer if the log needs it. Returns why a blocked agent is released all the same, if it is.
    fn record_answer(
        &mut self,
        origin: &Origin,
        at: Seq,
        call: &BridgeCall,
        verdict: CallVerdict,
    ) -> Result<Option<String>, RunError> {
        let silent = verdict.ruling == CallRuling::Pass && verdict.told.is_none();
        if silent && !call.point.sends_back() {
            return Ok(None);
        }
        let (caller, point) = (call.caller.clone(), call.point.clone());
        let answer = Command::AnswerCall { at, caller, point, verdict: Box::new(verdict) };
        let records = self.commit_as(origin, &answer)?;
        Ok(records.into_iter().find_map(|record| match record.envelope.event {
            Event::BridgeAnswered(answered) => answered.let_go,
            _ => None,
        }))
    }
}

/// Combined responses of a call's hooks.
#[derive(Default)]
struct HookAnswers {
    reasons: Vec<(CallRuling, String)>,
    objectors: Vec<Objector>,
    halt: Option<String>,
    context: Vec<String>,
    updated_input: Option<Map<String, Value>>,
    updated_output: Option<Value>,
    messages: Vec<String>,
}

impl HookAnswers {
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
                    // A hook that could not start is no fault of the agent.
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
        // As in Claude Code, a hook that adds context at the agent's end wants the agent to read it, so it counts as a block.
        if owed.point.sends_back() && specific.additional_context.is_some() {
            return self.object(owed, specific.additional_context.map(|text| clean(&text)));
        }
        // Claude Code's older field for the same.
        let older = said.decision.filter(|decision| *decision == Decision::Allow).map(|_| Permission::Allow);
        if specific.permission.or(older) == Some(Permission::Allow) {
            let why = specific.permission_reason.or(said.reason).unwrap_or_default();
            self.reasons.push((CallRuling::Allow, clean(&why)));
        }
        self.context.extend(feedback.or(specific.additional_context).map(|text| clean(&text)));
        // Both hooks saw the same input. Priority says that the later one wins.
        self.updated_input = specific.updated_input.or(self.updated_input.take());
        self.updated_output = specific.updated_output.or(self.updated_output.take());
    }

    fn object(&mut self, owed: &HookEffect, feedback: Option<String>) {
        let usual = || silent_no(&owed.hook, Some(&owed.point));
        self.reasons.push((CallRuling::Block, feedback.unwrap_or_else(usual)));
        self.objectors.push(Objector { hook: owed.hook.clone(), most: owed.send_backs });
    }

    /// Asks the person before a tool is used. At other points the person can only be told.
    fn ask(&mut self, owed: &HookEffect, feedback: Option<String>, told: String) {
        match owed.point {
            HookPoint::PreToolUse => self.reasons.push((CallRuling::Ask, feedback.unwrap_or(told))),
            _ => self.messages.push(told),
        }
    }

    /// Returns the response to the agent, and the verdict for the log.
    fn finish(self, request: &AgentHookRequest) -> (AgentHookResponse, CallVerdict) {
        let (point, max_retries) = (&request.call.point, request.call.max_retries);
        let strictest = self.reasons.iter().map(|(ruling, _)| *ruling).max().unwrap_or_default();
        // Only a tool call can be allowed.
        let ruling = if strictest == CallRuling::Allow && *point != HookPoint::PreToolUse {
            CallRuling::Pass
        } else {
            strictest
        };
        let reasons = self.reasons.into_iter().filter(|(own, text)| *own == ruling && !text.trim().is_empty());
        let mut response = AgentHookResponse {
            ruling,
            reason: reasons.map(|(_, text)| text).collect::<Vec<_>>().join("\n\n"),
            halt: self.halt,
            context: Some(self.context.join("\n\n")).filter(|context| !context.is_empty()),
            updated_input: self.updated_input.filter(|_| ruling != CallRuling::Block),
            updated_output: self.updated_output.filter(|_| *point == HookPoint::PostToolUse),
            message: None,
        };
        let verdict = CallVerdict {
            ruling,
            reason: kept(&response.reason),
            objectors: self.objectors,
            max_retries,
            told: kept(&told(&response)),
        };
        // The agent knows the input under its own names.
        response.updated_input = response.updated_input.and_then(|input| match &request.tool {
            Some(tool) => tool.instead(input),
            None => Some(input),
        });
        self.messages.iter().for_each(|message| tell_person(&mut response, message));
        (response, verdict)
    }
}

/// Appends a line to the message for the person.
fn tell_person(response: &mut AgentHookResponse, line: &str) {
    let before = response.message.take().map(|message| message + "\n").unwrap_or_default();
    response.message = Some(format!("{before}windlass: {line}"));
}

/// Turns a block into a pass, and tells the person.
fn let_go(response: &mut AgentHookResponse, why: &str, objectors: &[String]) {
    let says = if objectors.len() == 1 { "says" } else { "say" };
    let (hooks, reason) = (objectors.join(", "), std::mem::take(&mut response.reason));
    response.ruling = CallRuling::Pass;
    tell_person(response, &format!("{why}; it is let go, but {hooks} still {says} no: {reason}"));
}

/// Returns the texts that the agent receives besides the ruling.
fn told(response: &AgentHookResponse) -> String {
    let context = response.context.clone();
    let input = response.updated_input.clone().map(|input| Value::Object(input).to_string());
    let output = response.updated_output.as_ref().map(ToString::to_string);
    [context, input, output].into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Cuts a text to the length that the log takes. Returns nothing for a blank text.
fn kept(text: &str) -> Option<String> {
    Some(cut(text, Limits::FEEDBACK)).filter(|text| !text.trim().is_empty())
}
