//! Turns a [`ProgramSpec`] into the input of `posix_spawn`: the program's path, and everything as C strings.
//!
//! The look-up is our own, by the `PATH` of the child and from the child's directory, so that a missing program and one that
//! cannot be executed have different errors.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::{ProgramInvocation, ProgramSpec, ProgramStartError, plain_script};

/// The variable that marks the processes of a run: the owner's name, a full stop, and the number of the run.
pub(crate) const TAG_VARIABLE: &str = "WINDLASS_TAG";

/// Search path for an environment without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the path of the running program.
pub fn running_program_path() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A program with everything that it needs to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedProgram {
    pub path: CString,
    pub directory: CString,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
}

impl ResolvedProgram {
    pub fn resolve_spec(spec: &ProgramSpec, tag: &str) -> Result<Self, ProgramStartError> {
        let (mut path, mut arguments) = match &spec.invocation {
            ProgramInvocation::Shell(script) => match resolve_without_shell(spec, script) {
                Some(found) => found,
                None => (PathBuf::from("/bin/sh"), vec!["sh".into(), "-c".into(), script.clone()]),
            },
            ProgramInvocation::Argv(arguments) => {
                (look_up_program(&spec.directory, &spec.environment, arguments.first())?, arguments.clone())
            }
        };
        if !spec.wrapper.is_empty() {
            // The invoked program is looked up, too, so that its absence is reported before anything starts.
            let program = std::mem::replace(
                &mut path,
                look_up_program(&spec.directory, &spec.environment, spec.wrapper.first())?,
            );
            let invoked =
                std::iter::once(program.into_os_string()).chain(arguments.drain(..).skip(1)).collect::<Vec<_>>();
            arguments = spec.wrapper.iter().cloned().chain(invoked).collect();
        }
        let bad = |source| ProgramStartError::from_io_error(&path, source);
        let directory = std::path::absolute(&spec.directory).map_err(bad)?;
        let mut environment = Vec::with_capacity(spec.environment.len() + 1);
        for (name, value) in spec.environment.iter().filter(|(name, _)| name != TAG_VARIABLE) {
            let value = if name == "PWD" { directory.as_os_str() } else { value };
            environment.push(environment_entry(name, value).map_err(bad)?);
        }
        environment.push(environment_entry(OsStr::new(TAG_VARIABLE), OsStr::new(tag)).map_err(bad)?);
        Ok(Self {
            directory: to_c_string(directory.into_os_string()).map_err(bad)?,
            arguments: arguments.into_iter().map(to_c_string).collect::<Result<_, _>>().map_err(bad)?,
            environment,
            path: to_c_string(path.clone().into_os_string()).map_err(bad)?,
        })
    }

    /// Returns the program's own path, for messages.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }
}

pub(crate) fn to_c_string(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec()).map_err(|found| io::Error::new(io::ErrorKind::InvalidInput, found))
}

pub(crate) fn environment_entry(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    let mut text = OsString::with_capacity(name.len() + value.len() + 2);
    text.push(name);
    text.push("=");
    text.push(value);
    to_c_string(text)
}

/// Returns why a script cannot run, if that is known without a shell: it names a program that is missing or not executable.
pub fn find_missing_program(
    script: &OsStr,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Option<ProgramStartError> {
    let words = plain_script::split_literal_words(script)?;
    let found = look_up_program(directory, environment, words.first());
    let file = found.map(|path| directory.join(path));
    match file {
        Err(error) => Some(error),
        Ok(file) if !file.exists() => Some(ProgramStartError::NotFound { program: file }),
        Ok(file) if !file.is_file() || access(&file, Access::EXEC_OK).is_err() => {
            Some(ProgramStartError::NotExecutable { program: file })
        }
        Ok(_) => None,
    }
}

/// Returns the program and arguments of a script that needs no shell.
fn resolve_without_shell(spec: &ProgramSpec, script: &OsStr) -> Option<(PathBuf, Vec<OsString>)> {
    let words = plain_script::split_literal_words(script)?;
    let path = look_up_program(&spec.directory, &spec.environment, words.first()).ok()?;
    let file = spec.directory.join(&path);
    let can_start =
        file.is_file() && access(&file, Access::EXEC_OK).is_ok() && plain_script::is_kernel_executable(&file);
    can_start.then_some((path, words))
}

fn look_up_program(
    directory: &Path,
    environment: &[(OsString, OsString)],
    name: Option<&OsString>,
) -> Result<PathBuf, ProgramStartError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(ProgramStartError::NotFound { program: PathBuf::new() });
    };
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = environment.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let mut unusable = None;
    for place in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let candidate = directory.join(place).join(name);
        if candidate.is_file() {
            if access(&candidate, Access::EXEC_OK).is_ok() {
                return std::path::absolute(&candidate)
                    .map_err(|source| ProgramStartError::from_io_error(&candidate, source));
            }
            unusable.get_or_insert(candidate);
        }
    }
    // Without its directory no relative path can be found, and the missing directory is the better answer.
    if !directory.is_dir() {
        return Err(ProgramStartError::NoDirectory { program: name.into(), directory: directory.to_owned() });
    }
    Err(match unusable {
        Some(program) => ProgramStartError::NotExecutable { program },
        None => ProgramStartError::NotFound { program: name.into() },
    })
}
