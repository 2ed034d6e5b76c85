//! The file operations of the program, in order, as strace reports them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An operation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOperation {
    MakeDirectory(PathBuf),
    Create(PathBuf),
    Write(PathBuf, usize, Vec<u8>),
    /// A write at the end of the file at that time.
    Append(PathBuf, Vec<u8>),
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    /// A second name for the first path.
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    /// A write to standard output.
    Print(Vec<u8>),
}

/// The traced calls. Some of them change files in ways that the parser does not know: the test fails if the program uses such a
/// call on a traced file.
pub const STRACE_CALLS: &str = "open,openat,openat2,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,\
                         fdatasync,fsync,sync_file_range,copy_file_range,sendfile,splice,mmap,ioctl,unlink,unlinkat,rmdir,\
                         rename,renameat,renameat2,mkdir,mkdirat,link,linkat,symlink,symlinkat,mknod,mknodat";

/// Parses the output of `strace -f -y -xx`. Returns the operations below a directory, and the writes to the output file.
pub fn parse_trace(text: &str, directory: &Path, output_file: &Path) -> Vec<FileOperation> {
    let mut unfinished_calls: BTreeMap<&str, &str> = BTreeMap::new();
    let mut operations = Vec::new();
    let mut open_files = OpenFiles::default();
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        // strace prints a call in two parts if another thread interrupts it. The call takes effect with the second part.
        if let Some(part) = rest.strip_suffix(" <unfinished ...>") {
            unfinished_calls.insert(process, part);
            continue;
        }
        let complete_call = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, part)) => format!("{}{part}", unfinished_calls.remove(process).unwrap_or_default()),
            None => rest.to_owned(),
        };
        let Some(call) = StraceCall::parse(&complete_call) else { continue };
        operations.extend(
            call.parse_operations(directory, output_file, &mut open_files)
                .into_iter()
                .filter(|operation| operation.is_below(directory)),
        );
    }
    operations
}

/// The write positions of open files, by descriptor and path.
#[derive(Debug, Default)]
struct OpenFiles(BTreeMap<(String, PathBuf), WritePosition>);

/// The position of the next write without an explicit offset.
#[derive(Debug, Clone, Copy)]
enum WritePosition {
    At(usize),
    End,
}

impl FileOperation {
    fn is_below(&self, directory: &Path) -> bool {
        match self {
            Self::MakeDirectory(path)
            | Self::Create(path)
            | Self::Write(path, ..)
            | Self::Append(path, _)
            | Self::Truncate(path, _)
            | Self::Sync(path)
            | Self::Rename(path, _)
            | Self::Link(path, _)
            | Self::Remove(path) => path.starts_with(directory),
            Self::Print(_) => true,
        }
    }
}

/// A call that succeeded, with its arguments.
struct StraceCall<'a> {
    name: &'a str,
    arguments: Vec<CallArgument>,
    return_value: CallArgument,
}

/// An argument in the output of strace: a number or flags, the path of a descriptor, or a string.
#[derive(Debug, Default)]
struct CallArgument {
    plain: String,
    path: Option<PathBuf>,
    text: Option<Vec<u8>>,
}

impl<'a> StraceCall<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        // strace aligns the result of a resumed call.
        let (arguments, return_value) = rest.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().strip_suffix(')')?;
        let return_value = CallArgument::parse(return_value);
        if return_value.plain.starts_with(['-', '?']) {
            return None;
        }
        // Strings are hexadecimal, so that they contain no comma.
        Some(Self { name, arguments: arguments.split(", ").map(CallArgument::parse).collect(), return_value })
    }

    fn path(&self, index: usize) -> Option<PathBuf> {
        let argument = self.arguments.get(index)?;
        argument.path_text().or_else(|| argument.path.clone())
    }

    /// Returns an absolute path. The parser cannot resolve a relative one.
    fn absolute_path(&self, index: usize) -> Option<PathBuf> {
        let path = self.path(index)?;
        assert!(path.is_absolute(), "{} of {}: below what?", self.name, path.display());
        Some(path)
    }

    fn number(&self, index: usize) -> usize {
        self.arguments.get(index).and_then(|argument| argument.plain.parse().ok()).unwrap_or_default()
    }

    fn has_flag(&self, index: usize, flag: &str) -> bool {
        self.arguments.get(index).is_some_and(|argument| argument.plain.split('|').any(|word| word == flag))
    }

    fn descriptor(&self) -> Option<(String, PathBuf)> {
        let argument = self.arguments.first()?;
        Some((argument.plain.clone(), argument.path.clone()?))
    }

    /// Returns the operations of a call, and updates the write positions.
    fn parse_operations(&self, directory: &Path, output_file: &Path, open_files: &mut OpenFiles) -> Vec<FileOperation> {
        match self.name {
            "openat" => self.parse_open(open_files),
            "write" => self.parse_write(output_file, open_files).into_iter().collect(),
            "lseek" => {
                let offset = self.return_value.plain.parse().unwrap_or_default();
                let position = self.descriptor().and_then(|descriptor| open_files.0.get_mut(&descriptor));
                if let Some(position @ WritePosition::At(_)) = position {
                    *position = WritePosition::At(offset);
                }
                Vec::new()
            }
            _ => self.parse_operation(directory, output_file).into_iter().collect(),
        }
    }

    fn parse_open(&self, open_files: &mut OpenFiles) -> Vec<FileOperation> {
        let Some(path) = self.return_value.path.clone() else { return Vec::new() };
        let position = if self.has_flag(2, "O_APPEND") { WritePosition::End } else { WritePosition::At(0) };
        open_files.0.insert((self.return_value.plain.clone(), path.clone()), position);
        let creation = self.has_flag(2, "O_CREAT").then(|| FileOperation::Create(path.clone()));
        let truncation = self.has_flag(2, "O_TRUNC").then_some(FileOperation::Truncate(path, 0));
        creation.into_iter().chain(truncation).collect()
    }

    fn parse_write(&self, output_file: &Path, open_files: &mut OpenFiles) -> Option<FileOperation> {
        let (descriptor, bytes) = (self.descriptor()?, self.arguments.get(1)?.text.clone()?);
        if descriptor.1 == output_file {
            return Some(FileOperation::Print(bytes));
        }
        let path = descriptor.1.clone();
        match open_files.0.entry(descriptor).or_insert(WritePosition::At(0)) {
            WritePosition::End => Some(FileOperation::Append(path, bytes)),
            WritePosition::At(offset) => {
                *offset += bytes.len();
                Some(FileOperation::Write(path, *offset - bytes.len(), bytes))
            }
        }
    }

    fn parse_operation(&self, directory: &Path, output_file: &Path) -> Option<FileOperation> {
        let bytes = || self.arguments.get(1).and_then(|argument| argument.text.clone());
        match self.name {
            "pwrite64" => Some(FileOperation::Write(self.path(0)?, self.number(3), bytes()?)),
            "ftruncate" => Some(FileOperation::Truncate(self.path(0)?, self.number(1))),
            "fdatasync" | "fsync" => Some(FileOperation::Sync(self.path(0)?)),
            "mkdir" => Some(FileOperation::MakeDirectory(self.absolute_path(0)?)),
            "rename" => Some(FileOperation::Rename(self.absolute_path(0)?, self.absolute_path(1)?)),
            "renameat2" if self.has_flag(4, "RENAME_NOREPLACE") => {
                Some(FileOperation::Rename(self.path(0)?.join(self.path(1)?), self.path(2)?.join(self.path(3)?)))
            }
            "linkat" => Some(FileOperation::Link(self.path(0)?.join(self.path(1)?), self.path(2)?.join(self.path(3)?))),
            "unlink" | "rmdir" => Some(FileOperation::Remove(self.absolute_path(0)?)),
            "unlinkat" => Some(FileOperation::Remove(self.path(0)?.join(self.path(1)?))),
            "mkdirat" => Some(FileOperation::MakeDirectory(self.path(0)?.join(self.path(1)?))),
            // Reads and private mappings change no file, and the shared memory of the store is lost anyway.
            "mmap" if !(self.has_flag(2, "PROT_WRITE") && self.has_flag(3, "MAP_SHARED")) => None,
            "mmap" if self.path(4).is_none_or(|path| path.as_os_str().as_encoded_bytes().ends_with(b"-shm")) => None,
            "ioctl" if !self.has_flag(1, "FICLONE") && !self.has_flag(1, "FICLONERANGE") => None,
            other => {
                let is_relevant = |path: &Path| path.starts_with(directory) || path == output_file;
                let is_relevant_argument = |argument: &CallArgument| {
                    argument.path.as_deref().is_some_and(is_relevant)
                        || argument.path_text().as_deref().is_some_and(is_relevant)
                };
                assert!(
                    !self.arguments.iter().any(is_relevant_argument),
                    "the effect of `{other}` on a disk is unknown"
                );
                None
            }
        }
    }
}

impl CallArgument {
    /// Returns a string argument as a path.
    fn path_text(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        self.text.clone().map(|text| PathBuf::from(std::ffi::OsString::from_vec(text)))
    }

    fn parse(text: &str) -> Self {
        if let Some(quoted) = text.strip_prefix('"') {
            assert!(!quoted.ends_with("..."), "a text was cut off");
            return Self { text: Some(decode_hex(quoted.trim_end_matches('"'))), ..Self::default() };
        }
        match text.split_once('<') {
            Some((plain, path)) => {
                let path = String::from_utf8(decode_hex(path.trim_end_matches('>'))).unwrap_or_default();
                Self { plain: plain.to_owned(), path: Some(PathBuf::from(path)), text: None }
            }
            None => Self { plain: text.split(' ').next().unwrap_or_default().to_owned(), ..Self::default() },
        }
    }
}

/// Decodes escapes such as `\x2f\x74`, and keeps other characters.
fn decode_hex(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut decoded, mut position) = (Vec::with_capacity(bytes.len() / 4), 0);
    while position < bytes.len() {
        let code = text.get(position..position + 4).and_then(|code| code.strip_prefix("\\x"));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                position += 4;
            }
            None => {
                decoded.push(bytes[position]);
                position += 1;
            }
        }
    }
    decoded
}

fn encode_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[test]
fn interrupted_strace_calls_are_joined() {
    let (file, out) = (encode_hex("/w/a, b"), encode_hex("/o"));
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
        w = encode_hex("/w"),
        ab = encode_hex("ab"),
        elsewhere = encode_hex("/e"),
    );
    let path = || PathBuf::from("/w/a, b");
    let ab = || b"ab".to_vec();
    assert_eq!(
        parse_trace(&text, Path::new("/w"), Path::new("/o")),
        [
            FileOperation::Create(path()),
            FileOperation::Print(ab()),
            FileOperation::Write(path(), 32, ab()),
            FileOperation::Write(path(), 0, ab()),
            FileOperation::Write(path(), 2, ab()),
            FileOperation::Sync(path()),
        ]
    );
}

#[test]
fn write_position_follows_open_flags() {
    let (file, ab) = (encode_hex("/w/a"), encode_hex("ab"));
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
        w = encode_hex("/w"),
    );
    let path = || PathBuf::from("/w/a");
    let ab = || b"ab".to_vec();
    assert_eq!(
        parse_trace(&text, Path::new("/w"), Path::new("/o")),
        [
            FileOperation::Create(path()),
            FileOperation::Append(path(), ab()),
            FileOperation::Append(path(), ab()),
            FileOperation::Truncate(path(), 0),
            FileOperation::Write(path(), 0, ab()),
            FileOperation::Write(path(), 9, ab()),
            FileOperation::Write(path(), 0, ab()),
        ]
    );
}

#[test]
fn unknown_calls_on_known_files_fail_the_parser() {
    let (file, other, out) = (encode_hex("/w/a"), encode_hex("/e"), encode_hex("/o"));
    let is_refused = |call: &str| {
        let text = format!("7 {call}\n");
        std::panic::catch_unwind(|| parse_trace(&text, Path::new("/w"), Path::new("/o"))).is_err()
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
