//! The content of the tour: sentences, and the commands that prove them.

/// A sentence, and the steps that follow it.
pub type TourStop = (&'static str, &'static [TourStep]);

pub enum TourStep {
    /// A shell command, run as it is shown.
    Shell(&'static str),
    /// A shell command that something it starts kills midway. It is run with `exec`, so that its own process id is
    /// in `.windlass/demo.pid`.
    KilledShell(&'static str),
    /// A file whose content is shown.
    Show(&'static str),
}

/// The files of the demo project.
pub const PROJECT_FILES: &[(&str, &str)] = &[
    ("slug.sh", include_str!("files/slug.sh")),
    ("test.sh", include_str!("files/test.sh")),
    ("play.yaml", include_str!("files/play.yaml")),
    (".windlass/config.yaml", include_str!("files/config.yaml")),
];

/// The commands that make a project, and a repository if git is there.
pub const INIT_COMMAND: &str = "windlass init";
pub const GIT_SETUP_COMMAND: &str = "git init -q . && git add slug.sh test.sh .windlass && git commit -q -m 'A start'";

pub const TOUR_STOPS: &[TourStop] = &[
    ("A small repository with a script, and with tests that fail.", &[TourStep::Shell("sh test.sh")]),
    (
        "What \"done\" means is yours to say: here the tests have to pass. Another hook tells the agent what it changed. \
         The agent itself is played by a script, and speaks the same protocol as real ones.",
        &[TourStep::Show(".windlass/config.yaml")],
    ),
    (
        "A configuration can run programs, so a person has to trust it first.",
        &[TourStep::Shell("windlass trust --yes")],
    ),
    (
        "Work can be planned: the second task waits for the first.",
        &[
            TourStep::Shell("windlass task add 'Make the tests pass'"),
            TourStep::Shell("windlass task add 'Write the guide' --depends T1"),
        ],
    ),
    (
        "Now the agent works on what is ready. It says that it is done twice before it is, and the tests send it back \
         with what they found. Then the second task is ready, too. In the middle of that one the worst happens: \
         Windlass is killed with -9.",
        &[TourStep::KilledShell("windlass run")],
    ),
    (
        "The agent has died with it. Nothing else was lost: every step was in the log before it was taken. The same \
         command goes on, in the same conversation.",
        &[TourStep::Shell("windlass run")],
    ),
    (
        "The tests agree, whatever the agent says.",
        &[TourStep::Shell("sh test.sh"), TourStep::Shell("windlass task list --all")],
    ),
    (
        "The log tells what happened, and all of it can be verified.",
        &[
            TourStep::Shell("windlass events --type conversation_opened --type session_ended"),
            TourStep::Shell("windlass doctor"),
        ],
    ),
];

/// Commands to try after the tour.
pub const NEXT_COMMANDS: &[&str] = &[
    "windlass run \"what you want done\" --agent claude",
    "windlass run \"what you want done\" --agent \"acp:goose acp\"",
    "windlass init     hooks, agents and limits in a commented file",
    "windlass --help   everything else",
];
