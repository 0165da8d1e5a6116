"""The doctor looks at running processes: what they have made, and their address-handle directories."""

import json
import signal


def findings(host, check, user, status):
    report = json.loads(host.verbena("doctor", "--json", "--log", "off", status=status, user=user))
    return [finding for finding in report["findings"] if finding["check"] == check]


def test_counts_of_running_processes_and_a_limit_that_is_near(host, user):
    listener = host.start([], tool=("ping", "--listen"), user=user)
    host.wait_listening(18519, listener)
    client = host.start([], tool=("ping", host.v4, "--json", "-c", "0", "-i", "20"), user=user,
                        env={"VERBENA_LIMITS": "max_ah=1"})
    listener.wait_line("client")
    resources = findings(host, "resources", user, 3)
    assert [one["result"] for one in resources] == ["warning"], resources
    assert "1 of 1 address handles" in resources[0]["evidence"], resources
    assert "protection domains" in resources[0]["evidence"], resources
    directories = findings(host, "directories", user, 3)
    assert len(directories) == 2, directories
    assert all("address handle" in one["evidence"] and "refused" in one["evidence"] for one in directories), directories
    client.kill(signal.SIGINT)
    client.finish(40)
    assert all(one["result"] == "good" for one in findings(host, "resources", user, 0))
