//! Names of programs, built-in commands and variables that take text for more than text.
//!
//! The lists cannot be complete: any program may run its input. They hold the common programs, and every way in which a
//! shell itself evaluates an argument. Options follow a rule: a program runs the value of an option whose name ends with a
//! word for a command (`--upload-pack`, `--to-command`, `--extcmd`).

/// Programs that run text as commands, at any place in a command: `docker exec box sh -c …`.
const EVALUATORS: &str = "
    eval sh bash dash ash zsh ksh mksh pdksh oksh yash posh rbash fish csh tcsh pwsh powershell busybox toybox ssh su
";

/// Shells that assign the words behind the script of `-c` to "$0", "$1", ….
const SHELLS: &str = "sh bash dash ash zsh ksh mksh yash";

/// Programs that run text as commands, or have subcommands that do, in the place of the command: as arguments these names
/// are common.
const EVALUATING_TOOLS: &str = "
    at batch crontab tmux screen script expect tclsh wish parallel xargs watch entr make rc es elvish nu xonsh
    rsh mosh runuser newgrp sg tar rsync npx pnpx bunx npm pnpm yarn uv uvx hyperfine sqlite3 psql mysql mariadb vim vi nvim ex ed emacs gdb lldb m4 bc dc
    socat capsh docker podman nerdctl kubectl lxc machinectl systemd-run bwrap firejail nsenter scp sftp nix nix-shell
    poetry pipenv bundle rake just ansible watchexec nodemon
";

/// Built-in commands of shells that evaluate an argument, change the shell with it, or take it for a variable or a number.
const EVALUATING_BUILT_INS: &str = "
    . source trap alias unalias let declare typeset local export readonly unset read mapfile readarray getopts set
    shopt enable bind complete compgen compopt shift exit return break continue wait ulimit umask fc history hash type
    integer nameref print logout
";

/// Commands that change how the shell reads later ones.
const LANGUAGE_CHANGES: &str = "alias unalias declare typeset local integer nameref shopt enable";

/// Programs whose arguments are programs.
const PROGRAMS: &str = "awk mawk nawk sed jq yq gojq";

/// Tests of `find` that take any text.
const FIND_TESTS: &str = "
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -newer -samefile -user -group
";

/// Programs that run a file of code, or code from their arguments.
const INTERPRETERS: &str = "
    python pypy ipython perl raku ruby jruby node nodejs deno bun tsx ts-node php lua luajit Rscript guile racket julia
    elixir groovy osascript
";

/// Arguments that begin code, or name something to run instead of the input.
const CODE_ARGUMENTS: &str = "-c -e -E -m -r -p -n -ne -pe -ane -lne -lane -nle --eval --print";

/// Programs that start the command in their arguments, with the number of words before it.
const WRAPPERS: &[(&str, usize)] = &[
    ("sudo", 0),
    ("doas", 0),
    ("env", 0),
    ("nohup", 0),
    ("setsid", 0),
    ("nice", 0),
    ("ionice", 0),
    ("command", 0),
    ("builtin", 0),
    ("exec", 0),
    ("time", 0),
    ("stdbuf", 0),
    ("unbuffer", 0),
    ("pkexec", 0),
    ("ssh-agent", 0),
    ("timeout", 1),
    ("chroot", 1),
    ("gosu", 1),
    ("flock", 1),
    ("taskset", 1),
    ("strace", 0),
    ("ltrace", 0),
    ("unshare", 0),
    ("setpriv", 0),
    ("prlimit", 0),
    ("chrt", 1),
    ("setarch", 1),
    ("fakeroot", 0),
    ("xvfb-run", 0),
    ("valgrind", 0),
];

/// Options that make a program start a shell.
const SHELL_OPTIONS: &str = "-s -i --shell --login";

/// Last words of options whose value a program runs: `--to-command`, `--upload-pack`, `--extcmd`.
const COMMAND_WORDS: &str =
    "eval evaluate execute command commands cmd program tool pager editor shell wrapper hook pack
    renderer askpass";

/// Last words of options behind which a program runs all other words: `-exec`, `-toolexec`.
const EXEC_WORDS: &str = "exec execdir";

/// Words that mean the same as `--exec` by themselves: `oc exec POD …`, `hatch run …`.
const SUBCOMMANDS: &str = "exec run shell";

/// Options that begin code or a command in most programs.
const CODE_OPTIONS: &str = "-c -e -x";

/// Programs in which these options and words have other meanings.
const PLAIN_PROGRAMS: &str = "
    echo printf cat ls wc head tail cut sort uniq diff cmp touch tee grep egrep fgrep zgrep rg ag curl logger mail mailx
    notify-send git gh glab cargo go windlass
";

/// Options that act like those with a command word, though their names do not show it.
const VALUE_OPTIONS: &[(&str, &str)] = &[
    ("cargo", "--config"),
    ("git", "-c --config --config-env -x -u -O"),
    ("hg", "--config"),
    ("man", "-P -H"),
    ("pandoc", "--filter -F --lua-filter"),
    ("rg", "--pre"),
    ("split", "--filter"),
    ("tcpdump", "-z"),
    ("windlass", "--agent"),
];

/// Words that mean the same as `--exec`.
const REST_OPTIONS: &[(&str, &str)] = &[
    ("find", "-ok -okdir"),
    ("fd", "-x -X --exec-batch"),
    ("go", "run"),
    ("git", "config foreach filter-branch bisect"),
    ("ip", "exec"),
];

/// Variables that shells and programs obey. A shell evaluates some of its own when they are assigned.
const SPECIAL_VARIABLES: &str = "
    PATH IFS ENV PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND RANDOM SRANDOM SECONDS LINENO OPTIND OPTARG OPTERR HISTCMD HISTSIZE
    HISTFILE HISTFILESIZE EPOCHSECONDS EPOCHREALTIME UID EUID PPID GROUPS FUNCNAME DIRSTACK FUNCNEST TMOUT
    SHELLOPTS SHELL CDPATH HOME PWD OLDPWD MAIL MAILPATH MAILCHECK COLUMNS LINES GLOBIGNORE EXECIGNORE TIMEFORMAT
    EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE MAKEFLAGS MFLAGS IGNOREEOF
    POSIXLY_CORRECT _ CC CXX CPP LD AR AS FC
";
const SPECIAL_VARIABLE_PREFIXES: &[&str] =
    &["BASH", "LD_", "DYLD_", "LC_", "GIT_", "PYTHON", "PERL", "RUBY", "NODE_", "COMP_", "COPROC", "WINDLASS_"];

fn list_contains(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == name)
}

/// Strips the version at the end of a name: `python3.11`.
fn strip_version(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if bare.is_empty() { name } else { bare }
}

/// Returns whether a name means the listed program: the same name, one with a version, or one with the `g` of GNU tools.
fn is_same_program(listed: &str, name: &str) -> bool {
    let names = [name, strip_version(name), name.strip_prefix('g').unwrap_or(name)];
    names.contains(&listed)
}

fn list_contains_program(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| is_same_program(listed, name))
}

pub(super) fn is_evaluator(name: &str) -> bool {
    list_contains_program(EVALUATORS, name)
}

pub(super) fn is_shell(name: &str) -> bool {
    list_contains(SHELLS, name)
}

pub(super) fn is_evaluating_tool(name: &str) -> bool {
    list_contains_program(EVALUATING_TOOLS, name)
}

pub(super) fn is_evaluating_built_in(name: &str) -> bool {
    list_contains(EVALUATING_BUILT_INS, name)
}

pub(super) fn changes_language(name: &str) -> bool {
    list_contains(LANGUAGE_CHANGES, name)
}

/// Returns the language of a program whose arguments are programs.
pub(super) fn program_language(name: &str) -> Option<&'static str> {
    PROGRAMS.split_ascii_whitespace().find(|listed| is_same_program(listed, name)).map(|listed| match listed {
        "jq" | "gojq" | "yq" => "jq",
        "sed" => "sed",
        _ => "awk",
    })
}

/// Returns whether this is `find`, which takes any argument for a part of its expression, also behind `--`.
pub(super) fn is_find_program(name: &str) -> bool {
    is_same_program("find", name)
}

pub(super) fn takes_file_pattern(test: &str) -> bool {
    list_contains(FIND_TESTS, test)
}

pub(super) fn is_interpreter(name: &str) -> bool {
    list_contains_program(INTERPRETERS, name)
}

pub(super) fn is_code_argument(argument: &str) -> bool {
    list_contains(CODE_ARGUMENTS, argument)
}

pub(super) fn wrapped_operand_count(name: &str) -> Option<usize> {
    WRAPPERS.iter().find(|(listed, _)| is_same_program(listed, name)).map(|(_, before)| *before)
}

pub(super) fn option_starts_shell(option: &str) -> bool {
    list_contains(SHELL_OPTIONS, option)
}

/// How many of the following words a program runs because of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionReach {
    /// The value of this option: behind its `=`, or the next word.
    Value,
    /// All following words.
    Rest,
}

/// Returns the reach of an option that makes a program run other words. A relative path names a script of the project,
/// whose author decides what its options mean.
pub(super) fn option_reach(program: &str, option: &str) -> Option<OptionReach> {
    let name = file_name(program);
    let listed = |list: &[(&str, &str)]| {
        list.iter().any(|(listed, options)| is_same_program(listed, name) && list_contains(options, option))
    };
    let is_named = option.starts_with('-') && !option.starts_with("--no-") && !is_project_script(program);
    let is_usual = !is_project_script(program) && !list_contains(PLAIN_PROGRAMS, name);
    let ends_with = |list: &str| list.split_ascii_whitespace().any(|word| option.ends_with(word));
    let rest = is_named && ends_with(EXEC_WORDS) || is_usual && list_contains(SUBCOMMANDS, option);
    let value = is_named && ends_with(COMMAND_WORDS) || is_usual && list_contains(CODE_OPTIONS, option);
    match () {
        () if rest || listed(REST_OPTIONS) => Some(OptionReach::Rest),
        () if value || listed(VALUE_OPTIONS) => Some(OptionReach::Value),
        () => None,
    }
}

/// Returns the short option at the start of a word, if the word continues: `-cNAME=VALUE`.
pub(super) fn short_option(word: &str) -> Option<&str> {
    let letter = word.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')?;
    Some(&word[..1 + letter.len_utf8()]).filter(|option| option.len() < word.len())
}

/// Returns whether a relative path names the program: a script of the project.
pub(super) fn is_project_script(program: &str) -> bool {
    program.contains('/') && !program.starts_with('/')
}

/// Returns the name of a program without its directory.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether a variable has a special meaning. As with options, its last word may name a command.
pub(super) fn is_special_variable(variable: &str) -> bool {
    let word = variable.rsplit('_').next().unwrap_or_default();
    let is_command =
        word.bytes().all(|b| b.is_ascii_uppercase()) && list_contains(COMMAND_WORDS, &word.to_ascii_lowercase());
    is_command
        || list_contains(SPECIAL_VARIABLES, variable)
        || SPECIAL_VARIABLE_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}
