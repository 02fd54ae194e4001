# SPDX-License-Identifier: Apache-2.0
"""The words of the house are true: no file of others is written to, a verdict stands on figures, and a screen and its JSON say the same."""
import os

from house import PROGRAMS, House, affinityctl, document, policy, run


class Pictures(House):
    def draw(self, path, code):
        return run("timeout", "20", PROGRAMS["affinityctl"], "topology", "--svg", path, code=code)

    def test_only_a_regular_file_is_replaced(self):
        precious, link, pipe, picture = (self.bin / name for name in ("precious", "link.svg", "pipe.svg", "a.svg"))
        precious.write_text("precious", encoding="ascii")
        link.symlink_to(precious)
        os.mkfifo(pipe)
        other = self.bin / "other-name"
        picture.write_text("old", encoding="ascii")
        os.link(picture, other)
        for path in (link, pipe):
            with self.subTest(path.name):
                self.assertIn("not a regular file", self.draw(path, 1).text)
        self.assertEqual("precious", precious.read_text(encoding="ascii"))
        self.draw(picture, 0)
        self.assertIn("</svg>", picture.read_text(encoding="utf-8"))
        self.assertEqual("old", other.read_text(encoding="ascii"), "a new file takes the name")


class Check(House):
    def test_a_file_is_read_whatever_its_name(self):
        for name in ("web.yaml", "web.yaml.dpkg-new", "draft", "-"):
            for keys, code in ((policy("web", cpus="0"), 0), (policy("web", cpuz="0"), 3)):
                with self.subTest(name, code=code):
                    file = self.bin / name
                    file.write_text(document(**keys), encoding="utf-8")
                    words = f'"$0" check - < "{file}"' if name == "-" else f'"$0" check "{file}"'
                    said = run("sh", "-c", words, PROGRAMS["affinityctl"], code=code).out
                    self.assertIn("1 policy without errors" if code == 0 else "unknown key", said)
