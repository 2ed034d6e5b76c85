//! The steps that remain for the person after an installation. Agents run new hooks only with a person's approval.

use windlass_app::trust;
use windlass_bridge::Agent;
use windlass_bridge::settings::{Program, Scope};

use super::{Target, status};

/// Lists the next steps. `is_new` says whether the command has written anything, `server` whether the MCP server is installed.
pub fn next(target: &Target, program: &Program, is_new: bool, server: bool) -> Vec<String> {
    let Target { agent, project, .. } = target;
    let title = agent.title();
    let mut steps: Vec<String> = Vec::new();
    if let Some(warning) = project.as_ref().and_then(trust::warning) {
        steps.push(warning.to_owned());
    }
    let of_project = target.scope == Scope::Project;
    if of_project && program.path.contains('/') {
        steps.push("others who share these settings have no such path: put `windlass` on the PATH first".to_owned());
    }
    match agent {
        Agent::Codex => {
            steps.push("Codex runs no hook that you have not approved: `/hooks` in Codex shows them".to_owned());
            if of_project {
                steps.push("let Codex trust this folder: it asks when it is started here".to_owned());
            }
        }
        Agent::Gemini | Agent::Copilot | Agent::Cursor if of_project => {
            steps.push(format!("let {title} trust this folder: of others it reads no hooks, and says nothing"));
        }
        _ => {}
    }
    let other = match agent {
        Agent::Copilot => Some(Agent::Claude),
        Agent::Claude => Some(Agent::Copilot),
        _ => None,
    };
    if of_project && other.is_some_and(|other| status::calls(other, Scope::Project, project.as_ref())) {
        steps.push("Copilot reads the hooks of Claude Code too: it calls twice here, and is answered once".to_owned());
    }
    if server && !of_project {
        steps
            .push(format!("where there is no project, the MCP server ends at once, and {title} may show it as failed"));
    }
    if is_new {
        steps.push(format!("start {title} anew: it reads its settings when it starts"));
    }
    steps
}
