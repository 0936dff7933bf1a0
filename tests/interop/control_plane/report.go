// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"sync"
)

// The types below are the events on stdout.

type listening struct {
	Event string `json:"event"`
	Port  int    `json:"port"`
}

// done says that a command is done.
type done struct {
	Event string `json:"event"` // snapshot_set or loads_done
}

type streamEvent struct {
	Event  string `json:"event"` // stream_opened or stream_closed, of ADS; load_stream_opened or load_stream_closed
	Stream int64  `json:"stream"`
}

type rejection struct {
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

type client struct {
	ID       string   `json:"id"`
	Agent    string   `json:"agent"`
	Features []string `json:"features"`
}

type message struct {
	Event   string     `json:"event"` // request or response
	Stream  int64      `json:"stream"`
	Type    string     `json:"type"`
	Version string     `json:"version"`
	Nonce   string     `json:"nonce"`
	Names   []string   `json:"names"`
	Error   *rejection `json:"error,omitempty"`
	Node    *client    `json:"node,omitempty"`
}

type metricSum struct {
	Calls uint64  `json:"calls"`
	Total float64 `json:"total"`
}

type localityLoad struct {
	Locality   string               `json:"locality"` // region/zone/sub_zone
	Issued     uint64               `json:"issued"`
	Succeeded  uint64               `json:"succeeded"`
	Failed     uint64               `json:"failed"`
	InProgress uint64               `json:"in_progress"`
	Metrics    map[string]metricSum `json:"metrics"`
}

type clusterLoad struct {
	Name       string            `json:"name"`
	Service    string            `json:"service"`
	IntervalMs int64             `json:"interval_ms"`
	Dropped    uint64            `json:"dropped"`
	Drops      map[string]uint64 `json:"drops"`
	Localities []localityLoad    `json:"localities"`
}

type loadRequest struct {
	Event    string        `json:"event"` // load_request
	Stream   int64         `json:"stream"`
	Node     *client       `json:"node,omitempty"`
	Clusters []clusterLoad `json:"clusters"`
	Ends     bool          `json:"ends"` // Whether the server ends the stream because of this request.
}

// reporter writes events in their order. tell never waits for the reader of stdout, because a busy
// test must delay neither the streams nor the reading of commands.
type reporter struct {
	mutex   sync.Mutex
	waiting [][]byte
	more    *sync.Cond
}

func newReporter(out io.Writer) *reporter {
	r := &reporter{}
	r.more = sync.NewCond(&r.mutex)
	go r.write(out)
	return r
}

func (r *reporter) tell(event interface{}) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // The structs above can always be encoded.
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.waiting = append(r.waiting, append(line, '\n'))
	r.more.Signal()
}

func (r *reporter) write(out io.Writer) {
	for {
		r.mutex.Lock()
		for len(r.waiting) == 0 {
			r.more.Wait()
		}
		lines := r.waiting
		r.waiting = nil
		r.mutex.Unlock()
		for _, line := range lines {
			if _, err := out.Write(line); err != nil {
				os.Exit(1) // The test has closed the pipe.
			}
		}
	}
}
