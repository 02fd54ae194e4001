# SPDX-License-Identifier: Apache-2.0
"""`affinityctl report`, as a headless Chromium shows it: in light and dark, on a telephone, printed. AFFINITYD_PICTURES names a folder for
pictures of it."""
import os
import pathlib

from chromium import Chromium
from house import House, affinityctl, document, policy
from recorded import Recorded

# Letters that are smaller, in pixels, cannot be read. Paper has more points.
SMALLEST = {"screen": 8, "print": 6}
FORMS = {"light": {}, "dark": {"scheme": "dark"}, "telephone": {"width": 400}, "dark-telephone": {"width": 400, "scheme": "dark"},
         "print": {"width": 720, "media": "print"}}
PICTURES = os.environ.get("AFFINITYD_PICTURES")
# [ratio of contrast, size in pixels, text] of each text that is shown. The grounds of a text are the boxes below its middle; letters with a rim stand on that.
TEXTS = """(() => {
  const numbers = color => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return [[r / 255, g / 255, b / 255], a]; };
  const clamp = values => values.map(value => Math.min(1, Math.max(0, value)));
  const filtered = (rgb, element) => {  // as the filter of the pictures has it
    const svg = element.closest("svg");
    if (!svg || getComputedStyle(svg).filter === "none") return rgb;
    const [r, g, b] = rgb.map(value => .92 - .84 * value);
    return clamp([-.574 * r + 1.43 * g + .144 * b, .426 * r + .43 * g + .144 * b, .426 * r + 1.43 * g - .856 * b]);
  };
  const ground = (text, all) => {
    const layers = all.slice(all.indexOf(text) + 1);
    return layers.reverse().reduce((below, one) => {
      const style = getComputedStyle(one), svg = one instanceof SVGElement;
      if (svg && (style.fill === "none" || one.tagName === "svg")) return below;
      const [rgb, a] = numbers(svg ? style.fill : style.backgroundColor), part = a * (svg ? style.fillOpacity : 1) * style.opacity;
      return filtered(rgb, one).map((value, i) => value * part + below[i] * (1 - part));
    }, [1, 1, 1]);
  };
  const luminance = rgb => { const [r, g, b] = rgb.map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, parent = text.parentElement, range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getClientRects()[0];
    if (!text.data.trim() || !box || !parent.checkVisibility() || parent.closest("style,title,thead")) continue;
    const style = getComputedStyle(parent), svg = parent.closest("svg");
    const rim = svg && style.stroke !== "none", all = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (!all.includes(parent)) continue;  // scrolled out of its box
    const ink = filtered(numbers(svg ? style.fill : style.color)[0], parent);
    const below = rim ? filtered(numbers(style.stroke)[0], parent) : ground(parent, all);
    const [low, high] = [luminance(ink), luminance(below)].sort((a, b) => a - b);
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    found.push([(high + .05) / (low + .05), parseFloat(style.fontSize) * scale, text.data.trim()]);
  }
  return found;
})()"""
# Rows by heading of each table, as they are shown.
TABLES = """[...document.querySelectorAll("table")].map(table => { const heads = [...table.querySelectorAll("th")].map(head => head.textContent);
  return [...table.tBodies[0].rows].map(row => Object.fromEntries([...row.cells].map((cell, i) => [heads[i], cell.textContent]))); })"""


class Browser(House):
    PLAIN = True

    def setUp(self):
        super().setUp()
        self.chromium = self.stack.enter_context(Chromium())

    def look(self, page, form):
        """Shows a page in one form; all that holds for every page in every form is checked."""
        chromium, keys = self.chromium, FORMS[form]
        chromium.open(page, **keys)
        self.assertEqual([f"file://{page}"], [one["request"]["url"] for one in chromium.named("Network.requestWillBeSent")])
        for trouble in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed"):
            self.assertEqual([], chromium.named(trouble))
        wide = keys.get("width", 1280)
        self.assertLessEqual(chromium.evaluate("document.documentElement.scrollWidth"), wide, "no scrolling to the side")
        height = chromium.evaluate("document.documentElement.scrollHeight")
        if PICTURES:
            chromium.picture(pathlib.Path(PICTURES) / f"{page.stem}.{form}.png")
        chromium.ask("Emulation.setDeviceMetricsOverride", width=wide, height=height, deviceScaleFactor=1, mobile=wide < 600)
        texts = chromium.evaluate(TEXTS)
        self.assertLess(20, len(texts))
        self.assertEqual([], [text for text in texts if text[0] < 4.5], "contrast")
        self.assertEqual([], [text for text in texts if text[1] < SMALLEST[keys.get("media", "screen")]], "letters that can be read")
        return texts

    def landmarks(self):
        tree = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in self.chromium.ask("Accessibility.getFullAXTree")["nodes"]
                if not node["ignored"]]
        roles = [role for role, _ in tree]
        self.assertEqual([1, 1, 1], [roles.count(role) for role in ("banner", "navigation", "main")])
        regions = [name for role, name in tree if role == "region"]
        self.assertTrue(regions and all(regions))
        self.assertLessEqual(set(regions), {name for role, name in tree if role == "heading"})
        self.assertTrue(all(name for role, name in tree if role in ("image", "img", "link", "heading")))
        return regions

    def test_a_running_daemons_page_has_the_figures_of_the_json_in_every_form(self):
        web = self.program("web")
        evil = web.thread("evil")
        web.rename("<img/src=//x.y>", evil)
        daemon = self.daemon({"reconcile": "1h"}, web=policy("web", cpus="0", bind="set", settle=0), bad="version: 1\ncpuz: 1\n")
        self.expect(web, "0", evil)
        daemon.ctl("measure", code=None)
        page = self.bin / "page.html"
        daemon.ctl("report", page, code=3)
        for form in FORMS:
            with self.subTest(form):
                texts = {text for _, _, text in self.look(page, form)}
                self.assertTrue([text for text in texts if "<img/src=//x.y>" in text], "the hostile name, as a text")
                rows = next(rows for rows in self.chromium.evaluate(TABLES) if rows and "POLICY" in rows[0])
                for one in daemon.status()["policies"]:
                    row = next(row for row in rows if row["POLICY"] == one["name"])
                    self.assertEqual((one["affinity"], one["cpus"], f"{one['threads_in_place']}/{one['threads_wanted']}"), (row["MODEL"], row["CPUS"], row["THREADS"]))
                for problem in daemon.status()["problems"]:
                    self.assertTrue(any(problem["message"] in text for text in texts), problem)
        self.chromium.open(page)
        self.assertEqual(["State", "Places", "Ways of packets", "Measurements"], self.landmarks())

    def test_a_large_recorded_machines_page_can_be_read_in_every_form(self):
        machine = Recorded(self.bin / "root", cpus=256, nodes=2, smt=2)
        for number in range(2):
            machine.nic(f"eth{number}", [f"eth{number}-TxRx-{queue}" for queue in range(64)], driver="ixgbe", node=number)
        for pid in range(1000, 3000, 100):
            machine.process(pid, "</title><b>x", unit="web.service", threads={pid + thread: f"<i>{thread}" for thread in range(1, 40)})
        for name, keys in (("web", policy(match={"unit": "web.service"}, affinity="full", nics=["eth0"])), ("nic", {"version": 1, "affinity": "irq", "nics": ["eth1"]})):
            (self.bin / f"{name}.yaml").write_text(document(**keys), encoding="utf-8")
        page = self.bin / "large.html"
        affinityctl("--root", machine.root, "report", page, "--policies", self.bin / "web.yaml", "--policies", self.bin / "nic.yaml")
        for form in FORMS:
            with self.subTest(form):
                texts = {text for _, _, text in self.look(page, form)}
                if "telephone" not in form:  # there a part of the picture is scrolled out of its box
                    self.assertLessEqual({str(cpu) for cpu in range(256)}, texts, "each CPU has its number")
                # Long lists are folded on a screen, and printed.
                self.assertEqual(form == "print", "IRQ 40 eth0-TxRx-0" in texts)
                self.assertEqual(form != "print", any(text.endswith(" rows") for text in texts))
        self.chromium.open(page)
        self.landmarks()
        printed = self.chromium.printed()
        self.assertTrue(printed.startswith(b"%PDF-"))
