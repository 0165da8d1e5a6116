#!/usr/bin/python3
"""Finds verbs as collective libraries do: by dlopen() and dlvsym(), never linked. Prints the devices it is shown.

    dlopen_verbs.py NAME     NAME: libibverbs.so.1 or libibverbs.so
"""

import ctypes
import os
import sys


def main():
    libc = ctypes.CDLL(None)
    libc.dlopen.restype = libc.dlvsym.restype = ctypes.c_void_p
    libc.dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
    libc.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    handle = libc.dlopen(sys.argv[1].encode(), os.RTLD_NOW | os.RTLD_LOCAL)
    if not handle:
        raise SystemExit(f"dlopen of {sys.argv[1]} failed")

    def function(name, result, *arguments):
        address = libc.dlvsym(handle, name.encode(), b"IBVERBS_1.1")
        if not address:
            raise SystemExit(f"no {name} at IBVERBS_1.1")
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    count = ctypes.c_int()
    get_list = function("ibv_get_device_list", ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    get_name = function("ibv_get_device_name", ctypes.c_char_p, ctypes.c_void_p)
    open_device = function("ibv_open_device", ctypes.c_void_p, ctypes.c_void_p)
    close_device = function("ibv_close_device", ctypes.c_int, ctypes.c_void_p)
    devices = get_list(ctypes.byref(count))
    for index in range(count.value):
        device = ctypes.cast(devices, ctypes.POINTER(ctypes.c_void_p))[index]
        context = open_device(device)
        opened = "opened" if context and close_device(context) == 0 else "not opened"
        print(get_name(device).decode(), opened)


if __name__ == "__main__":
    main()
