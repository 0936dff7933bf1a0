// SPDX-License-Identifier: Apache-2.0

// control_plane is the independent control plane of the interop tests. It runs go-control-plane's
// snapshot cache and server. JSON lines on stdin are commands; JSON lines on stdout report the
// requests that it receives and the responses that it sends.
//
//	stdin  ─▶ command ─▶ SnapshotCache ─▶ server ─▶ [tap] ─ ADS ─ client
//	                └──▶ loads ─ LRS ─ client          │
//	stdout ◀─ event ◀───────┴──────────────────────────┘
//
// The process ends when its stdin ends, so it never outlives the test that started it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"signalbox/tests/interop/control_plane/reuseport"
)

// oneForAll maps all clients to one snapshot.
type oneForAll struct{}

const allNodes = "all"

func (oneForAll) ID(*corev3.Node) string { return allNodes }

func run(address string) error {
	events := newReporter(os.Stdout)
	// The cache's ADS mode is off. In ADS mode, the cache answers a request only if it names all
	// resources of the snapshot.
	snapshots := cache.NewSnapshotCache(false, oneForAll{}, nil)
	taps := &taps{events: events}
	rpcServer := grpc.NewServer(grpc.StreamInterceptor(taps.intercept))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(rpcServer,
		server.NewServer(context.Background(), snapshots, nil))
	loads := newLoads(events)
	loadv3.RegisterLoadReportingServiceServer(rpcServer, loads)

	// The test can therefore keep the port reserved with a bound socket while this process does not
	// run.
	listener, err := reuseport.Listen(address)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- rpcServer.Serve(listener) }()
	obeyed := make(chan error, 1)
	go func() { obeyed <- obey(os.Stdin, snapshots, loads, events) }()
	events.tell(listening{Event: "listening", Port: listener.Addr().(*net.TCPAddr).Port})
	select {
	case err = <-served:
	case err = <-obeyed:
	}
	return err
}

func main() {
	address := flag.String("listen", "127.0.0.1:0", "where to serve ADS and LRS")
	flag.Parse()
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, "control_plane:", err)
		os.Exit(1)
	}
}
