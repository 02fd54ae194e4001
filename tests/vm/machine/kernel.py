# SPDX-License-Identifier: Apache-2.0
"""Kernels from Debian packages, with the few modules that a guest needs."""
import lzma
import pathlib
import re
import shutil
import subprocess

SUITES = {"7.2": "trixie-backports", "6.12": "bookworm-backports", "6.1": "bookworm"}
MODULES = """virtio_pci virtio_blk virtio_rng virtio_net virtio_console ext4 9p 9pnet_virtio e1000e igb vmxnet3 macvlan veth bridge dummy bonding 8021q
    ipvlan nft_compat nft_chain_nat xt_addrtype xt_comment xt_conntrack xt_mark xt_MASQUERADE xt_nat xt_tcpudp
    tun 8139cp ohci_pci igbvf
    inet_diag tcp_diag udp_diag unix_diag netlink_diag sch_fq crc32c_generic crc32c-intel qemu_fw_cfg autofs4""".split()
INITRD_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")


class Kernel:
    def __init__(self, folder, release):
        self.folder, self.release = pathlib.Path(folder), release
        tree = self.folder / "tree"
        places = (tree / "lib" / "modules" / release, tree / "usr" / "lib" / "modules" / release)
        self.modules = next((place for place in places if place.is_dir()), places[0])
        images = (tree / "boot" / f"vmlinuz-{release}", self.modules / "vmlinuz")
        self.image = next((image for image in images if image.exists()), images[0])


def cached(cache, version):
    return (pathlib.Path(cache) / f"kernel-{version}" / "release").exists()


def fetch(apt, cache, version):
    """The kernel of this version (a key of SUITES), downloaded unless the cache has it."""
    folder = pathlib.Path(cache) / f"kernel-{version}"
    release = folder / "release"
    if not cached(cache, version):
        shutil.rmtree(folder, ignore_errors=True)
        name = apt.kernel_release(SUITES[version], version)
        apt.unpack(apt.kernel_packages(name), folder / "tree")
        release.write_text(name, encoding="utf-8")
    return Kernel(folder, release.read_text(encoding="utf-8").strip())


def _plain(path):
    """A module's bytes, decompressed: xz takes long on an emulated CPU."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def _name(path):
    return re.sub(r"\.ko(\.xz)?$", "", path.name).replace("-", "_")


def install_modules(kernel, tree):
    """MODULES and all they depend on, into /usr/lib/modules of the tree."""
    target = pathlib.Path(tree) / "usr/lib/modules" / kernel.release
    target.mkdir(parents=True)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(kernel.modules / name, target)
    where = {_name(path): path for path in kernel.modules.rglob("*.ko*")}
    todo, done = [name.replace("-", "_") for name in MODULES], set()
    while todo:
        name = todo.pop()
        if name in done or name not in where:  # not there: built in
            continue
        done.add(name)
        place = target / where[name].relative_to(kernel.modules).with_name(name + ".ko")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_plain(where[name]))
        shown = subprocess.run(["modinfo", "-F", "depends", place], capture_output=True, text=True, check=True).stdout
        todo += [word.replace("-", "_") for word in shown.strip().split(",") if word]
    subprocess.run(["depmod", "-b", tree, kernel.release], check=True)


def initrd_modules(kernel, tree):
    """Files to be loaded before the root file system, in order."""
    files = []
    for name in INITRD_MODULES:
        shown = subprocess.run(["modprobe", "-S", kernel.release, "-d", tree, "--show-depends", name],
                               capture_output=True, text=True, check=False).stdout
        files += [line.split()[1] for line in shown.splitlines() if line.startswith("insmod ")]
    return [pathlib.Path(name) for name in dict.fromkeys(files)]
