#!/usr/bin/python3
"""Sends what it is told, as the payload of UDP datagrams to port 4791, unfragmented: one JSON list a line, of source address,
source port, destination address and the payload in hexadecimal. Prints `sent` after each."""

import json
import socket
import sys

IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, DO = 10, 23, 2

sockets = {}
for line in sys.stdin:
    source, port, destination, payload = json.loads(line)
    if (source, port) not in sockets:
        version6 = ":" in source
        made = socket.socket(socket.AF_INET6 if version6 else socket.AF_INET, socket.SOCK_DGRAM)
        if version6:
            made.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, DO)
        else:
            made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DO)
        made.bind((source, port))
        sockets[source, port] = made
    sockets[source, port].sendto(bytes.fromhex(payload), (destination, 4791))
    print("sent", flush=True)
