//! The settings of hooks: a built-in's name, or a map that says what runs and how.
//!
//! Not here: the meaning of a hook at its point (`hooks`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};
use windlass_engine::FactType;
use windlass_hooks::PipeOutput;

use super::builtin::BuiltinHook;
use super::duration_setting::DurationSetting;
use super::reader::LocatedValue;
use crate::{hook_point_names, hook_point_spellings};

/// The keys that select what a hook runs. An entry has exactly one of them.
pub const HOOK_KIND_KEYS: &[&str] = &["command", "use", "rules", "prompt", "http", "workflow", "gatekeeper"];

/// A hook and how it runs. Exactly one of `command`, `use`, `rules`, `prompt`, `http`, `workflow` and `gatekeeper`.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("oneOf" = one_kind()))]
pub struct HookSettings {
    /// A shell command. The event comes as JSON on standard input and in `WINDLASS_*` variables.
    pub command: Option<LocatedValue<String>>,
    /// The name of a built-in hook.
    #[schemars(schema_with = "builtin_name")]
    pub r#use: Option<String>,
    /// Rules that decide: complete, continue or escalate.
    #[schemars(with = "Option<Vec<WordOrMap<RuleSettings>>>")]
    pub rules: Option<Vec<LocatedValue<WordOrMap<RuleSettings>>>>,
    /// A template for a text that is sent to the agent.
    pub prompt: Option<LocatedValue<String>>,
    /// A request to send: its address, or a map.
    #[schemars(with = "Option<WordOrMap<RequestSettings>>")]
    pub http: Option<LocatedValue<WordOrMap<RequestSettings>>>,
    /// The id of a workflow under `.windlass/workflows/`.
    pub workflow: Option<LocatedValue<String>>,
    /// Values for the workflow, by name; texts may hold `${…}` with values of the hook.
    pub context: Option<LocatedValue<BTreeMap<String, LocatedValue<Value>>>>,
    /// Review briefs, each judged by an agent; all must approve.
    pub gatekeeper: Option<Vec<String>>,

    /// A name, unique in the project. Default: `<point>[<index>]`, with `:<built-in>` after it.
    pub name: Option<LocatedValue<String>>,
    /// How long it may run. Default: 30 s; at gates 10 min.
    pub timeout: Option<LocatedValue<DurationSetting>>,
    /// Whether its output reaches the agent: `true`, `false`, or `on_failure`. Default: false.
    pub pipe_output: Option<PipeSetting>,
    /// Further points at which the same hook runs.
    #[schemars(schema_with = "point_names")]
    pub events: Vec<LocatedValue<String>>,
    /// A lower priority runs first; equal ones run in the order of definition. Default: 100.
    pub priority: Option<i64>,
    /// Whether it runs. Default: true.
    pub enabled: Option<bool>,
    /// A description for people.
    pub description: Option<String>,
    /// Values of your own.
    pub metadata: BTreeMap<String, Value>,
    /// A condition: `'agent' in task.labels and iteration > 2`. Default: always.
    pub when: Option<LocatedValue<String>>,
    /// The tools that it is for; absent, empty and `*` match all.
    pub matcher: Option<LocatedValue<String>>,
    /// The effect of a crash, a timeout or a bad answer of the hook: `ignore`, `block` or `escalate`. Default: `ignore`; at
    /// `before_submit` and `before_merge` `block`.
    pub on_failure: Option<FailureSetting>,
    /// Whether it may run again after a crash. Default: false.
    pub idempotent: Option<bool>,
    /// `max`, `backoff` and `jitter` of further attempts; at `stop`, of send-backs.
    pub retry: Option<LocatedValue<RetrySettings>>,
    /// A template for the text that the agent gets.
    pub feedback: Option<LocatedValue<String>>,
    /// Bytes of output that are kept for the agent. Default: 16384.
    pub max_output: Option<LocatedValue<u64>>,
}

/// When the output of a hook reaches the agent: `true`, `false` or `on_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected `true`, `false` or `on_failure`")]
pub enum PipeSetting {
    Fixed(bool),
    Conditional(PipeCondition),
}

/// When the output of a hook reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipeCondition {
    OnFailure,
}

impl From<PipeSetting> for PipeOutput {
    fn from(setting: PipeSetting) -> Self {
        match setting {
            PipeSetting::Fixed(pipes) => Self::from_flag(pipes),
            PipeSetting::Conditional(PipeCondition::OnFailure) => Self::OnFailure,
        }
    }
}

/// The effect of a hook's own failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureSetting {
    /// It is recorded, and nothing else.
    Ignore,
    /// As if the hook had said no.
    Block,
    /// A person is asked.
    Escalate,
}

/// How a failing hook is tried again.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// How often, after the first time.
    pub max: Option<LocatedValue<u32>>,
    /// How long to wait before the first retry; it doubles with every further one.
    pub backoff: Option<LocatedValue<DurationSetting>>,
    /// Whether the wait varies at random.
    pub jitter: Option<bool>,
}

/// A request to send.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestSettings {
    /// The address: `https://…` or `http://…`.
    pub url: LocatedValue<String>,
    /// Default: POST.
    #[serde(default)]
    pub method: Option<LocatedValue<String>>,
    /// Further headers.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: HeaderList,
}

/// One rule: where its conditions hold, its action is taken.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleSettings {
    /// A condition over the agent's context.
    #[serde(default)]
    pub when: Option<LocatedValue<String>>,
    /// Conditions that must all hold.
    #[serde(default)]
    pub all_of: Vec<LocatedValue<String>>,
    /// Conditions; one of them must hold.
    #[serde(default)]
    pub any_of: Vec<LocatedValue<String>>,
    /// The action of the rule.
    pub action: RuleActionSetting,
    /// The reason, in words.
    #[serde(default)]
    pub reason: Option<LocatedValue<String>>,
    /// The next prompt of the agent.
    #[serde(default, rename = "nextPrompt", alias = "next_prompt")]
    pub next_prompt: Option<LocatedValue<String>>,
    /// What a checkpoint keeps.
    #[serde(default, rename = "checkpointData", alias = "checkpoint_data")]
    pub checkpoint_data: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleActionSetting {
    Complete,
    Continue,
    Escalate,
}

/// A value that can be written as one word, or as a map.
#[derive(Debug, Clone)]
pub enum WordOrMap<T> {
    Word(String),
    Full(T),
}

/// The hooks of each point, in the order of definition. A point without a value is an error: `[]` means none.
#[derive(Debug, Clone, Default)]
pub struct HookLists(pub Vec<(LocatedValue<String>, Option<HookSettingsList>)>);

/// The headers of a request, in the order of definition.
#[derive(Debug, Clone, Default)]
pub struct HeaderList(pub Vec<(LocatedValue<String>, LocatedValue<String>)>);

pub type HookSettingsList = Vec<LocatedValue<WordOrMap<HookSettings>>>;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordOrMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMapVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for WordOrMapVisitor<T> {
            type Value = WordOrMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a map")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<WordOrMap<T>, E> {
                Ok(WordOrMap::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordOrMap<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(WordOrMap::Full)
            }
        }

        deserializer.deserialize_any(WordOrMapVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for HookLists {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_in_order(deserializer, "a map from points to lists of hooks").map(Self)
    }
}

impl<'de> Deserialize<'de> for HeaderList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_in_order(deserializer, "a map from names to values").map(Self)
    }
}

impl Serialize for HeaderList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&name.value, &value.value)))
    }
}

/// Deserializes the entries of a map in the order of definition.
fn deserialize_in_order<'de, K, V, D>(deserializer: D, expected: &'static str) -> Result<Vec<(K, V)>, D::Error>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct OrderedMapVisitor<K, V>(&'static str, PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for OrderedMapVisitor<K, V> {
        type Value = Vec<(K, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_map(OrderedMapVisitor(expected, PhantomData))
}

impl<T: JsonSchema> JsonSchema for WordOrMap<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrName", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let full = generator.subschema_for::<T>();
        json_schema!({"anyOf": [{"type": "string"}, full]})
    }
}

impl JsonSchema for HookLists {
    fn schema_name() -> Cow<'static, str> {
        "Hooks".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let entry = generator.subschema_for::<HookSettings>();
        let list = json!({
            "type": "array",
            "items": {"anyOf": [{"type": "string", "enum": BuiltinHook::all_names()}, entry]}
        });
        let points: BTreeMap<_, _> = hook_point_names().into_iter().map(|point| (point, list.clone())).collect();
        json_schema!({
            "description": "Lists of hooks, by point. An empty list means none.",
            "type": ["object", "null"],
            "properties": points,
            "propertyNames": {"anyOf": [{"enum": hook_point_spellings()}, {"pattern": FactType::PATTERN}]},
            "additionalProperties": list
        })
    }
}

fn one_kind() -> Value {
    HOOK_KIND_KEYS.iter().map(|kind| json!({"required": [kind]})).collect()
}

fn builtin_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": BuiltinHook::all_names()})
}

fn point_names(_: &mut SchemaGenerator) -> Schema {
    let names = json!([{"enum": hook_point_spellings()}, {"pattern": FactType::PATTERN}]);
    json_schema!({"type": "array", "items": {"type": "string", "anyOf": names}})
}
