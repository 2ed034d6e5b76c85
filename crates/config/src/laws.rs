//! Properties of all parsers of untrusted text in this crate. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if it does not hold.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_text as text;

use crate::listing::{WorkSubject, list_planned_hooks};
use crate::workflow::parse_workflow;
use crate::{Config, ConfigError, plan, source};

const FILE: &str = "config.yaml";

/// The parser refuses a configuration with a picture, or the configuration is complete: its hooks can be listed, planned and run.
pub fn config(bytes: &[u8]) {
    let file = Path::new(FILE);
    let read = source::decode(file, bytes.to_vec()).and_then(|text| Config::of(file, &text));
    let config = match read {
        Err(error) => return refused(error),
        Ok(config) => config,
    };
    for kind in std::iter::once(None).chain(config.task_types().map(|(name, _)| Some(name.to_owned()))) {
        let who = WorkSubject { kind, agent: config.settings.agents.keys().next().cloned() };
        let listed = list_planned_hooks(&config, &who).expect("a configuration that can be read has a list of hooks");
        for (point, row) in listed.iter().flat_map(|at| at.rows.iter().map(|row| (&at.point, row))) {
            assert!(!row.name().is_empty() && !row.kind().is_empty());
            let _ = (row.to_json(point), row.what(), row.place());
        }
    }
    for hook in &config.hooks {
        assert!(
            plan::runnable(hook).is_some()
                || hook.effect().is_none()
                || hook.points().any(|point| plan::silence(hook, point).is_some()),
            "{hook:?}"
        );
    }
    let _ = (config.effects(), config.warnings(), config.points());
}

/// The parser refuses a workflow with a picture, or the workflow can run: every step exists, has a unique name, and leads to an
/// existing step.
pub fn workflow(bytes: &[u8]) {
    let file = Path::new("w.yaml");
    let text = match source::decode(file, bytes.to_vec()) {
        Err(error) => return refused(error),
        Ok(text) => text,
    };
    for is_json in [false, true] {
        match parse_workflow(&text, "w", is_json) {
            Err(problem) => refused(ConfigError::in_text(file, &text, problem)),
            Ok(workflow) => {
                let ids: BTreeSet<&str> = workflow.all_steps().map(|step| step.id.as_str()).collect();
                assert_eq!(ids.len(), workflow.all_steps().count(), "every step has a name of its own");
                assert!(!workflow.steps.is_empty(), "there is a first step");
                for step in workflow.all_steps() {
                    let next = [&step.on_success, &step.on_failure].into_iter().flatten();
                    assert!(next.into_iter().all(|next| workflow.step(next).is_some()), "every step is there");
                }
                assert!(workflow.check().is_ok());
            }
        }
    }
}

/// Checks that a terminal can show an error.
fn refused(error: ConfigError) {
    let obeyed = |letter: char| text::is_treacherous(letter) && letter != '\n';
    assert!(!error.to_string().is_empty());
    if let Some(picture) = error.render(true) {
        // The renderer's own escape sequences colour the picture.
        assert!(!picture.replace('\u{1b}', "").contains(obeyed), "{picture:?}");
    }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check;

    #[test]
    fn configurations_have_a_meaning() {
        check("config", super::config);
    }

    #[test]
    fn workflows_can_be_carried_out() {
        check("workflow", super::workflow);
    }
}
