//! Rules of the repository that the compiler does not check.
#![expect(clippy::disallowed_methods, reason = "the repository itself is read")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of ours that each crate may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("expr", &[]),
    ("engine", &["expr"]),
    ("process", &[]),
    ("store", &["engine"]),
    ("testkit", &["engine"]),
    ("fleet", &["engine", "process", "store"]),
    ("hooks", &["engine", "expr", "process"]),
    ("agents", &["engine", "process"]),
    ("bridge", &["engine"]),
    ("vcs", &["engine", "process"]),
    ("tools", &["engine", "expr", "hooks", "process", "store"]),
    ("runner", &["agents", "bridge", "engine", "expr", "hooks", "process", "store", "tools", "vcs"]),
    ("mcp", &["tools"]),
    ("text", &[]),
    ("sandbox", &["process"]),
    ("config", &["agents", "bridge", "engine", "expr", "hooks", "process", "sandbox", "text", "vcs"]),
    (
        "app",
        &[
            "agents", "bridge", "config", "engine", "expr", "fleet", "hooks", "process", "runner", "sandbox", "store",
            "text", "tools", "vcs",
        ],
    ),
    (
        "cli",
        &[
            "agents", "app", "bridge", "config", "engine", "expr", "hooks", "mcp", "process", "runner", "sandbox",
            "store", "text", "tools", "top", "vcs", "web",
        ],
    ),
    ("top", &["app", "config", "engine", "hooks", "process", "runner", "store", "text"]),
    ("web", &["app", "config", "engine", "hooks", "mcp", "process", "runner", "store", "text", "tools"]),
];

/// The crates of ours that each example may use.
const EXAMPLES: &[(&str, &[&str])] =
    &[("closures", &["engine", "store", "tools"]), ("configured-hooks", &["app", "engine", "store"])];

/// Files above the length limit. The list only shrinks.
const LONG: &[&str] = &[];
const LINES: usize = 600;

/// Crates that do no I/O, read no clock and draw no random number.
const PURE: &[&str] = &["engine", "expr"];

/// Text that must not occur in the code of a pure crate.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "std::time::",
    "SystemTime",
    "Instant::",
    "tokio",
    "async ",
    ".await",
    "rusqlite",
    "rand::",
    "println!",
];

/// Code that prints. The application layer and the configuration return values instead.
const PRINTING: &[&str] =
    &["print!", "println!", "eprint!", "eprintln!", "dbg!", "stdout()", "stderr()", "is_terminal"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects every file with this extension below a directory.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the repository") {
        let path = entry.expect("an entry of the repository").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, extension, found);
        } else if path.extension().unwrap_or_default() == extension {
            found.push(path);
        }
    }
}

fn sources(below: &str) -> Vec<(String, String)> {
    let (root, mut found) = (root(), Vec::new());
    files(&root.join(below), "rs", &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source file is text");
            (path.strip_prefix(&root).expect("below the root").display().to_string(), text)
        })
        .collect()
}

/// Returns the crates of ours that a section of a manifest names.
fn uses(manifest: &str, section: &str) -> BTreeSet<String> {
    manifest
        .lines()
        .skip_while(|line| *line != section)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("windlass-")?.split(['.', ' ', '=']).next())
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn check_arrows(directory: &str, arrows: &[(&str, &[&str])]) {
    let mut crates: Vec<_> = fs::read_dir(root().join(directory))
        .expect("the crates")
        .map(|entry| entry.expect("a crate").file_name().into_string().expect("a plain name"))
        .collect();
    crates.sort();
    let mut known: Vec<_> = arrows.iter().map(|(name, _)| (*name).to_owned()).collect();
    known.sort();
    assert_eq!(crates, known, "every crate has its arrows");
    for (name, allowed) in arrows {
        let manifest = fs::read_to_string(root().join(directory).join(name).join("Cargo.toml")).expect("a manifest");
        for used in uses(&manifest, "[dependencies]") {
            assert!(allowed.contains(&used.as_str()), "{name} may not use {used}");
        }
    }
}

#[test]
fn crates_use_only_what_is_below_them() {
    check_arrows("crates", ARROWS);
    check_arrows("examples", EXAMPLES);
}

#[test]
fn engine_and_expressions_are_pure() {
    for (path, text) in PURE.iter().flat_map(|name| sources(&format!("crates/{name}/src"))) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for word in IMPURE {
                assert!(!line.contains(word), "{path}: line {}: `{word}` in a pure crate", number + 1);
            }
        }
    }
}

#[test]
fn application_layer_prints_nothing() {
    for (path, text) in sources("crates/app/src").into_iter().chain(sources("crates/config/src")) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for word in PRINTING {
                assert!(!line.contains(word), "{path}: line {}: `{word}`", number + 1);
            }
        }
    }
}

#[test]
fn production_files_are_not_named_as_tests() {
    for (path, text) in sources("crates").into_iter().filter(|(path, _)| path.contains("/src/")) {
        let is_named = path.ends_with("/test.rs") || path.ends_with("_test.rs") || path.ends_with("_tests.rs");
        // The step `run_tests` of a gate.
        let is_step = path.ends_with("/pipeline/run_tests.rs");
        assert!(!is_named || is_step || text.contains("#[test]"), "{path}");
    }
}

/// Only `store_records` opens stores, because it checks the origin of a store before a write.
#[test]
fn stores_are_opened_in_one_place() {
    let functions = ["open(", "open_if_known(", "create(", "create_with_record("];
    let opens_store = |(path, text): &(String, String)| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_called = |function| code.contains(&format!("SqliteStore::{function}"));
        !is_test_file(path) && functions.iter().any(is_called)
    };
    let files = sources("crates/app/src").into_iter().chain(sources("crates/cli/src")).filter(opens_store);
    let files: Vec<String> = files.map(|(path, _)| path).collect();
    assert_eq!(files, ["crates/app/src/store_records.rs"], "files that open stores");
}

#[test]
fn files_stay_short() {
    let mut long = Vec::new();
    for (path, text) in sources("crates").into_iter().chain(sources("examples")) {
        if text.lines().count() > LINES && path.contains("/src/") {
            long.push(path);
        }
    }
    assert_eq!(long, LONG, "files of more than {LINES} lines");
}

/// Words without a subject that a reader could look for. Plain English names who acts.
const BANNED_WORDS: &[&str] = &[
    concat!("who", "ever"),
    concat!("whom", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
];

/// Types that several files define, and how many do: the two platforms of `process`. The list only shrinks.
const REPEATED_TYPES: &[(&str, usize)] = &[
    ("DescendantTree", 2),
    ("LeaderProcess", 2),
    ("LeaderWatch", 2),
    ("LoopWaker", 2),
    ("StoppedProcesses", 2),
    ("SupervisorProcess", 2),
];

/// Types that end in a participle. The list only shrinks.
const PARTICIPLE_TYPES: &[&str] = &[];

/// Modules that end in -ing and are nouns.
const NOUNS_IN_ING: &[&str] = &["duration_setting", "encoding", "ending", "listing", "metering", "spelling", "wording"];

/// Returns the names that follow one of these keywords, outside of comments, in the production sources of the crates, the
/// benches and the fuzz targets.
fn defined_names(keywords: &[&str]) -> Vec<(String, String)> {
    let is_source = |file: &str| file.contains("/src/") || file.starts_with("fuzz/targets/");
    let is_production = |file: &str| is_source(file) && !file.contains("testkit") && !is_test_file(file);
    let mut names = Vec::new();
    let files = ["benches", "crates", "fuzz"].into_iter().flat_map(sources);
    for (file, text) in files.filter(|(file, _)| is_production(file)) {
        for line in text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines() {
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
            if words.next().is_some_and(|word| keywords.contains(&word))
                && let Some(name) = words.next()
            {
                let end = name.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(name.len());
                names.push((name[..end].to_owned(), file.clone()));
            }
        }
    }
    names
}

fn is_test_file(file: &str) -> bool {
    file.split('/').any(|part| ["tests", "tests.rs", "laws", "laws.rs"].contains(&part))
}

#[test]
fn type_names_are_unique() {
    let mut count = BTreeMap::new();
    for (name, _) in defined_names(&["struct", "enum", "trait", "union"]) {
        *count.entry(name).or_insert(0) += 1;
    }
    // A clap structure is called after its module; a macro names its types itself.
    ["Args", "Command", ""].iter().for_each(|name| _ = count.remove(*name));
    let repeated: Vec<_> =
        count.iter().filter(|(_, count)| **count > 1).map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(repeated, REPEATED_TYPES, "types that several files define");
}

#[test]
fn type_names_are_noun_phrases() {
    let is_participle = |name: &str| name.ends_with("ed") && !name.ends_with("Speed");
    let events = "crates/engine/src/log/event/";
    let names = defined_names(&["struct", "enum", "trait", "union"]).into_iter();
    let participles: Vec<_> = names.filter(|(name, file)| is_participle(name) && !file.starts_with(events)).collect();
    let participles: Vec<&str> = participles.iter().map(|(name, _)| &**name).collect();
    assert_eq!(participles, PARTICIPLE_TYPES, "types that are called after an action");
}

/// Words that no test name begins with: a name begins with its subject.
const NO_SUBJECTS: &[&str] = &[
    "a", "after", "an", "and", "before", "if", "in", "it", "its", "no", "none", "nothing", "of", "on", "that", "the",
    "there", "they", "this", "to", "what", "when", "where", "who", "without",
];

#[test]
fn test_names_have_subject_condition_and_expectation() {
    let mut unclear = Vec::new();
    for (file, text) in ["crates", "examples", "tests"].into_iter().flat_map(sources) {
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            if let Some(name) = name.filter(|_| is_test) {
                let mut words = name.split('_');
                if words.next().is_some_and(|first| NO_SUBJECTS.contains(&first)) || words.count() < 2 {
                    unclear.push(format!("{file}: {name}"));
                }
            }
            is_test = line.starts_with("#[test]") || is_test && (line.starts_with("#[") || line.starts_with("//"));
        }
    }
    assert!(unclear.is_empty(), "tests whose names do not say what fails:\n{}", unclear.join("\n"));
}

#[test]
fn module_names_are_nouns() {
    let modules = defined_names(&["mod"]).into_iter().filter(|(name, _)| name.ends_with("ing"));
    let activities: Vec<_> = modules.filter(|(name, _)| !NOUNS_IN_ING.contains(&&**name)).collect();
    assert!(activities.is_empty(), "modules that are called after an activity: {activities:?}");
}

#[test]
fn sentences_name_their_subject() {
    let mut found = Vec::new();
    for directory in ["benches", "crates", "docs", "examples", "tests"] {
        ["rs", "md", "yaml"].iter().for_each(|extension| files(&root().join(directory), extension, &mut found));
    }
    ["", "list"].iter().for_each(|extension| files(&root().join("scripts"), extension, &mut found));
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"] {
        found.push(root().join(page));
    }
    let mut lines = Vec::new();
    for path in found {
        let text = fs::read_to_string(&path).expect("a text of the repository").to_lowercase();
        let is_banned =
            |line: &str| line.split(|sign: char| !sign.is_alphabetic()).any(|word| BANNED_WORDS.contains(&word));
        if !BANNED_WORDS.iter().any(|word| text.contains(word)) {
            continue;
        }
        let banned = text.lines().enumerate().filter(|(_, line)| is_banned(line));
        lines.extend(banned.map(|(number, line)| format!("{}:{}: {}", path.display(), number + 1, line.trim())));
    }
    assert!(lines.is_empty(), "lines that do not say who acts:\n{}", lines.join("\n"));
}

/// The maximum length of a page of the documentation that is written by hand, in bytes.
const MAX_PAGE_BYTES: usize = 12 * 1024;

/// Directories of pages that programs write.
const GENERATED_PAGES: &[&str] = &["docs/reference/commands", "docs/internals/figures"];

#[test]
fn documentation_pages_stay_short() {
    let (root, mut pages) = (root(), Vec::new());
    files(&root.join("docs"), "md", &mut pages);
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    pages.retain(|page| !GENERATED_PAGES.iter().any(|directory| page.starts_with(root.join(directory))));
    let length = |page: &Path| fs::read(page).expect("a page of the documentation").len();
    let long: Vec<_> = pages.iter().filter(|page| length(page) >= MAX_PAGE_BYTES).collect();
    assert!(long.is_empty(), "pages of {MAX_PAGE_BYTES} bytes or more: {long:?}");
}

#[test]
fn every_source_file_says_what_it_is() {
    let sources = sources("crates").into_iter().chain(sources("examples"));
    for (path, text) in sources.filter(|(path, _)| path.contains("/src/")) {
        assert!(text.starts_with("//!"), "{path} has no header");
    }
}

#[test]
fn sources_contain_no_deferred_work_or_ignored_tests() {
    // The words are split so that this file does not match.
    let words = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["#[ign", "ore"].concat()];
    for (path, text) in ["crates", "examples", "tests"].into_iter().flat_map(sources) {
        for word in &words {
            assert!(!text.contains(word), "{path} has a {word}");
        }
    }
}
