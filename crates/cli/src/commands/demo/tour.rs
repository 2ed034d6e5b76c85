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
        "You define \"done\": here the tests have to pass. Another hook tells the agent what it changed. \
         A script plays the agent, and speaks the same protocol as real agents.",
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
        "Now the agent works on the ready task. It claims twice to be done before it is, and the tests send it back \
         with their output. Then the second task is ready. During that task, Windlass is killed with -9.",
        &[TourStep::KilledShell("windlass run")],
    ),
    (
        "The agent has died too. Nothing else is lost: each step is in the log before it begins. The same command \
         resumes the work, in the same conversation.",
        &[TourStep::Shell("windlass run")],
    ),
    (
        "The tests confirm that the work is done.",
        &[TourStep::Shell("sh test.sh"), TourStep::Shell("windlass task list --all")],
    ),
    (
        "The log shows what happened, and Windlass can verify all of it.",
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
