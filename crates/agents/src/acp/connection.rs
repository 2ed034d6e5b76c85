//! An agent that is under way, and one conversation with it.
//!
//! ```text
//!   open: initialize ─► session/load, or session/new ─► Connection
//!   prompt: session/prompt ─► updates … ─► stop reason     cancelled, late: session/cancel, and a while to heed it
//! ```
//!
//! Invariants:
//! - A connection that is handed back can be prompted again; any other has been ended, with everything below it.
//! - Nothing is waited for without an end: opening has a time, and a turn has the control.
//!
//! Not here: what messages mean (`talk`), when an agent is asked (`runner`).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_process::{Control, Exit, Heard, Launcher, Left, Live, Roster, Spec};

use super::breach::Breach;
use super::talk::{Permission, Said, Talk};
use super::wire::{LOGIN_REQUIRED, Refused};
use crate::TurnEnd;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;
/// How long it may take to give a turn up.
const GRACE: Duration = Duration::from_secs(10);
/// How long it may take to fall silent between two turns.
const SILENCE: Duration = Duration::from_secs(1);
/// The longest name of a conversation.
const NAME: usize = 1024;
/// How much of an error's data is told.
const DATA: usize = 400;

/// What an agent is started with.
pub struct Start<'a> {
    pub launcher: &'a Launcher,
    pub roster: &'a Roster,
    pub spec: &'a Spec,
    pub permission: Permission,
    /// The conversation that is to be taken up again.
    pub before: Option<&'a str>,
    /// How long it may take over each question before the first prompt.
    pub patience: Duration,
}

/// Who may interrupt a turn, and who watches it.
pub struct Attention<'a> {
    pub control: &'a Control,
    pub timeout: Option<Duration>,
    /// Sees what the agent says as it says it.
    pub tell: &'a mut dyn FnMut(&str),
}

/// An agent that can be prompted.
pub struct Connection {
    live: Live,
    talk: Talk,
    conversation: String,
}

/// A connection, and whether the conversation is the one before.
pub struct Opened {
    pub connection: Connection,
    /// Why it is not, where there was one.
    pub anew: Option<String>,
}

/// Why a question has no answer.
enum Fault {
    Refused(Refused),
    Breach(Breach),
    /// The agent is gone, or will never say anything again.
    Over,
    Late(Duration),
    Cancelled,
    Other(String),
}

/// Why a turn was asked to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interference {
    TimedOut,
    Cancelled,
}

impl Connection {
    /// Starts an agent and opens a conversation: the one before if it can, else a new one.
    pub fn open(start: &Start<'_>, control: &Control) -> Result<Opened, TurnEnd> {
        let (mut half, capabilities) = Half::open(start, control)?;
        let Some(before) = start.before else { return half.begin(start, control, None) };
        if capabilities["loadSession"] != true {
            return half.begin(start, control, Some("the agent cannot take up a conversation".to_owned()));
        }
        let params = json!({"sessionId": before, "cwd": start.spec.directory, "mcpServers": []});
        match half.ask("session/load", params, control, start.patience) {
            Ok(_) => Ok(Opened { connection: half.connect(before.to_owned()), anew: None }),
            Err(Fault::Refused(refused)) => {
                let why = format!("the agent would not take the one before up: {}", words(&refused));
                half.begin(start, control, Some(why))
            }
            Err(Fault::Cancelled) => Err(TurnEnd::Cancelled),
            // It may be the conversation that brings the agent down.
            Err(fault) => {
                let why = half.fail("session/load", fault);
                let (half, _) = Half::open(start, control)?;
                half.begin(start, control, Some(why))
            }
        }
    }

    pub fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Whether it is still there and sane. What it has said since its last turn belongs to none.
    pub fn is_ready(&mut self, control: &Control) -> bool {
        let Ok(mut attended) = self.live.attend(control) else { return false };
        let until = Instant::now() + SILENCE;
        while Instant::now() < until {
            match attended.hear_now() {
                Heard::Said(bytes) if self.talk.hear(&bytes).is_err() => return false,
                Heard::Said(_) => {
                    let answers = self.talk.take_out();
                    attended.say(&answers);
                }
                Heard::Over => return false,
                Heard::Late | Heard::Cancelled | Heard::Killed => return true,
            }
        }
        false
    }

    /// Has the agent work on a prompt. The connection comes back if it is good for another one.
    pub fn prompt(mut self, prompt: &str, attention: Attention<'_>) -> (TurnEnd, Option<Self>) {
        let params = json!({"sessionId": self.conversation, "prompt": [{"type": "text", "text": prompt}]});
        self.talk.ask("session/prompt", params);
        let timeout = attention.timeout;
        let (answer, interference) = attend(&mut self.live, &mut self.talk, attention, Some(GRACE));
        let interfered = |end: TurnEnd| match interference {
            None => end,
            Some(Interference::Cancelled) => TurnEnd::Cancelled,
            Some(Interference::TimedOut) => {
                TurnEnd::Failed(format!("timed out after {}", span(timeout.unwrap_or_default())))
            }
        };
        match answer {
            Ok(answer) => (interfered(self.stopped(&answer)), Some(self)),
            Err(Fault::Refused(refused)) => {
                (interfered(TurnEnd::Failed(format!("the agent failed: {}", words(&refused)))), Some(self))
            }
            Err(Fault::Cancelled) => {
                self.live.kill();
                (TurnEnd::Cancelled, None)
            }
            Err(fault) => {
                let half = Half { live: self.live, talk: self.talk };
                (interfered(TurnEnd::Failed(half.fail("session/prompt", fault))), None)
            }
        }
    }

    /// Lets the agent go.
    pub fn close(self) {
        self.live.end();
    }

    /// What a stop reason means.
    fn stopped(&mut self, answer: &Value) -> TurnEnd {
        let said = self.talk.take_speech();
        let failed = |why: &str| {
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            TurnEnd::Failed(match last {
                Some(line) => format!("{why}: {}", line.trim()),
                None => why.to_owned(),
            })
        };
        match answer["stopReason"].as_str() {
            Some("end_turn") => TurnEnd::Said(said),
            Some("max_tokens") => failed("the agent ran out of tokens (max_tokens)"),
            Some("max_turn_requests") => failed("the agent ran out of requests (max_turn_requests)"),
            Some("refusal") => failed("the agent refused to go on (refusal)"),
            Some("cancelled") => failed("the agent gave its turn up by itself (cancelled)"),
            Some(other) => failed(&format!("the agent ended its turn for a reason that is not known here (`{other}`)")),
            None => failed("the agent ended its turn without a reason, against the protocol"),
        }
    }
}

/// An agent that has no conversation yet.
struct Half {
    live: Live,
    talk: Talk,
}

impl Half {
    /// Starts an agent and greets it. The answer has what it can do.
    fn open(start: &Start<'_>, control: &Control) -> Result<(Self, Value), TurnEnd> {
        let live = Live::start(start.launcher, start.spec, start.roster).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            TurnEnd::Broken(format!("{error}{cause}"))
        })?;
        let mut half = Self { live, talk: Talk::new(start.permission) };
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION")},
        });
        let mut greeted = match half.ask("initialize", params, control, start.patience) {
            Ok(greeted) => greeted,
            Err(fault) => return Err(half.broken("initialize", fault)),
        };
        match &greeted["protocolVersion"] {
            version if version.as_u64() == Some(VERSION) => Ok((half, greeted["agentCapabilities"].take())),
            other => {
                let why =
                    format!("the agent speaks version {other} of the protocol, and only {VERSION} is spoken here");
                half.live.end();
                Err(TurnEnd::Broken(why))
            }
        }
    }

    fn begin(mut self, start: &Start<'_>, control: &Control, anew: Option<String>) -> Result<Opened, TurnEnd> {
        let params = json!({"cwd": start.spec.directory, "mcpServers": []});
        let answer = match self.ask("session/new", params, control, start.patience) {
            Ok(answer) => answer,
            Err(fault) => return Err(self.broken("session/new", fault)),
        };
        let fits = |name: &&str| !name.trim().is_empty() && name.len() <= NAME && !name.contains(char::is_control);
        match answer["sessionId"].as_str().filter(fits) {
            Some(name) => Ok(Opened { connection: self.connect(name.to_owned()), anew }),
            None => {
                self.live.end();
                Err(TurnEnd::Broken("the agent gave its conversation no name that could be used".to_owned()))
            }
        }
    }

    fn connect(mut self, conversation: String) -> Connection {
        self.talk.listen_to(&conversation);
        Connection { live: self.live, talk: self.talk, conversation }
    }

    fn ask(&mut self, method: &str, params: Value, control: &Control, patience: Duration) -> Result<Value, Fault> {
        self.talk.ask(method, params);
        let attention = Attention { control, timeout: Some(patience), tell: &mut |_| {} };
        attend(&mut self.live, &mut self.talk, attention, None).0
    }

    fn broken(self, method: &str, fault: Fault) -> TurnEnd {
        match fault {
            Fault::Cancelled => {
                self.live.kill();
                TurnEnd::Cancelled
            }
            fault => TurnEnd::Broken(self.fail(method, fault)),
        }
    }

    /// Ends the agent, and says what was wrong with it.
    fn fail(self, method: &str, fault: Fault) -> String {
        let noise = self.talk.first_noise().map(|noise| format!("; it wrote {noise}")).unwrap_or_default();
        match fault {
            Fault::Over => {
                let left = self.live.end();
                format!(
                    "the agent ended before it answered `{method}` ({}){}{noise}",
                    exit(left.exit),
                    last_line(&left)
                )
            }
            Fault::Late(time) => {
                let left = self.live.kill();
                format!("the agent did not answer `{method}` within {}{}{noise}", span(time), last_line(&left))
            }
            Fault::Breach(breach) => {
                self.live.kill();
                format!("the agent broke the protocol: {breach}")
            }
            Fault::Refused(refused) => {
                self.live.end();
                match refused.code {
                    LOGIN_REQUIRED => format!(
                        "the agent wants a login first: start it by hand and log in, or give it a key ({})",
                        words(&refused)
                    ),
                    _ => format!("the agent refused `{method}`: {}", words(&refused)),
                }
            }
            Fault::Cancelled => "cancelled".to_owned(),
            Fault::Other(why) => why,
        }
    }
}

/// Listens until the open question is answered. With a grace, an agent that is to end is asked to first.
fn attend(
    live: &mut Live,
    talk: &mut Talk,
    attention: Attention<'_>,
    grace: Option<Duration>,
) -> (Result<Value, Fault>, Option<Interference>) {
    let Attention { control, timeout, tell } = attention;
    let mut interference = None;
    let mut attended = match live.attend(control) {
        Ok(attended) => attended,
        Err(error) => return (Err(Fault::Other(format!("cannot listen to the agent: {error}"))), None),
    };
    let mut until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        attended.say(&talk.take_out());
        let why = match attended.hear(&mut until) {
            Heard::Said(bytes) => match talk.hear(&bytes) {
                Err(breach) => return (Err(Fault::Breach(breach)), interference),
                Ok(said) => {
                    if let Some(answer) = told(said, tell) {
                        return (answer.map_err(Fault::Refused), interference);
                    }
                    continue;
                }
            },
            Heard::Over => return (Err(Fault::Over), interference),
            Heard::Killed => return (Err(Fault::Cancelled), interference),
            Heard::Late if interference.is_none() => Interference::TimedOut,
            Heard::Late => return (Err(Fault::Late(GRACE)), interference),
            Heard::Cancelled => Interference::Cancelled,
        };
        let Some(grace) = grace else {
            let fault = match why {
                Interference::TimedOut => Fault::Late(timeout.unwrap_or_default()),
                Interference::Cancelled => Fault::Cancelled,
            };
            return (Err(fault), None);
        };
        interference = interference.or(Some(why));
        talk.cancel();
        until = Instant::now().checked_add(grace);
    }
}

/// Passes on what was said. The answer, if it is among it.
fn told(said: Vec<Said>, tell: &mut dyn FnMut(&str)) -> Option<Result<Value, Refused>> {
    let mut answer = None;
    for said in said {
        match said {
            Said::Text(text) => tell(&text),
            Said::Tool(title) => tell(&format!("\n[{title}]\n")),
            Said::Answer(outcome) => answer = Some(outcome),
        }
    }
    answer
}

fn words(refused: &Refused) -> String {
    let Refused { code, message, data } = refused;
    let data = match data {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!(": {text}"),
        Some(other) => format!(": {other}"),
    };
    let data = &data[..data.floor_char_boundary(DATA)];
    format!("{message}{data} (error {code})")
}

fn span(time: Duration) -> String {
    match time.as_millis() {
        few @ ..1000 => format!("{few} ms"),
        many => format!("{} s", many / 1000),
    }
}

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut | Exit::Cancelled | Exit::Lost => "its supervisor died".to_owned(),
    }
}

/// The last thing that it complained about.
fn last_line(left: &Left) -> String {
    let text = left.stderr.text();
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
