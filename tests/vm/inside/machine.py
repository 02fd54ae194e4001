# SPDX-License-Identifier: Apache-2.0
"""The machine as its kernel shows it."""
import contextlib
import pathlib
import re

IRQS, NETS, CPUS = pathlib.Path("/proc/irq"), pathlib.Path("/sys/class/net"), pathlib.Path("/sys/devices/system/cpu")


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip()


def cpus(text):
    """A set from a list like 0-3,8."""
    numbers = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def online():
    return cpus(read(CPUS / "online"))


def function_of(nic):
    """The NIC's PCI function: virtio puts a device of its own in between."""
    path = (NETS / nic / "device").resolve()
    while not (path / "msi_irqs").is_dir():
        path = path.parent
    return path


def node_cpus(nic):
    return cpus(read(function_of(nic) / "local_cpulist"))


def is_data(label):
    return not re.search(r"-config$|-event-|^ens[0-9v]+$", label)


def data_irqs(nic):
    """{number: label} of the NIC's interrupts that carry packets."""
    found = {}
    for entry in (function_of(nic) / "msi_irqs").iterdir():
        for label in (path.name for path in (IRQS / entry.name).iterdir() if path.is_dir()):
            if is_data(label):
                found[int(entry.name)] = label
    return found


def requested(irq):
    return cpus(read(IRQS / str(irq) / "smp_affinity_list"))


def effective(irq):
    return cpus(read(IRQS / str(irq) / "effective_affinity_list"))


def counters():
    """{interrupt: {CPU: count}}."""
    head, *lines = read("/proc/interrupts").splitlines()
    columns = [int(word.removeprefix("CPU")) for word in head.split()]
    table = {}
    for line in lines:
        name, _, rest = line.partition(":")
        if name.strip().isdigit():
            table[int(name)] = dict(zip(columns, map(int, rest.split()[:len(columns)])))
    return table


def threads(pid):
    return [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def allowed(pid):
    """The masks of all threads of a process, in one set."""
    found = set()
    for tid in threads(pid):
        listed = re.search(r"^Cpus_allowed_list:\s*(\S*)", read(f"/proc/{pid}/task/{tid}/status"), re.MULTILINE)
        found |= cpus(listed[1])
    return found


def interrupt_masks():
    """{interrupt: list of CPUs} of every line of the machine, not only those of interfaces."""
    return {f"irq {folder.name}": read(folder / "smp_affinity_list") for folder in IRQS.iterdir() if folder.is_dir()}


WORKQUEUE = 0x20  # PF_WQ_WORKER


def task_masks():
    """{task and its start time: list of CPUs}, but not of workqueues: the kernel moves these, on a busy machine also their rescuers."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            fields = read(folder / "stat").rpartition(")")[2].split()
            listed = re.search(r"^Cpus_allowed_list:\s*(\S*)", read(folder / "status"), re.MULTILINE)
            if listed and not int(fields[6]) & WORKQUEUE:
                found[f"task {folder.name} since {fields[19]}"] = listed[1]
    return found


def steering(nic):
    """{file: mask} of RPS and XPS; a NIC with a single queue has a file for XPS that cannot be read."""
    found = {}
    for path in sorted((NETS / nic / "queues").glob("*/[rx]ps_cpus")):
        with contextlib.suppress(FileNotFoundError):
            found[f"{nic} {path.parent.name} {path.name}"] = read(path)
    return found
