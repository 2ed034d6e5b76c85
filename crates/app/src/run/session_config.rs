//! The configuration that a session works with, and the trust in it.

use windlass_config::Config;

use super::recorded_config::{check_config_trust, read_recorded_config};
use super::session_choice::SessionChoice;
use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::project::Project;
use crate::trust;
use crate::{Failure, FrontEnd, Notice, environment, execution};

/// Returns the configuration of a session: the recorded one if it resumes, else the trusted part of the present one.
pub fn find_session_config(
    opened: &OpenedProject,
    inside: &CallerContext,
    choice: &SessionChoice,
) -> Result<Config, Failure> {
    let trust_option = opened.trust || inside.config.is_some();
    let SessionChoice::Resume(session) = choice else {
        return find_effective_config(
            &*opened.front_end,
            &opened.project,
            Config::from_source(inside.load_config_source(opened)?)?,
            trust_option,
        );
    };
    let text = read_recorded_config(&opened.store, session)?;
    if Config::load(&opened.project.root).is_ok_and(|present| differs_from_recorded(opened, &present, &text)) {
        let changed = "the configuration has changed; this session keeps the one that it started with";
        opened.front_end.show_notice(Notice::Note(changed));
    }
    let config = Config::from_source(execution::recorded_config_source(&opened.project, &text))?;
    check_config_trust(&opened.project, &config, Some(session), trust_option)?;
    Ok(config)
}

/// Returns whether a new session would work with another configuration than the recorded one.
fn differs_from_recorded(opened: &OpenedProject, present: &Config, recorded: &str) -> bool {
    let is_recorded = |config: &Config| **config.text() == *recorded;
    let counts = || trust::is_config_effective(&opened.project, present, opened.trust).unwrap_or(true);
    !is_recorded(present) && (counts() || !is_recorded(&present.without_trust()))
}

/// Returns the part of a configuration that counts for a new session: all of it with trust, else the defaults. The defaults are
/// refused if the file, or a previously trusted one, constrains agents.
pub fn find_effective_config(
    front_end: &dyn FrontEnd,
    project: &Project,
    config: Config,
    trust_option: bool,
) -> Result<Config, Failure> {
    if trust::is_config_effective(project, &config, trust_option)? {
        return Ok(config);
    }
    check_config_trust(project, &config, None, false)?;
    if config.has_trusted_settings() {
        trust::note_untrusted_defaults(front_end);
    }
    Ok(config.without_trust())
}

/// Returns whether programs may run for the rules and stop hooks that agents register.
pub fn may_run_agent_programs(
    trust_option: bool,
    inside: &CallerContext,
    project: &Project,
    config: &Config,
) -> Result<bool, Failure> {
    Ok(trust_option
        || (inside.config.is_some() && environment::is_run_trusted())
        || trust::may_run_agent_programs(project, config)?)
}
