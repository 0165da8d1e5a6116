"""An XRC connection within one process: a queue pair that sends, one that receives, and a shared receive queue."""

import os
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttrEx
from pyverbs.srq import SRQ, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

SIZE = 8192
REMOTE_INVALID_REQUEST = 9


def queue(context, pd, domain, cq):
    wanted = SrqInitAttrEx(max_wr=16)
    wanted.srq_type = e.IBV_SRQT_XRC
    wanted.pd, wanted.xrcd, wanted.cq = pd, domain, cq
    wanted.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD | e.IBV_SRQ_INIT_ATTR_CQ |
                        e.IBV_SRQ_INIT_ATTR_XRCD)
    return SRQ(context, wanted)


def connect(context, qp, peer):
    attributes = QPAttr(port_num=1)
    attributes.dest_qp_num = peer.qp_num
    attributes.path_mtu = e.IBV_MTU_1024
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
    attributes.min_rnr_timer = 12
    attributes.timeout = 14
    attributes.retry_cnt = attributes.rnr_retry = 7
    attributes.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
    route = GlobalRoute(dgid=context.query_gid(1, 1), sgid_index=1)
    attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    qp.to_rts(attributes)


def poll(cq):
    while True:
        count, done = cq.poll()
        if count:
            return done[0]


def expect(fact, what):
    if not fact:
        sys.exit(f"{what} went wrong")
    print(what, flush=True)


def main():
    access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
    attributes = XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1)
    with Context(name=get_device_list()[0].name.decode()) as context, PD(context) as pd, \
            MR(pd, 2 * SIZE, access) as memory, CQ(context, 16) as sent, CQ(context, 16) as received, \
            XRCD(context, attributes) as domain, queue(context, pd, domain, received) as shared:
        sender = QP(context, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_SEND, scq=sent, cap=QPCap(max_send_wr=16), pd=pd,
                                          comp_mask=e.IBV_QP_INIT_ATTR_PD))
        receiver = QP(context, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, xrcd=domain,
                                            comp_mask=e.IBV_QP_INIT_ATTR_XRCD))
        connect(context, receiver, sender)
        connect(context, sender, receiver)

        def post(opcode, number, wr_id):
            request = SendWR(wr_id=wr_id, opcode=opcode, num_sge=1, sg=[SGE(memory.buf, SIZE // 2, memory.lkey)])
            if opcode != e.IBV_WR_SEND:
                request.set_wr_rdma(memory.rkey, memory.buf + SIZE)
            request.set_qp_type_xrc(number)
            sender.post_send(request)
            return poll(sent).status

        memory.write("s" * (SIZE // 2), SIZE // 2)
        shared.post_recv(RecvWR(wr_id=5, num_sge=1, sg=[SGE(memory.buf + SIZE, SIZE, memory.lkey)]))
        status = post(e.IBV_WR_SEND, shared.get_srq_num(), 1)
        done = poll(received)
        expect(status == 0 and (done.wr_id, done.status, done.byte_len, done.qp_num) ==
               (5, 0, SIZE // 2, receiver.qp_num) and memory.read(4, SIZE) == b"ssss", "send")
        memory.write("w" * (SIZE // 2), SIZE // 2)
        status = post(e.IBV_WR_RDMA_WRITE, shared.get_srq_num(), 2)
        expect(status == 0 and memory.read(4, SIZE) == b"wwww", "write")
        memory.write("r" * (SIZE // 2), SIZE // 2, SIZE)
        status = post(e.IBV_WR_RDMA_READ, shared.get_srq_num(), 3)
        expect(status == 0 and memory.read(4, 0) == b"rrrr", "read")
        expect(post(e.IBV_WR_SEND, shared.get_srq_num() + 1, 4) == REMOTE_INVALID_REQUEST, "refused")
        receiver.close()
        sender.close()
    print("ok")


main()
