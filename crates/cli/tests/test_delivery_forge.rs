//! Changes on a forge: opened once whatever happens, merged there, and recorded here.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_testkit::forge::{Forge, ForgeFault, ForgeFlavour, GitBackend, PullStage, TOKEN};

use crate::support::CommandOutput;
use crate::support::git_project::GitProject;

const PROJECT_PATH: &str = "ann/shop";

/// A forge that keeps its changes in a bare repository.
struct ForgeRepository {
    repo: GitProject,
    forge: Forge,
}

#[expect(clippy::disallowed_methods, reason = "this is git as a forge has it")]
fn run_git(directory: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", directory);
    command.args(["-c", "user.name=Forge", "-c", "user.email=forge@example.org"]).args(words).current_dir(directory);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

impl ForgeRepository {
    fn new(flavour: ForgeFlavour, steps: &str) -> Self {
        let repo = GitProject::with_remote("");
        let remote = repo.remote_path();
        let (head_of, merge_in) = (remote.clone(), remote.clone());
        let ground = GitBackend {
            head: Box::new(move |branch| {
                run_git(&head_of, &["rev-parse", "--verify", "-q", &format!("refs/heads/{branch}")]).ok()
            }),
            merge: Box::new(move |pull, _| {
                let base = format!("refs/heads/{}", pull.base);
                let tree = run_git(&merge_in, &["rev-parse", &format!("{}^{{tree}}", pull.head)])?;
                let words = ["commit-tree", &tree, "-p", &base, "-p", &pull.head, "-m", &pull.title];
                let commit = run_git(&merge_in, &words)?;
                run_git(&merge_in, &["update-ref", &base, &commit])?;
                Ok(commit)
            }),
        };
        let forge = Forge::start(flavour, PROJECT_PATH, ground).unwrap();
        let kind = match flavour {
            ForgeFlavour::GitHub => "github",
            ForgeFlavour::GitLab => "gitlab",
        };
        // The address is the forge's; git's ssh command leads to the repository.
        let script = "for last; do :; done\nverb=${last%% *}\nexec git \"${verb#git-}\"";
        let ssh = repo.write_program("led", &format!("{script} '{}'", remote.display()));
        repo.git(&["remote", "set-url", "origin", "git@forge.example.org:ann/shop.git"]);
        repo.git(&["config", "core.sshCommand", &ssh.to_string_lossy()]);
        repo.git(&["config", "ssh.variant", "simple"]);
        let config = format!("forge: {{kind: {kind}, api: {}}}\n{steps}", forge.api());
        repo.world.configure(&config);
        repo.set_agent("echo work > work.txt");
        Self { repo, forge }
    }

    fn windlass_command(&self, words: &[&str]) -> Command {
        let mut command = self.repo.world.command(words);
        command.env("GH_ENTERPRISE_TOKEN", TOKEN).env("GITLAB_TOKEN", TOKEN);
        command
    }

    fn run_windlass(&self, words: &[&str]) -> CommandOutput {
        self.repo.world.run_command(&mut self.windlass_command(words))
    }

    fn run_ready_tasks(&self) -> CommandOutput {
        self.run_windlass(&["run", "--trust", "--agent", "command:agent"])
    }
}

const SUBMIT_CONFIG: &str = "hooks:\n  before_submit: [create_pr]\n";
const MERGE_CONFIG: &str = "hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n";

#[test]
fn change_is_opened_and_merged_on_its_forge() {
    for flavour in [ForgeFlavour::GitHub, ForgeFlavour::GitLab] {
        let hosted = ForgeRepository::new(flavour, MERGE_CONFIG);
        hosted.repo.add_task("Write it");
        let ran = hosted.run_ready_tasks();
        assert_eq!(ran.code, 0, "{flavour:?}\n{ran}");
        let pulls = hosted.forge.pulls();
        assert_eq!(pulls.len(), 1);
        assert_eq!((pulls[0].branch.as_str(), pulls[0].title.as_str()), ("windlass/t1-write-it", "Write it"));
        let PullStage::Merged { commit } = &pulls[0].stage else { panic!("{pulls:?}\n{ran}") };
        let task = hosted.repo.show_task("T1");
        assert_eq!(
            (task["state"].as_str(), task["change"]["merged"].as_str()),
            (Some("completed"), Some(commit.as_str()))
        );
        let url = task["change"]["url"].as_str().unwrap();
        assert!(ran.stdout.contains(&format!("its change: {url}")), "{ran}");
        assert_eq!(run_git(&hosted.repo.remote_path(), &["show", "main:work.txt"]).unwrap(), "work");
        let branch = run_git(&hosted.repo.remote_path(), &["rev-parse", "--verify", "windlass/t1-write-it"]);
        assert!(branch.is_ok(), "what becomes of it is for the forge to say: {branch:?}");
    }
}

/// Killed after the push and before the change is opened.
#[test]
fn change_is_opened_once_although_run_is_killed_after_push() {
    for flavour in [ForgeFlavour::GitHub, ForgeFlavour::GitLab] {
        let hosted = ForgeRepository::new(flavour, SUBMIT_CONFIG);
        let repo = &hosted.repo;
        repo.add_task("Write it");
        repo.world.make_pipe("pushed");
        let hook = repo.remote_path().join("hooks/post-receive");
        let pipe = repo.world.path("pushed");
        let script =
            format!("#!/bin/sh\n[ -p '{0}' ] && {{ echo pushed > '{0}'; exec sleep 60; }}\nexit 0\n", pipe.display());
        fs::write(&hook, script).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut child = hosted.windlass_command(&["run", "--trust", "--agent", "command:agent"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        repo.world.await_pipe("pushed");
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&pipe).unwrap();
        assert!(hosted.forge.pulls().is_empty());
        for _ in 0..2 {
            let ran = hosted.run_ready_tasks();
            assert_eq!(ran.code, 0, "{flavour:?}\n{ran}");
            assert_eq!(hosted.forge.pulls().len(), 1, "{ran}");
        }
        assert_eq!(repo.events_of_type("change_opened").len(), 1);
        assert_eq!(repo.show_task("T1")["state"], "completed");
    }
}

/// The task was taken away after the push and before the change is opened: the rest belongs to its new holder.
#[test]
fn task_claimed_by_another_owner_after_push_opens_no_change() {
    let hosted = ForgeRepository::new(ForgeFlavour::GitHub, SUBMIT_CONFIG);
    let repo = &hosted.repo;
    repo.add_task("Write it");
    repo.world.make_pipe("pushed");
    repo.world.make_pipe("go");
    let (pushed, go) = (repo.world.path("pushed"), repo.world.path("go"));
    let hook = repo.remote_path().join("hooks/post-receive");
    fs::write(&hook, format!("#!/bin/sh\necho > '{}'\ncat '{}'\n", pushed.display(), go.display())).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut child = hosted.windlass_command(&["run", "--trust", "--agent", "command:agent"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    repo.world.await_pipe("pushed");
    for words in [&["task", "release", "T1", "--force"][..], &["task", "claim", "T1", "--owner", "bob"]] {
        let ran = hosted.run_windlass(words);
        assert_eq!(ran.code, 0, "{ran}");
    }
    fs::write(&go, "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(hosted.forge.pulls().is_empty(), "{ended:?}");
    assert!(repo.events_of_type("change_opened").is_empty());
}

#[test]
fn change_merge_merges_on_forge_unless_change_was_closed() {
    let hosted = ForgeRepository::new(ForgeFlavour::GitHub, SUBMIT_CONFIG);
    hosted.repo.add_task("Write it");
    assert_eq!(hosted.run_ready_tasks().code, 0);
    let listed = hosted.run_windlass(&["change", "list", "--refresh"]);
    assert!(listed.stdout.starts_with("T1  open  windlass/t1-write-it → main  one commit, one file"), "{listed}");
    hosted.forge.edit(1, |pull| pull.stage = PullStage::Closed);
    let listed = hosted.run_windlass(&["change", "list", "--refresh"]);
    assert!(listed.stdout.starts_with("T1  closed"), "{listed}");
    let refused = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
    assert!(refused.code == 1 && refused.stderr.contains("was closed without having been merged"), "{refused}");
    hosted.forge.edit(1, |pull| pull.stage = PullStage::Open);
    let merged = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
    assert!(merged.code == 0 && merged.stdout.contains("merged into origin/main as "), "{merged}");
    assert!(matches!(hosted.forge.pulls()[0].stage, PullStage::Merged { .. }));
    assert_eq!(run_git(&hosted.repo.remote_path(), &["show", "main:work.txt"]).unwrap(), "work");
}

/// Only a trusted configuration decides who gets the person's token.
#[test]
fn forge_of_untrusted_configuration_is_not_queried() {
    let hosted = ForgeRepository::new(ForgeFlavour::GitHub, SUBMIT_CONFIG);
    hosted.repo.add_task("Write it");
    assert_eq!(hosted.run_ready_tasks().code, 0);
    hosted.forge.edit(1, |pull| pull.stage = PullStage::Closed);
    let config = format!("forge: {{kind: github, api: {}}}\nbase_branch: main\n", hosted.forge.api());
    hosted.repo.world.write(".windlass/config.yaml", config);
    let listed = hosted.run_windlass(&["change", "list", "--refresh"]);
    assert!(listed.stdout.starts_with("T1  open"), "{listed}");
    assert!(listed.stderr.contains("the configuration is not trusted, so the defaults apply"), "{listed}");
    let listed = hosted.run_windlass(&["change", "list", "--refresh", "--trust"]);
    assert!(listed.stdout.starts_with("T1  closed"), "{listed}");
}

/// The person who closed it has decided something, and is asked.
#[test]
fn change_closed_on_forge_blocks_task_instead_of_resubmitting() {
    let steps = "hooks:\n  before_submit: [create_pr, {name: later, command: 'test -e $WINDLASS_PROJECT_DIR/later || exit 2'}]\nlimits: {max_remediations: 0}\n";
    for flavour in [ForgeFlavour::GitHub, ForgeFlavour::GitLab] {
        let hosted = ForgeRepository::new(flavour, steps);
        hosted.repo.add_task("Write it");
        let ran = hosted.run_ready_tasks();
        assert_eq!((ran.code, hosted.forge.pulls().len()), (3, 1), "{flavour:?}\n{ran}");
        hosted.repo.world.write("later", "");
        hosted.forge.edit(1, |pull| pull.stage = PullStage::Closed);
        let ran = hosted.run_ready_tasks();
        assert_eq!((ran.code, hosted.forge.pulls().len()), (4, 1), "{flavour:?}\n{ran}");
        assert!(ran.stdout.contains("was closed without having been merged; reopen it there to continue"), "{ran}");
        assert_eq!(hosted.repo.show_task("T1")["state"], "blocked", "{ran}");
    }
}

#[test]
fn change_merged_on_forge_is_recorded_by_change_merge() {
    let hosted = ForgeRepository::new(ForgeFlavour::GitLab, SUBMIT_CONFIG);
    hosted.repo.add_task("Write it");
    assert_eq!(hosted.run_ready_tasks().code, 0);
    let commit = run_git(&hosted.repo.remote_path(), &["rev-parse", "main"]).unwrap();
    hosted.forge.edit(1, |pull| pull.stage = PullStage::Merged { commit: commit.clone() });
    let listed = hosted.run_windlass(&["change", "list", "--refresh"]);
    assert!(listed.stdout.contains("`windlass change merge T1` records it"), "{listed}");
    let noted = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
    assert!(noted.code == 0 && noted.stdout.contains("already in main"), "{noted}");
    assert_eq!(hosted.repo.show_task("T1")["change"]["merged"], commit.as_str());
    assert!(!hosted.repo.world.path(".windlass/worktrees/t1-write-it").exists());
}

/// A person merges on the forge while another commit is on its way, before Windlass looks or after.
#[test]
fn commits_that_the_forge_has_not_merged_are_not_given_up() {
    for is_late in [false, true] {
        let hosted = ForgeRepository::new(ForgeFlavour::GitHub, SUBMIT_CONFIG);
        let repo = &hosted.repo;
        repo.add_task("Write it");
        assert_eq!(hosted.run_ready_tasks().code, 0);
        let head = hosted.forge.pulls()[0].head.clone();
        let commit = run_git(&repo.remote_path(), &["rev-parse", "main"]).unwrap();
        match is_late {
            true => hosted.forge.fault("GET", ForgeFault::Merge { number: 1, commit }),
            false => hosted.forge.edit(1, |pull| pull.stage = PullStage::Merged { commit }),
        }
        let worktree = repo.world.path(".windlass/worktrees/t1-write-it");
        repo.world.write(".windlass/worktrees/t1-write-it/more.txt", "more\n");
        for words in [&["add", "more.txt"][..], &["commit", "-q", "-m", "More"]] {
            run_git(&worktree, words).unwrap();
        }
        let refused = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
        let left_out = format!("#1 was merged at {}, without the last commits of windlass/t1-write-it", &head[..10]);
        assert!(refused.code == 1 && refused.stderr.contains(&left_out), "{refused}");
        assert!(worktree.join("more.txt").exists());
        assert_eq!(repo.show_task("T1")["change"]["merged"], serde_json::Value::Null);
        run_git(&worktree, &["reset", "-q", "--hard", &head]).unwrap();
        let noted = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
        assert!(noted.code == 0 && noted.stdout.contains("already in main"), "{noted}");
    }
}

#[test]
fn another_change_is_opened_for_commits_that_the_forge_has_not_merged() {
    let steps = "hooks:\n  before_submit: [create_pr]\n  before_merge: [{name: hold, command: 'test -e $WINDLASS_PROJECT_DIR/go || exit 2'}, merge_pr]\nlimits: {max_rejections: 0}\n";
    let hosted = ForgeRepository::new(ForgeFlavour::GitLab, steps);
    let repo = &hosted.repo;
    repo.add_task("Write it");
    let ran = hosted.run_ready_tasks();
    assert_eq!((ran.code, hosted.forge.pulls().len()), (4, 1), "{ran}");
    let commit = run_git(&repo.remote_path(), &["rev-parse", "main"]).unwrap();
    repo.world.write("go", "");
    repo.set_agent("echo more > more.txt");
    repo.world.run_ok(&["answer", "T1", "continue", "--trust"]);
    // The change is open when the work is submitted, and merged when it is to be merged.
    hosted.forge.fault("GET", ForgeFault::Merge { number: 1, commit });
    let ran = hosted.run_ready_tasks();
    assert_eq!((ran.code, hosted.forge.pulls().len()), (4, 1), "{ran}");
    let left_out =
        "without the last commits of windlass/t1-write-it; `windlass answer T1 continue` opens another change";
    assert!(ran.stdout.contains(left_out), "{ran}");
    let refused = hosted.run_windlass(&["change", "merge", "T1", "--trust"]);
    assert!(refused.stderr.contains("hint: `windlass answer T1 continue` lets the next run open another"), "{refused}");
    repo.world.run_ok(&["answer", "T1", "continue", "--trust"]);
    let ran = hosted.run_ready_tasks();
    let pulls = hosted.forge.pulls();
    assert_eq!((ran.code, pulls.len()), (0, 2), "{ran}");
    assert!(matches!(pulls[1].stage, PullStage::Merged { .. }), "{ran}");
    assert_eq!(run_git(&repo.remote_path(), &["show", "main:more.txt"]).unwrap(), "more");
}
