//! Types of tasks on the command line and in a run

use insta::assert_snapshot;

use crate::support::{TestWorld, normalize_durations};
use crate::test_run::create_agent_project;

/// `product` is for ann and bob, `infra` for ann.
const TASK_TYPES_CONFIG: &str = "
agents:
  ann: {command: sh agent.sh}
  bob: {command: sh agent.sh}
task_types:
  product: {agents: {implementer: [ann, bob]}}
  infra: {agents: {implementer: [ann]}}
  open: {}
";

const COMPLETING_AGENT: &str =
    "echo \"$WINDLASS_TASK_ID\" >> worked\necho 'It works.'; echo '<promise>COMPLETE</promise>'";

/// A project with one task of each type, and one without.
fn create_typed_tasks() -> TestWorld {
    let world = create_agent_project(TASK_TYPES_CONFIG, COMPLETING_AGENT);
    world.run_ok(&["init"]);
    for (goal, kind, priority) in [("Move", "infra", "0"), ("Sell", "product", "1"), ("Tidy", "open", "2")] {
        world.run_ok(&["task", "add", goal, "--type", kind, "-p", priority]);
    }
    world.run_ok(&["task", "add", "Read", "-p", "3"]);
    world
}

fn worked_tasks(world: &TestWorld) -> String {
    std::fs::read_to_string(world.path("worked")).unwrap_or_default().replace('\n', " ")
}

#[test]
fn unknown_task_type_is_refused_with_suggestion() {
    let world = create_typed_tasks();
    assert_snapshot!(world.run(&["task", "add", "x", "--type", "prodct"]), @"
    error: there is no type `prodct`; did you mean `product`? There are infra, open and product
    hint: a new type is a line under `task_types` in the configuration
    [exit 64]
    ");
    assert_snapshot!(world.run(&["task", "update", "T4", "--type", "marketing"]), @"
    error: there is no type `marketing`; there are infra, open and product
    hint: a new type is a line under `task_types` in the configuration
    [exit 64]
    ");
    world.run_ok(&["task", "update", "T4", "--type", "open"]);
    world.run_ok(&["task", "update", "T4", "--type", ""]);
    // Types that a project does not define are open to all.
    world.write(".windlass/config.yaml", "version: 1\n");
    world.run_ok(&["task", "add", "x", "--type", "marketing"]);
}

#[test]
fn claim_takes_only_tasks_allowed_for_agent() {
    let world = create_typed_tasks();
    assert_snapshot!(world.run(&["task", "claim", "T1", "--agent", "bob"]), @"
    error: T1 is of the type `infra`, on which `bob` may not work; only `ann` may
    hint: `task_types.infra.agents.implementer` in the configuration says who may; a person takes it with `windlass task claim T1`, without --agent
    [exit 1]
    ");
    let next = |agent: &str| world.json(&["task", "next", "--agent", agent])["id"].clone();
    assert_eq!([next("ann"), next("bob"), next("cid")], ["T1", "T2", "T3"]);
    assert_eq!(world.json(&["task", "next"])["id"], "T3");
    let ready = |words: &[&str]| -> Vec<String> {
        let found = world.json_lines(&[&["task", "ready"], words].concat());
        found.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ready(&[]), ["T1", "T2", "T3", "T4"]);
    assert_eq!(ready(&["--agent", "bob"]), ["T2", "T3", "T4"]);
    let claim = |words: &[&str]| world.json(&[&["task", "claim"], words].concat())["id"].clone();
    assert_eq!([claim(&["--agent", "bob"]), claim(&[]), claim(&[])], ["T2", "T3", "T4"]);
    assert_snapshot!(world.run(&["task", "claim"]), @"
    error: nothing is ready that is open to all; T1 is of the type `infra`, and only `ann` may
    hint: --agent NAME says who asks; a person takes it with `windlass task claim T1`
    [exit 1]
    ");
    assert_snapshot!(world.run(&["task", "next", "--agent", "bob"]), @"
    error: nothing is ready for `bob`; T1 is of the type `infra`, and only `ann` may
    hint: --agent NAME says who asks; a person takes it with `windlass task claim T1`
    [exit 1]
    ");
    // A person takes it by its id.
    assert_eq!(claim(&["T1"]), "T1");
}

#[test]
fn run_works_only_on_allowed_tasks_and_reports_others() {
    let world = create_typed_tasks();
    assert_snapshot!(world.run(&["run", "--task", "T1", "--agent", "bob"]), @"
    error: T1 is of the type `infra`, on which `bob` may not work; only `ann` may
    hint: `task_types.infra.agents.implementer` in the configuration says who may; a person takes it with `windlass task claim T1`, without --agent
    [exit 1]
    ");
    let ran = world.run(&["run", "--agent", "bob"]);
    assert_eq!(ran.code, 0, "{ran}");
    let told = normalize_durations(&ran.stdout);
    let (_, end) = told.split_once("T4 is completed\n").expect("the last task that it may work on");
    assert_snapshot!(end, @"
    complete after 3 iterations: nothing is ready for `bob`; T1 is of the type `infra`, and only `ann` may
      took <took> agent <took> 3 turns
      note: nothing checked this work (3 tasks); add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
      left: T1  ready  Move: ann may
    ");
    assert_eq!(worked_tasks(&world), "T2 T3 T4 ");
    assert_snapshot!(world.run(&["run", "--agent", "bob"]), @"
    nothing is ready for `bob`; T1 is of the type `infra`, and only `ann` may
      left: T1  ready  Move: ann may
    ");
    world.run_ok(&["run", "--agent", "ann"]);
    assert_eq!(worked_tasks(&world), "T2 T3 T4 T1 ");
}

#[test]
fn agent_identity_in_turn_comes_from_its_session() {
    let agent = "windlass task claim T1 --agent ann > claimed 2>&1\nwindlass task next > next 2>&1\n\
                 echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project(TASK_TYPES_CONFIG, agent);
    std::os::unix::fs::symlink(crate::support::WINDLASS, world.program_directory().join("windlass")).unwrap();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Move", "--type", "infra", "-p", "0"]);
    world.run_ok(&["task", "add", "Sell", "--type", "product"]);
    world.run_ok(&["run", "--task", "T2", "--agent", "bob"]);
    let said = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    assert!(said("claimed").starts_with("error: the agent of this session is `bob`, not `ann`"), "{}", said("claimed"));
    assert!(
        said("next").starts_with("error: nothing is ready for `bob`; T1 is of the type `infra`"),
        "{}",
        said("next")
    );
}

#[test]
fn gatekeeper_after_merge_is_refused_by_check_and_run() {
    let world = create_typed_tasks();
    world.write(".windlass/config.yaml", "hooks:\n  before_merge: [merge_pr, gatekeeper: [qa]]\n");
    let check = world.run(&["config", "check"]);
    assert_snapshot!(check, @"
    error: `before_merge[1]:gatekeeper` runs after `merge_pr`, when the change is merged
     --> $WORK/.windlass/config.yaml:2:28
      |
    2 |   before_merge: [merge_pr, gatekeeper: [qa]]
      |                            ^^^^^^^^^^^^^^^^^
    hint: let it run before `merge_pr`
    [exit 64]
    ");
    let run = world.run(&["run", "x", "--agent", "command:true"]);
    assert_eq!((run.code, &run.stderr), (64, &check.stderr), "{run}");
}

#[test]
fn hooks_show_lists_configured_and_default_gatekeeper_briefs() {
    let world = create_typed_tasks();
    let config =
        "briefs: {qa: Is it tested?}\nhooks:\n  before_merge:\n    - {gatekeeper: [qa, taste], name: review}\n";
    world.write(".windlass/config.yaml", config);
    let briefs = &world.json(&["hooks", "show", "review"])["briefs"];
    assert_eq!(briefs["qa"], "Is it tested?");
    assert_eq!(briefs["taste"], "Judge this change by one question: taste. Approve it only if the answer is good.");
}
