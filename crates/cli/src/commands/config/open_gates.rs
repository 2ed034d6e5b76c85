//! Gates that nothing closes in this project: every check of theirs can only skip.

use windlass_runner::shown;

use super::stuck::Stuck;
use crate::config::{Config, TestGate};
use crate::project::Project;

/// Looks for gates whose only checks are `run_tests`, where the project has no tests to run.
pub fn look(project: &Project, config: &Config) -> Vec<Stuck> {
    if config.settings.test_command.is_some() || shown::tests(&project.root).is_some() {
        return Vec::new();
    }
    config.test_gates().iter().map(told).collect()
}

fn told(gate: &TestGate<'_>) -> Stuck {
    let whose = gate.task_type.map(|name| format!(" for tasks of the type `{name}`")).unwrap_or_default();
    Stuck {
        task: None,
        message: format!(
            "nothing is checked at `{}`{whose}: `run_tests` finds no tests in this project and can only skip",
            gate.point
        ),
        remedy: "set `test_command` to the command that runs them".to_owned(),
    }
}
