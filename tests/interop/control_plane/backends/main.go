// SPDX-License-Identifier: Apache-2.0

// backends is the independent backends of the interop tests: servers of grpc-go that restart
// gracefully. A restarted server listens on its port before the old one leaves, as with socket
// activation. The old one sends GOAWAY, and ends when its calls have ended.
//
//	stdin  ─▶ number of a backend ─▶ its next server, then GracefulStop of the old one
//	stdout ◀─ {"event": "listening", "ports": […]}, {"event": "restarted", "backend": N}
//
// Each message of a call is echoed as it is, so a server needs no generated code: in EchoRequest and
// EchoReply the field 1 is the text. The process ends when its stdin ends, so it never outlives the
// test that started it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"

	"signalbox/tests/interop/control_plane/reuseport"
)

// bytesCodec passes messages on as the bytes that they are on the wire.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(message any) ([]byte, error) {
	bytes, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("a message of type %T", message)
	}
	return *bytes, nil
}

func (bytesCodec) Unmarshal(data []byte, message any) error {
	bytes, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("a message of type %T", message)
	}
	*bytes = append([]byte(nil), data...)
	return nil
}

func echo(_ any, stream grpc.ServerStream) error {
	for {
		var message []byte
		if err := stream.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

// backend is one address, and the server that accepts its connections now.
type backend struct {
	port   int
	server *grpc.Server
}

// succeed starts the next server, and returns the one before it; nil: there is none.
func (b *backend) succeed() (*grpc.Server, error) {
	listener, err := reuseport.Listen(fmt.Sprintf("127.0.0.1:%d", b.port))
	if err != nil {
		return nil, err
	}
	b.port = listener.Addr().(*net.TCPAddr).Port
	old := b.server
	b.server = grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.UnknownServiceHandler(echo))
	go func(server *grpc.Server) {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, "backends:", err)
			os.Exit(1)
		}
	}(b.server)
	return old, nil
}

type event struct {
	Event   string `json:"event"`
	Ports   []int  `json:"ports,omitempty"`
	Backend int    `json:"backend"`
}

func run(count int) error {
	events := json.NewEncoder(os.Stdout)
	backends := make([]backend, count)
	ports := make([]int, count)
	for i := range backends {
		if _, err := backends[i].succeed(); err != nil {
			return err
		}
		ports[i] = backends[i].port
	}
	if err := events.Encode(event{Event: "listening", Ports: ports}); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		number, err := strconv.Atoi(lines.Text())
		if err != nil || number < 0 || number >= count {
			return fmt.Errorf("stdin: no backend %q", lines.Text())
		}
		old, err := backends[number].succeed()
		if err != nil {
			return err
		}
		old.GracefulStop()
		if err := events.Encode(event{Event: "restarted", Backend: number}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	count := flag.Int("count", 1, "the number of backends")
	flag.Parse()
	if err := run(*count); err != nil {
		fmt.Fprintln(os.Stderr, "backends:", err)
		os.Exit(1)
	}
}
