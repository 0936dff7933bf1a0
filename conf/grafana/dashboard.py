#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard as a table: a row for each subject, a panel for each question.

    ROWS ─▶ panels, left to right, top to bottom ─▶ signalbox.json, which Grafana imports

  dashboard.py           prints the dashboard
  dashboard.py --write   writes signalbox.json beside this file

A test compares signalbox.json with this table: change the table, then write the file.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

WIDTH, HEIGHT = 24, 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# The statuses of calls that count as failures of the service. The recording rules of
# conf/prometheus/rules.yml use the same statuses.
FAILED = 'code=~"UNKNOWN|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS"'
# The label selectors that the dashboard's variables fill in.
SELECT = {"@process": 'job=~"$job",instance=~"$instance"',
          "@cluster": 'job=~"$job",instance=~"$instance",cluster=~"$cluster"'}
PER_SECOND, PERCENT, SECONDS, COUNT, BYTES = "reqps", "percentunit", "s", "short", "bytes"


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    title: str
    question: str
    queries: tuple[Query, ...]
    unit: str
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    top: float | None = None                                 # The highest value that the axis shows.
    names: dict[str, str] = field(default_factory=dict)      # A table's column names, by query.


def lines(title: str, question: str, unit: str, *queries: tuple[str, str], **more) -> Panel:
    return Panel(title, question, tuple(Query(*query) for query in queries), unit, **more)


def number(title: str, question: str, unit: str, expr: str) -> Panel:
    return Panel(title, question, (Query(expr),), unit, kind="stat", width=4)


def quantiles(metric: str, select: str, *shares: float, by: str = "") -> list[tuple[str, str]]:
    labels, legend = ("le", "") if not by else (f"le, {by}", f"{{{{{by}}}}} ")
    return [(f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{select}}}[$__rate_interval])))",
             f"{legend}p{100 * share:g}") for share in shares]


def rate(metric: str, select: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{{select}}}[$__rate_interval]))"


CALLS, CALL_TIME = "signalbox_calls_total", "signalbox_call_duration_seconds"
FAILED_RATIO = (f"({rate(CALLS, '@process,' + FAILED, 'target')} or 0 * {rate(CALLS, '@process', 'target')})"
                f" / {rate(CALLS, '@process', 'target')}")
SESSIONS = "signalbox_affinity_picks_total"
CLUSTER_ERRORS = rate("signalbox_rpcs_completed_total", '@cluster,code!="OK"', "cluster")
CLUSTER_CALLS = rate("signalbox_rpcs_completed_total", "@cluster", "cluster")
# Endpoints without calls, such as those of a lower priority, would lower the mean.
ENDPOINT_CALLS = f"""({rate("signalbox_endpoint_rpcs_total", '@cluster,endpoint!="other"', "cluster, endpoint")} > 0)"""
WITHOUT_WEIGHT = (f"({rate('signalbox_wrr_endpoint_weights_not_yet_usable_total', '@cluster', 'cluster')}"
                  f" + {rate('signalbox_wrr_endpoint_weights_stale_total', '@cluster', 'cluster')})")

ROWS: dict[str, list[Panel]] = {
    "Overview": [
        number("Calls a second", "How much is asked of this process?", PER_SECOND,
               f"sum(rate({CALLS}{{@process}}[$__rate_interval]))"),
        number("Failed calls", "Which share of the calls failed for the application?", PERCENT,
               f"(sum(rate({CALLS}{{@process,{FAILED}}}[$__rate_interval])) or vector(0))"
               f" / sum(rate({CALLS}{{@process}}[$__rate_interval]))"),
        number("Calls in flight", "How many attempts are under way?", COUNT, "sum(signalbox_rpcs_active{@cluster})"),
        number("Control planes connected", "Do all processes have a working stream? 1: all of them.", PERCENT,
               "avg(max by (job, instance, xds_server) (signalbox_xds_connected{@process}))"),
        number("Clusters off their first priority", "How many clusters are failed over, or down?", COUNT,
               "count(max by (job, instance, cluster) (signalbox_priority_active{@cluster}) != 0) or vector(0)"),
        number("Error budget left", "Which share of the budget of 30 days (SLO 99.9 %) is left, of the worst target?",
               PERCENT, 'min(job_target:signalbox_error_budget:remaining30d{job=~"$job"})'),
        lines("Calls by status", "How did calls end for the application? Each call counts once.", PER_SECOND,
              (rate(CALLS, "@process", "code"), "{{code}}"), stacked=True),
        lines("Failed calls by target", "Which target fails? SignalboxErrorBudgetFastBurn watches it.", PERCENT,
              (FAILED_RATIO, "{{target}}"), top=1),
        lines("Latency of calls", "How long did the application wait, with all waiting and all attempts?", SECONDS,
              *quantiles(CALL_TIME, "@process", 0.5, 0.95, 0.99)),
    ],
    "Failover": [
        Panel("Priority in use", "Which priority carries the calls? 0 is the first one, -1 is none.",
              (Query("max by (cluster) (signalbox_priority_active{@cluster})", "{{cluster}}"),), COUNT,
              kind="state-timeline", width=16),
        lines("Failovers a minute", "How often do calls move, and why? SignalboxFailoverFlapping watches it.", COUNT,
              ("60 * " + rate("signalbox_failovers_total", "@cluster", "direction, reason"), "{{direction}} {{reason}}")),
        Panel("Duration of failovers", "How long was no priority usable?",
              (Query("sum by (le) (increase(signalbox_failover_duration_seconds_bucket{@cluster}[$__rate_interval]))",
                     "{{le}}"),), SECONDS, kind="heatmap"),
        lines("Endpoints by state", "How much capacity is there?", COUNT,
              ("sum by (state) (signalbox_endpoints{@cluster})", "{{state}}"), stacked=True),
        lines("Connections lost", "Do backends close connections, or does the network break them?", COUNT,
              ("60 * " + rate("signalbox_subchannel_disconnections_total", "@cluster", "reason"), "{{reason}}")),
        lines("Ready endpoints by priority", "Is the next priority ready to take calls?", COUNT,
              ('sum by (cluster, priority) (signalbox_endpoints{@cluster,state="ready"})', "{{cluster}} {{priority}}"),
              width=12),
        lines("Endpoints added and removed", "How much does the control plane change?", COUNT,
              ("60 * " + rate("signalbox_endpoint_changes_total", "@cluster", "change"), "{{change}}"), width=12),
    ],
    "Clusters": [
        Panel("Clusters", "Which cluster is it? Attempts on endpoints, not calls of the application.", (
            Query(rate("signalbox_rpcs_started_total", "@cluster", "cluster")),
            Query(f"({CLUSTER_ERRORS} or 0 * {CLUSTER_CALLS}) / {CLUSTER_CALLS}"),
            Query("histogram_quantile(0.99, "
                  "sum by (cluster, le) (rate(signalbox_rpc_duration_seconds_bucket{@cluster}[$__rate_interval])))"),
            Query('sum by (cluster) (signalbox_endpoints{@cluster,state="ready"})'),
            Query("sum by (cluster) (signalbox_endpoints{@cluster})"),
            Query("max by (cluster) (signalbox_circuit_breaker_open{@cluster})"),
        ), COUNT, kind="table", width=24,
              names={"A": "Attempts a second", "B": "Failed", "C": "p99", "D": "Ready", "E": "Endpoints",
                     "F": "Circuit breaker open"}),
    ],
    "Picks": [
        lines("Picks by result", "Do calls find an endpoint at once (complete), wait (queue), or fail?", PER_SECOND,
              (rate("signalbox_picks_total", "@cluster", "result"), "{{result}}"), stacked=True),
        lines("Wait for an endpoint", "How long did calls wait, and for what?", SECONDS,
              *quantiles("signalbox_pick_wait_seconds", "@process", 0.99, by="delay_type")),
        lines("Connection attempts", "Do endpoints accept connections?", PER_SECOND,
              (rate("signalbox_connection_attempts_total", "@cluster", "result"), "{{result}}")),
        lines("Busiest endpoint", "Is the load spread? Calls of the busiest endpoint, as a multiple of the mean of all endpoints "
              "with calls. Needs metrics_detail kEndpoint.", COUNT,
              (f"max by (cluster) {ENDPOINT_CALLS} / avg by (cluster) {ENDPOINT_CALLS}", "{{cluster}}"), width=6),
        lines("Calls of a connection", "How many calls does a connection carry at a time?", COUNT,
              ("sum by (cluster) (signalbox_rpcs_active{@cluster}) / sum by (cluster) (signalbox_connections_open{@cluster} > 0)",
               "{{cluster}}"), width=6),
        lines("Retries", "Do attempts fail and succeed elsewhere?", PER_SECOND,
              (rate("signalbox_retries_total", "@cluster", "result"), "{{result}}"), width=6),
        lines("Dropped by the circuit breaker", "Is a cluster full? SignalboxCircuitBreakerOpen watches it.", PER_SECOND,
              (rate("signalbox_circuit_breaker_drops_total", "@cluster", "cluster"), "{{cluster}}"), width=6),
        lines("Endpoints without a weight", "Does weighted_round_robin know its endpoints' load? The share of endpoints "
              "whose load reports are missing, too new or too old.", PERCENT,
              (WITHOUT_WEIGHT + " / " + rate("signalbox_wrr_endpoint_weights_count", "@cluster", "cluster"),
               "{{cluster}}"), top=1),
        lines("Calls to other zones", "Which share of the calls crosses zones, and may cost money? Needs the node's "
              "locality in the bootstrap.", PERCENT,
              (rate("signalbox_zone_calls_total", '@cluster,zone="other"', "cluster") + " / "
               + rate("signalbox_zone_calls_total", '@cluster,zone!="unknown"', "cluster"), "{{cluster}}"), top=1),
        Panel("Weights of endpoints", "How unequal are the endpoints? Weights of weighted_round_robin; 0 is none.",
              (Query("sum by (le) (increase(signalbox_wrr_endpoint_weights_bucket{@cluster}[$__rate_interval]))",
                     "{{le}}"),), COUNT, kind="heatmap"),
    ],
    "Sessions": [
        lines("On their host", "Which share of the calls with a cookie went to the session's host? "
              "SignalboxAffinityBroken watches it.", PERCENT,
              (rate(SESSIONS, '@cluster,result=~"hit|hit_draining"', "cluster") + " / "
               + rate(SESSIONS, '@cluster,result=~"hit|hit_draining|fallback_.*"', "cluster"), "{{cluster}}"), top=1),
        lines("Why not", "Why did calls with a cookie go elsewhere?", PER_SECOND,
              (rate(SESSIONS, '@cluster,result=~"fallback_.*"', "result"), "{{result}}"), stacked=True),
        lines("Cookies", "How many sessions begin, and how many move to another host?", PER_SECOND,
              (rate("signalbox_affinity_cookies_set_total", "@cluster", "reason"), "{{reason}}")),
        lines("On draining hosts, and waiting", "How many calls are on hosts that drain, and how many wait for their host?",
              PER_SECOND, (rate(SESSIONS, '@cluster,result=~"hit_draining|queued|created"', "result"), "{{result}}"),
              width=12),
        lines("Held for sessions", "How many endpoints are kept for sessions alone?", COUNT,
              ("sum by (cluster) (signalbox_affinity_subchannels_held{@cluster})", "{{cluster}}"), width=12),
    ],
    "Control plane": [
        lines("Connected", "Does the stream work? SignalboxControlPlaneDisconnected watches it.", COUNT,
              ("min by (xds_server) (signalbox_xds_connected{@process})", "{{xds_server}}"), top=1),
        lines("Streams that ended", "Does the control plane flap? SignalboxXdsReconnectStorm watches it.", COUNT,
              ("60 * " + rate("signalbox_xds_streams_total", "@process", "xds_server, end"), "{{xds_server}} {{end}}")),
        lines("Resources accepted and refused", "Is a resource refused? SignalboxConfigRejected watches it.", PER_SECOND,
              (rate("signalbox_xds_resource_updates_valid_total", "@process", "resource_type"), "{{resource_type}} accepted"),
              (rate("signalbox_xds_resource_updates_invalid_total", "@process", "resource_type"),
               "{{resource_type}} refused")),
        lines("Resources by state", "Which resources have not come, or are refused?", COUNT,
              ("sum by (cache_state, resource_type) (signalbox_xds_resources{@process})", "{{resource_type}} {{cache_state}}"),
              stacked=True),
        lines("Size of responses", "Do responses near a limit of gRPC (4 MiB by default)?", BYTES,
              *quantiles("signalbox_xds_response_bytes", "@process", 0.99, by="resource_type")),
        lines("Age of the configuration", "When was the last change? SignalboxConfigStale watches it.", SECONDS,
              ("time() - max by (instance, target) (signalbox_config_last_applied_timestamp_seconds{@process})",
               "{{instance}} {{target}}")),
        lines("From response to pick", "How long until picks see a change of the control plane or the file?", SECONDS,
              *quantiles("signalbox_config_propagation_seconds", "@process", 0.5, 0.99)),
        lines("Applying a configuration", "How much of that time is ours?", SECONDS,
              *quantiles("signalbox_config_apply_duration_seconds", "@process", 0.5, 0.99)),
        lines("Generation", "Does every process have the newest configuration?", COUNT,
              ("max by (instance, target) (signalbox_config_generation{@process})", "{{instance}} {{target}}")),
    ],
    "Runtime": [
        lines("Longest mailbox", "Do actors keep up? SignalboxActorBacklog watches it.", COUNT,
              ("max by (actor) (signalbox_actor_mailbox_messages{@process})", "{{actor}}")),
        lines("Time for a message", "Which actor is slow?", SECONDS,
              *quantiles("signalbox_actor_handle_duration_seconds", "@process", 0.99, by="actor")),
        lines("Messages", "What keeps the actors busy?", PER_SECOND,
              (rate("signalbox_actor_messages_total", "@process", "actor"), "{{actor}}")),
        lines("Policies and subchannels", "Does anything leak?", COUNT,
              ("sum by (policy) (signalbox_policies{@process})", "{{policy}}"),
              ("sum by (state) (signalbox_subchannels{@process})", "subchannels {{state}}")),
        lines("CPU", "How many processors does the process keep busy?", COUNT,
              ("sum by (instance) (rate(process_cpu_seconds_total{@process}[$__rate_interval]))", "{{instance}}")),
        lines("Memory", "Does the process grow?", BYTES,
              ("sum by (instance) (process_resident_memory_bytes{@process})", "{{instance}}")),
        lines("Open descriptors", "Does the process run out of descriptors?", COUNT,
              ("sum by (instance) (process_open_fds{@process})", "{{instance}}"),
              ("sum by (instance) (process_max_fds{@process})", "limit of {{instance}}")),
        lines("Certificates end in", "How long is each certificate valid? SignalboxCertificateExpiring watches it.", SECONDS,
              ("min by (role) (signalbox_certificate_expiry_timestamp_seconds{@process}) - time()", "{{role}}")),
        lines("Configurations refused", "What does signalbox refuse, and why?", PER_SECOND,
              (rate("signalbox_config_rejected_total", "@process", "reason"), "{{reason}}")),
    ],
    "Load test": [
        lines("Calls of the generator", "Did `signalbox load` send the calls that were due?", PER_SECOND,
              *[(rate(f"signalbox_load_{what}_total", "@process", "side"), f"{{{{side}}}} {what}")
                for what in ("scheduled", "sent", "dropped")], width=6),
        lines("Lateness of the generator", "Were calls sent when they were due? Late calls make the measurement not valid.",
              SECONDS, *quantiles("signalbox_load_lateness_seconds", "@process", 0.5, 0.99, by="side"), width=6),
        lines("Results of the generator", "How did its calls end?", PER_SECOND,
              (rate("signalbox_load_calls_total", "@process", "side, code"), "{{side}} {{code}}"), stacked=True, width=6),
        lines("Latency from due", "What did its callers see? The vertical lines are the acts of its script.", SECONDS,
              *quantiles("signalbox_load_latency_seconds", "@process", 0.5, 0.99, by="side"), width=6),
        lines("Calls and attempts", "Does the runtime carry the offered load, or add to it by retries?", PER_SECOND,
              (f"sum(rate({CALLS}{{@process}}[$__rate_interval]))", "calls ended"),
              ("sum(rate(signalbox_rpcs_started_total{@cluster}[$__rate_interval]))", "attempts begun"),
              ("sum(rate(signalbox_rpcs_completed_total{@cluster}[$__rate_interval]))", "attempts ended")),
        lines("Latency, with the failovers", "What did a fault cost? The vertical lines are failovers and configurations.",
              SECONDS, *quantiles(CALL_TIME, "@process", 0.5, 0.99, 0.999)),
        lines("Latency of attempts", "Which cluster is slow, without the wait for an endpoint?", SECONDS,
              *quantiles("signalbox_rpc_duration_seconds", "@cluster", 0.99, by="cluster")),
        lines("Injected faults", "Are there faults on purpose?", PER_SECOND,
              (rate("signalbox_faults_injected_total", "@process", "kind"), "{{kind}}"), width=12),
        lines("Attempts in flight", "Does work pile up?", COUNT,
              ("sum by (cluster) (signalbox_rpcs_active{@cluster})", "{{cluster}}"), stacked=True, width=12),
    ],
}

# Vertical lines in all graphs over time. An act of a `signalbox load` script, such as a fault, has
# a series from the moment at which the act is done.
ACTS = "signalbox_load_act_timestamp_seconds{@process}"
MARKS = {
    "Configurations": ("blue", "sum by (instance, target) (changes(signalbox_config_generation{@process}[$__rate_interval])) > 0"),
    "Failovers": ("orange", "sum by (cluster, direction, reason) "
                  "(increase(signalbox_failovers_total{@cluster}[$__rate_interval])) > 0"),
    "Acts of a load test": ("red", f"max by (act) ({ACTS} unless {ACTS} offset $__rate_interval)"),
}

# The variables after `datasource`. The values of a variable are those of the label in the named
# metrics, for the series that the variables before it select. `signalbox load` has jobs and instances of its own.
VARIABLES = {
    "job": 'label_values({__name__=~"signalbox_build_info|signalbox_load_processes"}, job)',
    "instance": 'label_values({__name__=~"signalbox_build_info|signalbox_load_processes",job=~"$job"}, instance)',
    "cluster": 'label_values(signalbox_picks_total{job=~"$job",instance=~"$instance"}, cluster)',
}


def selected(expr: str) -> str:
    for word, labels in SELECT.items():
        expr = expr.replace(word, labels)
    return expr


def field_config(panel: Panel) -> dict:
    defaults: dict = {"unit": panel.unit}
    custom: dict = {}
    if panel.kind == "timeseries":
        defaults["min"] = 0
        custom = {"fillOpacity": 10, "showPoints": "never"}
        if panel.stacked:
            custom["stacking"] = {"mode": "normal", "group": "A"}
    if panel.title == "Certificates end in":
        del defaults["min"]  # A certificate that has ended is below 0.
    if panel.top is not None:
        defaults["max"] = panel.top
    if panel.kind == "state-timeline":
        custom = {"fillOpacity": 70, "lineWidth": 0}
        defaults["color"] = {"mode": "thresholds"}
        steps = ((None, "red"), (0, "green"), (1, "orange"), (2, "dark-orange"))
        defaults["thresholds"] = {"mode": "absolute", "steps": [{"value": at, "color": color} for at, color in steps]}
        defaults["mappings"] = [{"type": "value", "options": {
            "-1": {"text": "none", "index": 0}, "0": {"text": "first", "index": 1}}}]
    overrides = []
    if panel.kind == "table":
        units = {"A": PER_SECOND, "B": PERCENT, "C": SECONDS}
        overrides = [{"matcher": {"id": "byName", "options": panel.names[ref]}, "properties": [{"id": "unit", "value": unit}]}
                     for ref, unit in units.items()]
    if custom:
        defaults["custom"] = custom
    return {"defaults": defaults, "overrides": overrides}


OPTIONS = {
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                   "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"], "values": False, "fields": ""}, "graphMode": "area",
             "colorMode": "value", "justifyMode": "auto", "textMode": "auto", "wideLayout": True,
             "orientation": "auto", "showPercentChange": False, "percentChangeColorMode": "standard"},
    "state-timeline": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                       "tooltip": {"mode": "single", "sort": "none"}, "showValue": "auto", "mergeValues": True,
                       "rowHeight": 0.8},
    "table": {"showHeader": True, "frameIndex": 0, "sortBy": [{"displayName": "Attempts a second", "desc": True}]},
}


def targets_of(panel: Panel) -> list[dict]:
    targets = []
    for number_, query in enumerate(panel.queries):
        target = {"refId": chr(ord("A") + number_), "datasource": SOURCE, "expr": selected(query.expr),
                  "legendFormat": query.legend}
        if panel.kind == "table":
            target |= {"format": "table", "instant": True, "range": False}
        elif panel.kind == "heatmap":
            target |= {"format": "heatmap", "range": True}
        else:
            target |= {"range": True}
        targets.append(target)
    return targets


def panel_of(panel: Panel, number_: int, place: dict) -> dict:
    made = {"id": number_, "type": panel.kind, "title": panel.title, "description": panel.question,
            "datasource": SOURCE, "gridPos": place, "fieldConfig": field_config(panel), "targets": targets_of(panel)}
    if panel.kind in OPTIONS:
        made["options"] = OPTIONS[panel.kind]
    if panel.kind == "heatmap":
        made["options"] = {
            "calculate": False, "yAxis": {"unit": panel.unit, "axisPlacement": "left"}, "showValue": "never",
            "cellGap": 1, "legend": {"show": True}, "tooltip": {"mode": "single", "yHistogram": False},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "color": {"mode": "scheme", "scheme": "Oranges", "fill": "dark-orange", "exponent": 0.5, "steps": 64,
                      "reverse": False}}
    if panel.kind == "table":
        made["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {
                "excludeByName": {"Time": True},
                "renameByName": {f"Value #{ref}": name for ref, name in panel.names.items()} | {"cluster": "Cluster"}}}]
    return made


def panels() -> list[dict]:
    made: list[dict] = []
    y = 0
    for title, row in ROWS.items():
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False,
                     "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y}, "panels": []})
        y += 1
        x, height = 0, 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            height = 4 if panel.kind == "stat" else HEIGHT
            made.append(panel_of(panel, len(made) + 1, {"h": height, "w": panel.width, "x": x, "y": y}))
            x += panel.width
        y += height
    return made


def variables() -> list[dict]:
    made: list[dict] = [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
                         "refresh": 1}]
    for name, query in VARIABLES.items():
        made.append({"name": name, "label": name.capitalize(), "type": "query", "datasource": SOURCE,
                     "query": {"query": query, "refId": name}, "definition": query, "includeAll": True, "multi": True,
                     "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "refresh": 2, "sort": 1})
    return made


def dashboard() -> dict:
    marks = [{"name": name, "datasource": SOURCE, "enable": True, "hide": False, "iconColor": color,
              "expr": selected(expr)} for name, (color, expr) in MARKS.items()]
    return {"uid": "signalbox", "title": "signalbox", "description": "The routing runtime signalbox.",
            "tags": ["signalbox"], "schemaVersion": 39, "version": 2, "editable": True, "graphTooltip": 1,
            "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
            "annotations": {"list": marks}, "templating": {"list": variables()}, "panels": panels()}


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        (Path(__file__).resolve().parent / "signalbox.json").write_text(text(), encoding="utf-8")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    print(text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
