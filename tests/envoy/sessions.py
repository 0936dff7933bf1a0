# SPDX-License-Identifier: Apache-2.0
"""The clusters and listeners with sessions, in four modes. Both sides get the same ones.

    MODES (http or grpc, strict or lax) × CLUSTERS ─┬▶ envoy_resources: a listener for each, STATIC clusters
                                                    └▶ our_resources: a listener for each, EDS clusters

A listener's name is `<protocol>.<strict|lax>.<cluster>`. It is also the name of signalbox's target.
The clusters of a protocol share backends: host n of a cluster is backend `first` + n."""

from dataclasses import dataclass
from typing import Optional

from states import AGGREGATE, HTTP_MANAGER, HTTP_OPTIONS, ROUTER, TYPE

COOKIE = "session"
TTL_SECONDS = 120
PROTOCOLS = ("http", "grpc")
MODES = tuple((protocol, strict) for protocol in PROTOCOLS for strict in ("lax", "strict"))


@dataclass(frozen=True)
class Sessions:
    """A cluster: the health statuses of its hosts, and the statuses in which a session may stay on
    its host."""

    hosts: tuple
    override_statuses: Optional[tuple] = None  # None: unset.
    first: int = 0  # The number of the first host's backend.


CLUSTERS = {
    "well": Sessions(("HEALTHY",) * 4),
    "mixed": Sessions(("HEALTHY", "HEALTHY", "UNHEALTHY", "DRAINING", "DEGRADED", "TIMEOUT")),
    "draining_allowed": Sessions(("HEALTHY", "HEALTHY", "DRAINING"), ("UNKNOWN", "HEALTHY", "DRAINING")),
    "nothing_allowed": Sessions(("HEALTHY", "HEALTHY"), ()),
    # The leaves of the aggregate "tiers": 70 % and 30 % of its calls.
    "tier0": Sessions(("HEALTHY", "UNHEALTHY")),
    "tier1": Sessions(("HEALTHY", "HEALTHY"), first=2),
}
BACKENDS = 6
TIERS = "tiers"
# A listener with routes to the cluster "well". Its cookies are for PATH alone.
UNDER_A_PATH = "under_a_path"
PATH = "/shop"


def listener_names() -> list[tuple[str, str, str]]:
    """The three parts of each listener's name. The third part is a cluster, or UNDER_A_PATH."""
    called = [name for name in CLUSTERS if not name.startswith("tier")] + [TIERS]
    return [(*mode, name) for mode in MODES for name in called] + [("http", "lax", UNDER_A_PATH)]


def session_filter(strict: str, path: str) -> dict:
    session = TYPE + "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState"
    cookie = {"name": COOKIE, "path": path, "ttl": f"{TTL_SECONDS}s"}
    settings = {"session_state": {"name": "envoy.http.stateful_session.cookie",
                                  "typed_config": {"@type": session, "cookie": cookie}}}
    if strict == "strict":
        settings["strict"] = True
    return {"name": "session", "typed_config": {
        "@type": TYPE + "envoy.extensions.filters.http.stateful_session.v3.StatefulSession", **settings}}


def manager(protocol: str, strict: str, called: str) -> dict:
    cluster, path = ("well", PATH) if called == UNDER_A_PATH else (called, "/")
    routes = [{"match": {"prefix": ""}, "route": {"cluster": f"{protocol}.{cluster}"}}]
    return {"@type": HTTP_MANAGER, "http_filters": [session_filter(strict, path), ROUTER],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]}}


def load_assignment(protocol: str, name: str, addresses: list[str]) -> dict:
    sessions, endpoints = CLUSTERS[name], []
    for number, status in enumerate(sessions.hosts):
        host, _, port = addresses[sessions.first + number].rpartition(":")
        endpoints.append({"health_status": status, "endpoint": {
            "address": {"socket_address": {"address": host, "port_value": int(port)}}}})
    return {"cluster_name": f"{protocol}.{name}", "endpoints": [
        {"locality": {"zone": "zone"}, "load_balancing_weight": 1, "lb_endpoints": endpoints}]}


def override_settings(name: str) -> dict:
    statuses = CLUSTERS[name].override_statuses
    return {} if statuses is None else {"override_host_status": {"statuses": list(statuses)}}


def tiers(protocol: str) -> dict:
    return {"name": f"{protocol}.{TIERS}", "connect_timeout": "5s", "lb_policy": "CLUSTER_PROVIDED",
            "cluster_type": {"name": "envoy.clusters.aggregate", "typed_config": {
                "@type": AGGREGATE, "clusters": [f"{protocol}.tier0", f"{protocol}.tier1"]}}}


def envoy_resources(addresses: dict[str, list[str]]) -> dict:
    clusters, listeners = [], []
    for protocol in PROTOCOLS:
        http = {"http_protocol_options": {}} if protocol == "http" else {"http2_protocol_options": {}}
        clusters.append({**tiers(protocol), "common_lb_config": {"healthy_panic_threshold": {"value": 0}}})
        for name in CLUSTERS:
            clusters.append({
                "name": f"{protocol}.{name}", "type": "STATIC", "connect_timeout": "5s",
                "load_assignment": load_assignment(protocol, name, addresses[protocol]),
                "common_lb_config": {"healthy_panic_threshold": {"value": 0}, **override_settings(name)},
                "typed_extension_protocol_options": {HTTP_OPTIONS.removeprefix(TYPE): {
                    "@type": HTTP_OPTIONS, "explicit_http_config": http}}})
    for name in listener_names():
        listeners.append({
            "name": ".".join(name), "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
            "filter_chains": [{"filters": [{"name": "http", "typed_config": {
                "stat_prefix": "sessions", **manager(*name)}}]}]})
    return {"listeners": listeners, "clusters": clusters}


def our_resources(protocol: str, addresses: list[str]) -> list[dict]:
    cluster = TYPE + "envoy.config.cluster.v3.Cluster"
    resources = [{"@type": cluster, **tiers(protocol),
                  "metadata": {"filter_metadata": {"signalbox": {"aggregate_mode": "tiered"}}}}]
    for name in CLUSTERS:
        settings = override_settings(name)
        resources.append({
            "@type": cluster, "name": f"{protocol}.{name}", "type": "EDS", "connect_timeout": "5s",
            "eds_cluster_config": {"eds_config": {"ads": {}}, "service_name": f"{protocol}.{name}"},
            **({"common_lb_config": settings} if settings else {})})
        resources.append({"@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
                          **load_assignment(protocol, name, addresses)})
    for name in listener_names():
        if name[0] == protocol:
            resources.append({"@type": TYPE + "envoy.config.listener.v3.Listener", "name": ".".join(name),
                              "api_listener": {"api_listener": manager(*name)}})
    return resources
