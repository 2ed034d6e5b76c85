//! The agents whose settings have hooks that call Windlass.

use std::path::PathBuf;

use windlass_app::project::Project;
use windlass_bridge::BridgeAgent;
use windlass_bridge::settings::{self, SettingsFile, SettingsScope};

use super::settings_location::SettingsLocation;

/// Returns whether the settings of an agent have a hook of Windlass.
pub fn has_installed_hooks(agent: BridgeAgent, scope: SettingsScope, project: Option<&Project>) -> bool {
    !find_hooked_files(agent, scope, project).is_empty()
}

/// Returns whether Copilot has hooks of its own in either scope. It also calls the hooks of Claude Code.
pub fn has_copilot_hooks(project: &Project) -> bool {
    [SettingsScope::Project, SettingsScope::User]
        .into_iter()
        .any(|scope| has_installed_hooks(BridgeAgent::Copilot, scope, Some(project)))
}

/// Finds a file through which the agent calls Windlass in the other scope, unless both scopes share that file.
pub fn find_other_scope_install(
    agent: BridgeAgent,
    scope: SettingsScope,
    project: Option<&Project>,
) -> Option<(SettingsScope, PathBuf)> {
    let other = match scope {
        SettingsScope::Project => SettingsScope::User,
        SettingsScope::User => SettingsScope::Project,
    };
    // Without a project there are no project settings.
    if other == SettingsScope::Project {
        project?;
    }
    let own: Vec<_> = locate_hook_files(agent, scope, project).map(|(_, place)| place.real).collect();
    let mut elsewhere = find_hooked_files(agent, other, project).into_iter().filter(|place| !own.contains(&place.real));
    elsewhere.next().map(|place| (other, place.path))
}

fn find_hooked_files(agent: BridgeAgent, scope: SettingsScope, project: Option<&Project>) -> Vec<SettingsLocation> {
    let calls = |(file, place): (SettingsFile, SettingsLocation)| {
        let text = place.read_text().ok().flatten()?;
        file.has_our_hooks(&text).then_some(place)
    };
    locate_hook_files(agent, scope, project).filter_map(calls).collect()
}

/// Returns the files that hold the hooks of an agent.
fn locate_hook_files(
    agent: BridgeAgent,
    scope: SettingsScope,
    project: Option<&Project>,
) -> impl Iterator<Item = (SettingsFile, SettingsLocation)> {
    let files = settings::settings_files(agent, scope).into_iter().filter(|file| file.has_hooks());
    files.filter_map(move |file| Some((file, SettingsLocation::locate(&file, scope, project).ok()?)))
}

/// Lists the agents that call Windlass, each with the scope of its settings.
pub fn list_installed_agents(project: &Project) -> Vec<String> {
    let mut callers = Vec::new();
    for agent in BridgeAgent::ALL {
        for scope in [SettingsScope::Project, SettingsScope::User] {
            if has_installed_hooks(*agent, scope, Some(project)) {
                callers.push(format!("{agent} ({})", scope.name()));
            }
        }
    }
    callers
}
