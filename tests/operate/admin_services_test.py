# SPDX-License-Identifier: Apache-2.0
"""Calls the gRPC admin services of a running demo with unmodified Python stubs, and reads the pages
of its admin server that have Envoy's shape.

    signalbox demo --grpc-admin ◀─ xds-protos (CSDS), grpcio-channelz, grpcio-health-checking
                   --admin ◀────── a page as JSON ─▶ xds-protos' message, parsed strictly

Usage: admin_services_test.py --venv FOLDER --signalbox PROGRAM

The packages are pinned in requirements.txt. If they cannot be installed, the test prints SKIPPED;
with CI=true it fails.
"""
import argparse
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
TARGET = "xds:///orders"
PATIENCE = 60  # The limit for one answer, in seconds.

sys.path.append(str(HERE.parents[1] / "conf"))
import virtual_environment  # noqa: E402  (the line above adds its folder)

SIGNALBOX = ""


def enter(venv: Path) -> None:
    """Returns only inside the virtual environment. Outside of it, makes the environment and
    replaces this process by one inside it."""
    if Path(sys.prefix).resolve() == venv.resolve():
        return
    wrong = virtual_environment.set_up(venv, REQUIREMENTS)
    if wrong:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: the stubs of CSDS, channelz and health cannot be installed: {wrong}")
        sys.exit(1 if in_ci else 0)
    python = venv / "bin" / "python"
    os.execv(python, [str(python), *sys.argv])


def until(ask, is_right):
    """The first right answer, or the last answer if none is right for PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = ask()
        if is_right(answer) or time.monotonic() > end:
            return answer
        time.sleep(0.05)


class AdminServices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import grpc

        cls.demo = subprocess.Popen(
            [SIGNALBOX, "demo", "--seconds", "600", "--rps", "50", "--grpc-admin", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.stop)
        addresses = {}
        for line in cls.demo.stdout:
            found = re.match(r"(gRPC admin services|admin pages) on (\S+)", line)
            if found:
                addresses[found[1]] = found[2]
            if len(addresses) == 2:
                break
        assert len(addresses) == 2, "the demo ended before it served the gRPC admin services and its pages"
        cls.pages = f"http://{addresses['admin pages']}"
        cls.channel = grpc.insecure_channel(addresses["gRPC admin services"])
        cls.addClassCleanup(cls.channel.close)

    @classmethod
    def stop(cls):
        cls.demo.terminate()
        cls.demo.communicate()

    def stubs(self):
        from envoy.service.status.v3 import csds_pb2_grpc
        from grpc_channelz.v1 import channelz_pb2_grpc
        from grpc_health.v1 import health_pb2_grpc

        return (csds_pb2_grpc.ClientStatusDiscoveryServiceStub(self.channel),
                channelz_pb2_grpc.ChannelzStub(self.channel), health_pb2_grpc.HealthStub(self.channel))

    def page(self, path, message):
        """A page's JSON as the message. A field or value that the message lacks is an error."""
        from google.protobuf import json_format

        with urllib.request.urlopen(self.pages + path, timeout=PATIENCE) as answer:
            return json_format.Parse(answer.read(), message, ignore_unknown_fields=False)

    def refused(self, code, call, request):
        import grpc

        with self.assertRaises(grpc.RpcError) as caught:
            call(request, timeout=PATIENCE)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())

    def await_serving(self):
        """Reads a Watch of the health service until the target is SERVING."""
        from grpc_health.v1 import health_pb2

        for answer in self.stubs()[2].Watch(health_pb2.HealthCheckRequest(service=TARGET), timeout=PATIENCE):
            print("Watch:", health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
        self.fail("the Watch ended")

    def test_health_says_what_ready_says(self):
        import grpc
        from grpc_health.v1 import health_pb2

        self.await_serving()
        _, _, health = self.stubs()
        for service in ("", TARGET):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
            print(f"Check {service!r}:", health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        listed = health.List(health_pb2.HealthListRequest(), timeout=PATIENCE)
        serving = health_pb2.HealthCheckResponse.SERVING
        self.assertEqual({name: one.status for name, one in listed.statuses.items()}, {"": serving, TARGET: serving})
        self.refused(grpc.StatusCode.NOT_FOUND, health.Check, health_pb2.HealthCheckRequest(service="unknown"))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, health.Check,
                     health_pb2.HealthCheckRequest(service="x" * 5000))
        watch = health.Watch(health_pb2.HealthCheckRequest(service="unknown"), timeout=PATIENCE)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
        watch.cancel()

    def test_csds_has_the_resources_of_the_runtime(self):
        import grpc
        from envoy.admin.v3 import config_dump_shared_pb2
        from envoy.config.cluster.v3 import cluster_pb2
        from envoy.service.status.v3 import csds_pb2

        self.await_serving()
        csds, _, _ = self.stubs()
        acked = config_dump_shared_pb2.ClientResourceStatus.ACKED
        answer = until(
            lambda: csds.FetchClientStatus(csds_pb2.ClientStatusRequest(), timeout=PATIENCE),
            lambda got: all(one.client_status == acked for one in got.config[0].generic_xds_configs))
        self.assertEqual(len(answer.config), 1)
        self.assertEqual(answer.config[0].node.id, "signalbox-demo")
        kinds = set()
        for one in answer.config[0].generic_xds_configs:
            status = config_dump_shared_pb2.ClientResourceStatus.Name(one.client_status)
            print("CSDS:", one.type_url.rsplit(".", 1)[1], one.name, status, "version", one.version_info)
            self.assertEqual(status, "ACKED")
            self.assertEqual(one.xds_config.type_url, one.type_url)
            kinds.add(one.type_url.rsplit(".", 1)[1])
            if one.type_url.endswith(".Cluster"):
                cluster = cluster_pb2.Cluster()
                self.assertTrue(one.xds_config.Unpack(cluster))
                self.assertEqual(cluster.name, one.name)
        self.assertEqual(kinds, {"Listener", "RouteConfiguration", "Cluster", "ClusterLoadAssignment"})

        plain = csds.FetchClientStatus(csds_pb2.ClientStatusRequest(exclude_resource_contents=True), timeout=PATIENCE)
        self.assertFalse(any(one.HasField("xds_config") for one in plain.config[0].generic_xds_configs))
        refused = csds_pb2.ClientStatusRequest()
        refused.node_matchers.add()
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, csds.FetchClientStatus, refused)

        three = list(csds.StreamClientStatus(iter([csds_pb2.ClientStatusRequest()] * 3), timeout=PATIENCE))
        self.assertEqual([len(one.config) for one in three], [1, 1, 1])

    def test_clusters_have_the_shape_of_envoy(self):
        from envoy.admin.v3 import clusters_pb2

        self.await_serving()
        answer = until(
            lambda: self.page("/clusters?format=json", clusters_pb2.Clusters()),
            lambda got: any(one.host_statuses for one in got.cluster_statuses))
        hosts = {one.name: len(one.host_statuses) for one in answer.cluster_statuses}
        print("clusters:", hosts)
        self.assertLessEqual({"orders-primary", "orders-secondary"}, {name.rsplit("/", 1)[-1] for name in hosts})
        self.assertTrue(any(hosts.values()))
        for one in answer.cluster_statuses:
            for host in one.host_statuses:
                self.assertTrue(host.address.socket_address.address.startswith("127."), host)
                self.assertGreater(host.address.socket_address.port_value, 0)
                self.assertTrue(host.HasField("locality"))
                self.assertTrue(host.HasField("health_status"))

    def test_a_stream_that_is_never_read_harms_nobody(self):
        from envoy.service.status.v3 import csds_pb2

        csds, _, _ = self.stubs()
        unread = csds.StreamClientStatus(iter([csds_pb2.ClientStatusRequest()] * 10_000), timeout=PATIENCE)
        for _ in range(20):
            answer = csds.FetchClientStatus(csds_pb2.ClientStatusRequest(), timeout=PATIENCE)
            self.assertEqual(len(answer.config), 1)
        unread.cancel()

    def test_channelz_has_the_target_its_subchannels_and_sockets(self):
        import grpc
        from grpc_channelz.v1 import channelz_pb2

        self.await_serving()
        _, channelz, _ = self.stubs()
        top = channelz.GetTopChannels(channelz_pb2.GetTopChannelsRequest(), timeout=PATIENCE)
        self.assertTrue(top.end)
        ours = [channel for channel in top.channel if channel.ref.name == TARGET]
        self.assertEqual(len(ours), 1, [channel.ref.name for channel in top.channel])
        state = channelz_pb2.ChannelConnectivityState.State
        request = channelz_pb2.GetChannelRequest(channel_id=ours[0].ref.channel_id)
        got = until(
            lambda: channelz.GetChannel(request, timeout=PATIENCE).channel,
            lambda channel: channel.data.calls_succeeded > 0 and channel.data.trace.num_events_logged > 0)
        print("channel:", got.ref.name, state.Name(got.data.state.state), "calls ok", got.data.calls_succeeded)
        self.assertEqual(got.data.state.state, state.READY)
        self.assertGreater(got.data.calls_succeeded, 0)
        self.assertGreater(got.data.trace.num_events_logged, 0)
        connected = 0
        for ref in got.subchannel_ref:
            subchannel = channelz.GetSubchannel(
                channelz_pb2.GetSubchannelRequest(subchannel_id=ref.subchannel_id), timeout=PATIENCE).subchannel
            print("  subchannel:", subchannel.ref.name, state.Name(subchannel.data.state.state))
            for socket_ref in subchannel.socket_ref:
                socket = channelz.GetSocket(
                    channelz_pb2.GetSocketRequest(socket_id=socket_ref.socket_id), timeout=PATIENCE).socket
                print("    socket:", socket.ref.name, {one.name: one.value for one in socket.data.option})
                self.assertEqual(socket.remote.tcpip_address.ip_address[0], 127)
                connected += 1
        self.assertGreater(connected, 0)
        self.assert_grpcdebug_can_read(channelz)

        one = channelz.GetTopChannels(channelz_pb2.GetTopChannelsRequest(max_results=1), timeout=PATIENCE)
        self.assertEqual(len(one.channel), 1)
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, channelz.GetTopChannels,
                     channelz_pb2.GetTopChannelsRequest(max_results=-1))
        for number in (987654321, (1 << 62) + 1, -5):
            self.refused(grpc.StatusCode.NOT_FOUND, channelz.GetChannel,
                         channelz_pb2.GetChannelRequest(channel_id=number))
            self.refused(grpc.StatusCode.NOT_FOUND, channelz.GetSubchannel,
                         channelz_pb2.GetSubchannelRequest(subchannel_id=number))
            self.refused(grpc.StatusCode.NOT_FOUND, channelz.GetSocket,
                         channelz_pb2.GetSocketRequest(socket_id=number))
            self.refused(grpc.StatusCode.NOT_FOUND, channelz.GetServer,
                         channelz_pb2.GetServerRequest(server_id=number))

    def assert_grpcdebug_can_read(self, channelz):
        """The messages that grpcdebug reads must be set, because grpcdebug crashes if one is
        not."""
        from grpc_channelz.v1 import channelz_pb2

        def check_trace(kind, one):
            self.assertTrue(one.data.trace.HasField("creation_timestamp"), f"{kind} {one.ref}")

        def check_socket(ref):
            socket = channelz.GetSocket(
                channelz_pb2.GetSocketRequest(socket_id=ref.socket_id), timeout=PATIENCE).socket
            self.assertTrue(socket.local.HasField("tcpip_address"), ref)
            for name in ("last_local_stream_created_timestamp", "last_remote_stream_created_timestamp",
                         "last_message_sent_timestamp", "last_message_received_timestamp",
                         "local_flow_control_window", "remote_flow_control_window"):
                self.assertTrue(socket.data.HasField(name), f"{ref}: {name}")

        for channel in channelz.GetTopChannels(channelz_pb2.GetTopChannelsRequest(), timeout=PATIENCE).channel:
            check_trace("channel", channel)
            for ref in channel.subchannel_ref:
                subchannel = channelz.GetSubchannel(
                    channelz_pb2.GetSubchannelRequest(subchannel_id=ref.subchannel_id), timeout=PATIENCE).subchannel
                check_trace("subchannel", subchannel)
                for socket_ref in subchannel.socket_ref:
                    check_socket(socket_ref)
        for server in channelz.GetServers(channelz_pb2.GetServersRequest(), timeout=PATIENCE).server:
            self.assertTrue(server.data.HasField("last_call_started_timestamp"))
            sockets = channelz.GetServerSockets(
                channelz_pb2.GetServerSocketsRequest(server_id=server.ref.server_id), timeout=PATIENCE)
            for socket_ref in sockets.socket_ref:
                check_socket(socket_ref)

    def test_channelz_shows_grpcs_own_servers(self):
        from grpc_channelz.v1 import channelz_pb2

        _, channelz, _ = self.stubs()
        servers = channelz.GetServers(channelz_pb2.GetServersRequest(), timeout=PATIENCE)
        self.assertGreater(len(servers.server), 0)
        number = servers.server[0].ref.server_id
        server = channelz.GetServer(channelz_pb2.GetServerRequest(server_id=number), timeout=PATIENCE).server
        self.assertGreater(server.data.calls_started, 0)
        sockets = channelz.GetServerSockets(
            channelz_pb2.GetServerSocketsRequest(server_id=number), timeout=PATIENCE)
        print("server:", number, "calls", server.data.calls_started, "sockets", len(sockets.socket_ref))
        self.assertGreater(len(sockets.socket_ref), 0)
        socket = channelz.GetSocket(
            channelz_pb2.GetSocketRequest(socket_id=sockets.socket_ref[0].socket_id), timeout=PATIENCE).socket
        self.assertGreater(socket.data.streams_started, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--signalbox", required=True)
    arguments = parser.parse_args()
    enter(arguments.venv)
    SIGNALBOX = arguments.signalbox
    unittest.main(argv=sys.argv[:1])
