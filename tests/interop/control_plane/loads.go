// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// loads is the service of load reports (LRS). It sends the answer that the test has set, and reports
// each request as an event. It adds up nothing; the test does.
type loads struct {
	events  *reporter
	mutex   sync.Mutex
	answer  *loadv3.LoadStatsResponse // nil: the server answers nothing.
	opened  int64
	streams map[int64]*loadStream
}

// loadStream is an open stream. `send` is called with the mutex of loads held, because gRPC allows
// one sender at a time.
type loadStream struct {
	send func(*loadv3.LoadStatsResponse) error
	// true: the stream ends when the server has read the next request that has calls in it.
	endsAtReport bool
	end          chan struct{} // Closed when the stream has to end.
}

var errCut = status.Error(codes.Unavailable, "the test cuts the stream")

func newLoads(events *reporter) *loads {
	return &loads{events: events, streams: map[int64]*loadStream{}}
}

// say sets the answer to streams. Open streams get it at once.
func (l *loads) say(answer *loadv3.LoadStatsResponse) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.answer = answer
	for _, stream := range l.streams {
		// The error of a stream that has just ended is reported where the stream is read.
		_ = stream.send(answer)
	}
}

// cut ends the open streams: at once, or when the server has read a report with calls in it.
func (l *loads) cut(atReport bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for id, stream := range l.streams {
		if atReport {
			stream.endsAtReport = true
		} else {
			delete(l.streams, id)
			close(stream.end)
		}
	}
}

// StreamLoadStats implements LoadReportingServiceServer. It reads in a goroutine, because a stream
// may have to end while nothing comes. gRPC ends the goroutine's RecvMsg when the function returns.
func (l *loads) StreamLoadStats(stream loadv3.LoadReportingService_StreamLoadStatsServer) error {
	id, one := l.open(stream)
	l.events.tell(streamEvent{Event: "load_stream_opened", Stream: id})
	defer l.events.tell(streamEvent{Event: "load_stream_closed", Stream: id})
	defer l.forget(id)
	read := make(chan error, 1)
	go func() { read <- l.read(id, one, stream) }()
	select {
	case err := <-read:
		return err
	case <-one.end:
		return errCut
	}
}

func (l *loads) read(id int64, one *loadStream, stream loadv3.LoadReportingService_StreamLoadStatsServer) error {
	for first := true; ; first = false {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := l.heard(id, one, request, first); err != nil {
			return err
		}
	}
}

// heard reports the request, answers the first one, and ends the stream where the test wants it.
func (l *loads) heard(id int64, one *loadStream, request *loadv3.LoadStatsRequest, first bool) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	ends := one.endsAtReport && hasCalls(request)
	told := loadRequest{Event: "load_request", Stream: id, Clusters: clustersOf(request), Ends: ends}
	if node := request.GetNode(); node != nil {
		told.Node = clientOf(node)
	}
	l.events.tell(told)
	if ends {
		return errCut
	}
	if first && l.answer != nil {
		return one.send(l.answer)
	}
	return nil
}

func (l *loads) open(stream loadv3.LoadReportingService_StreamLoadStatsServer) (int64, *loadStream) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.opened++
	one := &loadStream{send: stream.Send, end: make(chan struct{})}
	l.streams[l.opened] = one
	return l.opened, one
}

func (l *loads) forget(id int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.streams, id)
}

func hasCalls(request *loadv3.LoadStatsRequest) bool {
	for _, cluster := range request.GetClusterStats() {
		for _, locality := range cluster.GetUpstreamLocalityStats() {
			if locality.GetTotalIssuedRequests() > 0 {
				return true
			}
		}
	}
	return false
}

func clustersOf(request *loadv3.LoadStatsRequest) []clusterLoad {
	clusters := []clusterLoad{}
	for _, stats := range request.GetClusterStats() {
		cluster := clusterLoad{Name: stats.GetClusterName(), Service: stats.GetClusterServiceName(),
			IntervalMs: stats.GetLoadReportInterval().AsDuration().Milliseconds(),
			Dropped:    stats.GetTotalDroppedRequests(), Drops: map[string]uint64{}, Localities: []localityLoad{}}
		for _, drops := range stats.GetDroppedRequests() {
			cluster.Drops[drops.GetCategory()] += drops.GetDroppedCount()
		}
		for _, locality := range stats.GetUpstreamLocalityStats() {
			where := locality.GetLocality()
			load := localityLoad{
				Locality:   fmt.Sprintf("%s/%s/%s", where.GetRegion(), where.GetZone(), where.GetSubZone()),
				Issued:     locality.GetTotalIssuedRequests(),
				Succeeded:  locality.GetTotalSuccessfulRequests(),
				Failed:     locality.GetTotalErrorRequests(),
				InProgress: locality.GetTotalRequestsInProgress(), Metrics: map[string]metricSum{}}
			for _, metric := range locality.GetLoadMetricStats() {
				load.Metrics[metric.GetMetricName()] = metricSum{
					Calls: metric.GetNumRequestsFinishedWithMetric(), Total: metric.GetTotalMetricValue()}
			}
			cluster.Localities = append(cluster.Localities, load)
		}
		clusters = append(clusters, cluster)
	}
	return clusters
}

// loadAnswer makes the LoadStatsResponse of a command.
func (c *command) loadAnswer() *loadv3.LoadStatsResponse {
	return &loadv3.LoadStatsResponse{Clusters: c.Clusters, SendAllClusters: c.AllClusters,
		LoadReportingInterval: durationpb.New(time.Duration(c.IntervalMs) * time.Millisecond)}
}
