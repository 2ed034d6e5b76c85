//! Work that was judged done, at a gate that could not be asked about it. The hooks are those of `pipeline.rs`.

use super::pipeline::hooks;
use super::script::{Script, check_with};
use crate::delivery::DeliveryGate;
use crate::session::NextAction;
use crate::task::TaskState;

/// Done, submitted to `pr`, which cannot reach its forge.
const UNREACHABLE: &str = "add one
    session a task=T1 grounds=worktrees
    workspace a
    turn-done a.1 says=complete
    work a
    hook pr out=failure message=unreachable";

/// Done and submitted, and `review` has no gatekeeper to ask.
const UNASKED: &str = "add one
    session a task=T1 grounds=worktrees
    workspace a
    turn-done a.1 says=complete
    work a
    hook tests
    hook review out=failure message=no-reviewer";

#[test]
fn the_next_attempt_goes_on_at_the_gate_without_a_turn() {
    check_with(
        hooks(&["pr"]),
        &format!(
            "{UNREACHABLE}\n--\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook pr opens=http://x/1"
        ),
        "T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 workspace_opened
         T1 submission_started
         T1 hook_started pr 1 by w1
         T1 hook_finished pr Success
         T1 change_opened http://x/1
         T1 task_submitted
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn what_was_submitted_is_not_submitted_again() {
    check_with(
        hooks(&["tests", "told", "review"]),
        &format!(
            "{}\n--\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook review",
            UNASKED.replace("hook tests", "hook tests\nhook told")
        ),
        "T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 workspace_opened
         T1 merge_started
         T1 hook_started review 1 by w1
         T1 hook_finished review Success
         T1 task_completed
         T1 session_ended Completed",
    );
    let script = format!("{UNASKED}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b");
    assert_eq!(Script::after(hooks(&["tests", "review"]), &script).task("T1").state, TaskState::Submitted);
}

/// Another configuration may have other hooks before this one.
#[test]
fn under_another_configuration_it_is_submitted_again() {
    for (other, gate) in
        [("config=hooks:{x:[]}", DeliveryGate::BeforeMerge), ("agent=command:false", DeliveryGate::BeforeSubmit)]
    {
        let script = format!("{UNASKED}\nsession b task=T1 grounds=worktrees {other}\nworkspace b");
        let mut project = Script::after(hooks(&["tests", "review"]), &script);
        assert_eq!(project.run("work b"), ["T1 submission_started"], "{other}");
        assert_eq!(project.task("T1").stalled.unwrap().gate, DeliveryGate::BeforeSubmit);
        project.run("hook tests\nhook review out=failure");
        let stalled = project.task("T1").stalled.unwrap();
        assert_eq!((stalled.gate, stalled.agent.as_str()), (gate, "command:true"), "a did the work");
    }
}

/// The stop hooks of another configuration have not seen the work.
#[test]
fn under_another_configuration_the_stop_hooks_judge_first() {
    let stalled = UNREACHABLE.replace("says=complete", "says=complete\nhook stop");
    for (other, judged) in [("", "pr"), ("config=hooks:{x:[]}", "stop"), ("agent=command:false", "stop")] {
        let script = format!("{stalled}\nsession b task=T1 grounds=worktrees {other}\nworkspace b\nwork b");
        let mut project = Script::after(hooks(&["stop", "pr"]), &script);
        assert_eq!(project.run(&format!("hook {judged}"))[0], format!("T1 hook_started {judged} 1 by w1"), "{other}");
    }
    // The hooks of another agent have judged it meanwhile, but not those of its own agent.
    let script = UNASKED.replace("says=complete", "says=complete\nhook stop");
    let other = "session b task=T1 grounds=worktrees agent=command:false\nworkspace b\nwork b\nhook stop\nhook tests";
    let again = "hook review out=failure\nsession c task=T1 grounds=worktrees\nworkspace c\nwork c";
    let mut project = Script::after(hooks(&["stop", "tests", "review"]), &format!("{script}\n{other}\n{again}"));
    assert_eq!(project.run("hook stop")[0], "T1 hook_started stop 1 by w1");
}

/// The session ends with the reason each time, and the gate is not asked again in the same run.
#[test]
fn the_same_failure_again_ends_as_before() {
    let mut project = Script::after(hooks(&["pr"]), UNREACHABLE);
    for name in ["b", "c"] {
        let script = format!("session {name} work=graph grounds=worktrees\nworkspace {name}\nwork {name}");
        let answered = project.run(&format!("{script}\n--\nhook pr out=failure message=unreachable"));
        assert_eq!(
            answered,
            [
                "T1 hook_started pr 1 by w1",
                "T1 hook_finished pr Failure",
                "T1 pipeline_failed pr Failed: GiveUp 1/3",
                "T1 task_needs_continuation",
                "T1 session_ended Limit, not finished, and left for the next run: T1"
            ]
        );
        let task = project.task("T1");
        assert_eq!((task.state, task.findings, task.stalled.is_some()), (TaskState::NeedsContinuation, vec![], true));
    }
}

#[test]
fn changed_work_starts_an_iteration() {
    let turn = ["T1 iteration_started b.1", "T1 turn_started b.1 to work"];
    for work in ["work b head=def", "work b commits=0", "unfit b markers"] {
        let script = format!("{UNREACHABLE}\nsession b task=T1 grounds=worktrees\nworkspace b");
        let mut project = Script::after(hooks(&["pr"]), &script);
        assert_eq!(project.session("b").next_action(), NextAction::Work);
        assert_eq!(project.run(work), turn, "{work}");
        assert_eq!(project.task("T1").stalled, None);
    }
}

#[test]
fn changed_task_is_not_resumed_at_gate() {
    for other in [
        "reword T1 two",
        "describe T1 at length",
        "retype T1 docs",
        "answer T1 continue",
        "block T1\nanswer T1 continue please",
        "link T1 depends_on T2\ncomplete T2",
        "fail T1\nreopen T1",
    ] {
        let project = Script::after(hooks(&["pr"]), &format!("{UNREACHABLE}\nadd zero\n{other}"));
        assert_eq!(project.task("T1").stalled, None, "{other}");
    }
    let project = Script::after(hooks(&["pr"]), &format!("{UNREACHABLE}\nrelabel T1 labels=x"));
    assert!(project.task("T1").stalled.is_some(), "labels are no work");
}

/// A person's message before the session continues is for the next agent.
#[test]
fn a_person_is_heard_first() {
    let script = format!("{UNREACHABLE}\nsession b task=T1 grounds=worktrees\nsay b wait\n--");
    let mut project = Script::after(hooks(&["pr"]), &script);
    assert_eq!(
        project.run("workspace b"),
        ["T1 workspace_opened", "T1 iteration_started b.1", "T1 turn_started b.1 to work wait"]
    );
    assert_eq!(project.task("T1").stalled, None);
    // Also while the session checks what there is to submit.
    let script = format!("{UNREACHABLE}\nsession b task=T1 grounds=worktrees\nworkspace b\nsay b wait");
    for go_on in ["work b", "advance b"] {
        let mut project = Script::after(hooks(&["pr"]), &script);
        assert_eq!(project.run(go_on), ["T1 iteration_started b.1", "T1 turn_started b.1 to work wait"]);
    }
}

/// A moved base does not make it other work: the rebased work is what was judged done.
#[test]
fn what_a_hook_has_moved_is_the_same_work() {
    let script = UNREACHABLE.replace("hook pr out", "hook tests moves=def\nhook pr out");
    let begun = "session b task=T1 grounds=worktrees\nworkspace b";
    for (head, next) in [("def", "T1 submission_started"), ("abc", "T1 iteration_started b.1")] {
        let mut project = Script::after(hooks(&["tests", "pr"]), &format!("{script}\n{begun}"));
        assert_eq!(project.run(&format!("work b head={head}"))[0], next);
    }
}

/// On a newer base the work has to be submitted again, even after a stop in between.
#[test]
fn what_has_moved_before_it_was_merged_is_submitted_again() {
    let script = format!("{UNASKED}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook review");
    let script = format!("{script}\nbegin merge\nstop b\nfinish merge out=continue moves=def");
    let mut project = Script::after(hooks(&["tests", "review", "merge"]), &script);
    assert_eq!(project.task("T1").state, TaskState::NeedsContinuation);
    project.run("session c task=T1 grounds=worktrees\nworkspace c");
    assert_eq!(project.run("work c head=def"), ["T1 submission_started"]);
}

#[test]
fn deferred_gate_survives_crash_at_any_moment() {
    let steps = ["session b task=T1 grounds=worktrees", "workspace b", "work b", "begin review"];
    for crashed in 0..=steps.len() {
        let mut project = Script::after(hooks(&["tests", "review"]), UNASKED);
        for (at, step) in steps.iter().enumerate() {
            if at == crashed {
                project.crash();
            }
            project.run(step);
        }
        project.crash();
        let answered = project.run("resume b by=w2\nrecover review by=w2\nfinish review by=w2");
        assert_eq!(answered.last().unwrap(), "T1 session_ended Completed", "{answered:?}");
    }
}

/// A session that is stopped in the middle of it loses nothing.
#[test]
fn an_end_in_the_middle_leaves_it_as_it_was() {
    let script = format!(
        "{UNASKED}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nbegin review\nstop b\nfinish review out=cancelled"
    );
    let mut project = Script::after(hooks(&["tests", "review"]), &script);
    project.run("session c task=T1 grounds=worktrees\nworkspace c");
    assert_eq!(project.run("work c"), ["T1 merge_started"]);
}

/// A cancelled hook has judged nothing, whatever its output and its policy for failures.
#[test]
fn work_on_its_way_goes_on_there_after_a_cancelled_session() {
    let done = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete\nwork a";
    let again = "session b task=T1 grounds=worktrees\nworkspace b";
    for (way, next) in [
        ("begin tests\nstop a\nfinish tests out=cancelled tells=half", "T1 submission_started"),
        ("stop a", "T1 submission_started"),
        ("hook tests\nbegin told\nstop a\nfinish told", "T1 merge_started"),
        ("hook tests\nhook told\nbegin review\nstop a\nfinish review out=cancelled", "T1 merge_started"),
    ] {
        let script = format!("{done}\n{way}\n{again}");
        let mut project = Script::after(hooks(&["tests", "told", "review"]), &script);
        assert_eq!(project.run("work b")[0], next, "{way}");
    }
    let refused = format!("{done}\nhook tests\nhook told\nbegin review\nstop a\nfinish review out=block");
    let project = Script::after(hooks(&["tests", "told", "review"]), &refused);
    assert_eq!(project.task("T1").stalled, None, "a hook has said no");
}

/// The end of the session names a hook that did not pass, across any number of sessions.
#[test]
fn waiver_of_stalled_work_is_told_by_the_session_that_completes_it() {
    let script = UNREACHABLE.replace("worktrees\n", "worktrees retries=0 limit=complete\n");
    let script = script.replace("work a", "hook stop out=block\nwork a");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b");
    let mut project = Script::after(hooks(&["stop", "pr"]), &script);
    let told = project.run("hook pr");
    let waived = "`stop` blocks, and may not send the agent back; `on_retry_limit: complete` lets it pass";
    assert_eq!(told.last().unwrap(), &format!("T1 session_ended Completed, {waived}"));
}

#[test]
fn work_that_is_moved_before_its_gate_is_asked_again_is_submitted_again() {
    for (there, stalled) in [(&["pr"][..], UNREACHABLE), (&["tests", "review"], UNASKED)] {
        let script = format!("{stalled}\nsession b task=T1 grounds=worktrees\nworkspace b");
        let mut project = Script::after(hooks(there), &script);
        assert_eq!(project.run("work b head=def moved=yes"), ["T1 submission_started"]);
        let stalled = project.task("T1").stalled.unwrap();
        assert_eq!((stalled.head.as_str(), stalled.gate, stalled.rejudged), ("def", DeliveryGate::BeforeSubmit, true));
    }
    let script = UNREACHABLE.replace("work a", "hook stop\nwork a");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b head=def moved=yes");
    let mut project = Script::after(hooks(&["stop", "pr"]), &script);
    let told = project.run("hook stop out=block");
    assert!(told.contains(&"T1 pipeline_failed stop Blocked: Remediate 1/3".to_owned()), "{told:?}");
}

#[test]
fn work_that_a_step_moves_after_a_hook_has_judged_it_is_judged_again() {
    let begun =
        "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete\nwork a\nhook tests";
    let mut project = Script::after(hooks(&["tests", "pr", "review"]), begun);
    let told = project.run("hook pr moves=def message=moved");
    assert_eq!(told.last().unwrap(), "T1 pipeline_failed pr Moved: Again 1/10");
    assert_eq!(project.run("work a head=def moved=yes"), ["T1 submission_started"]);

    let mut project = Script::after(hooks(&["tests", "merge", "review"]), begun);
    let told = project.run("hook merge moves=def message=moved");
    assert!(told.contains(&"T1 hook_finished review Skip".to_owned()), "{told:?}");
    assert_eq!(told.last().unwrap(), "T1 pipeline_failed merge Moved: Again 1/10");

    let mut project = Script::after(hooks(&["pr", "tests"]), &begun.replace("\nhook tests", ""));
    project.run("hook pr moves=def message=moved");
    let told = project.run("hook tests");
    assert_eq!(told.last().unwrap(), "T1 session_ended Completed", "what is moved first is judged by all others");
}

/// The result of the work is kept although another caller completes the task.
#[test]
fn what_was_claimed_is_kept() {
    let script = UNREACHABLE.replace("turn-done", "epoch=1 run=a.1 complete T1 forty two\nturn-done");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook pr");
    let project = Script::after(hooks(&["pr"]), &script);
    assert_eq!(project.task("T1").result.as_deref(), Some("forty two"));
}

#[test]
fn work_in_place_is_not_resumed_at_gate() {
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete\nhook pr out=failure message=unreachable";
    let project = Script::after(hooks(&["pr"]), script);
    assert_eq!(project.task("T1").stalled, None);
    assert_eq!(project.task("T1").findings.len(), 1);
    let project = Script::after(hooks(&["pr"]), &script.replace("out=failure", "out=failure unstarted=1"));
    assert_eq!(project.task("T1").findings, [], "what could not be started has nothing to say to an agent");
    let project = Script::after(hooks(&["pr"]), &format!("{UNREACHABLE}\nsession b task=T1"));
    assert!(matches!(project.session("b").next_action(), NextAction::Turn(_)));
}

#[test]
fn unstarted_gatekeeper_is_recorded() {
    let script = UNASKED.replace("out=failure", "out=failure unstarted=1");
    let unstarted =
        |script: &str| Script::after(hooks(&["tests", "review"]), script).task("T1").stalled.unwrap().unstarted;
    assert!(unstarted(&script));
    assert!(!unstarted(UNASKED));
}
