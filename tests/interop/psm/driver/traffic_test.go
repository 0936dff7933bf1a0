// SPDX-License-Identifier: Apache-2.0

// Package driver plays the test cases of the ecosystem's PSM tests (grpc/psm-interop) with
// signalbox-interop-client and signalbox-interop-server, and with a control plane of
// go-control-plane. Each test is named after the ecosystem's test.
//
//	test ─▶ plane ── ADS ─▶ client ── RPCs ─▶ backends
//	  └── stats, configure, CSDS, channelz ──┘
package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var (
	unaryOnly   = []grpc_testing.ClientConfigureRequest_RpcType{unaryCall}
	bothMethods = []grpc_testing.ClientConfigureRequest_RpcType{emptyCall, unaryCall}
)

// initialMetadata is MetadataType.INITIAL. In grpc-go 1.58 the enum has older numbers.
const initialMetadata grpc_testing.LoadBalancerStatsResponse_MetadataType = 1

// startSimple starts a control plane with one cluster, and a client of it.
func startSimple(t *testing.T, cluster *clusterv3.Cluster, localities ...locality) (*plane, *client) {
	t.Helper()
	p := startPlane(t, "plane", simple(cluster, localities...)...)
	return p, startClient(t, []*plane{p}, "--qps=100")
}

func TestPingPong(t *testing.T) {
	backends := startBackends(t, 1)
	p := startPlane(t, "plane",
		simple(edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends})...)
	c := startClient(t, []*plane{p}, "--qps=100", "--rpc=EmptyCall,UnaryCall",
		"--request_payload_size=100", "--response_payload_size=2000", "--print_response")
	c.waitForServerChannel()
	c.waitForAdsCall(p)
	c.waitForOnly(backends...)

	answer := c.next(100, "HostName")
	for _, method := range []string{"EmptyCall", "UnaryCall"} {
		if got := answer.GetRpcsByMethod()[method].GetRpcsByPeer()["server-0"]; got != 50 {
			t.Errorf("%d RPCs of %s went to server-0, not 50", got, method)
		}
	}
	rpcs := answer.GetMetadatasByPeer()["server-0"].GetRpcMetadata()
	if len(rpcs) != 100 || len(rpcs[0].GetMetadata()) != 1 {
		t.Fatalf("the metadata is %v", rpcs)
	}
	first := rpcs[0].GetMetadata()[0]
	if first.GetKey() != "hostname" || first.GetValue() != "server-0" ||
		first.GetType() != initialMetadata {
		t.Errorf("the metadata is %v", first)
	}
	for _, method := range []string{"EMPTY_CALL", "UNARY_CALL"} {
		if c.accumulated(method).GetResult()[0] == 0 {
			t.Errorf("no RPC of %s has succeeded", method)
		}
	}

	if !strings.Contains(c.said.String(), "\nGreeting: Hello world, this is server-0, from ipv4:127.0.0.1:") {
		t.Error("the client prints no greeting")
	}

	configurer := grpc_testing.NewXdsUpdateClientConfigureServiceClient(c.connection)
	_, err := configurer.Configure(within(t),
		&grpc_testing.ClientConfigureRequest{Types: []grpc_testing.ClientConfigureRequest_RpcType{unaryCall, 7}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "found 7") {
		t.Errorf("RPCs of type 7 are answered with: %v", err)
	}
	// UnaryCall does not get the metadata of EmptyCall.
	_, err = configurer.Configure(within(t), &grpc_testing.ClientConfigureRequest{Types: bothMethods,
		Metadata: []*grpc_testing.ClientConfigureRequest_Metadata{
			{Type: emptyCall, Key: "rpc-behavior", Value: "error-code-9"}}})
	if err != nil {
		t.Fatal(err)
	}
	waitForStatus(c, "EMPTY_CALL", codes.FailedPrecondition)
	checkNoFailure(c)

	config := c.csds()
	if config.listener == nil || config.routes == nil || len(config.clusters) != 1 || len(config.endpoints) != 1 {
		t.Errorf("CSDS has %+v", config)
	}
	if fmt.Sprint(config.healths()) != "[HEALTHY]" || fmt.Sprint(config.versions) != "[plane-1 plane-1 plane-1 plane-1]" {
		t.Errorf("CSDS has the healths %v and the versions %v", config.healths(), config.versions)
	}
	checkServices(t, c.connection, "grpc.testing.LoadBalancerStatsService",
		"grpc.testing.XdsUpdateClientConfigureService", "grpc.channelz.v1.Channelz",
		"envoy.service.status.v3.ClientStatusDiscoveryService", "grpc.health.v1.Health",
		"grpc.reflection.v1alpha.ServerReflection")
	checkHealth(t, c.connection, "", grpc_health_v1.HealthCheckResponse_SERVING)
	checkHealth(t, c.connection, target, grpc_health_v1.HealthCheckResponse_SERVING)
	if status := c.stop(); status != 0 {
		t.Errorf("the client ends with status %d", status)
	}
}

// Each channel sends its first RPC at once. One channel would send a hundred RPCs in 99 seconds, which is
// longer than `patience`.
func TestNumChannels(t *testing.T) {
	c := startClient(t, []*plane{newPlane(t, "plane")}, "--qps=1", "--num_channels=100")
	eventually(t, "a hundred channels have sent an RPC each", func() error {
		if got := c.accumulated("UNARY_CALL").GetRpcsStarted(); got < 100 {
			return fmt.Errorf("%d RPCs were sent", got)
		}
		return nil
	})
}

func TestRoundRobin(t *testing.T) {
	backends := startBackends(t, 3)
	_, c := startSimple(t, edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends})
	c.waitForOnly(backends...)
	peers := c.next(90).GetRpcsByPeer()
	for _, one := range backends {
		// RPCs are numbered before they are picked, so the first and the last ones may be others.
		if got := peers[one.name]; got < 28 || got > 32 {
			t.Errorf("%s got %d of 90 RPCs, not 30", one.name, got)
		}
	}
}

// Two localities, as two NEGs of one backend service; one is removed.
func TestRemoveNeg(t *testing.T) {
	backends := startBackends(t, 2)
	p, c := startSimple(t, edsCluster(clusterName, serviceName),
		locality{zone: "a", backends: backends[:1]}, locality{zone: "b", backends: backends[1:]})
	c.waitForOnly(backends...)
	p.set(simple(edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends[:1]})...)
	c.waitForOnly(backends[0])
	p.set(simple(edsCluster(clusterName, serviceName),
		locality{zone: "a", backends: backends[:1]}, locality{zone: "b", backends: backends[1:]})...)
	c.waitForOnly(backends...)
	checkNoFailure(c)
}

func checkNoFailure(c *client) {
	c.t.Helper()
	if got := c.failed("UNARY_CALL"); got != 0 {
		c.t.Errorf("%d RPCs failed: %v", got, c.accumulated("UNARY_CALL"))
	}
}

func TestChangeBackendService(t *testing.T) {
	backends := startBackends(t, 2)
	p, c := startSimple(t, edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends[:1]})
	c.waitForOnly(backends[0])
	p.set(simple(edsCluster("other-cluster", "other-service"), locality{zone: "a", backends: backends[1:]})...)
	c.waitForOnly(backends[1])
	checkNoFailure(c)
	eventually(t, "CSDS has the new cluster only", func() error {
		if clusters := c.csds().clusters; len(clusters) != 1 || clusters[0].GetName() != "other-cluster" {
			return fmt.Errorf("it has %v", clusters)
		}
		return nil
	})
}

// The backends of the first priority stop to be healthy, one after the other.
func TestFailover(t *testing.T) {
	backends := startBackends(t, 3)
	groups := []locality{{zone: "a", backends: backends[:2]}, {zone: "b", priority: 1, backends: backends[2:]}}
	p, c := startSimple(t, edsCluster(clusterName, serviceName), groups...)
	c.waitForOnly(backends[:2]...)
	change := func(one *backend, isServing bool) {
		one.setServing(isServing)
		p.set(simple(edsCluster(clusterName, serviceName), groups...)...)
	}
	change(backends[0], false)
	c.waitForOnly(backends[1])
	change(backends[1], false)
	c.waitForOnly(backends[2])
	change(backends[0], true)
	c.waitForOnly(backends[0])
	change(backends[1], true)
	c.waitForOnly(backends[:2]...)
	checkNoFailure(c)
}

// A cluster for each method, each with a limit of RPCs in flight.
func TestCircuitBreaking(t *testing.T) {
	backends := startBackends(t, 2)
	p := newPlane(t, "plane")
	limits := func(unary, empty uint32) []types.Resource {
		group := locality{zone: "a", backends: backends}
		return []types.Resource{rdsListener(), routes(clusterName, methodRoute("EmptyCall", "empty-cluster")),
			edsCluster(clusterName, serviceName, maxRequests(unary)), endpoints(serviceName, group),
			edsCluster("empty-cluster", "empty-service", maxRequests(empty)), endpoints("empty-service", group)}
	}
	p.start(limits(50, 100)...)
	c := startClient(t, []*plane{p}, "--qps=100", "--rpc=EmptyCall,UnaryCall")
	c.waitForOnly(backends...)
	c.configure(bothMethods, header{"rpc-behavior", "keep-open"})
	waitForInFlight(c, "UNARY_CALL", 50)
	waitForInFlight(c, "EMPTY_CALL", 100)
	p.set(limits(80, 100)...)
	waitForInFlight(c, "UNARY_CALL", 80)
	waitForInFlight(c, "EMPTY_CALL", 100)
	if c.accumulated("UNARY_CALL").GetResult()[int32(codes.Unavailable)] == 0 {
		t.Errorf("no RPC failed UNAVAILABLE: %v", c.accumulated("UNARY_CALL"))
	}
}

// waitForInFlight waits until `want` RPCs of the method stay open while more RPCs are sent. An RPC
// that is being refused is counted for a moment.
func waitForInFlight(c *client, method string, want int32) {
	c.t.Helper()
	for seen, started := 0, int32(0); seen < 3; {
		eventually(c.t, fmt.Sprintf("%d RPCs of %s are in flight", want, method), func() error {
			if got := c.inFlight(method); got != want {
				return fmt.Errorf("%d are", got)
			}
			return nil
		})
		if now := c.accumulated(method).GetRpcsStarted(); now > started {
			seen, started = seen+1, now
		}
	}
}

// Backends that answer after two seconds. A route has a limit of one second; later, all RPCs have
// that deadline.
func TestTimeout(t *testing.T) {
	backends := startBackends(t, 1)
	limited := methodRoute("EmptyCall", clusterName)
	limited.GetRoute().MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
		MaxStreamDuration: durationpb.New(time.Second)}
	p := startPlane(t, "plane", rdsListener(), routes(clusterName, limited),
		edsCluster(clusterName, serviceName), endpoints(serviceName, locality{zone: "a", backends: backends}))
	c := startClient(t, []*plane{p}, "--qps=50", "--rpc=EmptyCall,UnaryCall", "--rpc_timeout_sec=60")
	c.waitForOnly(backends...)
	c.configure(bothMethods, header{"rpc-behavior", "sleep-2"})
	waitForStatus(c, "EMPTY_CALL", codes.DeadlineExceeded)
	waitForStatus(c, "UNARY_CALL", codes.OK)
	if got := c.failed("UNARY_CALL"); got != 0 {
		t.Errorf("%d RPCs without a limit failed", got)
	}
	c.configureWithin(1, bothMethods, header{"rpc-behavior", "sleep-2"})
	waitForStatus(c, "UNARY_CALL", codes.DeadlineExceeded)
	c.configure(bothMethods)
	c.waitForOnly(backends...)
}

func TestFailOnFailedRpc(t *testing.T) {
	backends := startBackends(t, 1)
	p := startPlane(t, "plane",
		simple(edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends})...)
	c := startClient(t, []*plane{p}, "--qps=100", "--fail_on_failed_rpc")
	c.waitForOnly(backends...)
	c.configure(unaryOnly, header{"rpc-behavior", "error-code-13"})
	if status := c.exitStatus(); status != 1 {
		t.Errorf("the client ended with status %d, not 1", status)
	}
}

// One of three backends fails all RPCs, and is ejected.
func TestOutlierDetection(t *testing.T) {
	backends := startBackends(t, 3)
	detect := func(cluster *clusterv3.Cluster) {
		cluster.OutlierDetection = &clusterv3.OutlierDetection{
			Interval: durationpb.New(500 * time.Millisecond), BaseEjectionTime: durationpb.New(5 * time.Minute),
			MaxEjectionPercent: wrapperspb.UInt32(40), EnforcingSuccessRate: wrapperspb.UInt32(0),
			FailurePercentageThreshold: wrapperspb.UInt32(80), EnforcingFailurePercentage: wrapperspb.UInt32(100),
			FailurePercentageMinimumHosts: wrapperspb.UInt32(3), FailurePercentageRequestVolume: wrapperspb.UInt32(3)}
	}
	_, c := startSimple(t, edsCluster(clusterName, serviceName, detect), locality{zone: "a", backends: backends})
	c.waitForOnly(backends...)
	c.configure(unaryOnly, header{"rpc-behavior", "hostname=server-1 error-code-2"})
	c.waitForOnly(backends[0], backends[2])
	if c.accumulated("UNARY_CALL").GetResult()[int32(codes.Unknown)] == 0 {
		t.Errorf("no RPC failed UNKNOWN: %v", c.accumulated("UNARY_CALL"))
	}
}

// A policy of the client's own has every RPC fail with the status that its configuration says, until
// round_robin replaces it.
func TestCustomLb(t *testing.T) {
	backends := startBackends(t, 2)
	group := locality{zone: "a", backends: backends}
	p, c := startSimple(t, edsCluster(clusterName, serviceName, behaviorPolicy("error-code-15")), group)
	waitForStatus(c, "UNARY_CALL", codes.DataLoss)
	p.set(simple(edsCluster(clusterName, serviceName, behaviorPolicy("")), group)...)
	c.waitForOnly(backends...)
	p.set(simple(edsCluster(clusterName, serviceName, behaviorPolicy("error-code-6")), group)...)
	waitForStatus(c, "UNARY_CALL", codes.AlreadyExists)
	p.set(simple(edsCluster(clusterName, serviceName), group)...)
	c.waitForOnly(backends...)
}

// waitForStatus waits until 25 RPCs of the method in a row have ended with the status.
func waitForStatus(c *client, method string, code codes.Code) {
	c.t.Helper()
	others := func(results map[int32]int32) (count int32) {
		for other, ended := range results {
			if other != int32(code) {
				count += ended
			}
		}
		return count
	}
	var first map[int32]int32
	eventually(c.t, "RPCs of "+method+" end with "+code.String(), func() error {
		results := c.accumulated(method).GetResult()
		if first == nil || others(results) != others(first) {
			first = results
		}
		if results[int32(code)]-first[int32(code)] < 25 {
			return fmt.Errorf("the results are %v", results)
		}
		return nil
	})
}
