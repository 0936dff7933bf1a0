// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
)

// asked is what a backend sees of an RPC.
type asked struct {
	requestSize  int
	responseSize int32
	hasDeadline  bool
}

// observer is a backend in the driver itself. It names itself in the response only, not in a header.
type observer struct {
	grpc_testing.UnimplementedTestServiceServer
	name  string
	mutex sync.Mutex
	last  asked
}

func (o *observer) UnaryCall(ctx context.Context, request *grpc_testing.SimpleRequest) (
	*grpc_testing.SimpleResponse, error) {
	_, hasDeadline := ctx.Deadline()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last = asked{len(request.GetPayload().GetBody()), request.GetResponseSize(), hasDeadline}
	return &grpc_testing.SimpleResponse{Hostname: o.name}, nil
}

func (o *observer) waitFor(t *testing.T, want asked) {
	t.Helper()
	eventually(t, fmt.Sprintf("an RPC is %+v", want), func() error {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.last != want {
			return fmt.Errorf("it is %+v", o.last)
		}
		return nil
	})
}

func startObserver(t *testing.T) (*observer, *backend) {
	t.Helper()
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &observer{name: "observer"}
	server := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(server, made)
	go func() { _ = server.Serve(listening) }()
	t.Cleanup(server.Stop)
	port := strconv.Itoa(listening.Addr().(*net.TCPAddr).Port)
	return made, &backend{process: &process{t: t, name: made.name, port: port}, health: corev3.HealthStatus_HEALTHY}
}

func TestRequests(t *testing.T) {
	observer, one := startObserver(t)
	p := startPlane(t, "plane",
		simple(edsCluster(clusterName, serviceName), locality{zone: "a", backends: []*backend{one}})...)
	c := startClient(t, []*plane{p}, "--qps=50", "--request_payload_size=100", "--response_payload_size=2000")
	c.waitForOnly(one)
	observer.waitFor(t, asked{100, 2000, true})
	c.configure(unaryOnly, header{"rpc-behavior", "keep-open"})
	observer.waitFor(t, asked{100, 2000, false})
	c.configureWithin(7, unaryOnly)
	observer.waitFor(t, asked{100, 2000, true})
}

// RPCs that end with the status of --expect_status are the ones that succeed.
func TestExpectStatus(t *testing.T) {
	backends := startBackends(t, 1)
	p := startPlane(t, "plane",
		simple(edsCluster(clusterName, serviceName), locality{zone: "a", backends: backends})...)
	c := startClient(t, []*plane{p}, "--qps=100", "--fail_on_failed_rpc", "--expect_status=ABORTED",
		"--metadata=UnaryCall:rpc-behavior:error-code-10")
	waitForStatus(c, "UNARY_CALL", codes.Aborted)
	counts, err := c.stats.GetClientAccumulatedStats(within(t), &grpc_testing.LoadBalancerAccumulatedStatsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	succeeded, failed := counts.GetNumRpcsSucceededByMethod()["UNARY_CALL"], counts.GetNumRpcsFailedByMethod()["UNARY_CALL"]
	if succeeded < 25 || failed != 0 {
		t.Errorf("%d RPCs have succeeded, and %d failed", succeeded, failed)
	}
	c.configure(unaryOnly)
	if status := c.exitStatus(); status != 1 {
		t.Errorf("the client ended with status %d after an RPC with OK, not 1", status)
	}
}
