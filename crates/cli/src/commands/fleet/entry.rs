//! `windlass fleet create`, `join`, `leave` and `repair`.

use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::fleet::{self, EntryReport, EntryRequest, FleetAddress, LogSettings, OwnLogPolicy};
use windlass_app::project::quote_shell_word;
use windlass_app::{Failure, FailureCode};
use windlass_store::Lifetime;
use windlass_text as text;

use super::progress_line::ProgressLine;
use crate::commands::confirmation::{ask_yes_or_no, can_ask_person};
use crate::output::{CommandResult, Output, TextTone};

/// How to reach a fleet.
#[derive(Debug, clap::Args)]
pub struct AddressArgs {
    /// Address: `nats://`, `tls://` or `postgres://`
    url: String,
    /// Read credentials from this file, outside the project
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// Trust the certificates in this file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Name this machine; default: its host name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Use a service that could lose acknowledged events
    #[arg(long)]
    accept_loss: bool,
}

impl AddressArgs {
    /// Returns the options that another machine needs to join, too.
    fn join_options(&self) -> String {
        let file = |option: &str, file: &Option<PathBuf>| match file {
            Some(file) => format!(" {option} {}", quote_shell_word(&file.to_string_lossy())),
            None => String::new(),
        };
        let loss = if self.accept_loss { " --accept-loss" } else { "" };
        format!("{}{}{loss}", file("--creds", &self.creds), file("--ca", &self.ca))
    }

    fn into_request(self) -> Result<EntryRequest, Failure> {
        let address: FleetAddress = self.url.parse().map_err(|error| {
            Failure::from_error(FailureCode::Usage, &error)
                .with_hint("for example `nats://127.0.0.1:4222/shop`: the server, and the name of the project there")
        })?;
        Ok(EntryRequest {
            address,
            credentials: self.creds,
            certificates: self.ca,
            machine_name: self.name,
            accepts_loss: self.accept_loss,
        })
    }
}

/// The settings of a new log.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct LogArgs {
    /// Keep each message on this many servers of NATS
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Say that each server of NATS has `sync_interval: always`
    #[arg(long)]
    sync_always: bool,
}

impl LogArgs {
    fn settings(self) -> LogSettings {
        LogSettings { replicas: usize::from(self.replicas), syncs_always: self.sync_always }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet create nats://127.0.0.1/shop --replicas 1 --accept-loss
  windlass fleet create tls://n1,n2,n3/shop --creds shop.creds --sync-always
  windlass fleet create postgres://ann@db/agents/shop --creds ~/.pgpass

The whole log of this project is published. Positions and digests stay as they
are.")]
pub struct CreateArgs {
    #[command(flatten)]
    address: AddressArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Print the least rights of a member on the service, and create nothing
    #[arg(long)]
    print_permissions: bool,
}

pub fn run_create(context: &CommandContext, args: CreateArgs, out: &mut Output) -> CommandResult {
    let options = args.address.join_options();
    let request = args.address.into_request()?;
    if args.print_permissions {
        let permissions = fleet::describe_permissions(&request.address);
        return match out.is_json() {
            true => out.print_json(&json!({"permissions": permissions})),
            false => out.print_line(permissions.trim_end()),
        };
    }
    let all = match context.open_project_to_read() {
        Ok(opened) => opened.store.head().map_err(windlass_app::hints::store_failure)?.0,
        Err(_) => 0,
    };
    let mut progress = ProgressLine::new("publishing");
    let report = fleet::create_fleet(context, &request, args.log.settings(), &mut |head| progress.show(head.0, all))?;
    drop(progress);
    print_entry(&report, "created", out)?;
    if !out.is_json() {
        out.print_line("")?;
        out.print_line("Next, on another machine, in a clone of the repository:")?;
        out.print_line(format_args!("  windlass fleet join {}{options}", text::clean_line(&report.address)))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet join nats://127.0.0.1:4222/shop
  windlass fleet join tls://n1.example.org/shop --creds ~/shop.creds

Members of a fleet give work to each other's agents: join a fleet only if you
trust its members. The configuration counts on this machine only after
`windlass trust`.")]
pub struct JoinArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Put a log of this project's own away, into `.windlass/backups`
    #[arg(long, conflicts_with = "import_open")]
    discard: bool,
    /// Put it away, and create its open tasks in the fleet
    #[arg(long)]
    import_open: bool,
}

pub fn run_join(context: &CommandContext, args: JoinArgs, out: &mut Output) -> CommandResult {
    let request = args.address.into_request()?;
    let mut progress = ProgressLine::new("reading");
    let own_log = match (args.discard, args.import_open) {
        (_, true) => OwnLogPolicy::ImportOpenTasks,
        (true, false) => OwnLogPolicy::Discard,
        (false, false) => OwnLogPolicy::Refuse,
    };
    let report = fleet::join_fleet(context, &request, own_log, &mut |head, left| {
        progress.show(head.0, head.0 + left);
    })?;
    drop(progress);
    print_entry(&report, "joined", out)
}

fn print_entry(report: &EntryReport, done: &str, out: &mut Output) -> CommandResult {
    if out.is_json() {
        return out.print_json(&json!({
            "address": report.address, "machine": report.machine, "events": report.events,
            "service": report.service, "discarded": report.discarded.as_ref().map(|file| file.to_string_lossy()),
            "imported": report.imported.iter().map(|(old, new)| json!({"old": old, "new": new})).collect::<Vec<_>>(),
        }));
    }
    out.print_line(format_args!(
        "{} {}",
        out.paint(TextTone::Good, format_args!("{done} the fleet")),
        text::clean_line(&report.address)
    ))?;
    out.print_line(format_args!("  machine  {}", text::clean_line(&report.machine)))?;
    out.print_line(format_args!("  service  {}", text::clean_line(&report.service.name)))?;
    out.print_line(format_args!("  events   {}", report.events))?;
    if let Some(file) = &report.discarded {
        out.print_line(format_args!("  put away {}", text::clean_line(&file.to_string_lossy())))?;
    }
    for (old, new) in &report.imported {
        out.print_line(format_args!("  {old} is {new} now"))?;
    }
    for weakness in &report.service.weaknesses {
        out.print_line(format_args!("{} {}", out.paint(TextTone::Warning, "accepted:"), text::clean_line(weakness)))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet leave

Commit and push the work of this machine first: others see only what is on the
shared remote.")]
pub struct LeaveArgs {
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run_leave(context: &CommandContext, args: &LeaveArgs, out: &mut Output) -> CommandResult {
    if !args.yes && can_ask_person(out) {
        let question = "Leave the fleet? Work of this machine then stays here, and the others do not see it.";
        if !ask_yes_or_no(question, out)? {
            return out.print_line("Nothing was changed.");
        }
    }
    let report = fleet::leave_fleet(context)?;
    if out.is_json() {
        return out.print_json(&json!({"address": report.address, "events": report.events}));
    }
    let address = report.address.map(|address| format!(" {}", text::clean_line(&address))).unwrap_or_default();
    out.print_line(format_args!("{}{address}", out.paint(TextTone::Good, "left the fleet")))?;
    out.print_line(format_args!("  events   {}, with the same positions", report.events))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet repair

Each member that stops with a fork runs this: first one that has all events,
then the others. Where two logs really differ, nothing is changed.")]
pub struct RepairArgs {
    #[command(flatten)]
    log: LogArgs,
}

pub fn run_repair(context: &CommandContext, args: &RepairArgs, out: &mut Output) -> CommandResult {
    let all = context.open_project_for(Lifetime::Service)?.store.head().map_err(windlass_app::hints::store_failure)?.0;
    let mut progress = ProgressLine::new("publishing");
    let report = fleet::repair_fleet(context, args.log.settings(), &mut |head| progress.show(head.0, all))?;
    drop(progress);
    if out.is_json() {
        return out.print_json(&json!({"published": report.published, "added": report.added}));
    }
    if report.published == 0 && report.added == 0 {
        return out.print_line("This copy follows the log; both have the same events.");
    }
    out.print_line(format_args!("{} this copy", out.paint(TextTone::Good, "repaired")))?;
    out.print_line(format_args!("  published again  {}", report.published))?;
    out.print_line(format_args!("  taken            {}", report.added))
}
