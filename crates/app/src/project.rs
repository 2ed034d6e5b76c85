//! The search for the project of a command.
//!
//! ```text
//! --project DIR ─► WINDLASS_PROJECT ─► main worktree of a linked git worktree ─► nearest parent with `.windlass/`
//! ```
//!
//! Invariants:
//! - The search starts no program: it reads git's files, and only as far as git's own rules for them go.
//! - A `.git` file counts as a worktree's only if the repository that it names points back at it. Otherwise a directory could
//!   lead its visitors into another project.
//! - A project's root is a real path, without symbolic links. Neither `.windlass` nor a Windlass directory below it is a link.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use windlass_engine::Digest;
use windlass_process::file;
use windlass_vcs::git::{GitRepository, has_git_entry};

use crate::{Failure, FailureCode, environment, retention};

/// The directory that makes its parent a project.
pub const PROJECT_DIRECTORY: &str = ".windlass";

/// The `.gitignore` of a project.
pub const GITIGNORE_TEXT: &str = "\
# What Windlass keeps for itself. The configuration and the workflows belong into git.
windlass.db*
runs/
checkouts/
worktrees/
backups/
owners/
*.lock
";

/// The largest pointer file of git that is read, in bytes. It holds one path.
const MAX_GIT_POINTER: u64 = 16 * 1024;

/// The directories below `.windlass` that Windlass writes to and cleans up.
const OWNED_DIRECTORIES: [&str; 5] = ["runs", "worktrees", "owners", "backups", "workflows"];

/// A directory with `.windlass/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub root: PathBuf,
}

impl Project {
    /// Returns the project in exactly this directory, if there is one.
    pub fn open_at(root: &Path) -> Result<Option<Self>, Failure> {
        let directory = root.join(PROJECT_DIRECTORY);
        match fs::symlink_metadata(&directory) {
            Ok(metadata) if metadata.is_dir() => {
                OWNED_DIRECTORIES.iter().try_for_each(|name| refuse_symlink(&directory.join(name)))?;
                Ok(Some(Self { root: canonicalize_path(root)? }))
            }
            Ok(metadata) if metadata.is_symlink() => Err(symlink_failure(&directory)),
            Ok(_) => Err(Failure::new(FailureCode::NoProject, format!("`{}` is not a directory", directory.display()))
                .with_hint(
                    "move it away: a project keeps its configuration and its store in a directory of that name",
                )),
            Err(_) => Ok(None),
        }
    }

    /// Returns `.windlass`, which holds all files of the project.
    pub fn project_directory(&self) -> PathBuf {
        self.root.join(PROJECT_DIRECTORY)
    }

    /// Returns the directory of the worktrees of tasks.
    pub fn worktree_directory(&self) -> PathBuf {
        self.project_directory().join("worktrees")
    }

    /// Returns the directory of the checkouts in which gates judge commits. It lies outside the project, so that no program finds
    /// the person's files in a parent directory.
    pub fn checkout_directory(&self) -> PathBuf {
        let Some(state) = environment::state_directory() else { return self.project_directory().join("checkouts") };
        let digest = Digest::of_bytes(self.root.as_os_str().as_bytes()).to_string();
        state.join("checkouts").join(&digest[..16])
    }

    pub fn config_file(&self) -> PathBuf {
        self.project_directory().join("config.yaml")
    }

    /// Returns the directory of owner files: one for each process that runs programs for the project.
    pub fn owner_directory(&self) -> PathBuf {
        self.project_directory().join("owners")
    }

    /// Returns the directory of records: output that is too long for memory.
    pub fn record_directory(&self) -> PathBuf {
        self.project_directory().join("runs")
    }

    /// Writes a `.gitignore` that excludes the store, unless there is one.
    pub fn write_gitignore(&self) {
        let file =
            fs::OpenOptions::new().write(true).create_new(true).open(self.project_directory().join(".gitignore"));
        // The store works without a `.gitignore`.
        let _ = file.and_then(|mut file| file.write_all(GITIGNORE_TEXT.as_bytes()));
    }

    /// Returns the directory for the output of a session or a command, and creates it if it is missing. Prunes old records.
    pub fn create_record_directory(&self, name: &str) -> Result<PathBuf, Failure> {
        // Workers call this for every task, so old records are pruned only once per interval.
        retention::prune_if_due(
            &self.record_directory(),
            &self.project_directory().join("prune.lock"),
            environment::system_time(),
        );
        let records = self.record_directory().join(name);
        for directory in [&self.record_directory(), &records] {
            create_real_directory(directory).map_err(|error| {
                let what = format!("cannot make the directory `{}`", directory.display());
                Failure::new(FailureCode::System, what).with_cause(error)
            })?;
        }
        Ok(records)
    }

    pub fn store_file(&self) -> PathBuf {
        self.project_directory().join("windlass.db")
    }
}

/// Refuses a symbolic link in place of a Windlass directory: writes and cleanups would happen elsewhere.
fn refuse_symlink(path: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(symlink_failure(path)),
        _ => Ok(()),
    }
}

fn symlink_failure(path: &Path) -> Failure {
    Failure::new(FailureCode::NoProject, format!("cannot use `{}`: it is a symbolic link", path.display()))
        .with_hint("remove the link, and put the directory itself there: what a project keeps stays inside of it")
}

/// Creates a directory if it is missing. Fails on a link in its place, which may lead anywhere.
fn create_real_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::symlink_metadata(path)?.is_dir() {
            true => Ok(()),
            false => Err(io::Error::other("there is something else in its place")),
        },
        made => made,
    }
}

/// Returns the named project, else the one around `cwd`.
pub fn find_project(explicit: Option<&Path>, variable: Option<PathBuf>, cwd: &Path) -> Result<Project, Failure> {
    if let Some(named) = explicit {
        return open_named_project("--project", &cwd.join(named));
    }
    if let Some(named) = variable {
        return open_named_project("WINDLASS_PROJECT", &cwd.join(named));
    }
    match find_enclosing_project(cwd)? {
        Some(project) => Ok(project),
        None => Err(no_project_failure(&format!(
            "`{}` and its parents have no `{PROJECT_DIRECTORY}` directory",
            cwd.display()
        ))),
    }
}

/// Returns the `--project` flag as a person types it, if commands without it would use another project or none.
pub fn project_flag_if_needed(named: &Path) -> Option<String> {
    let cwd = environment::working_directory().ok()?;
    let there = Project::open_at(&cwd.join(named)).ok()??;
    let here = find_project(None, environment::project_variable(), &cwd).ok();
    here.is_none_or(|here| here.root != there.root)
        .then(|| format!("--project {}", quote_shell_word(&named.to_string_lossy())))
}

/// Returns the directory in which an agent's work lies: the worktree around `directory` if it belongs to the project, else the
/// project's root.
pub fn find_project_worktree(project: &Project, directory: &Path) -> PathBuf {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let linked = real.ancestors().find(|above| above.join(".git").is_file());
    let place = linked.and_then(|linked| {
        let below = project.root.strip_prefix(find_main_worktree_path(linked)?).ok()?.to_owned();
        // Joining an empty path would append a slash.
        Some(if below.as_os_str().is_empty() { linked.to_owned() } else { linked.join(below) })
    });
    place.filter(|place| place.is_dir()).unwrap_or_else(|| project.root.clone())
}

/// Returns the project around a directory: that of the main worktree, else of the nearest parent.
pub fn find_enclosing_project(cwd: &Path) -> Result<Option<Project>, Failure> {
    match find_main_worktree_path(cwd) {
        Some(position) => Ok(find_nearest_project(&position)?.or(find_nearest_project(cwd)?)),
        None => find_nearest_project(cwd),
    }
}

/// Returns the directory for a new project: the root of the git repository around `cwd`, else `cwd`.
pub fn choose_new_project_root(cwd: &Path) -> PathBuf {
    let is_in_repository = matches!(GitRepository::discover(cwd), Ok(Some(_)));
    let root = cwd.ancestors().find(|directory| has_git_entry(directory)).filter(|_| is_in_repository);
    root.unwrap_or(cwd).to_owned()
}

fn find_nearest_project(start: &Path) -> Result<Option<Project>, Failure> {
    for directory in start.ancestors() {
        if let Some(project) = Project::open_at(directory)? {
            return Ok(Some(project));
        }
    }
    Ok(None)
}

fn open_named_project(by: &str, root: &Path) -> Result<Project, Failure> {
    match Project::open_at(root)? {
        Some(project) => Ok(project),
        None => {
            let cause = format!("{by} names `{}`, which has no `{PROJECT_DIRECTORY}` directory", root.display());
            let hint =
                format!("`windlass init --project {}` makes one there", quote_shell_word(&root.to_string_lossy()));
            Err(no_project_failure(&cause).with_hint(hint))
        }
    }
}

/// Quotes a text as one word for a shell.
pub fn quote_shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn no_project_failure(cause: &str) -> Failure {
    Failure::new(FailureCode::NoProject, "there is no project here")
        .with_cause(cause)
        .with_hint("`windlass init` makes one here")
}

fn canonicalize_path(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| {
        Failure::new(FailureCode::System, format!("cannot resolve `{}`", path.display())).with_cause(error)
    })
}

/// Maps a directory in a linked git worktree to the same position in the main worktree, whether or not it exists there.
pub fn find_main_worktree_path(cwd: &Path) -> Option<PathBuf> {
    let cwd = cwd.canonicalize().ok()?;
    let worktree = cwd.ancestors().find(|directory| has_git_entry(directory))?;
    let pointer = worktree.join(".git");
    let git = resolve_relative_path(worktree, read_git_pointer(&pointer)?.strip_prefix("gitdir:")?)?;
    // Only a linked worktree has these two files; a submodule's directory has neither.
    let common = resolve_relative_path(&git, &read_git_pointer(&git.join("commondir"))?)?;
    let back = resolve_relative_path(&git, &read_git_pointer(&git.join("gitdir"))?)?;
    if back != pointer || !git.starts_with(common.join("worktrees")) || common.file_name()? != ".git" {
        return None;
    }
    Some(common.parent()?.join(cwd.strip_prefix(worktree).ok()?))
}

/// Resolves a path that is written relative to a directory.
fn resolve_relative_path(base: &Path, written: &str) -> Option<PathBuf> {
    let written = written.trim();
    (!written.is_empty()).then(|| base.join(written).canonicalize().ok()).flatten()
}

fn read_git_pointer(path: &Path) -> Option<String> {
    file::read_text_file(path, MAX_GIT_POINTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories and files under a temporary root; a path that ends with `/` is a directory.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (path, text) in files {
                tree.add(path, text);
            }
            tree
        }

        fn add(&self, path: &str, text: &str) {
            let file = self.path(path);
            let directory = if path.ends_with('/') { &*file } else { file.parent().unwrap() };
            fs::create_dir_all(directory).unwrap();
            if !path.ends_with('/') {
                fs::write(file, text).unwrap();
            }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path.trim_end_matches('/'))
        }

        fn find(&self, cwd: &str) -> Option<PathBuf> {
            find_project(None, None, &self.path(cwd)).ok().map(|project| project.root)
        }
    }

    /// A repository `main` with a linked worktree `linked`, as git writes them.
    fn worktrees() -> Tree {
        let tree = Tree::new(&[
            ("main/.git/worktrees/linked/commondir", "../..\n"),
            ("main/sub/deep/", ""),
            ("linked/sub/deep/", ""),
        ]);
        let git = tree.path("main/.git/worktrees/linked");
        tree.add("linked/.git", &format!("gitdir: {}\n", git.display()));
        tree.add("main/.git/worktrees/linked/gitdir", &format!("{}\n", tree.path("linked/.git").display()));
        tree
    }

    #[test]
    fn nearest_parent_with_project_is_found() {
        let tree = Tree::new(&[("a/.windlass/", ""), ("a/b/.windlass/", ""), ("a/b/c/", ""), ("x/", "")]);
        assert_eq!(tree.find("a"), Some(tree.path("a")));
        assert_eq!(tree.find("a/b/c"), Some(tree.path("a/b")));
        let failure = find_project(None, None, &tree.path("x")).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoProject);
        assert_eq!(failure.hint.as_deref(), Some("`windlass init` makes one here"));
    }

    #[test]
    fn flag_precedes_variable_precedes_working_directory() {
        let tree = Tree::new(&[("a/.windlass/", ""), ("b/.windlass/", ""), ("c/.windlass/", ""), ("d/", "")]);
        let found = |explicit: Option<&str>, variable: Option<&str>| {
            find_project(explicit.map(Path::new), variable.map(|path| tree.path(path)), &tree.path("a")).map(|p| p.root)
        };
        assert_eq!(found(Some("../b"), Some("c")).unwrap(), tree.path("b"));
        assert_eq!(found(None, Some("c")).unwrap(), tree.path("c"));
        assert_eq!(found(None, None).unwrap(), tree.path("a"));
        assert_eq!(found(Some("../d"), None).unwrap_err().code, FailureCode::NoProject);
        assert_eq!(found(Some("../missing"), None).unwrap_err().code, FailureCode::NoProject);
    }

    #[test]
    fn file_named_like_project_directory_is_reported() {
        let tree = Tree::new(&[("a/.windlass", "not a directory")]);
        let failure = find_project(None, None, &tree.path("a")).unwrap_err();
        assert!(failure.message.ends_with(".windlass` is not a directory"), "{failure}");
    }

    #[test]
    fn linked_worktree_resolves_to_main_project() {
        let tree = worktrees();
        tree.add("main/.windlass/", "");
        tree.add("linked/.windlass/", "");
        assert_eq!(tree.find("linked/sub/deep"), Some(tree.path("main")));
        tree.add("main/sub/.windlass/", "");
        assert_eq!(tree.find("linked/sub/deep"), Some(tree.path("main/sub")));
        assert_eq!(tree.find("linked"), Some(tree.path("main")));
    }

    #[test]
    fn linked_worktree_project_is_used_without_main_project() {
        let tree = worktrees();
        assert_eq!(tree.find("linked/sub"), None);
        tree.add("linked/.windlass/", "");
        assert_eq!(tree.find("linked/sub"), Some(tree.path("linked")));
    }

    #[test]
    fn pointers_may_be_relative() {
        let tree = worktrees();
        tree.add("main/.windlass/", "");
        tree.add("linked/.git", "gitdir: ../main/.git/worktrees/linked\n");
        tree.add("main/.git/worktrees/linked/gitdir", "../../../../linked/.git\n");
        assert_eq!(tree.find("linked/sub"), Some(tree.path("main")));
    }

    #[test]
    fn unregistered_worktree_pointer_is_ignored() {
        let tree = worktrees();
        tree.add("main/.windlass/", "");
        tree.add("hostile/", "");
        fs::copy(tree.path("linked/.git"), tree.path("hostile/.git")).unwrap();
        assert_eq!(tree.find("hostile"), None);
        // A fake git directory that names the other repository as common does not help either.
        tree.add("hostile/fake/commondir", &tree.path("main/.git").display().to_string());
        tree.add("hostile/fake/gitdir", &tree.path("hostile/.git").display().to_string());
        tree.add("hostile/.git", "gitdir: fake");
        assert_eq!(tree.find("hostile"), None);
    }

    #[test]
    fn broken_pointers_are_no_worktrees() {
        let long = format!("gitdir: {}", "x/".repeat(100_000));
        for text in ["", "gitdir:", "gitdir: ", "gitdir: /nowhere", "gitdir: .git", "nonsense", "gitdir: \0", &long] {
            let tree = Tree::new(&[("a/.windlass/", ""), ("a/b/.git", text)]);
            assert_eq!(tree.find("a/b"), Some(tree.path("a")), "{text:?}");
        }
        let tree = Tree::new(&[("a/.windlass/", ""), ("a/b/", "")]);
        fs::write(tree.path("a/b/.git"), b"gitdir: \xff\xfe").unwrap();
        assert_eq!(tree.find("a/b"), Some(tree.path("a")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn special_files_do_not_block_project_search() {
        let tree = Tree::new(&[("a/.windlass/", ""), ("a/b/", ""), ("a/c/", "")]);
        rustix::fs::mknodat(rustix::fs::CWD, tree.path("a/b/.git"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        std::os::unix::fs::symlink(".git", tree.path("a/c/.git")).unwrap();
        assert_eq!(tree.find("a/b"), Some(tree.path("a")));
        assert_eq!(tree.find("a/c"), Some(tree.path("a")));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_real_project() {
        let tree = Tree::new(&[("real/.windlass/", ""), ("real/sub/", "")]);
        std::os::unix::fs::symlink(tree.path("real"), tree.path("link")).unwrap();
        assert_eq!(tree.find("link"), Some(tree.path("real")));
        assert_eq!(find_project(Some(Path::new("link")), None, &tree.path("")).unwrap().root, tree.path("real"));
    }
}
