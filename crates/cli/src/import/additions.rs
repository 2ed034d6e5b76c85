//! What of an import a configuration does not have yet.

use std::collections::{BTreeMap, BTreeSet};

use super::tuning::{self, Change};
use super::{Import, Remark, Setting, Tuned, Wanted, What};
use crate::config::{self, Builtin, Config, Hook, Kind, Node, Point, Scope, Value};
use crate::plan;

/// What is to be added to a configuration.
#[derive(Debug, Default)]
pub struct Additions {
    /// With names that nobody else has.
    pub hooks: Vec<Wanted>,
    pub settings: Vec<Setting>,
    /// What is said anew of hooks that are there.
    pub changes: Vec<Change>,
    /// What is there already.
    pub present: Vec<Wanted>,
    /// Hooks that are there, and of which nothing else is said.
    pub settled: Vec<Tuned>,
    /// What is for a hook that is not there.
    pub left_out: Vec<Remark>,
    /// What is there and says something else, and stays as it is.
    pub notes: Vec<Remark>,
}

impl Additions {
    pub fn of(import: &Import, config: &Config) -> Self {
        let mut additions = Self::default();
        let mut names = Names::of(config);
        for wanted in &import.hooks {
            additions.hook(wanted, config, &mut names);
        }
        for tuned in &import.tuned {
            additions.tune(tuned, config);
        }
        let tree = config::tree(config.text()).ok();
        for setting in &import.settings {
            additions.setting(*setting, config, tree.as_ref());
        }
        additions
    }

    pub fn is_empty(&self) -> bool {
        self.is_no_more() && self.changes.is_empty()
    }

    /// Whether there is nothing that was not there: what is changed is no addition.
    pub fn is_no_more(&self) -> bool {
        self.hooks.is_empty() && self.settings.is_empty()
    }

    /// A hook that the configuration has, or should have.
    fn tune(&mut self, tuned: &Tuned, config: &Config) {
        let Some(index) = config.hooks.iter().position(|hook| hook.name == tuned.name) else {
            self.left_out.push(tuning::missing(tuned, config));
            return;
        };
        let (change, note) = tuning::compare(tuned, config, index);
        if change.is_none() && note.is_none() {
            self.settled.push(tuned.clone());
        }
        self.changes.extend(Some(change).filter(|change| !change.is_none()));
        self.notes.extend(note);
    }

    fn hook(&mut self, wanted: &Wanted, config: &Config, names: &mut Names) {
        if config.hooks.iter().any(|hook| is_same(hook, wanted)) {
            self.present.push(wanted.clone());
            return;
        }
        if let What::Use(builtin) = wanted.what {
            let configured = |hook: &Hook| matches!(hook.kind, Kind::Builtin(other) if other == builtin);
            if let Some(index) = config.hooks.iter().position(configured) {
                let Wanted { line, enabled, priority, .. } = wanted.clone();
                let tuned = Tuned { line, name: config.hooks[index].name.clone(), enabled, priority, points: None };
                self.tune(&tuned, config);
                return;
            }
        }
        let name = match wanted.what {
            What::Use(builtin) => builtin.to_string(),
            _ => names.take(&wanted.name),
        };
        self.hooks.push(Wanted { name, ..wanted.clone() });
    }

    fn setting(&mut self, setting: Setting, config: &Config, tree: Option<&Node>) {
        let limits = tree.and_then(|tree| value(tree, "limits"));
        match setting {
            Setting::MaxHookRetries(most) => {
                let written =
                    limits.and_then(|limits| value(limits, "max_hook_retries").or(value(limits, "maxHookRetries")));
                let ours = config.settings.limits.max_hook_retries;
                let usual = config::Settings::default().limits.max_hook_retries;
                match written {
                    None => self.settings.push(setting),
                    Some(_) if ours == most => {}
                    Some(_) if ours == usual && super::edit::retries(config.text()).is_some() => {
                        self.settings.push(setting);
                        self.notes.push(Remark::general(format!(
                            "`max_hook_retries` is {ours} in the configuration, as usual; it becomes {most}, as in this file"
                        )));
                    }
                    Some(_) => self.notes.push(Remark::general(format!(
                        "`max_hook_retries` is {ours} in the configuration and {most} in this file; that of the configuration stays"
                    ))),
                }
            }
            Setting::NotStrict => self.loosen(setting, config.settings.strict.map(|strict| !strict), config),
            Setting::CompleteAtLimit => {
                let written = tree.and_then(|tree| value(tree, "on_retry_limit"));
                let given = written.map(|_| config.settings.on_retry_limit == config::OnRetryLimit::Complete);
                self.loosen(setting, given, config);
            }
        }
    }

    /// A setting that lets go more easily, for hooks of this import alone. Whether the configuration says the same is given,
    /// where it says anything.
    fn loosen(&mut self, setting: Setting, given: Option<bool>, config: &Config) {
        let at_stop = |wanted: &Wanted| wanted.point.is_stop();
        if given == Some(true) || !self.hooks.iter().any(at_stop) {
            return;
        }
        let (there, line) = match setting {
            Setting::NotStrict => {
                ("a stop hook that fails by itself (exit 1, a timeout) lets the agent end there", "strict: false")
            }
            _ => (
                "when stop hooks have sent the agent back as often as they may, the work counts as complete there",
                "on_retry_limit: complete",
            ),
        };
        let others = config.hooks.iter().any(|hook| hook.points().any(Point::is_stop));
        let text = match given.is_none() && !others {
            true => {
                self.settings.push(setting);
                format!("{there}: written as `{line}`; take that line out if it should not be so here")
            }
            false => {
                format!("{there}; the configuration has its own word on that, which stays (`{line}` would be the same)")
            }
        };
        self.notes.push(Remark::general(text));
    }
}

fn value<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    super::field::entry(node, name).map(|(_, value)| value).filter(|value| !matches!(value.value, Value::Null))
}

/// Whether a hook of the configuration does what is wanted.
pub fn is_same(hook: &Hook, wanted: &Wanted) -> bool {
    let here = hook.scope == Scope::Project && hook.points().any(|point| point == wanted.point);
    let what = match (&hook.kind, &wanted.what) {
        (Kind::Command(script), What::Command(command)) => script.text() == command,
        (Kind::Http(request), What::Http { url, headers }) => {
            let written: Vec<_> =
                request.headers.0.iter().map(|(name, value)| (name.value.clone(), value.value.clone())).collect();
            *request.url == *url && request.method.is_none() && written == *headers
        }
        (Kind::Builtin(one), What::Use(other)) => {
            let enabled = wanted.enabled.unwrap_or(true) == hook.enabled();
            return one == other && enabled && hook.entry.priority == wanted.priority;
        }
        _ => false,
    };
    let matcher =
        hook.entry.matcher.as_ref().map(|matcher| matcher.value.trim()).filter(|text| !matches!(*text, "" | "*"));
    let timeout = wanted.timeout.unwrap_or_else(|| plan::usual_timeout(wanted.point));
    here && what && matcher == wanted.matcher.as_deref().map(str::trim) && plan::timeout(hook) == timeout
}

/// Names that are taken.
struct Names {
    taken: BTreeSet<String>,
    /// How often each was asked for.
    asked: BTreeMap<String, usize>,
}

impl Names {
    fn of(config: &Config) -> Self {
        let configured = config.hooks.iter().map(|hook| hook.name.clone());
        let taken = configured.chain(Builtin::names().into_iter().map(str::to_owned)).collect();
        Self { taken, asked: BTreeMap::new() }
    }

    /// This name, or the first with a number that nobody has.
    fn take(&mut self, name: &str) -> String {
        let asked = self.asked.entry(name.to_owned()).or_insert(1);
        loop {
            let candidate = if *asked == 1 { name.to_owned() } else { format!("{name}-{asked}") };
            *asked += 1;
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
