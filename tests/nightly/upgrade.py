#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S17: what an older version wrote, reloads under load, and SIGTERM under load.

    previous/ ─▶ check, --config, load --dry-run, picks with its cookies, calls
    reload:  resource file ─┬▶ `signalbox serve` ─ xDS ─▶ client ─▶ backends
                            └▶ a client that follows the file itself
    drain:   EDS ─▶ DRAINING ─▶ gone ─▶ SIGTERM to the backend ─▶ a new backend; SIGTERM to a client

Gates: no call is lost; each reload takes effect, and a bad one does not; each process that gets
SIGTERM ends with 0. Prints `N reloads, …` when all are met."""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from world import (ANSWER_SECONDS, Client, Failed, Programs, World, check, cluster, connected_to, endpoints, eventually,
                   listener, none_lost, replace_text, run_part, write_resources)

PREVIOUS = Path(__file__).resolve().parent / "previous"
COOKIE = "orders-session"
RATE = 200  # Calls a second of one client.
BAD_EVERY = 10  # Before every tenth reload, the file is wrong for a while.
STILL_SERVED = "the last good one is still served"
SHORT_CALLS = 50  # Calls of a client that is stopped at once.
PICKS = 5  # With each cookie.


def previous_files(world: World) -> str:
    """The commands take the files of the older version as they are."""
    def run(*words: object) -> str:
        done = subprocess.run([world.programs.signalbox, *map(str, words)], capture_output=True, text=True,
                              timeout=ANSWER_SECONDS, check=False)
        check(done.returncode == 0, f"signalbox {' '.join(map(str, words))}: status {done.returncode}: "
              f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    settings, resources = PREVIOUS / "settings.yaml", PREVIOUS / "resources.yaml"
    checked = run("check", PREVIOUS / "bootstrap.json", resources)
    check("warning" not in checked, f"signalbox check: {checked}")
    run("--config", settings, "check", resources)
    run("load", "--target", "xds:///orders", "--call", "signalbox.demo.v1.Orders/Place", "--resources", resources,
        "--script", PREVIOUS / "load.yaml", "--duration", "30s", "--dry-run")
    return "files of the previous version"


def previous_cookies(world: World) -> str:
    """Each cookie leads to its host, also where its bootstrap is the older version's."""
    cookies = json.loads((PREVIOUS / "cookies.json").read_text(encoding="utf-8"))
    keys = world.new_path("session_keys.txt")
    shutil.copy(PREVIOUS / "session_keys.txt", keys)
    keys.chmod(0o600)
    plane, address = world.serve(PREVIOUS / "resources.yaml")
    bootstrap = json.loads((PREVIOUS / "bootstrap.json").read_text(encoding="utf-8"))
    bootstrap["xds_servers"][0]["server_uri"] = address
    path = world.new_path("bootstrap.json")
    path.write_text(json.dumps(bootstrap), encoding="utf-8")
    for is_sealed in (False, True):
        client = world.client(path, "--assumed", *(["--keys", keys] if is_sealed else []))
        for cookie in cookies:
            if cookie["is_sealed"] != is_sealed:
                continue
            for _ in range(PICKS):
                picked = client.ask(f"pick {COOKIE}={cookie['value']}")
                check(picked["address"] == cookie["address"],
                      f"cookie '{cookie['form']}' names {cookie['address']}, and the call goes to {picked['address']}")
                check((picked["set_cookie"] == "") == cookie["is_kept"],
                      f"cookie '{cookie['form']}': the response has '{picked['set_cookie']}'")
        client.finish()
        world.end(client)
    world.end(plane)
    return f"{len(cookies)} cookies"


def previous_sessions(world: World) -> str:
    """Calls with the cookies of the older version, to real backends at the addresses in them."""
    backends = [world.backend(f"host {number}", f"127.17.0.{number}:17017")[0] for number in (1, 2, 3)]
    bootstrap = world.bootstrap(resources=PREVIOUS / "resources.yaml")
    calls = 0
    for cookie in json.loads((PREVIOUS / "cookies.json").read_text(encoding="utf-8")):
        if cookie["is_sealed"]:
            continue
        host = f"host {cookie['address'].split(':')[0].rpartition('.')[2]}"
        client = world.client(bootstrap, "--cookie", f"{COOKIE}={cookie['value']}", "--rate", RATE)
        eventually(client.has_answers(RATE), "sessions are answered")
        counts = client.finish()
        none_lost(counts, f"cookie '{cookie['form']}'")
        check(set(counts["backends"]) == {host}, f"cookie '{cookie['form']}' is of {host}: {counts['backends']}")
        calls += counts["ok"]
        world.end(client)
    for backend in backends:
        check(backend.terminate() == 0, "a backend ends with 0")
        world.end(backend)
    return f"{calls:,} calls of its sessions"


def reload(world: World, reloads: int) -> str:
    """The route changes from one cluster to the other and back, while two clients call."""
    (_, blue), (_, green) = world.backend("blue"), world.backend("green")
    path = world.new_path("resources.json")

    def write(color: str) -> None:
        write_resources(path, listener("orders", color), cluster("blue"), cluster("green"),
                        endpoints("blue", [blue]), endpoints("green", [green]))

    write("blue")
    plane, address = world.serve(path)
    clients = [world.client(world.bootstrap(address), "--rate", RATE),
               world.client(world.bootstrap(resources=path), "--rate", RATE)]
    calls = 0
    for number in range(1, reloads + 1):
        color = ("blue", "green")[number % 2]
        if number % BAD_EVERY == 0:
            before = plane.all_errors().count(STILL_SERVED)
            replace_text(path, '{"resources": [{}]}')
            eventually(lambda: plane.all_errors().count(STILL_SERVED) > before, "signalbox serve says that the file is wrong")
            for client in clients:
                eventually(client.has_answers(RATE // 20), "calls are answered while the file is wrong")
        write(color)
        for client in clients:
            eventually(client.has_answers(1, color), f"reload {number} leads calls to {color}")
    for client in clients:
        counts = client.finish()
        none_lost(counts, f"{reloads} reloads")
        calls += counts["ok"]
        world.end(client)
    check(plane.terminate() == 0, "signalbox serve ends with 0")
    return f"{calls:,} calls"


class Drains:
    """Backends that are drained and replaced in turn, and clients that are stopped while they call."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._backends = [world.backend(f"backend {number}") for number in range(3)]
        self._path = world.new_path("resources.json")
        self._write(set())
        _, address = world.serve(self._path)
        self._bootstrap = world.bootstrap(address)
        self._client = world.client(self._bootstrap, "--rate", RATE)
        eventually(self._client.has_answers(RATE // 4), "calls are answered")
        self._short_calls = 0

    def _write(self, draining: set[str], gone: str = "") -> None:
        addresses = [address for _, address in self._backends if address != gone]
        write_resources(self._path, listener("orders", "orders"), cluster("orders"),
                        endpoints("orders", addresses, frozenset(draining)))

    def drain(self, number: int) -> None:
        place = number % len(self._backends)
        backend, address = self._backends[place]
        port = int(address.rpartition(":")[2])
        self._write({address})
        eventually(lambda: address not in self._hosts_of_calls(), f"{address} gets no new call while it drains")
        self._write(set(), gone=address)
        eventually(lambda: not connected_to(port), f"nothing is connected to {address} after it left")
        check(backend.terminate() == 0, f"{address} ends with 0 after SIGTERM")
        self._world.end(backend)
        name = f"backend {number + len(self._backends)}"
        self._backends[place] = self._world.backend(name)
        self._write(set())
        eventually(self._client.has_answers(1, name), f"{name} gets calls")

    def _hosts_of_calls(self) -> set[str]:
        """The addresses to which some calls went that were made after this question."""
        return {self._client.ask("pick")["address"] for _ in range(2 * len(self._backends))}

    def stop_client(self) -> None:
        client = self._world.client(self._bootstrap)
        client.ask(f"crowd {SHORT_CALLS}")
        counts = client.finish()
        none_lost(counts, "SIGTERM to a client")
        check(counts["ok"] == SHORT_CALLS, f"SIGTERM to a client: {counts}")
        self._short_calls += counts["ok"]
        self._world.end(client)

    def finish(self) -> str:
        counts = self._client.finish()
        none_lost(counts, "drains")
        return f"{counts['ok'] + self._short_calls:,} calls"


def drain(world: World, drains: int) -> str:
    drained = Drains(world)
    for number in range(drains):
        drained.drain(number)
        drained.stop_client()
    return drained.finish()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="upgrade.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--reloads", type=int, default=1_000)
    parser.add_argument("--drains", type=int, default=100)
    parser.add_argument("--sessions", action="store_true", help="calls to the fixed addresses of previous/, too")
    options = parser.parse_args(arguments)
    programs = Programs.of_build(options.build.resolve())

    def body() -> str:
        with World(programs) as world:
            done = [previous_files(world), previous_cookies(world)]
            if options.sessions:
                done.append(previous_sessions(world))
        with World(programs) as world:
            reloaded = reload(world, options.reloads)
        with World(programs) as world:
            drained = drain(world, options.drains)
        return (f"{options.reloads:,} reloads ({reloaded}), {options.drains:,} drains ({drained}), {', '.join(done)}: "
                "0 lost")

    return run_part(body, parser.prog)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
