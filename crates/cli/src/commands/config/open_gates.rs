//! Gates that nothing closes in this project: every check of theirs can only skip.

use windlass_runner::shown;

use super::stuck::Stuck;
use crate::config::{Builtin, Config, Hook, Kind, Point};
use crate::plan;
use crate::project::Project;

/// Looks for gates whose only checks are `run_tests`, where the project has no tests to run.
pub fn look(project: &Project, config: &Config) -> Vec<Stuck> {
    if config.settings.test_command.is_some() || shown::tests(&project.root).is_some() {
        return Vec::new();
    }
    let gates = Point::all().into_iter().filter_map(Point::parse).filter(|point| plan::is_gate(*point));
    gates.filter(|point| is_open(config, *point)).map(told).collect()
}

fn is_open(config: &Config, point: Point) -> bool {
    let here = |hook: &&Hook| hook.enabled() && hook.points().any(|other| other == point);
    let mut checks = config.hooks.iter().filter(here).filter(|hook| !is_step_of_git(&hook.kind)).peekable();
    let has_rules = point.name() == "stop" && !config.validation_rules().project.is_empty();
    !has_rules && checks.peek().is_some() && checks.all(|hook| matches!(hook.kind, Kind::Builtin(Builtin::RunTests)))
}

fn is_step_of_git(kind: &Kind) -> bool {
    matches!(kind, Kind::Builtin(Builtin::RebaseOnMain | Builtin::CreatePr | Builtin::MergePr))
}

fn told(point: Point) -> Stuck {
    Stuck {
        task: None,
        message: format!(
            "nothing is checked at `{point}`: `run_tests` finds no tests in this project and can only skip"
        ),
        remedy: "set `test_command` to the command that runs them".to_owned(),
    }
}
