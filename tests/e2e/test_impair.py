"""Seeded faults: the same seed gives the same drops, and what does not arrive is accounted for by a named drop."""

import pytest

from harness import mesh

COUNT = 2000


def one_way(places, user, env, impairment):
    """Member 0 sends COUNT datagrams to member 1 under an impairment. Returns the receiver's final word of them, and
    the named drops of all."""
    members = mesh.start(places, user, env, ["--count", COUNT, "--rate", 2000], envs=[{"VERBENA_IMPAIR": impairment}, {}])
    mesh.send_counted(members)
    drops = {}
    for host in dict.fromkeys(places):
        for name, count in mesh.drops(host, user=user).items():
            drops[name] = drops.get(name, 0) + count
    final = members[1].stop()
    sender = members[0].stop()
    assert sender["sent"] == {"1": COUNT} and sender["bad_completions"] == 0, sender
    assert final["damaged"] == 0 and final["bad_completions"] == 0, final
    return final["heard"]["0"], drops


def test_the_same_seed_gives_the_same_drops(host, user, path):
    impairment = "loss=5%,dup=5%,reorder=5%,seed=42"
    first, first_drops = one_way([host] * 2, user, path, impairment)
    second, second_drops = one_way([host] * 2, user, path, impairment)
    assert 0.02 * COUNT < len(first["missing"]) < 0.09 * COUNT
    assert first["missing"] == second["missing"]
    assert first["copies"] == second["copies"] > 0
    assert first_drops == second_drops


def test_another_seed_gives_other_drops(host):
    first, _ = one_way([host] * 2, "root", {}, "loss=5%,seed=1")
    second, _ = one_way([host] * 2, "root", {}, "loss=5%,seed=2")
    assert first["missing"] != second["missing"]


def test_all_that_is_missing_is_a_named_drop(host, user, path):
    heard, drops = one_way([host] * 2, user, path, "loss=5%,reorder=5%,seed=7")
    assert heard["copies"] == 0 and heard["most"] == 1
    assert heard["late"] > 0, "nothing was reordered"
    assert drops == {"impair_loss": len(heard["missing"])}
    assert heard["datagrams"] + len(heard["missing"]) == COUNT


def test_a_duplicate_comes_once_more_and_no_oftener(host, user, path):
    heard, drops = one_way([host] * 2, user, path, "dup=5%,seed=7")
    assert heard["missing"] == [] and drops == {}
    assert heard["most"] == 2 and 0.02 * COUNT < heard["copies"] < 0.09 * COUNT


def test_what_is_damaged_on_the_way_is_never_delivered(hosts, user):
    heard, drops = one_way(list(hosts), user, {}, "corrupt=5%,seed=7")
    assert 0.02 * COUNT < len(heard["missing"]) < 0.09 * COUNT
    assert sum(drops.values()) == len(heard["missing"]), drops
    assert drops["icrc_mismatch"] > 0.9 * len(heard["missing"]), drops


def test_delay_and_reordering_lose_nothing_between_two_hosts(hosts, user):
    heard, drops = one_way(list(hosts), user, {}, "delay=2ms,jitter=1ms,reorder=10%,seed=3")
    assert heard["missing"] == [] and heard["copies"] == 0 and drops == {}


def test_a_mistake_in_the_setting_is_told_and_nothing_is_guessed(host, user):
    process = host.start(["ibv_devinfo"], user=user, env={"VERBENA_IMPAIR": "loss=lots"})
    output = process.finish(20, status=None)  # what ibv_devinfo does where no device can be opened
    assert "loss" in output and "lots" in output, output
