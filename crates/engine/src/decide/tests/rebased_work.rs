//! Work that a gate hook rebases onto another base.

use super::pipeline::{SESSION_IN_WORKTREE, pipeline_rules};
use super::script::ScriptProject;

/// The changes of two tasks may pass alone and fail together.
#[test]
fn stop_hooks_run_again_when_base_has_moved() {
    for (hooks_there, moved) in [
        (["stop", "merge"], "work a\nhook merge out=continue message=moved moves=def"),
        (["stop", "pr"], "work a\nhook pr moves=def"),
    ] {
        let script = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nhook stop\n{moved}");
        let mut project = ScriptProject::after(pipeline_rules(&hooks_there), &script);
        let judged = project.run_script("work a\nhook stop out=block tells=red");
        assert!(judged.contains(&"T1 hook_finished stop Block".to_owned()), "{judged:?}");
        assert!(judged.contains(&"T1 pipeline_failed stop Blocked: Remediate 1/3".to_owned()), "{judged:?}");
        let mut project = ScriptProject::after(pipeline_rules(&hooks_there), &script);
        project.run_script("work a\nhook stop");
        let ended = project.run_script(&format!("hook {}", hooks_there[1]));
        assert!(ended.last().unwrap().ends_with("session_ended Completed"), "{ended:?}");
    }
}

/// Work that resumes at a deferred gate on a newer base first passes the stop hooks again.
#[test]
fn work_that_resumes_on_a_newer_base_passes_the_stop_hooks_first() {
    let script = format!(
        "{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nhook stop\nwork a\nhook merge out=continue message=moved moves=def
         work a\nhook stop out=failure unstarted=1\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b"
    );
    let mut project = ScriptProject::after(pipeline_rules(&["stop", "merge"]), &script);
    assert_eq!(project.run_script("hook stop")[0], "T1 hook_started stop 1 by w1");
}
