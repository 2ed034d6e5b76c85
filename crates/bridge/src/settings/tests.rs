//! What is written is taken away again, whatever the file looked like.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Agent, Moment};

fn program(path: &str) -> Program {
    Program { path: path.to_owned(), word: path.to_owned() }
}

fn every_file() -> Vec<File> {
    let scopes = [Scope::Project, Scope::User];
    Agent::ALL.iter().flat_map(|agent| scopes.into_iter().flat_map(|scope| files(*agent, scope))).collect()
}

/// JSON with comments, as other programs read it.
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

#[test]
fn a_new_file_has_every_moment_that_the_agent_has() {
    for file in every_file().into_iter().filter(|file| file.has_hooks() && !file.is_toml()) {
        let text = file.with(None, &program("windlass"), false).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let events = value["hooks"].as_object().unwrap();
        let expected: Vec<_> = Moment::ALL.iter().filter_map(|moment| event(file.agent, *moment)).collect();
        assert!(expected.len() >= 6 && events.len() == expected.len(), "{text}");
        assert!(expected.iter().all(|event| events[*event].as_array().unwrap().len() == 1), "{text}");
        assert!(!text.contains("matcher"));
    }
}

#[test]
fn a_new_file_for_claude() {
    let file = files(Agent::Claude, Scope::Project)[0];
    let text = file.with(None, &program("windlass"), false).unwrap();
    let expected = r#"{
  "hooks": {
    "SessionStart": [
      {"hooks": [{"type": "command", "command": "windlass hook session_start --as claude --within 590s", "timeout": 600}]}
    ],
"#;
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with("    ]\n  }\n}\n"), "{text}");
}

/// Adds to a text and takes away again; says what it looked like in between.
#[track_caller]
fn check(file: File, before: Option<&str>) -> String {
    let with = file.with(before, &program("windlass"), true).unwrap_or_else(|error| panic!("{error}: {before:?}"));
    assert!(file.has_ours(&with), "{with}");
    assert_eq!(file.with(Some(&with), &program("windlass"), true).unwrap(), with, "twice is not once");
    let known = Before::Known(before);
    assert_eq!(file.without(&with, known, true).unwrap().as_deref(), before, "{}\n{with}", file.name);
    let unknown = file.without(&with, Before::Unknown, true).unwrap();
    assert!(!unknown.as_deref().is_some_and(|text| file.has_ours(text)), "{unknown:?}");
    // Another program, in place.
    let other = file.with(Some(&with), &program("/opt/windlass"), true).unwrap();
    assert_eq!(other.lines().count(), with.lines().count());
    assert_eq!(file.with(Some(&other), &program("windlass"), true).unwrap(), with);
    with
}

#[test]
fn ordinary_files_come_back() {
    for file in every_file() {
        check(file, None);
        check(file, Some(""));
        check(file, Some("\n\n"));
        if file.is_toml() {
            continue;
        }
        for text in [
            "{}",
            "{ }\n",
            "{\n}\n",
            "{\n  // nothing yet\n}\n",
            "{ /* nothing */ }",
            "// only this\n",
            "{\"hooks\":{}}",
            "{\"model\": \"x\"}",
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
            let with = check(file, Some(text));
            read(&with);
        }
    }
}

/// Some editors put one in front of what they write.
#[test]
fn a_byte_order_mark_stays() {
    for file in every_file() {
        let inside = if file.is_toml() { "a = 1\n" } else { "{\"a\": 1}\n" };
        for text in ["", "\n", inside] {
            let with = check(file, Some(&format!("\u{feff}{text}")));
            assert!(with.starts_with('\u{feff}') && with.matches('\u{feff}').count() == 1, "{with}");
        }
    }
}

/// What people have written themselves takes the form that is written here; two of them would call twice.
#[test]
fn what_was_written_by_hand_is_not_doubled() {
    let file = files(Agent::Claude, Scope::Project)[0];
    let by_hand =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/windlass hook Stop --project /x"}]}]}}"#;
    let with = file.with(Some(by_hand), &program("windlass"), false).unwrap();
    assert_eq!(read(&with)["hooks"]["Stop"].as_array().unwrap().len(), 1, "{with}");
    assert!(with.contains("windlass hook stop --as claude --within 3590s") && !with.contains("/opt"), "{with}");
    let kimi = files(Agent::Kimi, Scope::User)[0];
    let by_hand = "[[hooks]]\nevent = \"Stop\"\ncommand = \"windlass hook stop --project /x --as kimi\"\n";
    let with = kimi.with(Some(by_hand), &program("windlass"), false).unwrap();
    assert_eq!(with.matches("event = \"Stop\"").count(), 1, "{with}");
}

#[test]
fn comments_stay_where_they_were() {
    let file = files(Agent::Gemini, Scope::Project)[0];
    let with = check(file, Some("{\n  \"model\": \"x\" // the small one\n  // the end\n}\n"));
    assert!(with.starts_with("{\n  \"model\": \"x\", // the small one\n  \"hooks\": {\n"), "{with}");
    assert!(with.ends_with("\n  }\n  // the end\n}\n"), "{with}");
}

#[test]
fn what_somebody_adds_later_stays() {
    let file = files(Agent::Claude, Scope::Project)[0];
    let with = file.with(None, &program("windlass"), false).unwrap();
    let edited = with.replacen("{\n", "{\n  \"model\": \"x\",\n", 1);
    let kept = file.without(&edited, Before::Known(None), false).unwrap();
    assert_eq!(kept.as_deref(), Some("{\n  \"model\": \"x\"\n}\n"));

    let mine = r#"{"type": "command", "command": "make"}"#;
    let edited = with.replacen("\"timeout\": 3600}", &format!("\"timeout\": 3600}}, {mine}"), 1);
    let kept = file.without(&edited, Before::Known(None), false).unwrap().unwrap();
    assert_eq!(read(&kept), read(&format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{mine}]}}]}}}}")), "{kept}");
}

/// Agents write their settings anew when they keep something there themselves.
#[test]
fn file_that_an_agent_wrote_anew_keeps_its_form() {
    let file = files(Agent::Claude, Scope::Project)[0];
    let pretty = |text: &str| serde_json::to_string_pretty(&read(text)).unwrap();
    for before in [
        r#"{"auth": {"name": "x"}}"#,
        r#"{"auth":{"name":"x"},"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"make"}]}]}}"#,
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"make"}]}]}}"#,
    ] {
        let rewritten = pretty(&file.with(Some(before), &program("windlass"), false).unwrap());
        let kept = file.without(&rewritten, Before::Known(Some(before)), false).unwrap().unwrap();
        assert_eq!(kept, pretty(before));
    }
}

#[test]
fn what_cannot_be_understood_is_refused() {
    let file = files(Agent::Gemini, Scope::Project)[0];
    for (text, expected) in [
        ("{", "line 1, column 1: unterminated object"),
        ("{\n  \"a\": 1,,\n}", "line 2, column 10: unexpected token in object"),
        ("[]", "`the file` is a list, not an object"),
        ("{\"hooks\": []}", "`hooks` is a list, not an object"),
        ("{\"hooks\": {\"SessionStart\": {}}}", "`hooks.SessionStart` is an object, not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", "`hooks` is there twice"),
        ("{\"mcpServers\": null}", "`mcpServers` is null, not an object"),
        (
            "{\"mcpServers\": {\"windlass\": {\"url\": \"x\"}}}",
            "`mcpServers.windlass` is there already, and runs something else",
        ),
    ] {
        let error = file.with(Some(text), &program("windlass"), true).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let kimi = files(Agent::Kimi, Scope::User)[0];
    let codex = files(Agent::Codex, Scope::User)[1];
    for (file, text, expected) in [
        (kimi, "a = [\n", "line 1, column 6: unclosed array, expected `]`"),
        (kimi, "hooks = 1\n", "`hooks` is a value, not a list of tables"),
        (kimi, "[hooks]\n", "`hooks` is a table, not a list of tables"),
        (codex, "mcp_servers = {}\n", "nothing can be added to `mcp_servers.windlass` in the way it is written"),
        (codex, "mcp_servers = 1\n", "`mcp_servers` is a value, not a table"),
    ] {
        let error = file.with(Some(text), &program("windlass"), true).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

/// A server of that name which somebody set up by hand is not ours to take away.
#[test]
fn what_was_there_before_stays() {
    let file = files(Agent::Gemini, Scope::Project)[0];
    let before = "{\"mcpServers\": {\"windlass\": {\"command\": \"windlass\", \"args\": [\"mcp\"]}}}\n";
    let with = file.with(Some(before), &program("windlass"), true).unwrap();
    assert_eq!(file.without(&with, Before::Known(Some(before)), true).unwrap().as_deref(), Some(before));
}

#[test]
fn toml_comes_back() {
    let kimi = files(Agent::Kimi, Scope::User)[0];
    let codex = files(Agent::Codex, Scope::User)[1];
    let hook = "[[hooks]]\nevent = \"Stop\"\ncommand = 'make' # mine\n";
    for text in [
        "model = 'x'\n",
        "model = 'x'",
        "model = 'x' # so",
        "\n# so\n\n\n",
        "model = 'x'\r\n\r\n[a]\r\nb = 1\r\n",
        "hooks = []\n",
        "hooks = [ { event = \"Stop\", command = \"make\" }, ]\n[a]\n",
        "hooks = [\n  # mine\n  { event = \"Stop\", command = \"make\" } # so\n]\n",
        hook,
        &format!("{hook}\n[mcp_servers.other]\ncommand = 'x'\n[mcp_servers.other.env]\nA = '''\n[[hooks]]\n'''"),
    ] {
        check(kimi, Some(text));
        check(codex, Some(text));
    }
    let with = check(kimi, Some(hook));
    assert!(with.starts_with(&format!("{hook}\n[[hooks]]\nevent = \"SessionStart\"\n")), "{with}");
    let edited = format!("{with}\n# later\n[other]\na = 1\n");
    let kept = kimi.without(&edited, Before::Known(Some(hook)), true).unwrap();
    assert_eq!(kept, Some(format!("{hook}\n# later\n[other]\na = 1\n")));
}

/// Blanks and comments of every kind.
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

/// Items between brackets, with or without a comma behind the last one.
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

/// Settings as people and programs leave them.
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

fn json_file() -> impl Strategy<Value = File> {
    prop::sample::select(every_file().into_iter().filter(|file| !file.is_toml()).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn adding_and_taking_away_changes_nothing(file in json_file(), text in settings()) {
        let with = check(file, Some(&text));
        let (mut before, mut after) = (read(&text), read(&with));
        // Everything that was there is there.
        for value in [&mut before, &mut after] {
            let object = value.as_object_mut().unwrap();
            for name in ["hooks", "mcpServers", "version"] {
                object.remove(name);
            }
        }
        prop_assert_eq!(before, after);
    }

    /// Somebody writes into the file between the two: that stays, and nothing of ours does.
    #[test]
    fn what_is_written_in_between_stays(file in json_file(), text in settings(), at_end in any::<bool>()) {
        let edit = |text: &str| {
            let root = json::container(text, &[]).unwrap();
            if at_end {
                return root.append(text, "\"foreign\": {\"a\": [1]}");
            }
            let open = text.len() - text[text.find('{').unwrap()..].len() + 1;
            let comma = if read(text).as_object().unwrap().is_empty() { "" } else { "," };
            format!("{}\n  \"foreign\": 1{comma}{}", &text[..open], &text[open..])
        };
        prop_assume!(!text[..text.find('{').unwrap()].contains("//"));
        prop_assume!(!text.starts_with(" // it's"));
        let with = file.with(Some(&text), &program("windlass"), true).unwrap();
        let kept = file.without(&edit(&with), Before::Known(Some(&text)), true).unwrap().unwrap();
        prop_assert!(!file.has_ours(&kept) && !kept.contains("--as"), "{}", kept);
        prop_assert_eq!(read(&kept), read(&edit(&text)));
        if !at_end && !read(&text).as_object().unwrap().is_empty() {
            prop_assert_eq!(kept, edit(&text));
        }
    }
}
