"""Reads a room's segments over plain HTTP and compares them with what was said.

A second opinion: it shares no code with the system, only the documented paths and JSON.

    fetch_segments.py follow ORIGIN ROOM ITEMS
    fetch_segments.py compare ITEMS LOG [--also ID]... [--recording JSON --viewers N]

`follow` reads head.json, then every slot from the oldest on, held ones included, until the origin
is gone; it writes one JSON line an item to ITEMS. `compare` holds them against LOG, the lines of
`barrage up --input-log`. It prints what is wrong, and exits with 1 if anything is.
"""

import argparse
import collections
import gzip
import http.client
import json
import sys
import time
import urllib.error
import urllib.request

ANSWER_S_MAX = 10
"""Longest wait for an answer; the next slot is held for its interval and 500 ms."""
START_S_MAX = 30
"""The room must have a head within this time."""
PAUSE_S = 0.1
"""Between two attempts at what is not there yet."""


class Gone(Exception):
    """Nobody listens at the origin any more."""


def get(url):
    """GETs a URL: the status, and the body of a 200 with its Content-Encoding undone."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S_MAX) as answer:
            body = answer.read()
            packed = answer.headers.get("Content-Encoding") == "gzip"
            return answer.status, gzip.decompress(body) if packed else body
    except urllib.error.HTTPError as error:
        return error.code, b""
    except (urllib.error.URLError, ConnectionError, http.client.HTTPException) as error:
        raise Gone(url) from error


def read_head(origin, room):
    """The room's head, as soon as there is one."""
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        status, body = get(f"{origin}/dm/1/{room}/head.json")
        if status == 200:
            return json.loads(body)
        time.sleep(PAUSE_S)
    sys.exit("the room has no head")


def slots(origin, room):
    """Every slot's page, from the oldest one on, until the origin is gone."""
    head = read_head(origin, room)
    gen, slot = head["gen"], head["oldest"]
    while True:
        try:
            status, body = get(f"{origin}/dm/1/{room}/{gen}/full/{slot}.json")
        except Gone:
            return
        if status == 404:  # not sealed within the hold
            time.sleep(PAUSE_S)
            continue
        if status != 200:
            sys.exit(f"slot {slot} was answered {status}")
        page = json.loads(body)
        if (page["room"], page["gen"], page["slot"]) != (room, gen, slot):
            sys.exit(f"slot {slot} holds {page['room']}, {page['gen']}, {page['slot']}")
        yield page
        slot += 1


def follow(origin, room, items):
    """Writes a line for each item and each repeated item."""
    with open(items, "w", encoding="utf-8") as out:
        for page in slots(origin, room):
            lines = [dict(it, gen=page["gen"], again=False) for it in page["items"]]
            lines += [dict(it, again=True) for it in page["repeats"]]
            for line in lines:
                out.write(json.dumps(line) + "\n")


def check_once(shown, expected):
    """Exactly the expected ids, each of them once."""
    counts = collections.Counter(it["id"] for it in shown)
    for item, count in counts.items():
        if count > 1:
            yield f"{item} is there {count} times"
    for item in expected - counts.keys():
        yield f"{item} was sealed and is missing"
    for item in counts.keys() - expected:
        yield f"{item} is there and was not sealed"


def check_seq(shown):
    """Places rise."""
    last = (0, 0)
    for it in shown:
        place = (it["gen"], it["seq"])
        if place <= last:
            yield f"{it['id']} at {place} comes after {last}"
        last = place


def check_repeats(items):
    """A repeat is of something that was shown, in its own place."""
    places = {}
    for it in items:
        place = (it["gen"], it["seq"])
        if places.setdefault(it["id"], place) != place:
            yield f"{it['id']} has two places"
        elif it["again"] and it["lane"] == "comment":
            yield f"{it['id']} is a comment and is repeated"


def check_senders(shown, said):
    """One account is one sender, and one sender one account."""
    senders, accounts = {}, {}
    for it in shown:
        if it["id"] not in said:
            continue
        account, sender = said[it["id"]]["account"], it["sender"]
        if senders.setdefault(account, sender) != sender:
            yield f"{account} has two senders"
        if accounts.setdefault(sender, account) != account:
            yield f"sender {sender} is two accounts"
        if it["text"] != said[it["id"]]["text"]:
            yield f"{it['id']} has another text"


def check_order(shown, said, recording, viewers):
    """Each account's texts come in the order in which the recording was dealt to it."""
    with open(recording, encoding="utf-8") as file:
        comments = sorted(json.load(file), key=lambda it: it["time"])
    for viewer in range(viewers):
        account = f"crowd-{viewer}"
        dealt = iter(it["text"] for it in comments[viewer::viewers])
        texts = [it["text"] for it in shown if said.get(it["id"], {}).get("account") == account]
        # `in` consumes the iterator, so this is false once a text comes before its turn.
        if not all(text in dealt for text in texts):
            yield f"{account} sent in another order than {texts}"


def compare(options):
    """All complaints about the items, given the log."""
    items, log = read_lines(options.items), read_lines(options.log)
    shown = [it for it in items if not it["again"]]
    said = {it["id"]: it for it in log if it["fate"] == "sealed"}
    yield from check_once(shown, said.keys() | set(options.also))
    yield from check_seq(shown)
    yield from check_repeats(items)
    yield from check_senders(shown, said)
    if options.recording:
        yield from check_order(shown, said, options.recording, options.viewers)


def read_lines(path):
    """A JSON value a line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    parser = argparse.ArgumentParser(description="Compares a room's segments with what was said.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("follow")
    for name in ("origin", "room", "items"):
        command.add_argument(name)
    command = commands.add_parser("compare")
    command.add_argument("items")
    command.add_argument("log")
    command.add_argument("--also", action="append", default=[], help="an id not in the log")
    command.add_argument("--recording", help="the JSON file that was played")
    command.add_argument("--viewers", type=int, help="how many it was dealt to")
    options = parser.parse_args()
    if options.command == "follow":
        follow(options.origin, options.room, options.items)
        return 0
    complaints = list(compare(options))
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
