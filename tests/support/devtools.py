"""A browser that tests type and click in, by the DevTools protocol: pages, what they say to the console, what they ask of the network."""
import base64
import json
import re
import subprocess
import time

from websockets.sync.client import connect

LIMIT_S = 90
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " ")}


class Browser:
    def __init__(self, program, folder):
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-lcd-text", "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                break
        self.socket = connect(found[1], max_size=None, open_timeout=LIMIT_S)
        self.last = 0
        self.pages = {}

    def call(self, method, session=None, **parameters):
        self.last += 1
        order = {"id": self.last, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self.socket.send(json.dumps(order))
        while True:
            told = json.loads(self.socket.recv(timeout=LIMIT_S))
            if told.get("id") == self.last:
                assert "error" not in told, (method, told)
                return told["result"]
            self.note(told)

    def note(self, told):
        page = self.pages.get(told.get("sessionId"))
        if page is not None:
            page.note(told["method"], told["params"])

    def open(self, address, width=1200, height=900, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, width)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Page.navigate", url=address)
        page.until("location.href !== 'about:blank' && document.readyState === 'complete'")
        return page

    def end(self):
        self.call("Browser.close")  # the program is a script that starts it: a signal would end that alone
        self.socket.close()
        self.process.wait(timeout=LIMIT_S)
        self.process.stderr.close()


class Page:
    def __init__(self, browser, session, width):
        self.browser, self.session, self.width = browser, session, width
        self.complaints, self.asked = [], []

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def note(self, method, told):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"]["exception"].get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url')}")
        elif method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result)
        return result["result"].get("value")

    def until(self, expression):
        """Waits until it is true."""
        end = time.monotonic() + LIMIT_S
        while not (value := self.value(expression)):
            assert time.monotonic() < end, (expression, self.complaints, self.value("document.body.innerText"))
            time.sleep(0.05)
        return value

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def is_shown(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).checkVisibility()")

    def click(self, selector):
        """As a finger does it: at the middle of what is shown, whatever lies there."""
        place = self.value(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)}); element.scrollIntoView({{block: 'center'}});"
            " const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, shift=False):
        code, text = KEYS[key]
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def fill(self, selector, text):
        self.click(selector)
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        self.type(text)

    def focused(self):
        """The id of what has the keyboard, or its name, or its label."""
        return self.value("(e => e.id || e.name || e.getAttribute('aria-label') || e.className || e.tagName)(document.activeElement)")

    def tab_to(self, wanted):
        """By the keyboard alone."""
        for _ in range(80):
            if self.focused() == wanted:
                return
            self.press("Tab")
        raise AssertionError(f"no way to {wanted} by Tab")

    def screenshot(self, path, height=None, scale=1.0):
        """Of the page's whole height, or of its first part."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": scale}
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(image["data"]))
