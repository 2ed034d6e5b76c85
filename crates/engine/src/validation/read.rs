//! Rules as they are given: every mistake is named with its place, and with what to write instead.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Component, Path};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    CommandRule, CoverageFormat, CoverageRule, CustomRule, FilesRule, PatternRule, Percent, RuleKind, Target,
    ValidationRule,
};
use crate::naming::nearest;

/// Bytes of a path.
const PATH: usize = 4 * 1024;

/// A rule that cannot be taken: where, why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {cause}")]
pub struct RuleError {
    /// `validationRules[2].config.timeout`
    pub path: String,
    pub cause: String,
    pub remedy: String,
}

impl ValidationRule {
    /// The rules of a list that stands at `path`. Paths in them are taken relative to the project, and kept so.
    pub fn read_all(path: &str, given: &Value, project: &Path) -> Result<Vec<Self>, RuleError> {
        let place = Place { path: path.to_owned(), project };
        let items = match given {
            Value::Null => return Ok(Vec::new()),
            Value::Array(items) => items,
            other => return Err(place.wrong(other, "a list", "give a list of rules, `[{type, name, config}]`")),
        };
        if items.len() > Self::MOST {
            let cause = format!("has {} rules; at most {} are taken", items.len(), Self::MOST);
            return Err(place.error(cause, "join some of them in one `command` rule that runs a script"));
        }
        let mut names = BTreeSet::new();
        let mut rules = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = place.item(index);
            let rule = place.rule(item)?;
            if !names.insert(rule.name.clone()) {
                let cause = format!("is {}, as another rule's name is", shown(&rule.name));
                return Err(place.field("name").error(cause, "give each rule a name of its own: results go by it"));
            }
            rules.push(rule);
        }
        Ok(rules)
    }
}

/// Where something stands.
struct Place<'a> {
    path: String,
    project: &'a Path,
}

impl<'a> Place<'a> {
    fn item(&self, index: usize) -> Place<'a> {
        Place { path: format!("{}[{index}]", self.path), project: self.project }
    }

    fn field(&self, name: &str) -> Place<'a> {
        Place { path: format!("{}.{name}", self.path), project: self.project }
    }

    fn error(&self, cause: impl Into<String>, remedy: impl Into<String>) -> RuleError {
        RuleError { path: self.path.clone(), cause: cause.into(), remedy: remedy.into() }
    }

    fn wrong(&self, found: &Value, expected: &str, remedy: &str) -> RuleError {
        self.error(format!("is {}, not {expected}", described(found)), remedy)
    }

    fn rule(&self, given: &Value) -> Result<ValidationRule, RuleError> {
        let fields = Fields::of(self, given, &["type", "name", "config"], "give `{type, name, config}`")?;
        let kind: String = fields.named("type", &RuleKind::NAMES)?;
        let place = fields.at("name");
        let name = fields.needed_text("name", ValidationRule::NAME, "what the rule checks, in a few words")?;
        if name.contains(char::is_control) {
            return Err(place.error("has a control character in it", "give the name in one plain line"));
        }
        let place = fields.at("config");
        let empty = Value::Object(Map::new());
        let config = fields.value("config").unwrap_or(&empty);
        let kind = match kind.as_str() {
            "command" => RuleKind::Command(command(&place, config)?),
            "content_pattern" => RuleKind::ContentPattern(pattern(&place, config)?),
            "coverage" => RuleKind::Coverage(coverage(&place, config)?),
            "file_existence" => RuleKind::FileExistence(files(&place, config)?),
            _ => RuleKind::Custom(custom(&place, config)?),
        };
        Ok(ValidationRule { name: name.to_owned(), kind })
    }

    /// A path below the project, as it is written from there.
    fn path(&self, given: &str) -> Result<String, RuleError> {
        const REMEDY: &str = "give a path inside the project, relative to its directory";
        let path = Path::new(given);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(self.error(format!("is {}, with a `..` in it", shown(given)), REMEDY));
        }
        let inside = match path.is_absolute() {
            true => path
                .strip_prefix(self.project)
                .map_err(|_| self.error(format!("is {}, which is outside the project", shown(given)), REMEDY))?,
            false => path,
        };
        match inside.to_str() {
            None | Some("") => Ok(".".to_owned()),
            Some(inside) => Ok(inside.to_owned()),
        }
    }
}

fn command(place: &Place<'_>, config: &Value) -> Result<CommandRule, RuleError> {
    const KNOWN: &[&str] = &["command", "expectedExitCode", "successExitCodes", "timeout", "workingDirectory"];
    const CODE: &str = "give an exit code from 0 to 255";
    let fields = Fields::of(place, config, KNOWN, "give `{command}`, with the shell command to run")?;
    let command = fields.needed_text("command", CommandRule::TEXT, "the shell command to run")?;
    let code = |value: &Value, place: &Place<'_>| {
        let code = whole(value).and_then(|code| u8::try_from(code).ok());
        code.ok_or_else(|| place.wrong(value, "an exit code", CODE))
    };
    let most = CommandRule::LONGEST.as_millis();
    let timeout = fields.value("timeout").map(|value| {
        let time = whole(value).filter(|time| (1..=most).contains(&u128::from(*time)));
        let remedy = format!("give milliseconds as a whole number from 1 to {most}; 60000 is the default");
        time.map(Duration::from_millis)
            .ok_or_else(|| fields.at("timeout").wrong(value, "a number of milliseconds that is taken", &remedy))
    });
    let successes =
        fields.list("successExitCodes", CommandRule::CODES, "give a list of exit codes, such as `[0, 1]`")?;
    let directory = fields.text("workingDirectory", PATH)?;
    Ok(CommandRule {
        command: command.to_owned(),
        expected_exit_code: fields
            .value("expectedExitCode")
            .map(|value| code(value, &fields.at("expectedExitCode")))
            .transpose()?,
        success_exit_codes: successes.iter().map(|(place, value)| code(value, place)).collect::<Result<_, _>>()?,
        timeout: timeout.transpose()?,
        working_directory: directory.map(|path| fields.at("workingDirectory").path(path)).transpose()?,
    })
}

fn pattern(place: &Place<'_>, config: &Value) -> Result<PatternRule, RuleError> {
    const KNOWN: &[&str] = &["pattern", "target", "flags", "mustMatch"];
    let fields = Fields::of(place, config, KNOWN, "give `{pattern, target}`")?;
    let rule = PatternRule {
        pattern: fields.needed_text("pattern", PatternRule::TEXT, "a regular expression")?.to_owned(),
        target: fields.named("target", &Target::NAMES)?,
        flags: fields.value("flags").map(|value| flags(&fields.at("flags"), value)).transpose()?,
        must_match: fields.truth("mustMatch")?,
    };
    let error = match rule.regex() {
        Ok(_) => return Ok(rule),
        Err(error) => error.to_string(),
    };
    let remedy = match error.as_str() {
        "compiled regex exceeded size limit" => {
            "write it shorter, or with fewer and smaller repetitions; `.*` costs nothing"
        }
        "look-around is not supported" | "backreferences are not supported" => {
            "write it without look-around and back references: use two rules, one of them with `mustMatch: false`"
        }
        _ => "escape what is meant as it stands, such as `\\(` or `\\[`; in JSON a backslash is written twice",
    };
    Err(fields.at("pattern").error(format!("is no regular expression that can be used: {error}"), remedy))
}

fn flags(place: &Place<'_>, value: &Value) -> Result<String, RuleError> {
    let (known, idle) = (PatternRule::FLAGS, PatternRule::WITHOUT_EFFECT);
    let remedy = "give some of `i` (any case), `m` (`^` and `$` at every line), `s` (`.` is any character), `x` (spaces and \
                  `#` comments do not count); `d`, `g`, `u` and `v` change nothing";
    let Value::String(flags) = value else { return Err(place.wrong(value, "a text", remedy)) };
    match flags.chars().find(|flag| !known.contains(*flag) && !idle.contains(*flag)) {
        Some(flag) => Err(place.error(format!("has {flag:?} in it, which is no flag that is known"), remedy)),
        None if flags.len() > known.len() + idle.len() => Err(place.error("names a flag twice", remedy)),
        None => Ok(flags.clone()),
    }
}

fn coverage(place: &Place<'_>, config: &Value) -> Result<CoverageRule, RuleError> {
    const KNOWN: &[&str] = &["minCoverage", "format", "reportPath"];
    const REMEDY: &str = "give the percentage of lines that the tests have to reach, from 0 to 100";
    let fields = Fields::of(place, config, KNOWN, "give `{minCoverage, format, reportPath}`")?;
    let least = fields.needed("minCoverage", "the percentage of lines that the tests have to reach, from 0 to 100")?;
    let min_coverage = least.as_f64().and_then(Percent::new);
    let report = fields.needed_text("reportPath", PATH, "where the report is, such as `coverage/lcov.info`")?;
    Ok(CoverageRule {
        min_coverage: min_coverage.ok_or_else(|| fields.at("minCoverage").wrong(least, "a percentage", REMEDY))?,
        format: fields.named("format", &CoverageFormat::NAMES)?,
        report_path: fields.at("reportPath").path(report)?,
    })
}

fn files(place: &Place<'_>, config: &Value) -> Result<FilesRule, RuleError> {
    const REMEDY: &str = "give a list of paths in the project, such as `[\"README.md\"]`";
    let fields = Fields::of(place, config, &["paths", "allMustExist"], "give `{paths}`")?;
    fields.needed("paths", "the files that have to be there")?;
    let given = fields.list("paths", FilesRule::PATHS, REMEDY)?;
    if given.is_empty() {
        return Err(fields.at("paths").error("is empty", REMEDY));
    }
    let path = |(place, value): &(Place<'_>, &Value)| match value {
        Value::String(path) => place.checked(path, PATH).and_then(|path| place.path(path)),
        other => Err(place.wrong(other, "a text", REMEDY)),
    };
    Ok(FilesRule {
        paths: given.iter().map(path).collect::<Result<_, _>>()?,
        all_must_exist: fields.truth("allMustExist")?,
    })
}

fn custom(place: &Place<'_>, config: &Value) -> Result<CustomRule, RuleError> {
    let needs = "the name of a validator under `validators:` in the project's configuration";
    let fields = Fields::of(place, config, &["validatorId"], "give `{validatorId}`")?;
    let validator = fields.needed_text("validatorId", ValidationRule::NAME, needs)?;
    Ok(CustomRule { validator_id: validator.to_owned() })
}

/// The fields of an object, all of them known.
struct Fields<'a> {
    place: &'a Place<'a>,
    given: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn of(place: &'a Place<'a>, value: &'a Value, known: &[&str], remedy: &str) -> Result<Self, RuleError> {
        let Value::Object(given) = value else { return Err(place.wrong(value, "an object", remedy)) };
        let Some(unknown) = given.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(Self { place, given });
        };
        let cause = format!("has a field {}, which is not known here", shown(unknown));
        let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = nearest(unknown, known).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        Err(place.error(cause, format!("{meant}known are {list}")))
    }

    fn at(&self, name: &str) -> Place<'a> {
        self.place.field(name)
    }

    /// A field; one that is null is not there.
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn needed(&self, name: &str, what: &str) -> Result<&'a Value, RuleError> {
        self.value(name).ok_or_else(|| self.at(name).error("is missing", format!("give {what}")))
    }

    fn text(&self, name: &str, most: usize) -> Result<Option<&'a str>, RuleError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => self.at(name).checked(text, most).map(Some),
            Some(other) => Err(self.at(name).wrong(other, "a text", "give a text")),
        }
    }

    fn needed_text(&self, name: &str, most: usize, what: &str) -> Result<&'a str, RuleError> {
        self.needed(name, what)?;
        self.text(name, most)?.ok_or_else(|| self.at(name).error("is missing", format!("give {what}")))
    }

    fn truth(&self, name: &str) -> Result<Option<bool>, RuleError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(other) => Err(self.at(name).wrong(other, "true or false", "give `true` or `false`, without quotes")),
        }
    }

    /// One of a few words.
    fn named<T: DeserializeOwned>(&self, name: &str, known: &[&str]) -> Result<T, RuleError> {
        let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let value = self.needed(name, &format!("one of {list}"))?;
        let word = value.as_str().unwrap_or_default();
        let meant = nearest(word, known).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        let unknown = || self.at(name).wrong(value, "a word that is known", &format!("{meant}it is one of {list}"));
        let known = known.contains(&word).then(|| serde_json::from_value(value.clone()).ok()).flatten();
        known.ok_or_else(unknown)
    }

    fn list(&self, name: &str, most: usize, remedy: &str) -> Result<Vec<(Place<'a>, &'a Value)>, RuleError> {
        let place = self.at(name);
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) if items.len() > most => {
                Err(place.error(format!("has {} items; at most {most} are taken", items.len()), remedy))
            }
            Some(Value::Array(items)) => {
                Ok(items.iter().enumerate().map(|(at, item)| (place.item(at), item)).collect())
            }
            Some(other) => Err(place.wrong(other, "a list", remedy)),
        }
    }
}

impl Place<'_> {
    /// Text that is not blank, not too long, and can be handed to a program.
    fn checked<'t>(&self, text: &'t str, most: usize) -> Result<&'t str, RuleError> {
        if text.trim().is_empty() {
            return Err(self.error("is empty", "give a text that is not blank, or leave the rule out"));
        }
        if text.len() > most {
            return Err(self.error(format!("has {} bytes; at most {most} are taken", text.len()), "write it shorter"));
        }
        match text.contains('\0') {
            true => Err(self.error("has a NUL byte in it", "write it without")),
            false => Ok(text),
        }
    }
}

/// A number without a fraction, however it is written.
fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and within bounds")]
    let rounded = |number: f64| (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(rounded))
}

/// What was given instead, short enough for a message.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the text {}", shown(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.len() > MOST {
        true => format!("{:?}…", &text[..text.floor_char_boundary(MOST)]),
        false => format!("{text:?}"),
    }
}
