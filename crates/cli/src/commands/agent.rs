//! `windlass agent SCRIPT`: the scripted agent.

use std::path::PathBuf;
use std::{fs, io};

use windlass_agents::acp::server::{self, ScriptSetting};
use windlass_app::context::Context;
use windlass_app::project::Project;
use windlass_app::{Code, Failure, agents, environment, execution, runner_settings};
use windlass_process::Roster;

use crate::output::{Output, Stop};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass run \"Fix the login\" --agent scripted:play.yaml     the usual way to use it
  windlass agent play.yaml                                    for a client of your own")]
pub struct Args {
    /// The file with the turns
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    if out.is_json() {
        return Err(Failure::new(Code::Usage, "the agent speaks its own protocol; it has no --json").into());
    }
    let script = agents::read_script(&context.directory.join(&args.script))?;
    let nonce = execution::random()?;
    let place = Place::new(nonce)?;
    let launcher = runner_settings::launcher()?;
    let setting = ScriptSetting { roster: &place.roster, environment: environment::whole(), launcher: &launcher };
    let played = server::serve(script, &setting, nonce, io::stdin(), &mut io::stdout().lock());
    match played {
        // The client has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        played => Ok(played.map_err(|error| Failure::new(Code::System, "cannot play the script").caused_by(error))?),
    }
}

/// The directory that records the programs which the agent starts: the project's when a run started the agent, else a temporary one.
struct Place {
    roster: Roster,
    own: Option<PathBuf>,
}

impl Place {
    fn new(nonce: u128) -> Result<Self, Failure> {
        if let Some(project) = environment::project_of_run()
            && let Some(project) = Project::at(&project)?
        {
            return Ok(Self { roster: execution::enlist(&project)?, own: None });
        }
        let own = environment::temporary_directory().join(format!("windlass-agent-{nonce:032x}"));
        let roster = Roster::enlist(&own, 0).map_err(|error| {
            Failure::new(Code::System, format!("cannot make a file in `{}`", own.display())).caused_by(error)
        })?;
        Ok(Self { roster, own: Some(own) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            let _ = fs::remove_dir_all(own);
        }
    }
}
