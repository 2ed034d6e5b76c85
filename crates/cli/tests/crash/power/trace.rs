//! What the program asked of the file system, in order, as strace saw it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Something that was asked for, and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Make(PathBuf),
    Create(PathBuf),
    Write(PathBuf, usize, Vec<u8>),
    /// At the end of a file, wherever that is then.
    Append(PathBuf, Vec<u8>),
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    /// Another name for the first.
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// On standard output.
    Say(Vec<u8>),
}

/// The calls that are looked at. Those that change files in a way that nobody has told are among them: a program that asks for
/// that on a file of the store would not be understood, and fails the test.
pub const CALLS: &str = "open,openat,openat2,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,\
                         fdatasync,fsync,sync_file_range,copy_file_range,sendfile,splice,mmap,ioctl,unlink,unlinkat,rmdir,\
                         rename,renameat,renameat2,mkdir,mkdirat,link,linkat,symlink,symlinkat,mknod,mknodat";

/// What lies below a directory, out of what strace wrote with `-f -y -xx`, and what was said to a file.
pub fn read(text: &str, below: &Path, said_to: &Path) -> Vec<Op> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ops = Vec::new();
    let mut open = Open::default();
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        // A call that another thread came between is told in two halves. It counts when it is over.
        if let Some(half) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(process, half);
            continue;
        }
        let whole = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, half)) => format!("{}{half}", begun.remove(process).unwrap_or_default()),
            None => rest.to_owned(),
        };
        let Some(call) = Call::parse(&whole) else { continue };
        ops.extend(call.ops(below, said_to, &mut open).into_iter().filter(|op| op.is_about(below)));
    }
    ops
}

/// What is known of open files, by descriptor and path.
#[derive(Debug, Default)]
struct Open(BTreeMap<(String, PathBuf), Place>);

/// Where the next write without a place of its own goes.
#[derive(Debug, Clone, Copy)]
enum Place {
    At(usize),
    End,
}

impl Op {
    fn is_about(&self, below: &Path) -> bool {
        match self {
            Self::Make(path)
            | Self::Create(path)
            | Self::Write(path, ..)
            | Self::Append(path, _)
            | Self::Truncate(path, _)
            | Self::Sync(path)
            | Self::Rename(path, _)
            | Self::Link(path, _)
            | Self::Remove(path) => path.starts_with(below),
            Self::Say(_) => true,
        }
    }
}

/// A call that succeeded, with its arguments.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<Argument>,
    answer: Argument,
}

/// What strace tells of an argument: a number or flags as they are, the path of a descriptor, a text.
#[derive(Debug, Default)]
struct Argument {
    plain: String,
    path: Option<PathBuf>,
    text: Option<Vec<u8>>,
}

impl<'a> Call<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        // The second half of a call stands in columns.
        let (arguments, answer) = rest.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().strip_suffix(')')?;
        let answer = Argument::parse(answer);
        if answer.plain.starts_with(['-', '?']) {
            return None;
        }
        // Texts are in hexadecimal, so that no comma is inside of one.
        Some(Self { name, arguments: arguments.split(", ").map(Argument::parse).collect(), answer })
    }

    fn path(&self, place: usize) -> Option<PathBuf> {
        let argument = self.arguments.get(place)?;
        argument.name().or_else(|| argument.path.clone())
    }

    /// A path that is told whole. What lies below a directory that nobody has told of cannot be followed.
    fn whole_path(&self, place: usize) -> Option<PathBuf> {
        let path = self.path(place)?;
        assert!(path.is_absolute(), "{} of {}: below what?", self.name, path.display());
        Some(path)
    }

    fn number(&self, place: usize) -> usize {
        self.arguments.get(place).and_then(|argument| argument.plain.parse().ok()).unwrap_or_default()
    }

    fn says(&self, place: usize, flag: &str) -> bool {
        self.arguments.get(place).is_some_and(|argument| argument.plain.split('|').any(|word| word == flag))
    }

    fn descriptor(&self) -> Option<(String, PathBuf)> {
        let argument = self.arguments.first()?;
        Some((argument.plain.clone(), argument.path.clone()?))
    }

    /// What it comes to.
    fn ops(&self, below: &Path, said_to: &Path, open: &mut Open) -> Vec<Op> {
        match self.name {
            "openat" => self.opened(open),
            "write" => self.written(said_to, open).into_iter().collect(),
            "lseek" => {
                let at = self.answer.plain.parse().unwrap_or_default();
                let known = self.descriptor().and_then(|descriptor| open.0.get_mut(&descriptor));
                if let Some(place @ Place::At(_)) = known {
                    *place = Place::At(at);
                }
                Vec::new()
            }
            _ => self.op(below, said_to).into_iter().collect(),
        }
    }

    fn opened(&self, open: &mut Open) -> Vec<Op> {
        let Some(path) = self.answer.path.clone() else { return Vec::new() };
        let place = if self.says(2, "O_APPEND") { Place::End } else { Place::At(0) };
        open.0.insert((self.answer.plain.clone(), path.clone()), place);
        let created = self.says(2, "O_CREAT").then(|| Op::Create(path.clone()));
        let emptied = self.says(2, "O_TRUNC").then_some(Op::Truncate(path, 0));
        created.into_iter().chain(emptied).collect()
    }

    fn written(&self, said_to: &Path, open: &mut Open) -> Option<Op> {
        let (descriptor, bytes) = (self.descriptor()?, self.arguments.get(1)?.text.clone()?);
        if descriptor.1 == said_to {
            return Some(Op::Say(bytes));
        }
        let path = descriptor.1.clone();
        match open.0.entry(descriptor).or_insert(Place::At(0)) {
            Place::End => Some(Op::Append(path, bytes)),
            Place::At(at) => {
                *at += bytes.len();
                Some(Op::Write(path, *at - bytes.len(), bytes))
            }
        }
    }

    fn op(&self, below: &Path, said_to: &Path) -> Option<Op> {
        let bytes = || self.arguments.get(1).and_then(|argument| argument.text.clone());
        match self.name {
            "pwrite64" => Some(Op::Write(self.path(0)?, self.number(3), bytes()?)),
            "ftruncate" => Some(Op::Truncate(self.path(0)?, self.number(1))),
            "fdatasync" | "fsync" => Some(Op::Sync(self.path(0)?)),
            "mkdir" => Some(Op::Make(self.whole_path(0)?)),
            "rename" => Some(Op::Rename(self.whole_path(0)?, self.whole_path(1)?)),
            "renameat2" if self.says(4, "RENAME_NOREPLACE") => {
                Some(Op::Rename(self.path(0)?.join(self.path(1)?), self.path(2)?.join(self.path(3)?)))
            }
            "linkat" => Some(Op::Link(self.path(0)?.join(self.path(1)?), self.path(2)?.join(self.path(3)?))),
            "unlink" | "rmdir" => Some(Op::Remove(self.whole_path(0)?)),
            "unlinkat" => Some(Op::Remove(self.path(0)?.join(self.path(1)?))),
            "mkdirat" => Some(Op::Make(self.path(0)?.join(self.path(1)?))),
            // What is read, or is nobody's but this process's, changes nothing; and what processes share in memory is gone anyway.
            "mmap" if !(self.says(2, "PROT_WRITE") && self.says(3, "MAP_SHARED")) => None,
            "mmap" if self.path(4).is_none_or(|path| path.as_os_str().as_encoded_bytes().ends_with(b"-shm")) => None,
            "ioctl" if !self.says(1, "FICLONE") && !self.says(1, "FICLONERANGE") => None,
            other => {
                let about = |path: &Path| path.starts_with(below) || path == said_to;
                let told = |argument: &Argument| {
                    argument.path.as_deref().is_some_and(about) || argument.name().as_deref().is_some_and(about)
                };
                assert!(!self.arguments.iter().any(told), "nobody has told what `{other}` does to a disk");
                None
            }
        }
    }
}

impl Argument {
    /// A text that is a path.
    fn name(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        self.text.clone().map(|text| PathBuf::from(std::ffi::OsString::from_vec(text)))
    }

    fn parse(text: &str) -> Self {
        if let Some(quoted) = text.strip_prefix('"') {
            assert!(!quoted.ends_with("..."), "a text was cut off");
            return Self { text: Some(unhex(quoted.trim_end_matches('"'))), ..Self::default() };
        }
        match text.split_once('<') {
            Some((plain, path)) => {
                let path = String::from_utf8(unhex(path.trim_end_matches('>'))).unwrap_or_default();
                Self { plain: plain.to_owned(), path: Some(PathBuf::from(path)), text: None }
            }
            None => Self { plain: text.split(' ').next().unwrap_or_default().to_owned(), ..Self::default() },
        }
    }
}

/// The bytes of `\x2f\x74`; what is not written so stands for itself.
fn unhex(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut found, mut place) = (Vec::with_capacity(bytes.len() / 4), 0);
    while place < bytes.len() {
        let code = text.get(place..place + 4).and_then(|code| code.strip_prefix("\\x"));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                found.push(byte);
                place += 4;
            }
            None => {
                found.push(bytes[place]);
                place += 1;
            }
        }
    }
    found
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[test]
fn interrupted_strace_calls_are_joined() {
    let (file, out) = (hex("/w/a, b"), hex("/o"));
    let text = format!(
        "7  openat(AT_FDCWD<{w}>, \"{file}\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3<{file}>\n\
         7  openat(AT_FDCWD<{w}>, \"{file}\", O_RDWR|O_CREAT|O_EXCL, 0644) = -1 EEXIST (File exists)\n\
         7  pwrite64(3<{file}>, \"{ab}\", 2, 32 <unfinished ...>\n\
         8  write(1<{out}>, \"{ab}\", 2) = 2\n\
         7  <... pwrite64 resumed>)           = 2\n\
         7  write(4<{file}>, \"{ab}\", 2) = 2\n\
         7  write(4<{file}>, \"{ab}\", 2) = 2\n\
         7  fdatasync(3<{file}>) = 0\n\
         7  write(5<{elsewhere}>, \"{ab}\", 2) = 2\n\
         7  +++ exited with 0 +++\n",
        w = hex("/w"),
        ab = hex("ab"),
        elsewhere = hex("/e"),
    );
    let path = || PathBuf::from("/w/a, b");
    let ab = || b"ab".to_vec();
    assert_eq!(
        read(&text, Path::new("/w"), Path::new("/o")),
        [
            Op::Create(path()),
            Op::Say(ab()),
            Op::Write(path(), 32, ab()),
            Op::Write(path(), 0, ab()),
            Op::Write(path(), 2, ab()),
            Op::Sync(path()),
        ]
    );
}

#[test]
fn write_position_follows_open_flags() {
    let (file, ab) = (hex("/w/a"), hex("ab"));
    let text = format!(
        "7 openat(AT_FDCWD<{w}>, \"{file}\", O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0644) = 3<{file}>\n\
         7 write(3<{file}>, \"{ab}\", 2) = 2\n\
         7 lseek(3<{file}>, 0, SEEK_SET) = 0\n\
         7 write(3<{file}>, \"{ab}\", 2) = 2\n\
         7 openat(AT_FDCWD<{w}>, \"{file}\", O_WRONLY|O_TRUNC) = 4<{file}>\n\
         7 write(4<{file}>, \"{ab}\", 2) = 2\n\
         7 lseek(4<{file}>, 9, SEEK_SET) = 9\n\
         7 write(4<{file}>, \"{ab}\", 2) = 2\n\
         7 openat(AT_FDCWD<{w}>, \"{file}\", O_WRONLY) = 4<{file}>\n\
         7 write(4<{file}>, \"{ab}\", 2) = 2\n",
        w = hex("/w"),
    );
    let path = || PathBuf::from("/w/a");
    let ab = || b"ab".to_vec();
    assert_eq!(
        read(&text, Path::new("/w"), Path::new("/o")),
        [
            Op::Create(path()),
            Op::Append(path(), ab()),
            Op::Append(path(), ab()),
            Op::Truncate(path(), 0),
            Op::Write(path(), 0, ab()),
            Op::Write(path(), 9, ab()),
            Op::Write(path(), 0, ab()),
        ]
    );
}

#[test]
fn unknown_calls_on_known_files_fail_the_parser() {
    let (file, other, out) = (hex("/w/a"), hex("/e"), hex("/o"));
    let is_refused = |call: &str| {
        let text = format!("7 {call}\n");
        std::panic::catch_unwind(|| read(&text, Path::new("/w"), Path::new("/o"))).is_err()
    };
    for call in [
        format!("copy_file_range(3<{other}>, NULL, 4<{file}>, NULL, 9, 0) = 9"),
        format!("sendfile(4<{file}>, 3<{other}>, NULL, 9) = 9"),
        format!("splice(3<{other}>, NULL, 4<{file}>, NULL, 9, 0) = 9"),
        format!("ioctl(4<{file}>, FICLONE, 3) = 0"),
        format!("mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4<{file}>, 0) = 0x7f"),
        format!("writev(1<{out}>, [{{iov_base=\"x\", iov_len=1}}], 1) = 1"),
        format!("renameat2(AT_FDCWD<{other}>, \"{file}\", AT_FDCWD<{other}>, \"{other}\", 0) = 0"),
        format!("truncate(\"{file}\", 3) = 0"),
        "mkdir(\"\\x61\", 0777) = 0".to_owned(),
    ] {
        assert!(is_refused(&call), "{call}");
    }
    for call in [
        format!("copy_file_range(3<{other}>, NULL, 4<{other}>, NULL, 9, 0) = 9"),
        format!("mmap(NULL, 4096, PROT_READ, MAP_SHARED, 4<{file}>, 0) = 0x7f"),
        format!("mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4<{file}\\x2d\\x73\\x68\\x6d>, 0) = 0x7f"),
        format!("truncate(\"{file}\", 3) = -1 EACCES (Permission denied)"),
    ] {
        assert!(!is_refused(&call), "{call}");
    }
}
