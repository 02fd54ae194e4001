# SPDX-License-Identifier: Apache-2.0
"""meson install keeps settings that were edited, and gives the new text beside them. The manual says how to remove everything again."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import unittest


class Settings(unittest.TestCase):
    def install(self, root):
        subprocess.run(["meson", "install", "-C", os.environ["AFFINITYD_BUILD"], "--no-rebuild", "--tags", "settings", "--destdir", root],
                       check=True, stdout=subprocess.DEVNULL)

    def test_an_edited_file_is_kept(self):
        with tempfile.TemporaryDirectory(prefix="affinityd-install-") as root:
            settings = pathlib.Path(root + os.environ["AFFINITYD_ETC"]) / "affinityd" / "affinityd.yaml"
            example = pathlib.Path(root + os.environ["AFFINITYD_SHARE"]) / "affinityd" / "affinityd.yaml"
            self.install(root)
            shipped = settings.read_text(encoding="utf-8")
            self.assertIn("version: 1", shipped)
            self.assertEqual(0o644, settings.stat().st_mode & 0o7777)
            settings.write_text("version: 1\nreconcile: 5m\n", encoding="utf-8")
            example.unlink()
            self.install(root)
            self.assertEqual("version: 1\nreconcile: 5m\n", settings.read_text(encoding="utf-8"))
            self.assertEqual(shipped, example.read_text(encoding="utf-8"))

    def test_a_link_of_the_administrators_is_kept_too(self):
        with tempfile.TemporaryDirectory(prefix="affinityd-install-") as root:
            settings = pathlib.Path(root + os.environ["AFFINITYD_ETC"]) / "affinityd" / "affinityd.yaml"
            settings.parent.mkdir(parents=True)
            settings.symlink_to("/nowhere/affinityd.yaml")
            self.install(root)
            self.assertTrue(settings.is_symlink())

    def test_a_disk_that_is_full_leaves_nothing_that_would_be_kept(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "systemd" / "install-once"
        with tempfile.TemporaryDirectory(prefix="affinityd-install-") as root:
            shipped = pathlib.Path(root, "shipped.yaml")
            shipped.write_text("version: 1\n" + "# a comment\n" * 1000, encoding="utf-8")
            folder = pathlib.Path(root, "etc", "affinityd")

            def install(**more):
                return subprocess.run([script, shipped, "/etc/affinityd"], check=False, stderr=subprocess.DEVNULL, **more, env=os.environ | {
                    "MESON_INSTALL_PREFIX": "/usr", "MESON_INSTALL_DESTDIR_PREFIX": root + "/usr"}).returncode

            def full_disk():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

            self.assertNotEqual(0, install(preexec_fn=full_disk, restore_signals=False))
            self.assertEqual([], list(folder.iterdir()))
            self.assertEqual(0, install())
            self.assertEqual(shipped.read_text(encoding="utf-8"), (folder / "shipped.yaml").read_text(encoding="utf-8"))
            self.assertEqual(0o644, (folder / "shipped.yaml").stat().st_mode & 0o7777)
            self.assertEqual(["shipped.yaml"], os.listdir(folder))


class Uninstalling(unittest.TestCase):
    def test_the_manual_removes_every_file_that_is_installed(self):
        told = subprocess.run(["meson", "introspect", "--installed", os.environ["AFFINITYD_BUILD"]], check=True, capture_output=True, text=True)
        installed = [pathlib.PurePosixPath(path) for path in json.loads(told.stdout).values()]
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "affinityd.8").read_text(encoding="utf-8").replace("\\-", "-")
        folder, removed = pathlib.PurePosixPath("/"), []
        for words in (line.split() for line in page.splitlines()):
            if words[:1] == ["cd"]:
                folder = pathlib.PurePosixPath(words[1])
            elif words[:1] == ["rm"]:
                removed += [str(folder / word) for word in words[2:]]
        self.assertGreater(len(installed), 30)
        self.assertEqual([], [str(path) for path in installed if not any(one.match(each) for one in (path, *path.parents) for each in removed)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
