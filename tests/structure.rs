//! The structure of the crates: circles of imports, and the page that draws it.
#![expect(clippy::disallowed_methods, reason = "the repository itself is read")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The limit of files that import each other in a circle.
const MAX_CIRCLE: usize = 3;
/// The limits of `ARCHITECTURE.md`: its size in bytes, and the types of ours that a journey names.
const MAX_PAGE: usize = 12 * 1024;
const MAX_NAMED_TYPES: usize = 6;

/// A module, as its path below the crate's root.
type Module = Vec<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads the modules of a crate without tests.
fn read_modules(source: &Path) -> BTreeMap<Module, String> {
    let (mut modules, mut directories) = (BTreeMap::new(), vec![(source.to_owned(), Module::new())]);
    while let Some((directory, module)) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of sources") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_owned();
            let inner: Module = match name.as_str() {
                "lib" | "main" | "mod" => module.clone(),
                _ => module.iter().cloned().chain([name.clone()]).collect(),
            };
            if path.is_dir() {
                directories.push((path, inner));
            } else if !name.contains("tests") && !inner.iter().any(|part| part.contains("tests") || part == "laws") {
                let text = read(&path);
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let is_comment = |line: &&str| line.trim_start().starts_with("//");
                let code = code.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n");
                modules.insert(inner, code);
            }
        }
    }
    modules
}

/// Expands `a::{b, c::{d, e}}` into its paths.
fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let full = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    full.flat_map(|part| expand(&format!("{}{part}", before.trim()))).collect()
}

/// Returns the paths that a module uses: those of its `use` items, and those that it writes out.
fn used_paths(code: &str) -> Vec<(bool, String)> {
    let mut paths = Vec::new();
    for item in code.split(';') {
        let Some(at) = item.find("use ") else { continue };
        let before = item[..at].rsplit(['\n', '}']).next().unwrap_or_default().trim().to_owned();
        if before.is_empty() || before.starts_with("pub") {
            let path = item[at + 4..].split_whitespace().collect::<Vec<_>>().join(" ");
            paths.extend(expand(&path).into_iter().map(|path| (before.starts_with("pub"), path)));
        }
    }
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    for word in code.split(|letter| !is_path(letter)) {
        let is_whole = !word.ends_with("::");
        if is_whole && (word.starts_with("crate::") || word.starts_with("super::")) {
            paths.push((false, word.to_owned()));
        }
    }
    paths
}

/// Finds the item that a path of a module names: the module that has it, and its name there.
fn resolve(path: &str, from: &Module, modules: &BTreeMap<Module, String>) -> Option<(Module, String)> {
    let mut parts: Vec<&str> = path.split("::").map(|part| part.split(' ').next().unwrap_or_default()).collect();
    let mut module = match *parts.first()? {
        "crate" => Module::new(),
        "self" | "super" => from.clone(),
        first if modules.contains_key(&[from.clone(), vec![first.to_owned()]].concat()) => {
            parts.insert(0, "self");
            from.clone()
        }
        _ => return None,
    };
    for (place, part) in parts.iter().enumerate() {
        match *part {
            "crate" | "self" if place == 0 => {}
            "super" => drop(module.pop()),
            part => module.push(part.to_owned()),
        }
    }
    let name = module.last().cloned().unwrap_or_default();
    while !modules.contains_key(&module) {
        module.pop()?;
    }
    Some((module, name))
}

/// Returns which module uses which, apart from its own children. Re-exports are followed to the module that defines the item.
fn read_edges(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let used: BTreeMap<&Module, Vec<(bool, String)>> =
        modules.iter().map(|(module, code)| (module, used_paths(code))).collect();
    let mut exports: BTreeMap<(Module, String), Module> = BTreeMap::new();
    for (module, paths) in &used {
        for (_, path) in paths.iter().filter(|(public, _)| *public) {
            if let Some((target, name)) = resolve(path, module, modules).filter(|(target, _)| target != *module) {
                exports.insert(((*module).clone(), name), target);
            }
        }
    }
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, paths) in &used {
        for (_, path) in paths {
            let Some((mut target, name)) = resolve(path, module, modules) else { continue };
            for _ in 0..5 {
                match exports.get(&(target.clone(), name.clone())) {
                    Some(next) => target.clone_from(next),
                    None => break,
                }
            }
            // A module is made of its children.
            if !target.starts_with(module) {
                edges.entry((*module).clone()).or_default().insert(target);
            }
        }
    }
    edges
}

/// Returns what can be reached from a module.
fn reach(from: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = next.pop() {
        for target in edges.get(&module).into_iter().flatten() {
            if reached.insert(target.clone()) {
                next.push(target.clone());
            }
        }
    }
    reached
}

/// Returns the largest set of modules of a crate each of which uses all others, directly or not.
fn find_largest_circle(source: &Path) -> BTreeSet<Module> {
    let modules = read_modules(source);
    let edges = read_edges(&modules);
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reach(module, &edges))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let back = |other: &Module| reached.get(other).is_some_and(|reached| reached.contains(module));
        reached[module].iter().filter(|other| back(other)).cloned().collect()
    };
    modules.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn import_circles_have_three_files_at_most() {
    let mut crates: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).expect("crates").map(|entry| entry.expect("a crate").path()).collect();
    crates.sort();
    for directory in crates {
        let circle = find_largest_circle(&directory.join("src"));
        let files: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        assert!(files.len() <= MAX_CIRCLE, "{}: a circle of {}", directory.display(), files.join(", "));
    }
}

#[test]
fn circle_of_two_files_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("lib.rs"), "mod a;\nmod b;\npub use a::{One, Other};\n").expect("a file");
    fs::write(directory.path().join("a.rs"), "use crate::b::Two;\npub struct One(Two);\n").expect("a file");
    fs::write(directory.path().join("b.rs"), "use crate::One;\npub struct Two(Box<One>);\n").expect("a file");
    let circle = find_largest_circle(directory.path());
    assert_eq!(circle, BTreeSet::from([vec!["a".to_owned()], vec!["b".to_owned()]]));
}

/// Returns whether a type of this name is defined in a crate.
fn is_defined(name: &str, sources: &[String]) -> bool {
    ["struct", "enum", "trait"].iter().any(|kind| {
        sources.iter().any(|source| {
            source
                .match_indices(&format!("{kind} {name}"))
                .any(|(at, found)| source[at + found.len()..].starts_with([' ', '<', '(', ';', ':', '{']))
        })
    })
}

#[test]
fn architecture_page_is_short_and_names_types_that_exist() {
    let page = read(&root().join("ARCHITECTURE.md"));
    assert!(page.len() <= MAX_PAGE, "{} bytes", page.len());
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let sources: Vec<String> =
        crates.flat_map(|entry| read_modules(&entry.expect("a crate").path().join("src")).into_values()).collect();
    let journeys = page.split("## Journeys").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("journeys");
    let drawings: Vec<&str> = journeys.split("```text").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(drawings.len(), 4);
    for drawing in drawings {
        let words = drawing.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_type = |word: &&str| word.starts_with(|first: char| first.is_ascii_uppercase());
        let types: BTreeSet<&str> = words.filter(is_type).collect();
        for name in &types {
            assert!(is_defined(name, &sources), "`{name}` is no type");
        }
        assert!(types.len() <= MAX_NAMED_TYPES, "{types:?}");
    }
}
