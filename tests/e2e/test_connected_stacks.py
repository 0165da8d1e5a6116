"""Communication libraries on connections, unmodified from Debian: UCX over RC and UD, Open MPI over UCX."""

import re
import subprocess

import pytest

from harness.pair import Way

PORT = 13337
# UCX sets up its RC endpoints with datagrams; its alias rc_v says both.
TRANSPORTS = {"rc_verbs": "rc_verbs,ud_verbs:aux", "ud_verbs": "ud_verbs"}
# Messages to 16 KiB go by copies, longer ones by RDMA.
TESTS = [("ucp_am_bw", 4096), ("ucp_am_lat", 64), ("tag_bw", 65536), ("tag_lat", 8), ("ucp_put_bw", 4096), ("ucp_put_lat", 64),
         ("ucp_get", 65536), ("ucp_add", 8), ("ucp_fadd", 8), ("ucp_swap", 8), ("ucp_cswap", 8)]


def settings(host, transport, **more):
    return {"UCX_TLS": TRANSPORTS[transport], "UCX_NET_DEVICES": "verbena0:1", "UCX_WARN_UNUSED_ENV_VARS": "n",
            "UCX_LOG_LEVEL": "error", **more}


def ucx(way, transport, test, size):
    words = ["ucx_perftest", "-t", test, "-s", size, "-n", "500", "-w", "10", "-p", PORT]
    one = way.start(0, words, env=settings(way.server, transport, UCX_IB_GID_INDEX=way.gid_index(0)))
    way.server.wait_listening(PORT, one)
    other = way.start(1, [*words, way.server.v4], env=settings(way.client, transport, UCX_IB_GID_INDEX=way.gid_index(1)))
    output = other.finish(40)
    one.finish(20)
    assert re.search(r"^Final:\s+500 ", output, re.MULTILINE), output


@pytest.mark.parametrize("test,size", TESTS, ids=[test for test, _ in TESTS])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ucx_perftest_on_one_host(host, path, transport, test, size):
    ucx(Way(host, host, "v4", "nobody", path), transport, test, size)


@pytest.mark.parametrize("test,size", [("ucp_am_bw", 100000), ("tag_lat", 64), ("ucp_get", 65536)])
@pytest.mark.parametrize("transport,family", [("rc_verbs", "v4"), ("rc_verbs", "v6"), ("ud_verbs", "v6")])
def test_ucx_perftest_between_two_hosts(hosts, user, transport, family, test, size):
    ucx(Way(*hosts, family, user), transport, test, size)


@pytest.fixture(scope="module")
def mpi_program(build, tmp_path_factory):
    made = tmp_path_factory.mktemp("mpi") / "mpi_exchange"
    subprocess.run(["mpicc", "-O2", "-o", made, build.source / "programs" / "mpi_exchange.c"], check=True, timeout=60)
    return made


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_open_mpi_exchanges_and_reduces_among_four_ranks(host, path, transport, mpi_program):
    env = {**path, **settings(host, transport), "UCX_IB_GID_INDEX": host.gid_index(host.v4),
           "OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
    mpirun = ["mpirun", "--oversubscribe", "-np", "4", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca",
              "pml_ucx_devices", "any", "--mca", "btl", "^openib,uct", "--mca", "osc", "^ucx"]
    output = host.run([*mpirun, mpi_program, "1048576"], env=env, seconds=90)
    assert re.search(r"^ok 4$", output, re.MULTILINE), output
