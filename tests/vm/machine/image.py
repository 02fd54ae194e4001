# SPDX-License-Identifier: Apache-2.0
"""A bootable Debian, made from Debian packages without loop devices or mounts. affinityd is not part of it: the running guest installs it, so
that one image serves many builds."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from machine import debian, kernel

HERE = pathlib.Path(__file__).resolve().parent
GUEST = HERE.parent / "guest"
PACKAGES = """systemd systemd-sysv udev dbus polkitd iproute2 ethtool procps irqbalance kmod util-linux python3 numactl iputils-ping
    podman netavark crun iptables nginx-light redis-server haproxy memcached postgresql-15 bpftrace libsystemd0 libnl-3-200 libnl-genl-3-200 libnl-route-3-200 libyaml-cpp0.7 libspdlog1.10 libfmt9 libproc2-0
    libbpf1 libre2-9 libsqlite3-0 libstdc++6 busybox-static""".split()
# Each of these costs 0.1 to 0.5 s of emulation and has nothing to do with affinityd.
MASKED = """apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service
    getty@tty1.service getty.target systemd-timesyncd.service systemd-pstore.service modprobe@configfs.service
    modprobe@dm_mod.service modprobe@drm.service modprobe@fuse.service modprobe@loop.service modprobe@efi_pstore.service
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-journal-flush.service systemd-binfmt.service
    proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount systemd-random-seed.service systemd-sysusers.service
    kmod-static-nodes.service dev-hugepages.mount dev-mqueue.mount sys-fs-fuse-connections.mount sys-kernel-config.mount
    systemd-modules-load.service systemd-remount-fs.service systemd-ask-password-console.path systemd-ask-password-wall.path
    systemd-user-sessions.service systemd-hwdb-update.service ldconfig.service""".split()
GENERATORS = """bless-boot cryptsetup debug fstab getty gpt-auto hibernate-resume integritysetup rc-local run system-update sysv
    veritysetup""".split()
# Installed, but started by tests only.
NOT_STARTED = ("irqbalance", "nginx", "redis-server", "haproxy", "memcached", "postgresql")
SIZE = "2000M"


class Image:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root, self.initrd, self.kernel = (self.folder / name for name in ("root.ext4", "initrd.img", "vmlinuz"))
        self.tree = self.folder / "tree"


def _digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _recipe():
    """Everything that decides what an image contains: files of this folder and of the guest."""
    files = sorted([HERE / "image.py", HERE / "kernel.py", *GUEST.iterdir()])
    return [text for path in files if path.is_file() for text in (path.name, path.read_text(encoding="utf-8"))]


def _run_whole(words):
    """Like subprocess.run, but an interruption also ends what the command has started."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if status != 0:
        raise SystemExit(f"vm: {words[0]} ended with {status}")


def _build_base(apt, folder):
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")]
    _run_whole(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=" + ",".join(PACKAGES),
                '--aptopt=Acquire::Languages "none"', '--aptopt=Acquire::Retries "3"', '--aptopt=APT::Install-Recommends "false"',
                "--dpkgopt=force-unsafe-io", *options, debian.SUITE, str(unfinished), *apt.guest_sources])
    unfinished.rename(folder)


def _put(tree, name, data, mode=0o644):
    # The tree consists of hard links to the cached one: replace files, never write to them.
    path = tree / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _furnish(tree):
    for name, place, mode in (("vm-run", "usr/local/sbin/vm-run", 0o755), ("qmp", "usr/local/bin/qmp", 0o755),
                              ("vm.service", "etc/systemd/system/vm.service", 0o644),
                              ("vm.target", "etc/systemd/system/vm.target", 0o644),
                              ("coldplug.conf", "etc/systemd/system/systemd-udev-trigger.service.d/vm.conf", 0o644),
                              ("journald.conf", "etc/systemd/journald.conf.d/vm.conf", 0o644)):
        _put(tree, place, (GUEST / name).read_bytes(), mode)
    _put(tree, "etc/fstab", b"")
    _put(tree, "etc/hostname", b"vm\n")
    _put(tree, "etc/machine-id", b"00000000000000000000000000000001\n")
    for unit in MASKED:
        link = tree / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    for name in GENERATORS:
        (tree / f"usr/lib/systemd/system-generators/systemd-{name}-generator").unlink(missing_ok=True)
    for name in NOT_STARTED:
        (tree / f"etc/systemd/system/multi-user.target.wants/{name}.service").unlink(missing_ok=True)


def _make_initrd(folder, source, tree):
    ramdisk = folder / "ramdisk"
    for name in ("bin", "dev", "proc", "sys", "newroot", "m"):
        (ramdisk / name).mkdir(parents=True)
    shutil.copy(tree / "bin/busybox", ramdisk / "bin/busybox")
    for name in ("sh", "insmod", "mount", "switch_root"):
        (ramdisk / "bin" / name).symlink_to("busybox")
    for number, path in enumerate(kernel.initrd_modules(source, tree), 100):
        shutil.copy(path, ramdisk / "m" / f"{number}-{path.name}")
    shutil.copy(GUEST / "init", ramdisk / "init")
    (ramdisk / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(ramdisk)) for path in sorted(ramdisk.rglob("*")))
    with (folder / "initrd.img").open("wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=ramdisk, input=names.encode(), stdout=out, check=True)
    shutil.rmtree(ramdisk)


def _build(apt, cache, base, version, folder):
    source = kernel.fetch(apt, cache, version)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    tree = unfinished / "tree"
    subprocess.run(["cp", "-al", base, tree], check=True)
    _furnish(tree)
    kernel.install_modules(source, tree)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", "-L", "root",
                    "-d", tree, unfinished / "root.ext4", SIZE], check=True, stdout=subprocess.DEVNULL)
    _make_initrd(unfinished, source, tree)
    shutil.copy(source.image, unfinished / "vmlinuz")
    unfinished.rename(folder)


def cache_folder(build):
    return pathlib.Path(os.environ.get("AFFINITYD_VM_CACHE") or pathlib.Path(build) / "vm-cache").resolve()


def lock(cache):
    """Keeps other suites away from a shared cache. Hold the result while its images are in use."""
    cache.mkdir(parents=True, exist_ok=True)
    file = (cache / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"vm: another suite uses {cache}: waiting for its end", flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def image(cache, version="6.12"):
    """The image with this kernel, from the cache, or built if the cache has none of the same recipe."""
    cache = pathlib.Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    base = cache / ("base-" + _digest(debian.SUITE, *PACKAGES))
    folder = cache / f"image-{version}-{_digest(base.name, *_recipe())}"
    if folder.exists():
        return Image(folder)
    started = time.monotonic()
    apt = debian.Apt(cache / "apt", kernel.SUITES[version])
    if not base.exists() or not kernel.cached(cache, version):
        apt.update()
    if not base.exists():
        _build_base(apt, base)
    outdated = [*cache.glob(f"image-{version}-*"), *(old for old in cache.glob("base-*") if old != base)]
    for old in outdated:
        shutil.rmtree(old)
    _build(apt, cache, base, version, folder)
    print(f"vm: image with kernel {version} built in {time.monotonic() - started:.0f} s", flush=True)
    return Image(folder)
