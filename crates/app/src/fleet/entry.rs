//! How a project enters a fleet and leaves it, and the repair of its copy.
//!
//! Invariants:
//! - The membership is saved before the store becomes a copy: a store that is a copy always has a way to its log.
//! - Nothing enters or leaves while a session of this machine runs: its owners would change their names.

use std::path::PathBuf;

use windlass_engine::{Seq, TaskId};
use windlass_fleet::{FleetAccess, FleetAddress, LogSettings, ServiceReport};
use windlass_store::{Lifetime, RepairReport, SqliteStore, StoreError};

use super::FleetMembership;
use super::connection::open_service;
use super::heartbeats::service_failure;
use super::open_task_import::import_open_tasks;
use crate::context::{CommandContext, OpenedProject};
use crate::person::require_person;
use crate::project::{Project, quote_shell_word};
use crate::{Failure, FailureCode, environment, hints, project_setup, store_records};

/// How a person names a fleet.
#[derive(Debug, Clone)]
pub struct EntryRequest {
    pub address: FleetAddress,
    pub credentials: Option<PathBuf>,
    pub certificates: Option<PathBuf>,
    /// The name of this machine; the name of the host if none is given.
    pub machine_name: Option<String>,
    /// The weaknesses of the service are accepted.
    pub accepts_loss: bool,
}

fn existing_log_failure(membership: &FleetMembership) -> Failure {
    let address = &membership.address;
    Failure::new(FailureCode::Fleet, format!("cannot create the fleet {address}"))
        .with_cause("its log has other events than this project")
        .with_hint(format!(
            "`windlass fleet join {}` joins it; or choose another project name",
            quote_shell_word(address)
        ))
}

/// The treatment of a log of the project's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnLogPolicy {
    Refuse,
    /// It is put away.
    Discard,
    /// It is put away, and its open tasks are created in the fleet.
    ImportOpenTasks,
}

/// A project that has entered a fleet.
#[derive(Debug, Clone)]
pub struct EntryReport {
    pub machine: String,
    pub address: String,
    pub events: u64,
    pub service: ServiceReport,
    /// The file of a log of the project's own that was put away.
    pub discarded: Option<PathBuf>,
    /// The tasks that were created from it: their old ids, and their new ones.
    pub imported: Vec<(TaskId, TaskId)>,
}

impl EntryRequest {
    /// Resolves the files of the request, and describes the member.
    fn membership(&self, context: &CommandContext, project: &Project) -> Result<FleetMembership, Failure> {
        let resolve = |file: &PathBuf| -> Result<PathBuf, Failure> {
            context.directory.join(file).canonicalize().map_err(|error| {
                Failure::new(FailureCode::Usage, format!("cannot read `{}`", file.display())).with_cause(error)
            })
        };
        let credentials = self.credentials.as_ref().map(resolve).transpose()?;
        if let Some(inside) = credentials.as_ref().filter(|file| file.starts_with(&project.root)) {
            return Err(Failure::new(FailureCode::Usage, format!("cannot use `{}`", inside.display()))
                .with_cause("credentials inside the project could be committed")
                .with_hint("move the file out of the project"));
        }
        let certificates = self.certificates.as_ref().map(resolve).transpose()?;
        let access = FleetAccess { address: self.address.clone(), credentials, certificates };
        let name = self.machine_name.clone().unwrap_or_else(environment::host_name);
        FleetMembership::new(project, &access, &name, self.accepts_loss)
    }
}

/// Makes a log on a service, publishes the project's log there, and turns the store into a copy of it.
pub fn create_fleet(
    context: &CommandContext,
    request: &EntryRequest,
    settings: LogSettings,
    show_progress: &mut dyn FnMut(Seq),
) -> Result<EntryReport, Failure> {
    let mut opened = context.open_or_create_project(Lifetime::Command)?;
    check_entry(&opened)?;
    let project = opened.project.clone();
    let membership = request.membership(context, &project)?;
    let mut service = open_service(&membership)?;
    refuse_unfinished_work(&opened)?;
    let report = service.inspect_service().map_err(|error| service_failure(&error))?;
    let expected = settings.list_weaknesses(request.address.service());
    let weaknesses = report.weaknesses.iter().cloned().chain(expected).collect();
    refuse_weaknesses(weaknesses, &membership)?;
    let is_begun = report.log.as_ref().is_some_and(|log| log.messages > 0);
    let machine = membership.machine(&project).to_string();
    if !is_begun {
        service.create_log(settings).map_err(|error| service_failure(&error))?;
    }
    let report = service.inspect_service().map_err(|error| service_failure(&error))?;
    membership.save(&project)?;
    opened.store.attach_log(service, machine.clone());
    let published = match is_begun {
        // An earlier upload of this log broke off, or the log is another one.
        true => with_fresh_copy(&project, &membership, |fresh| {
            opened.store.resume_upload(fresh, &mut *show_progress).map_err(|error| match error {
                StoreError::Forked { .. } => existing_log_failure(&membership),
                error => hints::store_failure(error),
            })
        }),
        false => opened.store.publish_log(&mut *show_progress).map_err(hints::store_failure),
    };
    if let Err(failure) = published {
        FleetMembership::remove(&project)?;
        return Err(failure);
    }
    Ok(EntryReport {
        machine,
        address: membership.address.clone(),
        events: opened.store.head().map_err(hints::store_failure)?.0,
        service: report,
        discarded: None,
        imported: Vec::new(),
    })
}

/// Makes this project a copy of a fleet's log, and reads all of it.
pub fn join_fleet(
    context: &CommandContext,
    request: &EntryRequest,
    own_log: OwnLogPolicy,
    show_progress: &mut dyn FnMut(Seq, u64),
) -> Result<EntryReport, Failure> {
    let project = match context.find_project() {
        Ok(project) => project,
        Err(failure) if failure.code == FailureCode::NoProject => {
            project_setup::prepare_project(&context.directory)?.project
        }
        Err(failure) => return Err(failure),
    };
    let store = store_records::open_or_create_store(&project, Lifetime::Command, context.trust)?;
    let mut opened = context.with_open_store(project.clone(), store);
    require_person(&project)?;
    // A copy whose membership is lost is connected again; its last event shows whether it is the same log.
    let is_copy = opened.store.is_replica().map_err(hints::store_failure)?;
    match is_copy && FleetMembership::find(&project)?.is_none() {
        true => refuse_running_sessions(&opened)?,
        false => check_entry(&opened)?,
    }
    let own = if is_copy { Seq::START } else { opened.store.head().map_err(hints::store_failure)? };
    if own > Seq::START && own_log == OwnLogPolicy::Refuse {
        return Err(Failure::new(FailureCode::Fleet, "cannot join a fleet with a log of this project's own")
            .with_cause(format!("the store has {} events that the fleet does not know", own.0))
            .with_hint(
                "`--import-open` puts this log away, into `.windlass/backups`, and creates its open tasks in the fleet; \
                 `--discard` joins without them",
            ));
    }
    let membership = request.membership(context, &project)?;
    let mut service = open_service(&membership)?;
    let report = service.inspect_service().map_err(|error| service_failure(&error))?;
    refuse_weaknesses(report.weaknesses.clone(), &membership)?;
    let last = match &report.log {
        Some(log) => log.last_sequence,
        None => {
            return Err(Failure::new(FailureCode::Fleet, format!("there is no fleet {}", membership.address))
                .with_hint("`windlass fleet create URL` makes it, on the machine that has the project's log"));
        }
    };
    let discarded = match own > Seq::START {
        true => {
            let file = store_records::put_store_away(&project, opened.store)?;
            let store = store_records::open_or_create_store(&project, Lifetime::Command, context.trust)?;
            opened = context.with_open_store(project.clone(), store);
            Some(file)
        }
        false => None,
    };
    let machine = membership.machine(&project).to_string();
    if !is_copy {
        membership.save(&project)?;
        opened.store.join_log().map_err(hints::store_failure)?;
    }
    opened.store.attach_log(service, machine.clone());
    let read = opened.store.catch_up_with_progress(|head, sequence| show_progress(head, last.saturating_sub(sequence)));
    read.map_err(hints::store_failure)?;
    if is_copy {
        membership.save(&project)?;
    }
    let imported = match (&discarded, own_log) {
        (Some(file), OwnLogPolicy::ImportOpenTasks) => import_open_tasks(&mut opened, file).map_err(|failure| {
            let file = file.display();
            failure.with_cause(format!("the project is in the fleet; its own log is in {file}"))
        })?,
        _ => Vec::new(),
    };
    Ok(EntryReport {
        machine,
        address: membership.address.clone(),
        events: opened.store.head().map_err(hints::store_failure)?.0,
        service: report,
        discarded,
        imported,
    })
}

/// A project that has left its fleet.
#[derive(Debug, Clone)]
pub struct LeaveReport {
    pub address: Option<String>,
    pub events: u64,
}

/// Turns the copy into a store of its own, which has the whole project.
pub fn leave_fleet(context: &CommandContext) -> Result<LeaveReport, Failure> {
    let project = context.find_project()?;
    require_person(&project)?;
    let membership = FleetMembership::find(&project)?;
    let mut opened = context.open_project_for(Lifetime::Service)?;
    if !opened.store.is_replica().map_err(hints::store_failure)? {
        FleetMembership::remove(&project)?;
        return Err(no_fleet_failure());
    }
    refuse_running_sessions(&opened)?;
    if opened.store.has_log()
        && let Err(error) = opened.store.catch_up()
    {
        let note = format!("{error}: events that this copy has not read stay with the fleet");
        opened.front_end.show_notice(crate::Notice::Warning(&note));
    }
    opened.store.leave_log().map_err(hints::store_failure)?;
    FleetMembership::remove(&project)?;
    Ok(LeaveReport {
        address: membership.map(|membership| membership.address),
        events: opened.store.head().map_err(hints::store_failure)?.0,
    })
}

/// Brings a copy in line with a log that may have lost messages, or with an empty one.
pub fn repair_fleet(
    context: &CommandContext,
    settings: LogSettings,
    show_progress: &mut dyn FnMut(Seq),
) -> Result<RepairReport, Failure> {
    let mut opened = context.open_project_for(Lifetime::Service)?;
    let Some(membership) = FleetMembership::find(&opened.project)? else { return Err(no_fleet_failure()) };
    require_person(&opened.project)?;
    let mut service = open_service(&membership)?;
    let report = service.inspect_service().map_err(|error| service_failure(&error))?;
    if report.log.is_none() {
        refuse_weaknesses(settings.list_weaknesses(membership.access()?.address.service()), &membership)?;
        service.create_log(settings).map_err(|error| service_failure(&error))?;
    }
    drop(service);
    let project = opened.project.clone();
    with_fresh_copy(&project, &membership, |fresh| {
        opened.store.repair_copy(fresh, show_progress).map_err(|error| match error {
            StoreError::Forked { after, .. } => Failure::new(FailureCode::Fleet, "cannot repair this copy")
                .with_cause(format!("the log and this copy have different events up to event {after}"))
                .with_hint(format!(
                    "keep one of them: `windlass fleet leave` keeps this copy; after it, `windlass fleet join {} --discard` \
                     takes the log",
                    quote_shell_word(&membership.address)
                )),
            error => hints::store_failure(error),
        })
    })
}

/// Runs `work` with a copy that has just read the whole log, and is removed afterwards.
fn with_fresh_copy<T>(
    project: &Project,
    membership: &FleetMembership,
    work: impl FnOnce(&mut SqliteStore) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = project.create_record_directory("repair")?.join(format!("copy-{}.db", std::process::id()));
    let mut fresh = store_records::create_scratch_store(&file)?;
    let done = open_service(membership).and_then(|service| {
        fresh.join_log().map_err(hints::store_failure)?;
        fresh.attach_log(service, membership.machine(project).to_string());
        fresh.catch_up().map_err(hints::store_failure)?;
        work(&mut fresh)
    });
    drop(fresh);
    store_records::remove_scratch_store(&file);
    done
}

pub(super) fn no_fleet_failure() -> Failure {
    Failure::new(FailureCode::Fleet, "this project is in no fleet")
        .with_hint("`windlass fleet create URL` makes one, `windlass fleet join URL` joins one")
}

/// Refuses a service that could lose messages, unless a person has accepted that.
fn refuse_weaknesses(weaknesses: Vec<String>, membership: &FleetMembership) -> Result<(), Failure> {
    if membership.accepts_loss || weaknesses.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(FailureCode::Fleet, format!("{} could lose acknowledged events", membership.address));
    let failure = weaknesses.iter().fold(failure, Failure::with_cause);
    Err(failure.with_hint("change these settings; to use it anyway, add `--accept-loss`"))
}

fn check_entry(opened: &OpenedProject) -> Result<(), Failure> {
    require_person(&opened.project)?;
    if opened.store.is_replica().map_err(hints::store_failure)? {
        let address = FleetMembership::find(&opened.project)?.map(|membership| membership.address);
        let of = address.map(|address| format!(" {address}")).unwrap_or_default();
        return Err(Failure::new(FailureCode::Fleet, format!("this project is in the fleet{of} already"))
            .with_hint("`windlass fleet leave` leaves it"));
    }
    refuse_running_sessions(opened)
}

/// Refuses work in progress, even of dead processes: their names have no machine, so another machine would take it for its own.
fn refuse_unfinished_work(opened: &OpenedProject) -> Result<(), Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
    if let Some(session) = sessions.iter().find(|session| !session.is_over()) {
        let name = &session.name;
        return Err(Failure::new(FailureCode::Refused, "cannot create a fleet now")
            .with_cause(format!("session `{name}` is unfinished"))
            .with_hint(format!(
                "finish it, or `windlass session cancel {name}` and `windlass doctor --settle` end it"
            )));
    }
    match snapshot.pending_effects().map_err(hints::store_failure)?.first() {
        Some(effect) => Err(Failure::new(FailureCode::Refused, "cannot create a fleet now")
            .with_cause(format!("the hook of {} is pending", effect.id))
            .with_hint("wait for it, or `windlass doctor --settle` runs it")),
        None => Ok(()),
    }
}

fn refuse_running_sessions(opened: &OpenedProject) -> Result<(), Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
    sessions.retain(|session| opened.is_session_running_here(session));
    match sessions.first() {
        Some(session) => Err(Failure::new(FailureCode::Refused, format!("session `{}` is running", session.name))
            .with_hint(format!("wait for it; `windlass session cancel {}` ends it", session.name))),
        None => Ok(()),
    }
}
