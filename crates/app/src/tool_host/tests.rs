//! Tests of the tools on a real project: hooks, trust, and the cache of the configuration.

use std::fs;

use tempfile::TempDir;
use windlass_engine::{Command, NewTask};
use windlass_store::Lifetime;
use windlass_tools::ToolRouter;

use super::*;
use crate::SilentFrontEnd;
use crate::project::Project;

/// A project with this configuration.
struct Place(TempDir);

impl Place {
    fn new(config: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.0.path().join(".windlass")).unwrap();
        place.configure(config);
        place
    }

    fn configure(&self, config: &str) {
        fs::write(self.0.path().join(".windlass/config.yaml"), config).unwrap();
    }

    fn ground(&self, trust: bool) -> ProjectToolHost {
        let project = Project::at(self.0.path()).unwrap().unwrap();
        let store = Sqlite::create(&project.store_file(), Lifetime::Service).unwrap();
        ProjectToolHost::new(Opened { project, store, trust, front_end: Arc::new(SilentFrontEnd) })
    }

    fn marks(&self) -> String {
        fs::read_to_string(self.0.path().join("marks")).unwrap_or_default()
    }
}

fn marking(mark: &str) -> String {
    format!("hooks: {{task_created: [{{name: mark, command: 'echo {mark} >> marks'}}]}}\n")
}

fn add(ground: &mut ProjectToolHost) -> Result<Vec<Record>, ToolError> {
    let new = NewTask { goal: "one".to_owned(), ..NewTask::default() };
    ground.execute(&Command::CreateTask(new), &Control::new())
}

fn config(ground: &ProjectToolHost) -> Arc<Config> {
    ground.kept.as_ref().unwrap().config.clone()
}

#[test]
fn hooks_that_are_owed_are_run_and_a_change_holds_from_the_next_call_on() {
    let place = Place::new(&marking("one"));
    let mut ground = place.ground(true);
    add(&mut ground).unwrap();
    assert_eq!(place.marks(), "one\n");
    // The new text has the same length, and changes within the same clock tick.
    place.configure(&marking("two"));
    add(&mut ground).unwrap();
    assert_eq!(place.marks(), "one\ntwo\n");
    place.configure("");
    add(&mut ground).unwrap();
    assert_eq!(place.marks(), "one\ntwo\n");
    place.configure("hoks: {}");
    assert_eq!(add(&mut ground).unwrap_err().code, tools::Code::Config);
}

#[test]
fn a_configuration_is_understood_once() {
    let place = Place::new(&marking("one"));
    let mut ground = place.ground(true);
    add(&mut ground).unwrap();
    let first = config(&ground);
    add(&mut ground).unwrap();
    assert!(Arc::ptr_eq(&first, &config(&ground)), "it was only read again");
    // Once its last change is old enough, the file is not even read again.
    ground.recent = Duration::ZERO;
    let stamp = ground.look_at_file();
    assert!(matches!(stamp, Source::File(_)), "{stamp:?}");
    add(&mut ground).unwrap();
    assert_eq!(ground.kept.as_ref().unwrap().source, stamp);
    place.configure(&marking("other"));
    assert_ne!(ground.look_at_file(), stamp);
    add(&mut ground).unwrap();
    assert!(!Arc::ptr_eq(&first, &config(&ground)));
    fs::remove_file(place.0.path().join(".windlass/config.yaml")).unwrap();
    add(&mut ground).unwrap();
    assert_eq!(place.marks(), "one\none\none\nother\n");
}

#[test]
fn only_what_owes_a_hook_needs_trust() {
    let place = Place::new(&marking("one"));
    let mut ground = place.ground(false);
    let refused = add(&mut ground).unwrap_err();
    assert_eq!(refused.code, tools::Code::Trust);
    assert_eq!(ground.store().head().unwrap().0, 0);
    assert_eq!(place.marks(), "");
    place.configure("hooks: {task_completed: [{name: mark, command: 'echo >> marks'}]}\n");
    add(&mut ground).unwrap();
    assert_eq!(ground.store().head().unwrap().0, 2);
}

#[test]
fn a_desk_answers_for_a_real_project() {
    let place = Place::new("");
    let mut desk = ToolRouter::new(place.ground(false));
    let made = desk.call("task_create", serde_json::json!({"goal": "one"}), &Control::new()).unwrap();
    assert_eq!(made["id"], "T1");
    assert!(desk.ground().roster.is_none(), "a host that runs no programs acquires no owner lock");
}
