"""Another user's process holds the software RNIC's UDP port of all addresses: the lists are printed all the same, each device that cannot be
used with its reason, said once."""

import json

import pytest


@pytest.fixture
def taken(host):
    holder = host.start(["python3", "-c", "import socket, time; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); "
                         "s.bind(('::', 4791)); print('bound', flush=True); time.sleep(60)"], user="nobody", tool=None)
    holder.wait_line("bound")
    return host


@pytest.mark.parametrize("subcommand", ["devices", "gids"])
def test_the_list_is_printed_and_says_once_why_a_device_cannot_be_used(taken, subcommand):
    said = taken.verbena(subcommand)
    about = [line for line in said.splitlines() if line.startswith("verbena0 cannot be used: ")]
    assert len(about) == 1 and "UDP port 4791" in about[0] and "VERBENA_UDP=off" in about[0], said
    assert said.count("UDP port 4791") == len([line for line in said.splitlines() if "cannot be used" in line]), said


def test_json_marks_it_and_a_device_asked_for_by_name_is_a_failure(taken):
    rows = {row["name"]: row for row in json.loads(taken.verbena("devices", "--json"))["devices"]}
    assert not rows["verbena0"]["usable"] and "UDP port 4791" in rows["verbena0"]["error"], rows
    listing = json.loads(taken.verbena("gids", "--json"))
    assert [row["device"] for row in listing["unusable"]][:1] == ["verbena0"], listing
    assert "UDP port 4791" in taken.verbena("gids", "--device", "verbena0", status=1)


def test_on_this_host_only_the_device_is_usable_again(taken):
    rows = json.loads(taken.verbena("devices", "--json", env={"VERBENA_UDP": "off"}))["devices"]
    assert all(row["usable"] for row in rows), rows
