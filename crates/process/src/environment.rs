//! The environment of a child: inherited variables and added ones.

use std::ffi::OsString;

/// Variables as a [`ProgramSpec`](crate::ProgramSpec) takes them.
pub type Environment = Vec<(OsString, OsString)>;

/// Returns the inherited variables, with those of `own` in place of variables of the same names.
pub fn overlay_environment(inherited: &[(OsString, OsString)], own: Vec<(&str, OsString)>) -> Environment {
    let kept = inherited.iter().filter(|(name, _)| !own.iter().any(|(own, _)| name == own)).cloned();
    let mut environment: Environment = kept.collect();
    environment.extend(own.into_iter().map(|(name, value)| (OsString::from(name), value)));
    environment
}
