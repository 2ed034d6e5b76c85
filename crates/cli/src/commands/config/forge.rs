//! Check that the configured forge fits the repository.

use windlass_app::project::Project;
use windlass_app::{Failure, execution, runner_settings};
use windlass_config::{Config, ConfigWarning};

/// Checks the address of the remote without fetching. The configuration is not at fault when git cannot tell the address.
pub fn check_forge_remote(project: &Project, config: &Config) -> Result<Option<ConfigWarning>, Failure> {
    let forge = runner_settings::delivery_settings(project, config).forge;
    if forge.kind.is_none() && forge.api.is_none() {
        return Ok(None);
    }
    let (control, _received) = execution::listen_to_signals()?;
    let Ok(address) = windlass_app::changes::with_git(project, &control, |git| git.default_remote_address()) else {
        return Ok(None);
    };
    let message = match address {
        None => Some("`forge` is configured, and this project is in no git repository".to_owned()),
        Some(address) => forge.explain_mismatch(address.as_deref()),
    };
    Ok(message.map(|message| ConfigWarning {
        place: None,
        message: format!("{message}: changes are only in the log, not on a forge"),
        suggestion: Some(
            "`git remote -v` shows the addresses, `git remote set-url origin ADDRESS` sets one; `forge.remote` names \
                 another remote; or take `forge` out"
                .to_owned(),
        ),
    }))
}
