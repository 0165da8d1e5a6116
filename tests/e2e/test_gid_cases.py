"""Cases of docs/cases.md about GIDs that need a network of their own."""

import json


def test_a_host_with_ipv6_only_has_its_addresses_listed_without_noise_and_reaches_its_peer(hosts, user):
    left, right = hosts
    for host in hosts:
        host.ip("address", "delete", f"{host.v4}/24", "dev", "veth0")
    said = left.verbena("gids", user=user)
    lines = said.splitlines()
    assert left.v6 in said and left.v4 not in said, said
    assert lines[0].startswith("DEVICE") and all(line.startswith("verbena") for line in lines[1:]), said
    listener = right.start([], tool=("ping", "--listen", "--once"), user=user)
    right.wait_listening(18519, listener)
    report = json.loads(left.verbena("ping", right.v6, "--json", "-c", "100", "--timeout", "5000", user=user))
    listener.finish(20)
    assert report["received"] == 100, report
