//! The state of a fleet as one machine sees it: the service, the machines, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use windlass_config::Config;
use windlass_engine::{Digest, Seq};
use windlass_fleet::{OwnerHeartbeat, ServiceReport};
use windlass_process::MachineTag;

use super::entry::no_fleet_failure;
use super::{FleetMembership, connect_project};
use crate::context::OpenedProject;
use crate::failure::describe_with_causes;
use crate::{Failure, hints};

/// The difference of clocks that is named.
const NAMED_SKEW_MILLIS: u64 = 5000;

/// The state of a fleet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetReport {
    pub address: String,
    /// This machine.
    pub machine: String,
    /// None if the service cannot be reached: then the rest is of this copy.
    pub service: Option<ServiceReport>,
    pub outage: Option<String>,
    /// The last event of this copy.
    pub position: u64,
    /// The messages that this copy has not read.
    pub lag: Option<u64>,
    pub machines: Vec<MachineReport>,
    pub findings: Vec<FleetFinding>,
}

/// A machine of the fleet that works, or that holds a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    pub machine: String,
    pub is_this: bool,
    /// Its processes that work on tasks now.
    pub owners: usize,
    /// The sessions that its processes hold.
    pub sessions: Vec<String>,
    /// The age of its newest heartbeat, in milliseconds.
    pub silent_millis: Option<u64>,
    pub version: Option<String>,
    pub config: Option<String>,
    /// The last event of its copy, as it said last.
    pub position: Option<u64>,
}

/// Something that a person should know or change.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetFinding {
    pub text: String,
    pub is_problem: bool,
}

/// Returns the digest that tells configurations apart.
pub fn config_digest(config: &Config) -> String {
    Digest::of_bytes(config.text().to_string().as_bytes()).to_string()[..12].to_owned()
}

/// Asks the service and the copy, and folds what is new.
pub fn build_fleet_report(opened: &OpenedProject) -> Result<FleetReport, Failure> {
    let Some((membership, mut service)) = connect_project(&opened.project)? else { return Err(no_fleet_failure()) };
    let mut findings = Vec::new();
    let caught_up = opened.store.catch_up();
    let mut outage = None;
    let found = service.inspect_service();
    let heartbeats = match &found {
        Ok(_) => match service.list_heartbeats() {
            Ok(list) => list.heartbeats,
            Err(error) => {
                let text = format!("the heartbeats of the machines cannot be read: {}", describe_with_causes(&error));
                findings.push(FleetFinding { text, is_problem: true });
                Vec::new()
            }
        },
        Err(error) => {
            outage = Some(describe_with_causes(error));
            Vec::new()
        }
    };
    if let (Err(error), None) = (&caught_up, &outage) {
        let hint = hints::fleet_store_hint(error).map(|hint| format!("; {hint}")).unwrap_or_default();
        findings.push(FleetFinding { text: format!("{}{hint}", describe_with_causes(error)), is_problem: true });
    }
    if let (Ok(_), None) = (&caught_up, &outage)
        && let Err(error) =
            service.subscribe_after(opened.store.replica_cursor().map_err(hints::store_failure)?.unwrap_or(0))
    {
        let text =
            format!("the service sends no new messages, so commits take longer: {}", describe_with_causes(&error));
        findings.push(FleetFinding { text, is_problem: true });
    }
    let report = found.ok();
    if let Some(report) = &report {
        for weakness in &report.weaknesses {
            findings.push(FleetFinding { text: weakness.clone(), is_problem: !membership.accepts_loss });
        }
        if report.clock_skew_millis.unsigned_abs() > NAMED_SKEW_MILLIS {
            let seconds = report.clock_skew_millis / 1000;
            let text = format!("the clock of this machine differs from the clock of the service by {seconds} s");
            findings.push(FleetFinding { text, is_problem: true });
        }
    }
    let own_config = Config::load(&opened.project.root).ok().map(|config| config_digest(&config));
    for (heartbeat, _) in &heartbeats {
        if own_config.as_ref().is_some_and(|own| *own != heartbeat.config) {
            let text = format!("{} works with another configuration", machine_name(&heartbeat.machine));
            findings.push(FleetFinding { text, is_problem: false });
        }
        let own_link = opened.store.chain_link_at(Seq(heartbeat.position)).map_err(hints::store_failure)?;
        if own_link.is_some_and(|link| link != heartbeat.chain) {
            let (machine, position) = (machine_name(&heartbeat.machine), heartbeat.position);
            let text =
                format!("{machine} has another log up to event {position}: stop both machines, and compare them");
            findings.push(FleetFinding { text, is_problem: true });
        }
        if heartbeat.version != env!("CARGO_PKG_VERSION") {
            let text = format!("{} runs Windlass {}", machine_name(&heartbeat.machine), heartbeat.version);
            findings.push(FleetFinding { text, is_problem: false });
        }
    }
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.text.clone()));
    let cursor = opened.store.replica_cursor().map_err(hints::store_failure)?;
    let last = report.as_ref().and_then(|report| report.log.as_ref()).map(|log| log.last_sequence);
    Ok(FleetReport {
        address: membership.address.clone(),
        machine: membership.machine(&opened.project).to_string(),
        service: report,
        outage,
        position: opened.store.head().map_err(hints::store_failure)?.0,
        lag: last.zip(cursor).map(|(last, cursor)| last.saturating_sub(cursor)),
        machines: list_machines(opened, &membership, &heartbeats)?,
        findings,
    })
}

fn machine_name(machine: &str) -> String {
    machine.parse::<MachineTag>().map_or_else(|_| machine.to_owned(), |tag| tag.name().to_owned())
}

/// Returns this machine, the machines with a heartbeat, and those that hold an unfinished session.
fn list_machines(
    opened: &OpenedProject,
    membership: &FleetMembership,
    heartbeats: &[(OwnerHeartbeat, Duration)],
) -> Result<Vec<MachineReport>, Failure> {
    let own = membership.machine(&opened.project).to_string();
    let mut machines = BTreeMap::new();
    add_machine(&mut machines, &own, &own);
    for (heartbeat, age) in heartbeats {
        let machine = add_machine(&mut machines, &heartbeat.machine, &own);
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        machine.owners += 1;
        if machine.silent_millis.is_none_or(|newest| age <= newest) {
            machine.silent_millis = Some(age);
            machine.version = Some(heartbeat.version.clone());
            machine.config = Some(heartbeat.config.clone());
            machine.position = Some(heartbeat.position);
        }
    }
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    for session in snapshot.open_sessions().map_err(hints::store_failure)? {
        if let Some(tag) = MachineTag::find_in_owner_name(session.owner.as_str()) {
            add_machine(&mut machines, &tag.to_string(), &own).sessions.push(session.name.to_string());
        }
    }
    Ok(machines.into_values().collect())
}

fn add_machine<'m>(machines: &'m mut BTreeMap<String, MachineReport>, name: &str, own: &str) -> &'m mut MachineReport {
    machines.entry(name.to_owned()).or_insert_with(|| MachineReport {
        machine: name.to_owned(),
        is_this: name == own,
        owners: 0,
        sessions: Vec::new(),
        silent_millis: None,
        version: None,
        config: None,
        position: None,
    })
}
