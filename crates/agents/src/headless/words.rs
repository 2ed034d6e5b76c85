//! The words of a command line for a known agent.

use crate::Setup;

/// The longest name of a conversation that is taken from an agent.
const NAME: usize = 200;

/// Where a prompt is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// In a new conversation, by the name that we give it where the agent lets us.
    New(Option<&'a str>),
    /// In the one before.
    Before(&'a str),
}

/// A command line in parts: what a person adds stands between them.
pub(super) struct Words {
    pub first: Vec<String>,
    pub last: Vec<String>,
}

impl Words {
    pub fn new(first: &[&str], last: &[&str]) -> Self {
        let mut words = Self { first: Vec::new(), last: last.iter().map(|word| (*word).to_owned()).collect() };
        words.add(first);
        words
    }

    /// Adds words before those of the person.
    pub fn add(&mut self, more: &[&str]) {
        self.first.extend(more.iter().map(|word| (*word).to_owned()));
    }

    /// Adds an option of a conversation's name, by which it is begun or taken up.
    pub fn add_conversation(&mut self, place: Place<'_>, begin: &str, resume: &[&str]) {
        match place {
            Place::New(Some(name)) => self.add(&[begin, name]),
            Place::New(None) => {}
            Place::Before(name) => self.add(&[resume, &[name]].concat()),
        }
    }

    pub fn add_model(&mut self, option: &str, setup: &Setup) {
        if let Some(model) = &setup.model {
            self.add(&[option, model]);
        }
    }
}

/// Whether a conversation can be named so on a command line: an agent says what it likes.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    !name.is_empty() && name.len() <= NAME && !name.starts_with('-') && name.chars().all(fits)
}

/// Whether a person has given one of these options, alone or with a value: after `=`, or behind a single letter.
pub(super) fn has_option(setup: &Setup, options: &[&str]) -> bool {
    let given = |word: &str, option: &str| match option.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(option),
        None => word.starts_with(option),
    };
    setup.args.iter().any(|word| options.iter().any(|option| given(word, option)))
}
