//! The process at the other end of a connection on this machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::Pid;

use super::proc;
use crate::file::read_kernel_file;

/// The column of the inode in `/proc/net/tcp`.
const INODE_COLUMN: usize = 9;

/// Returns whether a connection comes from a process that is, or descends from, one with this command line. `peer` and `local`
/// are the addresses as the server sees them. A process that cannot be found does not count.
pub(crate) fn is_connection_below_program(words: &[&[u8]], peer: SocketAddr, local: SocketAddr) -> bool {
    let Some(inode) = find_socket_inode(peer, local) else { return false };
    find_socket_owners(inode).into_iter().any(|pid| {
        let mut next = Some(pid);
        while let Some(pid) = next {
            if proc::read_command_line(pid).is_some_and(|found| found == words) {
                return true;
            }
            next = proc::read_process(pid).and_then(|process| Pid::from_raw(process.parent));
        }
        false
    })
}

/// Returns the inode of the client's socket.
fn find_socket_inode(client: SocketAddr, server: SocketAddr) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let text = String::from_utf8(read_kernel_file(table.as_ref()).ok()?).ok()?;
        let is_wide = table.ends_with('6');
        let (client, server) = (format_address(client, is_wide), format_address(server, is_wide));
        text.lines().find_map(|line| {
            let mut columns = line.split_ascii_whitespace();
            let is_it = columns.nth(1) == Some(&client) && columns.next() == Some(&server);
            is_it.then(|| columns.nth(INODE_COLUMN - 3)?.parse().ok()).flatten()
        })
    })
}

/// Formats an address as the kernel does: each word of four bytes as a number of this machine.
fn format_address(address: SocketAddr, is_wide: bool) -> String {
    let words = |bytes: &[u8]| -> String {
        let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        words.map(|word| format!("{word:08X}")).collect()
    };
    let ip = match (address.ip(), is_wide) {
        (IpAddr::V4(ip), true) => words(&Ipv4Addr::to_ipv6_mapped(&ip).octets()),
        (IpAddr::V4(ip), false) => words(&ip.octets()),
        (IpAddr::V6(ip), _) => words(&Ipv6Addr::octets(&ip)),
    };
    format!("{ip}:{:04X}", address.port())
}

/// Returns the processes that have a socket open.
fn find_socket_owners(inode: u64) -> Vec<Pid> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| {
        let files = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
        files
            .into_iter()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connection_of_this_process_is_found_by_its_command_line() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).expect("a free port");
            let local = listener.local_addr().expect("an address");
            let client = TcpStream::connect(local).expect("a connection");
            let (_server, peer) = listener.accept().expect("the connection");
            assert_eq!(client.local_addr().expect("an address"), peer);
            let own = proc::read_command_line(rustix::process::getpid()).expect("this process");
            let own: Vec<&[u8]> = own.iter().map(|word| &word[..]).collect();
            assert!(is_connection_below_program(&own, peer, local), "{address}");
            assert!(!is_connection_below_program(&[b"another", b"program"], peer, local), "{address}");
            drop(client);
        }
    }
}
