//! The configurations that a store has recorded for its open sessions and pending hooks.
//!
//! A resumed session uses the configuration recorded for it, not the project's file.

use std::path::Path;

use windlass_config::{AgentCommandSetting, Config};
use windlass_engine::{ConfigDigest, RowChange};

use super::StoreHolding;
use crate::commands::trust::{DESCRIBED_KEYS, allowed_agent_commands};

/// Lists the programs that each configuration would run, and its other keys.
pub fn list_recorded_configs(rows: &[RowChange]) -> Vec<StoreHolding> {
    let text_of = |wanted: ConfigDigest| {
        rows.iter().find_map(|row| match row {
            RowChange::PutConfig { digest, text } if *digest == wanted => Some(text.as_str()),
            _ => None,
        })
    };
    let in_use = find_config_users(rows).into_iter().filter_map(|(digest, users)| Some((users, text_of(digest)?)));
    // An empty text stands for a project without a configuration.
    in_use
        .filter(|(_, text)| !text.is_empty())
        .flat_map(|(users, text)| describe_recorded_config(&users.join(", "), text))
        .collect()
}

/// Returns the configurations that are in use, each with the open sessions and pending hooks that use it.
fn find_config_users(rows: &[RowChange]) -> Vec<(ConfigDigest, Vec<String>)> {
    let mut found: Vec<(ConfigDigest, Vec<String>)> = Vec::new();
    for row in rows {
        let (digest, user) = match row {
            RowChange::PutSession(session) if !session.is_over() => (session.config, session.name.to_string()),
            RowChange::PutEffect(effect) => {
                let event = || format!("event {}", effect.id.seq);
                (effect.config, effect.session.as_ref().map_or_else(event, ToString::to_string))
            }
            _ => continue,
        };
        match found.iter_mut().find(|(known, _)| *known == digest) {
            Some((_, users)) if users.contains(&user) => {}
            Some((_, users)) => users.push(user),
            None => found.push((digest, vec![user])),
        }
    }
    found
}

fn describe_recorded_config(users: &str, text: &str) -> Vec<StoreHolding> {
    let holding = |about: String, what| StoreHolding { kind: "recorded configuration", about, what };
    let config = match Config::from_text(Path::new(".windlass/config.yaml"), text) {
        Ok(config) => config,
        // A configuration that cannot be read runs nothing; the error is shown.
        Err(error) => return vec![holding(format!("of {users}"), format!("cannot be read: {}", error.into_message()))],
    };
    let effects = config.list_effects();
    let is_told = effects.iter().any(|effect| effect.place == "agent_commands");
    let mut holdings: Vec<StoreHolding> = effects
        .iter()
        .map(|effect| holding(format!("of {users}: {}", effect.display_title()), effect.what.clone()))
        .collect();
    if allowed_agent_commands(&config) == AgentCommandSetting::Allow && !is_told {
        holdings.push(holding(format!("of {users}: agent_commands"), "allow, the default".to_owned()));
    }
    let silent: Vec<String> =
        config.top_level_keys().into_iter().filter(|key| !DESCRIBED_KEYS.contains(&key.as_str())).collect();
    if !silent.is_empty() {
        holdings.push(holding(format!("of {users}: other keys"), silent.join(", ")));
    }
    holdings
}
