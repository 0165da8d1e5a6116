#!/usr/bin/python3
"""A pyverbs program with one datagram queue pair on an InfiniBand port, that does what it is told: one JSON list a line, a
method of Endpoint and its arguments; one JSON value a line is the answer.

    infiniband.py [PKEY_INDEX]    prints `ready {lid, gid, qpn}`; ends with its input
"""

import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

SIZE = 4096
QKEY = 0x1234
UNTOUCHED = 0x5a


class Endpoint:
    def __init__(self, pkey_index):
        self.context = Context(name="verbena0")
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 64)
        self.mr = MR(self.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=self.cq, rcq=self.cq, cap=QPCap(16, 16, 1, 1)))
        attributes = QPAttr(port_num=1)
        attributes.qkey = QKEY
        attributes.pkey_index = pkey_index
        self.qp.to_init(attributes)
        attributes.qp_state = e.IBV_QPS_RTR
        self.qp.to_rts(attributes)
        self.handles = {}
        self.others = []

    def about(self):
        return {"lid": self.context.query_port(1).lid, "gid": self.context.query_gid(1, 0).gid, "qpn": self.qp.qp_num}

    def about_now(self):
        return self.about()

    def open(self, name):
        """Another device of this process."""
        self.others.append(Context(name=name))
        return self.others[-1].query_port(1).lid

    def make(self, name, lid, gid=None, **fields):
        """An address handle; an errno where it is refused."""
        attributes = AHAttr(dlid=lid, port_num=1, sl=fields.get("sl", 0), src_path_bits=fields.get("path_bits", 0))
        if gid is not None:
            route = GlobalRoute(dgid=GID(gid), sgid_index=0)
            route.flow_label, route.traffic_class, route.hop_limit = 0x12345, 0x28, 9
            attributes = AHAttr(gr=route, is_global=1, dlid=lid, port_num=1, sl=fields.get("sl", 0),
                                src_path_bits=fields.get("path_bits", 0))
        try:
            self.handles[name] = AH(self.pd, attr=attributes)
            return 0
        except PyverbsRDMAError as error:
            return error.error_code

    def post(self):
        self.mr.write(bytes([UNTOUCHED]) * SIZE, SIZE)
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, 1024, self.mr.lkey)]))

    def send(self, name, qpn, text):
        """The status of its completion."""
        self.mr.write(text.encode(), len(text), 2048)
        request = SendWR(num_sge=1, sg=[SGE(self.mr.buf + 2048, len(text), self.mr.lkey)])
        request.set_wr_ud(self.handles[name], qpn, QKEY)
        self.qp.post_send(request)
        return self.poll(5).status

    def poll(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            count, completions = self.cq.poll()
            if count:
                return completions[0]
        return None

    def receive(self, seconds=5):
        """What came; null where nothing did."""
        completion = self.poll(seconds)
        if completion is None:
            return None
        data = self.mr.read(completion.byte_len, 0)
        self.last = completion
        return {"status": completion.status, "slid": completion.slid, "sl": completion.sl,
                "path_bits": completion.dlid_path_bits, "grh": bool(completion.wc_flags & e.IBV_WC_GRH),
                "front": data[:40].hex(), "text": data[40:].decode(), "src_qp": completion.src_qp,
                "length": completion.byte_len}

    def answer(self, name):
        """An address handle made from what came last, as ibv_create_ah_from_wc() makes it."""
        self.handles[name] = AH(self.pd, wc=self.last, grh=self.mr.buf, port_num=1)
        return 0


def main():
    endpoint = Endpoint(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print("ready", json.dumps(endpoint.about()), flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        print("answer", json.dumps(getattr(endpoint, method)(*arguments, **named)), flush=True)


if __name__ == "__main__":
    main()
