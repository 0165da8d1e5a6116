"""The tool as a person meets it: what it lists, what it measures, and how it ends."""

import json
import os
import pathlib
import signal
import time

import pytest

from harness.process import eventually

SANITIZED = bool(os.environ.get("VERBENA_SANITIZE"))


def ping(server, client, address, *words, user="root", env=None, seconds=60):
    """`verbena ping` between two processes; what the client reports."""
    listener = server.start([], tool=("ping", "--listen", "--once"), user=user, env=env)
    server.wait_listening(18519, listener)
    report = json.loads(client.verbena("ping", address, "--json", *words, user=user, env=env, seconds=seconds))
    listener.finish(20)
    return report


def test_devices_and_gids_are_listed(host, user):
    assert "verbena0" in host.verbena("devices", user=user)
    listing = host.verbena("gids", user=user)
    assert host.v4 in listing and host.v6 in listing, listing


def test_ping_measures_round_trips_on_one_host(host, user, path):
    report = ping(host, host, host.v4, "-c", "2000", "--timeout", "5000", user=user, env=path)
    assert report["sent"] == 2000 and report["received"] == 2000 and report["corrupt"] == 0, report
    latency = report["round_trip_ns"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"], report
    assert report["directory"]["created"] == 1 and report["directory"]["hits"] >= 1999, report


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_ping_measures_round_trips_between_two_hosts(hosts, user, family):
    left, right = hosts
    report = ping(left, right, getattr(left, family), "-c", "1000", "-s", "4096", "-w", "4", "--timeout", "5000", user=user)
    assert report["received"] == 1000 and report["netdev"] == "veth0", report


def test_ping_tells_loss(host):
    report = ping(host, host, host.v4, "-c", "500", "--impair", "loss=10%,seed=5", "--timeout", "50")
    assert 10 < report["lost"], report
    assert report["received"] + report["late"] + report["lost"] == report["sent"] == 500, report


def test_the_directory_follows_a_source_address_that_goes(hosts, user):
    left, right = hosts
    left.sysctl("net.ipv4.conf.all.promote_secondaries=1", "net.ipv4.conf.veth0.promote_secondaries=1")
    left.ip("address", "add", "10.77.0.50/24", "dev", "veth0")
    listener = right.start([], tool=("ping", "--listen", "--once"), user=user)
    right.wait_listening(18519, listener)
    client = left.start([], tool=("ping", right.v4, "--json", "-c", "0", "-i", "20", "--timeout", "5000"), user=user)

    def counts():
        return left.directory(client.pid, user=user)

    eventually(lambda: counts().get("hits", 0) > 20, 20, "it is under way")
    left.ip("address", "delete", f"{left.v4}/24", "dev", "veth0")
    eventually(lambda: counts().get("created", 0) >= 2, 20, "the address is made anew")
    before = counts()["hits"]
    eventually(lambda: counts()["hits"] > before + 50, 20, "it goes on")
    client.kill(signal.SIGINT)
    output = client.finish(40)
    report = json.loads(output[output.index("{"):])  # behind what the device may have said on stderr
    assert report["received"] > 50, report
    assert report["directory"]["replaced"] + report["directory"]["created"] >= 2, report


def processor_ticks(pid):
    """What a process has used so far, in ticks of 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wake_ups(pid):
    """How often each thread of a process went to sleep by itself so far, summed."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += int(status.read_text(encoding="ascii").split("voluntary_ctxt_switches:")[1].split()[0])
    return total


def sleeps_for_a_second(pid):
    """But for the tool itself, which looks once a second whether it is to end."""
    woken = wake_ups(pid)
    time.sleep(1)
    return wake_ups(pid) - woken <= 1


def test_an_idle_device_uses_no_processor_and_does_not_wake(host, user):
    listener = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(18519, listener)
    host.verbena("ping", host.v4, "-c", "100", "--timeout", "5000", user=user)  # it has worked, and has helpers
    listener.wait_line("client", 20)
    eventually(lambda: sleeps_for_a_second(listener.pid), 20, "what it had begun is done")
    before, woken, begun = processor_ticks(listener.pid), wake_ups(listener.pid), time.monotonic()
    time.sleep(3)
    used, woken = processor_ticks(listener.pid) - before, wake_ups(listener.pid) - woken
    assert used <= 1
    assert woken <= time.monotonic() - begun + 1, "it looks once a second whether it is to end"


def waiting_at(host, port):
    """How many connections wait in the line of a listener."""
    for line in host.run(["ss", "-Hltn", f"sport = :{port}"], tool=None).splitlines():
        return int(line.split()[1])
    return 0


def test_nobody_answers(host):
    output = host.verbena("ping", "10.77.0.77", "-c", "3", status=1, seconds=40)
    assert output.strip(), "it says why"


@pytest.mark.parametrize("words", [["nonsense"], ["ping"], ["drops", "--pid", "-3"], ["run"], ["gids", "--what"]], ids=" ".join)
def test_a_wrong_command_line_is_usage(host, words):
    assert host.verbena(*words, status=2).strip()


@pytest.mark.parametrize("words", [[], ["run"], ["devices"], ["gids"], ["drops"], ["ping"], ["demo"]], ids=" ".join)
def test_help_teaches(host, words):
    output = host.verbena(*words, "--help")
    assert "Usage" in output or "usage" in output, output
    if words:
        assert "Example" in output, output


def test_run_gives_back_the_status_of_the_program(host, user):
    host.run(["sh", "-c", "exit 7"], user=user, status=7)
    host.run(["true"], user=user)
    assert "nonexistent" in host.run(["/nonexistent/program"], user=user, status=1)


def test_demo_runs_both_ends_and_shows_the_directory(host, user):
    assert "ibv_create_ah calls" in host.verbena("demo", user=user, seconds=120)
    report = json.loads(host.verbena("demo", "--json", "--count", "2000", user=user, seconds=120))
    assert report["pid"] != report["responder_pid"], report
    each, managed = report["create_per_send"], report["through_directory"]
    assert each["sent"] > 0 and each["create_ah_calls"] == each["sent"] and each["lost"] == 0, report
    assert managed["sent"] > 0 and managed["create_ah_calls"] == report["destinations"], report
    assert managed["lost"] == 0 and managed["address_cost_ns"] < each["address_cost_ns"], report


def test_a_small_limit_on_file_sizes_is_an_error_in_words(host, user):
    output = host.run(["bash", "-c", f"ulimit -f 1; exec {host.build.tool} run -- ibv_devinfo"], user=user, status=None)
    assert "File too large" in output, output
    silent = host.run(["bash", "-c", f"ulimit -f 0; exec {host.build.tool} run -- ibstat"], user=user, status=1)
    assert "verbena run: File too large" in silent and "ulimit -f" in silent, silent


def test_processes_of_one_address_exchange_with_small_files_too(host, user):
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "limited"]
    words = ["ibv_ud_pingpong", "-g", str(host.gid_index(host.v4)), "-n", "200", "-p", "18520"]
    server = host.start([*limited, *words], user=user)
    host.wait_listening(18520, server)
    assert "iters in" in host.start([*limited, *words, host.v4], user=user).finish(30)
    server.finish(20)


def test_a_variable_that_is_no_setting_is_named_with_the_nearest(host):
    said = host.run(["ibv_devices"], env={"VERBENA_IMPAR": "loss=5%"})
    assert said.count("VERBENA_IMPAR is no setting") == 1 and "VERBENA_IMPAIR?" in said, said
    assert "VERBENA_IMPAR is no setting" in host.verbena("gids", env={"VERBENA_IMPAR": "loss=5%"})


@pytest.mark.parametrize("bad", ["/nonexistent/folder/file", "/", "/etc/passwd"])
def test_a_capture_that_cannot_be_written_is_found_before_anything_runs(host, user, bad):
    for words in (["run", "--pcap", bad, "--", "touch", "/nonexistent-as-well"], ["ping", "--listen", "--pcap", bad],
                  ["demo", "--pcap", bad], ["doctor", "--pcap", bad]):
        said = host.verbena(*words, user=user, status=2)
        assert f"VERBENA_PCAP: " in said and bad in said and "touch" not in said, said
    said = host.verbena("run", "--", "touch", "/nonexistent-as-well", user=user, status=1, env={"VERBENA_PCAP": bad})
    assert bad in said and "touch" not in said, said


def test_a_link_local_peer_needs_its_interface(hosts, user):
    left, right = hosts
    peer = next(word.split("/")[0] for word in right.ip("-6", "-br", "addr", "show", "dev", "veth0").split() if word.startswith("fe80"))
    said = left.verbena("ping", peer, user=user, status=1)
    assert "link-local" in said and f"{peer}%veth0" in said, said
    said = left.verbena("doctor", peer, user=user, status=1)
    assert "link-local" in said and "%veth0" in said, said
    assert "no interface" in left.verbena("ping", f"{peer}%nope", user=user, status=1)
    server = right.start([], tool=("ping", "--listen"), user=user)
    right.wait_listening(18519, server)
    left.verbena("ping", f"{peer}%veth0", "-c", "10", "--timeout", "5000", user=user)


@pytest.mark.parametrize("spec", ["create_ah.fail=ENOMEM,create_ah.chance=5%,seed=3", "create_ah.fail=ENOMEM", "reg_mr.fail=ENOMEM"])
def test_the_demo_shows_an_injected_failure_and_its_cause(host, spec):
    said = host.verbena("demo", "-c", "2000", "--inject", spec, status=1)
    assert "ENOMEM" in said and f"VERBENA_INJECT is {spec}" in said, said


@pytest.mark.skipif(SANITIZED, reason="the sanitizer wants descriptors of its own, and reports their want as errors")
@pytest.mark.parametrize("files", [6, 8, 9, 10, 12, 14, 16, 18, 20])
def test_too_few_descriptors_are_named_with_their_limit(host, user, files):
    said = host.run(["sh", "-c", f"ulimit -n {files}; exec ibv_devinfo -d verbena0"], user=user, status=None)
    lines = [line for line in said.splitlines() if "verbena[" in line]
    assert "GUID" in said.upper() and not lines or len(lines) == 1 and f"this process may have {files} (ulimit -n" in lines[0], said


@pytest.mark.skipif(SANITIZED, reason="the sanitizer wants descriptors of its own, and reports their want as errors")
def test_the_tool_says_which_limit_on_descriptors_until_there_are_enough(host, user):
    for files in range(10, 80, 2):
        shell = f'ulimit -n {files}; exec "$0" ping --listen --port 0'
        server = host.start(["sh", "-c", shell, str(host.build.tool)], user=user, tool=None)
        eventually(lambda: not server.running() or "listening" in server.output(), 20, "it listens or ends")
        if "listening" in server.output():
            return
        said = server.finish(20, status=None)
        assert f"may have {files} " in said and "ulimit -n" in said, said
    raise AssertionError("it never listened")


@pytest.mark.skipif(SANITIZED, reason="the sanitizer wants descriptors of its own, and reports their want as errors")
def test_a_server_out_of_descriptors_rests_and_takes_in_who_waited_when_there_are_some(host, user):
    server = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(18519, server)
    numbers = [int(entry.name) for entry in pathlib.Path(f"/proc/{server.pid}/fd").iterdir()]
    # As its user: another's limits are not even root's everywhere.
    prlimit = ["prlimit", "--pid", str(server.pid)]
    usual = host.run([*prlimit, "--nofile", "--output", "SOFT", "--noheadings"], user=user, tool=None).strip()
    host.run([*prlimit, f"--nofile={max(numbers) + 1}:"], user=user, tool=None)
    connect = ("import socket, sys; all = [socket.create_connection((sys.argv[1], 18519)) for _ in range(int(sys.argv[2]))]; "
               "print('connected', flush=True); sys.stdin.read()")
    free = max(numbers) + 1 - len(numbers)
    crowd = host.start(["/usr/bin/python3", "-c", connect, host.v4, str(free + 2)], tool=None)
    crowd.wait_line("connected")
    eventually(lambda: waiting_at(host, 18519) > 0, 20, "a client is not taken in")
    before = processor_ticks(server.pid)
    time.sleep(3)
    assert processor_ticks(server.pid) - before < 50, "it spins"
    host.run([*prlimit, f"--nofile={usual}:"], user=user, tool=None)
    eventually(lambda: waiting_at(host, 18519) == 0, 20, "all are taken in")
    host.verbena("ping", host.v4, "-c", "3", "--timeout", "5000", user=user)


@pytest.mark.skipif(SANITIZED, reason="the sanitizer wants descriptors of its own, and reports their want as errors")
@pytest.mark.parametrize("words", [("devices",), ("gids",), ("drops",), ("ah", "dump"), ("devices", "--json")])
def test_out_of_descriptors_is_a_failure_with_its_limit_and_no_empty_answer(host, user, words):
    server = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(18519, server)
    client = host.start([], tool=("ping", "--count", "0", "--interval", "1", host.v4), user=user)
    eventually(lambda: host.directory(client.pid, user=user).get("hits", 0) > 0, 20, "there is a directory to ask")
    said = host.run(["sh", "-c", 'ulimit -n 4; exec "$0" "$@"', str(host.build.tool), *words], user=user, tool=None, status=1)
    assert "Too many open files" in said and "an administrator must raise" in said, said
    assert "up to 4" not in said and "is no verbs device" not in said and "this version" not in said, said
