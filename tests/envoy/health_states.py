# SPDX-License-Identifier: Apache-2.0
"""Compares the shares of calls in each health state of an aggregate: those that `signalbox plan`
predicts, those of signalbox's picks, and those of requests through Envoy.

    STATES ─┬▶ plan ──────▶ a share for each group of hosts ◀─ five sigma ─┬─ picks: always as planned
            ├▶ our side ──▶ picks ────────────────────────────────────────┘
            └▶ Envoy ─────▶ requests to real backends ──── five sigma ────── as planned, or a row of differences.json

A group is all hosts with the same leaf, priority and health status. Calls that find no host are
also a group."""

import collections
import math
import time

import states
from differences import Judge
from load import count_answers
from peer import Envoy
from sides import Backends, OurSide, Programs, plan

REQUESTS = 4000
SIGMAS = 5
# The time within which signalbox's shares must become right. The first picks make policies connect,
# so the shares may be wrong until all hosts are connected. After that, a wrong share stays wrong.
PATIENCE = 10  # Seconds.
AT_LEAST_STATES = 30
FAILED = "failed"


def group_of(state: states.State, address: str) -> str:
    leaf, priority, _ = states.place_of(address)
    return f"{leaf}/{priority} {states.status_of(state, address)}"


def planned_shares(state: states.State, planned: dict) -> dict[str, float]:
    """The planned share of each group in percent, without the groups that get no calls."""
    shares = collections.Counter()
    shares[FAILED] += planned["failing"]["tiered"]["now"]
    for cluster in planned["clusters"]:
        for priority in cluster["priorities"]:
            for locality in priority["localities"]:
                for endpoint in locality["endpoints"]:
                    shares[group_of(state, endpoint["addresses"][0])] += endpoint["shares"]["tiered"]["now"]
    return {group: round(share, 2) for group, share in sorted(shares.items()) if share > 0}


def by_group(state: states.State, counts: dict[str, int]) -> dict[str, int]:
    groups = collections.Counter()
    for backend, number in counts.items():
        groups[group_of(state, backend) if ":" in backend else FAILED] += number
    return dict(sorted(groups.items()))


def differs(shares: dict[str, float], counts: dict[str, int]) -> bool:
    """Whether any group's count is more than five standard deviations from its share."""
    calls = sum(counts.values())
    for group in shares.keys() | counts.keys():
        share = min(1.0, shares.get(group, 0.0) / 100)
        # A share of 0 or 100 % has no deviation. Half a call allows for rounded shares.
        if abs(counts.get(group, 0) - calls * share) > SIGMAS * math.sqrt(calls * share * (1 - share)) + 0.5:
            return True
    return False


def percent(counts: dict[str, int]) -> dict[str, float]:
    calls = sum(counts.values())
    return {group: round(100 * number / calls, 2) for group, number in counts.items()}


def run(programs: Programs) -> list[str]:
    judge = Judge("health_states")
    with Backends(states.addresses()) as backends, OurSide(programs) as ours, \
            Envoy(programs.envoy, states.envoy_resources(backends.ports)) as envoy:
        resources = ours.start(states.our_resources(backends.ports), "assumed")
        envoy.wait_until_live()
        port = envoy.listener_ports()["states"]
        for state in states.STATES:
            shares = planned_shares(state, plan(programs, resources, state.name))
            end = time.monotonic() + PATIENCE
            while True:
                answer = ours.ask("count", target=f"xds:///{state.name}", picks=REQUESTS)
                picks = by_group(state, {**answer["backends"], FAILED: answer["failed"]})
                if not differs(shares, picks) or time.monotonic() > end:
                    break
                time.sleep(0.05)
            if differs(shares, picks):
                judge.complain(state.name, f"picks are not as planned {answer['error']}\n"
                                           f"  plan:      {shares}\n  signalbox: {percent(picks)}")
            answers = by_group(state, count_answers(port, f"/{state.name}", REQUESTS))
            judge.compare(state.name, shares, percent(answers), differs(shares, answers))
    print(f"{judge.compared} health states, {REQUESTS} requests each")
    if judge.compared < AT_LEAST_STATES:
        judge.complain("*", f"fewer than {AT_LEAST_STATES} states")
    return judge.finish()
