# SPDX-License-Identifier: Apache-2.0
"""Compares the clusters that Envoy and signalbox choose for the same calls and route
configurations.

    100 random worlds, and special ones ─┬▶ Envoy: a listener for each world; the answering backend shows the cluster
                                         └▶ signalbox: a listener for each authority; the pick names the cluster

    SPECIAL   worlds in which gRFC A28 differs from Envoy; each has a row in differences.json
    SHARES    worlds with weights and fractions; the shares of calls must be within five sigma"""

import collections
import copy
import http.client

from differences import Judge
from health_states import differs, percent
from load import count_answers
from peer import Envoy
from random_routes import CLUSTERS, Call, World, random_world
from sides import Backends, OurSide, Programs
from states import HTTP_MANAGER, ROUTER, TYPE

SEED = 23
WORLDS = 100
CALLS = 40  # Calls for each random world.
REQUESTS = 4000  # Requests for each world of SHARES.
NO_CLUSTER = "none"
PATIENCE = 30


def special(name: str, match: dict, *calls: tuple, other: dict | None = None) -> World:
    """A world with two routes. Calls that match go to c0, or as `other` says; all others go to c1.
    A call is a path and headers."""
    routes = [{"match": match, **(other or {"route": {"cluster": "c0"}})},
              {"match": {"prefix": ""}, "route": {"cluster": "c1"}}]
    return World(name, [{"name": "all", "domains": ["*"], "routes": routes}],
                 [Call(f"{name}.test", path, tuple(headers)) for path, *headers in calls])


def header(name: str, **matcher) -> dict:
    return {"prefix": "", "headers": [{"name": name, **matcher}]}


GRPC = ("content-type", "application/grpc")
PLACE = "/shop.Orders/Place"

SPECIAL = (
    special("query_parameters", {"prefix": "", "query_parameters": [{"name": "q", "present_match": True}]},
            (PLACE + "?q=1",), (PLACE,)),
    special("grpc", {"prefix": "", "grpc": {}}, (PLACE, GRPC), (PLACE,)),
    special("content_type", header("content-type", string_match={"exact": "application/grpc"}), (PLACE, GRPC), (PLACE,)),
    special("binary_header", header("x-data-bin", present_match=True), (PLACE, ("x-data-bin", "AAAA"))),
    special("cluster_header", {"prefix": ""}, (PLACE, ("x-cluster", "c2")), other={"route": {"cluster_header": "x-cluster"}}),
    special("method_header", header(":method", string_match={"exact": "GET"}), (PLACE,)),
    special("path_header", header(":path", string_match={"prefix": "/shop"}), (PLACE,)),
    special("authority_header", header(":authority", string_match={"contains": "authority"}), (PLACE,)),
    special("host_header", header("host", present_match=True), (PLACE,)),
    special("slashes", {"path": "/a//b"}, ("/a//b",), ("/a/b",)),
    special("percent", {"path": "/a/%62"}, ("/a/%62",), ("/a/b",)),
    special("empty_header", header("x-a", string_match={"exact": ""}), (PLACE, ("x-a", "")), (PLACE,)),
    special("one_of_two_values", header("x-a", string_match={"exact": "1"}), (PLACE, ("x-a", "1"), ("x-a", "2"))),
    special("three_values", header("x-a", string_match={"exact": "1,2,3"}),
            (PLACE, ("x-a", "1"), ("x-a", "2"), ("x-a", "3")), (PLACE, ("x-a", "1,2,3"))),
)

SHARES = {
    "weights": ([{"match": {"prefix": ""}, "route": {"weighted_clusters": {"clusters": [
        {"name": "c0", "weight": 50}, {"name": "c1", "weight": 30}, {"name": "c2", "weight": 20}]}}}],
        {"c0": 50.0, "c1": 30.0, "c2": 20.0}),
    "fraction": ([{"match": {"prefix": "", "runtime_fraction": {"default_value": {
        "numerator": 25, "denominator": "HUNDRED"}}}, "route": {"cluster": "c0"}},
        {"match": {"prefix": ""}, "route": {"cluster": "c1"}}], {"c0": 25.0, "c1": 75.0}),
    "fractions_of_a_million": ([{"match": {"prefix": "", "runtime_fraction": {"default_value": {
        "numerator": 10000, "denominator": "MILLION"}}}, "route": {"cluster": "c0"}},
        {"match": {"prefix": ""}, "route": {"cluster": "c1"}}], {"c0": 1.0, "c1": 99.0}),
}


def all_worlds() -> list[World]:
    shares = [World(name, [{"name": "all", "domains": ["*"], "routes": routes}], [Call(f"{name}.test", "/")])
              for name, (routes, _) in SHARES.items()]
    return [random_world(SEED, number, CALLS) for number in range(WORLDS)] + list(SPECIAL) + shares


def load_assignment(cluster: str, address: str, port: int) -> dict:
    endpoint = {"address": {"socket_address": {"address": address, "port_value": port}}}
    return {"cluster_name": cluster, "endpoints": [
        {"locality": {"zone": "zone"}, "load_balancing_weight": 1, "lb_endpoints": [{"endpoint": endpoint}]}]}


def manager(name: str, virtual_hosts: list[dict]) -> dict:
    return {"@type": HTTP_MANAGER, "http_filters": [ROUTER],
            "route_config": {"name": name, "virtual_hosts": virtual_hosts}}


def envoy_resources(worlds: list[World], backends: dict) -> dict:
    listeners = [{"name": world.name, "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
                  "filter_chains": [{"filters": [{"name": "http", "typed_config": {
                      "stat_prefix": "routes", **manager(world.name, world.virtual_hosts)}}]}]} for world in worlds]
    clusters = [{"name": cluster, "type": "STATIC", "connect_timeout": "5s",
                 "load_assignment": load_assignment(cluster, *backends[cluster])} for cluster in CLUSTERS]
    return {"listeners": listeners, "clusters": clusters}


def without_unread_fields(virtual_hosts: list[dict]) -> list[dict]:
    """Empties the messages that signalbox recognises but does not read. Resource files may not
    contain unknown fields, and signalbox's messages have no fields there."""
    hosts = copy.deepcopy(virtual_hosts)
    for route in (route for host in hosts for route in host["routes"]):
        for action in ("direct_response", "redirect"):
            if action in route:
                route[action] = {}
        if "query_parameters" in route["match"]:
            route["match"]["query_parameters"] = [{}]
    return hosts


def our_resources(worlds: list[World], backends: dict) -> list[dict]:
    resources = []
    for cluster in CLUSTERS:
        resources.append({"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": cluster, "type": "EDS",
                          "eds_cluster_config": {"eds_config": {"ads": {}}, "service_name": cluster}})
        resources.append({"@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
                          **load_assignment(cluster, *backends[cluster])})
    for world in worlds:
        routes = manager(world.name, without_unread_fields(world.virtual_hosts))
        for authority in world.authorities():
            resources.append({"@type": TYPE + "envoy.config.listener.v3.Listener", "name": authority,
                              "api_listener": {"api_listener": routes}})
    return resources


def our_answers(ours: OurSide, world: World) -> list[str]:
    """The cluster of each call, as picks name it."""
    answers = [""] * len(world.calls)
    for authority in world.authorities():
        numbers = [number for number, call in enumerate(world.calls) if call.authority == authority]
        # The Pick API takes the path of a URL without its query.
        calls = [{"path": world.calls[number].path.partition("?")[0], "headers": world.calls[number].headers}
                 for number in numbers]
        picks = ours.ask("pick", target=f"xds:///{authority}", calls=calls)["picks"]
        for number, pick in zip(numbers, picks):
            answers[number] = pick.get("cluster", NO_CLUSTER)
    return answers


def envoys_answers(port: int, world: World, cluster_of: dict) -> list[str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    answers = []
    for call in world.calls:
        connection.putrequest("GET", call.path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", call.authority)
        for name, value in call.headers:
            connection.putheader(name, value.encode())
        connection.endheaders()
        response = connection.getresponse()
        response.read()
        answers.append(cluster_of.get(response.getheader("x-host"), NO_CLUSTER))
    connection.close()
    return answers


def compare_world(judge: Judge, world: World, ours: list[str], envoys: list[str]) -> None:
    if world in SPECIAL:
        judge.compare(world.name, ours, envoys)
        return
    # A complaint about a random world shows only the calls that differ.
    calls = [(call, mine, theirs) for call, mine, theirs in zip(world.calls, ours, envoys) if mine != theirs]
    judge.compare(world.name, [f"{mine} {call}" for call, mine, _ in calls], [f"{theirs}" for _, _, theirs in calls])


def compare_shares(judge: Judge, name: str, ours: OurSide, port: int, cluster_of: dict) -> None:
    shares = SHARES[name][1]
    ours_of = ours.ask("count", target=f"xds:///{name}.test", picks=REQUESTS)
    counts = {
        "signalbox": {**ours_of["backends"], NO_CLUSTER: ours_of["failed"]},
        "Envoy": count_answers(port, "/", REQUESTS),
    }
    for side, by_backend in counts.items():
        by_cluster = collections.Counter()
        for backend, number in by_backend.items():
            by_cluster[cluster_of.get(backend, NO_CLUSTER)] += number
        if differs(shares, by_cluster):
            judge.complain(name, f"{side} has {percent(by_cluster)} of {REQUESTS} calls instead of {shares}")


def run(programs: Programs) -> list[str]:
    judge = Judge("routes")
    worlds = all_worlds()
    hosts = {cluster: f"127.50.0.{1 + number}" for number, cluster in enumerate(CLUSTERS)}
    with Backends(list(hosts.values())) as backends, OurSide(programs) as ours:
        places = {cluster: (host, backends.ports[host]) for cluster, host in hosts.items()}
        cluster_of = {f"{host}:{port}": cluster for cluster, (host, port) in places.items()}
        with Envoy(programs.envoy, envoy_resources(worlds, places)) as envoy:
            ours.start(our_resources(worlds, places), "assumed")
            envoy.wait_until_live()
            ports = envoy.listener_ports()
            met = collections.Counter()
            for world in worlds:
                if world.name in SHARES:
                    compare_shares(judge, world.name, ours, ports[world.name], cluster_of)
                    continue
                envoys = envoys_answers(ports[world.name], world, cluster_of)
                met.update(envoys)
                compare_world(judge, world, our_answers(ours, world), envoys)
    print(f"{WORLDS} random route configurations, {WORLDS * CALLS} calls: {dict(met.most_common())}")
    if met.keys() < {*CLUSTERS, NO_CLUSTER}:
        judge.complain("*", "some cluster was never chosen: the random worlds say too little")
    return judge.finish()
