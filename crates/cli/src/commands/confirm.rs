//! Yes-or-no questions to a person.

use std::io::{self, BufRead, IsTerminal};

use windlass_app::{Code, Failure};

use crate::output::{Output, Stop};

/// Returns whether a person is at the terminal and can be asked.
pub fn can_ask(out: &Output) -> bool {
    !out.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks the question and returns whether the answer was yes.
pub fn ask(question: &str, out: &mut Output) -> Result<bool, Stop> {
    out.line(format_args!("{question} [y/N]"))?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Stop::from(Failure::new(Code::System, "cannot read the answer").caused_by(error)))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
