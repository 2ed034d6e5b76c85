//! The handshake with an agent: initialize it, load the previous conversation or begin a new one, choose the model.
//!
//! ```text
//!   initialize ─► MCP servers ─► session/load, session/resume, or session/new ─► the model ─► HandshakeOutcome
//! ```
//!
//! Invariants:
//! - Every wait ends: each request has a timeout, and all of them share the deadline of the turn.
//! - If the handshake fails, the agent and all its processes are ended.

use serde_json::{Value, json};
use windlass_process::{Exit, Left, Live};

use super::connection::Connection;
use super::desk::Desk;
use super::http_server::{HttpServer, shell_command};
use super::line::{Attention, Fault, Interference, Line};
use super::methods::{INITIALIZE, LOAD_SESSION, NEW_SESSION, RESUME_SESSION, VERSION};
use super::model::{Choice, choose};
use super::servers::ServerTransport;
use super::start::{PATIENCE, Start, words};
use super::talk::Talk;
use super::wire::{LOGIN_REQUIRED, Refused};
use crate::prompt_run::last_line_of;
use crate::{TurnBudget, TurnEnd};

/// The longest name of a conversation that is accepted.
const NAME: usize = 1024;
/// A connection, and whether it continues the previous conversation.
pub struct OpenOutcome {
    pub connection: Connection,
    /// Why the previous conversation is not continued, if there was one.
    pub anew: Option<String>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

impl Connection {
    /// Starts an agent and opens a conversation: the previous one if possible, else a new one.
    pub fn open(start: &Start<'_>, budget: &mut TurnBudget) -> Result<OpenOutcome, TurnEnd> {
        let (mut half, can) = Half::open(start, budget)?;
        let Some(before) = start.before else { return half.begin(start, budget, None) };
        let resumes = &can["sessionCapabilities"]["resume"];
        let method = match (can["loadSession"] == true, resumes.is_object() || *resumes == true) {
            (true, _) => LOAD_SESSION,
            (false, true) => RESUME_SESSION,
            (false, false) => {
                return half.begin(start, budget, Some("the agent cannot take up a conversation".to_owned()));
            }
        };
        let mut params = half.params(start);
        params["sessionId"] = before.into();
        match half.ask(method, params, start, budget) {
            Ok(answer) => {
                half.line.talk.meter.go_on_from(start.cost);
                half.connect(before, &answer, start, budget)
            }
            Err(Fault::Refused(refused)) => {
                let why = format!("the agent would not take the one before up: {}", words(&refused));
                half.begin(start, budget, Some(why))
            }
            // The agent may have crashed because of this conversation, so a new process begins another one.
            Err(fault) => {
                let why = half.fail(method, fault)?;
                let (half, _) = Half::open(start, budget)?;
                half.begin(start, budget, Some(why))
            }
        }
    }
}

/// An agent without a conversation yet.
pub struct Half {
    pub line: Line,
    /// The login methods that the agent offers.
    pub logins: Vec<String>,
    /// The MCP servers, as the protocol encodes them.
    pub servers: Vec<Value>,
    /// Notices for the user about the handshake.
    pub notices: Vec<String>,
}

impl Half {
    pub fn new(line: Line) -> Self {
        Self { line, logins: Vec::new(), servers: Vec::new(), notices: Vec::new() }
    }

    /// Starts an agent and initializes it. Returns its capabilities too.
    fn open(start: &Start<'_>, budget: &mut TurnBudget) -> Result<(Self, Value), TurnEnd> {
        let live = Live::start(start.launcher, start.spec, start.roster).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            TurnEnd::Broken(format!("{error}{cause}"))
        })?;
        let talk = Talk::new(start.permissions.clone());
        let desk = Desk::new(start.launcher, start.spec, start.permissions.clone());
        let mut half = Self::new(Line { live, talk, desk, servers: Vec::new() });
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true},
            "clientInfo": {"name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION")},
        });
        let mut greeted = match half.ask(INITIALIZE, params, start, budget) {
            Ok(greeted) => greeted,
            Err(fault) => return Err(half.broken(INITIALIZE, fault)),
        };
        half.line.talk.meter.greeted_by(greeted["agentInfo"]["name"].as_str().unwrap_or_default());
        let methods = greeted["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        half.logins = methods.iter().filter_map(|method| method["name"].as_str()).map(str::to_owned).collect();
        match &greeted["protocolVersion"] {
            version if version.as_u64() == Some(VERSION) => {
                half.prepare_servers(ServerTransport::of_agent(&greeted), start, budget)?;
                Ok((half, greeted["agentCapabilities"].take()))
            }
            other => {
                let why =
                    format!("the agent speaks version {other} of the protocol, and only {VERSION} is spoken here");
                half.line.live.end();
                Err(TurnEnd::Broken(why))
            }
        }
    }

    /// Encodes the MCP servers in the form that the agent accepts, and starts those that listen for HTTP. If one cannot be
    /// started, it is left out with a notice.
    fn prepare_servers(
        &mut self,
        transport: ServerTransport,
        start: &Start<'_>,
        budget: &mut TurnBudget,
    ) -> Result<(), TurnEnd> {
        for server in start.servers {
            if transport == ServerTransport::Stdio || server.http_args.is_empty() {
                self.servers.push(server.value());
                continue;
            }
            let started = budget.bounded(PATIENCE, |step| HttpServer::start(server, start, step));
            match started {
                Ok(listening) => {
                    self.servers.push(listening.entry.clone());
                    self.line.servers.push(listening);
                }
                Err(TurnEnd::Broken(why)) => {
                    let (name, command) = (&server.name, shell_command(server));
                    self.notices.push(format!(
                        "the agent has no tools of `{name}`: cannot start its server: {why}; try it by hand: `{command}`"
                    ));
                }
                Err(end) => return Err(end),
            }
        }
        Ok(())
    }

    /// Returns the parameters with which every conversation is opened.
    fn params(&self, start: &Start<'_>) -> Value {
        json!({"cwd": start.spec.directory, "mcpServers": self.servers})
    }

    fn begin(
        mut self,
        start: &Start<'_>,
        budget: &mut TurnBudget,
        anew: Option<String>,
    ) -> Result<OpenOutcome, TurnEnd> {
        let params = self.params(start);
        let answer = match self.ask(NEW_SESSION, params, start, budget) {
            Ok(answer) => answer,
            Err(fault) => return Err(self.broken(NEW_SESSION, fault)),
        };
        let fits = |name: &&str| !name.trim().is_empty() && name.len() <= NAME && !name.contains(char::is_control);
        match answer["sessionId"].as_str().filter(fits) {
            Some(name) => self.connect(name, &answer, start, budget).map(|opened| OpenOutcome { anew, ..opened }),
            None => {
                self.line.live.end();
                Err(TurnEnd::Broken("the agent gave its conversation no name that could be used".to_owned()))
            }
        }
    }

    /// Chooses the model of the open conversation and returns the connection.
    fn connect(
        mut self,
        conversation: &str,
        answer: &Value,
        start: &Start<'_>,
        budget: &mut TurnBudget,
    ) -> Result<OpenOutcome, TurnEnd> {
        let mut notices = std::mem::take(&mut self.notices);
        match start.model.map(|model| (model, choose(model, conversation, answer))) {
            None | Some((_, Choice::Made)) => {}
            Some((_, Choice::Impossible(why))) => notices.push(why),
            Some((model, Choice::Ask { method, params })) => match self.ask(method, params, start, budget) {
                Ok(_) => {}
                Err(Fault::Refused(refused)) => {
                    notices.push(format!("the agent would not use the model `{model}`: {}", words(&refused)));
                }
                Err(fault) => return Err(self.broken(method, fault)),
            },
        }
        self.line.talk.listen_to(conversation);
        Ok(OpenOutcome { connection: Connection::new(self.line, conversation.to_owned()), anew: None, notices })
    }

    fn ask(&mut self, method: &str, params: Value, start: &Start<'_>, budget: &mut TurnBudget) -> Result<Value, Fault> {
        self.line.talk.ask(method, params);
        let (roster, mut last) = (start.roster, None);
        let answer = budget.bounded(PATIENCE, |step| {
            let answer = self.line.attend(Attention { roster, budget: step, tell: &mut |_| {} }, None).0;
            last = step.until;
            answer
        });
        match answer {
            Err(Fault::Ended(Interference::TimedOut)) if budget.until != last => Err(Fault::Late),
            answer => answer,
        }
    }

    fn broken(self, method: &str, fault: Fault) -> TurnEnd {
        self.fail(method, fault).map_or_else(|end| end, TurnEnd::Unanswered)
    }

    /// Ends the agent and describes its failure. The error is a turn end that is no failure: a timeout or a cancellation.
    pub fn fail(self, method: &str, fault: Fault) -> Result<String, TurnEnd> {
        let Line { live, talk, .. } = self.line;
        let noise = talk.first_noise().map(|noise| format!("; it wrote {noise}")).unwrap_or_default();
        let may_leave = matches!(fault, Fault::Over | Fault::Refused(_));
        let left = if may_leave { live.end() } else { live.kill() };
        let last = last_line(&left);
        Ok(match fault {
            Fault::Over => {
                format!("the agent ended before it answered `{method}` ({}){last}{noise}", exit(left.exit))
            }
            Fault::Late => {
                format!("the agent did not answer `{method}` within {} s{last}{noise}", PATIENCE.as_secs())
            }
            Fault::Breach(breach) => format!("the agent broke the protocol: {breach}"),
            Fault::Refused(refused) if refused.code == LOGIN_REQUIRED => login(&self.logins, &refused),
            Fault::Refused(refused) => format!("the agent refused `{method}`: {}", words(&refused)),
            Fault::Ended(Interference::Silent) => format!("the agent said nothing any more{last}"),
            Fault::Ended(Interference::TimedOut) => return Err(TurnEnd::TimedOut),
            Fault::Ended(Interference::Cancelled) => return Err(TurnEnd::Cancelled),
            Fault::Other(why) => why,
        })
    }
}

fn login(ways: &[String], refused: &Refused) -> String {
    let ways = match ways {
        [] => String::new(),
        ways => format!("; it offers: {}", ways.join(", ")),
    };
    format!("the agent wants a login first: start it by hand and log in, or give it a key ({}{ways})", words(refused))
}

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        _ => "its supervisor died".to_owned(),
    }
}

/// Returns the last line of standard error, for the end of a message.
fn last_line(left: &Left) -> String {
    last_line_of(&left.stderr.text()).map(|line| format!(": {line}")).unwrap_or_default()
}
