# SPDX-License-Identifier: Apache-2.0
"""The xDS resources of a benchmark's World, as protobuf JSON. The usual target is `xds:///bench`."""

from typing import Iterable, Optional

TYPE = "type.googleapis.com/"
ENVOY = TYPE + "envoy."

Address = tuple[str, int]


RETRIES = {"retry_on": "unavailable", "num_retries": 4}  # base_interval 25 ms, max_interval 250 ms.

QUICK_RETRIES = {**RETRIES, "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.001s"}}


def route_to(cluster: str, target: str = "bench", before: Iterable[dict] = (),
             retry_policy: Optional[dict] = None, filters: Iterable[dict] = ()) -> list[dict]:
    """A listener and its routes. Calls of the demo's service, and calls that match one of `before`,
    go to this cluster. `filters` are the HTTP filters before the router."""
    matches = [*before, {"prefix": "/signalbox.demo.v1.Orders/"}]
    retry = {} if retry_policy is None else {"retry_policy": retry_policy}
    return target_with_routes(target, [(match, {"cluster": cluster, **retry}) for match in matches], filters)


def target_with_routes(target: str, routes: Iterable[tuple[dict, dict]], filters: Iterable[dict] = ()) -> list[dict]:
    """A listener and its routes: what each matches, and its action."""
    return [
        {"@type": ENVOY + "config.listener.v3.Listener", "name": target, "api_listener": {"api_listener": {
            "@type": ENVOY + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "rds": {"route_config_name": f"{target}-routes", "config_source": {"ads": {}}},
            "http_filters": [*filters, {"name": "envoy.filters.http.router", "typed_config": {
                "@type": ENVOY + "extensions.filters.http.router.v3.Router"}}]}}},
        {"@type": ENVOY + "config.route.v3.RouteConfiguration", "name": f"{target}-routes", "virtual_hosts": [
            {"name": "all", "domains": ["*"], "routes": [
                {"match": match, "route": action} for match, action in routes]}]},
    ]


def session_filter(cookie: str) -> dict:
    """The filter that keeps sessions on their hosts by a cookie of this name."""
    return {"name": "envoy.filters.http.stateful_session", "typed_config": {
        "@type": ENVOY + "extensions.filters.http.stateful_session.v3.StatefulSession",
        "session_state": {"name": "envoy.http.stateful_session.cookie", "typed_config": {
            "@type": ENVOY + "extensions.http.stateful_session.cookie.v3.CookieBasedSessionState",
            "cookie": {"name": cookie}}}}}


def mixed_matches(count: int, with_patterns: bool = True) -> list[dict]:
    """Route matches: a prefix, a whole path and, unless it is left out, a regular expression in
    turn. Match n matches /bench.v1.Service<n>/Get."""
    kinds = (lambda n: {"prefix": f"/bench.v1.Service{n}/"},
             lambda n: {"path": f"/bench.v1.Service{n}/Get"},
             lambda n: {"safe_regex": {"regex": f"/bench\\.v1\\.Service{n}/[A-Z][a-z]+"}})
    used = kinds if with_patterns else kinds[:2]
    return [used[number % len(used)](number) for number in range(count)]


def eds_cluster(name: str, addresses: list[Address], lb_policy: str = "ROUND_ROBIN") -> list[dict]:
    """A cluster with one locality."""
    return weighted_cluster(name, [(1, addresses)], lb_policy)


def with_service_name(name: str, cluster_and_endpoints: list[dict]) -> list[dict]:
    """The same cluster and endpoints, and the endpoints' resource has this name."""
    cluster, endpoints = cluster_and_endpoints
    config = {**cluster["eds_cluster_config"], "service_name": name}
    return [{**cluster, "eds_cluster_config": config}, {**endpoints, "cluster_name": name}]


def limited_cluster(name: str, addresses: list[Address], max_requests: int) -> list[dict]:
    """A cluster with one locality and a limit for the calls in flight."""
    cluster, endpoints = eds_cluster(name, addresses)
    return [{**cluster, "circuit_breakers": {"thresholds": [{"max_requests": max_requests}]}}, endpoints]


def policy_cluster(name: str, addresses: list[Address], max_requests: int, policy: dict) -> list[dict]:
    """A cluster with one locality, a limit for the calls in flight, and a policy of Envoy's extensions."""
    cluster, endpoints = limited_cluster(name, addresses, max_requests)
    return [{**cluster, "load_balancing_policy": {"policies": [
        {"typed_extension_config": {"name": "policy", "typed_config": policy}}]}}, endpoints]


# Endpoints report their load on streams. A report counts from the next update of the weights on.
WEIGHTED_ROUND_ROBIN = {
    "@type": ENVOY + "extensions.load_balancing_policies.client_side_weighted_round_robin.v3."
                     "ClientSideWeightedRoundRobin",
    "enable_oob_load_report": True, "oob_reporting_period": "0.1s", "blackout_period": "0s",
    "weight_update_period": "0.1s"}

LEAST_REQUEST = {"@type": ENVOY + "extensions.load_balancing_policies.least_request.v3.LeastRequest"}


def weighted_cluster(name: str, localities: list[tuple[int, list[Address]]],
                     lb_policy: str = "ROUND_ROBIN") -> list[dict]:
    """A cluster of localities with weights and endpoints. `lb_policy` is its field of that name."""
    return [
        {"@type": ENVOY + "config.cluster.v3.Cluster", "name": name, "type": "EDS",
         "eds_cluster_config": {"eds_config": {"ads": {}}}, "lb_policy": lb_policy},
        {"@type": ENVOY + "config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name, "endpoints": [
            {"locality": {"region": "here", "zone": chr(ord("a") + number)}, "load_balancing_weight": weight,
             "lb_endpoints": [
                 {"endpoint": {"address": {"socket_address": {"address": host, "port_value": port}}}}
                 for host, port in addresses]}
            for number, (weight, addresses) in enumerate(localities)]},
    ]


def partly_healthy_cluster(name: str, healthy: list[Address], unhealthy: list[Address]) -> list[dict]:
    """A cluster with one locality; EDS reports the endpoints in `unhealthy` as UNHEALTHY."""
    cluster, endpoints = eds_cluster(name, healthy + unhealthy)
    for endpoint in endpoints["endpoints"][0]["lb_endpoints"][len(healthy):]:
        endpoint["health_status"] = "UNHEALTHY"
    return [cluster, endpoints]


def aggregate_cluster(name: str, clusters: list[str], mode: Optional[str] = None) -> dict:
    """An aggregate cluster. `mode` is signalbox's own setting: priority or tiered; None: not set."""
    metadata = {} if mode is None else {"metadata": {"filter_metadata": {"signalbox": {"aggregate_mode": mode}}}}
    return {"@type": ENVOY + "config.cluster.v3.Cluster", "name": name, "lb_policy": "ROUND_ROBIN", "cluster_type": {
        "name": "envoy.clusters.aggregate", "typed_config": {
            "@type": ENVOY + "extensions.clusters.aggregate.v3.ClusterConfig", "clusters": clusters}}, **metadata}


def loopback(count: int, port: int, network: str = "127.1") -> list[Address]:
    """`count` addresses with the same port: 127.1.0.1, 127.1.0.2, …"""
    return [(f"{network}.{number // 250}.{number % 250 + 1}", port) for number in range(count)]
