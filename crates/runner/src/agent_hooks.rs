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
    BlockingBridgeHook, BridgeCall, CallRuling, CallVerdict, Command, CommandOrigin, Digest, EffectKind, EngineLimits,
    Event, HookEffect, HookFailurePolicy, HookOutcome, HookPoint, HookReport, Seq,
};
use windlass_hooks::response::{ResponseDecision, ResponsePermission};
use windlass_hooks::{HookResponse, clean_output, excerpt_text, unexplained_block_text};

use crate::hook::HookAttempt;
use crate::work_digest::WorkDigester;
use crate::{EffectRunner, RunError};

/// Message for the person if files changed while a stop hook judged the work.
const FILES_CHANGED_DURING_GATE: &str =
    "files have changed while the stop hooks judged the work: what is there now was not judged";

impl EffectRunner<'_> {
    /// Runs the hooks of a request and returns the combined answer. It is empty if no hook is planned.
    pub fn answer_request(
        &mut self,
        origin: &CommandOrigin,
        request: AgentHookRequest,
    ) -> Result<AgentHookResponse, RunError> {
        let request = Arc::new(request);
        let call = &request.call;
        let records = self.commit_command_as(origin, &Command::Call(Box::new(call.clone())))?;
        let at = records.iter().find(|record| matches!(record.envelope.event, Event::BridgeCalled(_)));
        let Some(at) = at.filter(|record| record.envelope.metadata.owes.is_some()).map(|record| record.seq) else {
            return Ok(AgentHookResponse::default());
        };
        let mut looker = WorkDigester::default();
        let judged = (call.point.is_stop()).then(|| self.digest_work_directory(&mut looker)).flatten();
        self.request = Some(request.clone());
        let answers = self.run_call_hooks(at);
        self.request = None;
        let (mut response, verdict) = answers?.into_response(&request);
        let passes = verdict.ruling == CallRuling::Pass;
        if let Some(judged) = judged.filter(|_| passes)
            && self.digest_work_directory(&mut looker).is_some_and(|now| now != judged)
        {
            add_person_message(&mut response, FILES_CHANGED_DURING_GATE);
        }
        let objectors: Vec<String> = verdict.objectors.iter().map(|objector| format!("`{}`", objector.hook)).collect();
        if let Some(why) = self.record_call_answer(origin, at, call, verdict)? {
            release_agent(&mut response, &why, &objectors);
        }
        self.run_pending_effects()?;
        Ok(response)
    }

    /// Returns a digest of the files that the agent works on, as far as git knows of them.
    fn digest_work_directory(&self, looker: &mut WorkDigester) -> Option<Digest> {
        looker.digest_changes(&self.settings.directory, &self.settings.environment, &|spec| self.run_query(spec))
    }

    fn run_call_hooks(&mut self, at: Seq) -> Result<HookAnswers, RunError> {
        let mut answers = HookAnswers::default();
        while let Some(effect) = self.next_pending_hook(|_, effect| effect.id.seq == at)? {
            self.commit_command(&Command::BeginEffect { effect: effect.id, owner: self.owner.clone() })?;
            let HookAttempt { report, response, .. } = self.run_hook(&effect)?;
            let cancelled = report.outcome == HookOutcome::Cancelled;
            self.commit_command(&Command::FinishEffect {
                effect: effect.id,
                owner: self.owner.clone(),
                report: report.clone().into(),
            })?;
            if let EffectKind::Hook(owed) = &effect.kind {
                answers.add_response(owed, report, response.map(|response| *response).unwrap_or_default());
            }
            if cancelled {
                self.recover_unstarted_hooks(at)?;
                return Err(RunError::Killed);
            }
        }
        Ok(answers)
    }

    /// Recovers the effects that have not begun: the agent no longer waits for the answer.
    fn recover_unstarted_hooks(&mut self, at: Seq) -> Result<(), RunError> {
        while let Some(effect) = self.next_pending_hook(|_, effect| effect.id.seq == at)? {
            let (dead, owner) = (self.owner.clone(), self.owner.clone());
            self.commit_command(&Command::RecoverEffect { effect: effect.id, dead, owner })?;
        }
        Ok(())
    }

    /// Records the answer if the log needs it. Returns why a blocked agent is released all the same, if it is.
    fn record_call_answer(
        &mut self,
        origin: &CommandOrigin,
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
        let records = self.commit_command_as(origin, &answer)?;
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
    objectors: Vec<BlockingBridgeHook>,
    halt: Option<String>,
    context: Vec<String>,
    updated_input: Option<Map<String, Value>>,
    updated_output: Option<Value>,
    messages: Vec<String>,
}

impl HookAnswers {
    fn add_response(&mut self, owed: &HookEffect, report: HookReport, said: HookResponse) {
        let HookReport { outcome, message, feedback, unstarted, .. } = report;
        let name = &owed.hook;
        let why = message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        self.messages.extend(said.system_message.as_deref().map(clean_output).filter(|text| !text.trim().is_empty()));
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => self.record_agreement(owed, feedback, said),
            HookOutcome::Block | HookOutcome::Continue | HookOutcome::Again => self.record_objection(owed, feedback),
            HookOutcome::Escalate if said.goes_on == Some(false) => {
                self.halt
                    .get_or_insert(said.stop_reason.or(feedback).map(|text| clean_output(&text)).unwrap_or_default());
            }
            HookOutcome::Escalate => self.request_person(owed, feedback, format!("`{name}` asks for a person{why}")),
            HookOutcome::Failure | HookOutcome::TimedOut => {
                let what = if outcome == HookOutcome::TimedOut { "was too slow" } else { "failed" };
                let message = format!("hook `{name}` {what}{why}");
                match owed.on_failure {
                    // A hook that could not start is no fault of the agent.
                    HookFailurePolicy::Block if unstarted => self.messages.push(message),
                    HookFailurePolicy::Ignore => self.messages.push(message),
                    HookFailurePolicy::Block => self.record_objection(owed, feedback.or(Some(message))),
                    HookFailurePolicy::Escalate => self.request_person(owed, feedback, message),
                }
            }
            HookOutcome::Cancelled | HookOutcome::Interrupted => {
                self.messages.push(format!("hook `{name}` was cancelled"));
            }
        }
    }

    fn record_agreement(&mut self, owed: &HookEffect, feedback: Option<String>, said: HookResponse) {
        let specific = said.specific;
        // As in Claude Code, a hook that adds context at the agent's end wants the agent to read it, so it counts as a block.
        if owed.point.sends_back() && specific.additional_context.is_some() {
            return self.record_objection(owed, specific.additional_context.map(|text| clean_output(&text)));
        }
        // Claude Code's older field for the same.
        let older =
            said.decision.filter(|decision| *decision == ResponseDecision::Allow).map(|_| ResponsePermission::Allow);
        if specific.permission.or(older) == Some(ResponsePermission::Allow) {
            let why = specific.permission_reason.or(said.reason).unwrap_or_default();
            self.reasons.push((CallRuling::Allow, clean_output(&why)));
        }
        self.context.extend(feedback.or(specific.additional_context).map(|text| clean_output(&text)));
        // Both hooks saw the same input. Priority says that the later one wins.
        self.updated_input = specific.updated_input.or(self.updated_input.take());
        self.updated_output = specific.updated_output.or(self.updated_output.take());
    }

    fn record_objection(&mut self, owed: &HookEffect, feedback: Option<String>) {
        let usual = || unexplained_block_text(&owed.hook, Some(&owed.point));
        self.reasons.push((CallRuling::Block, feedback.unwrap_or_else(usual)));
        self.objectors.push(BlockingBridgeHook { hook: owed.hook.clone(), max_send_backs: owed.send_backs });
    }

    /// Asks the person before a tool is used. At other points the person can only be told.
    fn request_person(&mut self, owed: &HookEffect, feedback: Option<String>, message: String) {
        match owed.point {
            HookPoint::PreToolUse => self.reasons.push((CallRuling::Ask, feedback.unwrap_or(message))),
            _ => self.messages.push(message),
        }
    }

    /// Returns the response to the agent, and the verdict for the log.
    fn into_response(self, request: &AgentHookRequest) -> (AgentHookResponse, CallVerdict) {
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
            reason: cut_for_log(&response.reason),
            objectors: self.objectors,
            max_retries,
            told: cut_for_log(&extra_agent_text(&response)),
        };
        // The agent knows the input under its own names.
        response.updated_input = response.updated_input.and_then(|input| match &request.tool {
            Some(tool) => tool.to_own_input(input),
            None => Some(input),
        });
        self.messages.iter().for_each(|message| add_person_message(&mut response, message));
        (response, verdict)
    }
}

/// Appends a line to the message for the person.
fn add_person_message(response: &mut AgentHookResponse, line: &str) {
    let before = response.message.take().map(|message| message + "\n").unwrap_or_default();
    response.message = Some(format!("{before}windlass: {line}"));
}

/// Turns a block into a pass, and tells the person.
fn release_agent(response: &mut AgentHookResponse, why: &str, objectors: &[String]) {
    let block = if objectors.len() == 1 { "blocks" } else { "block" };
    let (hooks, reason) = (objectors.join(", "), std::mem::take(&mut response.reason));
    response.ruling = CallRuling::Pass;
    add_person_message(response, &format!("{why}; the agent may stop, although {hooks} still {block}: {reason}"));
}

/// Returns the texts that the agent receives besides the ruling.
fn extra_agent_text(response: &AgentHookResponse) -> String {
    let context = response.context.clone();
    let input = response.updated_input.clone().map(|input| Value::Object(input).to_string());
    let output = response.updated_output.as_ref().map(ToString::to_string);
    [context, input, output].into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Cuts a text to the length that the log takes. Returns nothing for a blank text.
fn cut_for_log(text: &str) -> Option<String> {
    Some(excerpt_text(text, EngineLimits::FEEDBACK_BYTES)).filter(|text| !text.trim().is_empty())
}
