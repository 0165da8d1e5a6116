"""The programs of rdma-core's ibverbs-utils, unmodified, on the software RNIC: on one host and between two."""

import ipaddress
import re

import pytest

PORT = 18515


def pingpong(server, client, user, address, env, *options):
    """ibv_ud_pingpong between two processes; fails unless both do all their exchanges."""
    command = ["ibv_ud_pingpong", "-n", "500", "-s", "1000", *options]
    one = server.start([*command, "-p", str(PORT), "-g", str(server.gid_index(address[0], user=user, env=env))],
                       user=user, env=env)
    server.wait_listening(PORT, one)
    other = client.start([*command, "-p", str(PORT), "-g", str(client.gid_index(address[1], user=user, env=env)),
                          server.v4], user=user, env=env)
    for process in (other, one):
        assert re.search(r"^500 iters in .* seconds", process.finish(30), re.MULTILINE), process.describe()


def test_ibv_devices_lists_the_device(host, user):
    output = host.run(["ibv_devices"], user=user)
    assert re.search(r"^\s*verbena0\s+[0-9a-f]{16}$", output, re.MULTILINE), output


def test_ibv_devinfo_describes_device_and_port(host, user):
    output = host.run(["ibv_devinfo", "-v"], user=user)
    for wanted in (r"hca_id:\s+verbena0", r"transport:\s+InfiniBand", r"phys_port_cnt:\s+1", r"state:\s+PORT_ACTIVE",
                   r"active_mtu:\s+4096", r"link_layer:\s+Ethernet", r"max_qp:\s+[1-9]", r"max_ah:\s+[1-9]",
                   r"max_mcast_grp:\s+[1-9]", r"fw_ver:\s+\S+"):
        assert re.search(wanted, output), f"{wanted} not in\n{output}"
    assert not re.search(r"GID\[.*RoCE v1", output), "RoCEv1 is not spoken"
    assert re.search(r"GID\[\s*\d+\]:.*RoCE v2", output), output


@pytest.mark.parametrize("link_layer, wanted", [("Ethernet", "Base lid: 0"), ("InfiniBand", "Base lid: 4")])
def test_ibstat_describes_device_and_port(host, user, link_layer, wanted):
    words = "veth0" if link_layer == "Ethernet" else "veth0/link_layer=infiniband/lid=4"
    output = host.run(["ibstat"], user=user, env={"VERBENA_DEVICES": words})
    for line in ("CA 'verbena0'", "Number of ports: 1", "State: Active", "Physical state: LinkUp",
                 f"Link layer: {link_layer}", wanted):
        assert re.search(rf"^\s*{line}$", output, re.MULTILINE), f"{line} not in\n{output}"
    assert host.run(["ibstat", "-l"], user=user).split() == ["verbena0"]


def test_ibv_devinfo_lists_every_address_as_a_gid(host, user):
    gids = set(host.gids(user=user).values())
    assert {host.v4, str(ipaddress.ip_address(host.v6))} <= gids
    assert any(gid.startswith("fe80:") for gid in gids)


def test_ibv_devinfo_tells_the_mtu_that_an_ordinary_frame_allows(plain_hosts):
    output = plain_hosts[0].run(["ibv_devinfo", "-v"])
    assert re.search(r"active_mtu:\s+1024", output), output


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("wait", ["poll", "events"])
def test_ibv_ud_pingpong_between_two_processes(host, user, path, family, wait):
    address = host.v4 if family == "ipv4" else host.v6
    pingpong(host, host, user, (address, address), path, *(["-e"] if wait == "events" else []), "-c")


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_ibv_ud_pingpong_between_two_hosts(hosts, user, family):
    left, right = hosts
    addresses = (left.v4, right.v4) if family == "ipv4" else (left.v6, right.v6)
    pingpong(left, right, user, addresses, {}, "-c")


def test_ibv_ud_pingpong_over_ordinary_frames(plain_hosts):
    left, right = plain_hosts
    pingpong(left, right, "root", (left.v4, right.v4), {}, "-e")


def test_a_program_without_the_tool_sees_no_device(host, user):
    output = host.run(["ibv_devices"], user=user, tool=None, status=None)
    assert "verbena" not in output
