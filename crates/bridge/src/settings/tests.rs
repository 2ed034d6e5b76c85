//! Adding and removing entries in any file; other values and comments stay.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{AgentHookEvent, BridgeAgent};

fn program(path: &str) -> ProgramPath {
    ProgramPath { path: path.to_owned(), word: path.to_owned() }
}

fn every_file() -> Vec<SettingsFile> {
    let scopes = [SettingsScope::Project, SettingsScope::User];
    BridgeAgent::ALL
        .iter()
        .flat_map(|agent| scopes.into_iter().flat_map(|scope| settings_files(*agent, scope)))
        .collect()
}

/// Reads JSON with comments independently of the edits.
fn read(text: &str) -> Value {
    let mut plain = String::new();
    let (mut at, mut within) = (0, false);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let skipped = match () {
            () if within => 0,
            () if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            () if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            () => 0,
        };
        if skipped > 0 {
            at += skipped;
            continue;
        }
        if within && letter == '\\' {
            plain.push_str(&rest[..2]);
            at += 2;
            continue;
        }
        if letter == '"' {
            within = !within;
        }
        if !within && "}]".contains(letter) && plain.trim_end().ends_with(',') {
            plain.truncate(plain.trim_end().len() - 1);
        }
        plain.push(letter);
        at += letter.len_utf8();
    }
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn is_toml(file: &SettingsFile) -> bool {
    file.name.ends_with(".toml")
}

/// Removes empty lists and objects, and the format's version.
fn prune(value: &mut Value) {
    let is_kept =
        |value: &Value| !matches!(value, Value::Object(map) if map.is_empty()) && *value != Value::Array(vec![]);
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|name, value| is_kept(value) && name != "version");
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        _ => {}
    }
}

fn values(text: &str) -> Value {
    let mut value = if text.contains('{') { read(text) } else { Value::Object(serde_json::Map::new()) };
    prune(&mut value);
    value
}

/// Adds entries to a text and removes them again. Returns the text with the entries.
#[track_caller]
fn check(file: SettingsFile, before: &str) -> String {
    let with = file
        .add_entries(Some(before), &program("windlass"), true)
        .unwrap_or_else(|error| panic!("{error}: {before:?}"));
    assert!(!file.has_hooks() || file.has_our_hooks(&with), "{with}");
    assert!(!file.has_servers() || file.has_our_server(&with), "{with}");
    assert_eq!(file.add_entries(Some(&with), &program("windlass"), true).unwrap(), with, "twice is not once");
    // A call of another program replaces the entries.
    let other = file.add_entries(Some(&with), &program("/opt/windlass"), true).unwrap();
    for installed in [&with, &other] {
        let without = file.remove_entries(installed, true).unwrap();
        assert!(!file.has_our_hooks(&without) && !file.has_our_server(&without), "{without}");
        assert!(!without.contains("windlass hook stop") && !without.contains("[\"mcp\"]"), "{without}");
        if !is_toml(&file) {
            assert_eq!(values(&without), values(before), "{before}\n{installed}\n{without}");
        }
    }
    with
}

#[test]
fn new_file_has_every_event_of_the_agent() {
    for file in every_file().into_iter().filter(|file| file.has_hooks() && !is_toml(file)) {
        let text = file.add_entries(None, &program("windlass"), false).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let events = value["hooks"].as_object().unwrap();
        let expected: Vec<_> =
            AgentHookEvent::ALL.iter().filter_map(|moment| settings_event_name(file.agent, *moment)).collect();
        assert!(expected.len() >= 6 && events.len() == expected.len(), "{text}");
        assert!(expected.iter().all(|event| events[*event].as_array().unwrap().len() == 1), "{text}");
        assert!(!text.contains("matcher"));
    }
}

#[test]
fn new_file_is_empty_again() {
    for file in every_file() {
        let with = check(file, "");
        assert!(!is_empty_settings(&with), "{with}");
        let without = file.remove_entries(&with, true).unwrap();
        assert!(is_empty_settings(&without), "{without}");
    }
}

#[test]
fn ordinary_files_keep_values_and_comments() {
    for file in every_file().into_iter().filter(|file| !is_toml(file)) {
        for text in [
            "\n\n",
            "{}",
            "{\n}\n",
            "{\n  // nothing yet\n}\n",
            "{ /* nothing */ }",
            "// only this\n",
            "{\"model\": \"https://x\" }",
            "{\"model\": \"x\" /* so */ }",
            "{\"model\": \"x\", // so\n}",
            "{\n\t\"model\": \"x\" // so\n}\n",
            "{\n    \"model\": \"x\", // so\n    // \"old\": 1\n}\n",
            "{\r\n  \"model\": \"x\"\r\n}\r\n",
            "{\"version\": 1, \"hooks\": {\"Stop\": [], \"stop\": [ ]}, \"mcpServers\": {}}",
            "{\"hooks\": {\"Stop\": [\n{\"hooks\": [{\"type\": \"command\", \"command\": \"make\"}]}, // mine\n]}}\n",
            "{\"mcpServers\": {\n  \"other\": {\"command\": \"x\"}\n}, \"hooks\": {\n}}",
        ] {
            let with = check(file, text);
            let without = file.remove_entries(&with, true).unwrap();
            for comment in
                ["// so", "// \"old\"", "// mine", "/* so */", "// nothing yet", "/* nothing */", "// only this"]
            {
                assert_eq!(without.contains(comment), text.contains(comment), "{with}\n{without}");
            }
        }
    }
}

/// Some editors put a byte order mark at the start.
#[test]
fn byte_order_mark_stays() {
    for file in every_file() {
        let inside = if is_toml(&file) { "a = 1\n" } else { "{\"a\": 1}\n" };
        for text in ["", "\n", inside] {
            let with = file.add_entries(Some(&format!("\u{feff}{text}")), &program("windlass"), true).unwrap();
            let without = file.remove_entries(&with, true).unwrap();
            for text in [with, without] {
                assert!(text.starts_with('\u{feff}') && text.matches('\u{feff}').count() == 1, "{text}");
            }
        }
    }
}

/// The agent would call twice.
#[test]
fn call_by_hand_is_replaced() {
    let file = settings_files(BridgeAgent::Claude, SettingsScope::Project)[0];
    let by_hand =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/windlass hook Stop --project /x"}]}]}}"#;
    let with = file.add_entries(Some(by_hand), &program("windlass"), false).unwrap();
    assert_eq!(read(&with)["hooks"]["Stop"].as_array().unwrap().len(), 1, "{with}");
    assert!(with.contains("windlass hook stop --as claude --within 3590s") && !with.contains("/opt"), "{with}");
    let kimi = settings_files(BridgeAgent::Kimi, SettingsScope::User)[0];
    let by_hand = "[[hooks]]\nevent = \"Stop\"\ncommand = \"windlass hook stop --project /x --as kimi\"\n";
    let with = kimi.add_entries(Some(by_hand), &program("windlass"), false).unwrap();
    assert_eq!(with.matches("event = \"Stop\"").count(), 1, "{with}");
}

#[test]
fn later_edits_stay() {
    let file = settings_files(BridgeAgent::Claude, SettingsScope::Project)[0];
    let with = file.add_entries(None, &program("windlass"), false).unwrap();
    let edited = with.replacen("{\n", "{\n  \"model\": \"x\", // so\n", 1);
    assert_eq!(file.remove_entries(&edited, false).unwrap(), "{\n  \"model\": \"x\" // so\n}\n");

    let mine = r#"{"type": "command", "command": "make"}"#;
    let place = with.find("\"timeout\": 3600").unwrap();
    let place = place + with[place..].find('}').unwrap() + 1;
    let edited = format!("{}, {mine}{}", &with[..place], &with[place..]);
    let kept = file.remove_entries(&edited, false).unwrap();
    assert_eq!(read(&kept), read(&format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{mine}]}}]}}}}")), "{kept}");
}

/// Agents rewrite their settings when they store something there themselves.
#[test]
fn file_that_an_agent_wrote_anew_keeps_its_form() {
    let file = settings_files(BridgeAgent::Claude, SettingsScope::Project)[0];
    let pretty = |text: &str| serde_json::to_string_pretty(&read(text)).unwrap();
    for before in [
        r#"{"auth": {"name": "x"}}"#,
        r#"{"auth":{"name":"x"},"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"make"}]}]}}"#,
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"make"}]}]}}"#,
    ] {
        let rewritten = pretty(&file.add_entries(Some(before), &program("windlass"), false).unwrap());
        assert_eq!(file.remove_entries(&rewritten, false).unwrap(), pretty(before));
    }
}

#[test]
fn settings_that_cannot_be_edited_are_refused() {
    let gemini = settings_files(BridgeAgent::Gemini, SettingsScope::Project)[0];
    let kimi = settings_files(BridgeAgent::Kimi, SettingsScope::User)[0];
    let codex = settings_files(BridgeAgent::Codex, SettingsScope::User)[1];
    for (file, text, expected) in [
        (gemini, "{", "line 1, column 1: Unterminated object"),
        (gemini, "{\n  \"a\": 1,,\n}", "line 2, column 10: Unexpected token in object"),
        (gemini, "[]", "`the file` is not an object"),
        (gemini, "{\"hooks\": []}", "`hooks` is not an object"),
        (gemini, "{\"hooks\": {\"SessionStart\": {}}}", "`hooks.SessionStart` is not a list"),
        (gemini, "{\"hooks\": {}, \"hooks\": {}}", "`hooks` is there twice"),
        (gemini, "{\"mcpServers\": null}", "`mcpServers` is not an object"),
        (
            gemini,
            "{\"mcpServers\": {\"windlass\": {\"url\": \"x\"}}}",
            "the MCP server `windlass` exists already, and runs another command",
        ),
        (kimi, "a = [\n", "TOML parse error at line 1, column 6: unclosed array, expected `]`"),
        (kimi, "hooks = 1\n", "`hooks` is not a list of tables"),
        (kimi, "[hooks]\n", "`hooks` is not a list of tables"),
        (codex, "mcp_servers = 1\n", "`mcp_servers` is not a table"),
    ] {
        let error = file.add_entries(Some(text), &program("windlass"), true).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

/// Additions of a user or an agent to the server's entry survive another installation.
#[test]
fn server_keeps_what_was_added_to_it() {
    let gemini = settings_files(BridgeAgent::Gemini, SettingsScope::Project)[0];
    let codex = settings_files(BridgeAgent::Codex, SettingsScope::User)[1];
    for (file, text) in [
        (gemini, "{\"mcpServers\": {\"windlass\": {\"command\": \"old\", \"args\": [\"mcp\"], \"trust\": true}}}\n"),
        (
            codex,
            "[mcp_servers.windlass]\ncommand = \"old\"\nargs = [\"mcp\"]\n[mcp_servers.windlass.env]\nA = \"trust\"\n",
        ),
    ] {
        let with = file.add_entries(Some(text), &program("/new"), true).unwrap();
        assert!(with.contains("\"/new\"") && with.contains("trust") && !with.contains("old"), "{with}");
    }
}

#[test]
fn toml_keeps_values_and_comments() {
    let kimi = settings_files(BridgeAgent::Kimi, SettingsScope::User)[0];
    let codex = settings_files(BridgeAgent::Codex, SettingsScope::User)[1];
    let hook = "[[hooks]]\nevent = \"Stop\"\ncommand = 'make' # mine\n";
    for text in [
        "model = 'x'\n",
        "model = 'x' # so\n",
        "\n# so\n\n\n",
        "model = 'x'\n\n[a]\nb = 1\n",
        "hooks = [ { event = \"Stop\", command = \"make\" } ]\n[a]\n",
        "hooks = [\n  # mine\n  { event = \"Stop\", command = \"make\" }, # so\n]\n",
        "[mcp_servers]\nother = { command = 'x' }\n",
        "mcp_servers = { other = { command = 'x' } }\n",
        hook,
        &format!("{hook}\n[mcp_servers.other]\ncommand = 'x'\n[mcp_servers.other.env]\nA = '''\n[[hooks]]\n'''\n"),
    ] {
        for file in [kimi, codex] {
            let with = check(file, text);
            assert_eq!(file.remove_entries(&with, true).unwrap(), text, "{with}");
        }
    }
    let empty = "# none yet\nhooks = []\n[a]\nb = 1\n";
    let with = check(kimi, empty);
    assert!(with.contains("[[hooks]]\nevent = \"SessionStart\"\n"), "{with}");
    assert_eq!(kimi.remove_entries(&with, true).unwrap().trim_start(), "[a]\nb = 1\n");
    let with = check(kimi, hook);
    assert!(with.starts_with(&format!("{hook}\n[[hooks]]\nevent = \"SessionStart\"\n")), "{with}");
    let edited = format!("{with}\n# later\n[other]\na = 1\n");
    assert_eq!(kimi.remove_entries(&edited, true).unwrap(), format!("{hook}\n# later\n[other]\na = 1\n"));
}

/// Generates blanks and all kinds of comments.
fn blank() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\n\t\n".to_owned()),
        1 => Just(" // it's \"so\" [1, {\n".to_owned()),
        1 => Just("/* a, b */".to_owned()),
        1 => Just(" /* two\n lines */ ".to_owned()),
    ]
}

/// Joins items between brackets, with or without a trailing comma.
fn bracketed(open: char, close: char, items: Vec<(String, String, String)>, inner: String, comma: bool) -> String {
    let last = items.len();
    let mut text = format!("{open}");
    for (index, (before, item, after)) in items.into_iter().enumerate() {
        let comma = if index + 1 < last || comma { "," } else { "" };
        text.push_str(&format!("{before}{item}{after}{comma}"));
    }
    text + &inner + &close.to_string()
}

fn array(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::vec((blank(), item, blank()), 0..3), blank(), any::<bool>())
        .prop_map(|(items, inner, comma)| bracketed('[', ']', items, inner, comma))
}

fn object(names: &'static [&'static str], value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let members = (blank(), blank(), blank(), value, blank());
    let picked = prop::sample::subsequence(names, 0..=names.len().min(3));
    (picked, prop::collection::vec(members, 3), blank(), any::<bool>()).prop_map(|(names, members, inner, comma)| {
        let member = |(name, (a, b, c, value, d)): (&str, (String, String, String, String, String))| {
            (a, format!("\"{name}\"{b}:{c}{value}"), d)
        };
        bracketed('{', '}', names.into_iter().zip(members).map(member).collect(), inner, comma)
    })
}

fn scalar() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["1", "null", "true", "\"a // b\"", "\"\\\"}\"", "\"ü漢\"", "\"windlass hook\""])
        .prop_map(str::to_owned)
}

/// Generates settings as users and programs leave them.
fn settings() -> impl Strategy<Value = String> {
    let hook = r#"{"type": "command", "command": "make", "bash": "make"}"#;
    let rule = prop_oneof![Just(hook.to_owned()), Just(format!("{{\"matcher\": \"Bash\", \"hooks\": [{hook}]}}"))];
    let hooks = object(&["Stop", "stop", "PreToolUse", "AfterAgent", "Other"], array(rule));
    let servers = object(&["other", "third"], Just("{\"command\": \"x\"}".to_owned()));
    let anything = prop_oneof![scalar(), array(scalar()), object(&["a", "b"], scalar())];
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        (blank(), blank(), blank(), value, blank())
            .prop_map(move |(a, b, c, value, d)| (a, format!("\"{name}\"{b}:{c}{value}"), d))
            .boxed()
    };
    let members = vec![
        member("model", anything.boxed()),
        member("hooks", hooks.boxed()),
        member("version", Just("1".to_owned()).boxed()),
        member("mcpServers", servers.boxed()),
        member("last", scalar().boxed()),
    ];
    let picked = prop::sample::subsequence(members, 0..=5).prop_flat_map(|picked| picked);
    (blank(), picked.prop_shuffle(), blank(), any::<bool>(), blank())
        .prop_map(|(before, items, inner, comma, after)| before + &bracketed('{', '}', items, inner, comma) + &after)
}

fn json_file() -> impl Strategy<Value = SettingsFile> {
    prop::sample::select(every_file().into_iter().filter(|file| !is_toml(file)).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn adding_and_removing_keeps_values(file in json_file(), text in settings()) {
        let with = check(file, &text);
        let (mut before, mut after) = (read(&text), read(&with));
        for value in [&mut before, &mut after] {
            let object = value.as_object_mut().unwrap();
            for name in ["hooks", "mcpServers", "version"] {
                object.remove(name);
            }
        }
        prop_assert_eq!(before, after);
    }
}
