//! Which sandbox a program gets.
//!
//! Not here: how a sandbox holds (`windlass-sandbox`).

mod default_policy;
mod secret_paths;
mod temporary_directory;

pub use default_policy::{PolicyRequest, default_policy};
pub use temporary_directory::create_temporary_directory;
