//! `windlass fleet status` and `windlass fleet doctor`.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::fleet::{FleetFinding, FleetReport, MachineReport, build_fleet_report};
use windlass_app::{hints, time_format};
use windlass_store::Lifetime;
use windlass_text as text;

use crate::output::{CommandResult, EarlyExit, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet status")]
pub struct StatusArgs {}

pub fn run_status(context: &CommandContext, _: &StatusArgs, out: &mut Output) -> CommandResult {
    // The report itself brings the copy up to date.
    let opened = context.open_project_for(Lifetime::Service)?;
    let report = build_fleet_report(&opened)?;
    if out.is_json() {
        return out.print_json(&report);
    }
    print_report(&report, out)
}

fn print_report(report: &FleetReport, out: &mut Output) -> CommandResult {
    let rows = [
        ("fleet", text::clean_line(&report.address).into_owned()),
        ("service", describe_service(report)),
        ("this copy", describe_copy(report)),
    ];
    for (label, value) in rows {
        out.print_line(format_args!("{} {value}", text::pad_to_width(label, 10)))?;
    }
    out.print_line("")?;
    for machine in &report.machines {
        out.print_line(describe_machine(machine, out))?;
    }
    for finding in &report.findings {
        print_finding(finding, out)?;
    }
    Ok(())
}

fn describe_service(report: &FleetReport) -> String {
    match (&report.service, &report.outage) {
        (Some(service), _) => {
            let log = service.log.as_ref().map_or_else(
                || "no log".to_owned(),
                |log| {
                    let servers = match log.replicas {
                        Some(1) => " on 1 server".to_owned(),
                        Some(replicas) => format!(" on {replicas} servers"),
                        None => String::new(),
                    };
                    let plural = if log.messages == 1 { "" } else { "s" };
                    format!("{} message{plural}{servers}", log.messages)
                },
            );
            let trip = service.round_trip.as_secs_f64() * 1000.0;
            format!("{}, {log}, {trip:.1} ms away", text::clean_line(&service.name))
        }
        (None, outage) => {
            let why = outage.as_deref().unwrap_or("unknown");
            text::clean_line(why).into_owned()
        }
    }
}

fn describe_copy(report: &FleetReport) -> String {
    let lag = match report.lag {
        Some(0) => "up to date".to_owned(),
        Some(lag) => format!("{lag} messages behind"),
        None => "as it was last".to_owned(),
    };
    format!("{} events, {lag}", report.position)
}

fn describe_machine(machine: &MachineReport, out: &Output) -> String {
    let this = if machine.is_this { " (this machine)" } else { "" };
    let state = match (machine.owners, machine.silent_millis, machine.sessions.is_empty()) {
        (0, _, true) => "no work".to_owned(),
        (0, _, false) => "silent".to_owned(),
        (owners, age, _) => {
            let processes = if owners == 1 { "1 process".to_owned() } else { format!("{owners} processes") };
            let age = age.map(|age| format!(", seen {} ago", time_format::format_millis(age))).unwrap_or_default();
            format!("{processes}{age}")
        }
    };
    let sessions =
        if machine.sessions.is_empty() { String::new() } else { format!(": {}", machine.sessions.join(", ")) };
    format!(
        "{}{this}  {state}{}",
        out.paint(TextTone::Name, text::clean_line(&machine.machine)),
        text::clean_line(&sessions)
    )
}

fn print_finding(finding: &FleetFinding, out: &mut Output) -> CommandResult {
    let (tone, label) = if finding.is_problem { (TextTone::Bad, "problem:") } else { (TextTone::Warning, "note:") };
    out.print_line(format_args!("{} {}", out.paint(tone, label), text::clean_line(&finding.text)))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet doctor

The exit code is 1 if something has to be changed.")]
pub struct DoctorArgs {}

pub fn run_doctor(context: &CommandContext, _: &DoctorArgs, out: &mut Output) -> Result<u8, EarlyExit> {
    let opened = context.open_project_for(Lifetime::Service)?;
    let mut report = build_fleet_report(&opened)?;
    for scope in opened.store.find_wrong_scopes().map_err(hints::store_failure)? {
        let text = format!("the version of {scope} differs from its row; `windlass fleet repair` reads the log again");
        report.findings.push(FleetFinding { text, is_problem: true });
    }
    if let Some(outage) = &report.outage {
        let text = outage.clone();
        report.findings.push(FleetFinding { text, is_problem: true });
    }
    let problems = report.findings.iter().filter(|finding| finding.is_problem).count();
    if out.is_json() {
        out.print_json(&json!({"problems": problems, "report": report}))?;
    } else {
        print_report(&report, out)?;
        match problems {
            0 => out.print_line(out.paint(TextTone::Good, "nothing has to be changed"))?,
            1 => out.print_line(out.paint(TextTone::Bad, "1 problem"))?,
            count => out.print_line(out.paint(TextTone::Bad, format_args!("{count} problems")))?,
        }
    }
    Ok(u8::from(problems > 0))
}
