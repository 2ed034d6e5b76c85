//! The files of a hook's run: its payload, and free text that is too long for a variable.
//!
//! Invariant: the files are gone when the run is over.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::input::HookInput;
use crate::script::Carrier;

/// The longest value of a variable. The kernel refuses one of twice the length.
const VARIABLE: usize = 64 * 1024;

/// The files of one run.
#[derive(Debug)]
pub struct Papers {
    place: PathBuf,
    payload: PathBuf,
    task_content: Carried,
    error: Carried,
}

/// Free text, in a variable or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    text: String,
    file: Option<PathBuf>,
}

impl Carried {
    fn new(text: String, file: PathBuf) -> Self {
        let file = (!fits(&text)).then_some(file);
        Self { text, file }
    }

    pub fn carrier(&self) -> Carrier {
        if self.file.is_some() { Carrier::File } else { Carrier::Variable }
    }

    /// Returns the value of the variable: empty if the text travels in a file.
    pub fn value(&self) -> &str {
        if self.file.is_some() { "" } else { &self.text }
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// Returns whether a variable can hold a text.
pub(crate) fn fits(text: &str) -> bool {
    text.len() <= VARIABLE && !text.contains('\0')
}

impl Papers {
    /// Names the files of a run whose output goes to `place`. Writes nothing yet.
    pub fn at(place: &Path, input: &HookInput<'_>) -> Self {
        let beside = |suffix: &str| {
            let mut name = place.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            place: place.to_owned(),
            payload: beside(".payload.json"),
            task_content: Carried::new(input.text("/task_content").to_owned(), beside(".task_content")),
            error: Carried::new(input.text("/error").to_owned(), beside(".error")),
        }
    }

    pub fn write(&self, payload: &[u8]) -> io::Result<()> {
        match write(&self.payload, payload) {
            // An earlier hook deleted the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.place.parent().map_or(Ok(()), fs::create_dir_all)?;
                write(&self.payload, payload)?;
            }
            written => written?,
        }
        for carried in [&self.task_content, &self.error] {
            if let Some(file) = carried.file() {
                write(file, carried.text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns the path for output that is too long for memory.
    pub fn place(&self) -> &Path {
        &self.place
    }

    pub fn payload(&self) -> &Path {
        &self.payload
    }

    pub fn task_content(&self) -> &Carried {
        &self.task_content
    }

    pub fn error(&self) -> &Carried {
        &self.error
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let carried = [&self.task_content, &self.error].map(Carried::file);
        for file in carried.into_iter().flatten().chain([self.payload.as_path()]) {
            let _ = fs::remove_file(file);
        }
    }
}

/// Creates a new file, and replaces one that a crashed run left. Never follows a link.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open().or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| open()),
        // Retention removes old records together with their directory.
        io::ErrorKind::NotFound => path.parent().map_or(Ok(()), fs::create_dir).and_then(|()| open()),
        _ => Err(error),
    })?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_for_its_owner_alone_whatever_was_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("1.payload.json");
        for text in ["a task", "another"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}
