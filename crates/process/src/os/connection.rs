//! The process at the other end of a connection on this machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::Pid;

use super::proc;
use crate::file::read_kernel_file;

/// The state of an established connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// A row of the kernel's table of connections.
struct SocketRow {
    state: String,
    user: u32,
    inode: u64,
}

/// Returns whether a connection may come from a process that is, or descends from, one with this command line. `peer` and `local`
/// are the addresses as the server sees them. A connection of this machine counts unless its process is found and is another one:
/// a client that has closed its end already, or hides its files, would pass otherwise.
pub(crate) fn is_connection_below_program(words: &[&[u8]], peer: SocketAddr, local: SocketAddr) -> bool {
    let Some(row) = find_socket_row(peer, local) else { return peer.ip().to_canonical().is_loopback() };
    if row.state != ESTABLISHED || row.inode == 0 {
        return true;
    }
    let owners = find_socket_owners(row.inode);
    if owners.is_empty() {
        // The files of another user's processes cannot be seen. Our agents are processes of this user.
        return row.user == rustix::process::geteuid().as_raw();
    }
    owners.into_iter().any(|pid| {
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

/// Finds the row of the client's socket.
fn find_socket_row(client: SocketAddr, server: SocketAddr) -> Option<SocketRow> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let text = String::from_utf8(read_kernel_file(table.as_ref()).ok()?).ok()?;
        let is_wide = table.ends_with('6');
        let (client, server) = (format_address(client, is_wide), format_address(server, is_wide));
        text.lines().find_map(|line| {
            // Number, local and remote address, state, queues, timer, retransmissions, user, timeout, inode.
            let columns: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_it = columns.get(1) == Some(&client.as_str()) && columns.get(2) == Some(&server.as_str());
            is_it.then(|| {
                let state = (*columns.get(3)?).to_owned();
                Some(SocketRow { state, user: columns.get(7)?.parse().ok()?, inode: columns.get(9)?.parse().ok()? })
            })?
        })
    })
}

/// Formats an address as the kernel does: each word of four bytes as a number of this machine.
fn format_address(address: SocketAddr, is_wide: bool) -> String {
    let words = |bytes: &[u8]| -> String {
        let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        words.map(|word| format!("{word:08X}")).collect()
    };
    let ip = match (address.ip().to_canonical(), is_wide) {
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
            assert!(is_connection_below_program(&[b"another", b"program"], peer, local), "a closed client may be any");
        }
    }
}
