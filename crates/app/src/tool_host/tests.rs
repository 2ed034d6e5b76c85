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
struct TestProject(TempDir);

impl TestProject {
    fn new(config: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.0.path().join(".windlass")).unwrap();
        place.configure(config);
        place
    }

    fn configure(&self, config: &str) {
        fs::write(self.0.path().join(".windlass/config.yaml"), config).unwrap();
    }

    fn tool_host(&self, trust: bool) -> ProjectToolHost {
        let project = Project::open_at(self.0.path()).unwrap().unwrap();
        let store = SqliteStore::create(&project.store_file(), Lifetime::Service).unwrap();
        ProjectToolHost::new(OpenedProject::new(project, store, trust, Arc::new(SilentFrontEnd)))
    }

    fn read_marks(&self) -> String {
        fs::read_to_string(self.0.path().join("marks")).unwrap_or_default()
    }
}

fn config_with_mark(mark: &str) -> String {
    format!("hooks: {{task_created: [{{name: mark, command: 'echo {mark} >> marks'}}]}}\n")
}

fn create_task(ground: &mut ProjectToolHost) -> Result<Vec<EventRecord>, ToolError> {
    let new = NewTask { goal: "one".to_owned(), ..NewTask::default() };
    ground.execute_command(&Command::CreateTask(new), &RunControl::new())
}

fn cached_config(ground: &ProjectToolHost) -> Arc<Config> {
    ground.cached.as_ref().unwrap().config.clone()
}

#[test]
fn pending_hooks_run_and_config_change_applies_to_next_call() {
    let place = TestProject::new(&config_with_mark("one"));
    let mut ground = place.tool_host(true);
    create_task(&mut ground).unwrap();
    assert_eq!(place.read_marks(), "one\n");
    // The new text has the same length, and changes within the same clock tick.
    place.configure(&config_with_mark("two"));
    create_task(&mut ground).unwrap();
    assert_eq!(place.read_marks(), "one\ntwo\n");
    place.configure("");
    create_task(&mut ground).unwrap();
    assert_eq!(place.read_marks(), "one\ntwo\n");
    place.configure("hoks: {}");
    assert_eq!(create_task(&mut ground).unwrap_err().code, tools::ToolErrorCode::Config);
}

#[test]
fn unchanged_config_is_parsed_once() {
    let place = TestProject::new(&config_with_mark("one"));
    let mut ground = place.tool_host(true);
    create_task(&mut ground).unwrap();
    let first = cached_config(&ground);
    create_task(&mut ground).unwrap();
    assert!(Arc::ptr_eq(&first, &cached_config(&ground)), "it was only read again");
    // Once its last change is old enough, the file is not even read again.
    ground.recent = Duration::ZERO;
    let stamp = ground.stat_config_file();
    assert!(matches!(stamp, CachedConfigSource::File(_)), "{stamp:?}");
    create_task(&mut ground).unwrap();
    assert_eq!(ground.cached.as_ref().unwrap().source, stamp);
    place.configure(&config_with_mark("other"));
    assert_ne!(ground.stat_config_file(), stamp);
    create_task(&mut ground).unwrap();
    assert!(!Arc::ptr_eq(&first, &cached_config(&ground)));
    fs::remove_file(place.0.path().join(".windlass/config.yaml")).unwrap();
    create_task(&mut ground).unwrap();
    assert_eq!(place.read_marks(), "one\none\none\nother\n");
}

#[test]
fn only_command_with_pending_hook_needs_trust() {
    let place = TestProject::new(&config_with_mark("one"));
    let mut ground = place.tool_host(false);
    let refused = create_task(&mut ground).unwrap_err();
    assert_eq!(refused.code, tools::ToolErrorCode::Trust);
    assert_eq!(ground.store().head().unwrap().0, 0);
    assert_eq!(place.read_marks(), "");
    place.configure("hooks: {task_completed: [{name: mark, command: 'echo >> marks'}]}\n");
    create_task(&mut ground).unwrap();
    assert_eq!(ground.store().head().unwrap().0, 2);
}

#[test]
fn tool_router_serves_real_project() {
    let place = TestProject::new("");
    let mut router = ToolRouter::new(place.tool_host(false));
    let made = router.call_tool("task_create", serde_json::json!({"goal": "one"}), &RunControl::new()).unwrap();
    assert_eq!(made["id"], "T1");
    assert!(router.host().owner_lock.is_none(), "a host that runs no programs acquires no owner lock");
}
