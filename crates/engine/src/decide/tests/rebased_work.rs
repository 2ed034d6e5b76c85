//! Work that is moved onto another base on its way through the gates.

use super::pipeline::{BEGUN, hooks};
use super::script::Script;

/// The changes of two tasks may pass alone and fail together.
#[test]
fn on_a_newer_base_the_stop_hooks_judge_again() {
    for (hooks_there, moved) in [
        (["stop", "merge"], "work a\nhook merge out=continue message=moved moves=def"),
        (["stop", "pr"], "work a\nhook pr moves=def"),
    ] {
        let script = format!("{BEGUN}\nturn-done a.1 says=complete\nhook stop\n{moved}");
        let mut project = Script::after(hooks(&hooks_there), &script);
        let judged = project.run("work a\nhook stop out=block tells=red");
        assert!(judged.contains(&"T1 hook_finished stop Block".to_owned()), "{judged:?}");
        assert!(judged.contains(&"T1 pipeline_failed stop Blocked: Remediate 1/3".to_owned()), "{judged:?}");
        let mut project = Script::after(hooks(&hooks_there), &script);
        project.run("work a\nhook stop");
        let ended = project.run(&format!("hook {}", hooks_there[1]));
        assert!(ended.last().unwrap().ends_with("session_ended Completed"), "{ended:?}");
    }
}

/// After a gate that could not be asked, the stop hooks still know that the base has moved.
#[test]
fn work_that_resumes_on_a_newer_base_passes_the_stop_hooks_first() {
    let script = format!(
        "{BEGUN}\nturn-done a.1 says=complete\nhook stop\nwork a\nhook merge out=continue message=moved moves=def
         work a\nhook stop out=failure unstarted=1\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b"
    );
    let mut project = Script::after(hooks(&["stop", "merge"]), &script);
    assert_eq!(project.run("hook stop")[0], "T1 hook_started stop 1 by w1");
}
