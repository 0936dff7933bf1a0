// SPDX-License-Identifier: Apache-2.0

// strict_dashboard reads a dashboard by Grafana's own schema. A field that the schema does not have
// is an error.
//
//	strict_dashboard FILE
//
// Exit status: 0 the file is a dashboard, 1 it is not.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The kinds of panels that the dashboard uses. Other kinds are errors, because the options of kinds
// that are not registered are not checked.
var kinds = map[string]bool{"heatmap": true, "stat": true, "state-timeline": true, "table": true, "timeseries": true}

func check(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(statetimeline.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())

	// If UnmarshalJSONStrict finds no error, it returns an empty list of errors, and leaves panels out
	// of the dashboard. So json.Unmarshal reads the dashboard, too.
	var strict, read dashboard.Dashboard
	var found cog.BuildErrors
	if err := strict.UnmarshalJSONStrict(raw); err != nil && !(errors.As(err, &found) && len(found) == 0) {
		return err
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	queries := 0
	for _, panel := range read.Panels {
		if panel.Panel == nil {
			continue // This is a row, not a panel.
		}
		if !kinds[panel.Panel.Type] {
			return fmt.Errorf("a panel is of the kind %q, which is not registered in main.go", panel.Panel.Type)
		}
		for _, target := range panel.Panel.Targets {
			if _, ok := target.(*prometheus.Dataquery); !ok {
				return fmt.Errorf("a query is a %T, and not one of Prometheus", target)
			}
			queries++
		}
	}
	if queries == 0 {
		return errors.New("no panel has a query")
	}
	if err := read.Validate(); err != nil {
		return err
	}
	fmt.Printf("%d panels and rows, %d queries: as Grafana has them\n", len(read.Panels), queries)
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: strict_dashboard FILE")
		os.Exit(1)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
