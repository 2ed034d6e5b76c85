//! Hooks that the configuration has, and that another file says something of: whether they run, how early, and at which events.

use windlass_engine::nearest;

use super::{Obstacle, Remark, Tuned, moving};
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
    /// The point under which it is to stand.
    pub to: Option<Point>,
}

impl Change {
    pub fn is_none(&self) -> bool {
        self.said.is_empty() && self.to.is_none()
    }
}

/// What a hook of the configuration does not say yet; and what it cannot be made to say.
pub fn compare(tuned: &Tuned, config: &Config, index: usize) -> (Change, Option<Remark>) {
    let hook = &config.hooks[index];
    let mut change =
        Change { hook: index, at: hook.line, name: hook.name.clone(), line: tuned.line, said: Vec::new(), to: None };
    change.said.extend(tuned.enabled.filter(|on| *on != hook.enabled()).map(Said::Enabled));
    let is_registered = matches!(hook.kind, Kind::Builtin(builtin) if builtin.is_registered());
    // One of the registry has a place of its own in the order.
    let usual = (!is_registered).then_some(plan::PRIORITY);
    let priority = tuned.priority.filter(|wished| hook.entry.priority.or(usual) != Some(*wished));
    change.said.extend(priority.map(Said::Priority));
    let Some(wished) = &tuned.points else { return (change, None) };
    let Some(first) = wished.first() else {
        let text = format!("{} is to run at no event; `enabled: false` says so here", quoted(&hook.name));
        return (change, Some(Remark::on(tuned.line, text)));
    };
    let own = if wished.contains(&hook.point) { hook.point } else { *first };
    let mut further: Vec<Point> = Vec::new();
    for point in wished {
        if *point != own && !further.contains(point) {
            further.push(*point);
        }
    }
    let is_same = further.len() == hook.events.len() && further.iter().all(|point| hook.events.contains(point));
    let before = change.clone();
    change.said.extend((!is_same).then_some(Said::Events(further)));
    change.to = (own != hook.point).then_some(own);
    match change.to.map(|_| applied(config, std::slice::from_ref(&change))) {
        Some(Err(obstacle)) => {
            let note = elsewhere(tuned, hook, wished, &obstacle);
            (before, Some(note))
        }
        _ => (change, None),
    }
}

/// A hook that stands where it cannot be taken from.
fn elsewhere(tuned: &Tuned, hook: &Hook, wished: &[Point], obstacle: &Obstacle) -> Remark {
    let points: Vec<&str> = wished.iter().map(|point| point.name()).collect();
    let (name, own, line) = (quoted(&hook.name), hook.point, hook.line);
    let text = format!(
        "{name} stands under `{own}` (line {line} of the configuration), and is to run at {}: move it there by hand, because {obstacle}",
        points.join(", ")
    );
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

/// The configuration in which all of this is said. Hooks are moved in the end: till then each has its number.
pub fn applied(config: &Config, changes: &[Change]) -> Result<Option<Config>, Obstacle> {
    let mut now: Option<Config> = None;
    let read = |edited: &str| Config::of(config.file(), edited).map_err(|error| Obstacle::Wrong(error.into_problem()));
    for Change { hook, name, said, .. } in changes {
        for said in said {
            let before = now.as_ref().unwrap_or(config);
            let edited = switch::set(before, *hook, said).map_err(|obstacle| obstacle.of(name))?;
            now = Some(read(&edited)?);
        }
    }
    for Change { name, to, .. } in changes {
        if let Some(to) = to {
            let before = now.as_ref().unwrap_or(config);
            now = Some(moving::moved(before, name, *to)?);
        }
    }
    Ok(now)
}
