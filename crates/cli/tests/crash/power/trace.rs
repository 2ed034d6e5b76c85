//! What the program asked of the file system, in order, as strace saw it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Something that was asked for, and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Make(PathBuf),
    Create(PathBuf),
    Write(PathBuf, usize, Vec<u8>),
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    /// Another name for the first.
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// On standard output.
    Say(Vec<u8>),
}

/// The calls that are looked at. A program that asks for something else would not be understood: `-e trace` has these and
/// the ones that the reader does not know.
pub const CALLS: &str = "openat,creat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,fdatasync,fsync,\
                         sync_file_range,unlink,unlinkat,rmdir,rename,renameat,renameat2,mkdir,mkdirat,link,linkat";

/// What lies below a directory, out of what strace wrote with `-f -y -xx`, and what was said to a file.
pub fn read(text: &str, below: &Path, said_to: &Path) -> Vec<Op> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ops = Vec::new();
    let mut written: BTreeMap<PathBuf, usize> = BTreeMap::new();
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
        let op = call.op(below, said_to, &mut written);
        ops.extend(op.filter(|op| op.is_about(below)));
    }
    ops
}

impl Op {
    fn is_about(&self, below: &Path) -> bool {
        match self {
            Self::Make(path)
            | Self::Create(path)
            | Self::Write(path, ..)
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
        let (arguments, answer) = rest.rsplit_once(") = ")?;
        let answer = Argument::parse(answer);
        if answer.plain.starts_with(['-', '?']) {
            return None;
        }
        // Texts are in hexadecimal, so that no comma is inside of one.
        Some(Self { name, arguments: arguments.split(", ").map(Argument::parse).collect(), answer })
    }

    fn path(&self, place: usize) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        let argument = self.arguments.get(place)?;
        let named = argument.text.clone().map(|text| PathBuf::from(std::ffi::OsString::from_vec(text)));
        named.or_else(|| argument.path.clone())
    }

    fn number(&self, place: usize) -> usize {
        self.arguments.get(place).and_then(|argument| argument.plain.parse().ok()).unwrap_or_default()
    }

    fn says(&self, place: usize, flag: &str) -> bool {
        self.arguments.get(place).is_some_and(|argument| argument.plain.split('|').any(|word| word == flag))
    }

    /// What it comes to. Writes without a place go on where the last one ended.
    fn op(&self, below: &Path, said_to: &Path, written: &mut BTreeMap<PathBuf, usize>) -> Option<Op> {
        let bytes = || self.arguments.get(1).and_then(|argument| argument.text.clone());
        match self.name {
            "openat" if self.says(2, "O_CREAT") => {
                let path = self.answer.path.clone()?;
                written.remove(&path);
                Some(Op::Create(path))
            }
            "write" if self.path(0)? == said_to => Some(Op::Say(bytes()?)),
            "write" => {
                let (path, bytes) = (self.path(0)?, bytes()?);
                let end = written.entry(path.clone()).or_default();
                *end += bytes.len();
                Some(Op::Write(path, *end - bytes.len(), bytes))
            }
            "pwrite64" => Some(Op::Write(self.path(0)?, self.number(3), bytes()?)),
            "ftruncate" => Some(Op::Truncate(self.path(0)?, self.number(1))),
            "fdatasync" | "fsync" => Some(Op::Sync(self.path(0)?)),
            "mkdir" => Some(Op::Make(self.path(0)?)),
            "rename" => Some(Op::Rename(self.path(0)?, self.path(1)?)),
            "linkat" => Some(Op::Link(self.path(0)?.join(self.path(1)?), self.path(2)?.join(self.path(3)?))),
            "unlink" | "rmdir" => Some(Op::Remove(self.path(0)?)),
            "unlinkat" => Some(Op::Remove(self.path(0)?.join(self.path(1)?))),
            "mkdirat" => Some(Op::Make(self.path(0)?.join(self.path(1)?))),
            "openat" => None,
            other => {
                let place = self.path(0).unwrap_or_default();
                assert!(!place.starts_with(below), "nobody has told what `{other}` does to a disk");
                None
            }
        }
    }
}

impl Argument {
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

#[test]
fn calls_are_read_also_in_halves() {
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let (file, out) = (hex("/w/a, b"), hex("/o"));
    let text = format!(
        "7  openat(AT_FDCWD<{w}>, \"{file}\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3<{file}>\n\
         7  openat(AT_FDCWD<{w}>, \"{file}\", O_RDWR|O_CREAT|O_EXCL, 0644) = -1 EEXIST (File exists)\n\
         7  pwrite64(3<{file}>, \"{ab}\", 2, 32 <unfinished ...>\n\
         8  write(1<{out}>, \"{ab}\", 2) = 2\n\
         7  <... pwrite64 resumed>) = 2\n\
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
