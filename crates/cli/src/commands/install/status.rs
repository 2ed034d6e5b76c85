//! Which agents call us.

use std::path::PathBuf;

use windlass_app::project::Project;
use windlass_bridge::Agent;
use windlass_bridge::settings::{self, Scope, SettingsFile};

use super::place::Place;

/// Whether the settings of an agent have a hook of ours.
pub fn calls(agent: Agent, scope: Scope, project: Option<&Project>) -> bool {
    !calling(agent, scope, project).is_empty()
}

/// Whether Copilot calls by itself, in whichever scope: it calls what is written for Claude Code too.
pub fn copilot_calls(project: &Project) -> bool {
    [Scope::Project, Scope::User].into_iter().any(|scope| calls(Agent::Copilot, scope, Some(project)))
}

/// The files by which an agent calls us in the other scope, if those are not the same: it would call twice.
pub fn calling_elsewhere(agent: Agent, scope: Scope, project: Option<&Project>) -> Option<(Scope, PathBuf)> {
    let other = match scope {
        Scope::Project => Scope::User,
        Scope::User => Scope::Project,
    };
    // Without a project there are no settings of one.
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

/// The files that hold the hooks of an agent.
fn places(agent: Agent, scope: Scope, project: Option<&Project>) -> impl Iterator<Item = (SettingsFile, Place)> {
    let files = settings::files(agent, scope).into_iter().filter(|file| file.has_hooks());
    files.filter_map(move |file| Some((file, Place::of(&file, scope, project).ok()?)))
}

/// The agents that call us, each with whose settings say so.
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
