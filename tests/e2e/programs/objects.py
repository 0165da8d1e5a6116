#!/usr/bin/python3
"""A pyverbs program that makes one of each object beside the data path, uses it where that needs no peer, and prints its
name. Each is closed in the order that verbs asks for.

    objects.py      prints one name a line, then `ok`
"""

import os
import tempfile

import pyverbs.enums as e
from pyverbs.cq import CQ, CQEX, CqInitAttrEx
from pyverbs.device import DM, AllocDmAttr, Context, get_device_list
from pyverbs.mr import DMMR, MR, MW
from pyverbs.pd import PD, ParentDomain, ParentDomainContext, ParentDomainInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttrEx
from pyverbs.xrcd import XRCD, XRCDInitAttr

DM_ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ZERO_BASED


def memory_windows(context):
    with PD(context) as pd:
        for kind in (e.IBV_MW_TYPE_1, e.IBV_MW_TYPE_2):
            with MW(pd, kind) as window:
                assert window.rkey != 0


def registered_again(context):
    with PD(context) as pd, PD(context) as other, MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE) as region:
        region.rereg(e.IBV_REREG_MR_CHANGE_PD, pd=other, addr=0, length=0, access=0)
        region.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, pd=other, addr=0, length=0, access=0)


def on_demand(context):
    caps = context.query_device_ex().odp_caps
    assert caps.general_caps & e.IBV_ODP_SUPPORT_IMPLICIT
    access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND
    with PD(context) as pd:
        with MR(pd, 8192, access) as region:
            region.write("verbena", 7)
        with MR(pd, 0, access, implicit=True) as everything:
            assert everything.lkey != 0


def device_memory(context):
    length = 256
    assert context.query_device_ex().max_dm_size >= length
    with DM(context, AllocDmAttr(length=length)) as memory:
        memory.copy_to_dm(8, b"verbena!", 8)
        assert memory.copy_from_dm(8, 8) == b"verbena!"
        with PD(context) as pd, DMMR(pd, length, DM_ACCESS, memory, 0) as region:
            assert region.read(8, 8) == b"verbena!"
        try:
            memory.copy_to_dm(length - 4, b"verbena!", 8)
        except PyverbsRDMAError:
            return
    raise AssertionError("written beyond the end")


def parent_domain(context):
    with PD(context) as pd:
        attributes = ParentDomainInitAttr(pd=pd, pd_context=ParentDomainContext(pd, lambda *_: 0, lambda *_: 0))
        try:
            ParentDomain(context, attr=attributes)
            raise AssertionError("allocators that are never called were taken")
        except PyverbsRDMAError:
            pass
        with ParentDomain(context, attr=ParentDomainInitAttr(pd=pd)) as parent, MR(parent, 64, 0) as region:
            assert region.lkey != 0


def xrc(context):
    with tempfile.TemporaryFile() as file, PD(context) as pd, CQ(context, 16) as cq:
        attributes = XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, file.fileno())
        with XRCD(context, attributes) as domain, XRCD(context, attributes):
            wanted = SrqInitAttrEx(max_wr=16)
            wanted.srq_type = e.IBV_SRQT_XRC
            wanted.pd, wanted.xrcd, wanted.cq = pd, domain, cq
            wanted.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD | e.IBV_SRQ_INIT_ATTR_CQ |
                                e.IBV_SRQ_INIT_ATTR_XRCD)
            with SRQ(context, wanted) as queue:
                assert queue.get_srq_num() != 0
                queue.modify(SrqAttr(srq_limit=4), e.IBV_SRQ_LIMIT)
                assert queue.query().srq_limit == 4


def completion_queues(context):
    with CQ(context, 16) as cq:
        cq.resize(100)
        assert cq.cqe >= 100
    flags = e.IBV_WC_STANDARD_FLAGS | e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
    with CQEX(context, CqInitAttrEx(cqe=16, wc_flags=flags)):
        pass
    clock, unit = context.query_rt_values_ex()
    assert clock >= 0 and unit > 0


def main():
    with Context(name=get_device_list()[0].name.decode()) as context:
        for check in (memory_windows, registered_again, on_demand, device_memory, parent_domain, xrc, completion_queues):
            check(context)
            print(check.__name__, flush=True)
    print("ok")


main()
