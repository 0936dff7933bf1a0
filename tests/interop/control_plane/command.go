// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	// These imports register the message types that a resource may have in an Any.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// command is one line of stdin.
type command struct {
	Do string `json:"do"` // snapshot, answer_loads or cut_loads

	// Of snapshot, which sets the whole snapshot.
	Version   string            `json:"version"`   // The version of types not in Versions.
	Versions  map[string]string `json:"versions"`  // The versions of some types, by type URL.
	Resources []json.RawMessage `json:"resources"` // Protobuf JSON, with @type.

	// Of answer_loads, which sets the LoadStatsResponse.
	Clusters    []string `json:"clusters"`
	AllClusters bool     `json:"all_clusters"`
	IntervalMs  int64    `json:"interval_ms"`

	// Of cut_loads, which ends the streams of load reports: when a report with calls was read, or at
	// once.
	AtReport bool `json:"at_report"`
}

// obey runs the commands of `in`. The end of `in` is no error.
func obey(in io.Reader, snapshots cache.SnapshotCache, loads *loads, events *reporter) error {
	lines := json.NewDecoder(in)
	for {
		var order command
		if err := lines.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		event, err := order.run(snapshots, loads)
		if err != nil {
			return err
		}
		events.tell(done{Event: event})
	}
}

// run runs the command. Returns the event that says so.
func (c *command) run(snapshots cache.SnapshotCache, loads *loads) (string, error) {
	switch c.Do {
	case "snapshot":
		snapshot, err := c.snapshot()
		if err != nil {
			return "", err
		}
		return "snapshot_set", snapshots.SetSnapshot(context.Background(), allNodes, snapshot)
	case "answer_loads":
		loads.say(c.loadAnswer())
		return "loads_done", nil
	case "cut_loads":
		loads.cut(c.AtReport)
		return "loads_done", nil
	}
	return "", fmt.Errorf("unknown command %q", c.Do)
}

func (c *command) snapshot() (*cache.Snapshot, error) {
	byType := map[types.ResponseType][]types.Resource{}
	for _, text := range c.Resources {
		var packed anypb.Any
		if err := protojson.Unmarshal(text, &packed); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		resource, err := packed.UnmarshalNew()
		if err != nil {
			return nil, err
		}
		kind := cache.GetResponseType(packed.GetTypeUrl())
		if kind == types.UnknownType {
			return nil, fmt.Errorf("%s is no type of a snapshot", packed.GetTypeUrl())
		}
		byType[kind] = append(byType[kind], resource)
	}
	made := &cache.Snapshot{}
	for kind := types.ResponseType(0); kind < types.UnknownType; kind++ {
		url, err := cache.GetResponseTypeURL(kind)
		if err != nil {
			return nil, err
		}
		version, own := c.Versions[url]
		if !own {
			version = c.Version
		}
		made.Resources[kind] = cache.NewResources(version, byType[kind])
	}
	return made, nil
}
