// SPDX-License-Identifier: Apache-2.0

// Package reuseport makes listeners with SO_REUSEPORT.
package reuseport

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen listens on the TCP address. Other sockets of this user may be bound to it, and listen.
func Listen(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		var failed error
		if err := connection.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); err != nil {
			return err
		}
		return failed
	}}
	return config.Listen(context.Background(), "tcp", address)
}
