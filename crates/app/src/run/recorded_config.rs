//! The configuration that a session was started with, and the trust that a session needs.

use windlass_config::Config;
use windlass_engine::{Session, StateView as _};
use windlass_store::SqliteStore;

use crate::project::Project;
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode, hints};

/// Returns the configuration that a session was started with.
pub fn read_recorded_config(store: &SqliteStore, session: &Session) -> Result<String, Failure> {
    let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
    let text = snapshot.find_config_text(session.config).map_err(hints::view_failure)?;
    text.ok_or_else(|| {
        Failure::new(FailureCode::Store, format!("the configuration of session `{}` is not in the store", session.name))
            .with_hint("`windlass doctor` checks the whole store")
    })
}

/// Checks that a person trusts a configuration that constrains agents, or the removal of one. A resumed session's configuration
/// is in a store that this machine wrote, so its settings count; but programs and files that it names may have changed.
pub fn check_config_trust(
    project: &Project,
    config: &Config,
    resumed: Option<&Session>,
    given: bool,
) -> Result<(), Failure> {
    if given {
        return Ok(());
    }
    let state = trust::find_trust_state(project, config)?;
    let is_needed = match resumed {
        Some(_) => config.names_agents_or_hooks() || config.settings.prompt_file.is_some(),
        None => state == TrustState::Changed || config.guards_work(),
    };
    if state == TrustState::Trusted || !is_needed {
        return Ok(());
    }
    let older = Config::load(&project.root).is_ok_and(|present| present.text() != config.text());
    Err(match resumed {
        Some(session) if older => {
            Failure::new(FailureCode::Trust, "cannot use the configuration of this project")
                .with_cause(format!(
                    "session `{}` works with an older configuration than the trusted one",
                    session.name
                ))
                .with_hint(match session.goal {
                    Some(_) => {
                        "--trust uses that one, for this command alone; --fresh starts again with the present one"
                    }
                    // Another session cannot have the task that this one holds.
                    None => "--trust uses that one, for this command alone",
                })
        }
        _ => trust::trust_failure(config, state),
    })
}
