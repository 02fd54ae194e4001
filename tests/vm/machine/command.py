# SPDX-License-Identifier: Apache-2.0
"""QEMU's command line for a shape."""
import shlex

from machine.shapes import KINDS

KERNEL_OPTIONS = ("console=ttyS0 rw panic=-1 quiet loglevel=4 tsc=reliable mitigations=off 8250.nr_uarts=1 no_timer_check audit=0 "
                  "systemd.show_status=0 systemd.unit=vm.target")


def _processor(shape):
    present = shape.cpus - shape.spare
    arguments = ["-cpu", shape.processor, "-m", str(shape.memory), "-smp",
                 f"{present},maxcpus={shape.cpus},sockets={shape.sockets},dies={shape.dies},cores={shape.cores},threads={shape.threads}"]
    for node in range(shape.nodes):
        first, last = node * shape.cpus // shape.nodes, (node + 1) * shape.cpus // shape.nodes - 1
        arguments += ["-object", f"memory-backend-ram,id=mem{node},size={shape.memory // shape.nodes}M",
                      "-numa", f"node,nodeid={node},memdev=mem{node},cpus={first}-{last}"]
        arguments += [word for other in range(node) for word in ("-numa", f"dist,src={other},dst={node},val=21")]
    return arguments


def _serials(folder, console):
    """ttyS0: the console, kept in a file; a virtio port: QEMU's monitor. Both ends of the monitor's socket are in QEMU."""
    log = f"logfile={folder}/console,logappend=on"
    front = f"stdio,id=console,signal=off,{log}" if console else f"null,id=console,{log}"
    return ["-chardev", front, "-serial", "chardev:console",
            "-chardev", f"socket,id=monitor,path={folder}/qmp,server=on,wait=off", "-mon", "chardev=monitor,mode=control",
            "-chardev", f"socket,id=guest,path={folder}/qmp", "-device", "virtio-serial-pci",
            "-device", "virtserialport,chardev=guest,name=qmp"]


def nics(shape):
    """(kind, node, wire) of each NIC; NIC i is called ens(i+1) in the guest, by its slot."""
    paired = [(kind, end % shape.nodes, wire) for wire, kind in enumerate(shape.pairs) for end in (0, 1)]
    return paired + [(kind, 0, len(shape.pairs) + index) for index, kind in enumerate(shape.single)]


def nic_device(shape, number):
    """The -device argument of a NIC, which is also what plugs it in again."""
    kind, _, wire = nics(shape)[number]
    driver, _, properties = KINDS[kind]
    address = f"52:54:00:00:{wire:02x}:{number + 1:02x}"
    return ",".join(filter(None, [driver, f"id=nic{number},bus=port{number},netdev=net{number},mac={address},romfile=", properties]))


def nic_devices(shape):
    return [nic_device(shape, number) for number in range(len(nics(shape)))]


def _network(shape):
    arguments = [word for node in range(shape.nodes)
                 for word in ("-device", f"pxb-pcie,id=root{node},bus=pcie.0,bus_nr={32 * (node + 1)},numa_node={node}")]
    for number, (kind, node, wire) in enumerate(nics(shape)):
        queues = KINDS[kind][1]
        back = f"tap,id=net{number},ifname=tap{number},script=no,downscript=no,queues={queues}" if queues \
            else f"hubport,id=net{number},hubid={wire}"
        arguments += ["-device", f"pcie-root-port,id=port{number},bus=root{node},chassis={number + 1},slot={number + 1}",
                      "-netdev", back, "-device", nic_device(shape, number)]
    return arguments


def _lines(shape):
    """Slots whose numbers differ by four have the same interrupt pin."""
    if not shape.lines:
        return []
    arguments = ["-device", "pcie-pci-bridge,id=lines,bus=pcie.0,addr=0x10"]
    for number in range(shape.lines):
        arguments += ["-netdev", f"hubport,id=line{number},hubid=100", "-device",
                      f"rtl8139,id=line{number},bus=lines,addr={1 + 4 * number},netdev=line{number},mac=52:54:00:01:00:{number + 1:02x},romfile="]
    return [*arguments, "-device", f"pci-ohci,bus=lines,addr={1 + 4 * shape.lines}"]


def _wiring(shape):
    """Commands that connect the taps, for a network namespace that ends with QEMU."""
    lines = []
    for number, (kind, _, wire) in enumerate(nics(shape)):
        if KINDS[kind][1]:
            bridge = f"ip link add wire{wire} type bridge mcast_snooping 0 && ip link set wire{wire} up"
            lines += [f"[ -e /proc/sys/net/ipv4/conf/wire{wire} ] || {{ {bridge}; }}",
                      f"ip tuntap add tap{number} mode tap multi_queue",
                      f"ip link set tap{number} master wire{wire} up"]
    return lines


def qemu(shape, image, folder, console=False):
    iommu = ["-device", "intel-iommu,intremap=on,eim=on"] if shape.x2apic else []
    # With several threads the emulation of the older interrupt controller loses interrupts.
    threads = "multi" if shape.x2apic else "single"
    return ["qemu-system-x86_64", "-machine", "q35,smbus=off,vmport=off", "-accel", f"tcg,thread={threads}", *_processor(shape),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-rtc", "base=utc",
            "-kernel", str(image.kernel), "-initrd", str(image.initrd),
            "-append", f"{KERNEL_OPTIONS} {shape.words}" + (" intel_iommu=off" if shape.x2apic else ""), *iommu, *_serials(folder, console),
            "-drive", f"file={image.root},if=none,id=root,format=raw,snapshot=on,cache=unsafe,file.locking=off",
            "-device", "virtio-blk-pci,drive=root,num-queues=1",
            "-fsdev", f"local,id=host,path={folder}/share,security_model=none,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host", "-device", "virtio-rng-pci", *_network(shape), *_lines(shape)]


def launch(shape, image, folder, console=False):
    """QEMU in an unnamed network namespace. The kernel kills it together with its parent, so it cannot outlive the suite."""
    script = "\n".join(["set -e", *_wiring(shape), "exec " + shlex.join(qemu(shape, image, folder, console))])
    return ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", script]
