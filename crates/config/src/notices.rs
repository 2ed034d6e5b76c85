//! Notices about the end of a session or a question to a person. Each notice is a hook that runs after all others: it is
//! pending, runs once, is recorded, and is recovered after a crash like any other.

use std::time::Duration;

use windlass_engine::{EventType, HookPoint, HookScope};
use windlass_expr::{Condition, Names};

use super::entry::{Entry, Retry};
use super::error::ConfigProblem;
use super::file::{Notice, Occasion, Settings};
use super::hooks::{HookKind, HookSpec, script};
use super::reader::Located;
use super::request::request;
use super::span::DurationSetting;
use super::value_checks::placed;

/// The timeout of a notice, retries included.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The retries of a request, and the wait before the first one.
const TRIES: u32 = 2;
const BACKOFF: Duration = Duration::from_millis(250);

/// Returns the hooks of `notify`. Other hooks must not have their names.
pub fn hooks(settings: &Settings, hooks: &[HookSpec], source: &str) -> Result<Vec<HookSpec>, ConfigProblem> {
    let numbered = settings.notify.iter().enumerate();
    let notices = numbered.map(|(index, written)| {
        let name = format!("{}[{index}]", HookPoint::Notify);
        if let Some(other) = hooks.iter().find(|hook| hook.name == name) {
            return Err(ConfigProblem::new(format!(
                "line {} has a hook with the name `{name}`, which this notice has",
                other.line
            ))
            .suggest("give that hook another name".to_owned())
            .at(written.at.clone()));
        }
        placed(hook(name, written, source), &written.at)
    });
    notices.collect()
}

fn hook(name: String, written: &Located<Notice>, source: &str) -> Result<HookSpec, ConfigProblem> {
    let kind = kind(written, source)?;
    let at = || written.at.clone();
    let span = |time| Located { value: DurationSetting::of(time), at: at() };
    let retry = matches!(kind, HookKind::Http(_)).then(|| {
        let max = Some(Located { value: TRIES, at: at() });
        Located { value: Retry { max, backoff: Some(span(BACKOFF)), jitter: None }, at: at() }
    });
    Ok(HookSpec {
        scope: HookScope::Project,
        point: HookPoint::Notify,
        events: Vec::new(),
        name,
        kind,
        when: Some(occasions(written.on.as_deref())),
        matcher: windlass_expr::Matcher::default(),
        feedback: None,
        context: Vec::new(),
        at: at(),
        line: source[..written.at.start].matches('\n').count() + 1,
        entry: Entry { timeout: Some(span(TIMEOUT)), retry, enabled: written.enabled, ..Entry::default() },
    })
}

/// Returns the kind of a notice.
fn kind(written: &Located<Notice>, source: &str) -> Result<HookKind, ConfigProblem> {
    let Notice { command, http, desktop, .. } = &written.value;
    match (command, http, desktop) {
        (Some(command), None, None) => script(command.clone(), source).map(HookKind::Command),
        (None, Some(http), None) => request(http.clone()).map(HookKind::Http),
        (None, None, Some(true)) => Ok(HookKind::Desktop),
        (None, None, Some(false)) => {
            Err(ConfigProblem::new("`desktop: false` tells nobody").suggest("leave the whole notice out".to_owned()))
        }
        (None, None, None) => {
            Err(ConfigProblem::new("this notice does not say what it runs: `command`, `http` or `desktop: true`"))
        }
        _ => Err(ConfigProblem::new("a notice is one of `command`, `http` and `desktop`, not several")
            .suggest("write two notices".to_owned())),
    }
}

/// Compiles the condition of a notice: a session ended in one of these ways, or waits for a person. By default a cancelled session
/// causes no notice. A trial has no end.
fn occasions(on: Option<&[Occasion]>) -> Condition {
    let usual = [Occasion::Escalated, Occasion::Completed, Occasion::Ended, Occasion::Failed];
    let on = on.unwrap_or(&usual);
    let asked = on.contains(&Occasion::Escalated);
    let endings = on.iter().map(|occasion| match occasion {
        Occasion::Escalated => "escalated",
        Occasion::Completed => "completed",
        Occasion::Ended => "limit",
        Occasion::Failed => "error",
        Occasion::Cancelled => "cancelled",
    });
    let endings: Vec<String> = endings.map(|ending| format!("'{ending}'")).collect();
    let ends = format!("(event.data.ending | default('')) in ['', {}]", endings.join(", "));
    let asks = format!("{asked} and event.data.decision == 'ask'");
    let text = format!("({asks}) if event.type == '{}' else ({ends})", EventType::GateDecided);
    Condition::parse(&text, &Names::hook()).expect("it names what every event of an end has")
}
