//! Properties of all parsers of untrusted text in this crate. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if it does not hold.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_text as text;

use crate::listing::{WorkSubject, list_planned_hooks};
use crate::workflow::parse_workflow;
use crate::{Config, ConfigError, plan, source};

const CONFIG_FILE_NAME: &str = "config.yaml";

/// Checks that the parser refuses a configuration with a picture, or that the configuration is complete: its hooks can be
/// listed, planned and run.
pub fn check_config(bytes: &[u8]) {
    let file = Path::new(CONFIG_FILE_NAME);
    let read = source::decode_text(file, bytes.to_vec()).and_then(|text| Config::from_text(file, &text));
    let config = match read {
        Err(error) => return check_refusal(error),
        Ok(config) => config,
    };
    for kind in std::iter::once(None).chain(config.task_types().map(|(name, _)| Some(name.to_owned()))) {
        let who = WorkSubject { kind, agent: config.settings.agents.keys().next().cloned() };
        let listed = list_planned_hooks(&config, &who).expect("a configuration that can be read has a list of hooks");
        for (point, row) in listed.iter().flat_map(|at| at.rows.iter().map(|row| (&at.point, row))) {
            assert!(!row.name().is_empty() && !row.kind().is_empty());
            let _ = (row.to_json(point), row.describe_effect(), row.describe_place());
        }
    }
    for hook in &config.hooks {
        assert!(
            plan::runnable_hook(hook).is_some()
                || hook.describe_effect().is_none()
                || hook.all_points().any(|point| plan::inactive_reason(hook, point).is_some()),
            "{hook:?}"
        );
    }
    let _ = (config.list_effects(), config.find_warnings(), config.count_hooks_by_point());
}

/// Checks that the parser refuses a workflow with a picture, or that the workflow can run: every step exists, has a unique
/// name, and leads to an existing step.
pub fn check_workflow(bytes: &[u8]) {
    let file = Path::new("w.yaml");
    let text = match source::decode_text(file, bytes.to_vec()) {
        Err(error) => return check_refusal(error),
        Ok(text) => text,
    };
    for is_json in [false, true] {
        match parse_workflow(&text, "w", is_json) {
            Err(problem) => check_refusal(ConfigError::from_problem(file, &text, problem)),
            Ok(workflow) => {
                let ids: BTreeSet<&str> = workflow.all_steps().map(|step| step.id.as_str()).collect();
                assert_eq!(ids.len(), workflow.all_steps().count(), "every step has a name of its own");
                assert!(!workflow.steps.is_empty(), "there is a first step");
                for step in workflow.all_steps() {
                    let next = [&step.on_success, &step.on_failure].into_iter().flatten();
                    assert!(next.into_iter().all(|next| workflow.find_step(next).is_some()), "every step is there");
                }
                assert!(workflow.check_definition().is_ok());
            }
        }
    }
}

/// Checks that a terminal can show an error.
fn check_refusal(error: ConfigError) {
    let obeyed = |letter: char| text::is_unsafe_character(letter) && letter != '\n';
    assert!(!error.to_string().is_empty());
    if let Some(picture) = error.render_picture(true) {
        // The renderer's own escape sequences colour the picture.
        assert!(!picture.replace('\u{1b}', "").contains(obeyed), "{picture:?}");
    }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn configurations_have_a_meaning() {
        check_law("config", super::check_config);
    }

    #[test]
    fn workflows_can_be_carried_out() {
        check_law("workflow", super::check_workflow);
    }
}
