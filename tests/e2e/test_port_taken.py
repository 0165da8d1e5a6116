"""Somebody else holds the software RNIC's UDP port: the device opens all the same, works on this host, says who has the port,
names what it cannot send, and takes the port when it is let go."""

import json
import re

import pytest

from harness.process import eventually

PORT = 18519
HOLD = ("import socket, sys, time; at = sys.argv[1]; "
        "s = socket.socket(socket.AF_INET6 if ':' in at else socket.AF_INET, socket.SOCK_DGRAM); "
        "s.bind((at, int(sys.argv[2]))); print('bound', flush=True); time.sleep(120)")


def hold(host, address, port=4791):
    """A process of user nobody that has the port and does not share it."""
    holder = host.start(["python3", "-c", HOLD, address, port], user="nobody", tool=None)
    holder.wait_line("bound")
    return holder


@pytest.fixture
def taken(host):
    hold(host, "::")
    return host


@pytest.mark.parametrize("subcommand", ["devices", "gids"])
def test_the_lists_show_the_device_and_say_who_has_its_port(taken, subcommand):
    said = taken.verbena(subcommand)
    assert re.search(r"^verbena0 .*veth0", said, re.M), said
    assert "cannot be used" not in said and "UDP port 4791" in said, said
    assert re.search(r"process \d+ \(python3\)", said), said


def test_json_marks_it_and_the_device_can_be_asked_for_by_name(taken):
    rows = {row["name"]: row for row in json.loads(taken.verbena("devices", "--json"))["devices"]}
    assert rows["verbena0"]["usable"] and rows["verbena0"]["state"] == "active", rows
    assert {held["address"] for held in rows["verbena0"]["udp_port_held"]} >= {taken.v4, taken.v6}, rows
    listing = json.loads(taken.verbena("gids", "--device", "verbena0", "--json"))
    assert listing["unusable"] == [] and all("python3" in row["udp_port_held_by"] for row in listing["gids"]), listing


def test_of_an_infiniband_port_the_holder_of_its_own_udp_port_is_told(host):
    hold(host, host.v4, 4797)
    infiniband = {"VERBENA_DEVICES": "veth0/link_layer=infiniband/lid=4"}
    rows = json.loads(host.verbena("devices", "--json", env=infiniband))["devices"]
    assert [held["address"] for held in rows[0]["udp_port_held"]] == [host.v4], rows
    assert re.search(r"UDP port 4797 of .* is held by process", host.verbena("devices", env=infiniband))
    assert "this host only: UDP port 4797" in host.verbena("gids", env=infiniband)
    assert json.loads(host.verbena("devices", "--json"))["devices"][0]["udp_port_held"] == []


def test_only_the_address_that_is_taken_is_marked(host):
    hold(host, host.v4)
    rows = json.loads(host.verbena("gids", "--json"))["gids"]
    marked = {row["gid"] for row in rows if row["udp_port_held_by"]}
    assert marked == {f"::ffff:{host.v4}"}, rows


def test_processes_of_one_user_share_the_port_and_nobody_holds_it(host, user):
    server = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(PORT, server)
    assert "UDP port" not in host.verbena("gids", user=user)


def test_processes_of_one_user_talk_on_this_host(taken, user):
    said = taken.verbena("demo", "-c", "1000", user=user, env={"VERBENA_LOG": "error"})
    assert "directory" in said, said


def test_what_goes_to_other_hosts_is_a_named_drop(hosts, user):
    left, right = hosts
    hold(left, "::")
    server = right.start([], tool=("ping", "--listen"))
    right.wait_listening(PORT, server)
    said = left.verbena("ping", right.v4, "-c", "5", "--json", status=1, user=user)
    report = json.loads(said[said.index("{\n"):])
    assert report["drops"] == {"udp_not_open": 5}, report


def test_the_log_says_it_once_with_what_to_do(taken):
    said = taken.run(["ibv_devinfo", "-d", "verbena0"])
    about = [line for line in said.splitlines() if f"UDP port 4791 of ::ffff:{taken.v4}" in line or
             f"UDP port 4791 of {taken.v4}" in line]
    assert len(about) == 1 and "rdma link" in about[0] and "only processes of this user" in about[0], said


def test_the_port_is_taken_when_it_is_let_go(hosts):
    left, right = hosts
    holder = hold(right, "::")
    server = right.start([], tool=("ping", "--listen"))
    right.wait_listening(PORT, server)
    left.verbena("ping", right.v4, "-c", "3", status=1)
    holder.stop()

    def answers():
        once = left.start([], tool=("ping", right.v4, "-c", "3"))
        once.finish(status=None)
        return once.returncode() == 0

    eventually(answers, 20, "datagrams come back")


def test_without_udp_nobody_is_in_the_way(taken):
    said = taken.verbena("gids", env={"VERBENA_UDP": "off"})
    assert "UDP port" not in said, said
