# SPDX-License-Identifier: Apache-2.0
"""Active health checks, transition by transition: the same answers to Envoy's probes and to ours.

    SCRIPTS ─▶ a probed backend each ─▶ before each answer: healthy or not?
                 ├─ Envoy: its admin page says (first of all scripts)
                 └─ signalbox: a pick is led there, or fails

Each script has a cluster of its own with one endpoint."""

import threading
import time
from dataclasses import dataclass, field

from differences import Judge
from peer import Envoy
from probed import PATIENCE, ProbedBackend
from sides import OurSide, Programs
from states import HTTP_MANAGER, ROUTER, TYPE

AT_LEAST_SCRIPTS = 12
INTERVAL = "0.1s"
SETTLE_SECONDS = 10.0  # The longest time for a probe's result to pass the actors and reach picks.
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Script:
    name: str
    protocol: str
    answers: tuple
    unhealthy: int = 3  # Thresholds.
    healthy: int = 2
    timeout: str = "20s"
    settings: dict = field(default_factory=dict)  # Settings of the HTTP check.


RETRIABLE = {"retriable_statuses": [{"start": 500, "end": 505}]}

SCRIPTS = (
    Script("http_steady", "http", (200,) * 4),
    Script("http_first_fails", "http", (500, 200, 200, 200, 200), healthy=3),
    Script("http_refused_at_once", "http", (200, 503, 200, 200, 404, 200, 200)),
    Script("http_retriable", "http", (200, 503, 503, 503, 200, 200, 503, 200, 503, 503, 503), settings=RETRIABLE),
    Script("http_retriable_and_refused", "http", (200, 503, 404, 200, 503, 200, 200), settings=RETRIABLE),
    Script("http_resets", "http", (200, "reset", "reset", 200, "reset", "reset", "reset", 200, 200)),
    Script("http_timeouts", "http", (200, "reset", "silent", 200, 200), unhealthy=2, timeout="5s"),
    Script("http_expected", "http", (204, 201, 302, 204, 204), settings={"expected_statuses": [{"start": 200, "end": 205}]}),
    Script("http_flapping", "http", (200, 503, 200, 503, 503, 200, 503, 200, 200, 503), unhealthy=2, settings=RETRIABLE),
    Script("http_thresholds_of_one", "http", (200, "reset", 200, "reset", "reset", 200), unhealthy=1, healthy=1),
    Script("http_garbage", "http", (200, "garbage", "garbage", 200, 200), unhealthy=2),
    Script("http_degraded", "http", (200, "degraded", "degraded", 200)),
    Script("http_immediate_fail", "http", (200, "immediate_fail", 200, 200)),
    Script("tcp_payload", "tcp", (b"PONG", b"PONG", "reset", b"PONG", "reset", "reset", "reset", b"PONG", b"PONG")),
    Script("tcp_payload_among_others", "tcp", (b"so PONG it is", "reset", b"POPONG", b"PONG"), unhealthy=1),
    Script("grpc_serving", "grpc", ("SERVING",) * 3),
    Script("grpc_not_serving", "grpc", ("SERVING", "NOT_SERVING", "NOT_SERVING", "NOT_SERVING", "SERVING", "SERVING")),
    Script("grpc_first_not_serving", "grpc", ("NOT_SERVING", "SERVING", "SERVING")),
    Script("grpc_unknown_service", "grpc", ("SERVING", "SERVICE_UNKNOWN", "SERVING", 5, "SERVING", "SERVING"), unhealthy=2),
    Script("grpc_errors", "grpc", ("SERVING", 14, 12, 14, "SERVING", "SERVING")),
    Script("grpc_resets", "grpc", ("SERVING", "reset", "reset", "SERVING", "SERVING"), unhealthy=2),
)


def health_check(script: Script) -> dict:
    check = {"timeout": script.timeout, "interval": INTERVAL, "unhealthy_threshold": script.unhealthy,
             "healthy_threshold": script.healthy}
    if script.protocol == "http":
        check["http_health_check"] = {"path": "/up", "host": "probed", **script.settings}
    elif script.protocol == "tcp":
        check["tcp_health_check"] = {"send": {"text": "50494E47"}, "receive": [{"text": "504F4E47"}]}
    else:
        check["grpc_health_check"] = {"service_name": "probed"}
    return check


def load_assignment(script: Script, backend: ProbedBackend) -> dict:
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": backend.own_port}},
                "health_check_config": {"port_value": backend.probed_port}}
    return {"cluster_name": script.name, "endpoints": [
        {"locality": {"zone": "zone"}, "load_balancing_weight": 1, "lb_endpoints": [{"endpoint": endpoint}]}]}


def envoy_resources(backends: list[ProbedBackend]) -> dict:
    clusters = []
    for script, backend in zip(SCRIPTS, backends):
        # Without calls Envoy probes once a minute, and after a change at once.
        check = {**health_check(script), "no_traffic_interval": INTERVAL, "reuse_connection": False}
        cluster = {"name": script.name, "type": "STATIC", "connect_timeout": "20s", "health_checks": [check],
                   "load_assignment": load_assignment(script, backend)}
        if script.protocol == "grpc":
            cluster["http2_protocol_options"] = {}
        clusters.append(cluster)
    return {"clusters": clusters}


def our_resources(backends: list[ProbedBackend]) -> list[dict]:
    resources = []
    for script, backend in zip(SCRIPTS, backends):
        routes = [{"match": {"prefix": ""}, "route": {"cluster": script.name}}]
        resources += [
            {"@type": TYPE + "envoy.config.listener.v3.Listener", "name": script.name,
             "api_listener": {"api_listener": {
                 "@type": HTTP_MANAGER, "http_filters": [ROUTER],
                 "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]}}}},
            {"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": script.name, "type": "EDS",
             "connect_timeout": "20s", "health_checks": [health_check(script)],
             "eds_cluster_config": {"eds_config": {"ads": {}}, "service_name": script.name}},
            {"@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment", **load_assignment(script, backend)},
        ]
    return resources


def state_at_envoy(envoy: Envoy, cluster: str) -> str:
    for status in envoy.admin("/clusters?format=json")["cluster_statuses"]:
        if status["name"] == cluster:
            health = status["host_statuses"][0]["health_status"]
            if health.get("failed_active_health_check"):
                return "unhealthy"
            return "degraded" if health.get("failed_active_degraded_check") else "healthy"
    raise KeyError(cluster)


def wait_for(backends: list[ProbedBackend], judge: Judge, side: str) -> None:
    for script, backend in zip(SCRIPTS, backends):
        backend.join(2 * PATIENCE)
        if backend.is_alive():
            judge.complain(script.name, f"{side} stops probing: {backend.seen}")
        elif backend.error:
            judge.complain(script.name, f"{side}: {backend.error}")


def seen_by_envoy(programs: Programs, judge: Judge) -> list[list[str]]:
    started = threading.Event()
    admin = threading.Lock()
    envoy = None

    def see(script: Script):
        def ask(_: int) -> str:
            started.wait(PATIENCE)
            with admin:
                return state_at_envoy(envoy, script.name)
        return ask

    backends = [ProbedBackend(script.protocol, script.answers, see(script)) for script in SCRIPTS]
    for backend in backends:
        backend.start()
    with Envoy(programs.envoy, envoy_resources(backends)) as envoy:
        started.set()
        wait_for(backends, judge, "Envoy")
    return [backend.seen for backend in backends]


def seen_by_us(programs: Programs, judge: Judge, wanted_states: list[list[str]]) -> list[list[str]]:
    """A state is looked at until it is the wanted one, or for SETTLE_SECONDS: the backend holds its answer meanwhile."""
    asking = threading.Lock()
    with OurSide(programs) as ours:
        def state_of(script: Script) -> str:
            with asking:
                pick = ours.ask("pick", target=f"xds:///{script.name}", calls=[{"path": "/"}])["picks"][0]
            return "healthy" if "backend" in pick else "unhealthy"

        def see(script: Script, wanted: list[str]):
            def ask(number: int) -> str:
                deadline = time.monotonic() + SETTLE_SECONDS
                while (state := state_of(script)) not in wanted[number:number + 1] and time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
                return state
            return ask

        backends = [ProbedBackend(script.protocol, script.answers, see(script, wanted))
                    for script, wanted in zip(SCRIPTS, wanted_states)]
        ours.start(our_resources(backends), "tcp")
        for backend in backends:
            backend.start()
        for script in SCRIPTS:  # Endpoints are connected to, and probed, once they are wanted.
            state_of(script)
        wait_for(backends, judge, "signalbox")
    return [backend.seen for backend in backends]


def before(script: Script) -> str:
    """The case of what the endpoint is before its first probe is answered."""
    return f"{script.name}/before"


def run(programs: Programs) -> list[str]:
    judge = Judge("health_checks")
    envoys = seen_by_envoy(programs, judge)
    wanted = [judge.wanted(before(script), states[:1]) + judge.wanted(script.name, states[1:])
              for script, states in zip(SCRIPTS, envoys)]
    ours = seen_by_us(programs, judge, wanted)
    for script, our_states, envoy_states in zip(SCRIPTS, ours, envoys):
        judge.compare(script.name, our_states[1:], envoy_states[1:])
        judge.compare(before(script), our_states[:1], envoy_states[:1])
    print(f"{len(SCRIPTS)} scripts of health checks")
    if len(SCRIPTS) < AT_LEAST_SCRIPTS:
        judge.complain("*", f"fewer than {AT_LEAST_SCRIPTS} scripts")
    return judge.finish()
