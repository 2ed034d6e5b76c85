//! `windlass serve invite`: prints a link that logs a person in, or a token for a program; lists and ends logins.

use std::time::Duration;

use serde_json::json;
use windlass_app::project::Project;
use windlass_app::web_access::{AccessRecords, ViewerRole};
use windlass_app::{Failure, FailureCode};
use windlass_text as text;

use super::qr_code;
use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass serve invite ann                    a link that may look and answer
  windlass serve invite ann --may manage --valid 10m
  windlass serve invite ci --may look --token  a token for a program
  windlass serve invite --list                 who can log in or is logged in
  windlass serve invite --revoke ann           end all logins of ann

The link works once. A token goes into the header `Authorization: Bearer TOKEN`. Neither is valid for longer \
than 30 days, nor is the login of a browser.")]
pub struct Args {
    /// The name of the person or the program, for the log
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "revoke"])]
    name: Option<String>,
    /// What the viewer may do
    #[arg(long, value_name = "ROLE", default_value = "answer", value_parser = role_parser())]
    may: ViewerRole,
    /// How long the link or the token is valid [default: 10m, a token 30d]
    #[arg(long, value_name = "TIME", value_parser = parse_validity)]
    valid: Option<Duration>,
    /// Print a token for a program instead of a link
    #[arg(long)]
    token: bool,
    /// Show the link as a QR code, for a phone
    #[arg(long, conflicts_with = "token")]
    qr: bool,
    /// List the links, browsers and tokens that are valid
    #[arg(long, conflicts_with_all = ["name", "may", "valid", "token", "qr", "revoke"])]
    list: bool,
    /// End all links, browsers and tokens of a name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "may", "valid", "token", "qr"])]
    revoke: Option<String>,
}

const LINK_VALIDITY: Duration = Duration::from_secs(600);
/// The validity of a token, which is also the longest one.
const TOKEN_VALIDITY: Duration = Duration::from_secs(30 * 86_400);

fn parse_validity(text: &str) -> Result<Duration, String> {
    let valid = usage::parse_time_span(text)?;
    let is_allowed = !valid.is_zero() && valid <= TOKEN_VALIDITY;
    if is_allowed { Ok(valid) } else { Err("expected a length of time from `1s` to `30d`".to_owned()) }
}

fn role_parser() -> impl clap::builder::TypedValueParser<Value = ViewerRole> {
    usage::name_parser(ViewerRole::ALL.map(ViewerRole::name))
}

pub fn run_invite(project: &Project, args: &Args, out: &mut Output) -> CommandResult {
    let access = AccessRecords::for_project(project)?;
    if let Some(name) = &args.revoke {
        return revoke_logins(&access, name, out);
    }
    let Some(name) = &args.name else { return list_logins(&access, out) };
    if name.trim().is_empty() {
        return Err(Failure::new(FailureCode::Usage, "the name of a viewer is empty")
            .with_hint("name the person or the program, as the log should show it")
            .into());
    }
    let url = access.find_url()?.ok_or_else(unserved_failure)?;
    let valid = args.valid.unwrap_or(if args.token { TOKEN_VALIDITY } else { LINK_VALIDITY });
    let millis = i64::try_from(valid.as_millis()).unwrap_or(i64::MAX);
    if args.token {
        let token = access.create_program_token(name, args.may, millis)?;
        return match out.is_json() {
            true => out.print_json(&json!({"url": url, "token": token.text(), "may": args.may.name()})),
            false => out.print_line(token.text()),
        };
    }
    let link = access.create_login_link(name, args.may, millis)?;
    let login = format!("{url}/#code={}", link.code.text());
    match out.is_json() {
        true => out.print_json(&json!({"login": login, "may": args.may.name()})),
        false if args.qr => qr_code::print_qr_code(&login, out),
        false => out.print_line(login),
    }
}

fn list_logins(access: &AccessRecords, out: &mut Output) -> CommandResult {
    let logins = access.list_logins()?;
    if out.is_json() {
        return logins.iter().try_for_each(|login| {
            out.print_json(&json!({
                "name": login.name,
                "kind": login.kind.name(),
                "may": login.role.name(),
                "createdAt": login.created_at,
                "expiresAt": login.expires_at,
            }))
        });
    }
    if logins.is_empty() {
        let none = "no logins; `windlass serve invite NAME` prints a link that logs in";
        return out.print_line(out.paint(TextTone::Faint, none));
    }
    let width = |name: &str| text::display_width(&text::clean_line(name));
    let names = logins.iter().map(|login| width(&login.name)).max().unwrap_or(0);
    logins.iter().try_for_each(|login| {
        let name = text::pad_to_width(&text::clean_line(&login.name), names);
        let (name, kind, role) = (out.paint(TextTone::Strong, name), login.kind.name(), login.role.name());
        let from = login.created_at.map_or_else(|| "unknown".to_owned(), show::format_local_time);
        let to = show::format_local_time(login.expires_at);
        out.print_line(format_args!("{name}  {kind:<6}  {role:<6}  from {from} to {to}"))
    })
}

fn revoke_logins(access: &AccessRecords, name: &str, out: &mut Output) -> CommandResult {
    let (revoked, shown) = (access.revoke_logins(name)?, text::clean_line(name));
    if revoked == 0 {
        return Err(Failure::new(FailureCode::NotFound, format!("`{shown}` has no login"))
            .with_hint("`windlass serve invite --list` shows all logins")
            .into());
    }
    match out.is_json() {
        true => out.print_json(&json!({"name": name, "revoked": revoked})),
        false if revoked == 1 => out.print_line(format_args!("ended one login of {shown}")),
        false => out.print_line(format_args!("ended {revoked} logins of {shown}")),
    }
}

/// Returns the failure for a page that is not served.
pub fn unserved_failure() -> Failure {
    Failure::new(FailureCode::Refused, "the page is not served now")
        .with_hint("`windlass serve` in another terminal serves it")
}
