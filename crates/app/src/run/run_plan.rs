//! The plan of a run: the session that it starts or resumes, and everything that the session works with.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_agents::Agent;
use windlass_config::{self as config, Config, plan};
use windlass_engine::{SessionName, TaskTypes, TypeName, WorkSource, WorkspaceMode};
use windlass_runner::GatekeeperSettings;
use windlass_store::{Lifetime, SqliteStore};

use super::agent_choice::{
    check_agent_startable, check_gatekeepers, choose_agent, explain_no_task_for_agent, no_agent_failure,
};
use super::cleanup::clean_up_without_work;
use super::remaining_tasks::{AgentRestrictions, RemainingTasks};
use super::run_target::{RunRequest, RunTarget};
use super::session_choice::{SessionChoice, choose_session, has_ready_task, tally_session};
use super::session_config::{find_effective_config, find_session_config};
use super::session_tally::SessionTally;
use super::stale_leases::expire_stale_leases_before_run;
use super::task_agent::find_task_agent;
use super::workspace_choice::{WorkspaceChoice, check_shared_remote, warn_of_shared_directory};
use crate::caller::CallerContext;
use crate::context::{CommandContext, OpenedProject};
use crate::gatekeepers::{self, UnjudgedTypes};
use crate::person::require_person;
use crate::project::{self, Project};
use crate::project_setup::create_project_without_config;
use crate::workflows::{self, WorkflowSnapshot};
use crate::{Failure, agents, environment, runner_settings, store_records};

/// The outcome of planning a run.
pub enum RunPlan<'a> {
    Session(Box<PlannedSession<'a>>),
    NothingReady(NothingReady),
}

/// A run of the graph that finds no task.
pub struct NothingReady {
    /// The reason in a few words.
    pub reason: String,
    pub remaining: RemainingTasks,
}

/// A session that is ready to run.
pub struct PlannedSession<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) target: RunTarget<'a>,
    pub choice: SessionChoice,
    pub(super) inside: CallerContext,
    pub(super) agent: Agent,
    pub config: Arc<Config>,
    /// The workflows that its hooks run.
    pub(super) workflows: WorkflowSnapshot,
    pub(super) gatekeepers: GatekeeperSettings,
    pub(super) types: TaskTypes,
    /// Task types that are left alone, each with the reason.
    pub(super) held_back: BTreeMap<TypeName, String>,
    pub(super) workspace_mode: WorkspaceMode,
}

impl PlannedSession<'_> {
    pub fn session_name(&self) -> &SessionName {
        self.choice.session_name()
    }

    /// Returns the agent that the request names.
    pub fn named_agent(&self) -> Option<&str> {
        self.request.agent.as_deref()
    }

    /// Returns where the session gets its work from.
    pub fn work_source(&self) -> WorkSource {
        self.choice.work_source(self.target)
    }

    /// Returns the tally of the session before it is resumed.
    pub fn tally_before_resume(&self, opened: &OpenedProject) -> Result<SessionTally, Failure> {
        match self.choice.resumed_session() {
            Some(session) => tally_session(&opened.store, session),
            None => Ok(SessionTally::default()),
        }
    }

    /// Returns the restrictions that keep the agent from ready tasks.
    pub fn agent_restrictions<'o>(&'o self, opened: &'o OpenedProject) -> AgentRestrictions<'o> {
        AgentRestrictions {
            opened,
            workspace_mode: self.workspace_mode,
            types: &self.types,
            held_back: &self.held_back,
        }
    }
}

/// Opens the project of a run. A goal with a named agent creates a project if there is none.
pub fn open_project_to_run(context: &CommandContext, request: &mut RunRequest) -> Result<OpenedProject, Failure> {
    let project = match request.parse_target()? {
        RunTarget::Goal(_) => find_or_make_project(context, request.agent.as_deref())?,
        RunTarget::Task(_) | RunTarget::Graph => context.find_project()?,
    };
    if SqliteStore::is_missing_or_blank(&project.store_file()) {
        // A refused run leaves no store behind.
        find_effective_config(&*context.front_end, &project, Config::load(&project.root)?, context.trust)?;
    }
    let store = store_records::open_or_create_store(&project, Lifetime::Service, context.trust)?;
    let mut opened = context.with_open_store(project, store);
    // The session's name is made from the masked goal.
    request.goal = request.goal.as_deref().map(|goal| mask_goal(&opened, goal)).transpose()?;
    if request.goal.is_none() {
        expire_stale_leases_before_run(&mut opened)?;
    }
    Ok(opened)
}

/// Plans a run: chooses the session, and checks that it can run.
pub fn plan_run<'a>(opened: &mut OpenedProject, request: &'a RunRequest) -> Result<RunPlan<'a>, Failure> {
    let target = request.parse_target()?;
    let choice = choose_session(opened, request, target)?;
    let is_new_of_graph = matches!((&choice, target), (SessionChoice::New(_), RunTarget::Graph));
    if is_new_of_graph && !has_ready_task(&opened.store)? {
        clean_up_without_work(opened)?;
        let remaining = RemainingTasks::find_remaining(opened)?;
        return Ok(RunPlan::NothingReady(NothingReady { reason: "nothing is ready".to_owned(), remaining }));
    }
    if opened.trust && choice.resumed_session().is_none() {
        require_person(&opened.project)?;
    }
    let inside = CallerContext::detect_from_variables(opened)?;
    let config = Arc::new(find_session_config(opened, &inside, &choice)?);
    workflows::check_workflow_hooks(&opened.project, &config)?;
    let workflows = WorkflowSnapshot::load_snapshot(&opened.project, &config, opened.trust);
    let listed = match target {
        RunTarget::Task(id) => find_task_agent(&opened.store, id, &config)?,
        RunTarget::Goal(_) | RunTarget::Graph => None,
    };
    let agent = choose_agent(request.agent.as_deref(), &choice, (&config, listed.as_deref()), opened.trust)?;
    let place = WorkspaceChoice::find_for_run(target, choice.resumed_session(), opened, &config)?;
    check_agent_startable(&agent, &opened.project.root, place.workspace_mode)?;
    check_shared_remote(opened, &config, place.workspace_mode)?;
    if place.workspace_mode.is_in_place() {
        warn_of_shared_directory(opened, choice.session_name())?;
    }
    let (gatekeepers, unjudged) = match place.is_unjudged {
        true => (GatekeeperSettings::default(), UnjudgedTypes::new()),
        false => gatekeepers::resolve_gatekeepers(&config, &agent, &opened.project.root)?,
    };
    let types = plan::plan_task_types(&config);
    if is_new_of_graph
        && let Some(reason) = explain_no_task_for_agent(&opened.store, &types, &agent.name, place.workspace_mode)?
    {
        clean_up_without_work(opened)?;
        let held_back = BTreeMap::new();
        let restrictions =
            AgentRestrictions { opened, workspace_mode: place.workspace_mode, types: &types, held_back: &held_back };
        let remaining = RemainingTasks::find_remaining(opened)?.explain_for_agent(restrictions, &agent.name);
        return Ok(RunPlan::NothingReady(NothingReady { reason, remaining }));
    }
    let types = types.pausing_types(unjudged.keys().cloned().collect());
    let held_back = unjudged.iter().map(|(kind, failure)| (kind.clone(), failure.message.clone())).collect();
    check_gatekeepers(opened, target, (&types, unjudged), &agent.name)?;
    Ok(RunPlan::Session(Box::new(PlannedSession {
        request,
        target,
        choice,
        inside,
        agent,
        config,
        workflows,
        gatekeepers,
        types,
        held_back,
        workspace_mode: place.workspace_mode,
    })))
}

/// Returns the project around the directory. If there is none, creates one without a configuration for a named agent that can be
/// started: in the repository around, or here.
fn find_or_make_project(context: &CommandContext, agent: Option<&str>) -> Result<Project, Failure> {
    let (place, found) = match (&context.project, environment::project_variable()) {
        (Some(named), _) => {
            let place = context.directory.join(named);
            let found = Project::open_at(&place)?;
            (place, found)
        }
        // A project that a variable names is not created here.
        (None, Some(_)) => return context.find_project(),
        (None, None) => {
            (project::choose_new_project_root(&context.directory), project::find_enclosing_project(&context.directory)?)
        }
    };
    match found {
        Some(project) => Ok(project),
        None => match agent.filter(|_| place.is_dir()) {
            Some(agent) => {
                let agent = agents::resolve_agent(agent, &config::Settings::default())?;
                check_agent_startable(&agent, &place, WorkspaceMode::InPlace)?;
                create_project_without_config(&place)
            }
            None if context.project.is_some() => context.find_project(),
            None => Err(no_agent_failure()),
        },
    }
}

/// Masks secrets in a goal. If the configuration cannot be read, no session is started either.
fn mask_goal(opened: &OpenedProject, goal: &str) -> Result<String, Failure> {
    let config = Config::from_source(CallerContext::detect_from_variables(opened)?.load_config_source(opened)?);
    Ok(config
        .map(|config| runner_settings::build_secret_mask(&config).mask_text(goal).into_owned())
        .unwrap_or_else(|_| goal.to_owned()))
}
