//! `windlass agent SCRIPT`: the scripted agent.

use std::path::PathBuf;
use std::{fs, io};

use windlass_agents::acp::server::{self, ScriptSetting};
use windlass_app::context::CommandContext;
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode, agents, environment, execution, runner_settings};
use windlass_process::OwnerLock;

use crate::output::{EarlyExit, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass run \"Fix the login\" --agent scripted:play.yaml    the usual way
  windlass agent play.yaml                                   for your own client")]
pub struct Args {
    /// The script: a YAML file with the turns to play
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
}

pub fn run_scripted_agent(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    if out.is_json() {
        return Err(Failure::new(FailureCode::Usage, "the agent speaks its own protocol; it has no --json").into());
    }
    let script = agents::read_script(&context.directory.join(&args.script))?;
    let nonce = execution::random_u128()?;
    let place = AgentOwnerDirectory::new(nonce)?;
    let launcher = runner_settings::supervisor_launcher()?;
    let setting = ScriptSetting {
        owner_lock: &place.owner_lock,
        environment: environment::full_environment(),
        launcher: &launcher,
    };
    let played = server::serve(script, &setting, nonce, io::stdin(), &mut io::stdout().lock());
    match played {
        // The client has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        played => {
            Ok(played.map_err(|error| Failure::new(FailureCode::System, "cannot play the script").with_cause(error))?)
        }
    }
}

/// The directory that records the programs which the agent starts: the project's when a run started the agent, else a temporary one.
struct AgentOwnerDirectory {
    owner_lock: OwnerLock,
    own: Option<PathBuf>,
}

impl AgentOwnerDirectory {
    fn new(nonce: u128) -> Result<Self, Failure> {
        if let Some(project) = environment::run_project_directory()
            && let Some(project) = Project::open_at(&project)?
        {
            return Ok(Self { owner_lock: execution::acquire_owner_lock(&project)?, own: None });
        }
        let own = environment::temporary_directory().join(format!("windlass-agent-{nonce:032x}"));
        let owner_lock = OwnerLock::acquire(&own, 0).map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot make a file in `{}`", own.display())).with_cause(error)
        })?;
        Ok(Self { owner_lock, own: Some(own) })
    }
}

impl Drop for AgentOwnerDirectory {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            let _ = fs::remove_dir_all(own);
        }
    }
}
