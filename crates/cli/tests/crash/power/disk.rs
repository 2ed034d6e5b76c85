//! A simulated disk that keeps synced data, and any part of the unsynced data.
//!
//! It guarantees no more than POSIX: the content of a file is durable after a sync of the file, a name after a sync of its
//! directory. Any subset of the unsynced writes may be on the disk, and a write may be there in part, by sectors. Changes of names
//! keep their order, as on every file system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::trace::FileOperation;

const SECTOR_SIZE: usize = 512;

/// The unsynced data that remains after a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsyncedData {
    Nothing,
    Some,
    /// Some sectors of some writes.
    Torn,
}

/// A file or a directory: its durable state and the unsynced changes.
#[derive(Debug, Clone)]
enum DiskNode {
    File {
        durable: Vec<u8>,
        pending: Vec<FileUpdate>,
        /// The length that programs see.
        length: usize,
    },
    Directory {
        durable: BTreeMap<OsString, usize>,
        pending: Vec<DirectoryUpdate>,
    },
}

/// An unsynced change of a file.
#[derive(Debug, Clone)]
enum FileUpdate {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

/// An unsynced change of a directory.
#[derive(Debug, Clone)]
enum DirectoryUpdate {
    Add(OsString, usize),
    Remove(OsString),
    Rename(OsString, OsString, usize),
}

/// A disk that starts with an empty root directory.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    nodes: Vec<DiskNode>,
    /// The paths that programs see.
    names: BTreeMap<PathBuf, usize>,
}

impl SimulatedDisk {
    pub fn new(root: &Path) -> Self {
        let nodes = vec![DiskNode::Directory { durable: BTreeMap::new(), pending: Vec::new() }];
        Self { nodes, names: BTreeMap::from([(root.to_owned(), 0)]) }
    }

    pub fn apply_operation(&mut self, operation: &FileOperation) {
        match operation {
            FileOperation::MakeDirectory(path) => {
                self.add_node(path, DiskNode::Directory { durable: BTreeMap::new(), pending: Vec::new() })
            }
            FileOperation::Create(path) if !self.names.contains_key(path) => {
                self.add_node(path, DiskNode::File { durable: Vec::new(), pending: Vec::new(), length: 0 });
            }
            FileOperation::Write(path, offset, bytes) => {
                self.update_file(path, FileUpdate::Bytes(*offset, bytes.clone()))
            }
            FileOperation::Append(path, bytes) => {
                let end = self.file_length(path);
                self.update_file(path, FileUpdate::Bytes(end, bytes.clone()));
            }
            FileOperation::Truncate(path, length) => self.update_file(path, FileUpdate::Length(*length)),
            FileOperation::Sync(path) => self.sync(path),
            FileOperation::Rename(from, to) => self.rename(from, to),
            FileOperation::Link(from, to) => {
                if let Some(number) = self.names.get(from).copied() {
                    self.names.insert(to.clone(), number);
                    self.update_directory(to, DirectoryUpdate::Add(file_name_of(to), number));
                }
            }
            FileOperation::Remove(path) => {
                self.names.remove(path);
                self.update_directory(path, DirectoryUpdate::Remove(file_name_of(path)));
            }
            FileOperation::Create(_) | FileOperation::Print(_) => {}
        }
    }

    fn add_node(&mut self, path: &Path, node: DiskNode) {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.names.insert(path.to_owned(), number);
        self.update_directory(path, DirectoryUpdate::Add(file_name_of(path), number));
    }

    fn update_file(&mut self, path: &Path, update: FileUpdate) {
        let Some(number) = self.names.get(path) else { return };
        if let DiskNode::File { pending, length, .. } = &mut self.nodes[*number] {
            *length = match &update {
                FileUpdate::Bytes(offset, bytes) => (*length).max(offset + bytes.len()),
                FileUpdate::Length(new) => *new,
            };
            pending.push(update);
        }
    }

    fn file_length(&self, path: &Path) -> usize {
        match self.names.get(path).map(|number| &self.nodes[*number]) {
            Some(DiskNode::File { length, .. }) => *length,
            _ => 0,
        }
    }

    fn update_directory(&mut self, path: &Path, update: DirectoryUpdate) {
        let parent = path.parent().and_then(|parent| self.names.get(parent));
        if let Some(DiskNode::Directory { pending, .. }) = parent.map(|number| &mut self.nodes[*number]) {
            pending.push(update);
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        assert_eq!(from.parent(), to.parent(), "only within a directory");
        let paths: Vec<PathBuf> = self.names.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in paths {
            let number = self.names.remove(&path).unwrap();
            let rest = path.strip_prefix(from).unwrap();
            self.names.insert(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }, number);
        }
        let number = self.names[to];
        self.update_directory(to, DirectoryUpdate::Rename(file_name_of(from), file_name_of(to), number));
    }

    fn sync(&mut self, path: &Path) {
        let Some(number) = self.names.get(path) else { return };
        match &mut self.nodes[*number] {
            DiskNode::File { durable, pending, .. } => {
                pending.drain(..).for_each(|update| apply_file_update(durable, &update, |_| true))
            }
            DiskNode::Directory { durable, pending } => {
                pending.drain(..).for_each(|entry| apply_directory_update(durable, entry))
            }
        }
    }

    /// Writes the files that remain after a power loss into a directory.
    pub fn lose_power(&self, unsynced: UnsyncedData, random: &mut RandomGenerator, to: &Path) {
        self.write_node(0, unsynced, random, to);
    }

    fn write_node(&self, number: usize, unsynced: UnsyncedData, random: &mut RandomGenerator, to: &Path) {
        match &self.nodes[number] {
            DiskNode::File { durable, pending, .. } => {
                let mut bytes = durable.clone();
                for update in pending.iter().filter(|_| unsynced != UnsyncedData::Nothing) {
                    if random.next_bool() {
                        apply_file_update(&mut bytes, update, |_| unsynced != UnsyncedData::Torn || random.next_bool());
                    }
                }
                fs::write(to, bytes).unwrap();
            }
            DiskNode::Directory { durable, pending } => {
                let mut entries = durable.clone();
                // A file system keeps the order of name changes.
                let count = if unsynced == UnsyncedData::Nothing { 0 } else { random.next_below(pending.len() + 1) };
                pending.iter().take(count).for_each(|entry| apply_directory_update(&mut entries, entry.clone()));
                fs::create_dir_all(to).unwrap();
                for (name, number) in entries {
                    // The shared memory of the store is lost.
                    if !name.as_encoded_bytes().ends_with(b"-shm") {
                        self.write_node(number, unsynced, random, &to.join(name));
                    }
                }
            }
        }
    }
}

fn file_name_of(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}

/// Applies a change to the content of a file, limited to the sectors that are kept.
fn apply_file_update(file: &mut Vec<u8>, update: &FileUpdate, mut keeps_sector: impl FnMut(usize) -> bool) {
    match update {
        FileUpdate::Length(length) => file.resize(*length, 0),
        FileUpdate::Bytes(offset, bytes) => {
            let mut written = 0;
            while written < bytes.len() {
                let position = offset + written;
                let count = (SECTOR_SIZE - position % SECTOR_SIZE).min(bytes.len() - written);
                if keeps_sector(position / SECTOR_SIZE) {
                    file.resize(file.len().max(position + count), 0);
                    file[position..position + count].copy_from_slice(&bytes[written..written + count]);
                }
                written += count;
            }
        }
    }
}

fn apply_directory_update(entries: &mut BTreeMap<OsString, usize>, update: DirectoryUpdate) {
    match update {
        DirectoryUpdate::Add(name, number) => drop(entries.insert(name, number)),
        DirectoryUpdate::Remove(name) => drop(entries.remove(&name)),
        DirectoryUpdate::Rename(from, to, number) => {
            entries.remove(&from);
            entries.insert(to, number);
        }
    }
}

/// A reproducible random number generator (splitmix64).
#[derive(Debug, Clone)]
pub struct RandomGenerator(pub u64);

impl RandomGenerator {
    fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn next_bool(&mut self) -> bool {
        self.next_number() & 1 == 1
    }

    pub fn next_below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next_number() % bound as u64).unwrap()
    }
}

#[test]
fn truncated_and_appended_file_survives_power_loss_after_sync() {
    let (root, file) = (Path::new("/w"), PathBuf::from("/w/a"));
    let mut disk = SimulatedDisk::new(root);
    let durable_content = |disk: &SimulatedDisk| {
        let restored = tempfile::tempdir().unwrap();
        disk.lose_power(UnsyncedData::Nothing, &mut RandomGenerator(1), restored.path());
        fs::read_to_string(restored.path().join("a")).ok()
    };
    let sync = |disk: &mut SimulatedDisk| {
        disk.apply_operation(&FileOperation::Sync(file.clone()));
        durable_content(disk)
    };
    let append = |text: &str| FileOperation::Append(file.clone(), text.as_bytes().to_vec());
    disk.apply_operation(&FileOperation::Create(file.clone()));
    disk.apply_operation(&append("one "));
    disk.apply_operation(&append("two"));
    assert_eq!(sync(&mut disk), None, "its name is not");
    disk.apply_operation(&FileOperation::Sync(root.to_owned()));
    assert_eq!(durable_content(&disk).as_deref(), Some("one two"));
    disk.apply_operation(&FileOperation::Truncate(file.clone(), 0));
    disk.apply_operation(&append("three"));
    assert_eq!(durable_content(&disk).as_deref(), Some("one two"));
    assert_eq!(sync(&mut disk).as_deref(), Some("three"));
}
