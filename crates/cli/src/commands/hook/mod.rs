//! `windlass hook POINT`: the bridge. An agent's own hook system calls it at every event that it is installed for.
//!
//! Invariants:
//! - Standard output carries the answer in the agent's own contract, and nothing else.
//! - It exits with 2 only if a hook wants that. After an error in Windlass the agent continues, and the person sees a message.

mod clock;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_app::bridge_calls::answer_request;
use windlass_app::context::Context;
use windlass_app::project::{self, Project};
use windlass_app::{Code, Failure, environment};
use windlass_bridge::{Agent, AgentHookEvent, AgentHookOutput, AgentHookRequest, AgentHookResponse};
use windlass_config::parse_hook_point;
use windlass_engine::CallRuling;
use windlass_text as text;

use self::clock::Clock;
use crate::commands::install::status;
use crate::output::{Output, Stop};
use crate::usage;

/// The longest accepted payload. Tools may answer with whole files.
const LONGEST: usize = 64 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass install claude                 writes these calls into the settings of Claude Code
  echo '{\"session_id\": \"try\", \"cwd\": \".\"}' | windlass hook stop --as claude; echo \"exit $?\"

Exit codes: 2 turns a stop or a prompt away, with the reason on standard error. Otherwise it is 0,
and the answer is on standard output: it may deny a tool. Without one the agent goes on.")]
pub struct Args {
    /// Where the agent is: stop, pre_tool_use, post_tool_use, user_prompt_submit, session_start, session_end,
    /// subagent_stop, notification or pre_compact, in any agent's spelling
    #[arg(value_name = "POINT")]
    point: String,
    /// Whose contract to speak [default: guessed from the payload]
    #[arg(long = "as", value_name = "AGENT", value_parser = usage::one_of::<Agent>(Agent::ALL.iter().map(|agent| agent.name())))]
    agent: Option<Agent>,
    /// Let go after this time, before the agent loses its patience: 30s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = usage::span)]
    within: Option<Duration>,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    let event = event(&args.point)?;
    if out.is_json() {
        let failure = Failure::new(Code::Usage, "agents have contracts of their own; the bridge has no --json");
        return Err(failure.hint("`windlass hooks history --json` tells what hooks did").into());
    }
    if io::stdin().is_terminal() {
        let failure = Failure::new(Code::Usage, "expected a hook payload on standard input");
        return Err(failure
            .hint("`windlass install AGENT` has an agent call; `windlass hooks test POINT` is for people")
            .into());
    }
    let agent = args.agent.unwrap_or(Agent::Claude);
    let clock = Clock::start(args.within, move |late| {
        drop(speak(&AgentHookOutput::new(agent, event, &AgentHookResponse::message(late))));
    });
    let request = read().and_then(|bytes| {
        let request = match args.agent {
            Some(agent) => AgentHookRequest::parse(agent, event, &bytes),
            None => AgentHookRequest::parse_unnamed(event, &bytes, environment::is_set),
        };
        request.map_err(|error| Failure::from_error(Code::Usage, &error))
    });
    let agent = request.as_ref().map_or(agent, |request| request.agent);
    let response = match request {
        Ok(request) => answer_each_file(context, request, &clock),
        Err(failure) => AgentHookResponse::message(clock.went_wrong(&failure)),
    };
    clock.stop();
    speak(&word_response(agent, event, response))
}

/// Encodes a response for the agent. The person is told the parts that the agent's contract cannot express.
fn word_response(agent: Agent, event: AgentHookEvent, response: AgentHookResponse) -> AgentHookOutput {
    let output = AgentHookOutput::new(agent, event, &response);
    let left_out = output.left_out(agent, event);
    if left_out.is_empty() {
        return output;
    }
    let message = left_out.iter().map(|line| format!("windlass: {line}")).collect::<Vec<_>>().join("\n");
    AgentHookOutput::new(agent, event, &response.and(AgentHookResponse::message(message)))
}

fn event(name: &str) -> Result<AgentHookEvent, Failure> {
    let point = parse_hook_point(name);
    point.and_then(|point| AgentHookEvent::of_point(&point)).ok_or_else(|| {
        let points: Vec<_> = AgentHookEvent::ALL.iter().map(|event| event.point().name()).collect();
        let near = windlass_expr::nearest(name, &points).map(|near| format!("did you mean `{near}`? "));
        Failure::new(Code::Usage, format!("no agent calls at `{}`", text::line(name))).hint(format!(
            "{}the points are {}",
            near.unwrap_or_default(),
            points.join(", ")
        ))
    })
}

/// Reads the payload. Bytes beyond the limit are read too, so that the agent is not cut off while it writes.
fn read() -> Result<Vec<u8>, Failure> {
    let fail = |error| Failure::new(Code::System, "cannot read what the agent says").caused_by(error);
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    (&mut input).take(LONGEST as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() <= LONGEST {
        return Ok(bytes);
    }
    io::copy(&mut input, &mut io::sink()).map_err(fail)?;
    Err(Failure::new(Code::Usage, format!("the agent says more than {} MiB at once", LONGEST / 1024 / 1024)))
}

/// Answers a request for every file that it concerns, so that no file of a patch escapes the hooks.
fn answer_each_file(context: &Context, request: AgentHookRequest, clock: &Clock) -> AgentHookResponse {
    let event = request.event;
    let mut response = AgentHookResponse::default();
    for request in request.for_each_file() {
        let answered = answer(context, request, clock.left());
        response =
            response.and(answered.unwrap_or_else(|failure| AgentHookResponse::message(clock.went_wrong(&failure))));
        // The call is blocked as a whole, so the other files need no answer.
        if event == AgentHookEvent::PreToolUse && response.ruling == CallRuling::Block {
            break;
        }
    }
    response
}

fn answer(
    context: &Context,
    request: AgentHookRequest,
    within: Option<Duration>,
) -> Result<AgentHookResponse, Failure> {
    let directory = directory_of(context, &request);
    let Some(project) = project_of(context, &directory)? else { return Ok(AgentHookResponse::default()) };
    if request.is_own_prompt() || is_called_twice(&request, &project) {
        return Ok(AgentHookResponse::default());
    }
    let is_stop = matches!(request.event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop);
    if request.conversation.is_none() && is_stop {
        // Without a conversation the number of earlier send-backs is unknown.
        return Err(Failure::new(Code::Usage, "the agent does not say which conversation this is"));
    }
    answer_request(project, request, &directory, within, context.trust).map_err(Failure::without_trust_option)
}

/// Returns the directory that the agent works in. An agent may leave its project; some agents name the project in a variable.
fn directory_of(context: &Context, request: &AgentHookRequest) -> PathBuf {
    let variables: &[&str] = match request.agent {
        Agent::Claude => &["CLAUDE_PROJECT_DIR"],
        Agent::Gemini => &["GEMINI_PROJECT_DIR"],
        Agent::Qwen => &["QWEN_PROJECT_DIR"],
        Agent::Copilot => &["COPILOT_PROJECT_DIR"],
        Agent::Cursor => &["CURSOR_PROJECT_DIR"],
        // These agents set no variable: one that is set was inherited from another agent.
        Agent::Codex | Agent::Goose | Agent::Kimi => &[],
    };
    let said = request.directory.as_deref().map(PathBuf::from).filter(|directory| directory.is_absolute());
    environment::directory_in(variables).or(said).unwrap_or_else(|| context.directory.clone())
}

/// Finds the project that the agent works in. A project that an option or a variable names counts only if the agent works
/// inside it.
fn project_of(context: &Context, directory: &Path) -> Result<Option<Project>, Failure> {
    let around = project::around(directory)?;
    let named = context.project.clone().or_else(environment::project);
    let Some(named) = named else { return Ok(around) };
    let named = project::find(Some(&named), None, &context.directory)?;
    let inside = |directory: &Path| directory.canonicalize().is_ok_and(|real| real.starts_with(&named.root));
    let its_own = inside(directory) || around.is_some_and(|around| around.root == named.root);
    Ok(its_own.then_some(named))
}

/// Returns whether Copilot makes this call through an entry for Claude Code although it has entries of its own.
fn is_called_twice(request: &AgentHookRequest, project: &Project) -> bool {
    let is_copilot = || Agent::recognise(&request.payload, environment::is_set) == Agent::Copilot;
    request.agent == Agent::Claude && is_copilot() && status::copilot_calls(project)
}

fn speak(output: &AgentHookOutput) -> Result<u8, Stop> {
    // An agent may have closed standard error, and still reads the answer.
    let _ = put(rustix::stdio::stderr(), &output.stderr);
    put(rustix::stdio::stdout(), &output.stdout)?;
    Ok(output.exit)
}

/// Writes a line past the locks of the standard streams: the timer cannot wait for their holders.
fn put(to: BorrowedFd<'_>, line: &str) -> io::Result<()> {
    if line.is_empty() {
        return Ok(());
    }
    let mut to = File::from(to.try_clone_to_owned()?);
    to.write_all(format!("{line}\n").as_bytes())
}
