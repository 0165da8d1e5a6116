"""The tool on the kernel's rxe: what it lists, and round trips between two rxe devices."""

import json

import pytest


# The kernel has the port that Verbena's own devices would want.
STAY_HERE = {"VERBENA_UDP": "off"}


def listing(kernel, *words):
    return json.loads(kernel.verbena(*words, "--json", env=STAY_HERE))


def test_a_port_that_the_kernel_holds_is_said_of_each_of_our_devices(kernel):
    for subcommand in ("devices", "gids"):
        said = kernel.verbena(subcommand)
        assert "rxe0" in said and "rxe1" in said, said
    reasons = [line for line in kernel.verbena("devices").splitlines() if "is held by" in line]
    assert {line.split(":")[0].strip() for line in reasons} == {"verbena0", "verbena1"}, reasons
    assert all("UDP port 4791" in line and "the kernel (rxe)" in line and "rdma link" in line for line in reasons), reasons
    rows = json.loads(kernel.verbena("devices", "--json"))["devices"]
    assert {row["name"] for row in rows if row["usable"]} == {"rxe0", "rxe1", "verbena0", "verbena1"}, rows
    assert "UDP port 4791" in kernel.verbena("gids", "--device", "verbena0")


def test_devices_lists_both_rxe_devices(kernel):
    devices = {row["name"]: row for row in listing(kernel, "devices")["devices"]}
    assert {"rxe0", "rxe1"} <= set(devices), devices
    for name, netdev in (("rxe0", "rxea"), ("rxe1", "rxeb")):
        row = devices[name]
        assert row["kind"] == "software" and row["active"] and row["mtu"] == 4096, row
        assert row["netdev"] == netdev and row["gids"] >= 3, row


@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
def test_gids_lists_what_the_kernel_has_and_chooses_by_route(kernel, address):
    rows = [row for row in listing(kernel, "gids")["gids"] if row["device"] == "rxe0"]
    assert {row["gid"] for row in rows} >= {"::ffff:10.9.0.1", "fd09::1"}, rows
    choices = {row["device"]: row for row in listing(kernel, "gids", "--to", address)["choices"]}
    source = choices["rxe0"]
    assert source["source"] == {"10.9.0.2": "::ffff:10.9.0.1", "fd09::2": "fd09::1"}[address], choices
    assert source["index"] == kernel.gid_index(source["source"].replace("::ffff:", "")), choices


@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
def test_ping_between_two_rxe_devices(kernel, address):
    listener = kernel.start([], tool=("ping", "--listen", "--once", "--device", "rxe1"))
    kernel.wait_listening(18519, listener)
    report = json.loads(kernel.verbena("ping", address, "--device", "rxe0", "--json", "-c", "500", "-s", "4096",
                                       "--timeout", "5000", seconds=60))
    listener.finish(20)
    assert report["received"] == report["sent"] == 500 and report["corrupt"] == 0, report
    assert report["device"] == "rxe0" and report["directory"]["created"] == 1, report
    assert report["directory"]["hits"] >= 499, report
