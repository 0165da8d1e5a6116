"""The program directory_session on a device: the middleware, a command at a time."""

import json


class Session:
    """One running directory_session. Each command returns its answer, a dict; `ok` says whether it did as asked."""

    def __init__(self, kernel, device):
        self.device = device
        self.process = kernel.start([str(kernel.build.tree / "vm" / "directory_session"), device])
        self._answers = 0

    def ask(self, *words, seconds=30):
        self.process.say(" ".join(str(word) for word in words))
        line = self.process.wait_line("{", seconds, since=self._answers)
        with self.process._changed:
            self._answers = self.process.lines.index(line, self._answers) + 1
        return json.loads(line)

    def must(self, *words, seconds=30):
        answer = self.ask(*words, seconds=seconds)
        assert answer["ok"], f"{self.device}: {' '.join(map(str, words))}: {answer}"
        return answer

    @property
    def qpn(self):
        return self.must("qpn")["qpn"]

    def close(self):
        """Everything is given back: no handle left, the protection domain and the device closed."""
        answer = self.must("close")
        assert answer["left"] == 0 and answer["handles"] == 0, answer
        self.process.finish(20)


def exchange(asker, answerer, address, text):
    """A datagram there, and its answer by reply_to. `address`: the answerer's."""
    asker.must("send", address, answerer.qpn, text)
    request = answerer.must("receive", 5000)
    assert request["text"] == text and request["qpn"] == asker.qpn, request
    answerer.must("reply", f"re:{text}")
    answer = asker.must("receive", 5000)
    assert answer["text"] == f"re:{text}" and answer["qpn"] == answerer.qpn, answer
    return request, answer
