//! The sources of tokens, and the hosts of each token.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_process::{
    Environment, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError, RunControl,
    run_program,
};
use windlass_vcs::forge::{ForgeError, ForgeOptions, ForgeProject, ForgeToken};

fn forge_project(remote: &str, api: Option<&str>) -> ForgeProject {
    let settings = ForgeOptions { api: api.map(str::to_owned), ..ForgeOptions::default() };
    ForgeProject::from_remote(remote, &settings).expect("it can be read").expect("it is a forge")
}

fn environment_of(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn refuse_to_start(spec: ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
    match spec.invocation {
        ProgramInvocation::Argv(arguments) => Err(ProgramStartError::NotFound { program: arguments[0].clone().into() }),
        ProgramInvocation::Shell(_) => panic!("no shell is needed"),
    }
}

#[track_caller]
fn check_environment_token(remote_project: &ForgeProject, variables: &[(&str, &str)], is_found: bool) {
    let seen = ForgeToken::find_token(remote_project, &environment_of(variables), refuse_to_start);
    assert_eq!(seen.is_ok(), is_found, "{variables:?} for {}: {seen:?}", remote_project.host);
}

#[test]
fn tokens_of_the_environment_are_for_named_hosts_only() {
    let github = forge_project("git@github.com:o/r", None);
    check_environment_token(&github, &[("GH_TOKEN", "a")], true);
    check_environment_token(&github, &[("GITHUB_TOKEN", "a"), ("GH_TOKEN", " ")], true);
    check_environment_token(&github, &[("GH_ENTERPRISE_TOKEN", "a"), ("GITLAB_TOKEN", "a")], false);
    check_environment_token(&github, &[], false);
    check_environment_token(&forge_project("https://acme.ghe.com/o/r", None), &[("GH_TOKEN", "a")], true);

    let enterprise = forge_project("git@github.acme.test:o/r", None);
    let all = [("GH_TOKEN", "a"), ("GH_ENTERPRISE_TOKEN", "b"), ("GITHUB_ENTERPRISE_TOKEN", "c")];
    check_environment_token(&enterprise, &all, false);
    check_environment_token(&enterprise, &[("GH_TOKEN", "a"), ("GH_HOST", "github.acme.test")], false);
    check_environment_token(&enterprise, &[("GH_ENTERPRISE_TOKEN", "b"), ("GH_HOST", "github.acme.test")], true);
    check_environment_token(&enterprise, &[("GH_ENTERPRISE_TOKEN", "b"), ("GH_HOST", "github.eve.test")], false);
    let named = forge_project("git@github.acme.test:o/r", Some("https://github.acme.test/api/v3"));
    check_environment_token(&named, &[("GITHUB_ENTERPRISE_TOKEN", "c")], true);

    let gitlab = forge_project("git@gitlab.com:o/r", None);
    check_environment_token(&gitlab, &[("GL_TOKEN", "a")], true);
    check_environment_token(&gitlab, &[("GITLAB_TOKEN", "a"), ("GITLAB_HOST", "https://gitlab.acme.test")], false);
    let own = forge_project("git@gitlab.acme.test:o/r", None);
    check_environment_token(&own, &[("GITLAB_TOKEN", "a")], false);
    check_environment_token(&own, &[("GITLAB_TOKEN", "a"), ("GITLAB_HOST", "https://gitlab.acme.test:443/")], true);
    check_environment_token(&own, &[("GITLAB_TOKEN", "a"), ("GL_HOST", "gitlab.acme.test")], true);
}

#[test]
fn programs_are_asked_for_one_host_and_get_no_token() {
    for (remote, command) in [
        ("git@github.acme.test:o/r", "gh auth token --hostname github.acme.test"),
        ("git@gitlab.acme.test:o/r", "glab config get token --host gitlab.acme.test"),
    ] {
        let asked = RefCell::new(None);
        let given = environment_of(&[
            ("PATH", "/bin"),
            ("GITLAB_TOKEN", "s3cret"),
            ("GL_TOKEN", "s3cret"),
            ("GITLAB_ACCESS_TOKEN", "s3cret"),
            ("OAUTH_TOKEN", "s3cret"),
            ("GH_TOKEN", "s3cret"),
            ("GITHUB_TOKEN", "s3cret"),
            ("GH_ENTERPRISE_TOKEN", "s3cret"),
            ("GITHUB_ENTERPRISE_TOKEN", "s3cret"),
        ]);
        let token = ForgeToken::find_token(&forge_project(remote, None), &given, |spec| {
            asked.replace(Some(spec));
            Ok(ProgramOutcome::success_with_stdout(b"stored-token\n".to_vec()))
        });
        assert_eq!(format!("{:?}", token.unwrap()), "Token(***)");
        let spec = asked.into_inner().expect("it was asked");
        let ProgramInvocation::Argv(arguments) = &spec.invocation else { panic!("no shell is needed") };
        assert_eq!(arguments.join(&OsString::from(" ")), command);
        assert!(spec.timeout.is_some());
        assert!(spec.environment.iter().any(|(name, _)| name == "PATH"));
        assert!(!spec.environment.iter().any(|(_, value)| value == "s3cret"), "{:?}", spec.environment);
    }
}

#[test]
fn missing_token_error_names_its_remedy() {
    let remedy = |remote: &str| match ForgeToken::find_token(
        &forge_project(remote, None),
        &environment_of(&[]),
        refuse_to_start,
    ) {
        Err(error @ ForgeError::NoToken { .. }) => format!("{error}: {}", error.hint()),
        seen => panic!("{seen:?}"),
    };
    assert_eq!(
        remedy("git@github.com:o/r"),
        "cannot find a token for github.com: set GH_TOKEN, or run `gh auth login --hostname github.com`"
    );
    assert_eq!(
        remedy("git@gitlab.acme.test:o/r"),
        "cannot find a token for gitlab.acme.test: run `glab auth login --hostname gitlab.acme.test`; \
         or set GITLAB_HOST to gitlab.acme.test or `api` of `forge`, so that GITLAB_TOKEN is meant for it"
    );
}

#[test]
fn malformed_token_is_not_sent() {
    let github = forge_project("git@github.com:o/r", None);
    for value in ["s3 cret", "s3\ncret", "s3\u{e9}cret", "s3\u{7f}cret"] {
        let error =
            ForgeToken::find_token(&github, &environment_of(&[("GH_TOKEN", value)]), refuse_to_start).unwrap_err();
        assert_eq!(error.to_string(), "cannot use the token from GH_TOKEN: it holds characters that no token has");
        assert!(!format!("{error:?}").contains("s3"));
    }
    let long = vec![b'a'; 5000];
    assert!(matches!(
        ForgeToken::find_token(&github, &environment_of(&[]), |_| Ok(ProgramOutcome::success_with_stdout(long))),
        Err(ForgeError::BadToken { .. })
    ));
    let failed = ProgramOutcome {
        exit: ProgramExit::Code(1),
        ..ProgramOutcome::success_with_stdout(b"no oauth token".to_vec())
    };
    assert!(matches!(
        ForgeToken::find_token(&github, &environment_of(&[]), |_| Ok(failed)),
        Err(ForgeError::NoToken { .. })
    ));
    let empty = ProgramOutcome::success_with_stdout(b"\n".to_vec());
    assert!(matches!(
        ForgeToken::find_token(&github, &environment_of(&[]), |_| Ok(empty)),
        Err(ForgeError::NoToken { .. })
    ));
}

#[test]
fn token_is_read_from_output_of_real_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner_lock = OwnerLock::acquire(&directory.path().join("owners"), 0).expect("an owner lock");
    let program = directory.path().join("gh");
    fs::write(&program, "#!/bin/sh\ntest \"$*\" = 'auth token --hostname github.com' && echo t0ken\n").expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let find_token_of = |remote: &str| {
        let path = directory.path().to_str().expect("a plain name");
        ForgeToken::find_token(&forge_project(remote, None), &environment_of(&[("PATH", path)]), |spec| {
            run_program(&spec, &owner_lock, &RunControl::new(), &mut |_, _| {})
        })
    };
    assert!(find_token_of("git@github.com:o/r").is_ok());
    assert!(matches!(find_token_of("git@github.acme.test:o/r"), Err(ForgeError::NoToken { .. })), "it fails");
    assert!(matches!(find_token_of("git@gitlab.com:o/r"), Err(ForgeError::NoToken { .. })), "there is no such program");
}
