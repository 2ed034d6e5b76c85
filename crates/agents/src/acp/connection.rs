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
//! - Opening and prompting share one deadline. At its end the turn has timed out, wherever it was.
//!
//! Not here: what messages mean (`talk`), when an agent is asked (`runner`).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_engine::Fault as Kind;
use windlass_process::{Control, Exit, Heard, Launcher, Left, Live, Roster, Spec};

use super::breach::Breach;
use super::talk::{Permission, Said, Talk};
use super::wire::{LOGIN_REQUIRED, Refused};
use crate::TurnEnd;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;
/// How long it may take to give a turn up.
const GRACE: Duration = Duration::from_secs(10);
/// How long it may take over each question before the first prompt.
const PATIENCE: Duration = Duration::from_secs(120);
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
}

/// Who may interrupt a turn, and who watches it.
pub struct Attention<'a> {
    pub control: &'a Control,
    /// When its time is up. A pause moves it.
    pub until: &'a mut Option<Instant>,
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
    /// It took too long over a question before the first prompt.
    Late,
    /// The time of the turn is up.
    TimedOut,
    Cancelled,
    Other(String),
}

impl Fault {
    fn kind(&self) -> Kind {
        match self {
            Self::Over => Kind::Crashed,
            Self::Breach(_) => Kind::Breach,
            Self::Refused(_) | Self::Late | Self::TimedOut | Self::Cancelled | Self::Other(_) => Kind::Failed,
        }
    }
}

/// Why a turn was asked to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interference {
    TimedOut,
    Cancelled,
}

impl Connection {
    /// Starts an agent and opens a conversation: the one before if it can, else a new one.
    pub fn open(start: &Start<'_>, control: &Control, until: &mut Option<Instant>) -> Result<Opened, TurnEnd> {
        let mut wait = Wait { control, until };
        let (mut half, capabilities) = Half::open(start, &mut wait)?;
        let Some(before) = start.before else { return half.begin(start, &mut wait, None) };
        if capabilities["loadSession"] != true {
            return half.begin(start, &mut wait, Some("the agent cannot take up a conversation".to_owned()));
        }
        let params = json!({"sessionId": before, "cwd": start.spec.directory, "mcpServers": []});
        match half.ask("session/load", params, &mut wait) {
            Ok(_) => Ok(Opened { connection: half.connect(before.to_owned()), anew: None }),
            Err(Fault::Refused(refused)) => {
                let why = format!("the agent would not take the one before up: {}", words(&refused));
                half.begin(start, &mut wait, Some(why))
            }
            // It may be the conversation that brings the agent down.
            Err(fault) => {
                let why = half.fail("session/load", fault)?;
                let (half, _) = Half::open(start, &mut wait)?;
                half.begin(start, &mut wait, Some(why))
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
        let (answer, interference) = attend(&mut self.live, &mut self.talk, attention, Some(GRACE));
        let interfered = |end: TurnEnd| match interference {
            None => end,
            Some(Interference::Cancelled) => TurnEnd::Cancelled,
            // Everything may have been ended meanwhile.
            Some(Interference::TimedOut) if end == TurnEnd::Cancelled => end,
            Some(Interference::TimedOut) => TurnEnd::TimedOut,
        };
        match answer {
            Ok(answer) => (interfered(self.stopped(&answer)), Some(self)),
            Err(Fault::Refused(refused)) => (
                interfered(TurnEnd::failed(Kind::Failed, format!("the agent failed: {}", words(&refused)))),
                Some(self),
            ),
            Err(fault) => {
                let half = Half { live: self.live, talk: self.talk };
                let end = {
                    let kind = fault.kind();
                    half.fail("session/prompt", fault).map_or_else(|end| end, |why| TurnEnd::failed(kind, why))
                };
                (interfered(end), None)
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
        let failed = |fault: Kind, why: &str| {
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            TurnEnd::failed(
                fault,
                match last {
                    Some(line) => format!("{why}: {}", line.trim()),
                    None => why.to_owned(),
                },
            )
        };
        match answer["stopReason"].as_str() {
            Some("end_turn") => TurnEnd::Said(said),
            Some("max_tokens") => failed(Kind::OutOfTokens, "the agent ran out of tokens (max_tokens)"),
            Some("max_turn_requests") => failed(Kind::OutOfTurns, "the agent ran out of requests (max_turn_requests)"),
            Some("refusal") => failed(Kind::Refused, "the agent refused to go on (refusal)"),
            Some("cancelled") => failed(Kind::GaveUp, "the agent gave its turn up by itself (cancelled)"),
            Some(other) => failed(
                Kind::Breach,
                &format!("the agent ended its turn for a reason that is not known here (`{other}`)"),
            ),
            None => failed(Kind::Breach, "the agent ended its turn without a reason, against the protocol"),
        }
    }
}

/// Who may interrupt the opening, and when the time of the turn is up.
struct Wait<'a> {
    control: &'a Control,
    until: &'a mut Option<Instant>,
}

/// An agent that has no conversation yet.
struct Half {
    live: Live,
    talk: Talk,
}

impl Half {
    /// Starts an agent and greets it. The answer has what it can do.
    fn open(start: &Start<'_>, wait: &mut Wait<'_>) -> Result<(Self, Value), TurnEnd> {
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
        let mut greeted = match half.ask("initialize", params, wait) {
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

    fn begin(mut self, start: &Start<'_>, wait: &mut Wait<'_>, anew: Option<String>) -> Result<Opened, TurnEnd> {
        let params = json!({"cwd": start.spec.directory, "mcpServers": []});
        let answer = match self.ask("session/new", params, wait) {
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

    fn ask(&mut self, method: &str, params: Value, wait: &mut Wait<'_>) -> Result<Value, Fault> {
        self.talk.ask(method, params);
        let patience = Instant::now() + PATIENCE;
        let mut until = Some(wait.until.map_or(patience, |until| until.min(patience)));
        let before = until;
        let attention = Attention { control: wait.control, until: &mut until, tell: &mut |_| {} };
        let answer = attend(&mut self.live, &mut self.talk, attention, None).0;
        let paused = until.zip(before).map_or(Duration::ZERO, |(until, before)| until - before);
        *wait.until = wait.until.and_then(|until| until.checked_add(paused));
        match answer {
            Err(Fault::TimedOut) if *wait.until != until => Err(Fault::Late),
            answer => answer,
        }
    }

    fn broken(self, method: &str, fault: Fault) -> TurnEnd {
        self.fail(method, fault).map_or_else(|end| end, TurnEnd::Broken)
    }

    /// Ends the agent, and says what was wrong with it: nothing, where it was not allowed to go on.
    fn fail(self, method: &str, fault: Fault) -> Result<String, TurnEnd> {
        let noise = self.talk.first_noise().map(|noise| format!("; it wrote {noise}")).unwrap_or_default();
        Ok(match fault {
            Fault::Over => {
                let left = self.live.end();
                format!(
                    "the agent ended before it answered `{method}` ({}){}{noise}",
                    exit(left.exit),
                    last_line(&left)
                )
            }
            Fault::Late => {
                let left = self.live.kill();
                let seconds = PATIENCE.as_secs();
                format!("the agent did not answer `{method}` within {seconds} s{}{noise}", last_line(&left))
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
            Fault::TimedOut => {
                self.live.kill();
                return Err(TurnEnd::TimedOut);
            }
            Fault::Cancelled => {
                self.live.kill();
                return Err(TurnEnd::Cancelled);
            }
            Fault::Other(why) => why,
        })
    }
}

/// Listens until the open question is answered. With a grace, an agent that is to end is asked to first.
fn attend(
    live: &mut Live,
    talk: &mut Talk,
    attention: Attention<'_>,
    grace: Option<Duration>,
) -> (Result<Value, Fault>, Option<Interference>) {
    let Attention { control, until, tell } = attention;
    let (mut interference, mut leave) = (None, None);
    let mut attended = match live.attend(control) {
        Ok(attended) => attended,
        Err(error) => return (Err(Fault::Other(format!("cannot listen to the agent: {error}"))), None),
    };
    loop {
        attended.say(&talk.take_out());
        let until = if interference.is_none() { &mut *until } else { &mut leave };
        let why = match attended.hear(until) {
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
            Heard::Late => return (Err(Fault::TimedOut), interference),
            Heard::Cancelled => Interference::Cancelled,
        };
        let Some(grace) = grace else {
            let fault = match why {
                Interference::TimedOut => Fault::TimedOut,
                Interference::Cancelled => Fault::Cancelled,
            };
            return (Err(fault), None);
        };
        interference = interference.or(Some(why));
        talk.cancel();
        leave = Some(Instant::now() + grace);
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

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut | Exit::Silent | Exit::Cancelled | Exit::Lost => "its supervisor died".to_owned(),
    }
}

/// The last thing that it complained about.
fn last_line(left: &Left) -> String {
    let text = left.stderr.text();
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
