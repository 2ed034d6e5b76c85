//! The name by which agents call this program: one that stays right.

use std::path::{Path, PathBuf};

use windlass_app::project::quote_shell_word;
use windlass_app::{Failure, FailureCode, agents, environment};
use windlass_bridge::settings::ProgramPath;

/// The program as it is written into settings, and the reason for its form.
#[derive(Debug)]
pub struct ProgramReference {
    pub program: ProgramPath,
    pub why: String,
}

pub fn choose_program_reference() -> Result<ProgramReference, Failure> {
    let own = environment::own_program()
        .and_then(|own| own.canonicalize())
        .map_err(|error| Failure::new(FailureCode::System, "cannot find the file of this program").with_cause(error))?;
    let found = environment::program_directories()
        .iter()
        .map(|directory| directory.join("windlass"))
        .find(|file| agents::is_executable_file(file));
    choose_reference(&own, found)
}

/// Prefers the plain name: it is right for all who share the settings, and after an update. A path is the fallback.
fn choose_reference(own: &Path, found: Option<PathBuf>) -> Result<ProgramReference, Failure> {
    let why = match &found {
        Some(found) if found.canonicalize().is_ok_and(|found| found == own) => {
            let program = ProgramPath { path: "windlass".to_owned(), word: "windlass".to_owned() };
            return Ok(ProgramReference { program, why: "the one on the PATH is this program".to_owned() });
        }
        Some(found) => format!("`windlass` on the PATH is another one, `{}`", found.display()),
        None => "there is no `windlass` on the PATH".to_owned(),
    };
    let path = own.to_str().ok_or_else(|| {
        Failure::new(FailureCode::System, format!("cannot write the path `{}` into settings", own.display()))
            .with_cause("it is not UTF-8 text")
            .with_hint("put the program on the PATH as `windlass`")
    })?;
    Ok(ProgramReference { program: ProgramPath { path: path.to_owned(), word: quote_shell_word(path) }, why })
}
