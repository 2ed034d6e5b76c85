//! Reads files that another program may have written or replaced.
//!
//! Invariants:
//! - A read ends: only regular files are opened, without waiting, and the number of bytes is limited.
//! - A device is not opened, and no terminal becomes the controlling terminal.
//! - A file of a project is read only if it lies in the project once all links are resolved. A link that is placed between
//!   the check and the opening is followed: a process that can place it can write the file as well.
//!
//! Every crate reads such files here; `clippy.toml` forbids the functions of `std`.
#![expect(clippy::disallowed_methods, reason = "this is the one home of opening files")]

use std::error::Error;
use std::fmt;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directories of open descriptors. A user who names such a path means the data behind the descriptor.
const DESCRIPTOR_DIRECTORIES: [&str; 2] = ["/dev/fd", "/proc/self/fd"];
const STANDARD_INPUT: &str = "/dev/stdin";

/// The reason why a path cannot be read as a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadableFile {
    /// Not a regular file. Holds the name of what it is.
    NotRegular(&'static str),
    /// More bytes than the reader takes.
    TooLarge(u64),
    /// A path that leads out of the directory in which it has to lie.
    Outside(PathBuf),
}

impl UnreadableFile {
    /// Returns the reason that an error carries.
    pub fn from_io_error(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns what is wrong with the file, as a sentence without its subject.
    pub fn describe_cause(&self) -> String {
        match self {
            Self::NotRegular(kind) => format!("is {kind}, not a file"),
            Self::TooLarge(most) => format!("is larger than {}", size(*most)),
            Self::Outside(target) => format!("leads out of the project, to `{}`", target.display()),
        }
    }

    pub fn remedy_hint(&self) -> &'static str {
        match self {
            Self::NotRegular("a directory") => "name a file, or put one in its place",
            Self::NotRegular(_) => "remove it, or put a file in its place",
            Self::TooLarge(_) => "make it smaller, or move it away",
            Self::Outside(_) => "put the file itself into the project",
        }
    }

    fn io_error_kind(&self) -> io::ErrorKind {
        match self {
            Self::NotRegular(_) => io::ErrorKind::InvalidInput,
            Self::TooLarge(_) => io::ErrorKind::FileTooLarge,
            Self::Outside(_) => io::ErrorKind::PermissionDenied,
        }
    }
}

impl fmt::Display for UnreadableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it {}: {}", self.cause(), self.remedy())
    }
}

impl Error for UnreadableFile {}

impl From<UnreadableFile> for io::Error {
    fn from(reason: UnreadableFile) -> Self {
        Self::new(reason.io_error_kind(), reason)
    }
}

/// Opens a regular file for reading.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // Opening a device can have an effect by itself.
    check_regular_file(&fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    check_regular_file(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_file_start(path, most.saturating_add(1))?;
    if bytes.len() as u64 > most { Err(UnreadableFile::TooLarge(most).into()) } else { Ok(bytes) }
}

/// Reads the first bytes of a regular file, at most `most`.
pub fn read_file_start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular_file(path)?;
    // One more byte than the length, so that the read sees the end without growing the buffer.
    let expected = usize::try_from(file.metadata()?.len().min(most)).unwrap_or_default() + 1;
    let mut bytes = Vec::with_capacity(expected);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file as text. Returns `None` if it is missing, has more than `most` bytes or is not UTF-8.
pub fn read_text_file(path: &Path, most: u64) -> Option<String> {
    String::from_utf8(read_bounded(path, most).ok()?).ok()
}

/// Reads a regular file inside of a directory.
pub fn read_within_directory(root: &Path, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_bounded(&resolve_within_directory(root, path)?, most)
}

/// Resolves the links of a path that must lie in a directory.
pub fn resolve_within_directory(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    match real.starts_with(root) || real.starts_with(root.canonicalize()?) {
        true => Ok(real),
        false => Err(UnreadableFile::Outside(real).into()),
    }
}

/// Opens a lock file of our own, and creates it if it is missing. Does not follow a link in its place.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = File::options().create(true).append(true).custom_flags(flags).open(path)?;
    check_regular_file(&file.metadata()?)?;
    Ok(file)
}

/// Reads a file of the kernel, such as those under `/proc`: their length is not known in advance.
pub fn read_kernel_file(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Opens a file that reads as empty.
pub(crate) fn open_null_device() -> io::Result<File> {
    File::open("/dev/null")
}

/// Syncs a directory, so that the names in it survive a power loss.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Opens a file that a user names on a command line. It can be a pipe, as `<(…)` makes one.
pub fn open_named_file(path: &Path) -> io::Result<File> {
    let is_descriptor =
        path.parent().is_some_and(|above| DESCRIPTOR_DIRECTORIES.iter().any(|known| above == Path::new(known)));
    if is_descriptor || path == Path::new(STANDARD_INPUT) { File::open(path) } else { open_regular_file(path) }
}

/// Returns what stands at a path in the place of a regular file: a fifo, a device, a socket.
pub fn find_obstacle(path: &Path) -> Option<UnreadableFile> {
    let error = fs::metadata(path).and_then(|found| check_regular_file(&found)).err()?;
    UnreadableFile::from_io_error(&error).cloned()
}

/// Does the same as `find_obstacle`, for a reader that opens no link.
pub fn find_obstacle_besides_links(path: &Path) -> Option<UnreadableFile> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) { None } else { find_obstacle(path) }
}

fn check_regular_file(found: &Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(UnreadableFile::NotRegular(file_type_name(found.file_type())).into()) }
}

fn file_type_name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a fifo",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}

fn format_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().canonicalize().expect("it is there");
        (directory, path)
    }

    fn refusal(read: io::Result<Vec<u8>>) -> String {
        read.expect_err("it is refused").to_string()
    }

    #[test]
    fn read_refuses_what_never_ends() {
        let (_held, root) = directory();
        let path = |name: &str| root.join(name);
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a fifo");
        let _socket = UnixListener::bind(path("socket")).expect("a socket");
        symlink("/dev/zero", path("zero")).expect("a link");
        symlink("circle", path("circle")).expect("a link");
        File::create(path("sparse")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        let kinds = [("fifo", "a fifo"), ("socket", "a socket"), ("zero", "a device")];
        for (name, kind) in kinds {
            let expected = format!("it is {kind}, not a file: remove it, or put a file in its place");
            assert_eq!(refusal(read(&path(name), 9)), expected);
            assert_eq!(refusal(read_start(&path(name), 9)), expected);
            assert_eq!(obstacle(&path(name)).map(|found| found.cause()), Some(format!("is {kind}, not a file")));
            assert_eq!(obstacle_besides_links(&path(name)).is_some(), name != "zero");
        }
        assert!(read_bounded(&path("circle"), 9).is_err());
        assert_eq!(
            refusal(read(&path("sparse"), 1 << 20)),
            "it is larger than 1 MiB: make it smaller, or move it away"
        );
        assert_eq!(read_start(&path("sparse"), 9).expect("its start"), [0; 9]);
    }

    #[test]
    fn read_takes_as_many_bytes_as_allowed() {
        let (_held, root) = directory();
        let file = root.join("file");
        fs::write(&file, "four").expect("written");
        assert_eq!(read(&file, 4).expect("its bytes"), b"four");
        assert_eq!(refusal(read(&file, 3)), "it is larger than 3 bytes: make it smaller, or move it away");
        assert_eq!(read_start(&file, 3).expect("its start"), b"fou");
        assert_eq!(read_text(&file, 4).as_deref(), Some("four"));
        assert_eq!(read(&root.join("missing"), 4).expect_err("none").kind(), io::ErrorKind::NotFound);
        assert_eq!(obstacle(&file), None);
    }

    #[test]
    fn read_within_follows_links_inside_of_the_directory_alone() {
        let (_held, root) = directory();
        let project = root.join("project");
        fs::create_dir(&project).expect("made");
        fs::write(root.join("secret"), "secret").expect("written");
        fs::write(project.join("file"), "mine").expect("written");
        symlink("file", project.join("inside")).expect("a link");
        symlink("../secret", project.join("outside")).expect("a link");
        symlink("..", project.join("up")).expect("a link");
        symlink("project", root.join("linked")).expect("a link");
        let read = |name: &str| read_within_directory(&project, &project.join(name), 99);
        assert_eq!(read("inside").expect("read"), b"mine");
        assert_eq!(read_within(&root.join("linked"), &root.join("linked/file"), 99).expect("read"), b"mine");
        for name in ["outside", "up/secret", "../secret"] {
            let target = root.join("secret");
            let expected =
                format!("it leads out of the project, to `{}`: put the file itself into the project", target.display());
            assert_eq!(refusal(read(name)), expected, "{name}");
        }
    }
}
