// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"signalbox/tests/interop/control_plane/reuseport"
)

// oneForAll maps all clients to one snapshot.
type oneForAll struct{}

const allNodes = "all"

func (oneForAll) ID(*corev3.Node) string { return allNodes }

// plane is a control plane of go-control-plane. It keeps its port while it does not run.
type plane struct {
	t         *testing.T
	name      string
	address   string
	mutex     sync.Mutex
	version   int
	snapshots cache.SnapshotCache // nil: the plane does not run.
	server    *grpc.Server
	stopAt    resourceName // The plane stops when a client asks for this resource.
	nacks     []string
}

type resourceName struct{ typeURL, name string }

// newPlane reserves a port: a socket is bound and never listens. SO_REUSEPORT lets the plane listen
// on the same port.
func newPlane(t *testing.T, name string) *plane {
	t.Helper()
	held, err := reuseport.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := held.Addr().String()
	reservation, err := reserve(held.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	p := &plane{t: t, name: name, address: address}
	t.Cleanup(func() {
		p.stop()
		_ = unix.Close(reservation)
		p.mutex.Lock()
		defer p.mutex.Unlock()
		for _, nack := range p.nacks {
			t.Errorf("%s: the client refused a response: %s", name, nack)
		}
	})
	return p
}

func startPlane(t *testing.T, name string, resources ...types.Resource) *plane {
	t.Helper()
	p := newPlane(t, name)
	p.start(resources...)
	return p
}

func reserve(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// start runs the plane, which forgets what it served before.
func (p *plane) start(resources ...types.Resource) {
	p.t.Helper()
	listener, err := reuseport.Listen(p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	// The cache's ADS mode is off. In ADS mode, the cache answers a request only if it names all
	// resources of the snapshot.
	snapshots := cache.NewSnapshotCache(false, oneForAll{}, nil)
	callbacks := server.CallbackFuncs{StreamRequestFunc: p.heard}
	rpcs := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(rpcs,
		server.NewServer(context.Background(), snapshots, callbacks))
	p.mutex.Lock()
	p.snapshots, p.server, p.stopAt = snapshots, rpcs, resourceName{}
	p.mutex.Unlock()
	p.set(resources...)
	go func() { _ = rpcs.Serve(listener) }()
}

// stop ends the plane and its streams.
func (p *plane) stop() {
	p.mutex.Lock()
	rpcs := p.server
	p.server = nil
	p.mutex.Unlock()
	if rpcs != nil {
		rpcs.Stop()
	}
}

// stopOnRequest ends the plane when a client asks for the resource.
func (p *plane) stopOnRequest(typeURL, name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stopAt = resourceName{typeURL, name}
}

// heard sees each request of a client.
func (p *plane) heard(_ int64, request *discoveryv3.DiscoveryRequest) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if problem := request.GetErrorDetail(); problem != nil {
		p.nacks = append(p.nacks, problem.GetMessage())
	}
	for _, name := range request.GetResourceNames() {
		if p.stopAt == (resourceName{request.GetTypeUrl(), name}) {
			go p.stop()
			return status.Error(codes.Unavailable, "the test stops the control plane")
		}
	}
	return nil
}

// set replaces all resources.
func (p *plane) set(resources ...types.Resource) {
	p.t.Helper()
	byType := map[resource.Type][]types.Resource{}
	for _, one := range resources {
		url := "type.googleapis.com/" + string(one.ProtoReflect().Descriptor().FullName())
		byType[url] = append(byType[url], one)
	}
	p.mutex.Lock()
	p.version++
	version := fmt.Sprintf("%s-%d", p.name, p.version)
	snapshots := p.snapshots
	p.mutex.Unlock()
	made, err := cache.NewSnapshot(version, byType)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := snapshots.SetSnapshot(context.Background(), allNodes, made); err != nil {
		p.t.Fatal(err)
	}
}
