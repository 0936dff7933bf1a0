// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
)

// affinityResources are a cluster whose sessions may stay on DRAINING endpoints, behind a listener
// that keeps sessions.
func affinityResources(backends []*backend) []types.Resource {
	mayDrain := func(cluster *clusterv3.Cluster) {
		cluster.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{
			OverrideHostStatus: &corev3.HealthStatusSet{Statuses: []corev3.HealthStatus{
				corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY, corev3.HealthStatus_DRAINING}}}
	}
	return []types.Resource{rdsListener(sessions()), routes(clusterName),
		edsCluster(clusterName, serviceName, mayDrain),
		endpoints(serviceName, locality{zone: "a", backends: backends})}
}

// newSession returns the cookie of a new session and its backend. The cookie is the whole text of
// set-cookie, with attributes, because the ecosystem's driver sends it so.
func newSession(c *client, backends []*backend) (header, *backend) {
	c.t.Helper()
	for name, rpcs := range c.next(10, "set-cookie").GetMetadatasByPeer() {
		for _, rpc := range rpcs.GetRpcMetadata() {
			for _, entry := range rpc.GetMetadata() {
				for _, one := range backends {
					if one.name == name {
						return header{"cookie", entry.GetValue()}, one
					}
				}
			}
		}
	}
	c.t.Fatal("no response sets a cookie")
	return header{}, nil
}

func TestAffinity(t *testing.T) {
	backends := startBackends(t, 3)
	p := startPlane(t, "plane", affinityResources(backends)...)
	c := startClient(t, []*plane{p}, "--qps=100")
	c.waitForOnly(backends...)
	cookie, pinned := newSession(c, backends)
	c.configure(unaryOnly, cookie)
	c.waitForOnly(pinned)
	if err := c.goesOnlyTo(pinned); err != nil {
		t.Errorf("a session with the cookie %q of %s: %v", cookie.value, pinned.name, err)
	}
	c.configure(unaryOnly)
	c.waitForOnly(backends...)
	checkNoFailure(c)
}

func TestAffinitySessionDrain(t *testing.T) {
	backends := startBackends(t, 3)
	p := startPlane(t, "plane", affinityResources(backends)...)
	c := startClient(t, []*plane{p}, "--qps=100")
	c.waitForOnly(backends...)
	cookie, drained := newSession(c, backends)
	c.configure(unaryOnly, cookie)
	c.waitForOnly(drained)

	drained.health = corev3.HealthStatus_DRAINING
	p.set(affinityResources(backends)...)
	eventually(t, "CSDS has the DRAINING endpoint", func() error {
		for i, health := range c.csds().healths() {
			if (health == "DRAINING") != (backends[i] == drained) {
				return fmt.Errorf("the endpoints are %v", c.csds().healths())
			}
		}
		return nil
	})
	if err := c.goesOnlyTo(drained); err != nil {
		t.Errorf("the session of a DRAINING backend: %v", err)
	}

	// New sessions start elsewhere. Calls with the cookie would still go to the DRAINING backend.
	var others []*backend
	for _, one := range backends {
		if one != drained {
			others = append(others, one)
		}
	}
	c.configure(unaryOnly)
	c.waitForOnly(others...)
	second, elsewhere := newSession(c, others)
	c.configure(unaryOnly, second)
	c.waitForOnly(elsewhere)
	c.configure(unaryOnly, cookie)
	c.waitForOnly(drained)
	checkNoFailure(c)
}
