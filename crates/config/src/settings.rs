//! The settings of a configuration file. These structs are the one source of its keys, types and descriptions: the reader, the
//! schema and the suggestions follow from them. The doc comments of their fields are published in the schema.
//!
//! Not here: what the values mean together (`hooks`, `settings_check`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use windlass_agents::acp::{AgentPermissions, ToolKind};
use windlass_engine::TypeName;

use super::duration_setting::DurationSetting;
use super::hook_settings::{HookLists, RequestSettings, WordOrMap};
use super::reader::LocatedValue;
use super::validation_rules::{RuleList, rule_list};
use super::validators::ValidatorMap;

/// The configuration of a Windlass project: `.windlass/config.yaml`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Windlass configuration")]
pub struct Settings {
    /// The version of this format. Only 1 is known.
    #[schemars(extend("enum" = [1, null]))]
    pub version: Option<LocatedValue<u64>>,
    /// Hooks of the project, by point.
    pub(super) hooks: HookLists,
    /// Validation rules, evaluated at the end of each turn: a list of `{type, name, config}`.
    #[schemars(schema_with = "rule_list")]
    pub(super) validation: Option<RuleList>,
    /// Types of tasks, each with its own hooks and agents.
    pub(super) task_types: BTreeMap<TypeKey, LocatedValue<TaskType>>,
    /// The agent: a name under `agents`, a known agent, `command:CMD`, `acp:CMD` or `scripted:FILE`.
    pub agent: Option<LocatedValue<String>>,
    /// Agents by name.
    pub agents: BTreeMap<String, LocatedValue<AgentSettings>>,
    /// The template of the prompt, with `{{ goal }}`, `{{ feedback }}`, `{{ signal }}` and others.
    pub prompt: Option<LocatedValue<String>>,
    /// A file beside this one that holds the template instead.
    pub prompt_file: Option<LocatedValue<String>>,
    /// Limits of a session.
    pub limits: LimitSettings,
    /// The end of the work: `promise` (the agent's claim, and its gates) or `gate` (the gates alone). Default: `promise`.
    pub completion: Option<LocatedValue<CompletionSetting>>,
    /// Whether a hook failure at `stop` keeps the work incomplete. Default: true.
    pub strict: Option<bool>,
    /// The effect of blocks at the limit of send-backs: `escalate`, `complete` or `ask`. Default: `escalate`.
    pub on_retry_limit: RetryLimitSetting,
    /// The commands that an agent may have run in validation rules and registered hooks: `allow`, `named` or `deny`. Default:
    /// `allow`, and `named` with `validators`.
    pub agent_commands: Option<AgentCommandSetting>,
    /// Commands that an agent may have run by their names: a shell command for each, or a map.
    pub validators: ValidatorMap,
    /// The command of `run_tests`. Default: found from the project.
    pub test_command: Option<LocatedValue<String>>,
    /// The branch that work starts from and is merged into. Default: the repository's own.
    pub base_branch: Option<LocatedValue<String>>,
    /// Whether each task gets a git worktree and a branch of its own. Default: true.
    pub worktrees: Option<bool>,
    /// Texts for gatekeepers, by the names under `gatekeeper`. Without a text, the name is the text.
    pub briefs: BTreeMap<String, LocatedValue<String>>,
    /// The forge for changes. Default: found from the remote.
    pub forge: ForgeSettings,
    /// How changes are merged.
    pub merge: MergeSettings,
    /// The fleet of the project, if it is in one.
    pub fleet: FleetSettings,
    /// Patterns of files that may not change in a session.
    pub protected: Vec<LocatedValue<String>>,
    /// Patterns of ignored files that checkouts of gates get from the worktree, by links. Default: none.
    pub caches: Vec<LocatedValue<String>>,
    /// Names of environment variables whose values are masked wherever output is kept or shown.
    pub secrets: Vec<LocatedValue<String>>,
    /// Notices for the end of a session, and when it needs a person.
    pub notify: Vec<LocatedValue<NoticeSettings>>,
}

/// The name of a task type, as tasks refer to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeKey(TypeName);

impl TypeKey {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub fn type_name(&self) -> TypeName {
        self.0.clone()
    }
}

impl<'de> Deserialize<'de> for TypeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for TypeKey {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TypeKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})
    }
}

/// Settings for a fleet. Its address is no setting: `windlass fleet` keeps it outside the project.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetSettings {
    /// Whether events are also published on subjects of NATS, one message for each, for other programs. Default: false.
    pub publish: Option<bool>,
}

/// A type of task.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskType {
    /// Hooks of this type. They replace the project's, point by point.
    pub(super) hooks: HookLists,
    /// Validation rules of this type, instead of the project's.
    #[schemars(schema_with = "rule_list")]
    pub(super) validation: Option<RuleList>,
    /// The agents for its tasks. Default: all.
    pub agents: RoleSettings,
    /// The result of its tasks: `change`, or `report`, the agent's final message. Default: change.
    pub result: TaskResult,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// Commits, which are submitted and merged.
    #[default]
    Change,
    /// The agent's final message. Nothing is merged.
    Report,
}

/// The agents for each role.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoleSettings {
    /// The agents that may do the work.
    pub implementer: Option<AgentNames>,
    /// The agents that may judge it.
    pub gatekeeper: Option<AgentNames>,
}

/// Names of agents: under `agents`, known ones, or `command:CMD` and the like.
pub type AgentNames = LocatedValue<Vec<LocatedValue<String>>>;

/// A service with changes: pull requests of GitHub, merge requests of GitLab.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForgeSettings {
    /// The kind of forge. Default: found from the remote's address; without a forge, changes are branches.
    pub kind: Option<ForgeKind>,
    /// The address of its API. Default: the usual one of the forge.
    pub api: Option<LocatedValue<String>>,
    /// The git remote that branches are pushed to. Default: origin.
    pub remote: Option<LocatedValue<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgeKind {
    Github,
    Gitlab,
}

/// How changes are merged.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MergeSettings {
    /// Default: merge.
    pub method: MergeMethod,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeMethod {
    /// With a commit that joins both.
    #[default]
    Merge,
    /// As one commit.
    Squash,
    /// Its commits, on top of the base.
    Rebase,
}

/// How an agent is started.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The driver that starts it and speaks with it. Default: the agent's own name.
    pub driver: Option<DriverKind>,
    /// The program. Default: the driver's own.
    pub command: Option<String>,
    /// Arguments after the driver's own.
    pub args: Vec<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Environment variables to add.
    #[schemars(schema_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// The answer to an agent that asks for permission over the Agent Client Protocol: `allow`, `deny`, `read-only`, or by the
    /// kind of tool, as in `{default: allow, execute: deny}`. Default: allow.
    #[schemars(schema_with = "permissions")]
    pub permissions: Option<AgentPermissions>,
    /// Servers of the Model Context Protocol for an agent over the Agent Client Protocol, by name.
    pub mcp_servers: BTreeMap<String, McpServerSettings>,
    /// Whether it gets Windlass's own tools (`windlass mcp`). Default: true, if the agent can take them.
    pub tools: Option<bool>,
    /// Hooks that run in addition when this agent works.
    pub(super) hooks: HookLists,
}

/// A program that serves tools over its standard input and output.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerSettings {
    /// The program, looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables to add.
    #[serde(default)]
    #[schemars(schema_with = "variables")]
    pub env: BTreeMap<String, String>,
}

/// The kinds of agents that can be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    Acp,
    Claude,
    Codex,
    Opencode,
    Gemini,
    Goose,
    Command,
    Scripted,
}

/// Limits of a session.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Iterations of a session.
    pub max_iterations: NonZeroU32,
    /// How often a stop hook without `retry.max` may send the agent back within an iteration; 0 means never.
    #[serde(alias = "maxHookRetries")]
    pub max_hook_retries: u32,
    /// Repairs of the work before its submission.
    pub max_remediations: u32,
    /// Rejections by gatekeepers, after which a person is asked.
    pub max_rejections: u32,
    /// Failed iterations in a row, after which a person is asked.
    pub max_failures: NonZeroU32,
    /// The circuit breaker also waits for this time since the first of these failures. Default: 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_span: Option<DurationSetting>,
    /// Identical changes with identical failures in a row, after which a person is asked, in git repositories; 0 switches it off.
    pub thrashing: u32,
    /// Time of a session, without the time between a crash and its resumption. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<DurationSetting>,
    /// Time without a heartbeat of a live process, after which another one takes its tasks. Sleep of the machine does not
    /// count. Default: 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<DurationSetting>,
    /// Time of a turn, with the start of the agent. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_time: Option<DurationSetting>,
    /// Time without output of the agent, after which its turn ends. Default: 30 minutes; no limit for `command:CMD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<DurationSetting>,
    /// Cost of a session in US dollars, if the agent reports it. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub cost: Option<LocatedValue<f64>>,
    /// Tokens of a session, read and written, if the agent reports them. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<NonZeroU64>,
}

const fn nonzero_default(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("the defaults are not zero")
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_iterations: nonzero_default(25),
            max_hook_retries: 5,
            max_remediations: 3,
            max_rejections: 3,
            max_failures: nonzero_default(3),
            failure_span: None,
            thrashing: 3,
            wall_time: None,
            lease: None,
            turn_time: None,
            silence: None,
            cost: None,
            tokens: None,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionSetting {
    /// The agent says that it is done, and the gates agree.
    #[default]
    Promise,
    /// The gates agree at the end of a turn.
    Gate,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryLimitSetting {
    /// The task is blocked for a person.
    #[default]
    Escalate,
    /// The work counts as complete, with a warning.
    Complete,
    /// A person chooses: continue, reject, ignore the hook.
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommandSetting {
    /// Any command, with the rights of the user who runs Windlass.
    Allow,
    /// Only those under `validators`.
    Named,
    /// None.
    Deny,
}

/// A notice. Exactly one of `command`, `http` and `desktop`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["http"]}, {"required": ["desktop"]}]))]
pub struct NoticeSettings {
    /// A shell command. The notice comes as JSON on standard input and in `WINDLASS_*` variables.
    #[serde(default)]
    pub command: Option<LocatedValue<String>>,
    /// A request to send: its address, or a map.
    #[serde(default)]
    #[schemars(with = "Option<WordOrMap<RequestSettings>>")]
    pub http: Option<LocatedValue<WordOrMap<RequestSettings>>>,
    /// A notice on the desktop, else in the terminal.
    #[serde(default)]
    #[schemars(extend("enum" = [true, null]))]
    pub desktop: Option<bool>,
    /// The occasions. Default: all but `cancelled`.
    #[serde(default)]
    pub on: Option<Vec<NoticeOccasion>>,
    /// Whether the notice is sent. Default: true.
    #[serde(default)]
    pub enabled: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeOccasion {
    /// A person is needed.
    Escalated,
    /// The work is complete.
    Completed,
    /// The session ended without completion.
    Ended,
    /// The session failed.
    Failed,
    /// A person cancelled the session.
    Cancelled,
}

fn permissions(_: &mut SchemaGenerator) -> Schema {
    let answer = json_schema!({"enum": ["allow", "deny"]});
    let kinds = ToolKind::ALL.iter().map(|(name, _)| *name).chain(["default"]);
    let kinds: serde_json::Map<_, _> = kinds.map(|name| (name.to_owned(), answer.clone().into())).collect();
    json_schema!({"anyOf": [
        {"enum": ["allow", "deny", "read-only", null]},
        {"type": "object", "properties": kinds, "additionalProperties": false},
    ]})
}

/// Describes a map of environment variables. The reader takes numbers and booleans as text.
fn variables(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
}

impl AgentSettings {
    /// Returns the command line as a shell would show it, with its variables: they can change what a program does.
    pub fn describe_program(&self, name: &str) -> String {
        let variables = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        let program = self.command.clone().unwrap_or_else(|| name.to_owned());
        let words: Vec<_> = variables.chain([program]).chain(self.args.iter().cloned()).collect();
        let servers = self.mcp_servers.values().map(|server| {
            let words: Vec<&str> = std::iter::once(&server.command).chain(&server.args).map(String::as_str).collect();
            format!(", which gets the MCP server {}", words.join(" "))
        });
        words.join(" ") + &servers.collect::<String>()
    }
}
