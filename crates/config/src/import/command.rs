//! Imported commands, quoted so that Windlass fills in no fields.

use windlass_hooks::{HookScript, InputChannel, ScriptValues};

/// Prefixes of the variables that agents set for their hooks.
const AGENT_VARIABLES: [&str; 5] = ["CLAUDE_", "CODEMIE_", "CODEX_", "GEMINI_", "QWEN_"];
/// The variable of these that Windlass sets, too.
const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// Returns the command unchanged, or wraps it in `sh -c` if it contains text that Windlass would fill in.
pub fn protect_command(command: &str) -> String {
    if !has_template_fields(command) {
        return command.to_owned();
    }
    format!("exec sh -c {}", quoted(command))
}

/// Quotes text as one shell word without two adjacent opening braces.
fn quote_for_shell(text: &str) -> String {
    let mut quoted = String::from("'");
    let mut last = ' ';
    for letter in text.chars() {
        match letter {
            '\'' => quoted.push_str(r"'\''"),
            '{' if last == '{' => quoted.push_str("''{"),
            letter => quoted.push(letter),
        }
        last = letter;
    }
    quoted.push('\'');
    quoted
}

/// Returns whether Windlass would fill in values.
fn has_template_fields(command: &str) -> bool {
    let marks = ScriptValues {
        session: "\u{1}",
        iteration: "\u{1}",
        task_id: "\u{1}",
        task_content: InputChannel::Variable,
        error: InputChannel::Variable,
    };
    HookScript::parse(command).map_or(true, |script| script.fill_values(&marks) != command)
}

/// Returns a variable of the command that only another agent sets.
pub fn find_foreign_variable(command: &str) -> Option<&str> {
    let mut names = command.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next().unwrap_or_default()
    });
    names.find(|name| *name != PROJECT_VARIABLE && AGENT_VARIABLES.iter().any(|prefix| name.starts_with(prefix)))
}

/// Returns whether the command calls `windlass hook`.
pub fn calls_windlass_hook(command: &str) -> bool {
    let name = |word: &str| word.trim_matches(['"', '\'']).rsplit('/').next().unwrap_or_default().to_owned();
    command.split(['\n', ';', '&', '|', '(', ')']).any(|command| {
        let words: Vec<String> = command.split_whitespace().map(name).collect();
        words.windows(2).any(|pair| pair[0] == "windlass" && pair[1] == "hook")
    })
}

/// Derives a name from the script or program that the command runs.
pub fn derive_hook_name(command: &str) -> Option<String> {
    let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';', '(', ')', '&', '|']));
    let words: Vec<&str> =
        words.filter(|word| !word.is_empty() && !word.contains('=') && !word.starts_with('-')).collect();
    let is_script = |word: &&&str| word.contains('/') && word.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let word = words.iter().find(is_script).or(words.first())?;
    let file = word.rsplit('/').next().unwrap_or(word);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| if stem.is_empty() { file } else { stem });
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name: String = stem.chars().filter(|letter| plain(*letter)).take(40).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ours_are_left_alone() {
        let check = |command: &str, expected: &str| {
            assert_eq!(untouched(command), expected, "{command}");
            assert!(!has_template_fields(&protect_command(command)), "{command}");
        };
        check("./check.sh --all", "./check.sh --all");
        check("gh pr list --template '{{.title}}'", "gh pr list --template '{{.title}}'");
        check("echo {{session}}", "exec sh -c 'echo {''{session}}'");
        check("echo '{{ task_id }}' {{{error}}", r"exec sh -c 'echo '\''{''{ task_id }}'\'' {''{''{error}}'");
        check("eval {{task_content}}", "exec sh -c 'eval {''{task_content}}'");
    }

    #[test]
    fn variable_of_another_agent_is_found_but_not_the_shared_one() {
        assert_eq!(foreign_variable("\"$CLAUDE_PROJECT_DIR\"/x.sh"), None);
        assert_eq!(foreign_variable("${CLAUDE_PLUGIN_ROOT}/x.sh"), Some("CLAUDE_PLUGIN_ROOT"));
        assert_eq!(foreign_variable("$HOME/x $GEMINI_PROJECT_DIR"), Some("GEMINI_PROJECT_DIR"));
    }

    #[test]
    fn our_own_bridge_is_known() {
        for ours in [
            "windlass hook stop --as claude",
            "/usr/bin/windlass hook stop",
            "x; '/a b/windlass' hook stop",
            "\"/x/windlass\" hook stop",
        ] {
            assert!(calls_windlass_hook(ours), "{ours}");
        }
        for other in ["windlass task list", "windlasses hook", "echo windlass; hook"] {
            assert!(!calls_windlass_hook(other), "{other}");
        }
    }

    #[test]
    fn hook_is_called_after_its_script_or_program() {
        let check = |command: &str, name: Option<&str>| assert_eq!(nickname(command).as_deref(), name, "{command}");
        check("./.codemie/run-tests.sh", Some("run-tests"));
        check("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.py --x", Some("check"));
        check("npm test", Some("npm"));
        check("A=1 python3 ./hooks/a.py", Some("a"));
        check("---", None);
    }
}
