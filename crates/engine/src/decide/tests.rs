//! The rules, one script at a time: commands go in, the lines of the log come out.

mod authority;
mod builtins;
mod cascade;
mod effects;
mod graph;
mod limits;
mod looping;
mod script;
mod sessions;
mod stopping;
