//! What an agent can be told at a moment, of what is to be said.

use serde_json::{Map, Value};

use super::Unsaid;
use super::contract::{Contract, No};
use crate::{Agent, Moment, Reply, Ruling};

/// A reply in which is only what its agent understands.
#[derive(Debug)]
pub struct Settled {
    pub contract: Contract,
    pub reply: Reply,
    pub unsaid: Vec<Unsaid>,
}

impl Settled {
    pub fn of(agent: Agent, moment: Moment, reply: &Reply) -> Self {
        let mut settled = Self {
            contract: Contract::of(agent, moment),
            reply: Reply {
                ruling: with_reason(&reply.ruling),
                context: said(&reply.context),
                message: said(&reply.message),
                ..Reply::default()
            },
            unsaid: Vec::new(),
        };
        settled.halt(moment, reply.halt.as_deref());
        settled.permit(agent, moment);
        settled.change(agent, moment, reply.updated_input.as_ref());
        settled.block(moment);
        settled.tell();
        settled.change_output(moment, reply.updated_output.as_ref());
        settled
    }

    /// An end is more than a no.
    fn halt(&mut self, moment: Moment, halt: Option<&str>) {
        let Some(why) = halt else { return };
        let why = reason(why);
        let halts = self.contract.halts;
        match moment {
            // It is about to end anyway.
            Moment::Stop | Moment::SubagentStop => {
                self.reply.ruling = Ruling::Pass;
                if !halts {
                    self.also(&why);
                }
            }
            Moment::PreToolUse if matches!(self.reply.ruling, Ruling::Block(_)) => {}
            Moment::PreToolUse => self.reply.ruling = Ruling::Block(why.clone()),
            _ if halts => self.reply.ruling = Ruling::Pass,
            Moment::UserPromptSubmit | Moment::PostToolUse => self.reply.ruling = Ruling::Block(why.clone()),
            Moment::SessionStart | Moment::Notification | Moment::PreCompact | Moment::SessionEnd => self.also(&why),
        }
        if halts {
            self.reply.halt = Some(why);
        } else {
            self.unsaid.push(Unsaid::Halt);
        }
    }

    /// Only tools are allowed and asked for. Whoever cannot ask does not do it: nobody has said yes.
    fn permit(&mut self, agent: Agent, moment: Moment) {
        match &self.reply.ruling {
            Ruling::Allow(_) | Ruling::Ask(_) if moment != Moment::PreToolUse => self.reply.ruling = Ruling::Pass,
            Ruling::Allow(_) if !self.contract.allows => {
                self.reply.ruling = Ruling::Pass;
                self.unsaid.push(Unsaid::Allow);
            }
            Ruling::Ask(why) if !self.contract.asks => {
                let title = agent.title();
                let why = format!("{why}\n\nA person has to agree, and {title} cannot be made to ask: it is not done.");
                self.reply.ruling = Ruling::Block(why);
                self.unsaid.push(Unsaid::Ask);
            }
            _ => {}
        }
    }

    fn block(&mut self, moment: Moment) {
        let Ruling::Block(why) = &self.reply.ruling else { return };
        let why = why.clone();
        match self.contract.no {
            No::Never => {
                self.also(&why);
                self.reply.ruling = Ruling::Pass;
                self.unsaid.push(Unsaid::Block);
            }
            No::AsContext => {
                self.reply.context = joined(Some(why), self.reply.context.take());
                self.reply.ruling = Ruling::Pass;
            }
            // There is no turn in which it could be read.
            _ if moment == Moment::UserPromptSubmit => self.reply.context = None,
            // Whoever reads the reason reads what comes with it.
            _ if self.contract.context.is_none() => {
                self.reply.ruling = Ruling::Block(joined(Some(why), self.reply.context.take()).unwrap_or_default());
            }
            No::Aloud | No::Quietly | No::Twice => {}
        }
    }

    fn tell(&mut self) {
        if self.contract.context.is_none() && self.reply.context.take().is_some() {
            self.unsaid.push(Unsaid::Context);
        }
    }

    /// Whoever cannot be given another input does not do it: nobody wants the one that it has in mind.
    fn change(&mut self, agent: Agent, moment: Moment, input: Option<&Map<String, Value>>) {
        let goes_on = moment == Moment::PreToolUse && !matches!(self.reply.ruling, Ruling::Block(_));
        let Some(input) = input.filter(|_| goes_on) else { return };
        if self.contract.updated_input.is_some() {
            self.reply.updated_input = Some(input.clone());
            return;
        }
        let (title, wanted) = (agent.title(), Value::Object(input.clone()));
        self.reply.ruling = Ruling::Block(format!(
            "A hook wants another input for this tool, and {title} takes none from hooks: it is not done. \
             Use the tool again, with this input: {wanted}"
        ));
        self.unsaid.push(Unsaid::UpdatedInput);
    }

    fn change_output(&mut self, moment: Moment, output: Option<&Value>) {
        let Some(output) = output.filter(|_| moment == Moment::PostToolUse) else { return };
        if self.contract.updated_output {
            self.reply.updated_output = Some(output.clone());
        } else {
            self.unsaid.push(Unsaid::UpdatedOutput);
        }
    }

    fn also(&mut self, told: &str) {
        self.reply.message = joined(self.reply.message.take(), Some(told.to_owned()));
    }
}

fn with_reason(ruling: &Ruling) -> Ruling {
    match ruling {
        Ruling::Pass => Ruling::Pass,
        Ruling::Allow(why) => Ruling::Allow(reason(why)),
        Ruling::Ask(why) => Ruling::Ask(reason(why)),
        Ruling::Block(why) => Ruling::Block(reason(why)),
    }
}

/// Agents look at an answer twice that gives no reason.
fn reason(why: &str) -> String {
    if why.trim().is_empty() { "A hook says so, and not why.".to_owned() } else { why.to_owned() }
}

fn said(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (first, second) => first.or(second),
    }
}
