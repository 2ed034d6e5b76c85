//! Permission for programs of rules, and of hooks that an agent registers.
//!
//! An agent may have fewer rights than the process that serves it: a sandbox, or questions before each command. A command of its
//! own would bypass these. So if a person has configured commands, the agent may only name those, unless the person decides
//! otherwise.

use std::collections::BTreeMap;

use windlass_engine::validation::{CommandRule, ValidationRule, ValidationRuleKind};
use windlass_expr::nearest_name;

use super::quote_excerpt;
use crate::error::{CallerHint, ToolErrorCode};

/// Policy for commands from an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentCommandPermission {
    /// Any command.
    Allow,
    /// Only commands that the configuration names.
    Named,
    /// No command, not even by name.
    Deny,
}

/// Whether programs may run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionTrust {
    /// A person has trusted the configuration.
    Trusted,
    /// No person has trusted the configuration.
    Untrusted,
    /// This process runs inside a program that judges work: another one would recurse without end.
    Nested,
}

/// Programs that the configuration lets an agent run.
#[derive(Debug, Clone)]
pub struct ProgramPermission {
    pub trust: ExecutionTrust,
    pub agent_commands: AgentCommandPermission,
    /// Named commands of the configuration.
    pub validators: BTreeMap<String, CommandRule>,
}

/// Refusal to run a program, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct PermissionRefusal {
    /// Kind of the refusal: the project is not trusted, or its configuration forbids it.
    pub code: ToolErrorCode,
    pub cause: String,
    pub remedy: CallerHint,
}

impl PermissionRefusal {
    fn new(cause: impl Into<String>, remedy: impl Into<CallerHint>) -> Self {
        Self { code: ToolErrorCode::Refused, cause: cause.into(), remedy: remedy.into() }
    }
}

impl ProgramPermission {
    /// Returns the permission for rules of the configuration: all of them, since a person has written and trusted them.
    pub fn for_configured_rules(&self) -> Self {
        Self { agent_commands: AgentCommandPermission::Allow, ..self.clone() }
    }

    /// Returns the program of a rule, or `None` for a rule without one.
    pub fn permitted_program<'a>(
        &'a self,
        rule: &'a ValidationRule,
    ) -> Result<Option<&'a CommandRule>, PermissionRefusal> {
        match &rule.kind {
            ValidationRuleKind::Command(command) => self.permit_supplied_command(command).map(Some),
            ValidationRuleKind::Custom(custom) => self.permit_named_command(&custom.validator_id).map(Some),
            _ => Ok(None),
        }
    }

    /// Permits a command of the agent. A command that equals a configured one counts as the person's.
    pub fn permit_supplied_command<'a>(
        &'a self,
        command: &'a CommandRule,
    ) -> Result<&'a CommandRule, PermissionRefusal> {
        self.check_trust()?;
        let same = |known: &&CommandRule| {
            known.command.trim() == command.command.trim() && known.working_directory == command.working_directory
        };
        match self.agent_commands {
            AgentCommandPermission::Allow => Ok(command),
            AgentCommandPermission::Named if self.validators.values().any(|known| same(&known)) => Ok(command),
            AgentCommandPermission::Named => Err(PermissionRefusal::new(
                format!(
                    "{} may not be run: this project runs only commands that its configuration names \
                     (`agent_commands: named`)",
                    quote_excerpt(&command.command)
                ),
                match self.validators.is_empty() {
                    true => "ask a person to add it under `validators:`, or to set `agent_commands: allow`".to_owned(),
                    false => format!(
                        "use one of {}: by its name in a rule of `type: custom`, or its command word for word; or ask a \
                         person to add this one under `validators:`",
                        self.list_validators()
                    ),
                },
            )),
            AgentCommandPermission::Deny => Err(Self::denied_refusal()),
        }
    }

    /// Permits a command of the configuration.
    pub fn permit_named_command(&self, name: &str) -> Result<&CommandRule, PermissionRefusal> {
        self.check_trust()?;
        if self.agent_commands == AgentCommandPermission::Deny {
            return Err(Self::denied_refusal());
        }
        self.validators.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.validators.keys().map(String::as_str).collect();
            let remedy = match nearest_name(name, &known) {
                _ if known.is_empty() => {
                    "the configuration has none: ask a person to add one under `validators:`".to_owned()
                }
                Some(meant) => format!("did you mean `{meant}`? known are {}", self.list_validators()),
                None => format!("known are {}", self.list_validators()),
            };
            PermissionRefusal::new(format!("there is no validator {}", quote_excerpt(name)), remedy)
        })
    }

    fn check_trust(&self) -> Result<(), PermissionRefusal> {
        match self.trust {
            ExecutionTrust::Trusted => Ok(()),
            ExecutionTrust::Untrusted => Err(PermissionRefusal {
                code: ToolErrorCode::Trust,
                ..PermissionRefusal::new(
                    "this project's configuration is not trusted, so nothing is run for it",
                    CallerHint::command("windlass trust", "shows what would run and asks"),
                )
            }),
            ExecutionTrust::Nested => Err(PermissionRefusal::new(
                "a program that judges work cannot start more programs for that",
                "let the rule's or hook's command do the work itself",
            )),
        }
    }

    fn denied_refusal() -> PermissionRefusal {
        PermissionRefusal::new(
            "this project runs no commands for agents (`agent_commands: deny`)",
            "use rules of another type, or ask a person to set `agent_commands: named`",
        )
    }

    fn list_validators(&self) -> String {
        const MAX_LISTED_VALIDATORS: usize = 10;
        let mut names: Vec<_> =
            self.validators.keys().take(MAX_LISTED_VALIDATORS).map(|name| quote_excerpt(name)).collect();
        if self.validators.len() > MAX_LISTED_VALIDATORS {
            names.push(format!("{} more", self.validators.len() - MAX_LISTED_VALIDATORS));
        }
        names.join(", ")
    }
}
