// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A program that cannot start says why, and ends: with 2 for a wrong command line, else with 1.
func TestStartErrors(t *testing.T) {
	taken := startBackends(t, 1)[0]
	file := bootstrap(t, []*plane{newPlane(t, "plane")})
	const server, listen = "--server=" + target, "--listen_address=127.0.0.1"
	for _, row := range []struct {
		program, bootstrap string
		arguments          []string
		status             int
		says               string
	}{
		{*clientProgram, file, []string{server, "--color=red"}, 2, "signalbox-interop-client: --color: no such flag"},
		{*clientProgram, "", []string{server}, 1, "signalbox-interop-client: NOT_FOUND: no bootstrap"},
		{*clientProgram, file, []string{server, listen, "--stats_port=" + taken.port}, 1,
			"signalbox-interop-client: " + taken.address() + ": UNAVAILABLE: cannot listen"},
		{*serverProgram, "", []string{"--color=red"}, 2, "signalbox-interop-server: --color: no such flag"},
		{*serverProgram, "", []string{listen, "--port=" + taken.port}, 1,
			"signalbox-interop-server: " + taken.address() + ": cannot listen"},
	} {
		command := exec.CommandContext(within(t), row.program, row.arguments...)
		command.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+row.bootstrap, "GRPC_XDS_BOOTSTRAP_CONFIG=")
		said, _ := command.CombinedOutput()
		if status := command.ProcessState.ExitCode(); status != row.status || !strings.Contains(string(said), row.says) {
			t.Errorf("%v: status %d, not %d, or it does not say %q:\n%s", command.Args, status, row.status, row.says, said)
		}
	}
}
