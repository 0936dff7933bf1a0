// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc"
)

// taps report the messages of every ADS stream as they are on the wire. A request is reported before
// the server sees it, because the server fills in missing fields. Streams of load reports pass: loads
// reports their messages.
type taps struct {
	events *reporter
	opened int64
}

const loadMethod = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"

func (t *taps) intercept(service interface{}, stream grpc.ServerStream, called *grpc.StreamServerInfo,
	handler grpc.StreamHandler) error {
	if called.FullMethod == loadMethod {
		return handler(service, stream)
	}
	id := atomic.AddInt64(&t.opened, 1)
	t.events.tell(streamEvent{Event: "stream_opened", Stream: id})
	defer t.events.tell(streamEvent{Event: "stream_closed", Stream: id})
	return handler(service, &tapped{ServerStream: stream, events: t.events, id: id})
}

type tapped struct {
	grpc.ServerStream
	events *reporter
	id     int64
}

func (t *tapped) RecvMsg(m interface{}) error {
	if err := t.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if request, ok := m.(*discoveryv3.DiscoveryRequest); ok {
		t.events.tell(t.heard(request))
	}
	return nil
}

func (t *tapped) SendMsg(m interface{}) error {
	if response, ok := m.(*discoveryv3.DiscoveryResponse); ok {
		t.events.tell(t.said(response))
	}
	return t.ServerStream.SendMsg(m)
}

func (t *tapped) heard(request *discoveryv3.DiscoveryRequest) message {
	heard := message{Event: "request", Stream: t.id, Type: request.GetTypeUrl(), Version: request.GetVersionInfo(),
		Nonce: request.GetResponseNonce(), Names: append([]string{}, request.GetResourceNames()...)}
	if detail := request.GetErrorDetail(); detail != nil {
		heard.Error = &rejection{Code: detail.GetCode(), Message: detail.GetMessage()}
	}
	if node := request.GetNode(); node != nil {
		heard.Node = clientOf(node)
	}
	return heard
}

func clientOf(node *corev3.Node) *client {
	return &client{ID: node.GetId(), Agent: node.GetUserAgentName(),
		Features: append([]string{}, node.GetClientFeatures()...)}
}

func (t *tapped) said(response *discoveryv3.DiscoveryResponse) message {
	names := make([]string, 0, len(response.GetResources()))
	for _, packed := range response.GetResources() {
		resource, err := packed.UnmarshalNew()
		if err != nil {
			panic(err) // All resources of the snapshot can be decoded.
		}
		names = append(names, cache.GetResourceName(resource))
	}
	return message{Event: "response", Stream: t.id, Type: response.GetTypeUrl(), Version: response.GetVersionInfo(),
		Nonce: response.GetNonce(), Names: names}
}
