"""Very many sends over very many peers (programs/directory_soak.cc): no send by a handle that is gone or leads elsewhere,
nothing left, memory bounded.

VERBENA_SOAK_SENDS and VERBENA_SOAK_PEERS say how many (small in the ordinary test run; `make soak`: 10 million and
10,000)."""

import json
import os
import random
import threading
import time

from harness.process import Failed

SENDS = int(os.environ.get("VERBENA_SOAK_SENDS", "200000"))
PEERS = int(os.environ.get("VERBENA_SOAK_PEERS", "1000"))
SEED = int(os.environ.get("VERBENA_SOAK_SEED", time.time_ns() % 1_000_000))


class Churn:
    """Addresses of a host that come, go and move to other indices, drawn from the seed, until stop()."""

    def __init__(self, host):
        self.host, self.turns, self.error = host, 0, None
        self._chance = random.Random(SEED)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _turn(self):
        kind = self._chance.randrange(4)
        other = f"10.77.{1 + self._chance.randrange(8)}.1/24"
        if kind == 0:  # the source of all that goes away, and with it its index
            self.host.ip("address", "delete", "10.77.0.40/32", "dev", "veth0")
            self.host.ip("address", "add", other, "dev", "veth0")
            self._ended.wait(self._chance.random() / 10)
            self.host.ip("address", "add", "10.77.0.40/32", "dev", "veth0")
            self.host.ip("route", "replace", "10.200.0.0/16", "via", "10.77.0.2", "src", "10.77.0.40")
            self.host.ip("address", "delete", other, "dev", "veth0")
        elif kind == 1:
            self.host.ip("address", "add", other, "dev", "veth0")
            self.host.ip("address", "delete", other, "dev", "veth0")
        elif kind == 2:  # the next hop moves and comes back
            mac = f"02:00:00:00:99:{self._chance.randrange(256):02x}"
            self.host.ip("neighbour", "replace", "10.77.0.2", "lladdr", mac, "nud", "reachable", "dev", "veth0")
        else:
            self.host.ip("route", "replace", "10.200.0.0/17", "via", "10.77.0.2")
            self.host.ip("route", "delete", "10.200.0.0/17")
        self.turns += 1

    def _run(self):
        try:
            # A turn makes up to all handles anew.
            while not self._ended.wait(0.2 * max(1, PEERS / 1000)):
                self._turn()
        except Failed as failed:
            self.error = failed

    def stop(self):
        self._ended.set()
        self._thread.join()
        assert self.error is None, self.error


def soak(host, user, own, away, max_ah):
    """The final word of the program, and what the device says is left before it is closed."""
    env = {"VERBENA_LIMITS": f"max_ah={max_ah}", "VERBENA_STRICT": "on"}
    if own == "127.0.0.1":
        env["VERBENA_DEVICES"] = "lo"
    words = ["--sends", SENDS, "--peers", PEERS, "--seed", SEED, "--own", own, "--away", away, "--wait"]
    program = host.start([*host.build.program("directory_soak"), *words], user=user, env=env)
    program.wait_line("at ", 60)
    shown = json.loads(host.verbena("ah", "top", "--once", "--json", "--pid", str(program.pid), user=user))
    tenants = [one for one in shown["processes"][0]["tenants"] if not one["ended"]]
    assert tenants and all(one["tenant"].startswith("generation ") for one in tenants), shown
    assert sum(one["counts"]["created"] for one in tenants) > 0 and tenants[0]["counts"]["tenant_share"] > 0, tenants
    final = json.loads(program.wait_line("final", 60 + SENDS / 1000).split(" ", 1)[1])
    report = json.loads(host.verbena("drops", "--all", "--json", user=user))
    counters = {}
    for process in report["processes"]:
        for device in process["devices"]:
            for name, count in device["counters"].items():
                counters[name] = counters.get(name, 0) + count
    program.say("")
    program.finish(20, status=None)
    print(json.dumps(final))
    return program, final, counters


def expect_clean(program, final, counters):
    assert final["sent"] == SENDS and final["stale"] == final["wrong"] == final["failed"] == 0, final
    assert final["alive"] == 0 and counters["address_handles"] == 0 and counters["protection_domains"] == 0, counters
    assert counters["ah_in_use"] == 0, counters
    assert final["last_kib"] < final["first_kib"] * 1.3 + 4096, final
    assert program.returncode() == 0, program.describe()


def test_many_peers_on_one_host_with_too_few_handles(host, user):
    print(f"VERBENA_SOAK_SEED={SEED}")
    max_ah = PEERS // 4
    program, final, counters = soak(host, user, "127.0.0.1", "127.1.0.0", max_ah)
    expect_clean(program, final, counters)
    assert final["most_alive"] <= max_ah and final["reclaimed"] > 0, final
    assert final["arrived"] == final["to_this_host"], final


def test_many_peers_while_addresses_neighbours_and_routes_churn(host, user):
    print(f"VERBENA_SOAK_SEED={SEED}")
    host.ip("address", "add", "10.77.0.40/32", "dev", "veth0")
    host.ip("route", "add", "10.200.0.0/16", "via", "10.77.0.2", "src", "10.77.0.40")
    churn = Churn(host)
    try:
        program, final, counters = soak(host, user, host.v4, "10.200.0.0", PEERS // 2)
    finally:
        churn.stop()
    print(f"turns of the churn: {churn.turns}")
    expect_clean(program, final, counters)
    assert churn.turns > 0 and final["replaced"] > 0, final
    # What was under way at the moment a path changed may be lost.
    assert final["arrived"] >= final["to_this_host"] * 0.99, final
