//! Whether the workflows that hooks name are there, and whether the others can be used.

use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;
use crate::workflow;

/// Refuses the first file that cannot be used, and names the others.
pub fn check(project: &Project, config: &Config) -> Result<(), Failure> {
    workflow::check_hooks(project, config)?;
    let mut wrong = workflow::known(Some(project))?.wrong.into_iter().map(|wrong| wrong.failure);
    let Some(first) = wrong.next() else { return Ok(()) };
    Err(wrong.fold(first, |first, other| first.caused_by(format!("also wrong: {}", other.message))))
}
