//! `windlass hook POINT`: the bridge. An agent's own hook system calls it at every event that it is installed for.
//!
//! Invariants:
//! - Standard output carries the answer in the agent's own contract, and nothing else.
//! - It exits with 2 only if a hook wants that. After an error in Windlass the agent continues, and the person sees a message.

mod answer_timer;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_app::bridge_calls::answer_hook_request;
use windlass_app::context::CommandContext;
use windlass_app::project::{self, Project};
use windlass_app::{Failure, FailureCode, environment};
use windlass_bridge::{AgentHookEvent, AgentHookOutput, AgentHookRequest, AgentHookResponse, BridgeAgent};
use windlass_config::parse_hook_point;
use windlass_engine::CallRuling;
use windlass_text as text;

use self::answer_timer::AnswerTimer;
use crate::commands::install::installations;
use crate::output::{EarlyExit, Output};
use crate::usage;

/// The longest accepted payload. Tools may answer with whole files.
const MAX_PAYLOAD_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass install claude                 let Claude Code make these calls
  echo '{\"session_id\": \"try\", \"cwd\": \".\"}' | windlass hook stop --as claude

Exit code 2 blocks a stop or a prompt, with the reason on standard error. Otherwise the exit code is 0, and \
the answer is on standard output: it may deny a tool. Without an answer the agent continues.")]
pub struct Args {
    /// The point, in any agent's spelling: stop, pre_tool_use, post_tool_use,
    /// user_prompt_submit, session_start, session_end, subagent_stop, notification
    /// or pre_compact
    #[arg(value_name = "POINT")]
    point: String,
    /// The agent whose contract to use [default: guessed from the payload]
    #[arg(long = "as", value_name = "AGENT", value_parser = usage::name_parser::<BridgeAgent>(BridgeAgent::ALL.iter().map(|agent| agent.name())))]
    agent: Option<BridgeAgent>,
    /// Answer without a decision after this time: 30s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = usage::parse_time_span)]
    within: Option<Duration>,
}

pub fn run_agent_hook(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    let event = parse_agent_hook_event(&args.point)?;
    if out.is_json() {
        let failure = Failure::new(FailureCode::Usage, "agents have contracts of their own; the bridge has no --json");
        return Err(failure.with_hint("`windlass hooks history --json` shows what hooks did").into());
    }
    if io::stdin().is_terminal() {
        let failure = Failure::new(FailureCode::Usage, "expected a hook payload on standard input");
        return Err(failure
            .with_hint(
                "`windlass install AGENT` sets up an agent; to try hooks yourself, use `windlass hooks test POINT`",
            )
            .into());
    }
    let agent = args.agent.unwrap_or(BridgeAgent::Claude);
    let clock = AnswerTimer::start(args.within, move |late| {
        drop(write_output(&AgentHookOutput::new(agent, event, &AgentHookResponse::with_message(late))));
    });
    let request = read_payload().and_then(|bytes| {
        let request = match args.agent {
            Some(agent) => AgentHookRequest::parse_payload(agent, event, &bytes),
            None => AgentHookRequest::parse_unnamed_payload(event, &bytes, environment::is_variable_set),
        };
        request.map_err(|error| Failure::from_error(FailureCode::Usage, &error))
    });
    let agent = request.as_ref().map_or(agent, |request| request.agent);
    let response = match request {
        Ok(request) => answer_each_file(context, request, &clock),
        Err(failure) => AgentHookResponse::with_message(clock.failure_message(&failure)),
    };
    clock.claim_answer();
    write_output(&encode_response(agent, event, response))
}

/// Encodes a response for the agent. The person is told the parts that the agent's contract cannot express.
fn encode_response(agent: BridgeAgent, event: AgentHookEvent, response: AgentHookResponse) -> AgentHookOutput {
    let output = AgentHookOutput::new(agent, event, &response);
    let left_out = output.describe_unsupported(agent, event);
    if left_out.is_empty() {
        return output;
    }
    let message = left_out.iter().map(|line| format!("windlass: {line}")).collect::<Vec<_>>().join("\n");
    AgentHookOutput::new(agent, event, &response.merge_responses(AgentHookResponse::with_message(message)))
}

fn parse_agent_hook_event(name: &str) -> Result<AgentHookEvent, Failure> {
    let point = parse_hook_point(name);
    point.and_then(|point| AgentHookEvent::from_point(&point)).ok_or_else(|| {
        let points: Vec<_> = AgentHookEvent::ALL.iter().map(|event| event.point_name().name()).collect();
        let near = windlass_expr::nearest_name(name, &points).map(|near| format!("did you mean `{near}`? "));
        Failure::new(FailureCode::Usage, format!("no agent calls at `{}`", text::clean_line(name))).with_hint(format!(
            "{}the points are {}",
            near.unwrap_or_default(),
            points.join(", ")
        ))
    })
}

/// Reads the payload. Bytes beyond the limit are read too, so that the agent is not cut off while it writes.
fn read_payload() -> Result<Vec<u8>, Failure> {
    let fail = |error| Failure::new(FailureCode::System, "cannot read the hook payload").with_cause(error);
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    (&mut input).take(MAX_PAYLOAD_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() <= MAX_PAYLOAD_BYTES {
        return Ok(bytes);
    }
    io::copy(&mut input, &mut io::sink()).map_err(fail)?;
    Err(Failure::new(
        FailureCode::Usage,
        format!("the hook payload is larger than {} MiB", MAX_PAYLOAD_BYTES / 1024 / 1024),
    ))
}

/// Answers a request for every file that it concerns, so that no file of a patch escapes the hooks.
fn answer_each_file(context: &CommandContext, request: AgentHookRequest, clock: &AnswerTimer) -> AgentHookResponse {
    let event = request.event;
    let mut response = AgentHookResponse::default();
    for request in request.split_by_file() {
        let answered = answer_single_request(context, request, clock.remaining_time());
        response = response.merge_responses(
            answered.unwrap_or_else(|failure| AgentHookResponse::with_message(clock.failure_message(&failure))),
        );
        // The call is blocked as a whole, so the other files need no answer.
        if event == AgentHookEvent::PreToolUse && response.ruling == CallRuling::Block {
            break;
        }
    }
    response
}

fn answer_single_request(
    context: &CommandContext,
    request: AgentHookRequest,
    within: Option<Duration>,
) -> Result<AgentHookResponse, Failure> {
    let directory = find_agent_directory(context, &request);
    let Some(project) = find_agent_project(context, &directory)? else { return Ok(AgentHookResponse::default()) };
    if request.is_continuation_prompt() || is_called_twice(&request, &project) {
        return Ok(AgentHookResponse::default());
    }
    let is_stop = matches!(request.event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop);
    if request.conversation.is_none() && is_stop {
        // Without a conversation the number of earlier send-backs is unknown.
        return Err(Failure::new(FailureCode::Usage, "the hook payload names no conversation"));
    }
    answer_hook_request(project, request, &directory, within, context.trust).map_err(Failure::without_trust_option)
}

/// Returns the directory that the agent works in. An agent may leave its project; some agents name the project in a variable.
fn find_agent_directory(context: &CommandContext, request: &AgentHookRequest) -> PathBuf {
    let variables: &[&str] = match request.agent {
        BridgeAgent::Claude => &["CLAUDE_PROJECT_DIR"],
        BridgeAgent::Gemini => &["GEMINI_PROJECT_DIR"],
        BridgeAgent::Qwen => &["QWEN_PROJECT_DIR"],
        BridgeAgent::Copilot => &["COPILOT_PROJECT_DIR"],
        BridgeAgent::Cursor => &["CURSOR_PROJECT_DIR"],
        // These agents set no variable: one that is set was inherited from another agent.
        BridgeAgent::Codex | BridgeAgent::Goose | BridgeAgent::Kimi => &[],
    };
    let said = request.directory.as_deref().map(PathBuf::from).filter(|directory| directory.is_absolute());
    environment::find_directory_variable(variables).or(said).unwrap_or_else(|| context.directory.clone())
}

/// Finds the project that the agent works in. A project that an option or a variable names counts only if the agent works
/// inside it.
fn find_agent_project(context: &CommandContext, directory: &Path) -> Result<Option<Project>, Failure> {
    let around = project::find_enclosing_project(directory)?;
    let named = context.project.clone().or_else(environment::project_variable);
    let Some(named) = named else { return Ok(around) };
    let named = project::find_project(Some(&named), None, &context.directory)?;
    let inside = |directory: &Path| directory.canonicalize().is_ok_and(|real| real.starts_with(&named.root));
    let its_own = inside(directory) || around.is_some_and(|around| around.root == named.root);
    Ok(its_own.then_some(named))
}

/// Returns whether Copilot makes this call through an entry for Claude Code although it has entries of its own.
fn is_called_twice(request: &AgentHookRequest, project: &Project) -> bool {
    let is_copilot =
        || BridgeAgent::identify_caller(&request.payload, environment::is_variable_set) == BridgeAgent::Copilot;
    request.agent == BridgeAgent::Claude && is_copilot() && installations::has_copilot_hooks(project)
}

fn write_output(output: &AgentHookOutput) -> Result<u8, EarlyExit> {
    // An agent may have closed standard error, and still reads the answer.
    let _ = write_unlocked_line(rustix::stdio::stderr(), &output.stderr);
    write_unlocked_line(rustix::stdio::stdout(), &output.stdout)?;
    Ok(output.exit)
}

/// Writes a line past the locks of the standard streams: the timer cannot wait for their holders.
fn write_unlocked_line(to: BorrowedFd<'_>, line: &str) -> io::Result<()> {
    if line.is_empty() {
        return Ok(());
    }
    let mut to = File::from(to.try_clone_to_owned()?);
    to.write_all(format!("{line}\n").as_bytes())
}
