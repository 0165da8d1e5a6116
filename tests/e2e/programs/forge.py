#!/usr/bin/python3
"""Sends what it is told, as the payload of UDP datagrams, unfragmented: one JSON list a line, of source address, source port,
destination address, the payload in hexadecimal and the destination port. Prints `sent` after each."""

import json
import socket
import sys

IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, DO = 10, 23, 2

sockets = {}
for line in sys.stdin:
    source, port, destination, payload, to = json.loads(line)
    if (source, port) not in sockets:
        version6 = ":" in source
        made = socket.socket(socket.AF_INET6 if version6 else socket.AF_INET, socket.SOCK_DGRAM)
        if version6:
            made.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, DO)
        else:
            made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DO)
        made.bind((source, port))
        sockets[source, port] = made
    sockets[source, port].sendto(bytes.fromhex(payload), (destination, to))
    print("sent", flush=True)
