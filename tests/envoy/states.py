# SPDX-License-Identifier: Apache-2.0
"""The health states of aggregate clusters, as data and as the resources of both sides.

    STATES ─┬▶ envoy_resources ─▶ Envoy: a listener, one route for each state, STATIC clusters with health statuses
            └▶ our_resources ───▶ a resource file: one listener for each state, EDS clusters

A host's address is 127.<20 + leaf>.<priority>.<1 + number>, so it names the host's place. States
have separate clusters, and share backends."""

from dataclasses import dataclass
from typing import Iterator, Optional

TYPE = "type.googleapis.com/"
HTTP_MANAGER = TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = {"name": "router", "typed_config": {"@type": TYPE + "envoy.extensions.filters.http.router.v3.Router"}}
AGGREGATE = TYPE + "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
HTTP_OPTIONS = TYPE + "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


@dataclass(frozen=True)
class Hosts:
    """A priority: the number of its hosts in each EDS health status."""

    healthy: int = 0
    unhealthy: int = 0
    draining: int = 0
    degraded: int = 0
    timeout: int = 0
    unknown: int = 0
    weights: tuple = ()  # The weights of the first hosts, in the order above. Others have weight 1.

    def statuses(self) -> list[str]:
        return [status.upper() for status in ("healthy", "unhealthy", "draining", "degraded", "timeout", "unknown")
                for _ in range(getattr(self, status))]


@dataclass(frozen=True)
class State:
    name: str
    leaves: tuple  # For each leaf, a tuple of its priorities (Hosts).
    # healthy_panic_threshold of the aggregate and its leaves, in percent; None: unset.
    panic: Optional[int] = 0
    leaf_panic: Optional[int] = None  # The threshold of the leaves, if they have another one.
    factor: Optional[int] = None  # overprovisioning_factor of all leaves; None: unset.
    by_weight: bool = False  # weighted_priority_health
    nested: bool = False  # The first two leaves are below an inner aggregate.


def percent(*healthy: int, of: int = 100) -> tuple:
    """Priorities of `of` hosts. `healthy` has each priority's number of healthy hosts; the other
    hosts are unhealthy."""
    return tuple(Hosts(healthy=number, unhealthy=of - number) for number in healthy)


def tens(*healthy: int) -> tuple:
    return percent(*healthy, of=10)


def document(number: int, primary: tuple, secondary: tuple) -> State:
    return State(f"document_{number}", (primary, secondary))


# The tables of Envoy's documentation of aggregate clusters, row by row. Most priorities have ten
# hosts; some percentages need 4 or 100.
DOCUMENT = (
    document(1, tens(10, 10, 10), tens(10, 10)),
    document(2, (*percent(72), *tens(10, 10)), tens(10, 10)),
    document(3, (*percent(71, 1), *tens(0)), tens(10, 10)),
    document(4, (*percent(71), *tens(0, 0)), tens(10, 10)),
    document(5, tens(5, 0, 0), tens(5, 0)),
    document(6, tens(2, 2, 1), percent(1, 1, of=4)),
    document(7, tens(2, 0, 0), tens(2, 0)),
    document(8, tens(0, 0, 0), tens(10, 0)),
    document(9, tens(0, 0, 0), (*percent(72), *tens(0))),
)

ALL_WELL = (Hosts(healthy=4),)
NO_HOSTS = (Hosts(),)

DRAINING = (
    State("draining_half", ((Hosts(healthy=5, draining=5),), ALL_WELL)),
    State("draining_all_of_a_priority", ((Hosts(draining=4), Hosts(healthy=4)), ALL_WELL)),
    State("draining_all_of_a_leaf", ((Hosts(draining=4),), ALL_WELL)),
    State("draining_and_unhealthy", ((Hosts(healthy=3, unhealthy=3, draining=4),), ALL_WELL)),
    State("draining_and_degraded", ((Hosts(healthy=2, degraded=2, draining=6),), ALL_WELL)),
    State("draining_everything", ((Hosts(draining=4),), (Hosts(draining=2),))),
    State("draining_rolling", ((Hosts(healthy=9, draining=1), Hosts(healthy=4)), (Hosts(healthy=3, draining=1),))),
)

DEGRADED = (
    State("degraded_all", ((Hosts(degraded=4),), (Hosts(degraded=4),))),
    State("degraded_first_leaf", ((Hosts(degraded=4),), ALL_WELL)),
    State("degraded_takes_the_rest", ((Hosts(healthy=3, degraded=7),), (Hosts(healthy=1, unhealthy=9),))),
    State("degraded_comment", ((Hosts(healthy=1, degraded=2, unhealthy=7), Hosts(healthy=2, degraded=1, unhealthy=7)),
                               (Hosts(healthy=1, unhealthy=9),))),
    State("degraded_only_some", ((Hosts(degraded=2, unhealthy=8),), (Hosts(degraded=1, unhealthy=9),))),
)

FACTORS = tuple(State(f"factor_{factor}", (tens(5), tens(10)), factor=factor) for factor in (100, 140, 200)) + (
    State("factor_100_everywhere_half", (tens(5, 5), tens(5, 5)), factor=100),
    State("factor_200_little_left", (tens(1, 2), tens(1)), factor=200),
)

SHAPES = (
    State("empty_first_priority", ((Hosts(), Hosts(healthy=4)), ALL_WELL)),
    State("empty_middle_priority", ((Hosts(healthy=1, unhealthy=3), Hosts(), Hosts(healthy=1, unhealthy=3)), ALL_WELL)),
    State("empty_first_leaf", (NO_HOSTS, ALL_WELL)),
    State("single_hosts", (percent(1, of=1), percent(1, of=1))),
    State("single_host_down", (percent(0, of=1), percent(1, of=1))),
    State("single_hosts_in_priorities", (percent(0, 0, 1, of=1), percent(1, of=1))),
    State("unknown_and_timeout", ((Hosts(unknown=2, timeout=2),), (Hosts(unknown=4),))),
    State("rounding_rest", (percent(1, 1, of=11), percent(1, of=11))),
    State("three_leaves", (tens(2), tens(3), tens(5))),
    State("by_weight", ((Hosts(healthy=2, unhealthy=2, weights=(1, 1, 1, 3)),), ALL_WELL), by_weight=True),
)

PANIC = (
    State("panic_50_not_needed", (tens(2), tens(10)), panic=50),
    State("panic_50_one_priority", (tens(2), tens(5, 0)), panic=50),
    State("panic_50_both", (tens(2), tens(3)), panic=50),
    State("panic_50_draining", ((Hosts(healthy=1, unhealthy=5, draining=4),), (Hosts(healthy=1, unhealthy=4),)),
          panic=50),
    State("panic_50_degraded", ((Hosts(degraded=1, unhealthy=7),), (Hosts(healthy=1, unhealthy=7),)), panic=50),
    State("panic_50_total", (tens(0), percent(0, of=5)), panic=50),
    State("panic_50_total_draining", ((Hosts(unhealthy=4, draining=4),), (Hosts(unhealthy=4),)), panic=50),
    State("panic_50_total_two_priorities", ((Hosts(unhealthy=2), Hosts(unhealthy=4)), (Hosts(unhealthy=4),)),
          panic=50),
    State("panic_unset", (tens(2), tens(2)), panic=None),
    State("panic_only_of_leaves", (tens(2), tens(3)), panic=0, leaf_panic=50),
    State("panic_only_of_the_aggregate", (tens(2), tens(3)), panic=50, leaf_panic=0),
)

NO_SCORE = (
    State("nothing_healthy", (tens(0), tens(0))),
    State("score_0_first_healthy", (percent(1, of=150), tens(0))),
    State("score_0_second_healthy", (tens(0), percent(1, of=150))),
    # Both leaves have a healthy host and a score of 0. Envoy and signalbox agree: the first leaf
    # gets all calls, not the last one.
    State("score_0_both_healthy", (percent(1, of=150), percent(1, of=150))),
    State("score_0_second_priority_healthy", (percent(0, 1, of=150), percent(1, of=150))),
    State("score_0_first_degraded", ((Hosts(degraded=1, unhealthy=149),), tens(0))),
    State("score_0_degraded_before_healthy", ((Hosts(degraded=1, unhealthy=149),), percent(1, of=150))),
)

NESTED = (
    State("nested_second_well", (tens(0), tens(10), tens(10)), nested=True),
    State("nested_spill", (tens(2), tens(10), tens(10)), nested=True),
)

STATES = DOCUMENT + DRAINING + DEGRADED + FACTORS + SHAPES + PANIC + NO_SCORE + NESTED


def address_of(leaf: int, priority: int, number: int) -> str:
    return f"127.{20 + leaf}.{priority}.{1 + number}"


def place_of(address: str) -> tuple[int, int, int]:
    """The leaf, priority and number in a host's address."""
    _, leaf, priority, number = (int(part) for part in address.partition(":")[0].split("."))
    return leaf - 20, priority, number - 1


def status_of(state: State, address: str) -> str:
    leaf, priority, number = place_of(address)
    return state.leaves[leaf][priority].statuses()[number]


def addresses() -> list[str]:
    """The addresses of the hosts of all states."""
    return sorted({address_of(leaf, priority, number)
                   for state in STATES
                   for leaf, priorities in enumerate(state.leaves)
                   for priority, hosts in enumerate(priorities)
                   for number in range(len(hosts.statuses()))})


def leaf_name(state: State, leaf: int) -> str:
    return f"{state.name}.leaf{leaf}"


def inner_name(state: State) -> str:
    return f"{state.name}.inner"


def load_assignment(state: State, leaf: int, ports: dict) -> dict:
    localities = []
    for priority, hosts in enumerate(state.leaves[leaf]):
        endpoints = []
        for number, status in enumerate(hosts.statuses()):
            address = address_of(leaf, priority, number)
            weight = hosts.weights[number] if number < len(hosts.weights) else 1
            endpoints.append({
                "health_status": status, "load_balancing_weight": weight,
                "endpoint": {"address": {"socket_address": {"address": address, "port_value": ports[address]}}}})
        localities.append({"locality": {"zone": f"zone{priority}"}, "load_balancing_weight": 1, "priority": priority,
                           "lb_endpoints": endpoints})
    policy = {}
    if state.factor is not None:
        policy["overprovisioning_factor"] = state.factor
    if state.by_weight:
        policy["weighted_priority_health"] = True
    return {"cluster_name": leaf_name(state, leaf), "endpoints": localities, **({"policy": policy} if policy else {})}


def panic_settings(threshold: Optional[int]) -> dict:
    return {} if threshold is None else {"common_lb_config": {"healthy_panic_threshold": {"value": threshold}}}


def aggregates(state: State) -> Iterator[tuple[str, list[str]]]:
    """The state's aggregates, each with the clusters that it lists. The first aggregate is the
    routed one."""
    leaves = [leaf_name(state, leaf) for leaf in range(len(state.leaves))]
    if not state.nested:
        yield state.name, leaves
        return
    yield state.name, [inner_name(state), *leaves[2:]]
    yield inner_name(state), leaves[:2]


def aggregate(name: str, clusters: list[str], state: State) -> dict:
    return {"name": name, "connect_timeout": "5s", "lb_policy": "CLUSTER_PROVIDED",
            "cluster_type": {"name": "envoy.clusters.aggregate",
                             "typed_config": {"@type": AGGREGATE, "clusters": clusters}},
            **panic_settings(state.panic)}


def envoy_resources(ports: dict) -> dict:
    clusters = []
    for state in STATES:
        clusters += [aggregate(name, below, state) for name, below in aggregates(state)]
        threshold = state.panic if state.leaf_panic is None else state.leaf_panic
        for leaf in range(len(state.leaves)):
            clusters.append({
                "name": leaf_name(state, leaf), "type": "STATIC", "connect_timeout": "5s",
                "load_assignment": load_assignment(state, leaf, ports), **panic_settings(threshold),
                # Hundreds of hosts in dozens of clusters would keep too many connections, so unused
                # connections are closed early.
                "typed_extension_protocol_options": {HTTP_OPTIONS.removeprefix(TYPE): {
                    "@type": HTTP_OPTIONS, "explicit_http_config": {"http_protocol_options": {}},
                    "common_http_protocol_options": {"idle_timeout": "2s"}}}})
    routes = [{"match": {"path": f"/{state.name}"}, "route": {"cluster": state.name, "timeout": "30s"}}
              for state in STATES]
    listener = {
        "name": "states", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": {
            "@type": HTTP_MANAGER, "stat_prefix": "states", "http_filters": [ROUTER],
            "route_config": {"virtual_hosts": [{"name": "states", "domains": ["*"], "routes": routes}]}}}]}]}
    return {"listeners": [listener], "clusters": clusters}


def our_resources(ports: dict) -> list[dict]:
    resources = []
    for state in STATES:
        routes = [{"match": {"prefix": ""}, "route": {"cluster": state.name}}]
        resources.append({
            "@type": TYPE + "envoy.config.listener.v3.Listener", "name": state.name,
            "api_listener": {"api_listener": {
                "@type": HTTP_MANAGER, "http_filters": [ROUTER],
                "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]}}}})
        for name, below in aggregates(state):
            resources.append({"@type": TYPE + "envoy.config.cluster.v3.Cluster", **aggregate(name, below, state),
                              "metadata": {"filter_metadata": {"signalbox": {"aggregate_mode": "tiered"}}}})
        for leaf in range(len(state.leaves)):
            name = leaf_name(state, leaf)
            resources.append({
                "@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS",
                "connect_timeout": "5s",
                "eds_cluster_config": {"eds_config": {"ads": {}}, "service_name": name}})
            resources.append({"@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
                              **load_assignment(state, leaf, ports)})
    return resources
