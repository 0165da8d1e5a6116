"""A pyverbs program (Debian's python3-pyverbs, unmodified): sends, replies to a completion, hears a multicast group."""

import ipaddress

import pytest

GROUPS = {"ipv4": "::ffff:239.77.0.5", "ipv6": "ff0e::77:5"}


def ask_and_answer(server, client, user, address, mgid, env):
    group = ipaddress.IPv6Address(mgid).exploded
    program = server.build.program("reply")
    one = server.start([*program, "server", server.gid_index(address[0], user=user, env=env), group], user=user, env=env)
    _, gid, qpn = one.wait_line("ready").split()
    output = client.run([*program, "client", client.gid_index(address[1], user=user, env=env), group, gid, qpn],
                        user=user, env=env)
    assert output.endswith("ok"), output
    one.wait_line("heard group hello")
    one.say("stop")
    one.finish(20)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_replies_to_a_completion_and_hears_a_group_on_one_host(host, user, path, family):
    address = host.v4 if family == "ipv4" else host.v6
    ask_and_answer(host, host, user, (address, address), GROUPS[family], path)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_replies_to_a_completion_and_hears_a_group_between_two_hosts(hosts, user, family):
    left, right = hosts
    addresses = (left.v4, right.v4) if family == "ipv4" else (left.v6, right.v6)
    ask_and_answer(left, right, user, addresses, GROUPS[family], {})
