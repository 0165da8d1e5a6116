"""The address-handle directories of running processes, looked at from outside."""

import json
import signal

from harness.process import eventually


def looked_at(host, user, *words):
    """What `verbena ah` says about each process, as JSON."""
    return json.loads(host.verbena("ah", *words, "--json", user=user))


def test_top_and_dump_follow_a_running_process(host, user):
    server = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(18519, server)
    client = host.start([], tool=("ping", "--count", "0", "--interval", "1", host.v4), user=user)
    pid = str(client.pid)

    def hits():
        return host.directory(client.pid, user=user).get("hits", 0)

    eventually(lambda: hits() > 100, 20, "the directory is used")
    before = hits()
    eventually(lambda: hits() > before, 20, "the counts go on")
    entries = looked_at(host, user, "dump", "--pid", pid)["processes"][0]["entries"]
    assert len(entries) == 1 and host.v4 in entries[0]["destination"] and entries[0]["state"] == "ready", entries

    client.kill(signal.SIGSTOP)
    for words in (("top", "--once"), ("dump",), ("top", "--once", "--json")):
        said = host.verbena("ah", *words, "--pid", pid, user=user, status=1)
        assert f"process {pid} showed no directory: it does not answer" in said, said
    assert f"process {pid} gave no counters: it does not answer" in host.verbena("drops", "--pid", pid, user=user, status=1)
    silent = looked_at(host, user, "top", "--once")["silent"]
    assert len(silent) == 1 and "does not answer" in silent[0]["reason"], silent
    # Who is asked for by name is the only one that is asked: nobody else's silence is waited for.
    alone = looked_at(host, user, "top", "--once", "--pid", str(server.pid))
    assert [process["pid"] for process in alone["processes"]] == [server.pid] and alone["silent"] == [], alone
    client.kill(signal.SIGCONT)
    client.kill(signal.SIGINT)
    client.finish(20)
    server.kill(signal.SIGINT)
    server.finish(20, status=None)
    assert looked_at(host, user, "top", "--once")["processes"] == []
