//! The permissions of an agent: the answers to its permission requests, and the rules for the client services.
//!
//! ```yaml
//! permissions: allow                                   # or deny, or read-only
//! permissions: {default: allow, execute: deny}         # by the kind of tool
//! ```
//!
//! The default allows each request once: the user who starts a loop expects the agent to work, and an unanswered request
//! would only end the turn. Permissions do not restrict an agent that does not ask.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPermission {
    /// Allows this one request.
    #[default]
    Allow,
    Deny,
}

impl ToolPermission {
    /// Returns the kinds of options that express this answer, the preferred one first.
    pub(super) fn option_kinds(self) -> [&'static str; 2] {
        match self {
            Self::Allow => ["allow_once", "allow_always"],
            Self::Deny => ["reject_once", "reject_always"],
        }
    }
}

/// The kind of a tool, as the protocol defines it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    /// The agent names no kind, or one that Windlass does not know.
    #[default]
    Other,
}

impl ToolKind {
    pub const ALL: [(&'static str, Self); 10] = [
        ("read", Self::Read),
        ("edit", Self::Edit),
        ("delete", Self::Delete),
        ("move", Self::Move),
        ("search", Self::Search),
        ("execute", Self::Execute),
        ("think", Self::Think),
        ("fetch", Self::Fetch),
        ("switch_mode", Self::SwitchMode),
        ("other", Self::Other),
    ];

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("other", |(name, _)| name)
    }
}

/// The permissions of an agent, by the kind of tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPermissions {
    pub default: ToolPermission,
    pub kinds: BTreeMap<ToolKind, ToolPermission>,
}

impl AgentPermissions {
    pub fn uniform(permission: ToolPermission) -> Self {
        Self { default: permission, kinds: BTreeMap::new() }
    }

    /// Returns permissions that allow only tools which read.
    pub fn read_only() -> Self {
        let looking = [ToolKind::Read, ToolKind::Search, ToolKind::Think];
        Self { default: ToolPermission::Deny, kinds: looking.map(|kind| (kind, ToolPermission::Allow)).into() }
    }

    pub fn for_tool_kind(&self, kind: ToolKind) -> ToolPermission {
        self.kinds.get(&kind).copied().unwrap_or(self.default)
    }

    pub fn allows_tool_kind(&self, kind: ToolKind) -> bool {
        self.for_tool_kind(kind) == ToolPermission::Allow
    }
}

impl<'de> Deserialize<'de> for AgentPermissions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PermissionsVisitor;
        impl<'de> Visitor<'de> for PermissionsVisitor {
            type Value = AgentPermissions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`allow`, `deny`, `read-only`, or a map from kinds of tools to `allow` or `deny`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<AgentPermissions, E> {
                match word {
                    "allow" => Ok(AgentPermissions::uniform(ToolPermission::Allow)),
                    "deny" => Ok(AgentPermissions::uniform(ToolPermission::Deny)),
                    "read-only" | "read_only" => Ok(AgentPermissions::read_only()),
                    _ => Err(E::unknown_variant(word, &["allow", "deny", "read-only"])),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AgentPermissions, A::Error> {
                let mut permissions = AgentPermissions::default();
                while let Some((key, permission)) = map.next_entry::<String, ToolPermission>()? {
                    match (key.as_str(), ToolKind::from_name(&key)) {
                        ("default", _) => permissions.default = permission,
                        (_, Some(kind)) => drop(permissions.kinds.insert(kind, permission)),
                        (unknown, None) => {
                            let kinds = ToolKind::ALL.map(|(name, _)| format!("`{name}`")).join(", ");
                            let why = format!("unknown field `{unknown}`, expected one of `default`, {kinds}");
                            return Err(de::Error::custom(why));
                        }
                    }
                }
                Ok(permissions)
            }
        }
        deserializer.deserialize_any(PermissionsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AgentPermissions, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn permissions_parse_from_word_or_map() {
        use ToolKind::{Edit, Execute, Fetch, Other, Read, Search, Think};
        use ToolPermission::{Allow, Deny};
        let check = |text: &str, expected: &[(ToolKind, ToolPermission)]| {
            let permissions = read(text).expect(text);
            for (kind, permission) in expected {
                assert_eq!(permissions.of(*kind), *permission, "{text}: {kind:?}");
            }
        };
        check("allow", &[(Execute, Allow), (Other, Allow)]);
        check("deny", &[(Read, Deny), (Other, Deny)]);
        let looking = [Read, Search, Think];
        for (_, kind) in ToolKind::ALL {
            check("read-only", &[(kind, if looking.contains(&kind) { Allow } else { Deny })]);
        }
        check("{default: allow, execute: deny, fetch: deny}", &[(Execute, Deny), (Fetch, Deny), (Edit, Allow)]);
        check("{default: deny, read: allow}", &[(Read, Allow), (Other, Deny)]);
        check("{}", &[(Execute, Allow)]);
        assert_eq!(Permissions::default(), Permissions::all(Allow));
    }

    #[test]
    fn invalid_permissions_name_the_choices() {
        assert!(read("perhaps").expect_err("no word").contains("read-only"));
        assert!(read("{exec: deny}").expect_err("no kind").contains("execute"));
        assert!(read("{execute: perhaps}").expect_err("no permission").contains("allow"));
        assert!(read("[allow]").is_err());
    }

    #[test]
    fn tool_kind_names_round_trip() {
        for (name, kind) in ToolKind::ALL {
            assert_eq!((ToolKind::named(name), kind.name()), (Some(kind), name));
        }
    }
}
