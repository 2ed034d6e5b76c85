//! Gates that nothing closes in this project: every check of theirs can only skip.

use windlass_runner::shown;

use crate::config::{Config, Point, Warning};
use crate::project::Project;

/// Looks for gates whose only checks are `run_tests`, where the project has no tests to run.
pub fn look(project: &Project, config: &Config) -> Vec<Warning> {
    if config.settings.test_command.is_some() || shown::tests(&project.root).is_some() {
        return Vec::new();
    }
    config.test_gates().into_iter().map(told).collect()
}

fn told((point, task_type): (Point, Option<&str>)) -> Warning {
    let whose = task_type.map(|name| format!(" for tasks of the type `{name}`")).unwrap_or_default();
    Warning {
        place: None,
        message: format!(
            "nothing is checked at `{point}`{whose}: `run_tests` finds no tests in this project and can only skip"
        ),
        suggestion: Some("set `test_command` to the command that runs them".to_owned()),
    }
}
