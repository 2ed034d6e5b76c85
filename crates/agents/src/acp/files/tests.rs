//! Reading and writing files on behalf of an agent.

use std::os::unix::fs::symlink;

use super::*;

struct FilesFixture {
    whole: tempfile::TempDir,
    files: WorkspaceFiles,
}

impl FilesFixture {
    /// Creates a workspace with a file beside it.
    fn new() -> Self {
        let whole = tempfile::tempdir().expect("a directory");
        fs::create_dir(whole.path().join("shop")).expect("a directory");
        fs::write(whole.path().join("secret"), "secret").expect("a file");
        let files = WorkspaceFiles::new(&whole.path().join("shop"));
        Self { whole, files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.whole.path().join("shop").join(name)
    }

    fn read(&self, name: &str, line: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        let wanted = ReadFileRequest { path: self.path(name), line, limit };
        self.files
            .read_requested_lines(&wanted)
            .map_err(|refused| refused.message.replace(&*self.whole.path().to_string_lossy(), ""))
    }

    fn write(&self, name: &str) -> Result<(), String> {
        let wanted = WriteFileRequest { path: self.path(name), content: "new".to_owned() };
        self.files
            .write_requested_file(&wanted)
            .map_err(|refused| refused.message.replace(&*self.whole.path().to_string_lossy(), ""))
    }
}

#[test]
fn requested_lines_are_read() {
    let place = FilesFixture::new();
    fs::write(place.path("a"), "one\ntwo\nthree").expect("a file");
    let check = |line, limit, expected: &str| assert_eq!(place.read("a", line, limit).as_deref(), Ok(expected));
    check(None, None, "one\ntwo\nthree");
    check(Some(0), Some(0), "");
    check(Some(1), Some(1), "one\n");
    check(Some(2), Some(7), "two\nthree");
    check(Some(3), None, "three");
    check(Some(4), None, "");
    check(Some(u64::MAX), Some(u64::MAX), "");
}

#[test]
fn refused_read_names_the_reason() {
    let place = FilesFixture::new();
    symlink("../secret", place.path("link")).expect("a link");
    fs::write(place.path("bytes"), [0xff, 0xfe]).expect("a file");
    fs::write(place.path("long"), vec![b'x'; MAX_READ_BYTES as usize + 1]).expect("a file");
    let outside = "it is outside of `/shop`";
    assert_eq!(place.read("../secret", None, None), Err(format!("cannot read `/shop/../secret`: {outside}")));
    assert_eq!(place.read("link", None, None), Err(format!("cannot read `/shop/link`: {outside}")));
    assert_eq!(place.read(".", None, None), Err("cannot read `/shop/.`: it is not a regular file".to_owned()));
    assert_eq!(place.read("bytes", None, None), Err("cannot read `/shop/bytes`: it is not text".to_owned()));
    let long = "cannot read `/shop/long`: it has more than 8 MiB: ask for some of its lines";
    assert_eq!(place.read("long", None, None), Err(long.to_owned()));
    assert!(place.read("none", None, None).expect_err("nothing").contains("No such file"));
    let zero = ReadFileRequest { path: "/dev/zero".into(), line: None, limit: None };
    assert!(place.files.read_requested_lines(&zero).is_err());
}

#[test]
fn named_pipe_is_refused_without_blocking() {
    let place = FilesFixture::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    assert_eq!(place.read("pipe", None, None), Err("cannot read `/shop/pipe`: it is not a regular file".to_owned()));
    assert_eq!(place.write("pipe"), Err("cannot write `/shop/pipe`: there is something else".to_owned()));
}

#[test]
fn written_file_is_replaced_whole_and_keeps_its_mode() {
    let place = FilesFixture::new();
    fs::write(place.path("old"), "old and long").expect("a file");
    fs::set_permissions(place.path("old"), fs::Permissions::from_mode(0o757)).expect("a mode");
    symlink("old", place.path("link")).expect("a link");
    for name in ["old", "new", "deep/er/new", "link"] {
        assert_eq!(place.write(name), Ok(()), "{name}");
        assert_eq!(fs::read_to_string(place.path(name)).expect(name), "new");
    }
    assert!(fs::symlink_metadata(place.path("link")).expect("a link").is_symlink());
    let mode = |name: &str| fs::metadata(place.path(name)).expect(name).permissions().mode() & 0o777;
    assert_eq!(mode("old"), 0o757);
    assert_eq!(mode("new") & 0o600, 0o600);
    assert_eq!(fs::read_dir(place.path("deep/er")).expect("a directory").count(), 1, "nothing else is left");
}

#[test]
fn protected_or_outside_path_is_not_written() {
    let place = FilesFixture::new();
    symlink("../secret", place.path("link")).expect("a link");
    symlink("..", place.path("up")).expect("a link");
    symlink("/nowhere/at/all", place.path("dangling")).expect("a link");
    fs::create_dir(place.path("directory")).expect("a directory");
    fs::create_dir(place.path(".git")).expect("a directory");
    symlink(".git", place.path("git")).expect("a link");
    for name in [
        "../secret",
        "link",
        "up/secret",
        "up/new",
        "dangling",
        "directory",
        "directory/../../x",
        ".windlass/config.yaml",
        ".git/hooks/pre-commit",
        "git/config",
        "sub/.GIT/config",
    ] {
        assert!(place.write(name).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(place.whole.path().join("secret")).expect("it is there"), "secret");
    assert_eq!(fs::read_dir(place.whole.path()).expect("a directory").count(), 2);
}

/// An overlong file is refused without reading it to its end.
#[test]
fn reading_stops_at_the_answer_limit() {
    let mut lines = BufReader::new(io::repeat(b'x').take(3 * MAX_READ_BYTES));
    assert_eq!(read_bounded_lines(&mut lines, None).unwrap(), None);
    assert!(lines.get_ref().limit() > MAX_READ_BYTES);
}
