# SPDX-License-Identifier: Apache-2.0
"""Network namespaces that a test makes, and veth pairs between them whose packets are taken in by kernel threads (threaded NAPI)."""
import contextlib
import pathlib
import subprocess
import sys

from daemon import wait_for

SIOCETHTOOL, ETHTOOL_SGRO, ETHTOOL_STSO = 0x8946, 0x2c, 0x1f
# A veth has NAPI instances, and so their threads, only with generic receive offload.
THREADED = f"""import array, fcntl, socket, struct, sys
value = array.array("B", struct.pack("II", {ETHTOOL_SGRO}, 1))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, {SIOCETHTOOL}, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
open("/sys/class/net/" + sys.argv[1] + "/threaded", "w").write("1")
"""
# What a veth that segments sends (TSO) is taken in on the sender's CPU, and not by the NAPI of its peer (veth_skb_is_eligible_for_gro()).
WITHOUT_TSO = f"""import array, fcntl, socket, struct, sys
value = array.array("B", struct.pack("II", {ETHTOOL_STSO}, 0))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, {SIOCETHTOOL}, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
"""


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"ip {arguments}: {done.stderr}"
    return done.stdout


def comm(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""


def napi_threads(interface):
    """Kernel threads of the interface, by name. (/proc/2/task/2/children is not reliable while kthreadd runs.)"""
    pids = (entry.name for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
    return sorted(int(pid) for pid in pids if comm(pid).startswith(f"napi/{interface}-"))


class Namespace:
    """A named network namespace; a program started by `ip netns exec` also has the /sys of that namespace."""

    def __init__(self, stack, name):
        self.name = name
        ip("netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)

    def ip(self, *arguments):
        return ip("-n", self.name, *arguments)

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), check=True, capture_output=True, text=True, timeout=30).stdout.strip()


def make_threaded(namespace, interface, queues=1):
    """Its packets are taken in by a kernel thread for each queue from now on."""
    namespace.run(sys.executable, "-c", THREADED, interface)
    wait_for(lambda: len(napi_threads(interface)) == queues, "the threads that poll the interface are there")


def send_to_napi(namespace, interface):
    """What it sends is taken in by its peer's NAPI from now on."""
    namespace.run(sys.executable, "-c", WITHOUT_TSO, interface)
