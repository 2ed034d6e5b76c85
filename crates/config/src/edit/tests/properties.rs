//! Property tests: in every layout, an edit makes exactly the intended change.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value as Json, json};

use crate::edit::{HookField, append_fragment, set_hook_field};
use crate::{Config, ConfigNode, NodeValue};

/// A field of a hook: its name, its value in block style, and its value in flow style.
type Field = (&'static str, &'static str, &'static str);

const COMMANDS: &[Field] = &[
    ("command", "make test", "make test"),
    ("command", "'it''s # no comment'  # but this is", "'it''s # no comment'"),
    ("command", "\"a \\\" }\"", "\"a \\\" }\""),
    ("command", "|\n  a\n  # b\n\n  c", "\"a\\n# b\""),
    ("command", "|+\n  a\n\n", "'a: [b, {c'"),
    ("command", ">-   # folded\n  a\n    b\n  #c", "\"é 😀\""),
    ("command", "a\n  b\n  c", "a\n        b"),
    ("\"command\"", "'a\n\n  # b'", "'a,\n        # b'"),
];

const OTHERS: &[Field] = &[
    ("timeout", "3s # short", "3"),
    ("description", "enabled", "'enabled: true'"),
    ("'pipe_output'", "true", "true"),
    ("metadata", "\n  enabled: true\n  list:\n  - a\n  -   b: {c: d}", "{enabled: true, list: [a, {b: [c, ]}]}"),
    ("retry", "{max: 2, backoff: 1s}", "{max: 2, backoff: 1s}"),
    ("events", "\n- task_completed\n- task_created", "[task_completed, task_created]"),
];

const FLAGS: &[Field] = &[
    ("enabled", "true", "true"),
    ("enabled", "false   # for now", "false"),
    ("\"enabled\"", "~", "~"),
    ("enabled", "null # nothing", "null"),
];

const NOISE: &[&str] = &["", "# a comment", "#\tenabled: true", "        # far away", "   "];

#[derive(Debug, Clone)]
struct Hook {
    /// Whether the hook is only the name of a built-in.
    is_word: bool,
    in_braces: bool,
    fields: Vec<Field>,
    /// Lines between the fields.
    noise: Vec<&'static str>,
}

#[derive(Debug, Clone)]
struct Layout {
    points: Vec<(&'static str, bool, Vec<Hook>)>,
    /// The indentation of lists, and the blanks after their dashes.
    indent: usize,
    gap: usize,
    newline: &'static str,
    ends: bool,
}

fn random_hook() -> impl Strategy<Value = Hook> {
    let others = OTHERS.to_vec();
    let fields = (select(COMMANDS), subsequence(others.clone(), 0..=others.len()), prop::option::of(select(FLAGS)));
    let fields = fields.prop_flat_map(|(command, others, flag)| {
        let mut fields = vec![command];
        fields.extend(others);
        fields.extend(flag);
        Just(fields).prop_shuffle()
    });
    let noise = prop::collection::vec(select(NOISE), 0..4);
    (prop::bool::weighted(0.2), any::<bool>(), fields, noise).prop_map(|(is_word, in_braces, fields, noise)| Hook {
        is_word,
        in_braces,
        fields,
        noise,
    })
}

fn random_layout() -> impl Strategy<Value = Layout> {
    let hooks = || prop::collection::vec(random_hook(), 1..4);
    let point = |name: &'static str| (Just(name), prop::bool::weighted(0.2), hooks());
    let points = (point("stop"), point("BeforeSubmit"), point("on_error")).prop_map(|(a, b, c)| vec![a, b, c]);
    (points, 0..3usize, 1..4usize, select(&["\n", "\r\n"][..]), any::<bool>())
        .prop_map(|(points, indent, gap, newline, ends)| Layout { points, indent, gap, newline, ends })
}

impl Hook {
    fn flow_text(&self) -> String {
        if self.is_word {
            return "run_tests".to_owned();
        }
        let fields: Vec<String> = self.fields.iter().map(|(name, _, value)| format!("{name}: {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    }

    /// Returns the lines of an entry after its dash.
    fn block_lines(&self) -> Vec<String> {
        if self.is_word || self.in_braces {
            return vec![self.flow_text()];
        }
        let mut noise = self.noise.iter().cycle();
        let mut lines = Vec::new();
        for (index, (name, value, _)) in self.fields.iter().enumerate() {
            // Inside a block scalar, a comment would be text.
            if index > 0 && !self.noise.is_empty() {
                lines.extend(noise.next().map(|line| (*line).to_owned()));
            }
            lines.extend(format!("{name}: {value}").split('\n').map(str::to_owned));
        }
        lines
    }
}

impl Layout {
    fn render_config(&self) -> String {
        let mut text = String::from("# ours\nhooks:\n");
        for (name, in_braces, hooks) in &self.points {
            if *in_braces {
                let hooks: Vec<String> = hooks.iter().map(Hook::flow_text).collect();
                text.push_str(&format!("  {name}: [{}] # all\n", hooks.join(",  ")));
                continue;
            }
            text.push_str(&format!("  {name}:\n"));
            for hook in hooks {
                let inside = 2 + self.indent + 1 + self.gap;
                for (index, line) in hook.block_lines().iter().enumerate() {
                    match index {
                        0 => text.push_str(&format!(
                            "{:indent$}-{:gap$}{line}\n",
                            "",
                            "",
                            indent = 2 + self.indent,
                            gap = self.gap
                        )),
                        _ if line.trim().is_empty() => text.push_str(&format!("{line}\n")),
                        _ => text.push_str(&format!("{:inside$}{line}\n", "")),
                    }
                }
            }
        }
        if !self.ends {
            text.pop();
        }
        text.replace('\n', self.newline)
    }
}

fn node_to_json(node: &ConfigNode) -> Json {
    match &node.value {
        NodeValue::Null => Json::Null,
        NodeValue::Bool(value) => json!(value),
        NodeValue::Integer(value) => json!(value),
        NodeValue::Unsigned(value) => json!(value),
        NodeValue::Float(value) => json!(value),
        NodeValue::Text(value) => json!(value),
        NodeValue::List(nodes) => nodes.iter().map(node_to_json).collect(),
        NodeValue::Map(entries) => {
            let pair = |(name, value): &(ConfigNode, ConfigNode)| {
                (node_to_json(name).as_str().unwrap_or_default().to_owned(), node_to_json(value))
            };
            Json::Object(entries.iter().map(pair).collect())
        }
    }
}

fn parse_as_json(text: &str) -> Json {
    node_to_json(&crate::tree(text).unwrap_or_else(|problem| panic!("{problem}\n{text}")))
}

fn parse_config(text: &str) -> Config {
    Config::from_text(Path::new("config.yaml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn set_field_changes_nothing_else(layout in random_layout()) {
        let text = layout.render_config();
        let before = parse_config(&text);
        let places = layout.points.iter().flat_map(|(point, _, hooks)| (0..hooks.len()).map(move |index| (point, index)));
        for (number, (point, index)) in places.enumerate() {
            let on = !before.hooks[number].is_enabled();
            let edited = set_hook_field(&before, number, HookField::Enabled(on));
            let edited = edited.unwrap_or_else(|obstacle| panic!("{number}: {obstacle:?}\n{text}"));
            let edited: &str = edited.text();

            let mut expected = parse_as_json(&text);
            let entry = &mut expected["hooks"][point][index];
            if entry.is_string() {
                *entry = json!({"use": entry});
            }
            entry["enabled"] = json!(on);
            let mut found = parse_as_json(edited);
            let flag = &mut found["hooks"][point][index]["enabled"];
            // A hook without the field is enabled.
            if on && flag.is_null() {
                *flag = json!(true);
            }
            prop_assert_eq!(found, expected, "{}\n{}", text, edited);

            // Every line is unchanged except that of the hook.
            let gone = text.lines().filter(|line| !edited.lines().any(|other| other == *line)).count();
            prop_assert!(gone <= 1, "{}\n{}", text, edited);
            let old = text.matches('#').count();
            prop_assert_eq!(edited.matches('#').count(), old);
            let plain = |text: &str| text.replace("\r\n", "").contains('\n');
            prop_assert_eq!(plain(edited), plain(&text));
            prop_assert_eq!(edited.ends_with('\n'), text.ends_with('\n'));
        }
    }

    #[test]
    fn appended_fragment_changes_nothing_else(layout in random_layout()) {
        let text = layout.render_config();
        let fragment = "hooks:\n  session_end:\n    - command: |\n        a\n\n          b\n  stop:\n    - name: new\n      command: x\nstrict: false\n";
        let edited = append_fragment(&parse_config(&text), fragment);
        let (_, is_flow_list, _) = layout.points[0];
        // The edit may fail for a list on one line, and for blank lines at the end of an entry that belong to its text.
        prop_assert!(edited.is_ok() || is_flow_list || text.contains("|+"), "{}", text);
        let Ok(edited) = edited else { return Ok(()) };
        let edited: &str = edited.text();
        let mut expected = parse_as_json(&text);
        expected["strict"] = json!(false);
        expected["hooks"]["session_end"] = json!([{"command": "a\n\n  b\n"}]);
        let stop = expected["hooks"]["stop"].as_array_mut().expect("a list");
        stop.push(json!({"name": "new", "command": "x"}));
        prop_assert_eq!(parse_as_json(edited), expected, "{}\n{}", text, edited);
        let mut rest = edited.lines();
        prop_assert!(text.lines().all(|line| rest.any(|other| other == line)), "{}\n{}", text, edited);
    }
}
