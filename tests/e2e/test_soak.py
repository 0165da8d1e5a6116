"""A longer run: processes come, are killed and go, addresses churn, packets are lost; nothing hangs, grows or is left.

VERBENA_SOAK_SECONDS says how long (10 in the ordinary test run; `make soak` asks for 600)."""

import os
import random
import time

from harness import mesh
from harness.process import eventually

SECONDS = float(os.environ.get("VERBENA_SOAK_SECONDS", "10"))
IMPAIRMENT = {"VERBENA_IMPAIR": "loss=2%,dup=2%,reorder=2%,seed=11"}


def resident_kib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_long_life_among_short_ones(hosts):
    seed = int(os.environ.get("VERBENA_SOAK_SEED", time.time_ns() % 1_000_000))
    print(f"VERBENA_SOAK_SEED={seed}")
    chance = random.Random(seed)
    keepers = mesh.start(list(hosts), "nobody", IMPAIRMENT, ["--rate", 300])
    mesh.connect(keepers)
    eventually(lambda: all(member.heard() for member in keepers), 20, "the keepers hear each other")
    before = [resident_kib(member.process) for member in keepers]
    end = time.monotonic() + SECONDS
    generation = 0
    while time.monotonic() < end:
        generation += 1
        host = hosts[generation % 2]
        visitors = mesh.start([host] * 3, "nobody", IMPAIRMENT, ["--rate", 300])
        mesh.connect(visitors)
        eventually(lambda them=visitors: all(member.heard() for member in them), 20, "the visitors hear each other")
        host.ip("address", "add", f"10.77.0.{100 + generation % 100}/24", "dev", "veth0")
        for visitor in visitors:
            if chance.random() < 0.5:
                visitor.process.kill()
                visitor.process.finish(10, status=None)
            else:
                assert visitor.stop()["damaged"] == 0
        host.ip("address", "delete", f"10.77.0.{100 + generation % 100}/24", "dev", "veth0")
        since = [member.heard()[1 - member.number] for member in keepers]
        eventually(lambda since=since: all(member.heard()[1 - member.number] > since[member.number] for member in keepers),
                   20, "the keepers still hear each other")
    for member, kib in zip(keepers, before):
        # What the program itself remembers: one byte for each datagram it heard.
        own = sum(member.heard().values()) // 512
        assert resident_kib(member.process) < kib * 1.2 + 4096 + own, f"grew in {generation} generations"
    for member in keepers:
        final = member.stop()
        assert final["damaged"] == 0 and final["bad_completions"] == 0, final
