//! The environment of a child: what it inherits, and what it is told.

use std::ffi::OsString;

/// Variables as a [`Spec`](crate::Spec) takes them.
pub type Environment = Vec<(OsString, OsString)>;

/// What is inherited, with these in place of whatever has the same names.
pub fn overlay(inherited: &[(OsString, OsString)], told: Vec<(&str, OsString)>) -> Environment {
    let kept = inherited.iter().filter(|(name, _)| !told.iter().any(|(own, _)| name == own)).cloned();
    let mut environment: Environment = kept.collect();
    environment.extend(told.into_iter().map(|(name, value)| (OsString::from(name), value)));
    environment
}
