//! Text from a file or, for `-`, from standard input, up to a limit.

use std::io::{ErrorKind, Read};
use std::path::Path;

use windlass_app::{Failure, FailureCode};
use windlass_engine::EngineLimits;
use windlass_process::file;

/// Returns the bytes of a file or of standard input, at most `most`. The hint says what to do with more.
pub fn read_bytes(file: &Path, most: usize, hint: &str) -> Result<Vec<u8>, Failure> {
    let name = display_input_name(file);
    let limit = most as u64 + 1;
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        false => file::open_named_file(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    read.map_err(|error| {
        let code = if error.kind() == ErrorKind::NotFound { FailureCode::NotFound } else { FailureCode::System };
        Failure::new(code, format!("cannot read {name}")).with_cause(error)
    })?;
    if bytes.len() > most {
        return Err(Failure::new(FailureCode::Usage, format!("{name} has more than {most} bytes")).with_hint(hint));
    }
    Ok(bytes)
}

/// Returns the text of a file or of standard input, at most as long as the body of a task.
pub fn read_text(file: &Path) -> Result<String, Failure> {
    let bytes = read_bytes(file, EngineLimits::BODY_BYTES, "name the file in the text instead of putting it in")?;
    String::from_utf8(bytes).map_err(|error| {
        let (name, place) = (display_input_name(file), error.utf8_error().valid_up_to());
        Failure::new(FailureCode::Usage, format!("{name} is not UTF-8 text: byte {place} is the first wrong one"))
    })
}

fn display_input_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}
