// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	clientProgram = flag.String("client", "", "the path of signalbox-interop-client")
	serverProgram = flag.String("server", "", "the path of signalbox-interop-server")
)

// patience bounds every wait. It is long, because tests share their machine with other work.
const patience = 60 * time.Second

// eventually calls `check` until it returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// output collects what a process says, for the report of a test that fails.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(part []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(part)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// process is a program that prints "listening on PORT" when it serves. It ends with the test.
type process struct {
	t       *testing.T
	name    string
	port    string
	command *exec.Cmd
	said    output
	ended   chan error
}

func startProcess(t *testing.T, name, path string, environment []string, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, command: exec.Command(path, arguments...), ended: make(chan error, 1)}
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stderr = &p.said
	// The kernel ends the process if the driver dies without its clean-up.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.said.String())
		}
	})
	ports := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "listening on ") {
				ports <- strings.TrimPrefix(lines.Text(), "listening on ")
			} else {
				_, _ = p.said.Write(append(lines.Bytes(), '\n'))
			}
		}
		p.ended <- p.command.Wait()
	}()
	select {
	case p.port = <-ports:
	case err := <-p.ended:
		p.ended <- err
		t.Fatalf("%s ended: %v", name, err)
	case <-time.After(patience):
		t.Fatalf("%s does not listen", name)
	}
	return p
}

func (p *process) address() string { return "127.0.0.1:" + p.port }

// kill returns when the process has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	p.ended <- <-p.ended
}

// stop asks the process to end, and returns its exit status.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	return p.exitStatus()
}

// exitStatus waits for the end of the process.
func (p *process) exitStatus() int {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
	return p.command.ProcessState.ExitCode()
}
