#!/usr/bin/python3
"""A pyverbs program on `lo` (VERBENA_DEVICES=lo): sends an Ethernet frame and a UDP packet to itself through raw packet
queue pairs, and takes each by a flow of its own.

    frames.py       prints `ok`
"""

import time

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.spec import EthSpec, Ipv4ExtSpec, TcpUdpSpec
from pyverbs.wr import SGE, RecvWR, SendWR

MACS = bytes.fromhex("021122334455") + bytes.fromhex("0266778899aa")
PLAIN = MACS + bytes.fromhex("88b5") + b"a frame of its own type"
UDP = MACS + bytes.fromhex("0800" "4500001c00004000401100007f0000017f000002" "c35023280008" "0000") + b"to port 9000"


def ready(pd, cq):
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=QPCap(max_send_wr=8, max_recv_wr=8)))
    attributes = QPAttr(port_num=1)
    attributes.qp_state = e.IBV_QPS_INIT
    qp.modify(attributes, e.IBV_QP_STATE | e.IBV_QP_PORT)
    for state in (e.IBV_QPS_RTR, e.IBV_QPS_RTS):
        qp.modify(QPAttr(qp_state=state), e.IBV_QP_STATE)
    return qp


def flow(qp, *specs):
    attributes = FlowAttr(num_of_specs=len(specs), port=1)
    attributes.specs.extend(specs)
    return Flow(qp, attributes)


def take(cq):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        count, completions = cq.poll(1)
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return completions[0]
    raise AssertionError("nothing completed in ten seconds")


def cross(sender, receiver, sends, receives, region, frame):
    """Sends the frame and returns what the receiver got."""
    region.write(frame, len(frame))
    receiver.post_recv(RecvWR(num_sge=1, sg=[SGE(region.buf + 2048, 2048, region.lkey)]))
    sender.post_send(SendWR(num_sge=1, sg=[SGE(region.buf, len(frame), region.lkey)], opcode=e.IBV_WR_SEND,
                            send_flags=e.IBV_SEND_SIGNALED))
    take(sends)
    return region.read(take(receives).byte_len, 2048)


def main():
    with Context(name=get_device_list()[0].name.decode()) as context, PD(context) as pd:
        sends, typed, ported = CQ(context, 8), CQ(context, 8), CQ(context, 8)
        region = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
        sender, by_type, by_port = ready(pd, sends), ready(pd, typed), ready(pd, ported)
        flows = [flow(by_type, EthSpec(dst_mac="02:11:22:33:44:55", ether_type=0x88b5)),
                 flow(by_port, EthSpec(dst_mac="02:11:22:33:44:55"), Ipv4ExtSpec(dst_ip="127.0.0.2"),
                      TcpUdpSpec(e.IBV_FLOW_SPEC_UDP, dst_port=9000))]
        assert cross(sender, by_type, sends, typed, region, PLAIN) == PLAIN
        assert cross(sender, by_port, sends, ported, region, UDP) == UDP
        for closed in (*flows, sender, by_type, by_port, region, sends, typed, ported):
            closed.close()
    print("ok")


if __name__ == "__main__":
    main()
