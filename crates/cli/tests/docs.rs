//! Every `console` example in the documents prints what it shows.
//!
//! Each document gets an empty directory, and so does each recipe of the gallery; its examples run in it one after the other. A
//! shell runs a line that begins with `$ `, `> ` continues it, and the lines below are its output, on either stream. A line `...`
//! stands for any lines, and at the end of a line for its rest. Times and durations may be any, and the directory is called
//! `/home/ann/shop`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::server::Server;
use crate::support::{WINDLASS, World, filter, timeless};

const DIRECTORY: &str = "/home/ann/shop";

/// A command and its output.
struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut within = false;
    for (number, line) in (1..).zip(text.lines()) {
        match line {
            "```console" => within = true,
            "```" => within = false,
            _ if !within => {}
            line if line.starts_with("$ ") => {
                examples.push(Example { line: number, command: line[2..].to_owned(), output: Vec::new() });
            }
            line if line.starts_with("> ") => {
                let last = examples.last_mut().expect("a continuation has a beginning");
                last.command = format!("{}\n{}", last.command, &line[2..]);
            }
            line => {
                let last = examples.last_mut().expect("output comes from a command");
                last.output.push(timeless(&filter(line, Path::new("\0"))));
            }
        }
    }
    for example in &mut examples {
        while example.output.last().is_some_and(|line| line.is_empty()) {
            example.output.pop();
        }
    }
    examples
}

/// Returns whether the lines match, where `...` stands for any number of them.
fn matches(written: &[String], printed: &[&str]) -> bool {
    match written.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "..." => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(line, below)| {
            let same = match first.strip_suffix("...") {
                Some(beginning) => line.starts_with(beginning),
                None => line == first,
            };
            same && matches(rest, below)
        }),
    }
}

/// Documents in which each second-level heading begins a recipe.
const GALLERY: &str = "gallery.md";

/// Runs the examples of one document, and returns the first mismatch.
fn check(document: &Path) -> Vec<String> {
    run(document, &fs::read_to_string(document).unwrap())
}

/// Runs the examples of a part of a document. `$CHAT` is a server that appends the messages it gets to `chat.jsonl`.
fn run(document: &Path, text: &str) -> Vec<String> {
    let world = World::empty();
    let chat = Server::keeping(world.path("chat.jsonl"));
    std::os::unix::fs::symlink(WINDLASS, world.programs().join("windlass")).unwrap();
    let mut wrong = Vec::new();
    for example in examples(text) {
        let mut shell = world.program("sh");
        shell.args(["-c", &format!("exec 2>&1\n{}", example.command)]).env("CHAT", chat.host());
        let ran = world.finish(&mut shell);
        let printed = timeless(&filter(&ran.stdout, &world.directory)).replace("$WORK", DIRECTORY);
        let printed: Vec<_> = printed.trim_end().lines().map(str::trim_end).collect();
        if !matches(&example.output, &printed) {
            let Example { line, command, .. } = example;
            let file = document.file_name().unwrap().to_string_lossy();
            let printed = printed.join("\n");
            wrong.push(format!("{file}, line {line}: `{command}` prints\n{printed}\n"));
        }
    }
    wrong
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guides = ["docs", "docs/agents"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let guides = guides.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> = guides.filter(|path| path.extension().is_some_and(|found| found == "md")).collect();
    documents.extend(Some(root.join("README.md")).filter(|readme| readme.exists()));
    documents.sort();
    documents
}

#[test]
fn examples_do_what_they_show() {
    let documents = documents().into_iter().filter(|document| !document.ends_with(GALLERY));
    let wrong: Vec<_> = documents.flat_map(|document| check(&document)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the recipes of the gallery, each with as many empty lines before it as there are lines before it in the file.
fn recipes(text: &str) -> Vec<String> {
    let mut recipes: Vec<String> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            recipes.push("\n".repeat(number));
        }
        if let Some(recipe) = recipes.last_mut() {
            recipe.push_str(line);
            recipe.push('\n');
        }
    }
    recipes
}

#[test]
fn every_recipe_does_what_it_shows() {
    let gallery = documents().into_iter().find(|document| document.ends_with(GALLERY)).expect("there is a gallery");
    let recipes = recipes(&fs::read_to_string(&gallery).unwrap());
    assert_eq!(recipes.len(), 10);
    for recipe in &recipes {
        let heading = recipe.trim_start().lines().next().unwrap_or_default();
        let shows = |example: &Example| example.command.contains("windlass ") && !example.output.is_empty();
        assert!(examples(recipe).iter().any(shows), "`{heading}` shows nothing that can be looked at");
    }
    let wrong: Vec<_> = recipes.iter().flat_map(|recipe| run(&gallery, recipe)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Links between the documents lead somewhere.
#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let outside = file.contains("://") || file.is_empty();
            let there = document.parent().unwrap().join(file).exists();
            assert!(outside || there, "{}: {target} leads nowhere", document.display());
        }
    }
}
