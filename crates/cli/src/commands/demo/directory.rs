//! The temporary directory of the tour, and the programs that run in it. The directory is removed however the tour ends.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use windlass_app::{Failure, FailureCode, environment, execution};
use windlass_process::{
    CaptureLimits, Environment, OwnerLock, ProgramExit, ProgramInvocation, ProgramSpec, RunControl, run_program,
};

/// The time that programs have to end when the tour is interrupted.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// The bytes kept at the head and at the tail of output that is not shown.
const MAX_CAPTURED_OUTPUT: usize = 4 * 1024;

/// A temporary directory with a project, and with the state of everything that runs there.
pub struct DemoDirectory {
    root: PathBuf,
    pub project: PathBuf,
    environment: Environment,
    owner_lock: OwnerLock,
    keep: bool,
}

impl DemoDirectory {
    pub fn new(keep: bool, color: bool) -> Result<Self, Failure> {
        let nonce = execution::random_u128()?;
        let temporary = environment::temporary_directory();
        let root = temporary.join(format!("windlass-demo-{nonce:032x}"));
        let made = Self::create_project_tree(&root, keep, color);
        made.map_err(|error| {
            let _ = fs::remove_dir_all(&root);
            Failure::new(FailureCode::System, format!("cannot make a temporary directory in `{}`", temporary.display()))
                .with_cause(error)
                .with_hint("set TMPDIR to a directory that you may write to")
        })
    }

    fn create_project_tree(root: &Path, keep: bool, color: bool) -> io::Result<Self> {
        fs::create_dir(root)?;
        let root = root.canonicalize()?;
        let project = root.join("project");
        for directory in ["bin", "tmp", "project/.windlass"] {
            fs::create_dir_all(root.join(directory))?;
        }
        symlink(environment::own_program()?, root.join("bin/windlass"))?;
        let owner_lock = OwnerLock::acquire(&root.join("owners"), 0)?;
        let mut environment = build_tour_environment(&root);
        if color {
            environment.push(("CLICOLOR_FORCE".into(), "1".into()));
        }
        Ok(Self { environment, project, owner_lock, keep, root })
    }

    pub fn write_project_file(&self, name: &str, content: &str) -> Result<(), Failure> {
        let path = self.project.join(name);
        fs::write(&path, content).map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot write `{}`", path.display())).with_cause(error)
        })
    }

    /// Runs a shell command until it ends or the control cancels it. `see` gets the output as it arrives.
    pub fn run_shell_command(
        &self,
        script: &str,
        control: &RunControl,
        see: &mut dyn FnMut(&[u8]),
    ) -> Result<ProgramExit, Failure> {
        // One pipe for both streams keeps the order of the output.
        let invocation = ProgramInvocation::Shell(format!("exec 2>&1\n{script}").into());
        let spec = ProgramSpec {
            grace: SHUTDOWN_GRACE,
            capture: CaptureLimits { head: MAX_CAPTURED_OUTPUT, tail: MAX_CAPTURED_OUTPUT, spill: None },
            ..ProgramSpec::new(invocation, &self.project, self.environment.clone())
        };
        let finished = run_program(&spec, &self.owner_lock, control, &mut |_, bytes| see(bytes))
            .map_err(|error| Failure::from_error(FailureCode::System, &error))?;
        Ok(finished.exit)
    }
}

/// Returns the environment of the tour's programs: without the user's Windlass and git settings, and with paths in the directory.
fn build_tour_environment(root: &Path) -> Environment {
    let foreign =
        |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("WINDLASS_") || name.starts_with("GIT_"));
    let mut all: Environment =
        environment::inherited_environment().into_iter().filter(|(name, _)| !foreign(name)).collect();
    let path = all.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
    let paths = [root.join("bin")].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).unwrap_or(path);
    all.retain(|(name, _)| name != "PATH" && name != "TMPDIR");
    let who = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name.into(), "Ann".into()));
    let mail = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name.into(), "ann@example.com".into()));
    all.extend(who.into_iter().chain(mail));
    all.extend([
        ("PATH".into(), path),
        ("TMPDIR".into(), root.join("tmp").into()),
        ("WINDLASS_STATE_DIR".into(), root.join("state").into()),
        ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
    ]);
    all
}

impl Drop for DemoDirectory {
    fn drop(&mut self) {
        if !self.keep {
            // The system cleans its temporary directory, so a failure does no harm.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}
