//! The steps that remain for the person after an installation. Agents run new hooks only with a person's approval.

use windlass_app::trust;
use windlass_bridge::BridgeAgent;
use windlass_bridge::settings::{ProgramPath, SettingsScope};

use super::{InstallTarget, installations};

/// Lists the next steps. `is_new` says whether the command has written anything, `server` whether the MCP server is installed.
pub fn list_next_steps(target: &InstallTarget, program: &ProgramPath, is_new: bool, server: bool) -> Vec<String> {
    let InstallTarget { agent, project, .. } = target;
    let title = agent.title();
    let mut steps: Vec<String> = Vec::new();
    if let Some(warning) = project.as_ref().and_then(trust::trust_warning) {
        steps.push(warning.to_owned());
    }
    let of_project = target.scope == SettingsScope::Project;
    if of_project && program.path.contains('/') {
        steps.push("others who share these settings have no such path: put `windlass` on the PATH first".to_owned());
    }
    match agent {
        BridgeAgent::Codex => {
            steps.push("Codex runs no hook that you have not approved: `/hooks` in Codex shows them".to_owned());
            if of_project {
                steps.push("let Codex trust this folder: it asks when it is started here".to_owned());
            }
        }
        BridgeAgent::Gemini | BridgeAgent::Copilot | BridgeAgent::Cursor if of_project => {
            steps.push(format!(
                "let {title} trust this folder: it ignores the hooks of other folders without a message"
            ));
        }
        _ => {}
    }
    let other = match agent {
        BridgeAgent::Copilot => Some(BridgeAgent::Claude),
        BridgeAgent::Claude => Some(BridgeAgent::Copilot),
        _ => None,
    };
    if of_project
        && other
            .is_some_and(|other| installations::has_installed_hooks(other, SettingsScope::Project, project.as_ref()))
    {
        steps.push("Copilot reads the hooks of Claude Code too: it calls twice here, and is answered once".to_owned());
    }
    if server && !of_project {
        steps
            .push(format!("where there is no project, the MCP server ends at once, and {title} may show it as failed"));
    }
    if is_new {
        steps.push(format!("restart {title}: it reads its settings when it starts"));
    }
    steps
}
