// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// fallbackResources are those of the ecosystem's fallback test: a listener with its routes inside,
// and a cluster of one backend.
func fallbackResources(cluster string, one *backend) []types.Resource {
	service := cluster + "_eds_service"
	return []types.Resource{plainListener(routes(cluster)), edsCluster(cluster, service),
		endpoints(service, locality{zone: "a", backends: []*backend{one}})}
}

// startFallbackClient starts a client with two control planes.
func startFallbackClient(t *testing.T, primary, fallback *plane) *client {
	t.Helper()
	return startClient(t, []*plane{primary, fallback}, "--qps=20")
}

func TestFallbackOnStartup(t *testing.T) {
	backends := startBackends(t, 2)
	primary, fallback := newPlane(t, "primary"), newPlane(t, "fallback")
	c := startFallbackClient(t, primary, fallback)
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForAdsState(fallback, "TRANSIENT_FAILURE")
	eventuallyAllFail(c)

	fallback.start(fallbackResources("fallback_cluster", backends[1])...)
	c.waitForAdsState(fallback, "READY")
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForOnly(backends[1])

	primary.start(fallbackResources("primary_cluster", backends[0])...)
	c.waitForAdsState(primary, "READY")
	c.waitForAdsState(fallback, "")
	c.waitForOnly(backends[0])

	// What the primary said holds while it is away, and there is no need for the fallback.
	primary.stop()
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForOnly(backends[0])
	c.waitForAdsState(fallback, "")
	fallback.stop()
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForOnly(backends[0])
}

func eventuallyAllFail(c *client) {
	c.t.Helper()
	before := c.failed("UNARY_CALL")
	eventually(c.t, "RPCs fail without a control plane", func() error {
		if c.failed("UNARY_CALL") >= before+5 {
			return nil
		}
		return errors.New("they do not yet")
	})
	if got := c.accumulated("UNARY_CALL").GetResult()[0]; got != 0 {
		c.t.Errorf("%d RPCs have succeeded without a control plane", got)
	}
}

// The primary stops while it is asked for the cluster that it has named.
func TestFallbackMidStartup(t *testing.T) {
	backends := startBackends(t, 2)
	primary := startPlane(t, "primary", fallbackResources("primary_cluster", backends[0])...)
	primary.stopOnRequest(resource.ClusterType, "primary_cluster")
	fallback := startPlane(t, "fallback", fallbackResources("fallback_cluster", backends[1])...)
	c := startFallbackClient(t, primary, fallback)
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForAdsState(fallback, "READY")
	c.waitForOnly(backends[1])

	primary.start(fallbackResources("primary_cluster", backends[0])...)
	c.waitForAdsState(primary, "READY")
	c.waitForAdsState(fallback, "")
	c.waitForOnly(backends[0])
}

// The primary stops while it is asked for the cluster of an update.
func TestFallbackMidUpdate(t *testing.T) {
	backends := startBackends(t, 3)
	primary := startPlane(t, "primary", fallbackResources("primary_cluster", backends[0])...)
	fallback := startPlane(t, "fallback", fallbackResources("fallback_cluster", backends[1])...)
	c := startFallbackClient(t, primary, fallback)
	c.waitForAdsState(primary, "READY")
	c.waitForOnly(backends[0])
	c.waitForAdsState(fallback, "")

	primary.stopOnRequest(resource.ClusterType, "second_cluster")
	primary.set(fallbackResources("second_cluster", backends[2])...)
	c.waitForAdsState(primary, "TRANSIENT_FAILURE")
	c.waitForAdsState(fallback, "READY")
	c.waitForOnly(backends[1])

	primary.start(fallbackResources("second_cluster", backends[2])...)
	c.waitForAdsState(primary, "READY")
	c.waitForAdsState(fallback, "")
	c.waitForOnly(backends[2])
	checkNoFailure(c)
}
