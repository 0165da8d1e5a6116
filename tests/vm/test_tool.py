"""The tool on the kernel's rxe: what it lists, and round trips between two rxe devices."""

import json
import pathlib

import pytest

from guest.session import Session


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


def test_ah_top_and_dump_follow_a_process_on_rxe(kernel):
    one = Session(kernel, "rxe0")
    one.must("acquire", "10.9.0.2", 5000)
    one.must("acquire", "fd09::2", 5000)
    pid = str(one.process.pid)
    process = json.loads(kernel.verbena("ah", "top", "--once", "--json", "--pid", pid))["processes"][0]
    counts = process["directories"][0]["counts"]
    assert counts["created"] == counts["live"] == counts["ready"] == counts["handles"] == 2, counts
    assert "rxe0" in kernel.verbena("ah", "top", "--once", "--pid", pid)
    entries = json.loads(kernel.verbena("ah", "dump", "--json", "--pid", pid))["processes"][0]["entries"]
    assert {entry["state"] for entry in entries} == {"ready"} and len(entries) == 2, entries
    # Who holds it, and what the kernel's neighbour table had when the handle was made.
    said = kernel.verbena("ah", "dump", "--pid", pid)
    mac = pathlib.Path("/sys/class/net/rxeb/address").read_text(encoding="ascii").strip()
    assert "10.9.0.2" in said and "fd09::2" in said and mac in said and "endpoint.cc:" in said, said
    one.close()


def findings(report, check):
    return [finding for finding in report["findings"] if finding["check"] == check]


def test_the_doctor_finds_rxe_and_says_what_its_holding_the_port_means(kernel):
    report = json.loads(kernel.verbena("doctor", "--json", "--log", "off", status=1))
    ports = {finding["subject"]: finding["result"] for finding in findings(report, "port_state")}
    assert all(any(name in subject and result == "good" for subject, result in ports.items()) for name in ("rxe0", "rxe1")), ports
    held = findings(report, "udp_4791")
    assert len(held) == 1 and held[0]["result"] == "failure", held
    assert "held by the kernel" in held[0]["evidence"] and "rxe has the port" in held[0]["cause"], held
    assert "rdma link delete" in held[0]["remedy"] and "VERBENA_UDP=off" in held[0]["remedy"], held


@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
def test_the_doctor_proves_that_data_moves_between_two_rxe_devices(kernel, address):
    server = kernel.start([], tool=("doctor", "--serve", "--once", "--device", "rxe1"), env=STAY_HERE)
    kernel.wait_listening(18519, server)
    report = json.loads(kernel.verbena("doctor", address, "--device", "rxe0", "--json", env=STAY_HERE, seconds=60, status=None))
    server.finish(20)
    probes = findings(report, "probe")
    assert len(probes) == 2 and all(finding["result"] == "good" for finding in probes), report
    assert "20 of 20 datagrams of 4096 bytes" in probes[1]["evidence"], probes
    for check in ("source_for_peer", "gid_match", "route", "hop_limit", "path_mtu", "handshake", "address_handle"):
        # A neighbour that had to be asked for first is a note.
        assert [finding["result"] for finding in findings(report, check)] in (["good"], ["note"]), (check, report)
