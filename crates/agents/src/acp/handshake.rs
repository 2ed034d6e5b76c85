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
use windlass_process::{InteractiveExit, InteractiveProcess, ProgramExit};

use super::channel::{AcpChannel, RequestFailure, TurnContext, TurnInterruption};
use super::client::AcpClient;
use super::client_services::ClientServices;
use super::connection::AcpConnection;
use super::http_server::{McpHttpServer, format_shell_command};
use super::json_rpc::{JsonRpcError, LOGIN_REQUIRED};
use super::mcp_server::ServerTransport;
use super::methods::{INITIALIZE, LOAD_SESSION, NEW_SESSION, PROTOCOL_VERSION, RESUME_SESSION};
use super::model_choice::{ModelChoice, choose_model};
use super::start_request::{AgentStartRequest, OPENING_ANSWER_TIMEOUT, describe_rpc_error};
use crate::prompt_spec::find_last_nonblank_line;
use crate::{TurnBudget, TurnEnd};

/// The longest name of a conversation that is accepted.
const MAX_CONVERSATION_NAME_LENGTH: usize = 1024;
/// A connection, and whether it continues the previous conversation.
pub struct HandshakeOutcome {
    pub connection: AcpConnection,
    /// Why the previous conversation is not continued, if there was one.
    pub restarted_because: Option<String>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

impl AcpConnection {
    /// Starts an agent and opens a conversation: the previous one if possible, else a new one.
    pub fn open_conversation(
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
    ) -> Result<HandshakeOutcome, TurnEnd> {
        let (mut half, can) = PendingConnection::start_agent(start, budget)?;
        let Some(before) = start.before else { return half.begin_conversation(start, budget, None) };
        let resumes = &can["sessionCapabilities"]["resume"];
        let method = match (can["loadSession"] == true, resumes.is_object() || *resumes == true) {
            (true, _) => LOAD_SESSION,
            (false, true) => RESUME_SESSION,
            (false, false) => {
                return half.begin_conversation(
                    start,
                    budget,
                    Some("the agent cannot resume a conversation".to_owned()),
                );
            }
        };
        let mut params = half.build_session_params(start);
        params["sessionId"] = before.into();
        match half.ask_agent(method, params, start, budget) {
            Ok(answer) => {
                half.line.client.meter.resume_from_cost(start.cost);
                half.complete_handshake(before, &answer, start, budget)
            }
            Err(RequestFailure::Refused(refused)) => {
                let why =
                    format!("the agent did not resume the earlier conversation: {}", describe_rpc_error(&refused));
                half.begin_conversation(start, budget, Some(why))
            }
            // The agent may have crashed because of this conversation, so a new process begins another one.
            Err(fault) => {
                let why = half.end_with_failure(method, fault)?;
                let (half, _) = PendingConnection::start_agent(start, budget)?;
                half.begin_conversation(start, budget, Some(why))
            }
        }
    }
}

/// An agent without a conversation yet.
pub struct PendingConnection {
    pub line: AcpChannel,
    /// The login methods that the agent offers.
    pub logins: Vec<String>,
    /// The MCP servers, as the protocol encodes them.
    pub servers: Vec<Value>,
    /// Notices for the user about the handshake.
    pub notices: Vec<String>,
}

impl PendingConnection {
    pub fn new(line: AcpChannel) -> Self {
        Self { line, logins: Vec::new(), servers: Vec::new(), notices: Vec::new() }
    }

    /// Starts an agent and initializes it. Returns its capabilities too.
    fn start_agent(start: &AgentStartRequest<'_>, budget: &mut TurnBudget) -> Result<(Self, Value), TurnEnd> {
        let live = InteractiveProcess::start(start.launcher, start.spec, start.owner_lock).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            TurnEnd::Broken(format!("{error}{cause}"))
        })?;
        let client = AcpClient::new(start.permissions.clone());
        let services = ClientServices::new(start.launcher, start.spec, start.permissions.clone());
        let capabilities = services.describe_capabilities();
        let mut half = Self::new(AcpChannel { live, client, services, servers: Vec::new() });
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION")},
        });
        let mut greeted = match half.ask_agent(INITIALIZE, params, start, budget) {
            Ok(greeted) => greeted,
            Err(fault) => return Err(half.into_turn_end(INITIALIZE, fault)),
        };
        half.line.client.meter.record_agent_name(greeted["agentInfo"]["name"].as_str().unwrap_or_default());
        let methods = greeted["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        half.logins = methods.iter().filter_map(|method| method["name"].as_str()).map(str::to_owned).collect();
        match &greeted["protocolVersion"] {
            version if version.as_u64() == Some(PROTOCOL_VERSION) => {
                half.prepare_servers(ServerTransport::for_agent(&greeted), start, budget)?;
                Ok((half, greeted["agentCapabilities"].take()))
            }
            other => {
                let why = format!(
                    "the agent speaks version {other} of the protocol, and Windlass only version {PROTOCOL_VERSION}"
                );
                half.line.live.end_gracefully();
                Err(TurnEnd::Broken(why))
            }
        }
    }

    /// Encodes the MCP servers in the form that the agent accepts, and starts those that listen for HTTP. If one cannot be
    /// started, it is left out with a notice.
    fn prepare_servers(
        &mut self,
        transport: ServerTransport,
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
    ) -> Result<(), TurnEnd> {
        for server in start.servers {
            if transport == ServerTransport::Stdio || server.http_args.is_empty() {
                self.servers.push(server.to_protocol_value());
                continue;
            }
            let started = budget
                .run_bounded_step(OPENING_ANSWER_TIMEOUT, |step| McpHttpServer::start_server(server, start, step));
            match started {
                Ok(listening) => {
                    self.servers.push(listening.entry.clone());
                    self.line.servers.push(listening);
                }
                Err(TurnEnd::Broken(why)) => {
                    let (name, command) = (&server.name, format_shell_command(server));
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
    fn build_session_params(&self, start: &AgentStartRequest<'_>) -> Value {
        json!({"cwd": start.spec.directory, "mcpServers": self.servers})
    }

    fn begin_conversation(
        mut self,
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
        anew: Option<String>,
    ) -> Result<HandshakeOutcome, TurnEnd> {
        let params = self.build_session_params(start);
        let answer = match self.ask_agent(NEW_SESSION, params, start, budget) {
            Ok(answer) => answer,
            Err(fault) => return Err(self.into_turn_end(NEW_SESSION, fault)),
        };
        let fits = |name: &&str| {
            !name.trim().is_empty() && name.len() <= MAX_CONVERSATION_NAME_LENGTH && !name.contains(char::is_control)
        };
        match answer["sessionId"].as_str().filter(fits) {
            Some(name) => self
                .complete_handshake(name, &answer, start, budget)
                .map(|opened| HandshakeOutcome { restarted_because: anew, ..opened }),
            None => {
                self.line.live.end_gracefully();
                Err(TurnEnd::Broken("the agent gave its conversation no usable id".to_owned()))
            }
        }
    }

    /// Chooses the model of the open conversation and returns the connection.
    fn complete_handshake(
        mut self,
        conversation: &str,
        answer: &Value,
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
    ) -> Result<HandshakeOutcome, TurnEnd> {
        let mut notices = std::mem::take(&mut self.notices);
        match start.model.map(|model| (model, choose_model(model, conversation, answer))) {
            None | Some((_, ModelChoice::AlreadyCurrent)) => {}
            Some((_, ModelChoice::Impossible(why))) => notices.push(why),
            Some((model, ModelChoice::Ask { method, params })) => match self.ask_agent(method, params, start, budget) {
                Ok(_) => {}
                Err(RequestFailure::Refused(refused)) => {
                    notices.push(format!(
                        "the agent did not accept the model `{model}`: {}",
                        describe_rpc_error(&refused)
                    ));
                }
                Err(fault) => return Err(self.into_turn_end(method, fault)),
            },
        }
        self.line.client.set_conversation(conversation);
        Ok(HandshakeOutcome {
            connection: AcpConnection::new(self.line, conversation.to_owned()),
            restarted_because: None,
            notices,
        })
    }

    fn ask_agent(
        &mut self,
        method: &str,
        params: Value,
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
    ) -> Result<Value, RequestFailure> {
        self.line.client.send_request(method, params);
        let (owner_lock, mut last) = (start.owner_lock, None);
        let answer = budget.run_bounded_step(OPENING_ANSWER_TIMEOUT, |step| {
            let answer =
                self.line.await_answer(TurnContext { owner_lock, budget: step, transcript: &mut |_| {} }, None).0;
            last = step.until;
            answer
        });
        match answer {
            Err(RequestFailure::Interrupted(TurnInterruption::TimedOut)) if budget.until != last => {
                Err(RequestFailure::AnswerOverdue)
            }
            answer => answer,
        }
    }

    fn into_turn_end(self, method: &str, fault: RequestFailure) -> TurnEnd {
        self.end_with_failure(method, fault).map_or_else(|end| end, TurnEnd::NoConversation)
    }

    /// Ends the agent and describes its failure. The error is a turn end that is no failure: a timeout or a cancellation.
    pub fn end_with_failure(self, method: &str, fault: RequestFailure) -> Result<String, TurnEnd> {
        let AcpChannel { live, client, .. } = self.line;
        let noise = client.first_noise_line().map(|noise| format!("; it wrote {noise}")).unwrap_or_default();
        let may_leave = matches!(fault, RequestFailure::AgentExited | RequestFailure::Refused(_));
        let left = if may_leave { live.end_gracefully() } else { live.kill_tree() };
        let last = describe_last_stderr_line(&left);
        Ok(match fault {
            RequestFailure::AgentExited => {
                format!("the agent ended before it answered `{method}` ({}){last}{noise}", describe_exit(left.exit))
            }
            RequestFailure::AnswerOverdue => {
                format!(
                    "the agent did not answer `{method}` within {} s{last}{noise}",
                    OPENING_ANSWER_TIMEOUT.as_secs()
                )
            }
            RequestFailure::Breach(breach) => format!("the agent broke the protocol: {breach}"),
            RequestFailure::Refused(refused) if refused.code == LOGIN_REQUIRED => {
                describe_login(&self.logins, &refused)
            }
            RequestFailure::Refused(refused) => {
                format!("the agent refused `{method}`: {}", describe_rpc_error(&refused))
            }
            RequestFailure::Interrupted(TurnInterruption::Silent) => format!("the agent sent nothing more{last}"),
            RequestFailure::Interrupted(TurnInterruption::TimedOut) => return Err(TurnEnd::TimedOut),
            RequestFailure::Interrupted(TurnInterruption::Cancelled) => return Err(TurnEnd::Cancelled),
            RequestFailure::Other(why) => why,
        })
    }
}

fn describe_login(ways: &[String], refused: &JsonRpcError) -> String {
    let ways = match ways {
        [] => String::new(),
        ways => format!("; it offers: {}", ways.join(", ")),
    };
    format!(
        "the agent wants a login first: start it by hand and log in, or give it a key ({}{ways})",
        describe_rpc_error(refused)
    )
}

fn describe_exit(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Code(code) => format!("exit {code}"),
        ProgramExit::Signal(signal) => format!("signal {signal}"),
        _ => "its supervisor died".to_owned(),
    }
}

/// Returns the last line of standard error, for the end of a message.
fn describe_last_stderr_line(left: &InteractiveExit) -> String {
    find_last_nonblank_line(&left.stderr.to_text_lossy()).map(|line| format!(": {line}")).unwrap_or_default()
}
