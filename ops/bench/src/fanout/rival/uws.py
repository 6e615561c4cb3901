"""uWebSockets, by way of socketify: whoever comes to /s gets what anybody says at /p."""

import sys

from socketify import App

# Subscribers must get everything, and nobody is asked for a sign of life in the middle of a round.
LIMITS = {"idle_timeout": 0, "max_backpressure": 16 << 20}


def subscribe(ws):
    ws.subscribe("room")


def publish(ws, item, opcode):
    app.publish("room", item, opcode)


app = App()
app.ws("/s", {"open": subscribe, **LIMITS})
app.ws("/p", {"message": publish, **LIMITS})
app.listen({"host": "127.0.0.1", "port": int(sys.argv[1])})
app.run()
