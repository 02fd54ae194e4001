# SPDX-License-Identifier: Apache-2.0
"""A private apt that knows more suites than the system's, whose configuration it only reads."""
import os
import pathlib
import re
import subprocess

SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# igb and x2apic under emulation need QEMU 10, which Debian 12 has in its backports.
BACKPORTS = ("qemu-system-x86", "ipxe-qemu")


def qemu_major():
    try:
        text = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return 0
    return int(text.split("version ")[1].split(".")[0]) if "version " in text else 0


def index_addresses(*conditions):
    """Addresses of the archives that the configuration of this system names."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", *conditions],
                          capture_output=True, text=True, check=True)
    return list(dict.fromkeys(done.stdout.split()))


class Apt:
    """apt with its own lists and archives below `folder`, for the guest's suite and `suite`."""

    def __init__(self, folder, suite=SUITE):
        self.folder = pathlib.Path(folder)
        main = [a for a in index_addresses(f"Codename: {SUITE}", "Component: main") if "security" not in a]
        if not main:
            raise SystemExit(f"vm: this machine's apt knows no {SUITE}; run apt-get update")
        security = index_addresses(f"Codename: {SUITE}-security")
        signed = f"[signed-by={KEYRING}]"
        self.guest_sources = [f"deb {signed} {main[0]} {SUITE} main"]
        self.guest_sources += [f"deb {signed} {address} {SUITE}-security main" for address in security[:1]]
        self.sources = [*self.guest_sources, *([f"deb {signed} {main[0]} {suite} main"] if suite != SUITE else [])]

    def _options(self):
        for name in ("lists/partial", "archives/partial", "parts"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "sources.list").write_text("\n".join(self.sources) + "\n", encoding="utf-8")
        settings = {"Dir::State::lists": self.folder / "lists", "Dir::Cache::archives": self.folder / "archives",
                    "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "",
                    "Dir::Etc::sourcelist": self.folder / "sources.list", "Dir::Etc::sourceparts": self.folder / "parts",
                    "Acquire::Languages": "none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
                    "Acquire::Retries": "3", "APT::Sandbox::User": "root", "DPkg::Lock::Timeout": "300"}
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def run(self, program, *arguments, **options):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        return subprocess.run([program, *self._options(), *arguments], env=environment, check=True, text=True,
                              stdin=subprocess.DEVNULL, **options)

    def update(self):
        self.run("apt-get", "-qq", "update")

    def install(self, packages, suite=SUITE):
        self.run("apt-get", "-qq", "-y", "--no-install-recommends", "-t", suite, "install", *packages, stdout=subprocess.DEVNULL)

    def _shown(self, package):
        """The description of a package by apt-cache, or "" if there is no such package to download."""
        try:
            return self.run("apt-cache", "show", package, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        except subprocess.CalledProcessError:
            return ""

    def kernel_release(self, suite, version):
        """The newest kernel of this version, or the one that linux-image-amd64 stands for if the suite no longer has this version."""
        names = self.run("apt-cache", "pkgnames", f"linux-image-{version}.", stdout=subprocess.PIPE).stdout.split()
        plain = [name for name in names if re.fullmatch(r"linux-image-[\d.]+(-\d+|\+deb\d+)-amd64", name)]
        plain.sort(key=lambda name: [int(number) for number in re.findall(r"\d+", name)], reverse=True)
        meta = re.findall(r"^Depends:.*\blinux-image-(\d[^ ,]*)", self._shown(f"linux-image-amd64/{suite}"), re.MULTILINE)
        for release in [*(name.removeprefix("linux-image-") for name in plain), *meta]:
            if self._shown(f"linux-image-{release}"):
                return release
        raise SystemExit(f"vm: no kernel {version} in {suite}")

    def kernel_packages(self, release):
        """Since Linux 7 a kernel consists of three packages, and the one with the kernel's name is empty."""
        parts = [f"linux-{part}-{release}" for part in ("base", "binary", "modules")]
        return parts if all(map(self._shown, parts)) else [f"linux-image-{release}"]

    def unpack(self, packages, to):
        """Downloads and unpacks packages; no maintainer script runs."""
        debs = pathlib.Path(to) / "debs"
        debs.mkdir(parents=True)
        self.run("apt-get", "-qq", "download", *packages, cwd=debs)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, to], check=True)
            deb.unlink()
        debs.rmdir()


def install_tools(folder):
    """Installs what builds the image, and QEMU 10."""
    subprocess.run([pathlib.Path(__file__).resolve().parents[3] / "tools/install-packages", "vm"], check=True, stdout=subprocess.DEVNULL)
    if qemu_major() >= 10:
        return
    apt = Apt(folder, f"{SUITE}-backports")
    apt.update()
    apt.install(BACKPORTS, f"{SUITE}-backports")
