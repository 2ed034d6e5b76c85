//! `windlass why TASK|SESSION|HOOK|SERIES|CONVERSATION`: prints each decision with its author and evidence, and the next command. The
//! command reads the log only; it runs nothing and writes nothing.
//!
//! Not here: the facts (`windlass_app::why`).

mod report_printer;

use windlass_app::context::CommandContext;
use windlass_app::why::WhySubject;

use self::report_printer::{ReportLength, print_report};
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass why T3                              explain the state of a task
  windlass why                                 explain the newest session
  windlass why fix-the-lo                      explain a session
  windlass why IT-12                           explain a series of iterations
  windlass why HOOK-9                          explain a registered stop hook
  windlass why 0b7c2f6e-43d1                   explain calls of the bridge
  windlass why --conversation                  explain the last conversation
  windlass why T3 --full                       show every fact with its evidence
  windlass why T3 --json | jq '.facts[] | {type, what, by}'

A name is looked up as a task first, then as a session, a stop hook or a series of iterations, as a \
conversation, and last as the start of a session's name. For a conversation, the first six letters of the id are \
enough, or as many as make it unique; `claude:ID` names the conversation of one agent.")]
pub struct Args {
    /// A task (T3), a session name or its start, a stop hook (HOOK-9), a series of
    /// iterations (IT-12), or the id of a conversation
    /// [default: the newest session]
    #[arg(value_name = "TASK|SESSION|HOOK|SERIES|CONVERSATION")]
    subject: Option<String>,
    /// Explain the conversation of the agent that called last
    #[arg(long, conflicts_with = "subject")]
    conversation: bool,
    /// Show every fact with all of its evidence
    #[arg(long)]
    full: bool,
}

pub fn run_why(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let subject = match &args.subject {
        Some(name) => WhySubject::find_subject(&opened, name)?,
        None if args.conversation => WhySubject::find_newest_conversation(&opened)?,
        None => WhySubject::Session(opened.find_session_or_newest(None)?.name),
    };
    let length = if args.full { ReportLength::Full } else { ReportLength::Summary };
    print_report(&subject.build_report(&opened)?, length, out)
}
