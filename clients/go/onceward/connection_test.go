package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// replica serves one service at an address of its own, and counts its calls. While it is down, its connections are closed; it
// keeps its port, which another process could take otherwise.
type replica struct {
	net.Listener
	calls atomic.Int32
	// Not empty: the tenant has moved there.
	movedTo atomic.Value
	mu      sync.Mutex
	isDown  bool
	opened  []net.Conn
}

func startReplica(t *testing.T, service *oncewardtest.Service) *replica {
	t.Helper()
	return startReplicaOn(t, service, "tcp", "127.0.0.1:0")
}

func startReplicaOn(t *testing.T, service *oncewardtest.Service, network, address string) *replica {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	started := &replica{Listener: listener}
	server := grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			started.calls.Add(1)
			if received, _ := metadata.FromIncomingContext(ctx); strings.ContainsAny(received.Get(":authority")[0], "/") {
				return nil, status.Error(codes.Internal, "a server refuses the authority of this call")
			}
			if address, _ := started.movedTo.Load().(string); address != "" {
				moving, err := status.New(codes.Unavailable, "moving").WithDetails(
					&errdetails.ErrorInfo{Domain: "onceward", Reason: string(onceward.ErrTenantMoving), Metadata: map[string]string{"address": address}},
					&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
				return nil, errors.Join(err, moving.Err())
			}
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

func TestCallsReachAReplicaOverItsUnixSocket(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	path := filepath.Join(t.TempDir(), "onceward.sock")
	local, other := startReplicaOn(t, service, "unix", path), startReplica(t, service)
	for _, address := range []string{"unix:" + path, "unix://" + path, fmt.Sprintf("unix:%s, http://%s", path, other.Addr())} {
		client, err := onceward.New(address, onceward.Options{APIKey: "key"})
		if err != nil {
			t.Fatal(err)
		}
		for before, i := local.calls.Load(), 0; local.calls.Load() == before; i++ {
			operation := onceward.Operation{Namespace: "charges", Key: fmt.Sprint(address, i)}
			if _, err := onceward.Run(t.Context(), client, operation, succeeds); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
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
	t.Cleanup(func() { closeAtOnce(client) })
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

func TestCallsFollowATenantThatMovesOnAndGoBackWhileItsHomeIsDown(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	first, second, third := startReplica(t, service), startReplica(t, service), startReplica(t, service)
	url := func(of *replica) string { return fmt.Sprint("http://", of.Addr()) }
	client, err := onceward.New(url(first), onceward.Options{APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAtOnce(client) })
	runs := func(key string, first0, second0, third0 int32) {
		t.Helper()
		if _, err := onceward.Run(t.Context(), client, onceward.Operation{Namespace: "charges", Key: key}, succeeds); err != nil {
			t.Fatal(err)
		}
		if got, want := [3]int32{first.calls.Load(), second.calls.Load(), third.calls.Load()}, [3]int32{first0, second0, third0}; got != want {
			t.Errorf("after %s the homes had %v calls, not %v", key, got, want)
		}
	}
	runs("order-1", 2, 0, 0)
	first.movedTo.Store(url(second))
	second.movedTo.Store(url(third))
	runs("order-2", 3, 1, 2)
	runs("order-3", 3, 1, 4)
	first.movedTo.Store("")
	third.setDown(true)
	runs("order-1", 4, 1, 4)
}

func TestASourceOfTokensMayFailForAWhile(t *testing.T) {
	replica := startReplica(t, oncewardtest.New(t, oncewardtest.Options{}))
	asked := 0
	client, err := onceward.New(fmt.Sprint("http://", replica.Addr()), onceward.Options{
		Token: func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "", errors.New("the issuer restarts")
			}
			return "token", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAtOnce(client)
	if _, err := onceward.Run(t.Context(), client, charges, succeeds); err != nil {
		t.Error(err)
	}
}
