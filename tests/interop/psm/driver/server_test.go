// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"math/rand"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// What the ecosystem's driver asks of a backend itself.
func TestServer(t *testing.T) {
	one := startBackends(t, 1)[0]
	checkServices(t, one.connection, "grpc.testing.TestService", "grpc.testing.XdsUpdateHealthService",
		"grpc.health.v1.Health", "grpc.channelz.v1.Channelz", "grpc.reflection.v1alpha.ServerReflection")
	one.setServing(false)
	one.setServing(true)

	service := grpc_testing.NewTestServiceClient(one.connection)
	var headers metadata.MD
	answer, err := service.UnaryCall(within(t), &grpc_testing.SimpleRequest{ResponseSize: 1000}, grpc.Header(&headers))
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetHostname() != "server-0" || answer.GetServerId() != "id-server-0" ||
		len(answer.GetPayload().GetBody()) != 1000 || fmt.Sprint(headers.Get("hostname")) != "[server-0]" {
		t.Errorf("the answer is %v, with the headers %v", answer, headers)
	}
	for _, row := range []struct {
		behavior, attempts string // attempts: how many gRPC says that it made before.
		want               codes.Code
	}{
		{"sleep-1,error-code-9", "0", codes.FailedPrecondition},
		{"dance", "0", codes.InvalidArgument},
		{"succeed-on-retry-attempt-2,error-code-9", "1", codes.FailedPrecondition},
		{"succeed-on-retry-attempt-2,error-code-9", "2", codes.OK},
	} {
		behaves := metadata.AppendToOutgoingContext(within(t),
			"rpc-behavior", row.behavior, "grpc-previous-rpc-attempts", row.attempts)
		_, err := service.EmptyCall(behaves, &grpc_testing.Empty{}, grpc.Header(&headers))
		if status.Code(err) != row.want {
			t.Errorf("%+v: the error is %v", row, err)
		}
		// A client counts an RPC as one of the backend by this header, and all others as failures.
		if len(headers.Get("hostname")) != 0 != (row.want == codes.OK) {
			t.Errorf("%+v: the headers are %v", row, headers)
		}
	}
}

// The commands of HookRequest. In grpc-go 1.58 the enum has older numbers.
const (
	hookStart  grpc_testing.HookRequestCommand = 1
	hookStop   grpc_testing.HookRequestCommand = 2
	hookReturn grpc_testing.HookRequestCommand = 3
)

// callHook calls the pre-stop hook. The result comes when the hook has ended.
func callHook(t *testing.T, connection *grpc.ClientConn) <-chan codes.Code {
	t.Helper()
	context, ended := within(t), make(chan codes.Code, 1)
	go func() {
		_, err := grpc_testing.NewHookServiceClient(connection).Hook(context, &grpc_testing.Empty{},
			grpc.WaitForReady(true))
		ended <- status.Code(err)
	}()
	return ended
}

// The pre-stop hook on a port of its own: its call ends when the test says so.
func TestServerPreStopHook(t *testing.T) {
	one := startBackends(t, 1)[0]
	port := freePort(t)
	order := func(command grpc_testing.HookRequestCommand, want codes.Code) {
		t.Helper()
		_, err := grpc_testing.NewXdsUpdateHealthServiceClient(one.connection).SendHookRequest(within(t),
			&grpc_testing.HookRequest{Command: command, ServerPort: int32(port),
				GrpcCodeToReturn: int32(codes.DataLoss), GrpcStatusDescription: "so be it"})
		if status.Code(err) != want {
			t.Fatalf("command %d: %v", command, err)
		}
	}
	order(hookStop, codes.Unavailable)
	order(hookReturn, codes.Unavailable)
	order(0, codes.InvalidArgument)
	order(hookStart, codes.OK)
	order(hookStart, codes.AlreadyExists)
	connection := connect(t, fmt.Sprintf("127.0.0.1:%d", port))
	call := callHook(t, connection)
	order(hookReturn, codes.OK)
	if code := <-call; code != codes.DataLoss {
		t.Errorf("the call of the hook ended with %s", code)
	}
	order(hookStop, codes.OK)
}

// The pre-stop hook on the backend's own port. SetReturnStatus has a newer message than grpc-go 1.58;
// EchoStatus has the same fields.
func TestServerHook(t *testing.T) {
	one := startBackends(t, 1)[0]
	order := func(method string, status *grpc_testing.EchoStatus) {
		t.Helper()
		if err := one.connection.Invoke(within(t), "/grpc.testing.HookService/"+method, status,
			&grpc_testing.Empty{}); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	first := callHook(t, one.connection)
	order("SetReturnStatus", &grpc_testing.EchoStatus{Code: int32(codes.Aborted), Message: "so be it"})
	if code := <-first; code != codes.Aborted {
		t.Errorf("the waiting call ended with %s", code)
	}
	if code := <-callHook(t, one.connection); code != codes.Aborted {
		t.Errorf("the next call ended with %s", code)
	}
	order("ClearReturnStatus", &grpc_testing.EchoStatus{})
	last := callHook(t, one.connection)
	order("SetReturnStatus", &grpc_testing.EchoStatus{})
	if code := <-last; code != codes.OK {
		t.Errorf("the last call ended with %s", code)
	}
}

// freePort returns a free port that no program beside this one takes: Linux has others for port 0 and for
// outgoing connections. The hook takes no port 0.
func freePort(t *testing.T) int {
	t.Helper()
	random := rand.New(rand.NewSource(int64(os.Getpid())))
	for {
		port := 10_000 + random.Intn(22_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			listener.Close()
			return port
		}
	}
}
