# SPDX-License-Identifier: Apache-2.0
"""meson install keeps settings that were edited, and gives the new text beside them."""
import os
import pathlib
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
