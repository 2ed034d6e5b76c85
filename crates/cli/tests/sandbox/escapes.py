"""Attempts to leave a sandbox, and the runner for them.

Each function below with `@escape` does its normal work first: it writes a file in the working directory. Then it tries to leave. It
returns whether it has, or raises an OSError. Another exception is a mistake in this file.

    escapes.py SETTING.json            in a sandbox: prints "NAME refused", "NAME escaped" or "NAME broken: …" for each
    escapes.py SETTING.json --control  outside, for the attempts that do no harm: prints the same
"""

import ctypes
import errno
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys

with open(sys.argv[1]) as file:
    SETTING = json.load(file)
OUTSIDE, HOME, PROJECT, STATE = (SETTING[name] for name in ("outside", "home", "project", "state"))
VICTIM = SETTING["victim"]
SECRET = "secret-of-the-person"
ESCAPES = []
LIBC = ctypes.CDLL(None, use_errno=True)
IS_X86 = platform.machine() == "x86_64"


def escape(control=True, backend=None):
    """Registers an attempt. `control`: outside of a sandbox it succeeds and does no harm."""

    def register(function):
        ESCAPES.append((function.__name__, function, control, backend))
        return function

    return register


def read(path):
    with open(path, "rb") as file:
        return SECRET.encode() in file.read(1 << 20)


def write(path, text="changed by a program in a sandbox"):
    with open(path, "a") as file:
        file.write(text)
    return True


def call(x86, other, *arguments):
    """Makes a system call, and raises its error."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = LIBC.syscall(ctypes.c_long(x86 if IS_X86 else other), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "system call")
    return result


def reaches_kernel(x86, other, *arguments):
    """Returns whether a system call gets as far as its arguments, which are wrong."""
    try:
        call(x86, other, *arguments)
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.ENOSYS)
    return True


# Files outside.


@escape()
def write_file_outside():
    return write(f"{OUTSIDE}/file")


@escape()
def create_file_outside():
    return write(f"{OUTSIDE}/new-file")


@escape()
def truncate_file_outside():
    os.truncate(f"{OUTSIDE}/file", 0)
    return True


@escape()
def remove_file_outside():
    os.unlink(f"{OUTSIDE}/removable")
    return True


@escape()
def create_directory_outside():
    os.mkdir(f"{OUTSIDE}/directory")
    return True


@escape()
def create_link_outside():
    os.symlink("file", f"{OUTSIDE}/link")
    return True


@escape()
def create_pipe_outside():
    os.mkfifo(f"{OUTSIDE}/pipe")
    return True


# Landlock has no right for it.
@escape(backend="bubblewrap")
def change_mode_outside():
    os.chmod(f"{OUTSIDE}/file", 0o666)
    return True


@escape()
def write_shell_profile():
    return write(f"{HOME}/.bashrc")


@escape()
def write_new_shell_profile():
    return write(f"{HOME}/.zshenv")


@escape()
def write_program_directory():
    return write(f"{HOME}/.local/bin/git")


@escape()
def write_systemd_unit():
    return write(f"{HOME}/.config/systemd/user/escape.service")


@escape()
def write_autostart_entry():
    return write(f"{HOME}/.config/autostart-escape.desktop")


@escape(control=False)
def write_crontab():
    return write("/etc/cron.d/windlass-escape", "")


@escape(control=False)
def write_at_job():
    return write("/var/spool/windlass-escape", "")


@escape(control=False)
def write_system_file():
    return write("/etc/windlass-escape", "")


# Secrets.


@escape()
def read_ssh_key():
    return read(f"{HOME}/.ssh/id_ed25519")


@escape()
def list_ssh_directory():
    return bool(os.listdir(f"{HOME}/.ssh"))


@escape()
def read_cloud_credentials():
    return read(f"{HOME}/.aws/credentials")


@escape()
def read_netrc():
    return read(f"{HOME}/.netrc")


@escape()
def read_git_credentials():
    return read(f"{HOME}/.git-credentials")


@escape()
def read_shell_history():
    return read(f"{HOME}/.bash_history")


@escape()
def read_agent_login():
    return read(f"{HOME}/.claude/.credentials.json")


@escape()
def read_forge_login():
    return read(f"{HOME}/.config/gh/hosts.yml")


@escape()
def read_registry_token():
    return read(f"{HOME}/.npmrc")


@escape(control=False)
def read_password_hashes():
    with open("/etc/shadow") as file:
        return bool(file.read())


@escape()
def read_hidden_file():
    return read(f"{PROJECT}/conf/secret")


@escape()
def read_store():
    with open(f"{PROJECT}/.windlass/windlass.db", "rb") as file:
        return file.read(6) == b"SQLite"


@escape()
def write_store():
    return write(f"{PROJECT}/.windlass/windlass.db", "")


@escape()
def write_project_configuration():
    return write(f"{PROJECT}/.windlass/config.yaml", "")


@escape()
def create_file_in_project_directory():
    return write(f"{PROJECT}/.windlass/escape.yaml", "")


@escape()
def read_state_directory():
    return read(f"{STATE}/secret")


@escape()
def write_state_directory():
    return write(f"{STATE}/trusted", "")


@escape()
def read_temporary_file_of_other():
    return read(SETTING["temporary"])


@escape()
def write_temporary_file_of_other():
    return write(SETTING["temporary"], "")


@escape()
def read_shared_memory_file():
    return read(SETTING["shared_memory"])


# Other names for the same file.


@escape()
def read_through_new_link():
    os.symlink(f"{HOME}/.ssh/id_ed25519", "src/new-link")
    return read("src/new-link")


@escape()
def write_through_new_link():
    os.symlink(f"{OUTSIDE}/file", "src/new-write-link")
    return write("src/new-write-link")


@escape()
def write_through_old_link():
    return write("src/link-outside")


@escape()
def write_through_parent():
    return write("src/../../outside/file")


@escape()
def hard_link_to_secret():
    os.link(f"{HOME}/.netrc", "src/hard-link")
    return read("src/hard-link")


@escape()
def hard_link_to_file_outside():
    os.link(f"{OUTSIDE}/file", "src/hard-link-outside")
    return write("src/hard-link-outside")


@escape()
def rename_file_into_project():
    os.rename(f"{OUTSIDE}/movable", "src/moved")
    return True


@escape()
def rename_file_out_of_project():
    write("src/payload")
    os.rename("src/payload", f"{OUTSIDE}/payload")
    return True


@escape()
def rename_directory_around_hidden_file():
    os.rename("conf", "conf-moved")
    os.rename("conf-moved", "conf")
    return True


@escape()
def replace_hidden_file():
    write("src/replacement")
    os.rename("src/replacement", "conf/secret")
    return True


@escape()
def bind_file_of_process():
    return read(f"/proc/self/root{HOME}/.netrc")


# Git.


@escape()
def write_git_hook():
    return write(".git/hooks/post-checkout")


@escape()
def write_git_configuration():
    return write(".git/config", "\n")


@escape()
def replace_git_configuration():
    write("src/config", "\n")
    os.rename("src/config", ".git/config")
    return True


@escape()
def write_git_attributes():
    return write(".git/info/attributes")


@escape()
def redirect_git_directory():
    return write(".git/commondir", "../src")


@escape()
def rename_git_directory():
    os.rename(".git", ".git-moved")
    os.rename(".git-moved", ".git")
    return True


@escape()
def write_other_worktree():
    return write(f"{PROJECT}-other/file")


# Mounts and namespaces.

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000


@escape(control=False)
def mount_directory():
    if LIBC.mount(OUTSIDE.encode(), os.path.abspath("src").encode(), None, 4096, None) < 0:
        raise OSError(ctypes.get_errno(), "mount")
    return True


@escape(control=False)
def unmount_hidden_directory():
    if LIBC.umount2(f"{HOME}/.ssh".encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "umount")
    return True


@escape()
def open_file_system():
    return reaches_kernel(430, 430, 0, 0)


@escape()
def open_mount_tree():
    return reaches_kernel(428, 428, -1, 0, 0)


@escape()
def move_mount():
    return reaches_kernel(429, 429, -1, 0, -1, 0, 0)


@escape()
def change_mount_attributes():
    return reaches_kernel(442, 442, -1, 0, 0, 0, 0)


@escape()
def pivot_root():
    return reaches_kernel(155, 41, 0, 0)


@escape()
def change_root():
    return reaches_kernel(161, 51, 0)


@escape(control=False)
def unshare_user_namespace():
    if LIBC.unshare(CLONE_NEWUSER) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return True


@escape(control=False)
def clone_user_namespace():
    child = call(56, 220, CLONE_NEWUSER | int(signal.SIGCHLD), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@escape()
def clone_with_flags_in_memory():
    return reaches_kernel(435, 435, 0, 0)


@escape()
def enter_namespace():
    return reaches_kernel(308, 268, -1, 0)


# Other processes.


@escape()
def read_environment_of_process():
    return read(f"/proc/{VICTIM}/environ")


@escape()
def read_root_of_process():
    return read(f"/proc/{VICTIM}/root{HOME}/.netrc")


@escape()
def read_directory_of_process():
    return read(f"/proc/{VICTIM}/cwd/.netrc")


@escape()
def read_memory_of_process():
    with open(f"/proc/{VICTIM}/mem", "rb"):
        return True


@escape()
def read_open_file_of_process():
    return bool(os.readlink(f"/proc/{VICTIM}/fd/0"))


@escape(control=False)
def read_root_of_first_process():
    return read(f"/proc/1/root{HOME}/.netrc")


@escape()
def trace_process():
    return reaches_kernel(101, 117, 99, VICTIM, 0, 0)


@escape()
def read_memory_by_call():
    return reaches_kernel(310, 270, VICTIM, 0, 0, 0, 0, 99)


@escape()
def write_memory_by_call():
    return reaches_kernel(311, 271, VICTIM, 0, 0, 0, 0, 99)


@escape()
def compare_processes():
    return reaches_kernel(312, 272, VICTIM, VICTIM, 99, 0, 0)


@escape()
def signal_process():
    os.kill(VICTIM, signal.SIGCONT)
    return True


@escape(control=False)
def signal_all_processes():
    # Only processes of the sandbox may get it, and this one ignores it.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.kill(-SETTING["victim_group"], signal.SIGUSR1)
    return True


@escape()
def signal_by_descriptor():
    descriptor = call(434, 434, VICTIM, 0)
    call(424, 424, descriptor, int(signal.SIGCONT), 0, 0)
    return True


@escape()
def take_descriptor_of_process():
    return reaches_kernel(438, 438, -1, 0, 0)


@escape()
def limit_other_process():
    # RLIMIT_CORE, with limits that cannot be read.
    return reaches_kernel(302, 261, VICTIM, 4, 1, 0)


# The kernel.


@escape()
def write_core_pattern():
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@escape()
def write_kernel_setting():
    os.close(os.open("/proc/sys/vm/overcommit_memory", os.O_WRONLY))
    return True


@escape(control=False)
def trigger_kernel_request():
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    return True


@escape(control=False)
def write_control_group():
    os.mkdir("/sys/fs/cgroup/windlass-escape")
    return True


@escape()
def write_kernel_object():
    os.close(os.open("/sys/kernel/profiling", os.O_WRONLY) if os.path.exists("/sys/kernel/profiling") else
             os.open("/sys/kernel/uevent_helper", os.O_WRONLY))
    return True


@escape(control=False)
def open_disk_or_memory():
    for name in sorted(os.listdir("/sys/class/block")) + ["mem", "port", "kmsg"]:
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDONLY))
            return True
        except OSError:
            pass
    return False


@escape(control=False)
def make_disk_node():
    major, minor = map(int, open(f"/sys/class/block/{os.listdir('/sys/class/block')[0]}/dev").read().split(":"))
    os.mknod("src/disk", 0o60600, os.makedev(major, minor))
    os.close(os.open("src/disk", os.O_RDONLY))
    return True


@escape()
def add_key():
    return reaches_kernel(248, 217, 0, 0, 0, 0, 0)


@escape()
def request_key():
    return reaches_kernel(249, 218, 0, 0, 0, 0)


@escape()
def control_keys():
    return reaches_kernel(250, 219, 9999, 0, 0, 0, 0)


@escape()
def set_up_io_uring():
    return reaches_kernel(425, 425, 0, 0)


@escape()
def load_bpf_program():
    return reaches_kernel(321, 280, 9999, 0, 0)


@escape()
def measure_performance():
    return reaches_kernel(298, 241, 0, 0, -1, -1, 0)


@escape()
def handle_page_faults():
    return reaches_kernel(323, 282, 0x7FFF)


@escape()
def open_by_handle():
    return reaches_kernel(304, 265, -1, 0, 0)


@escape(control=False)
def load_kernel():
    return reaches_kernel(246, 104, 0, 99, 0, 0x7FFF)


@escape(control=False)
def load_module():
    return reaches_kernel(313, 273, -1, 0, 99)


@escape()
def swap_to_file():
    return reaches_kernel(167, 224, 0, 0)


@escape()
def reboot():
    return reaches_kernel(169, 142, 0, 0, 0, 0)


@escape()
def set_clock():
    return reaches_kernel(227, 112, 0, 0)


@escape()
def write_accounting_file():
    return reaches_kernel(163, 89, 1)


@escape()
def change_quota():
    return reaches_kernel(179, 60, 0x7FFF, 0, 0, 0)


@escape()
def change_personality():
    return call(135, 92, 0x0400000) >= 0


@escape(control=False)
def use_calls_of_x32():
    return IS_X86 and reaches_kernel(0x40000000 + 165, 0, 0, 0, 0, 0, 0)


@escape()
def type_into_terminal():
    return reaches_kernel(16, 29, 0, 0x5412, 0)


@escape()
def select_in_terminal():
    return reaches_kernel(16, 29, 0, 0x541C, 0)


@escape()
def type_into_terminal_with_high_bits():
    return reaches_kernel(16, 29, 0, 0x100005412, 0)


@escape(control=False)
def keep_privileges():
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    # Only root has the right to clear the bounding set, and without new privileges it adds nothing.
    sets = ["Eff", "Prm", "Inh", "Amb"] + ["Bnd"] * (os.getuid() == 0)
    held = [kind for kind in sets if int(status[f"Cap{kind}"], 16)]
    return int(status["NoNewPrivs"]) != 1 or bool(held)


@escape(control=False)
def become_other_user():
    os.setresuid(12345, 12345, 12345)
    return True


# The network.


def echo(kind, family, address, protocol=0):
    """Returns whether a server outside answers."""
    with socket.socket(family, kind, protocol) as client:
        client.settimeout(0.5)
        client.connect(address)
        client.send(b"hello")
        return client.recv(16) == b"hello"


@escape()
def connect_to_loopback():
    return echo(socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", SETTING["tcp_port"]))


@escape()
def connect_over_ipv6():
    return echo(socket.SOCK_STREAM, socket.AF_INET6, ("::1", SETTING["tcp6_port"]))


@escape()
def send_datagram():
    return echo(socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", SETTING["udp_port"]))


@escape()
def connect_with_first_packet():
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 500_000))
        client.sendto(b"hello", 0x20000000, ("127.0.0.1", SETTING["tcp_port"]))
        return client.recv(16) == b"hello"


@escape(control=False)
def connect_over_several_paths():
    return echo(socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", SETTING["tcp_port"]), 262)


@escape(control=False)
def be_reached_from_outside():
    with socket.socket() as server:
        server.bind(("127.0.0.1", SETTING["inbound_port"]))
        server.listen()
        server.settimeout(0.5)
        return bool(server.accept())


@escape(control=False)
def resolve_name():
    return bool(socket.getaddrinfo("example.com", 443))


@escape()
def open_raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


@escape()
def open_packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM).close()
    return True


@escape(control=False)
def open_socket_to_host():
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


@escape(control=False)
def open_socket_to_ciphers():
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


@escape()
def change_network_device():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        # RTM_NEWLINK for the loopback device, with an acknowledgement and no changes.
        kernel.send(struct.pack("=IHHII", 32, 16, 5, 1, 0) + struct.pack("=BxHiII", 0, 0, 1, 0, 0))
        answer = kernel.recv(256)
        return struct.unpack("=i", answer[16:20])[0] == 0


@escape()
def list_sockets_of_machine():
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4).close()
    return True


@escape()
def connect_to_socket_outside():
    return echo(socket.SOCK_STREAM, socket.AF_UNIX, f"{OUTSIDE}/docker.sock")


@escape()
def connect_to_socket_in_home():
    return echo(socket.SOCK_STREAM, socket.AF_UNIX, f"{HOME}/bus")


@escape()
def connect_to_abstract_socket():
    return echo(socket.SOCK_STREAM, socket.AF_UNIX, "\0" + SETTING["abstract"])


@escape()
def attach_shared_memory():
    LIBC.shmat.restype = ctypes.c_void_p
    segment = LIBC.shmget(SETTING["memory_key"], 0, 0)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    address = LIBC.shmat(segment, None, 0o10000)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "shmat")
    return SECRET.encode() in ctypes.string_at(address, 64)


# The sandbox itself.


@escape()
def read_inherited_descriptor():
    return SECRET.encode() in os.read(9, 100)


@escape()
def write_inherited_descriptor():
    return os.write(8, b"x") > 0


@escape(control=False)
def change_launcher():
    os.close(os.open(SETTING["windlass"], os.O_WRONLY))
    return True


@escape(control=False)
def replace_launcher():
    write("src/windlass")
    os.rename("src/windlass", SETTING["windlass"])
    return True


@escape(control=False)
def change_bubblewrap():
    os.close(os.open("/usr/bin/bwrap", os.O_WRONLY))
    return True


def launch_again(environment):
    setup = {
        "landlock": None,
        "system_calls": {"denies_unix_sockets": False, "allows_tcp_only": False, "denies_shared_ipc": False},
        "limits": {"memory_bytes": None, "processes": None, "open_files": None, "cpu_seconds": None},
        "temporary": "/tmp",
        "forwarder": None,
    }
    script = f"cat {HOME}/.netrc; echo >> {OUTSIDE}/file"
    words = [SETTING["windlass"], "sandbox-launch", json.dumps(setup), "sh", "-c", script]
    output = subprocess.run(words, capture_output=True, env={**os.environ, **environment})
    return output.returncode == 0 or SECRET.encode() in output.stdout


@escape()
def launch_with_wider_setup():
    return launch_again({})


@escape()
def launch_with_preloaded_library():
    return launch_again({"LD_PRELOAD": os.path.abspath("src/missing.so"), "LD_LIBRARY_PATH": os.path.abspath("src")})


@escape(control=False)
def start_wider_sandbox():
    words = [SETTING["windlass"], "sandbox", "run", "--backend", "landlock", "--write", OUTSIDE, "--"]
    words += ["touch", f"{OUTSIDE}/nested"]
    return subprocess.run(words, capture_output=True).returncode == 0


def attempt(name, function):
    """Runs one attempt in a process of its own, and returns what came of it."""
    output, result = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(output)
        signal.alarm(8)
        try:
            write(f"src/work-{name}", "done")
            with open(f"src/work-{name}") as file:
                assert file.read() == "done"
            word = "escaped" if function() else "refused"
        except OSError as error:
            word = f"refused: {errno.errorcode.get(error.errno, error)}"
        except BaseException as error:
            word = f"broken: {error!r}"
        os.write(result, word.encode())
        os._exit(0)
    os.close(result)
    with os.fdopen(output) as pipe:
        word = pipe.read()
    os.waitpid(child, 0)
    return word or "broken: no answer"


def main():
    is_control = "--control" in sys.argv
    backend = SETTING["backend"]
    for name, function, control, only in ESCAPES:
        if only in (None, backend) and (control or not is_control):
            print(name, attempt(name, function), flush=True)


main()
