# Viewers who log in and read until the process is stopped. Standard input has one a line: port and
# the bytes of the login in hexadecimal.
import selectors
import socket
import sys

viewers = selectors.DefaultSelector()
for line in sys.stdin:
    port, login = line.split()
    viewer = socket.socket()
    # Small, so that whoever does not read is soon seen not to.
    viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    viewer.connect(("127.0.0.1", int(port)))
    viewer.sendall(bytes.fromhex(login))
    viewers.register(viewer, selectors.EVENT_READ)
while True:
    for key, _ in viewers.select():
        if not key.fileobj.recv(65536):
            viewers.unregister(key.fileobj)
            key.fileobj.close()
