#!/usr/bin/python3
"""A pyverbs program with one connection, RC or UC, that does what it is told: one JSON list a line, a method of Endpoint and
its arguments; one JSON value a line is the answer.

    connection.py RC|UC GID_INDEX BYTES      prints `ready {gid, qpn, address, rkey}`; ends with its input or at `quit`
"""

import hashlib
import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

DEPTH = 256
INLINE = 256
ALL_ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
OPCODES = {"send": e.IBV_WR_SEND, "send_imm": e.IBV_WR_SEND_WITH_IMM, "write": e.IBV_WR_RDMA_WRITE,
           "write_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "read": e.IBV_WR_RDMA_READ,
           "swap": e.IBV_WR_ATOMIC_CMP_AND_SWP, "add": e.IBV_WR_ATOMIC_FETCH_AND_ADD}
FLAGS = {"signaled": e.IBV_SEND_SIGNALED, "inline": e.IBV_SEND_INLINE, "fence": e.IBV_SEND_FENCE,
         "solicited": e.IBV_SEND_SOLICITED}


def pattern(seed, length):
    """Bytes that a seed names."""
    return hashlib.shake_128(f"{seed}".encode()).digest(length)


class Endpoint:
    def __init__(self, transport, gid_index, size):
        self.gid_index = gid_index
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 4 * DEPTH)
        self.mr = MR(self.pd, size, ALL_ACCESS)
        self.mr.write(bytes(size), size)
        self.regions = []
        self.type = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC}[transport]
        self.make_qp()

    def make_qp(self):
        cap = QPCap(DEPTH, DEPTH, 4, 4, INLINE)
        self.qp = QP(self.pd, QPInitAttr(qp_type=self.type, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=0))
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = ALL_ACCESS
        self.qp.to_init(attributes)

    def about(self):
        return {"gid": self.context.query_gid(1, self.gid_index).gid, "qpn": self.qp.qp_num, "address": self.mr.buf,
                "rkey": self.mr.rkey, "length": self.mr.length}

    def connect(self, peer, psn=0, peer_psn=0, mtu=5, timeout=14, retry=7, rnr=7, reads=4, rnr_timer=12):
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = ALL_ACCESS
        attributes.path_mtu = mtu
        attributes.dest_qp_num = peer["qpn"]
        attributes.rq_psn = peer_psn
        attributes.sq_psn = psn
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = reads
        attributes.min_rnr_timer = rnr_timer
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = timeout, retry, rnr
        route = GlobalRoute(dgid=GID(peer["gid"]), sgid_index=self.gid_index)
        route.hop_limit = 64
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rtr(attributes)
        self.qp.to_rts(attributes)

    def close_qp(self):
        self.qp.close()

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state

    def region(self, length, access):
        """Another region of the same domain: its address and keys."""
        region = MR(self.pd, length, access)
        region.write(bytes(length), length)
        self.regions.append(region)
        return {"address": region.buf, "rkey": region.rkey, "lkey": region.lkey, "length": length}

    def region_digest(self, number):
        region = self.regions[number]
        return hashlib.sha256(region.read(region.length, 0)).hexdigest()

    def fill(self, offset, length, seed):
        self.mr.write(pattern(seed, length), length, offset)

    def wipe(self, offset, length):
        self.mr.write(bytes(length), length, offset)

    def is_pattern(self, offset, length, seed):
        return self.mr.read(length, offset) == pattern(seed, length)

    def digest(self, offset=0, length=None):
        return hashlib.sha256(self.mr.read(self.mr.length if length is None else length, offset)).hexdigest()

    def number(self, offset):
        return int.from_bytes(self.mr.read(8, offset), sys.byteorder)

    def pieces(self, offset, length, pieces):
        """Scatter or gather entries that cut a range up evenly."""
        size = length // pieces
        return [SGE(self.mr.buf + offset + i * size, size if i + 1 < pieces else length - i * size, self.mr.lkey)
                for i in range(pieces)]

    def receive(self, wr_id, offset, length, pieces=1):
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=pieces, sg=self.pieces(offset, length, pieces)))

    def post(self, opcode, wr_id, offset, length, remote=None, imm=0, flags=("signaled",), pieces=1, compare=0, swap=0):
        """`remote` is [address, rkey]."""
        request = SendWR(wr_id=wr_id, opcode=OPCODES[opcode], num_sge=pieces, imm_data=imm,
                         sg=self.pieces(offset, length, pieces), send_flags=sum(FLAGS[flag] for flag in flags))
        if opcode in ("swap", "add"):
            request.set_wr_atomic(remote[1], remote[0], compare, swap)
        elif remote is not None:
            request.set_wr_rdma(remote[1], remote[0])
        try:
            self.qp.post_send(request)
        except PyverbsRDMAError as error:
            return error.error_code
        return 0

    def poll(self, count=1, seconds=20):
        """Up to `count` completions, as [wr_id, status, opcode, byte_len, imm_data, seconds it took]."""
        found, begin = [], time.monotonic()
        while True:
            _, some = self.cq.poll(count - len(found))
            found += [[wc.wr_id, wc.status, wc.opcode, wc.byte_len, wc.imm_data, time.monotonic() - begin] for wc in some]
            if len(found) == count or time.monotonic() - begin >= seconds:
                return found

    def stream(self, opcode, offset, length, remote, seconds):
        """Requests without end, eight in flight, until one fails. Its completion as poll() has it, and those behind it."""
        begin, posted, done = time.monotonic(), 0, 0
        while time.monotonic() - begin < seconds:
            while posted - done < 8:
                if self.post(opcode, posted, offset, length, remote) != 0:
                    break
                posted += 1
            some = self.poll(8, 0)
            failed = [number for number, completion in enumerate(some) if completion[1] != e.IBV_WC_SUCCESS]
            if failed:
                left = posted - done - len(some)
                return some[failed[0]:] + (self.poll(left, 2) if left else [])
            if (done + len(some)) // 64 != done // 64:
                print("progress", done, flush=True)
            done += len(some)
        return []


def main():
    endpoint = Endpoint(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("ready", json.dumps(endpoint.about()), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        if name == "quit":
            break
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) and "named" in arguments[-1] else {}
        answer = getattr(endpoint, name)(*arguments, **named.get("named", {}))
        print("answer", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
