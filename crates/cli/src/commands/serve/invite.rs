//! `windlass serve invite`: prints a link that logs a person in, or a token for a program.

use std::time::Duration;

use serde_json::json;
use windlass_app::project::Project;
use windlass_app::web_access::{AccessRecords, ViewerRole};
use windlass_app::{Failure, FailureCode};

use super::qr_code;
use crate::output::{CommandResult, Output};
use crate::usage;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass serve invite ann                    a link that may look and answer
  windlass serve invite ann --may manage --valid 10m
  windlass serve invite ci --may look --token  a token for a program

The link works once. A token goes into the header `Authorization: Bearer TOKEN`.")]
pub struct Args {
    /// The name of the person or the program, for the log
    #[arg(value_name = "NAME")]
    name: String,
    /// What the viewer may do
    #[arg(long, value_name = "ROLE", default_value = "answer", value_parser = role_parser())]
    may: ViewerRole,
    /// How long the link or the token is valid [default: 10m, a token 30d]
    #[arg(long, value_name = "TIME", value_parser = usage::parse_time_span)]
    valid: Option<Duration>,
    /// Print a token for a program instead of a link
    #[arg(long)]
    token: bool,
    /// Show the link as a QR code, for a phone
    #[arg(long, conflicts_with = "token")]
    qr: bool,
}

const LINK_VALIDITY: Duration = Duration::from_secs(600);
const TOKEN_VALIDITY: Duration = Duration::from_secs(30 * 86_400);

fn role_parser() -> impl clap::builder::TypedValueParser<Value = ViewerRole> {
    usage::name_parser(ViewerRole::ALL.map(ViewerRole::name))
}

pub fn run_invite(project: &Project, args: &Args, out: &mut Output) -> CommandResult {
    if args.name.trim().is_empty() {
        return Err(Failure::new(FailureCode::Usage, "the name of a viewer is empty")
            .with_hint("name the person or the program, as the log should show it")
            .into());
    }
    let access = AccessRecords::for_project(project)?;
    let url = access.find_url()?.ok_or_else(unserved_failure)?;
    let valid = args.valid.unwrap_or(if args.token { TOKEN_VALIDITY } else { LINK_VALIDITY });
    let millis = i64::try_from(valid.as_millis()).unwrap_or(i64::MAX);
    if args.token {
        let token = access.create_program_token(&args.name, args.may, millis)?;
        return match out.is_json() {
            true => out.print_json(&json!({"url": url, "token": token.text(), "may": args.may.name()})),
            false => out.print_line(token.text()),
        };
    }
    let link = access.create_login_link(&args.name, args.may, millis)?;
    let login = format!("{url}/#code={}", link.code.text());
    match out.is_json() {
        true => out.print_json(&json!({"login": login, "may": args.may.name()})),
        false if args.qr => qr_code::print_qr_code(&login, out),
        false => out.print_line(login),
    }
}

/// Returns the failure for a page that is not served.
pub fn unserved_failure() -> Failure {
    Failure::new(FailureCode::Refused, "the page is not served now")
        .with_hint("`windlass serve` in another terminal serves it")
}
