//! Tests of protected files: which files match, and what counts as a change.

use super::*;

#[track_caller]
fn check_protected_files(patterns: &[&str], expected: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    for file in ["gate.sh", "src/lib.rs", "tests/a.rs", "tests/deep/b.rs", "sub/tests/c.rs", ".git/gate.sh"] {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let look = ProtectedFiles::new(&patterns).unwrap().take_snapshot(directory.path()).unwrap();
    let found: Vec<&str> = look.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    assert_eq!(found, expected, "{patterns:?}");
}

#[test]
fn patterns_match_files_and_content_of_directories() {
    check_protected_files(&["gate.sh"], &["gate.sh"]);
    check_protected_files(&["tests/"], &["sub/tests/c.rs", "tests/a.rs", "tests/deep/b.rs"]);
    check_protected_files(&["./tests/*.rs"], &["tests/a.rs"]);
    check_protected_files(&["tests/**/*.rs"], &["tests/a.rs", "tests/deep/b.rs"]);
    check_protected_files(&["*.sh", "src"], &["gate.sh", "src/lib.rs"]);
    check_protected_files(&["./gate.sh", "./tests/"], &["gate.sh", "tests/a.rs", "tests/deep/b.rs"]);
    check_protected_files(&["*/tests/*.rs"], &["sub/tests/c.rs"]);
    check_protected_files(&["{src/lib,tests/deep/b}.rs"], &["src/lib.rs", "tests/deep/b.rs"]);
    check_protected_files(&["tests/[a-d]*/b.rs", "s?b/tests"], &["sub/tests/c.rs", "tests/deep/b.rs"]);
    check_protected_files(&["src/\\lib.rs"], &["src/lib.rs"]);
    check_protected_files(&["nothing"], &[]);
}

#[test]
fn files_of_windlass_itself_are_not_protected() {
    let directory = tempfile::tempdir().unwrap();
    let ours = ["owners/run-1", "runs/s/1.turn", "worktrees/t1/check.sh", "windlass.db-wal", "merge.lock"];
    for file in ["config.yaml", "workflows/check.sh"].iter().chain(&ours) {
        let path = directory.path().join(".windlass").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let look =
        |pattern: &str| ProtectedFiles::new(&[pattern.to_owned()]).unwrap().take_snapshot(directory.path()).unwrap();
    let found = |pattern| look(pattern).lines().map(|line| line[65..].to_owned()).collect::<Vec<_>>();
    assert_eq!(found(".windlass/"), [".windlass/config.yaml", ".windlass/workflows/check.sh"]);
    assert_eq!(found("check.sh"), [".windlass/workflows/check.sh"]);
}

/// Checks whether a search in a project with nine files in `target/out` ends within eight entries.
#[track_caller]
fn check_search_is_bounded(pattern: &str, whole: bool) {
    let directory = tempfile::tempdir().unwrap();
    for place in ["gates/deep", "target/out", ".git"] {
        fs::create_dir_all(directory.path().join(place)).unwrap();
    }
    for number in 0..9 {
        fs::write(directory.path().join(format!("target/out/{number}")), "").unwrap();
        fs::write(directory.path().join(format!(".git/{number}")), "").unwrap();
    }
    fs::write(directory.path().join("gates/a.sh"), "").unwrap();
    let protected = ProtectedFiles::new(&[pattern.to_owned()]).unwrap();
    let found = protected.find_files_bounded(8, directory.path());
    assert_eq!(found.err(), (!whole).then_some(ProtectedFilesError::TooManyEntries(8)), "{pattern}");
    assert!(protected.find_files_bounded(16, directory.path()).is_ok(), "{pattern}");
}

#[test]
fn search_visits_exactly_the_places_that_patterns_can_match() {
    for pattern in ["gates/*.sh", "gates/**", "./gate.sh", "./gates/", "*/*.sh", "ga*/deep/x", "gates/{a,b/c}.sh"] {
        check_search_is_bounded(pattern, true);
    }
    for pattern in ["gate.sh", "gates/", "**/*.sh", "target/**/*.sh", "target", "*/*/x/y", "{gates,x}/*.sh"] {
        check_search_is_bounded(pattern, false);
    }
}

#[test]
fn search_accepts_exactly_the_maximum_of_entries() {
    let directory = tempfile::tempdir().unwrap();
    ["a", "b", "c"].iter().for_each(|name| fs::write(directory.path().join(name), name).unwrap());
    let protected = ProtectedFiles::new(&["a".to_owned()]).unwrap();
    assert!(protected.find_files_bounded(3, directory.path()).is_ok());
    assert_eq!(protected.find_files_bounded(2, directory.path()).err(), Some(ProtectedFilesError::TooManyEntries(2)));
}

#[test]
fn difference_names_changed_added_and_removed_files() {
    assert_eq!(describe_difference("1 a\n2 b\n", "1 a\n2 b\n"), None);
    assert_eq!(describe_difference("1 a\n2 b\n", "3 a\n4 c c\n").as_deref(), Some("a, b, c c"));
    let many: String = (0..9).map(|n| format!("{n} f{n}\n")).collect();
    assert_eq!(describe_difference("", &many).as_deref(), Some("f0, f1, f2, f3, f4 and 4 more"));
    // A file `a` with a line break in its name, and a second line like that of `b`.
    assert_eq!(describe_difference("1 a\n2 b\n", "1 a\n1 a\n2 b\n3 b\n").as_deref(), Some("b"));
    assert_eq!(describe_difference("1 a\n", "1 a\n1 a\n").as_deref(), Some("files whose names are alike"));
}

/// Another target is a change even with the same content.
#[test]
fn link_with_another_target_is_a_change() {
    let place = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        fs::write(place.path().join(name), "the same").unwrap();
    }
    let link = place.path().join("check.sh");
    let protected = ProtectedFiles::new(&["check.sh".to_owned()]).unwrap();
    let looks = ["one", "two"].map(|target| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).unwrap();
        protected.take_snapshot(place.path()).unwrap()
    });
    assert_eq!(describe_difference(&looks[0], &looks[1]).as_deref(), Some("check.sh, one, two"));
}

/// A project with protected links, and the reported changes after each edit.
#[test]
fn protected_links_protect_their_targets_in_the_project() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for directory in ["gates", "real/deep", "other"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    for file in ["real/a", "real/deep/b", "other/check.sh", "other/free"] {
        fs::write(path(file), file).unwrap();
    }
    let links = [
        ("../real", "gates/tree"),
        ("..", "gates/up"),
        ("gone", "gates/gone"),
        ("loop", "gates/loop"),
        ("other", "way"),
    ];
    for (target, link) in links {
        std::os::unix::fs::symlink(target, path(link)).unwrap();
    }
    let protected = ProtectedFiles::new(&["gates/".to_owned(), "way/check.sh".to_owned()]).unwrap();
    let before = protected.take_snapshot(place.path()).unwrap();
    let changed = || describe_difference(&before, &protected.take_snapshot(place.path()).unwrap()).unwrap_or_default();
    fs::write(path("other/free"), "changed").unwrap();
    assert_eq!(changed(), "");
    fs::write(path("real/deep/b"), "changed").unwrap();
    assert_eq!(changed(), "real/deep/b");
    fs::write(path("other/check.sh"), "changed").unwrap();
    assert_eq!(changed(), "real/deep/b, way/check.sh");
}

#[test]
fn attributes_above_protected_files_are_protected() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for directory in ["gates", "gates/deep", "docs", "real/deep"] {
        fs::create_dir_all(path(directory)).unwrap();
        fs::write(path(directory).join(".gitattributes"), "").unwrap();
    }
    fs::write(path("real/deep/a"), "").unwrap();
    std::os::unix::fs::symlink("/dev/null", path(".gitattributes")).unwrap();
    std::os::unix::fs::symlink("../real/deep/a", path("gates/linked.sh")).unwrap();
    let found = |pattern: &str| -> Vec<String> {
        let look = ProtectedFiles::new(&[pattern.to_owned()]).unwrap().take_snapshot(place.path()).unwrap();
        look.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
    };
    assert_eq!(found("docs/a"), [".gitattributes", "docs/.gitattributes"]);
    let linked = ["gates/linked.sh", "real/deep/.gitattributes", "real/deep/a"];
    assert_eq!(found("gates/*.sh"), [&[".gitattributes", "gates/.gitattributes"], &linked[..]].concat());
    assert!(found("a.sh").contains(&"gates/deep/.gitattributes".to_owned()));
    assert_eq!(ProtectedFiles::new(&[]).unwrap().take_snapshot(place.path()).unwrap(), "");
}

#[test]
fn link_out_of_the_project_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("project")).unwrap();
    fs::write(root.join("secret"), "").unwrap();
    std::os::unix::fs::symlink("../secret", root.join("project/linked")).unwrap();
    let protected = ProtectedFiles::new(&["linked".to_owned()]).unwrap();
    let target = root.join("secret").display().to_string();
    let expected = format!("`linked` leads out of the project, to `{target}`: put the file itself into the project");
    assert_eq!(protected.take_snapshot(&root.join("project")).unwrap_err().to_string(), expected);
}

/// Creates a project with a file `g1/a.sh` and the link `gates` to its directory.
fn project_with_link() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap().join("project");
    for directory in ["project/g1", "elsewhere"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
        fs::write(place.path().join(directory).join("a.sh"), "").unwrap();
    }
    std::os::unix::fs::symlink("g1", root.join("gates")).unwrap();
    (place, root)
}

#[test]
fn link_above_protected_files_counts_as_its_target() {
    for pattern in ["a.sh", "*.sh", "**/a.sh", "gates/a.sh", "*/a.sh", "gates/**"] {
        let (_place, root) = project_with_link();
        let protected = ProtectedFiles::new(&[pattern.to_owned()]).unwrap();
        let before = protected.take_snapshot(&root).unwrap();
        fs::remove_file(root.join("gates")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", root.join("gates")).unwrap();
        let changed = describe_difference(&before, &protected.take_snapshot(&root).unwrap()).unwrap_or_default();
        assert!(changed.contains("gates"), "{pattern}: {changed}");
    }
}

#[test]
fn link_that_comes_or_goes_is_no_change_by_itself() {
    let (_place, root) = project_with_link();
    let protected = ProtectedFiles::new(&["a.sh".to_owned()]).unwrap();
    let before = protected.take_snapshot(&root).unwrap();
    std::os::unix::fs::symlink("../elsewhere", root.join("more")).unwrap();
    let now = protected.take_snapshot(&root).unwrap();
    assert_eq!((describe_difference(&before, &now), describe_difference(&now, &before)), (None, None));
    fs::remove_file(root.join("gates")).unwrap();
    fs::create_dir(root.join("gates")).unwrap();
    fs::write(root.join("gates/a.sh"), "").unwrap();
    assert_eq!(describe_difference(&before, &protected.take_snapshot(&root).unwrap()).as_deref(), Some("gates/a.sh"));
}

/// For example the link of a build tool to its cache.
#[test]
fn link_out_of_the_project_beside_protected_files_is_no_reason_to_refuse() {
    let (_place, root) = project_with_link();
    std::os::unix::fs::symlink("../elsewhere", root.join("bazel-bin")).unwrap();
    let look = ProtectedFiles::new(&["*/a.sh".to_owned()]).unwrap().take_snapshot(&root).unwrap();
    let found: Vec<&str> = look.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    assert_eq!(found, ["g1/a.sh", "gates/a.sh", "bazel-bin", "gates"]);
}

#[test]
fn mode_of_a_file_counts() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("check.sh");
    fs::write(&file, "").unwrap();
    let protected = ProtectedFiles::new(&["check.sh".to_owned()]).unwrap();
    let looks = [0o644, 0o755, 0o600].map(|mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        protected.take_snapshot(place.path()).unwrap()
    });
    assert_eq!(describe_difference(&looks[0], &looks[1]).as_deref(), Some("check.sh"));
    assert_eq!(describe_difference(&looks[0], &looks[2]), None);
}

#[test]
fn endless_files_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x");
    let protected = ProtectedFiles::new(&["x".to_owned()]).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let said = || protected.take_snapshot(place.path()).unwrap_err().to_string();
    assert_eq!(said(), "`x` is a socket, not a file: remove it, or put a file in its place");
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(said(), "`x` is larger than 256 MiB: make it smaller, or move it away");
}

/// The content tells two files apart whose masked names are the same.
#[test]
fn secret_in_file_name_is_masked_in_difference() {
    let place = tempfile::tempdir().unwrap();
    let protected =
        ProtectedFiles::new(&["*.lock".to_owned()]).unwrap().with_mask(SecretMask::new([("KEY", "hunter22")]));
    let empty = protected.take_snapshot(place.path()).unwrap();
    fs::write(place.path().join("a-hunter22.lock"), "a").unwrap();
    let one = protected.take_snapshot(place.path()).unwrap();
    assert_eq!(describe_difference(&empty, &one).as_deref(), Some("a-[secret KEY].lock"));
    fs::write(place.path().join("a-hun\x1b[1mter22.lock"), "a").unwrap();
    let two = protected.take_snapshot(place.path()).unwrap();
    assert_eq!(describe_difference(&one, &two).as_deref(), Some("files whose names are alike"));
    fs::write(place.path().join("a-hunter22.lock"), "b").unwrap();
    assert_eq!(
        describe_difference(&two, &protected.take_snapshot(place.path()).unwrap()).as_deref(),
        Some("a-[secret KEY].lock")
    );
}
