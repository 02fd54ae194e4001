# SPDX-License-Identifier: Apache-2.0
"""`affinityctl report`: one page that needs nothing from anywhere, with the figures of the JSON."""
import html.parser
import re

from house import PROGRAMS, House, affinityctl, document, policy, run, wait_for
from recorded import Recorded

EMPTY = {"meta", "br", "rect", "line", "path", "circle"}
MOST = 1 << 20  # bytes of a page


class Page(html.parser.HTMLParser):
    """The elements of a page, its tables and the ways of its packets. Tags that do not match are a fault."""

    def __init__(self, text):
        super().__init__()
        self.source, self.open, self.elements, self.tables, self.ways, self.words = text, [], [], [], [], ""
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in EMPTY and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif attributes.get("class") == "way":
            self.ways.append([])
        elif tag == "li" and self.ways and "ol" in self.open:
            self.ways[-1].append("")

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
            self.open.pop()

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
        elif "li" in self.open and "ol" in self.open:
            self.ways[-1][-1] += data + "|"

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def table(self, first):
        """Rows by heading of the table whose first column has that heading."""
        rows = next(rows for rows in self.tables if rows[0][0] == first)
        return [dict(zip(rows[0], row)) for row in rows[1:]]


def luminance(color):
    parts = [int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Report(House):
    PLAIN = True  # the program that measures is of the daemon's own build

    def check_page(self, text):
        """All that holds for every page: it loads nothing, runs nothing, and has its landmarks."""
        self.assertLess(len(text.encode()), MOST)
        page = Page(text)
        policies = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
        self.assertEqual(["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"], policies)
        for tag, attributes in page.elements:
            self.assertNotIn(tag, ("script", "link", "img", "iframe", "object", "form", "base", "b"))
            self.assertFalse([name for name in attributes if name.startswith("on") or name in ("src", "style")], tag)
            self.assertTrue(attributes.get("href", "#").startswith("#"), attributes)
        self.assertNotRegex(text, r"url\((?!#hatch\))|@import|@font-face")
        self.assertEqual("en", page.all("html")[0]["lang"])
        self.assertEqual([1, 1, 1, 1], [len(page.all(tag)) for tag in ("h1", "header", "main", "nav")])
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)), "ids are unique")
        links = [link["href"][1:] for link in page.all("a")]
        self.assertEqual(links, [section["aria-labelledby"] for section in page.all("section")])
        self.assertLessEqual(set(links), set(ids))
        self.assertEqual({"col"}, {heading.get("scope") for heading in page.all("th")})
        self.assertTrue(all(figure["aria-label"] and figure["tabindex"] == "0" for figure in page.all("div") if figure.get("class") == "figure"))
        return page

    def report(self, daemon, code=0):
        return self.check_page(daemon.ctl("report", "-", code=code).out)

    def test_texts_can_be_read_in_both_schemes(self):
        machine = Recorded(self.bin / "root", cpus=2)
        style = re.search("<style>(.*?)</style>", affinityctl("--root", machine.root, "report", "-", "--policies", self.folder()).out, re.DOTALL)[1]
        schemes = [dict(re.findall(r"--(\w+):(#\w{6})", rules)) for rules in re.findall(r":root\{(.*?)\}", style)]
        self.assertEqual(2, len(schemes))
        for scheme in schemes:
            for text in ("ink", "faint", "good", "bad", "name", "mark"):
                for ground in ("page", "card"):
                    darker, lighter = sorted((luminance(scheme[text]), luminance(scheme[ground])))
                    self.assertGreaterEqual((lighter + 0.05) / (darker + 0.05), 4.5, f"{text} on {ground} of {scheme}")

    def folder(self, **policies):
        folder = self.bin / "policies"
        folder.mkdir(exist_ok=True)
        for name, keys in policies.items():
            (folder / f"{name}.yaml").write_text(document(**keys), encoding="utf-8")
        return folder

    def test_figures_are_those_of_the_json(self):
        web = self.program("web")
        evil = web.thread("evil")
        web.rename("<b>&\"'x", evil)
        daemon = self.daemon({"reconcile": "1h"}, web=policy("web", cpus="0", bind="set", settle=0), other=policy("other", cpus="1"))
        self.expect(web, "0", evil)
        daemon.ctl("measure")
        status, page = daemon.status(), self.report(daemon)
        rows = {row["POLICY"]: row for row in page.table("POLICY")}
        self.assertEqual({one["name"] for one in status["policies"]}, set(rows))
        for one in status["policies"]:
            row = rows[one["name"]]
            self.assertEqual((one["affinity"], one["cpus"], f"{one['drift_put_right']}"), (row["MODEL"], row["CPUS"], row["PUT RIGHT"]))
            self.assertEqual(one["processes"], int(row["PROCS"].split()[0]))
        self.assertEqual("2/2", rows["web"]["THREADS"])
        seats = {seat["cpu"]: seat for seat in daemon.ctl("plan", "--cpus", "--json").json["cpus"]}
        for row in page.table("CPU"):
            self.assertEqual((f"{seats[int(row['CPU'])]['tasks']:g}", f"{seats[int(row['CPU'])]['interrupts']}"), (row["TASKS"], row["INTERRUPTS"]))
        self.assertIn("<b>&\"'x", page.words, "the hostile name, as a text")
        last = daemon.ctl("history", "--json").json["records"][-1]
        self.assertEqual(f"{last['bits_per_second'] / 1e9:.3f}", page.table("TIME")[-1]["GBIT/S"])
        self.assertEqual(2, len(page.ways), "one of each policy")
        self.assertEqual({"file": "-", "health": status["health"], "problems": len(status["problems"]), "policies": 2},
                         daemon.ctl("report", self.bin / "page.html", "--json").json | {"file": "-"})
        self.check_page((self.bin / "page.html").read_text(encoding="utf-8"))

    def test_a_problem_comes_with_its_command(self):
        daemon = self.daemon(bad="version: 1\nmatch: {comm: x}\ncpuz: <script>alert(1)</script>\n")
        wait_for(lambda: daemon.status()["problems"], "a problem")
        page = self.report(daemon, code=3)
        for problem in daemon.status()["problems"]:
            self.assertIn(problem["message"], page.words)
            self.assertIn(problem["hint"], page.words)

    def test_a_recorded_machine_of_256_cpus(self):
        machine = Recorded(self.bin / "root", cpus=256, nodes=2, smt=2)
        for number in range(2):
            machine.nic(f"eth{number}", [f"eth{number}-TxRx-{queue}" for queue in range(64)], driver="ixgbe", node=number)
        for pid in range(1000, 5000, 100):
            machine.process(pid, "</title><b>x", unit="web.service", threads={pid + thread: f"<i>{thread}" for thread in range(1, 40)})
        folder = self.folder(web=policy(match={"unit": "web.service"}, affinity="full", nics=["eth0"]), nic={"version": 1, "affinity": "irq", "nics": ["eth1"]})
        page = self.check_page(affinityctl("--root", machine.root, "report", "-", "--policies", folder).out)
        self.assertEqual([str(cpu) for cpu in range(256)], [row["CPU"] for row in page.table("CPU")])
        self.assertEqual(64, len(page.ways), "32 of each policy")
        nics = affinityctl("--root", machine.root, "nics", "--json").json
        for number, way in enumerate(page.ways):
            nic = nics[number // 32]
            vector = nic["vectors"][number % 32]
            part = vector["count"] / sum(each["count"] for each in nic["vectors"])
            stops = [stop.split("|")[:-1] for stop in way]
            self.assertEqual(["NIC", f"{nic['name']}, node {nic['node']}"], stops[0])
            self.assertEqual([f"{100 * part:.0f} % of its interrupts", "queue", str(vector["queue"])], stops[1])
            self.assertEqual(["interrupt", f"IRQ {vector['irq']} {vector['label']}"], stops[2])
            self.assertEqual(["100 % taken here", "CPU"], stops[3][:2])
            self.assertEqual(["local share not counted", "worker"], stops[4][:2])

    def test_without_a_daemon_nothing_is_written(self):
        file = self.bin / "page.html"
        answer = run(PROGRAMS["affinityctl"], "--runtime-dir", self.bin, "report", file, code=4)
        self.assertIn("daemon", answer.err)
        self.assertFalse(file.exists())
