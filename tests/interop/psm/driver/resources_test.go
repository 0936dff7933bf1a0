// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"net"
	"strconv"

	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	sessionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The names of the resources.
const (
	listenerName = "psm"
	routesName   = "psm-routes"
	clusterName  = "psm-cluster"
	serviceName  = "psm-service"
	target       = "xds:///" + listenerName
)

func packed(message proto.Message) *anypb.Any {
	made, err := anypb.New(message)
	if err != nil {
		panic(err) // A generated message can always be packed.
	}
	return made
}

var ads = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{}}

func filter(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(config)}}
}

// sessions keeps a client on its backend by a cookie (gRFC A55).
func sessions() *hcmv3.HttpFilter {
	state := &cookiev3.CookieBasedSessionState{Cookie: &httpv3.Cookie{Name: "psm-session"}}
	return filter("envoy.filters.http.stateful_session", &sessionv3.StatefulSession{
		SessionState: &corev3.TypedExtensionConfig{
			Name: "envoy.http.stateful_session.cookie", TypedConfig: packed(state)}})
}

func listener(manager *hcmv3.HttpConnectionManager, filters ...*hcmv3.HttpFilter) *listenerv3.Listener {
	manager.HttpFilters = append(filters, filter("router", &routerv3.Router{}))
	return &listenerv3.Listener{Name: listenerName,
		ApiListener: &listenerv3.ApiListener{ApiListener: packed(manager)}}
}

// rdsListener names its routes.
func rdsListener(filters ...*hcmv3.HttpFilter) *listenerv3.Listener {
	return listener(&hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
		Rds: &hcmv3.Rds{RouteConfigName: routesName, ConfigSource: ads}}}, filters...)
}

// plainListener has its routes inside.
func plainListener(routes *routev3.RouteConfiguration) *listenerv3.Listener {
	return listener(&hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}})
}

func routeTo(match *routev3.RouteMatch, cluster string) *routev3.Route {
	return &routev3.Route{Match: match, Action: &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}}}
}

// routes sends calls to `cluster`, after the routes in `first` have looked at them.
func routes(cluster string, first ...*routev3.Route) *routev3.RouteConfiguration {
	all := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}}
	return &routev3.RouteConfiguration{Name: routesName, VirtualHosts: []*routev3.VirtualHost{{
		Name: "all", Domains: []string{"*"}, Routes: append(first, routeTo(all, cluster))}}}
}

func methodRoute(method, cluster string) *routev3.Route {
	return routeTo(&routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{
		Path: "/grpc.testing.TestService/" + method}}, cluster)
}

// edsCluster is a cluster with the endpoints `service`. `changes` add to it.
func edsCluster(name, service string, changes ...func(*clusterv3.Cluster)) *clusterv3.Cluster {
	made := &clusterv3.Cluster{Name: name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads, ServiceName: service}}
	for _, change := range changes {
		change(made)
	}
	return made
}

func maxRequests(most uint32) func(*clusterv3.Cluster) {
	return func(cluster *clusterv3.Cluster) {
		cluster.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(most)}}}
	}
}

// behaviorPolicy is the custom policy of the test custom_lb, below the choice of a locality.
func behaviorPolicy(behavior string) func(*clusterv3.Cluster) {
	config, err := structpb.NewStruct(map[string]interface{}{"rpcBehavior": behavior})
	if err != nil {
		panic(err)
	}
	custom := &xdstypev3.TypedStruct{
		TypeUrl: "type.googleapis.com/test.RpcBehaviorLoadBalancer", Value: config}
	locality := &localityv3.WrrLocality{EndpointPickingPolicy: policies("custom", custom)}
	return func(cluster *clusterv3.Cluster) {
		cluster.LoadBalancingPolicy = policies("wrr_locality", locality)
	}
}

func policies(name string, config proto.Message) *clusterv3.LoadBalancingPolicy {
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: name, TypedConfig: packed(config)}}}}
}

// locality is a group of backends; in the ecosystem's tests, a NEG.
type locality struct {
	zone     string
	priority uint32
	backends []*backend
}

func endpoints(service string, localities ...locality) *endpointv3.ClusterLoadAssignment {
	made := &endpointv3.ClusterLoadAssignment{ClusterName: service}
	for _, group := range localities {
		part := &endpointv3.LocalityLbEndpoints{Priority: group.priority,
			Locality:            &corev3.Locality{Region: "psm", Zone: group.zone},
			LoadBalancingWeight: wrapperspb.UInt32(1)}
		for _, one := range group.backends {
			part.LbEndpoints = append(part.LbEndpoints, &endpointv3.LbEndpoint{HealthStatus: one.health,
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
					Endpoint: &endpointv3.Endpoint{Address: socketAddress(one.address())}}})
		}
		made.Endpoints = append(made.Endpoints, part)
	}
	return made
}

func socketAddress(address string) *corev3.Address {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}}}}
}

// simple is everything that calls to one cluster need.
func simple(cluster *clusterv3.Cluster, localities ...locality) []types.Resource {
	return []types.Resource{rdsListener(), routes(cluster.GetName()), cluster,
		endpoints(cluster.GetEdsClusterConfig().GetServiceName(), localities...)}
}
