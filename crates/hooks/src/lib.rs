//! Hooks: what a command is given, how it is run, and what its end means; webhooks, and what their answers mean.
//!
//! ```text
//! Hook + Call ─ call ─► process::Spec ─ run elsewhere ─► Finished ─ answer ─► HookReport: outcome, message, feedback
//! http::Request ─ send ─► Response or Unsent ─ meaning ─► Ended: fine, worth another try, or not
//! ```
//!
//! Invariants:
//! - Text from outside never becomes shell text: it travels in the payload and in variables (`script`).
//! - What a hook wrote is cleaned and cut before anybody else sees it.
//!
//! Not here: which hooks are owed when (`engine`), starting programs (`process`), the log.

mod answer;
mod call;
mod fields;
mod forms;
pub mod http;
#[cfg(any(test, fuzzing))]
pub mod laws;
pub mod mask;
mod meaning;
pub mod notice;
mod papers;
mod retry;
pub mod ruling;
pub mod said;
mod script;
mod signs;
mod telling;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::workflow::Pattern;
use windlass_engine::{Rule, Template};

pub use answer::{Parts, answer, fitting, gist, silent_no};
pub use call::Call;
pub use mask::{Mask, Stream as Masked};
pub use papers::{Carried, Papers};
pub use retry::Retry;
pub use said::{BadAnswer, Said};
pub use script::{Carrier, Script, UnsafeTemplate, Values};
pub use text::{clean, cut};

/// Something that runs at a point.
#[derive(Debug, Clone)]
pub struct Hook {
    pub name: String,
    pub kind: Kind,
    pub timeout: Duration,
    /// Whether its output reaches the agent, if it says so.
    pub pipes: Option<bool>,
    /// Bytes of output that are kept for the agent.
    pub max_output: usize,
    /// How often it is tried again.
    pub retry: Option<Retry>,
    /// What the agent is told.
    pub feedback: Option<Template>,
}

impl Hook {
    /// Whether its output reaches the agent. Nobody is told anything unasked.
    pub fn pipes(&self) -> bool {
        self.pipes.unwrap_or(false)
    }
}

/// What runs.
#[derive(Debug, Clone)]
pub enum Kind {
    Command(Script),
    Http(Address),
    Rules(Vec<Rule>),
    /// What the agent is told.
    Prompt(Template),
    /// A notice on the desktop.
    Desktop,
    /// One of ours, on the way from done to accepted.
    Step(Step),
    Workflow(Flow),
}

/// A workflow, as a hook has it run.
#[derive(Debug, Clone)]
pub struct Flow {
    pub id: String,
    /// What it is given, by name.
    pub context: Vec<(String, Pattern)>,
    /// Whether every program of it may run again after a crash.
    pub idempotent: bool,
}

/// What work goes through on its way from done to accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    RebaseOnMain,
    RunTests,
    CreatePr,
    MergePr,
    /// The names of the briefs by which it is judged.
    Review(Vec<String>),
}

/// Where a webhook goes, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub url: String,
    pub method: http::Method,
    pub headers: BTreeMap<String, String>,
}

impl Address {
    /// The request that a call makes. The environment's values are filled in only now.
    pub fn request(&self, call: &Call<'_>, timeout: Duration, key: String) -> Result<http::Request, http::ExpandError> {
        let headers =
            self.headers.iter().map(|(name, value)| Ok((name.clone(), http::expand(value, call.environment)?)));
        Ok(http::Request {
            url: http::expand(&self.url, call.environment)?,
            method: self.method,
            headers: headers.collect::<Result<_, _>>()?,
            body: call.payload().to_string().into_bytes(),
            timeout,
            key,
            proxy: None,
        })
    }
}

/// What a place makes of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The stop gate: the agent can be sent back.
    Stop,
    /// `before_submit` and `before_merge`: only success and skip pass.
    Pipeline,
    /// Everything else: nothing can be blocked.
    Observer,
}

impl Role {
    /// Whether what happens next depends on the verdict.
    pub fn is_gate(self) -> bool {
        self != Self::Observer
    }
}
