package onceward_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// replica serves one service at an address of its own, and counts its calls. While it is down, its connections are closed; it
// keeps its port, which another process could take otherwise.
type replica struct {
	net.Listener
	calls  atomic.Int32
	mu     sync.Mutex
	isDown bool
	opened []net.Conn
}

func startReplica(t *testing.T, service *oncewardtest.Service) *replica {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := &replica{Listener: listener}
	server := grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			started.calls.Add(1)
			return handler(ctx, request)
		}))
	oncewardv1.RegisterIdempotencyServiceServer(server, service)
	go func() { _ = server.Serve(started) }()
	t.Cleanup(server.Stop)
	return started
}

func (r *replica) Accept() (net.Conn, error) {
	for {
		connection, err := r.Listener.Accept()
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		isDown := r.isDown
		r.opened = append(r.opened, connection)
		r.mu.Unlock()
		if !isDown {
			return connection, nil
		}
		_ = connection.Close()
	}
}

func (r *replica) setDown(isDown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDown = isDown
	for _, each := range r.opened {
		_ = each.Close()
	}
	r.opened = nil
}

// silent is a service that answers no Lookup. Each that arrives is announced.
type silent struct {
	oncewardv1.UnimplementedIdempotencyServiceServer
	arrived chan struct{}
}

func (s *silent) Lookup(ctx context.Context, _ *oncewardv1.LookupRequest) (*oncewardv1.LookupResponse, error) {
	s.arrived <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestACallThatHasNoAnswerWhenItsClientClosesEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &silent{arrived: make(chan struct{})}
	server := grpc.NewServer()
	oncewardv1.RegisterIdempotencyServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client, err := onceward.New(fmt.Sprint("http://", listener.Addr()), onceward.Options{APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := client.Service().Lookup(t.Context(), &oncewardv1.LookupRequest{})
		ended <- err
	}()
	<-service.arrived
	if err := client.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the call ended with %v", err)
	}
}

func TestCallsGoToEachReplicaInTurnThatCanBeReached(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	first, second := startReplica(t, service), startReplica(t, service)
	addresses := fmt.Sprintf("http://%s, http://%s", first.Addr(), second.Addr())
	client, err := onceward.New(addresses, onceward.Options{APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	runs := 0
	runUntil := func(isReached func() bool) {
		t.Helper()
		for before := runs; before == runs || !isReached(); runs++ {
			operation := onceward.Operation{Namespace: "charges", Key: fmt.Sprint("order-", runs)}
			if _, err := onceward.Run(t.Context(), client, operation, succeeds); err != nil {
				t.Fatal(err)
			}
		}
	}
	runUntil(func() bool { return first.calls.Load() > 0 && second.calls.Load() > 0 })

	first.setDown(true)
	before := second.calls.Load()
	runUntil(func() bool { return second.calls.Load() >= before+10 })

	first.setDown(false)
	before = first.calls.Load()
	runUntil(func() bool { return first.calls.Load() > before })
	if granted := service.Counts().Granted; granted != runs {
		t.Errorf("%d runs had %d claims", runs, granted)
	}
}
