//! Yes-or-no questions to a person.

use std::io::{self, BufRead, IsTerminal};

use windlass_app::{Failure, FailureCode};

use crate::output::{EarlyExit, Output};

/// Returns whether a person is at the terminal and can be asked.
pub fn can_ask_person(out: &Output) -> bool {
    !out.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks the question and returns whether the answer was yes.
pub fn ask_yes_or_no(question: &str, out: &mut Output) -> Result<bool, EarlyExit> {
    out.print_line(format_args!("{question} [y/N]"))?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| {
        EarlyExit::from(Failure::new(FailureCode::System, "cannot read the answer").with_cause(error))
    })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
