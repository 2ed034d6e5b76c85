//! A disk that keeps what was synced, and of the rest whatever it likes.
//!
//! It promises no more than POSIX does: a file's bytes are kept after the file was synced, a name after its directory was.
//! What was not synced may be there, may be missing, in any order, and a write may be there by sectors. Names are kept in the
//! order in which they were given: no file system does worse.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::trace::Op;

const SECTOR: usize = 512;

/// What a loss of power leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Nothing,
    Some,
    /// Some sectors of some writes.
    Torn,
}

#[derive(Debug, Clone)]
enum Node {
    /// `length` is what programs see.
    File {
        kept: Vec<u8>,
        pending: Vec<Piece>,
        length: usize,
    },
    Directory {
        kept: BTreeMap<OsString, usize>,
        pending: Vec<Entry>,
    },
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Clone)]
enum Entry {
    Add(OsString, usize),
    Remove(OsString),
    Rename(OsString, OsString, usize),
}

/// The disk below a directory that was empty in the beginning.
#[derive(Debug, Clone)]
pub struct Disk {
    nodes: Vec<Node>,
    /// What programs see.
    names: BTreeMap<PathBuf, usize>,
}

impl Disk {
    pub fn new(root: &Path) -> Self {
        let nodes = vec![Node::Directory { kept: BTreeMap::new(), pending: Vec::new() }];
        Self { nodes, names: BTreeMap::from([(root.to_owned(), 0)]) }
    }

    pub fn take(&mut self, op: &Op) {
        match op {
            Op::Make(path) => self.add(path, Node::Directory { kept: BTreeMap::new(), pending: Vec::new() }),
            Op::Create(path) if !self.names.contains_key(path) => {
                self.add(path, Node::File { kept: Vec::new(), pending: Vec::new(), length: 0 });
            }
            Op::Write(path, at, bytes) => self.piece(path, Piece::Bytes(*at, bytes.clone())),
            Op::Append(path, bytes) => {
                let end = self.length(path);
                self.piece(path, Piece::Bytes(end, bytes.clone()));
            }
            Op::Truncate(path, length) => self.piece(path, Piece::Length(*length)),
            Op::Sync(path) => self.sync(path),
            Op::Rename(from, to) => self.rename(from, to),
            Op::Link(from, to) => {
                if let Some(number) = self.names.get(from).copied() {
                    self.names.insert(to.clone(), number);
                    self.entry(to, Entry::Add(name(to), number));
                }
            }
            Op::Remove(path) => {
                self.names.remove(path);
                self.entry(path, Entry::Remove(name(path)));
            }
            Op::Create(_) | Op::Say(_) => {}
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.names.insert(path.to_owned(), number);
        self.entry(path, Entry::Add(name(path), number));
    }

    fn piece(&mut self, path: &Path, piece: Piece) {
        let Some(number) = self.names.get(path) else { return };
        if let Node::File { pending, length, .. } = &mut self.nodes[*number] {
            *length = match &piece {
                Piece::Bytes(at, bytes) => (*length).max(at + bytes.len()),
                Piece::Length(new) => *new,
            };
            pending.push(piece);
        }
    }

    fn length(&self, path: &Path) -> usize {
        match self.names.get(path).map(|number| &self.nodes[*number]) {
            Some(Node::File { length, .. }) => *length,
            _ => 0,
        }
    }

    fn entry(&mut self, path: &Path, entry: Entry) {
        let parent = path.parent().and_then(|parent| self.names.get(parent));
        if let Some(Node::Directory { pending, .. }) = parent.map(|number| &mut self.nodes[*number]) {
            pending.push(entry);
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        assert_eq!(from.parent(), to.parent(), "only within a directory");
        let below: Vec<PathBuf> = self.names.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in below {
            let number = self.names.remove(&path).unwrap();
            let rest = path.strip_prefix(from).unwrap();
            self.names.insert(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }, number);
        }
        let number = self.names[to];
        self.entry(to, Entry::Rename(name(from), name(to), number));
    }

    fn sync(&mut self, path: &Path) {
        let Some(number) = self.names.get(path) else { return };
        match &mut self.nodes[*number] {
            Node::File { kept, pending, .. } => pending.drain(..).for_each(|piece| put(kept, &piece, |_| true)),
            Node::Directory { kept, pending } => pending.drain(..).for_each(|entry| enter(kept, entry)),
        }
    }

    /// What is there when the power comes back, below another directory.
    pub fn lose_power(&self, left: Left, chance: &mut Chance, to: &Path) {
        self.restore(0, left, chance, to);
    }

    fn restore(&self, number: usize, left: Left, chance: &mut Chance, to: &Path) {
        match &self.nodes[number] {
            Node::File { kept, pending, .. } => {
                let mut bytes = kept.clone();
                for piece in pending.iter().filter(|_| left != Left::Nothing) {
                    if chance.flip() {
                        put(&mut bytes, piece, |_| left != Left::Torn || chance.flip());
                    }
                }
                fs::write(to, bytes).unwrap();
            }
            Node::Directory { kept, pending } => {
                let mut entries = kept.clone();
                // A file system keeps names in the order in which they were given.
                let many = if left == Left::Nothing { 0 } else { chance.below(pending.len() + 1) };
                pending.iter().take(many).for_each(|entry| enter(&mut entries, entry.clone()));
                fs::create_dir_all(to).unwrap();
                for (name, number) in entries {
                    // What processes share in memory is gone.
                    if !name.as_encoded_bytes().ends_with(b"-shm") {
                        self.restore(number, left, chance, &to.join(name));
                    }
                }
            }
        }
    }
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}

/// Puts a piece into a file, sector by sector where these are kept.
fn put(file: &mut Vec<u8>, piece: &Piece, mut keeps: impl FnMut(usize) -> bool) {
    match piece {
        Piece::Length(length) => file.resize(*length, 0),
        Piece::Bytes(at, bytes) => {
            let mut done = 0;
            while done < bytes.len() {
                let place = at + done;
                let many = (SECTOR - place % SECTOR).min(bytes.len() - done);
                if keeps(place / SECTOR) {
                    file.resize(file.len().max(place + many), 0);
                    file[place..place + many].copy_from_slice(&bytes[done..done + many]);
                }
                done += many;
            }
        }
    }
}

fn enter(entries: &mut BTreeMap<OsString, usize>, entry: Entry) {
    match entry {
        Entry::Add(name, number) => drop(entries.insert(name, number)),
        Entry::Remove(name) => drop(entries.remove(&name)),
        Entry::Rename(from, to, number) => {
            entries.remove(&from);
            entries.insert(to, number);
        }
    }
}

/// Chance that can be had again (splitmix64).
#[derive(Debug, Clone)]
pub struct Chance(pub u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }

    pub fn below(&mut self, many: usize) -> usize {
        usize::try_from(self.next() % many as u64).unwrap()
    }
}

#[test]
fn truncated_and_appended_file_survives_power_loss_after_sync() {
    let (root, file) = (Path::new("/w"), PathBuf::from("/w/a"));
    let mut disk = Disk::new(root);
    let kept = |disk: &Disk| {
        let place = tempfile::tempdir().unwrap();
        disk.lose_power(Left::Nothing, &mut Chance(1), place.path());
        fs::read_to_string(place.path().join("a")).ok()
    };
    let sync = |disk: &mut Disk| {
        disk.take(&Op::Sync(file.clone()));
        kept(disk)
    };
    let append = |text: &str| Op::Append(file.clone(), text.as_bytes().to_vec());
    disk.take(&Op::Create(file.clone()));
    disk.take(&append("one "));
    disk.take(&append("two"));
    assert_eq!(sync(&mut disk), None, "its name is not");
    disk.take(&Op::Sync(root.to_owned()));
    assert_eq!(kept(&disk).as_deref(), Some("one two"));
    disk.take(&Op::Truncate(file.clone(), 0));
    disk.take(&append("three"));
    assert_eq!(kept(&disk).as_deref(), Some("one two"));
    assert_eq!(sync(&mut disk).as_deref(), Some("three"));
}
