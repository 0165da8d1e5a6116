#!/usr/bin/python3
"""A pyverbs program: a server that answers each datagram with an address handle made from the completion alone, and a
client that asks. Both attach to a multicast group and hear one datagram to it.

    reply.py server GID_INDEX MGID             prints `ready GID QPN`, answers until its input ends
    reply.py client GID_INDEX MGID GID QPN     asks ten times, then sends one to the group; prints `ok`
"""

import ctypes
import ipaddress
import select
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

QKEY = 0x1234
GRH_BYTES = 40
SLOT = 512
COUNT = 16


def native_qp(qp):
    """The struct ibv_qp that a pyverbs QP stands for, for the calls that pyverbs 44 does not have: of the pointers in
    the Python object, the one that leads to this QP number (at 52), a state (56) and the type UD (60)."""
    words = ctypes.string_at(id(qp), type(qp).__basicsize__)
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for (pointer,) in struct.iter_unpack("Q", words[:len(words) // 8 * 8]):
            try:
                memory.seek(pointer)
                head = memory.read(64)
            except (OSError, ValueError, OverflowError):
                continue
            if len(head) == 64 and struct.unpack_from("III", head, 52) == (qp.qp_num, e.IBV_QPS_RTS, e.IBV_QPT_UD):
                return pointer
    raise SystemExit("cannot find the ibv_qp of the QP")


class Endpoint:
    def __init__(self, gid_index):
        self.gid_index = gid_index
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 4 * COUNT)
        self.mr = MR(self.pd, SLOT * (COUNT + 1), e.IBV_ACCESS_LOCAL_WRITE)
        init = QPInitAttr(qp_type=e.IBV_QPT_UD, scq=self.cq, rcq=self.cq, cap=QPCap(COUNT, COUNT, 1, 1, 0), sq_sig_all=1)
        attributes = QPAttr(port_num=1)
        attributes.qkey = QKEY
        self.qp = QP(self.pd, init, attributes)  # which takes it to RTS
        for slot in range(COUNT):
            self.post_receive(slot)
        self.gid = self.context.query_gid(1, gid_index).gid

    def post_receive(self, slot):
        piece = SGE(self.mr.buf + slot * SLOT, SLOT, self.mr.lkey)
        self.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[piece]))

    def attach(self, mgid):
        verbs = ctypes.CDLL("libibverbs.so.1")
        raw = ipaddress.IPv6Address(mgid).packed
        pointer = ctypes.c_void_p(native_qp(self.qp))
        result = verbs.ibv_attach_mcast(pointer, raw, 0)
        if result != 0:
            raise SystemExit(f"ibv_attach_mcast to {mgid} gave {result}")
        return lambda: verbs.ibv_detach_mcast(pointer, raw, 0)

    def send(self, handle, qpn, text):
        self.mr.write(text, len(text), SLOT * COUNT)
        piece = SGE(self.mr.buf + SLOT * COUNT, len(text), self.mr.lkey)
        request = SendWR(wr_id=1000, num_sge=1, sg=[piece], send_flags=e.IBV_SEND_SIGNALED)
        request.set_wr_ud(handle, qpn, QKEY)
        self.qp.post_send(request)

    def completions(self):
        count, found = self.cq.poll(COUNT)
        for completion in found[:count]:
            if completion.status != e.IBV_WC_SUCCESS:
                raise SystemExit(f"bad completion: status {completion.status}")
        return found[:count]

    def text(self, completion):
        return self.mr.read(completion.byte_len - GRH_BYTES, completion.wr_id * SLOT + GRH_BYTES).decode()

    def reply_handle(self, completion):
        """As ibv_create_ah_from_wc makes it: of the completion and the 40 bytes in front of the payload."""
        address = self.mr.buf + completion.wr_id * SLOT
        grh = ctypes.string_at(address, GRH_BYTES)
        assert completion.wc_flags & e.IBV_WC_GRH, "no GRH"
        check_network_header(grh)
        return AH(self.pd, wc=completion, grh=address, port_num=1)

    def handle_to(self, gid):
        route = GlobalRoute(dgid=GID(gid), sgid_index=self.gid_index)
        route.hop_limit = 64
        return AH(self.pd, attr=AHAttr(gr=route, is_global=1, port_num=1))

    def wait(self, wanted, seconds=20):
        """The text of the next datagram that begins with `wanted`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for completion in self.completions():
                if completion.wr_id < COUNT:
                    text = self.text(completion)
                    self.post_receive(completion.wr_id)
                    if text.startswith(wanted):
                        return text
        raise SystemExit(f"nothing came that begins with {wanted}")


def check_network_header(grh):
    """Twenty zeros and a whole IPv4 header, or an IPv6 header: what ibv_init_ah_from_wc tells apart."""
    if grh[0] >> 4 == 6:
        assert grh[6] == 17, "next header is not UDP"
        return
    assert grh[:20] == bytes(20), "the bytes before the IPv4 header are not zero"
    assert grh[20] == 0x45, "not an IPv4 header"
    total = sum(struct.unpack(">10H", grh[20:]))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    assert total == 0xffff, "the checksum of the IPv4 header is wrong"


def server(endpoint, mgid):
    detach = endpoint.attach(mgid)
    print("ready", endpoint.gid, endpoint.qp.qp_num, flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for completion in endpoint.completions():
            if completion.wr_id >= COUNT:
                continue
            text = endpoint.text(completion)
            if text.startswith("ask"):
                handle = endpoint.reply_handle(completion)
                endpoint.send(handle, completion.src_qp, "answer" + text[3:])
                handle.close()
            else:
                print("heard", text, flush=True)
            endpoint.post_receive(completion.wr_id)
    assert detach() == 0


def client(endpoint, mgid, gid, qpn):
    detach = endpoint.attach(mgid)
    handle = endpoint.handle_to(gid)
    for number in range(10):
        endpoint.send(handle, qpn, f"ask {number}")
        assert endpoint.wait("answer") == f"answer {number}"
    group = endpoint.handle_to(ipaddress.IPv6Address(mgid).exploded)
    endpoint.send(group, 0xffffff, "group hello")
    endpoint.wait("group hello")
    group.close()
    handle.close()
    assert detach() == 0
    print("ok", flush=True)


def main():
    endpoint = Endpoint(int(sys.argv[2]))
    if sys.argv[1] == "server":
        server(endpoint, sys.argv[3])
    else:
        client(endpoint, sys.argv[3], sys.argv[4], int(sys.argv[5]))


if __name__ == "__main__":
    main()
