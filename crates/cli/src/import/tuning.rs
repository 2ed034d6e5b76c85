//! Hooks that the configuration has, and that another file says something of: whether they run, how early, and at which events.

use windlass_engine::nearest;

use super::{Obstacle, Remark, Tuned};
use crate::config::{Builtin, Config, Hook, Kind, Point, quoted};
use crate::plan;
use crate::switch::{self, Said};

/// What is to be said anew of a hook that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its number in the configuration, and the line on which it stands there.
    pub hook: usize,
    pub at: usize,
    pub name: String,
    /// Where it comes from.
    pub line: usize,
    pub said: Vec<Said>,
}

/// What a hook does not say yet; and what it cannot be made to say.
pub fn compare(tuned: &Tuned, hook: &Hook, index: usize) -> (Change, Option<Remark>) {
    let mut said = Vec::new();
    said.extend(tuned.enabled.filter(|on| *on != hook.enabled()).map(Said::Enabled));
    let is_registered = matches!(hook.kind, Kind::Builtin(builtin) if builtin.is_registered());
    // One of the registry has a place of its own in the order.
    let usual = (!is_registered).then_some(plan::PRIORITY);
    said.extend(tuned.priority.filter(|wished| hook.entry.priority.or(usual) != Some(*wished)).map(Said::Priority));
    let mut note = None;
    if let Some(wished) = &tuned.points {
        let further = wished.iter().copied().filter(|point| *point != hook.point);
        let further: Vec<Point> = further.fold(Vec::new(), |mut all, point| {
            if !all.contains(&point) {
                all.push(point);
            }
            all
        });
        let is_same = further.len() == hook.events.len() && further.iter().all(|point| hook.events.contains(point));
        if !wished.contains(&hook.point) {
            note = Some(elsewhere(tuned, hook, wished));
        } else if !is_same {
            said.push(Said::Events(further));
        }
    }
    (Change { hook: index, at: hook.line, name: hook.name.clone(), line: tuned.line, said }, note)
}

/// A hook is not moved: what stands around it may be meant for it.
fn elsewhere(tuned: &Tuned, hook: &Hook, wished: &[Point]) -> Remark {
    let name = quoted(&hook.name);
    let text = match wished.first() {
        None => format!("{name} is to run at no event here; `enabled: false` says so"),
        Some(_) => {
            let points: Vec<&str> = wished.iter().map(|point| point.name()).collect();
            let (own, line) = (hook.point, hook.line);
            format!(
                "{name} stands under `{own}` (line {line} of the configuration), and is to run at {}: move it there by hand",
                points.join(", ")
            )
        }
    };
    Remark::on(tuned.line, text)
}

/// Nobody has this name.
pub fn missing(tuned: &Tuned, config: &Config) -> Remark {
    let name = quoted(&tuned.name);
    let mut names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    names.extend(Builtin::names());
    let near = nearest(&tuned.name, &names).map(|near| format!(" (there is {})", quoted(near))).unwrap_or_default();
    let text = format!(
        "{name}: neither the configuration nor Windlass has a hook with this name{near}, and what it does is not in the file; write it as a `command` with this `name` at its events"
    );
    Remark::on(tuned.line, text)
}

/// The configuration in which all of this is said.
pub fn applied(config: &Config, changes: &[Change]) -> Result<Option<Config>, Obstacle> {
    let mut now: Option<Config> = None;
    for Change { hook, name, said, .. } in changes {
        for said in said {
            let before = now.as_ref().unwrap_or(config);
            let edited = switch::set(before, *hook, said).map_err(|obstacle| obstacle.of(name))?;
            let after = Config::of(config.file(), &edited).map_err(|error| Obstacle::Wrong(error.into_problem()))?;
            now = Some(after);
        }
    }
    Ok(now)
}
