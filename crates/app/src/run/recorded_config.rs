//! The configuration that a session was started with, and the trust that a session needs.

use windlass_config::Config;
use windlass_engine::{Session, View as _};
use windlass_store::Sqlite;

use crate::project::Project;
use crate::trust::{self, Trust};
use crate::{Code, Failure, hints};

/// Returns the configuration that a session was started with.
pub fn find_recorded_config(store: &Sqlite, session: &Session) -> Result<String, Failure> {
    let snapshot = store.snapshot().map_err(hints::store)?;
    let text = snapshot.config(session.config).map_err(hints::view)?;
    text.ok_or_else(|| {
        Failure::new(Code::Store, format!("the configuration of session `{}` is not in the store", session.name))
            .hint("`windlass doctor` looks the whole store over")
    })
}

/// Checks that a person trusts a configuration that constrains agents, or the removal of one. A resumed session's configuration
/// is in a store that this machine wrote, so its settings count; but programs and files that it names may have changed.
pub fn check_trust(project: &Project, config: &Config, resumed: Option<&Session>, given: bool) -> Result<(), Failure> {
    if given {
        return Ok(());
    }
    let state = trust::state(project, config)?;
    let is_needed = match resumed {
        Some(_) => config.names_agents_or_hooks() || config.settings.prompt_file.is_some(),
        None => state == Trust::Changed || config.guards_work(),
    };
    if state == Trust::Trusted || !is_needed {
        return Ok(());
    }
    let older = Config::load(&project.root).is_ok_and(|present| present.text() != config.text());
    Err(match resumed {
        Some(session) if older => Failure::new(Code::Trust, "this project may not run what its configuration says")
            .caused_by(format!("session `{}` works with an older configuration than the trusted one", session.name))
            .hint(match session.goal {
                Some(_) => {
                    "--trust goes on with that one, for this command alone; --fresh starts anew with the present one"
                }
                // Another session cannot have the task that this one holds.
                None => "--trust goes on with that one, for this command alone",
            }),
        _ => trust::refuse(config, state),
    })
}
