//! The filter for system calls: denies the ways out of a sandbox that do not go through a path or a connection.
//!
//! Invariants:
//! - Calls that the list does not name are allowed, so that compilers and interpreters work.
//! - The other calling conventions of the machine (32 bits, x32) are no way around the list.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::launch_setup::SystemCallFilter;

/// Calls that are denied with all arguments: namespaces, mounts, other processes, keys, the kernel, the clock.
const DENIED_CALLS: &[libc::c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Memory, semaphores and queues that a process outside may share. Bubblewrap gives a sandbox its own.
const SHARED_IPC_CALLS: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// `open_tree_attr`, the same number on all machines. `libc` does not have it.
const OPEN_TREE_ATTR: libc::c_long = 467;

const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `TIOCSTI` and `TIOCLINUX`: requests that put words into a terminal, as if the person had typed them.
const TERMINAL_INPUT_REQUESTS: [u64; 2] = [0x5412, 0x541c];

/// `personality` with these numbers reads, or chooses plain Linux, 32 bits or unmoved addresses.
const HARMLESS_PERSONALITIES: [u64; 4] = [0xffff_ffff, 0, 0x0008, 0x0004_0000];

/// The bits of a socket's type that are no flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// The first call number of the x32 convention.
#[cfg(target_arch = "x86_64")]
const X32_CALLS: u32 = 0x4000_0000;

type CallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the programs of the filter. The kernel runs all of them for each call, and the strictest answer wins.
pub(crate) fn build_filter(filter: SystemCallFilter) -> Result<Vec<BpfProgram>, BackendError> {
    let mut denied = CallRules::new();
    let shared_ipc = if filter.denies_shared_ipc { SHARED_IPC_CALLS } else { &[] };
    for call in DENIED_CALLS.iter().chain(shared_ipc) {
        denied.insert(*call, Vec::new());
    }
    let flags = NAMESPACE_FLAGS.map(|flag| u64::from(flag.unsigned_abs()));
    add_rules(&mut denied, libc::SYS_clone, flags.map(|flag| vec![(0, has_bits(flag), flag)]))?;
    let requests = TERMINAL_INPUT_REQUESTS.map(|request| vec![(1, SeccompCmpOp::Eq, request)]);
    add_rules(&mut denied, libc::SYS_ioctl, requests)?;
    add_rules(&mut denied, libc::SYS_personality, [differs_from(0, &HARMLESS_PERSONALITIES)])?;
    // A process may change its own limits; limits of others may end them.
    let new_limits_of_others = vec![(0, SeccompCmpOp::Ne, 0), (2, SeccompCmpOp::Ne, 0)];
    add_rules(&mut denied, libc::SYS_prlimit64, [new_limits_of_others])?;
    add_socket_rules(&mut denied, filter)?;
    // `clone3` has its flags in memory, where a filter cannot look. Programs then use `clone`.
    let missing = CallRules::from([(libc::SYS_clone3, Vec::new())]);
    let mut programs =
        vec![compile_rules(missing, libc::ENOSYS.unsigned_abs())?, compile_rules(denied, libc::EPERM.unsigned_abs())?];
    #[cfg(target_arch = "x86_64")]
    programs.push(deny_x32_calls());
    programs.retain(|program| !program.is_empty());
    Ok(programs)
}

/// Returns why the kernel cannot filter system calls, if it cannot.
pub(crate) fn check_seccomp() -> Result<(), String> {
    match rustix::thread::secure_computing_mode() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the kernel cannot filter system calls: {error}")),
    }
}

/// Adds the rules for sockets: the internet, Unix sockets, and questions about routes.
fn add_socket_rules(denied: &mut CallRules, filter: SystemCallFilter) -> Result<(), BackendError> {
    let number = |constant: libc::c_int| u64::from(constant.unsigned_abs());
    let (unix, netlink) = (number(libc::AF_UNIX), number(libc::AF_NETLINK));
    let internet = [number(libc::AF_INET), number(libc::AF_INET6)];
    let is_internet = || differs_from(0, &[unix, netlink]);
    let has_type = |kind: u64| (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), kind);
    let (stream, datagram) = (number(libc::SOCK_STREAM), number(libc::SOCK_DGRAM));

    let mut rules = vec![
        differs_from(0, &[unix, internet[0], internet[1], netlink]),
        // Of the kernel's interfaces, only the one about addresses and routes.
        vec![(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE))],
        // MPTCP, SCTP and SMC are streams, too, and Landlock does not see them.
        [is_internet(), vec![has_type(stream)], differs_from(2, &[0, number(libc::IPPROTO_TCP)])].concat(),
    ];
    let plain = [libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6].map(number);
    let other_datagrams =
        [is_internet(), vec![has_type(datagram)], differs_from(2, &[0, plain[0], plain[1], plain[2]])];
    rules.push(other_datagrams.concat());
    let is_denied = |kind: &u64| *kind != stream && (*kind != datagram || filter.allows_tcp_only);
    rules.extend((0..=SOCKET_TYPE_MASK).filter(is_denied).map(|kind| [is_internet(), vec![has_type(kind)]].concat()));
    if filter.denies_unix_sockets {
        rules.push(vec![(0, SeccompCmpOp::Eq, unix)]);
    }
    add_rules(denied, libc::SYS_socket, rules)?;

    let pairs = [differs_from(0, &[unix])];
    add_rules(denied, libc::SYS_socketpair, pairs)?;
    if filter.allows_tcp_only {
        // These connect without `connect`, and a listener is reached from outside.
        let fast_open = number(libc::MSG_FASTOPEN);
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            add_rules(denied, call, [vec![(flags, has_bits(fast_open), fast_open)]])?;
        }
        denied.insert(libc::SYS_listen, Vec::new());
    }
    Ok(())
}

/// A comparison of an argument: its position, the comparison, and the value. Only the lower 32 bits count, as in the kernel.
type ArgumentTest = (u8, SeccompCmpOp, u64);

fn has_bits(bits: u64) -> SeccompCmpOp {
    SeccompCmpOp::MaskedEq(bits)
}

fn differs_from(position: u8, values: &[u64]) -> Vec<ArgumentTest> {
    values.iter().map(|value| (position, SeccompCmpOp::Ne, *value)).collect()
}

/// Adds rules for a call. It matches if all tests of one rule do.
fn add_rules(
    rules: &mut CallRules,
    call: libc::c_long,
    alternatives: impl IntoIterator<Item = Vec<ArgumentTest>>,
) -> Result<(), BackendError> {
    for tests in alternatives {
        let conditions = tests
            .into_iter()
            // `prlimit64` gets a pointer, of which all bits count.
            .map(|(position, operator, value)| {
                let is_pointer = call == libc::SYS_prlimit64 && position == 2;
                let length = if is_pointer { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
                SeccompCondition::new(position, length, operator, value)
            })
            .collect::<Result<_, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
    }
    Ok(())
}

fn compile_rules(rules: CallRules, error: u32) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error), architecture)?.try_into()
}

/// Returns a program that denies the calls of x32. Their numbers differ, so the other programs do not know them.
#[cfg(target_arch = "x86_64")]
fn deny_x32_calls() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_GREATER_OR_EQUAL, 0, 1, X32_CALLS),
        step(RETURN, 0, 0, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()).into()),
        step(RETURN, 0, 0, SeccompAction::Allow.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_fits_into_the_kernel_in_each_mode() {
        for mode in 0..8 {
            let filter = SystemCallFilter {
                denies_unix_sockets: mode & 1 != 0,
                allows_tcp_only: mode & 2 != 0,
                denies_shared_ipc: mode & 4 != 0,
            };
            let programs = build_filter(filter).unwrap();
            assert!(programs.iter().all(|program| program.len() < 4096), "{filter:?}");
        }
    }
}
