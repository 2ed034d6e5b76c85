//! The rules, one script at a time: commands go in, the lines of the log come out.

mod actions;
mod authority;
mod bounds;
mod bridge;
mod builtins;
mod cascade;
mod conversations;
mod drive;
mod effects;
mod gate;
mod graph;
mod limits;
mod looping;
mod lost;
mod passing;
mod people;
mod pipeline;
mod recovery;
mod registry;
mod resolution;
mod script;
mod sessions;
mod stopping;
mod types;
mod work;
mod workflow;
