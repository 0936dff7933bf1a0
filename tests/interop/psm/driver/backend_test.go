// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"
)

// backend is a signalbox-interop-server.
type backend struct {
	*process
	health     corev3.HealthStatus // In EDS.
	connection *grpc.ClientConn
}

// startBackends starts backends with the names server-0, server-1 and so on.
func startBackends(t *testing.T, count int) []*backend {
	t.Helper()
	var all []*backend
	for i := 0; i < count; i++ {
		name := fmt.Sprintf("server-%d", i)
		started := startProcess(t, name, *serverProgram, nil,
			"--port=0", "--listen_address=127.0.0.1", "--host_name_override="+name, "--server_id=id-"+name)
		all = append(all, &backend{process: started, health: corev3.HealthStatus_HEALTHY,
			connection: connect(t, started.address())})
	}
	return all
}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// within is the context of a call.
func within(t *testing.T) context.Context {
	t.Helper()
	made, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return made
}

// setServing changes the health that the backend reports, asks for it, and sets the health in EDS as
// a control plane with health checks does.
func (b *backend) setServing(isServing bool) {
	b.t.Helper()
	control := grpc_testing.NewXdsUpdateHealthServiceClient(b.connection)
	change, want := control.SetServing, grpc_health_v1.HealthCheckResponse_SERVING
	b.health = corev3.HealthStatus_HEALTHY
	if !isServing {
		change, want = control.SetNotServing, grpc_health_v1.HealthCheckResponse_NOT_SERVING
		b.health = corev3.HealthStatus_UNHEALTHY
	}
	if _, err := change(within(b.t), &grpc_testing.Empty{}); err != nil {
		b.t.Fatal(err)
	}
	for _, service := range []string{"", "grpc.testing.TestService"} {
		checkHealth(b.t, b.connection, service, want)
	}
}

func checkHealth(t *testing.T, connection *grpc.ClientConn, service string,
	want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(within(t),
		&grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetStatus() != want {
		t.Fatalf("health of %q: %s, not %s", service, answer.GetStatus(), want)
	}
}
