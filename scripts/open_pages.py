#!/usr/bin/env python3
"""Opens HTML pages in a headless Chromium and checks them; see scripts/check-report.

usage: open_pages.py BROWSER FOLDER PAGE...    writes FOLDER/NAME-WIDTH-SCHEME.png

It speaks the DevTools protocol over two pipes (--remote-debugging-pipe): JSON messages that end with a zero byte.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
TALLEST = 12000  # pixels of a screenshot

# Problems of the page as a list of texts. Tooltips are tried on the first chart.
CHECK = r"""(() => {
  const problems = [], root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("body *")].filter(e =>
      e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre"));
    problems.push(`the page is ${root.scrollWidth} pixels wide: ` +
      wide.slice(0, 3).map(e => e.tagName + "." + e.getAttribute("class")).join(", "));
  }
  for (const card of document.querySelectorAll(".card"))
    if (card.scrollWidth > card.clientWidth) problems.push(`card '${card.textContent}' overflows`);
  for (const figure of document.querySelectorAll(".chart")) {
    const title = figure.querySelector("b").textContent, frame = figure.querySelector("svg").getBoundingClientRect();
    const texts = [...figure.querySelectorAll("svg text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([a, r], i) => {
      if (r.left < frame.left - 1 || r.right > frame.right + 1) problems.push(`${title}: '${a}' is cut`);
      if (r.height < 9) problems.push(`${title}: '${a}' is ${r.height} pixels high`);
      for (const [b, q] of texts.slice(0, i))
        if (r.left < q.right && q.left < r.right && r.top + 2 < q.bottom && q.top + 2 < r.bottom)
          problems.push(`${title}: '${a}' and '${b}' overlap`);
    });
    const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect(), tip = figure.querySelector(".tip");
    for (const share of [0.2, 0.98]) {
      svg.dispatchEvent(new PointerEvent("pointermove",
        { clientX: box.left + share * box.width, clientY: box.top + box.height / 2 }));
      const shown = tip.getBoundingClientRect();
      if (!tip.textContent.startsWith("step ") || shown.width === 0) problems.push(`${title}: no value is shown`);
      if (shown.right > innerWidth || shown.left < 0) problems.push(`${title}: the value is outside of the window`);
    }
    svg.dispatchEvent(new PointerEvent("pointerleave"));
  }
  return { problems, height: root.scrollHeight, charts: document.querySelectorAll("svg").length,
           background: getComputedStyle(document.body).backgroundColor };
})()"""


class Browser:
    def __init__(self, program, profile):
        commands, self.to = os.pipe()
        self.source, answers = os.pipe()
        # bash puts the pipes where Chromium expects them: 3 and 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", program, "--headless", "--no-sandbox",
             "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}",
             "about:blank"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.events, self.held, self.count = [], b"", 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.held:
            data = os.read(self.source, 1 << 16)
            if not data:
                sys.exit("open_pages: the browser has ended")
            self.held += data
        text, self.held = self.held.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if getattr(self, "session", None):
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                sys.exit(f"open_pages: {method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, path, width, scheme):
        """-> the console's messages."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def console(self):
        named = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [json.dumps(e["params"])[:300] for e in self.events if e.get("method") in named]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"open_pages: {result['exceptionDetails']}")
        return result["result"]["value"]

    def screenshot(self, path, width, height):
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, TALLEST), "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))


def main():
    program, folder, pages = sys.argv[1], sys.argv[2], sys.argv[3:]
    failures = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        for page in pages:
            name = os.path.basename(page)[: -len(".html")]
            for width in WIDTHS:
                backgrounds = set()
                for scheme in SCHEMES:
                    browser.open(page, width, scheme)
                    found = browser.evaluate(CHECK)
                    backgrounds.add(found["background"])
                    problems = found["problems"] + browser.console()
                    browser.screenshot(os.path.join(folder, f"{name}-{width}-{scheme}.png"), width, found["height"])
                    for p in problems:
                        print(f"{name}, {width} pixels, {scheme}: {p}", file=sys.stderr)
                    failures += len(problems)
                if len(backgrounds) != len(SCHEMES):
                    print(f"{name}, {width} pixels: light and dark look alike", file=sys.stderr)
                    failures += 1
        browser.process.terminate()
        browser.process.wait()
    print(f"{len(pages)} pages, {len(WIDTHS) * len(SCHEMES) * len(pages)} views, {failures} problems")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
