//! The files of a hook's run: its payload, free text that is too long for a variable, and output that is recorded.
//!
//! Invariant: the files with input are gone when the run is over. A file with output stays until retention removes it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::input::HookInput;
use crate::script::InputChannel;

/// The longest value of a variable. The kernel refuses one of twice the length.
const MAX_VARIABLE_BYTES: usize = 64 * 1024;

/// The files of one run.
#[derive(Debug)]
pub struct HookInputFiles {
    place: PathBuf,
    payload: PathBuf,
    task_content: TextInput,
    error: TextInput,
}

/// Free text, in a variable or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextInput {
    text: String,
    file: Option<PathBuf>,
}

impl TextInput {
    fn new(text: String, file: PathBuf) -> Self {
        let file = (!fits_variable(&text)).then_some(file);
        Self { text, file }
    }

    pub fn input_channel(&self) -> InputChannel {
        if self.file.is_some() { InputChannel::File } else { InputChannel::Variable }
    }

    /// Returns the value of the variable: empty if the text travels in a file.
    pub fn variable_value(&self) -> &str {
        if self.file.is_some() { "" } else { &self.text }
    }

    pub fn file_path(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// Returns whether a variable can hold a text.
pub(crate) fn fits_variable(text: &str) -> bool {
    text.len() <= MAX_VARIABLE_BYTES && !text.contains('\0')
}

impl HookInputFiles {
    /// Names the files of a run whose output goes to `place`. Writes nothing yet.
    pub fn for_run(place: &Path, input: &HookInput<'_>) -> Self {
        let beside = |suffix: &str| {
            let mut name = place.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            place: place.to_owned(),
            payload: beside(".payload.json"),
            task_content: TextInput::new(input.text_at("/task_content").to_owned(), beside(".task_content")),
            error: TextInput::new(input.text_at("/error").to_owned(), beside(".error")),
        }
    }

    pub fn write(&self, payload: &[u8]) -> io::Result<()> {
        match write_input_file(&self.payload, payload) {
            // An earlier hook deleted the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.place.parent().map_or(Ok(()), fs::create_dir_all)?;
                write_input_file(&self.payload, payload)?;
            }
            written => written?,
        }
        for carried in [&self.task_content, &self.error] {
            if let Some(file) = carried.file_path() {
                write_input_file(file, carried.text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Writes output that fits into memory beside the other files, and returns its path. The file stays.
    pub fn write_output(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.place.with_added_extension("output");
        write_input_file(&path, bytes)?;
        Ok(path)
    }

    /// Returns the path for output that is too long for memory.
    pub fn place(&self) -> &Path {
        &self.place
    }

    pub fn payload(&self) -> &Path {
        &self.payload
    }

    pub fn task_content(&self) -> &TextInput {
        &self.task_content
    }

    pub fn error(&self) -> &TextInput {
        &self.error
    }
}

impl Drop for HookInputFiles {
    fn drop(&mut self) {
        let carried = [&self.task_content, &self.error].map(TextInput::file_path);
        for file in carried.into_iter().flatten().chain([self.payload.as_path()]) {
            let _ = fs::remove_file(file);
        }
    }
}

/// Creates a new file, and replaces one that a crashed run left. Never follows a link.
fn write_input_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
    fn input_file_has_owner_only_mode_even_when_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("1.payload.json");
        for text in ["a task", "another"] {
            write_input_file(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}
