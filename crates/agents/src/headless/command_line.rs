//! The command line of a known agent.

use crate::AgentSetup;

/// The longest conversation name that is accepted from an agent.
const MAX_CONVERSATION_NAME_LENGTH: usize = 200;

/// The conversation that a prompt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptTarget<'a> {
    /// A new conversation, with the name that Windlass chooses if the agent accepts one.
    NewConversation(Option<&'a str>),
    /// An existing conversation.
    Existing(&'a str),
}

/// The parts of a command line. The user's arguments stand between them.
pub(super) struct CommandLine {
    pub first: Vec<String>,
    pub last: Vec<String>,
}

impl CommandLine {
    pub fn new(first: &[&str], last: &[&str]) -> Self {
        let mut words = Self { first: Vec::new(), last: last.iter().map(|word| (*word).to_owned()).collect() };
        words.add_arguments(first);
        words
    }

    /// Adds arguments before those of the user.
    pub fn add_arguments(&mut self, more: &[&str]) {
        self.first.extend(more.iter().map(|word| (*word).to_owned()));
    }

    /// Adds the options that begin or resume a conversation by its name.
    pub fn add_conversation(&mut self, place: PromptTarget<'_>, begin: &str, resume: &[&str]) {
        match place {
            PromptTarget::NewConversation(Some(name)) => self.add_arguments(&[begin, name]),
            PromptTarget::NewConversation(None) => {}
            PromptTarget::Existing(name) => self.add_arguments(&[resume, &[name]].concat()),
        }
    }

    pub fn add_model(&mut self, option: &str, setup: &AgentSetup) {
        if let Some(model) = &setup.model {
            self.add_arguments(&[option, model]);
        }
    }
}

/// Returns whether a conversation name is safe on a command line. Agents may report any text as a name.
pub(crate) fn is_conversation_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    !name.is_empty() && name.len() <= MAX_CONVERSATION_NAME_LENGTH && !name.starts_with('-') && name.chars().all(fits)
}

/// Returns whether the user has given one of these options, alone or with a value: after `=`, or right after a single letter.
pub(super) fn has_option(setup: &AgentSetup, options: &[&str]) -> bool {
    let given = |word: &str, option: &str| match option.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(option),
        None => word.starts_with(option),
    };
    setup.args.iter().any(|word| options.iter().any(|option| given(word, option)))
}
