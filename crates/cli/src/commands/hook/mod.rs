//! `windlass hook POINT`: the bridge. An agent's own hook system calls it at every moment that it is installed for.
//!
//! Invariants:
//! - Standard output carries the answer in the agent's own contract, and nothing else.
//! - It exits with 2 only where a hook wants it. Whatever goes wrong here, the agent goes on, and the person is told.

mod clock;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_app::bridge_calls::{Bridged, Calling, answer_call};
use windlass_app::context::Context;
use windlass_app::project::{self, Project};
use windlass_app::{Code, Failure, environment};
use windlass_bridge::{Agent, Call, Moment, Reply, Ruling, Tool, Words};
use windlass_config::parse_hook_point;
use windlass_engine::{self as engine, CallRuling, Caller};
use windlass_runner::{Called, Replied};
use windlass_text as text;

use self::clock::Clock;
use crate::commands::install::status;
use crate::output::{Output, Stop};
use crate::usage;

/// The longest payload that is read: tools may answer with whole files.
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
    /// Whose contract to speak [default: whoever the call looks like]
    #[arg(long = "as", value_name = "AGENT", value_parser = usage::one_of::<Agent>(Agent::ALL.iter().map(|agent| agent.name())))]
    agent: Option<Agent>,
    /// Let go after this time, before the agent loses its patience: 30s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = usage::span)]
    within: Option<Duration>,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    let moment = moment(&args.point)?;
    if out.is_json() {
        let failure = Failure::new(Code::Usage, "agents have contracts of their own; the bridge has no --json");
        return Err(failure.hint("`windlass hooks history --json` tells what hooks did").into());
    }
    if io::stdin().is_terminal() {
        let failure =
            Failure::new(Code::Usage, "nobody calls: an agent's own hook system writes a payload to standard input");
        return Err(failure
            .hint("`windlass install AGENT` has an agent call; `windlass hooks test POINT` is for people")
            .into());
    }
    let agent = args.agent.unwrap_or(Agent::Claude);
    let clock = Clock::start(args.within, move |late| drop(speak(&Words::of(agent, moment, &told(late)))));
    let call = read().and_then(|bytes| {
        let call = match args.agent {
            Some(agent) => Call::read(agent, moment, &bytes),
            None => Call::read_from_whoever(moment, &bytes, environment::is_set),
        };
        call.map_err(|error| Failure::from_error(Code::Usage, &error))
    });
    let agent = call.as_ref().map_or(agent, |call| call.agent);
    let reply = match call {
        Ok(call) => judged(context, call, &clock),
        Err(failure) => told(clock.went_wrong(&failure)),
    };
    clock.stop();
    speak(&worded(agent, moment, reply))
}

/// An answer in the agent's words. What it cannot be told, the person is.
fn worded(agent: Agent, moment: Moment, reply: Reply) -> Words {
    let words = Words::of(agent, moment, &reply);
    let left_out = words.left_out(agent, moment);
    if left_out.is_empty() {
        return words;
    }
    let message = left_out.iter().map(|line| format!("windlass: {line}")).collect::<Vec<_>>().join("\n");
    Words::of(agent, moment, &reply.and(told(message)))
}

fn moment(name: &str) -> Result<Moment, Failure> {
    let point = parse_hook_point(name);
    point.and_then(|point| Moment::of_point(point.name())).ok_or_else(|| {
        let points: Vec<&str> = Moment::ALL.iter().map(|moment| moment.point()).collect();
        let near = windlass_expr::nearest(name, &points).map(|near| format!("did you mean `{near}`? "));
        Failure::new(Code::Usage, format!("no agent calls at `{}`", text::line(name))).hint(format!(
            "{}the points are {}",
            near.unwrap_or_default(),
            points.join(", ")
        ))
    })
}

/// What the agent says. What is beyond the bound is read too, so that it is not cut off in the middle of writing.
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

/// What comes of a call, for every file that it is about: none is passed by, wherever in a patch it stands.
fn judged(context: &Context, call: Call, clock: &Clock) -> Reply {
    let moment = call.moment;
    let mut reply = Reply::default();
    for call in call.for_each_file() {
        reply =
            reply.and(answered(context, call, clock.left()).unwrap_or_else(|failure| told(clock.went_wrong(&failure))));
        // It does not happen: the others need not be looked at.
        if moment == Moment::PreToolUse && matches!(reply.ruling, Ruling::Block(_)) {
            break;
        }
    }
    reply
}

fn answered(context: &Context, call: Call, within: Option<Duration>) -> Result<Reply, Failure> {
    let directory = directory_of(context, &call);
    let Some(project) = project_of(context, &directory)? else { return Ok(Reply::default()) };
    let moment = call.moment;
    if call.is_own_prompt() || is_called_twice(&call, &project) {
        return Ok(Reply::default());
    }
    if call.conversation.is_none() && matches!(moment, Moment::Stop | Moment::SubagentStop) {
        // Nobody could say how often it was sent back already.
        return Err(Failure::new(Code::Usage, "the agent does not say which conversation this is"));
    }
    let tool = call.tool.clone();
    let calling = Calling { called: called(call), directory, moment, within, trust: context.trust };
    let bridged = answer_call(project, calling).map_err(Failure::without_trust_option)?;
    Ok(match bridged {
        Bridged::Nothing => Reply::default(),
        Bridged::Untrusted => Reply { message: Some(UNTRUSTED.to_owned()), ..Reply::default() },
        Bridged::Replied(replied) => reply(replied, tool.as_ref()),
    })
}

const UNTRUSTED: &str = "windlass: the hooks of this project are not trusted, so nothing was checked. \
                         `windlass trust` shows what would run.";

/// Where the agent works. An agent may stray from its project, and tells some hooks where that is.
fn directory_of(context: &Context, call: &Call) -> PathBuf {
    let variables: &[&str] = match call.agent {
        Agent::Claude => &["CLAUDE_PROJECT_DIR"],
        Agent::Gemini => &["GEMINI_PROJECT_DIR"],
        Agent::Qwen => &["QWEN_PROJECT_DIR"],
        Agent::Copilot => &["COPILOT_PROJECT_DIR"],
        Agent::Cursor => &["CURSOR_PROJECT_DIR"],
        // They set none: one that is there is somebody else's.
        Agent::Codex | Agent::Goose | Agent::Kimi => &[],
    };
    let said = call.directory.as_deref().map(PathBuf::from).filter(|directory| directory.is_absolute());
    environment::directory_in(variables).or(said).unwrap_or_else(|| context.directory.clone())
}

/// The project that the agent works in. Wherever somebody points to, another project's conversation is none of its
/// concern.
fn project_of(context: &Context, directory: &Path) -> Result<Option<Project>, Failure> {
    let around = project::around(directory)?;
    let named = context.project.clone().or_else(environment::project);
    let Some(named) = named else { return Ok(around) };
    let named = project::find(Some(&named), None, &context.directory)?;
    let inside = |directory: &Path| directory.canonicalize().is_ok_and(|real| real.starts_with(&named.root));
    let its_own = inside(directory) || around.is_some_and(|around| around.root == named.root);
    Ok(its_own.then_some(named))
}

/// Copilot calls what is written for Claude Code too. Where it has entries of its own, those are enough.
fn is_called_twice(call: &Call, project: &Project) -> bool {
    let is_copilot = || Agent::recognise(&call.payload, environment::is_set) == Agent::Copilot;
    call.agent == Agent::Claude && is_copilot() && status::copilot_calls(project)
}

/// A call in the engine's words.
pub fn called(call: Call) -> Called {
    let (anew, matched) = (call.begins_anew(), call.matched());
    let Call { agent, moment, conversation, last_message, prompt, tool, payload, .. } = call;
    let conversation = conversation.unwrap_or_else(|| "unknown".to_owned());
    let subagent = payload.get("agent_id").and_then(|id| id.as_str()).filter(|_| moment == Moment::SubagentStop);
    let conversation = match subagent {
        Some(subagent) => format!("{conversation}/{subagent}"),
        None => conversation,
    };
    let (prompt, output) = (prompt.unwrap_or_default(), last_message.unwrap_or_default());
    let about = match (&tool, moment) {
        (Some(tool), _) => serde_json::Value::Object(tool.input.clone()).to_string(),
        (None, Moment::UserPromptSubmit) => prompt.clone(),
        (None, _) => output.clone(),
    };
    let (tool, tool_input) = match tool {
        Some(tool) => (Some(tool.name), tool.input.into()),
        None => (None, serde_json::json!({})),
    };
    let call = engine::Call {
        caller: Caller { agent: agent.name().to_owned(), conversation },
        point: moment.point().parse().expect("the moments of agents are points"),
        tool,
        matched,
        tool_input,
        tool_response: payload.get("tool_response").cloned().unwrap_or_else(|| serde_json::json!({})),
        prompt,
        output,
        about,
        anew,
        max_retries: 0,
    };
    Called { call, payload }
}

fn reply(replied: Replied, tool: Option<&Tool>) -> Reply {
    let Replied { ruling, reason, halt, context, updated_input, updated_output, messages, .. } = replied;
    let messages: Vec<String> = messages.iter().map(|message| format!("windlass: {message}")).collect();
    Reply {
        ruling: match ruling {
            CallRuling::Pass => Ruling::Pass,
            CallRuling::Allow => Ruling::Allow(reason),
            CallRuling::Ask => Ruling::Ask(reason),
            CallRuling::Block => Ruling::Block(reason),
        },
        halt,
        context: Some(context).filter(|context| !context.is_empty()),
        updated_input: updated_input.and_then(|input| match tool {
            Some(tool) => tool.instead(input),
            None => Some(input),
        }),
        updated_output,
        message: Some(messages.join("\n")).filter(|message| !message.is_empty()),
    }
}

/// Nothing but a word to the person.
fn told(message: String) -> Reply {
    Reply { message: Some(message), ..Reply::default() }
}

fn speak(words: &Words) -> Result<u8, Stop> {
    // An agent that does not listen is still to be answered.
    let _ = put(rustix::stdio::stderr(), &words.stderr);
    put(rustix::stdio::stdout(), &words.stdout)?;
    Ok(words.exit)
}

/// Writes a line past what others may hold: whoever runs out of time cannot wait for them.
fn put(to: BorrowedFd<'_>, line: &str) -> io::Result<()> {
    if line.is_empty() {
        return Ok(());
    }
    let mut to = File::from(to.try_clone_to_owned()?);
    to.write_all(format!("{line}\n").as_bytes())
}
