//! Links in place of a project's own directories: they are refused, and nothing behind them is touched

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::TestWorld;

const AGENT: &str = "command:echo '<promise>COMPLETE</promise>'";

#[test]
fn link_in_the_place_of_a_directory_of_ours_is_refused_and_nothing_behind_it_is_touched() {
    for name in [".windlass", ".windlass/runs", ".windlass/worktrees", ".windlass/owners", ".windlass/workflows"] {
        let world = TestWorld::with_tasks(&["Mine"]);
        let place = world.path(name);
        let away = world.path("away");
        fs::create_dir_all(&place).unwrap();
        fs::rename(&place, &away).unwrap();
        world.write("away/commands/precious", "gold");
        let old = fs::File::options().write(true).open(world.path("away/commands/precious")).unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        symlink(&away, &place).unwrap();
        for words in [&["status"][..], &["task", "add", "One"], &["run", "--agent", AGENT], &["doctor"], &["init"]] {
            let ran = world.run(words);
            assert_eq!(ran.code, 64, "{name} {words:?}\n{ran}");
            assert!(ran.stderr.contains("is a symbolic link"), "{name} {words:?}\n{ran}");
        }
        assert_eq!(world.read_file("away/commands/precious"), "gold");
    }
}
