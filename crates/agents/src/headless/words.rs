//! The command line of a known agent.

use crate::Setup;

/// The longest conversation name that is accepted from an agent.
const NAME: usize = 200;

/// The conversation that a prompt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// A new conversation, with the name that Windlass chooses if the agent accepts one.
    New(Option<&'a str>),
    /// An existing conversation.
    Before(&'a str),
}

/// The parts of a command line. The user's arguments stand between them.
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

    /// Adds arguments before those of the user.
    pub fn add(&mut self, more: &[&str]) {
        self.first.extend(more.iter().map(|word| (*word).to_owned()));
    }

    /// Adds the options that begin or resume a conversation by its name.
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

/// Returns whether a conversation name is safe on a command line. Agents may report any text as a name.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    !name.is_empty() && name.len() <= NAME && !name.starts_with('-') && name.chars().all(fits)
}

/// Returns whether the user has given one of these options, alone or with a value: after `=`, or right after a single letter.
pub(super) fn has_option(setup: &Setup, options: &[&str]) -> bool {
    let given = |word: &str, option: &str| match option.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(option),
        None => word.starts_with(option),
    };
    setup.args.iter().any(|word| options.iter().any(|option| given(word, option)))
}
