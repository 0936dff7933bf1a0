#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S17: what an older version wrote, reloads under load, and SIGTERM under load.

    previous/ ─▶ check, --config, load --dry-run, picks with its cookies, calls
    reload:  resource file ─┬▶ `signalbox serve` ─ xDS ─▶ client ─▶ backends
                            └▶ a client that follows the file itself
    drain:   drains.py, and SIGTERM to clients that have just begun their calls

Gates: no call is lost; each reload takes effect, and a bad one does not; each process that gets
SIGTERM ends with 0. Prints `N reloads, …` when all are met."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from drains import Drains
from world import (ANSWER_SECONDS, Programs, World, check, cluster, endpoints, eventually, listener, none_lost,
                   run_part, serve_wrong_file, write_resources)

PREVIOUS = Path(__file__).resolve().parent / "previous"
COOKIE = "orders-session"
RATE = 200  # Calls a second of one client.
BAD_EVERY = 10  # Before every tenth reload, the file is wrong for a while.
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
            serve_wrong_file(plane, path)
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


def stop_client(world: World, bootstrap: Path) -> int:
    """SIGTERM to a client that has just begun its calls. Returns their number."""
    client = world.client(bootstrap)
    client.ask(f"crowd {SHORT_CALLS}")
    counts = client.finish()
    none_lost(counts, "SIGTERM to a client")
    check(counts["ok"] == SHORT_CALLS, f"SIGTERM to a client: {counts}")
    world.end(client)
    return counts["ok"]


def drain(world: World, drains: int) -> str:
    drained = Drains(world, RATE)
    short_calls = 0
    for number in range(drains):
        drained.drain(number)
        short_calls += stop_client(world, drained.bootstrap)
    return f"{drained.finish()}, and {short_calls:,} of clients that were stopped"


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
