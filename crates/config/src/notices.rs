//! Notices about the end of a session or a question to a person. Each notice is a hook that runs after all others: it is
//! pending, runs once, is recorded, and is recovered after a crash like any other.

use std::time::Duration;

use windlass_engine::{EventType, HookPoint, HookScope};
use windlass_expr::{Condition, ExpressionNames};

use super::duration_setting::DurationSetting;
use super::error::ConfigProblem;
use super::hook_settings::{HookSettings, RetrySettings};
use super::hooks::{HookKind, HookSpec, parse_script};
use super::reader::LocatedValue;
use super::request::check_request;
use super::settings::{NoticeOccasion, NoticeSettings, Settings};
use super::value_checks::with_place;

/// The timeout of a notice, retries included.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);
/// The retries of a request, and the wait before the first one.
const MAX_NOTICE_RETRIES: u32 = 2;
const NOTICE_BACKOFF: Duration = Duration::from_millis(250);

/// Returns the hooks of `notify`. Other hooks must not have their names.
pub fn build_notice_hooks(
    settings: &Settings,
    hooks: &[HookSpec],
    source: &str,
) -> Result<Vec<HookSpec>, ConfigProblem> {
    let numbered = settings.notify.iter().enumerate();
    let notices = numbered.map(|(index, written)| {
        let name = format!("{}[{index}]", HookPoint::Notify);
        if let Some(other) = hooks.iter().find(|hook| hook.name == name) {
            return Err(ConfigProblem::new(format!(
                "line {} has a hook with the name `{name}`, which this notice has",
                other.line
            ))
            .with_suggestion("give that hook another name".to_owned())
            .with_range(written.at.clone()));
        }
        with_place(build_notice_hook(name, written, source), &written.at)
    });
    notices.collect()
}

fn build_notice_hook(
    name: String,
    written: &LocatedValue<NoticeSettings>,
    source: &str,
) -> Result<HookSpec, ConfigProblem> {
    let kind = parse_notice_kind(written, source)?;
    let at = || written.at.clone();
    let span = |time| LocatedValue { value: DurationSetting::from_duration(time), at: at() };
    let retry = matches!(kind, HookKind::Http(_)).then(|| {
        let max = Some(LocatedValue { value: MAX_NOTICE_RETRIES, at: at() });
        LocatedValue { value: RetrySettings { max, backoff: Some(span(NOTICE_BACKOFF)), jitter: None }, at: at() }
    });
    Ok(HookSpec {
        scope: HookScope::Project,
        point: HookPoint::Notify,
        events: Vec::new(),
        name,
        kind,
        when: Some(compile_occasions(written.on.as_deref())),
        matcher: windlass_expr::ToolMatcher::default(),
        feedback: None,
        context: Vec::new(),
        at: at(),
        line: source[..written.at.start].matches('\n').count() + 1,
        entry: HookSettings {
            timeout: Some(span(NOTICE_TIMEOUT)),
            retry,
            enabled: written.enabled,
            ..HookSettings::default()
        },
    })
}

/// Returns the kind of a notice.
fn parse_notice_kind(written: &LocatedValue<NoticeSettings>, source: &str) -> Result<HookKind, ConfigProblem> {
    let NoticeSettings { command, http, desktop, .. } = &written.value;
    match (command, http, desktop) {
        (Some(command), None, None) => parse_script(command.clone(), source).map(HookKind::Command),
        (None, Some(http), None) => check_request(http.clone()).map(HookKind::Http),
        (None, None, Some(true)) => Ok(HookKind::Desktop),
        (None, None, Some(false)) => Err(ConfigProblem::new("`desktop: false` shows no notice")
            .with_suggestion("leave the whole notice out".to_owned())),
        (None, None, None) => {
            Err(ConfigProblem::new("this notice does not say what it runs: `command`, `http` or `desktop: true`"))
        }
        _ => Err(ConfigProblem::new("a notice is one of `command`, `http` and `desktop`, not several")
            .with_suggestion("write two notices".to_owned())),
    }
}

/// Compiles the condition of a notice: a session ended in one of these ways, or waits for a person. By default a cancelled session
/// causes no notice. A trial has no end.
fn compile_occasions(on: Option<&[NoticeOccasion]>) -> Condition {
    let usual = [NoticeOccasion::Escalated, NoticeOccasion::Completed, NoticeOccasion::Ended, NoticeOccasion::Failed];
    let on = on.unwrap_or(&usual);
    let asked = on.contains(&NoticeOccasion::Escalated);
    let endings = on.iter().map(|occasion| match occasion {
        NoticeOccasion::Escalated => "escalated",
        NoticeOccasion::Completed => "completed",
        NoticeOccasion::Ended => "limit",
        NoticeOccasion::Failed => "error",
        NoticeOccasion::Cancelled => "cancelled",
    });
    let endings: Vec<String> = endings.map(|ending| format!("'{ending}'")).collect();
    let ends = format!("(event.data.ending | default('')) in ['', {}]", endings.join(", "));
    let asks = format!("{asked} and event.data.decision == 'ask'");
    let text = format!("({asks}) if event.type == '{}' else ({ends})", EventType::GateDecided);
    Condition::parse(&text, &ExpressionNames::for_hook()).expect("it names what every event of an end has")
}
