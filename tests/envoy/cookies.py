# SPDX-License-Identifier: Apache-2.0
"""Compares what Envoy and signalbox do with each other's session cookies, in four modes. Fleets
that mix both need the same behaviour.

    a cookie, a host ─▶ [Side of signalbox] ─┐
                     └▶ [Side of Envoy] ─────┴▶ the host that answers, the cookie that is set ─▶ Judge

    presented     Each side gets a cookie that this file writes: does the session stay on its host,
                  and does the side set a new cookie?
    alternating   A session begins on one side, and its calls go to both sides in turn: does it stay
                  on its host?
    tiers         A session of an aggregate with loads 70/30 begins on each side and uses that side
                  alone: does it stay on its host?
    attributes    The attributes of Set-Cookie, such as Path.

For HTTP, signalbox's Pick API is compared with HTTP/1.1 through Envoy. For gRPC, signalbox's
drop-in channel is compared with a channel of gRPC's own through Envoy."""

import base64
import contextlib
import http.client
import time
from dataclasses import dataclass
from typing import Callable

import sessions
from differences import Judge
from peer import Envoy
from sides import Backends, OurSide, Programs

REPEATS = 8  # More than any cluster has hosts, so round robin cannot stay on one host.
DRAWS = 60  # Calls that draw a tier. All of them draw the same tier with probability 0.7 ** 60.
ALTERNATIONS = 100
SESSIONS = 5  # One more than the cluster has hosts.
PATIENCE = 30


@dataclass(frozen=True)
class Answer:
    backend: str  # Empty: the call failed.
    set_cookie: str  # Empty: none is set.


@dataclass(frozen=True)
class Side:
    name: str
    call: Callable  # (listener, value of the header Cookie or "", path) -> Answer


# --- cookies as other programs write them ---------------------------------------------------------


def varint(number: int) -> bytes:
    """The number as a varint of protobuf."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes(written + bytes([number]))


def text_field(number: int, text: str) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(text)) + text.encode()


def number_field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + varint(value)


def encoded(text: bytes | str) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


FAR_FUTURE = number_field(2, 1 << 40)


def two_forms(grpcs: str, envoys: str) -> bytes:
    """A cookie in which gRPC reads the host `grpcs`, and Envoy reads `envoys`. Envoy skips gRPC's
    text, because "1" and ":" are tags of fields that Envoy's message does not have."""
    ip, _, port = grpcs.partition(":")
    assert len(ip) == len("127.0.0.1"), "eight bytes, the field of the first tag, stand before the colon"
    skipped = ord(port[0])
    return f"{ip}:{port[0]}{(port[1:] + ';').ljust(skipped, 'c')}".encode() + text_field(1, envoys)


def presented_cookies(host: str, cluster: str, other: str = "127.0.0.1:1") -> dict[str, str]:
    """Values of the header Cookie, by case. Most of them name `host`; the others are wrong in one
    way, or lack a usable cookie."""
    address = text_field(1, host)
    values = {
        "envoy": encoded(address),
        "envoy_with_expiry": encoded(address + FAR_FUTURE),
        "envoy_expired": encoded(address + number_field(2, 1)),
        "envoy_with_cluster": encoded(address + FAR_FUTURE + text_field(3, cluster)),
        "envoy_in_quotes": '"' + encoded(address + FAR_FUTURE) + '"',
        "envoy_unknown_field": encoded(address + FAR_FUTURE + text_field(9, "x")),
        "envoy_truncated": encoded((address + FAR_FUTURE)[:-9]),
        "envoy_port_no_number": encoded(text_field(1, host.rpartition(":")[0] + ":http") + FAR_FUTURE),
        "envoy_empty": encoded(FAR_FUTURE),
        "envoy_huge": encoded(address + FAR_FUTURE + text_field(9, "x" * 4500)),
        "two_forms": encoded(two_forms(other, host)),
        "a55": encoded(host),
        "a60": encoded(f"{host};{cluster}"),
        "a60_with_its_word": encoded(f"{host};cluster:{cluster}"),
        "a61": encoded(f"{host},127.0.0.1:1;{cluster}"),
        "a60_other_cluster": encoded(f"{host};other"),
        "not_base64": "!" + encoded(address),
        "empty_value": "",
        "absent_host": encoded(text_field(1, "127.0.0.1:1") + FAR_FUTURE),
    }
    cookies = {name: f"{sessions.COOKIE}={value}" for name, value in values.items()}
    good = cookies["envoy_with_expiry"]
    cookies["among_others"] = f"a=1; {good}; b=2"
    cookies["twice_good_first"] = f"{good}; {cookies['absent_host']}"
    cookies["twice_good_last"] = f"{cookies['absent_host']}; {good}"
    cookies["none"] = ""
    cookies["of_another_name"] = good.replace(sessions.COOKIE, "other", 1)
    return cookies


# --- observations ---------------------------------------------------------------------------------


def meet_two_hosts(side: Side, listener: str) -> None:
    """Makes calls until two hosts have answered. At first only one host may be connected, and then
    calls without a cookie stay on it."""
    met: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while len(met) < 2 and time.monotonic() < deadline:
        met.add(side.call(listener, "", "/").backend)


def what_becomes(side: Side, listener: str, cookie: str, host: str, path: str) -> str:
    """Whether repeated calls with this cookie stay on `host`, and whether a new cookie is set."""
    repeats = DRAWS if listener.endswith(sessions.TIERS) else REPEATS
    answers = [side.call(listener, cookie, path) for _ in range(repeats)]
    failed = sum(not answer.backend for answer in answers)
    if all(answer.backend == host for answer in answers):
        where = "stays"
    elif failed:
        where = "fails" if failed == len(answers) else "fails at times"
    else:
        where = "goes elsewhere"
    if where == "fails":
        return where
    # A call without a session may reach the cookie's host by chance, and then needs no new cookie.
    return f"{where}, {'new cookie' if any(answer.set_cookie for answer in answers) else 'no cookie'}"


def cookie_of(set_cookie: str) -> str:
    """The name and value of a Set-Cookie header, as a client sends them back."""
    return set_cookie.partition(";")[0]


def alternate(listener: str, first: Side, second: Side) -> str:
    """The worst outcome of several sessions that `first` begins and both sides serve in turn."""
    most_moves = 0
    for _ in range(SESSIONS):
        moves = moves_of_a_session(listener, first, second)
        if moves is None:
            return "some calls fail"
        most_moves = max(most_moves, moves)
        # Both sides use round robin and could stay in step. This call puts `first` one host ahead.
        first.call(listener, "", "/")
    return {0: "stays", 1: "moves once"}.get(most_moves, "moves again and again")


def moves_of_a_session(listener: str, first: Side, second: Side) -> int | None:
    """How often a session changes its host while both sides serve it in turn. The session's cookie
    is replaced as a client would replace it. None: a call failed."""
    answer = first.call(listener, "", "/")
    host, cookie, moves = answer.backend, cookie_of(answer.set_cookie), 0
    for number in range(ALTERNATIONS):
        answer = (second, first)[number % 2].call(listener, cookie, "/")
        if not answer.backend:
            return None
        moves += answer.backend != host
        host = answer.backend
        if answer.set_cookie:
            cookie = cookie_of(answer.set_cookie)
    return moves


def attributes(set_cookie: str) -> list[str]:
    _, _, rest = set_cookie.partition(";")
    return sorted(part.strip() for part in rest.split(";"))


# --- sides ----------------------------------------------------------------------------------------


def our_side(protocol: str, ours: OurSide) -> Side:
    def pick(listener: str, cookie: str, path: str) -> Answer:
        headers = [["cookie", cookie]] if cookie else []
        pick = ours.ask("pick", target=f"xds:///{listener}", calls=[{"path": path, "headers": headers}])["picks"][0]
        return Answer(pick.get("backend", ""), pick["set_cookie"])

    def call(listener: str, cookie: str, path: str) -> Answer:
        answer = ours.ask("call", target=f"xds:///{listener}", cookie=cookie)
        return Answer(answer["backend"], answer["set_cookie"])

    return Side("signalbox", pick if protocol == "http" else call)


class EnvoySide:
    def __init__(self, ports: dict[str, int], grpc_client: OurSide) -> None:
        self._ports = ports
        self._grpc_client = grpc_client
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def __enter__(self) -> "EnvoySide":
        return self

    def __exit__(self, *_) -> None:
        for connection in self._connections.values():
            connection.close()

    def side(self, protocol: str) -> Side:
        return Side("Envoy", self._request if protocol == "http" else self._call)

    def _request(self, listener: str, cookie: str, path: str) -> Answer:
        connection = self._connections.get(listener)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._ports[listener], timeout=PATIENCE)
            self._connections[listener] = connection
        connection.request("GET", path, headers={"cookie": cookie} if cookie else {})
        response = connection.getresponse()
        response.read()
        return Answer(response.getheader("x-host", ""), response.getheader("set-cookie", ""))

    def _call(self, listener: str, cookie: str, path: str) -> Answer:
        answer = self._grpc_client.ask("call", target=f"127.0.0.1:{self._ports[listener]}", cookie=cookie)
        return Answer(answer["backend"], answer["set_cookie"])


# --- the comparison -------------------------------------------------------------------------------


def compare_presented(judge: Judge, mode: str, ours: Side, envoy: Side, addresses: list[str]) -> None:
    protocol = mode.partition(".")[0]

    def compare(case: str, cluster: str, cookie: str, host: str, path: str = "/") -> None:
        listener = f"{mode}.{cluster}"
        for side in (ours, envoy):
            meet_two_hosts(side, listener)
        judge.compare(f"{mode}/{case}", *(what_becomes(side, listener, cookie, host, path) for side in (ours, envoy)))

    for name, cookie in presented_cookies(addresses[1], f"{protocol}.well", addresses[2]).items():
        compare(name, "well", cookie, addresses[1])
    for cluster in ("mixed", "draining_allowed", "nothing_allowed"):
        for number, status in enumerate(sessions.CLUSTERS[cluster].hosts[1:], 1):
            cookie = presented_cookies(addresses[number], "")["envoy_with_expiry"]
            compare(f"{cluster}_{status.lower()}", cluster, cookie, addresses[number])
    for number, which in ((0, "first"), (1, "unhealthy"), (2, "second")):
        cookie = presented_cookies(addresses[number], "")["envoy_with_expiry"]
        compare(f"tiers_host_of_{which}", sessions.TIERS, cookie, addresses[number])
    if mode == "http.lax":
        for path in (sessions.PATH, f"{sessions.PATH}/1", f"{sessions.PATH}ping", "/"):
            cookie = presented_cookies(addresses[1], "http.well")["envoy_with_expiry"]
            compare(f"path_{path}", sessions.UNDER_A_PATH, cookie, addresses[1], path)
            compare(f"path_{path}_no_cookie", sessions.UNDER_A_PATH, "", addresses[1], path)


def run(programs: Programs) -> list[str]:
    judge = Judge("cookies")
    hosts = [f"127.0.0.{1 + number}" for number in range(sessions.BACKENDS)]
    with contextlib.ExitStack() as stack:
        backends = stack.enter_context(Backends(hosts))
        # Two runtimes for each protocol: one writes cookies in gRPC's form, the other in Envoy's.
        forms = {(protocol, form): stack.enter_context(OurSide(programs))
                 for protocol in sessions.PROTOCOLS for form in ("grpc", "envoy")}
        grpc_client = forms["grpc", "grpc"]
        addresses = {"http": [f"{host}:{backends.ports[host]}" for host in hosts],
                     "grpc": grpc_client.ask("serve", backends=sessions.BACKENDS)["backends"]}
        for (protocol, form), ours in forms.items():
            ours.start(sessions.our_resources(protocol, addresses[protocol]), "tcp" if protocol == "http" else "grpc",
                       envoy_cookies=form == "envoy")
        envoy = stack.enter_context(Envoy(programs.envoy, sessions.envoy_resources(addresses)))
        envoy.wait_until_live()
        envoys = stack.enter_context(EnvoySide(envoy.listener_ports(), grpc_client))
        for protocol, strict in sessions.MODES:
            mode, envoy_side = f"{protocol}.{strict}", envoys.side(protocol)
            listener = f"{mode}.well"
            in_grpcs_form = our_side(protocol, forms[protocol, "grpc"])
            in_envoys_form = our_side(protocol, forms[protocol, "envoy"])
            compare_presented(judge, mode, in_grpcs_form, envoy_side, addresses[protocol])
            # A session through Envoy alone is the reference for the mixed fleet.
            wanted = alternate(listener, envoy_side, envoy_side)
            for case, first, second in (
                    ("begun_by_envoy", envoy_side, in_grpcs_form),
                    ("begun_by_envoy_joined_in_envoys_form", envoy_side, in_envoys_form),
                    ("begun_by_signalbox_in_envoys_form", in_envoys_form, envoy_side),
                    ("begun_by_signalbox_in_grpcs_form", in_grpcs_form, envoy_side)):
                judge.compare(f"{mode}/{case}", alternate(listener, first, second), wanted)
            tiers = f"{mode}.{sessions.TIERS}"
            judge.compare(f"{mode}/tiers_session", *(alternate(tiers, side, side) for side in (in_grpcs_form, envoy_side)))
            judge.compare(f"{mode}/attributes", *(attributes(side.call(listener, "", "/").set_cookie)
                                                  for side in (in_envoys_form, envoy_side)))
    print(f"{judge.compared} comparisons of cookies")
    return judge.finish()
