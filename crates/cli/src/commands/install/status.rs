//! The agents whose settings have hooks that call Windlass.

use std::path::PathBuf;

use windlass_app::project::Project;
use windlass_bridge::Agent;
use windlass_bridge::settings::{self, Scope, SettingsFile};

use super::place::Place;

/// Returns whether the settings of an agent have a hook of Windlass.
pub fn calls(agent: Agent, scope: Scope, project: Option<&Project>) -> bool {
    !calling(agent, scope, project).is_empty()
}

/// Returns whether Copilot has hooks of its own in either scope. It also calls the hooks of Claude Code.
pub fn copilot_calls(project: &Project) -> bool {
    [Scope::Project, Scope::User].into_iter().any(|scope| calls(Agent::Copilot, scope, Some(project)))
}

/// Finds a file through which the agent calls Windlass in the other scope, unless both scopes share that file.
pub fn calling_elsewhere(agent: Agent, scope: Scope, project: Option<&Project>) -> Option<(Scope, PathBuf)> {
    let other = match scope {
        Scope::Project => Scope::User,
        Scope::User => Scope::Project,
    };
    // Without a project there are no project settings.
    if other == Scope::Project {
        project?;
    }
    let own: Vec<_> = places(agent, scope, project).map(|(_, place)| place.real).collect();
    let mut elsewhere = calling(agent, other, project).into_iter().filter(|place| !own.contains(&place.real));
    elsewhere.next().map(|place| (other, place.path))
}

fn calling(agent: Agent, scope: Scope, project: Option<&Project>) -> Vec<Place> {
    let calls = |(file, place): (SettingsFile, Place)| {
        let text = place.read().ok().flatten()?;
        file.has_our_hooks(&text).then_some(place)
    };
    places(agent, scope, project).filter_map(calls).collect()
}

/// Returns the files that hold the hooks of an agent.
fn places(agent: Agent, scope: Scope, project: Option<&Project>) -> impl Iterator<Item = (SettingsFile, Place)> {
    let files = settings::files(agent, scope).into_iter().filter(|file| file.has_hooks());
    files.filter_map(move |file| Some((file, Place::of(&file, scope, project).ok()?)))
}

/// Lists the agents that call Windlass, each with the scope of its settings.
pub fn callers(project: &Project) -> Vec<String> {
    let mut callers = Vec::new();
    for agent in Agent::ALL {
        for scope in [Scope::Project, Scope::User] {
            if calls(*agent, scope, Some(project)) {
                callers.push(format!("{agent} ({})", scope.name()));
            }
        }
    }
    callers
}
