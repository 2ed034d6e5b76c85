//! What is kept of a configuration between commands changes nothing that anybody sees.

use std::fs;
use std::path::PathBuf;

use crate::support::World;
use crate::support::hooked::hooked;

/// Long enough to be kept: many hooks of other events, and one that leaves a mark for each task.
fn configuration(mark: &str) -> String {
    let others: String = (0..40)
        .map(|n| format!("    - {{name: other {n}, command: touch other, when: \"'{n}' in task.labels\"}}\n"))
        .collect();
    format!("hooks:\n  task_failed:\n{others}  task_created:\n    - {{name: mark, command: 'echo {mark} >> marks'}}\n")
}

fn plans(world: &World) -> PathBuf {
    world.directory.with_file_name("state").join("plans")
}

fn kept(world: &World) -> Vec<PathBuf> {
    let Ok(listed) = fs::read_dir(plans(world)) else { return vec![] };
    listed.map(|entry| entry.unwrap().path()).collect()
}

/// Adds a task, and says which marks that left.
fn marks(world: &World) -> String {
    let _ = fs::remove_file(world.path("marks"));
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    fs::read_to_string(world.path("marks")).unwrap_or_default()
}

#[test]
fn hooks_run_whatever_became_of_the_index() {
    let world = hooked(&configuration("one"));
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
    assert_eq!(marks(&world), "one\n");
    let [file] = kept(&world).try_into().unwrap();
    let sound = fs::read(&file).unwrap();
    assert_eq!(marks(&world), "one\n");
    assert!(fs::read(&file).unwrap() == sound);

    let damages = [
        ("cut", Some(sound[..sound.len() / 10].to_vec())),
        ("empty", Some(vec![])),
        ("changed", Some(sound.iter().map(|byte| byte ^ 1).collect())),
        ("another's", Some(sound.repeat(2).split_off(7))),
        ("gone", None),
    ];
    for (what, bytes) in damages {
        match bytes {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        // The first notices, the second makes it again at the latest.
        assert_eq!([marks(&world), marks(&world)], ["one\n"; 2], "{what}");
        assert!(fs::read(&file).unwrap() == sound, "{what}");
    }
    fs::remove_dir_all(plans(&world)).unwrap();
    fs::write(plans(&world), "in the way").unwrap();
    assert_eq!(marks(&world), "one\n");
}

#[test]
fn a_change_of_the_file_is_seen_at_once() {
    let world = hooked(&configuration("one"));
    assert_eq!(marks(&world), "one\n");
    world.write(".windlass/config.yaml", configuration("two"));
    assert_eq!(world.run(&["task", "add", "One"]).code, 64, "nobody has trusted it");
    world.ok(&["trust", "--yes"]);
    assert_eq!(marks(&world), "two\n");
    assert_eq!(kept(&world).len(), 2);

    world.write(".windlass/config.yaml", configuration("two").replace("command: 'echo", "comand: 'echo"));
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("unknown key `comand`"), "{}", ran.stderr);
}

#[test]
fn a_short_configuration_leaves_nothing_behind() {
    let world = hooked("hooks: {task_created: [{command: 'echo one >> marks'}]}");
    assert_eq!(marks(&world), "one\n");
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}

#[test]
fn commands_that_only_read_make_none() {
    let world = hooked(&configuration("one"));
    for words in [["task", "ready"], ["task", "list"], ["hooks", "list"], ["config", "check"]] {
        world.ok(&words);
    }
    assert_eq!(kept(&world), Vec::<PathBuf>::new());
}
