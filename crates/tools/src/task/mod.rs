//! The tools for tasks.

mod next;

pub(crate) use next::{NEXT, next};
