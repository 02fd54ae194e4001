# SPDX-License-Identifier: Apache-2.0
"""Eight ttcp receivers, one for each NIC's address, and a sender for each of them on the other end of the wire.

All NICs are in the first network namespace, where the daemon sees them. A sender lives in a namespace of its own, on a macvlan
interface above the NIC at the other end, so that its packets go out on that NIC and come in on the receiver's."""
import pathlib
import subprocess

from harness import run, wait_for
from machine import NETS, read

UNITS = pathlib.Path("/etc/systemd/system")
POLICIES = pathlib.Path("/etc/affinityd/policies.d")
POLICY = "version: 1\nmatch: {{unit: receiver@{0}.service}}\naffinity: {1}\nbind: cpu\n"
UNIT = """[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart={what}
Restart=always
RestartSec=1
{more}
"""
RECEIVE = "/usr/bin/python3 -S /host/inside/receiver.py 10.77.%i.1"
# A small share of a CPU for each sender is enough traffic and leaves time for everything else.
SEND = "/usr/bin/affinity-ttcp -t -s --seconds 86400 --stall 5 --wait 5 10.77.%i.1"
QUOTA = "CPUQuota=6%\nNetworkNamespacePath=/run/netns/peer%i"


def partner(number):
    """NICs 1 and 2, 3 and 4 and so on share a wire."""
    return number + 1 if number % 2 else number - 1


def address(number):
    nic = f"ens{number}"
    run("ip", "address", "replace", f"10.77.{number}.1/24", "dev", nic)
    run("ip", "link", "set", nic, "up")


def far_end(number):
    """The sender's interface for receiver `number`, above the partner NIC."""
    namespace, name = f"peer{number}", f"far{number}"
    if namespace not in run("ip", "netns", "list"):
        run("ip", "netns", "add", namespace)
    run("ip", "link", "add", "link", f"ens{partner(number)}", "name", name, "netns", namespace, "type", "macvlan", "mode", "bridge")
    run("ip", "-n", namespace, "address", "add", f"10.77.{number}.2/24", "dev", name)
    run("ip", "-n", namespace, "link", "set", name, "up")


def wire_up(numbers):
    for number in numbers:
        address(number)
    for number in numbers:
        far_end(number)
    wait_for(lambda: all(read(NETS / f"ens{number}/carrier") == "1" for number in numbers), "all links are up")


def write_units():
    (UNITS / "receiver@.service").write_text(UNIT.format(what=RECEIVE, more=""), encoding="utf-8")
    (UNITS / "sender@.service").write_text(UNIT.format(what=SEND, more=QUOTA), encoding="utf-8")
    run("systemctl", "daemon-reload")


def start(numbers):
    run("systemctl", "start", *(f"receiver@{number}" for number in numbers))
    run("systemctl", "start", *(f"sender@{number}" for number in numbers))


def write_policies(numbers, more="", model="full"):
    nics = "nics: auto\n" if model in ("full", "irq") else ""
    for number in numbers:
        (POLICIES / f"receiver{number}.yaml").write_text(POLICY.format(number, model) + nics + more, encoding="utf-8")


def receivers(numbers):
    """{number: pid}, 0 where none runs."""
    units = [f"receiver@{number}" for number in numbers]
    text = subprocess.run(["systemctl", "show", "-P", "MainPID", *units], capture_output=True, text=True, check=True).stdout
    return dict(zip(numbers, map(int, text.split())))
