"""Traffic through a directory (programs/directory_traffic.cc): one host sends, another receives and says when."""

import json
import time

from harness.process import Failed, eventually


class Traffic:
    """`sender` has a directory with a handle for each of `addresses`, at which `receiver` listens. Both are strict: a
    handle destroyed in flight is counted."""

    def __init__(self, sender, receiver, user, addresses, env=None, patience=20):
        self.host, self.user, self.count = sender, user, len(addresses)
        strict = {"VERBENA_STRICT": "on"}
        self.far = self._start(receiver, strict)
        self.near = self._start(sender, {**strict, **(env or {})})
        qpn = self.far.wait_line("ready", 20).split()[1]
        self.near.wait_line("ready", 20)
        self.begin = time.monotonic_ns()
        for address in addresses:
            self.near.say(f"peer {address} {qpn}")
        self.wait_flow(self.begin, patience)

    def _start(self, host, env):
        return host.start(host.build.program("directory_traffic"), user=self.user, env=env)

    def wait_flow(self, since=None, patience=20):
        """Until each destination has received what was sent at or after `since` (now); returns milliseconds from then."""
        since = time.monotonic_ns() if since is None else since
        seen = len(self.far.lines)
        self.far.say(f"after {since} {self.count}")
        try:
            arrived = int(self.far.wait_line("arrived", patience, since=seen).split()[1])
        except Failed:
            print(json.dumps(self.stats()), self.host.ip("address"), self.host.ip("route"), self.host.ip("neigh"))
            raise
        return (arrived - since) / 1e6

    def recovered(self, what, within, since=None):
        """As wait_flow(), printed, and no longer than `within` seconds."""
        took = self.wait_flow(since, within)
        print(f"recovered after {what}: {took:.1f} ms")
        return took

    def _asked(self, process, word):
        seen = len(process.lines)
        process.say(word)
        return json.loads(process.wait_line(word, 20, since=seen).split(" ", 1)[1])

    def stats(self):
        return self._asked(self.near, "stats")

    def events(self):
        """What the sender's subscriber was told so far: kind -> cause -> how many."""
        return self._asked(self.near, "events")

    def counts(self):
        """The counts of the sender's directory."""
        return self.stats()["directory"]

    def sources(self):
        """Source GID -> when the last datagram from it was sent, of what the receiver has."""
        return self._asked(self.far, "sources")

    def wait_count(self, name, above, seconds=20):
        return eventually(lambda: self.counts()[name] > above and self.counts(), seconds, f"{name} rises above {above}")

    def device_counts(self):
        """Counters and gauges of the sender's device, as `verbena drops` sees them."""
        report = json.loads(self.host.verbena("drops", "--all", "--json", user=self.user))
        process = next(process for process in report["processes"] if process["pid"] == self.near.pid)
        total = {}
        for device in process["devices"]:
            for name, count in device["counters"].items():
                total[name] = total.get(name, 0) + count
        return total

    def end(self):
        """As finish(), and nothing was destroyed in flight, and no send failed."""
        assert self.device_counts()["ah_in_use"] == 0
        final = self.finish()
        assert final["failed_sends"] == final["queue_pairs_replaced"] == 0, final
        return final

    def finish(self):
        """Nothing is left; returns the final word of the sender."""
        finals = []
        for process in (self.near, self.far):
            process.say("quit")
            process.finish(20)
            finals.append(json.loads(process.last_line("final").split(" ", 1)[1]))
        for final in finals:
            assert final["left"] == {"address_handles": 0, "handles": 0}, final
            assert final["directory"]["misused"] == 0, final
        return finals[0]
