//! The command line as it is used: the real binary, in a temporary project, in an environment that is always the same.

#![expect(clippy::unwrap_used, reason = "what a test cannot do without is there, or the test fails")]

mod support;

mod crash;
mod docs;
mod mcp;
mod test_acp;
mod test_acp_asking;
mod test_acp_opening;
mod test_acp_serving;
mod test_command;
mod test_config;
mod test_damage;
mod test_demo;
mod test_doctor;
mod test_events;
mod test_gate;
mod test_graph;
mod test_headless;
mod test_hooks;
mod test_hooks_answers;
mod test_hooks_bad;
mod test_hooks_injection;
mod test_hooks_killed;
mod test_hooks_running;
mod test_hooks_trial;
mod test_hooks_trust;
mod test_hooks_web;
mod test_hostile;
mod test_init;
mod test_judged;
mod test_kill;
mod test_lifecycle;
mod test_many;
mod test_notify;
mod test_output;
mod test_people;
mod test_plans;
mod test_project;
mod test_run;
mod test_run_graph;
mod test_run_hostile;
mod test_run_prompt;
mod test_seeds;
mod test_signals;
mod test_summary;
mod test_task;
mod test_tools;
mod test_tools_handed;
mod test_trust;
mod test_turn;
mod test_usage;
mod test_validation;
mod test_view;
mod test_why;
