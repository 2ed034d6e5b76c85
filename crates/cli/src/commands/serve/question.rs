//! `windlass serve question`: prints a link with which a person answers one question, without a login.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::views::find_waiting_item;
use windlass_app::web_access::AccessRecords;
use windlass_app::{Failure, FailureCode};
use windlass_text::clean_line;

use super::invite::unserved_failure;
use super::qr_code;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass serve question T1        print a link
  windlass serve question T1 --qr   show it as a QR code, for a phone

The link shows one question, and answers it once. It ends with the question. `windlass status` lists the questions.")]
pub struct Args {
    /// The task or the session that waits for an answer
    #[arg(value_name = "TASK|SESSION")]
    subject: String,
    /// Show the link as a QR code, for a phone
    #[arg(long)]
    qr: bool,
}

pub fn run_question(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let item = find_waiting_item(&opened, &args.subject)?.filter(|item| !item.answers.is_empty());
    if item.is_none() {
        let message = format!("`{}` waits for no answer", clean_line(&args.subject));
        return Err(Failure::new(FailureCode::Refused, message)
            .with_hint("`windlass status` lists the questions")
            .into());
    }
    let access = AccessRecords::for_project(&opened.project)?;
    let link = access.create_question_link(&args.subject)?.ok_or_else(unserved_failure)?;
    match out.is_json() {
        true => out.print_json(&json!({"link": link})),
        false if args.qr => qr_code::print_qr_code(&link, out),
        false => out.print_line(link),
    }
}
