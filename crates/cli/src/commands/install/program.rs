//! The name by which agents call this program: one that stays right.

use std::path::{Path, PathBuf};

use windlass_app::project::shell_word;
use windlass_app::{Code, Failure, agents, environment};
use windlass_bridge::settings::Program;

/// The program as it is written into settings, and the reason for its form.
#[derive(Debug)]
pub struct Named {
    pub program: Program,
    pub why: String,
}

pub fn name() -> Result<Named, Failure> {
    let own = environment::own_program()
        .and_then(|own| own.canonicalize())
        .map_err(|error| Failure::new(Code::System, "cannot find the file of this program").caused_by(error))?;
    let found = environment::program_directories()
        .iter()
        .map(|directory| directory.join("windlass"))
        .find(|file| agents::runs(file));
    named(&own, found)
}

/// Prefers the plain name: it is right for all who share the settings, and after an update. A path is the fallback.
fn named(own: &Path, found: Option<PathBuf>) -> Result<Named, Failure> {
    let why = match &found {
        Some(found) if found.canonicalize().is_ok_and(|found| found == own) => {
            let program = Program { path: "windlass".to_owned(), word: "windlass".to_owned() };
            return Ok(Named { program, why: "the one on the PATH is this program".to_owned() });
        }
        Some(found) => format!("`windlass` on the PATH is another one, `{}`", found.display()),
        None => "there is no `windlass` on the PATH".to_owned(),
    };
    let path = own.to_str().ok_or_else(|| {
        Failure::new(Code::System, format!("cannot write the path `{}` into settings", own.display()))
            .caused_by("it is no UTF-8 text")
            .hint("put the program on the PATH as `windlass`")
    })?;
    Ok(Named { program: Program { path: path.to_owned(), word: shell_word(path) }, why })
}
