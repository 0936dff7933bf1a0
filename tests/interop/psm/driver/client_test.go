// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	csdsv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

const (
	emptyCall = grpc_testing.ClientConfigureRequest_EMPTY_CALL
	unaryCall = grpc_testing.ClientConfigureRequest_UNARY_CALL
)

// client is a signalbox-interop-client.
type client struct {
	*process
	connection *grpc.ClientConn
	stats      grpc_testing.LoadBalancerStatsServiceClient
}

// startClient starts a client of the control planes; the first one is the primary.
func startClient(t *testing.T, planes []*plane, arguments ...string) *client {
	t.Helper()
	arguments = append([]string{"--server=" + target, "--stats_port=0", "--listen_address=127.0.0.1"},
		arguments...)
	started := startProcess(t, "client", *clientProgram,
		[]string{"GRPC_XDS_BOOTSTRAP=" + bootstrap(t, planes)}, arguments...)
	connection := connect(t, started.address())
	return &client{process: started, connection: connection,
		stats: grpc_testing.NewLoadBalancerStatsServiceClient(connection)}
}

// bootstrap writes the bootstrap file, and returns its path.
func bootstrap(t *testing.T, planes []*plane) string {
	t.Helper()
	type object = map[string]interface{}
	var servers []object
	for _, one := range planes {
		servers = append(servers, object{"server_uri": one.address, "server_features": []string{"xds_v3"},
			"channel_creds": []object{{"type": "insecure"}}})
	}
	text, err := json.Marshal(object{"xds_servers": servers, "node": object{"id": "psm-client"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// next returns where the next RPCs of the client go. `keys` are the response metadata to return.
func (c *client) next(rpcs int32, keys ...string) *grpc_testing.LoadBalancerStatsResponse {
	c.t.Helper()
	answer, err := c.stats.GetClientStats(within(c.t), &grpc_testing.LoadBalancerStatsRequest{
		NumRpcs: rpcs, TimeoutSec: int32(patience.Seconds()) - 5, MetadataKeys: keys})
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// accumulated returns the counts of all RPCs of a method; "UNARY_CALL", say.
func (c *client) accumulated(method string) *grpc_testing.LoadBalancerAccumulatedStatsResponse_MethodStats {
	c.t.Helper()
	answer, err := c.stats.GetClientAccumulatedStats(within(c.t),
		&grpc_testing.LoadBalancerAccumulatedStatsRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.GetStatsPerMethod()[method]
}

// inFlight returns how many RPCs of the method have not ended.
func (c *client) inFlight(method string) int32 {
	c.t.Helper()
	stats := c.accumulated(method)
	count := stats.GetRpcsStarted()
	for _, ended := range stats.GetResult() {
		count -= ended
	}
	return count
}

// failed returns how many RPCs of the method have failed.
func (c *client) failed(method string) int32 {
	c.t.Helper()
	var count int32
	for code, ended := range c.accumulated(method).GetResult() {
		if code != 0 {
			count += ended
		}
	}
	return count
}

// header is a header of the client's RPCs.
type header struct{ key, value string }

// configure lets the client send RPCs of `types`, each with the headers and the default deadline.
func (c *client) configure(types []grpc_testing.ClientConfigureRequest_RpcType, headers ...header) {
	c.t.Helper()
	c.configureWithin(0, types, headers...)
}

// configureWithin is configure with a deadline in seconds.
func (c *client) configureWithin(seconds int32, types []grpc_testing.ClientConfigureRequest_RpcType,
	headers ...header) {
	c.t.Helper()
	request := &grpc_testing.ClientConfigureRequest{Types: types, TimeoutSec: seconds}
	for _, kind := range types {
		for _, one := range headers {
			request.Metadata = append(request.Metadata,
				&grpc_testing.ClientConfigureRequest_Metadata{Type: kind, Key: one.key, Value: one.value})
		}
	}
	_, err := grpc_testing.NewXdsUpdateClientConfigureServiceClient(c.connection).Configure(within(c.t), request)
	if err != nil {
		c.t.Fatal(err)
	}
}

// goesOnlyTo returns an error unless the next RPCs succeed, go to these backends, and leave out none.
func (c *client) goesOnlyTo(backends ...*backend) error {
	c.t.Helper()
	answer := c.next(int32(15 * len(backends)))
	peers := answer.GetRpcsByPeer()
	if answer.GetNumFailures() != 0 || len(peers) != len(backends) {
		return fmt.Errorf("the RPCs went to %v, and %d failed", peers, answer.GetNumFailures())
	}
	for _, one := range backends {
		if peers[one.name] == 0 {
			return fmt.Errorf("the RPCs went to %v, and not to %s", peers, one.name)
		}
	}
	return nil
}

func (c *client) waitForOnly(backends ...*backend) {
	c.t.Helper()
	var names []string
	for _, one := range backends {
		names = append(names, one.name)
	}
	eventually(c.t, "RPCs go only to "+strings.Join(names, " and "),
		func() error { return c.goesOnlyTo(backends...) })
}

// xdsConfig is what CSDS shows, as the ecosystem's driver reads it.
type xdsConfig struct {
	listener  *listenerv3.Listener
	routes    *routev3.RouteConfiguration
	clusters  []*clusterv3.Cluster
	endpoints []*endpointv3.ClusterLoadAssignment
	versions  []string
}

func (c *client) csds() *xdsConfig {
	c.t.Helper()
	answer, err := csdsv3.NewClientStatusDiscoveryServiceClient(c.connection).FetchClientStatus(within(c.t),
		&csdsv3.ClientStatusRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(answer.GetConfig()) != 1 {
		c.t.Fatalf("CSDS has %d configurations, not 1", len(answer.GetConfig()))
	}
	found := &xdsConfig{}
	for _, one := range answer.GetConfig()[0].GetGenericXdsConfigs() {
		message, err := one.GetXdsConfig().UnmarshalNew()
		if err != nil {
			c.t.Fatalf("CSDS: %s %q: %v", one.GetTypeUrl(), one.GetName(), err)
		}
		found.versions = append(found.versions, one.GetVersionInfo())
		switch resource := message.(type) {
		case *listenerv3.Listener:
			found.listener = resource
		case *routev3.RouteConfiguration:
			found.routes = resource
		case *clusterv3.Cluster:
			found.clusters = append(found.clusters, resource)
		case *endpointv3.ClusterLoadAssignment:
			found.endpoints = append(found.endpoints, resource)
		}
	}
	return found
}

// healths returns the explicit health of each endpoint in CSDS, in order.
func (x *xdsConfig) healths() []string {
	var all []string
	for _, assignment := range x.endpoints {
		for _, group := range assignment.GetEndpoints() {
			for _, one := range group.GetLbEndpoints() {
				all = append(all, one.GetHealthStatus().String())
			}
		}
	}
	return all
}

// channels returns the top channels of channelz with `part` in their targets. It reads page by page.
func (c *client) channels(part string) []*grpc_channelz_v1.Channel {
	c.t.Helper()
	var found []*grpc_channelz_v1.Channel
	channelz := grpc_channelz_v1.NewChannelzClient(c.connection)
	for start := int64(0); ; {
		page, err := channelz.GetTopChannels(within(c.t),
			&grpc_channelz_v1.GetTopChannelsRequest{StartChannelId: start, MaxResults: 1})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, one := range page.GetChannel() {
			if strings.Contains(one.GetData().GetTarget(), part) {
				found = append(found, one)
			}
			if id := one.GetRef().GetChannelId(); id >= start {
				start = id + 1
			}
		}
		if page.GetEnd() {
			return found
		}
	}
}

// waitForServerChannel waits for a READY channel to the target with a READY subchannel that has a
// socket.
func (c *client) waitForServerChannel() {
	c.t.Helper()
	channelz := grpc_channelz_v1.NewChannelzClient(c.connection)
	eventually(c.t, "channelz has a connected channel to "+target, func() error {
		for _, channel := range c.channels(target) {
			if !isReady(channel.GetData()) {
				continue
			}
			for _, ref := range channel.GetSubchannelRef() {
				answer, err := channelz.GetSubchannel(within(c.t),
					&grpc_channelz_v1.GetSubchannelRequest{SubchannelId: ref.GetSubchannelId()})
				if err != nil {
					return err
				}
				sockets := answer.GetSubchannel().GetSocketRef()
				if !isReady(answer.GetSubchannel().GetData()) || len(sockets) == 0 {
					continue
				}
				_, err = channelz.GetSocket(within(c.t),
					&grpc_channelz_v1.GetSocketRequest{SocketId: sockets[0].GetSocketId()})
				return err
			}
		}
		return fmt.Errorf("found %v", c.channels(target))
	})
}

func isReady(data *grpc_channelz_v1.ChannelData) bool {
	return data.GetState().GetState() == grpc_channelz_v1.ChannelConnectivityState_READY
}

// waitForAdsCall waits for a channel to the control plane with a call in flight.
func (c *client) waitForAdsCall(p *plane) {
	c.t.Helper()
	eventually(c.t, "channelz has a call to the control plane "+p.name, func() error {
		for _, channel := range c.channels(p.address) {
			data := channel.GetData()
			if data.GetCallsStarted()-data.GetCallsSucceeded()-data.GetCallsFailed() > 0 {
				return nil
			}
		}
		return fmt.Errorf("found %v", c.channels(p.address))
	})
}

// waitForAdsState waits until a channel to the control plane is in the state. As in the ecosystem's
// driver, the last channel of channelz counts; "" means that there is none.
func (c *client) waitForAdsState(p *plane, state string) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("the channel to the control plane %s is %q", p.name, state), func() error {
		found := ""
		for _, channel := range c.channels(p.address) {
			found = channel.GetData().GetState().GetState().String()
		}
		if found != state {
			return fmt.Errorf("it is %q", found)
		}
		return nil
	})
}

// services returns the names of the services that server reflection lists.
func services(t *testing.T, connection *grpc.ClientConn) map[string]bool {
	t.Helper()
	stream, err := grpc_reflection_v1alpha.NewServerReflectionClient(connection).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_reflection_v1alpha.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1alpha.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range answer.GetListServicesResponse().GetService() {
		names[one.GetName()] = true
	}
	return names
}

func checkServices(t *testing.T, connection *grpc.ClientConn, wanted ...string) {
	t.Helper()
	listed := services(t, connection)
	for _, name := range wanted {
		if !listed[name] {
			t.Errorf("server reflection does not list %s: %v", name, listed)
		}
	}
}
