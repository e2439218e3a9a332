// Package oncewardtest is an Onceward in memory for unit tests: the real client over an implementation of the service that needs
// no server, no database and no sleeping.
//
//	service := oncewardtest.New(t, oncewardtest.Options{})
//	first, _ := chargeOrder(ctx, service.Client, order)
//	second, _ := chargeOrder(ctx, service.Client, order)
//	if got := service.Counts(); got.Granted != 1 || got.Replayed != 1 { … }
//
// After a crash between an effect and its completion, the next delivery runs once the lease is over:
//
//	service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
//	_, err := chargeOrder(ctx, service.Client, order) // A *onceward.CompletionError.
//	service.Advance(30 * time.Second)
//	_, err = chargeOrder(ctx, service.Client, order)
package oncewardtest

import (
	"cmp"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Options are a test's settings; the defaults are the service's.
type Options struct {
	// The policy of every namespace that Namespaces does not name.
	Policy Policy
	// The policies of single namespaces.
	Namespaces map[string]Policy
	// The clock's initial time. Default: the real time.
	Now time.Time
	// The options of the client; its credential is not needed.
	Client onceward.Options
}

// Policy is what a namespace's policy says. A field of 0 has the service's default.
type Policy struct {
	// How long a key is remembered, from its claim or, once completed, from its completion. Default: 72 h.
	KeyRetention time.Duration
	// How long a successful result can be replayed. Default, and at most: KeyRetention.
	ResultRetention time.Duration
	// How long a failure can be replayed. Default: ResultRetention; at most KeyRetention.
	FailureRetention time.Duration
	// The lease of a claim that asks for none. Default: 30 s.
	DefaultLease time.Duration
	// The longest lease that a claim may ask for. Default: 15 min.
	MaxLease time.Duration
	// Whether the record is ambiguous once a lease has expired, until it is resolved (HOLD). Default: the next claim gets the key
	// (RECLAIM), within ReclaimWithin.
	Hold bool
	// Unless Hold: how long after a record's first claim the next claim gets a key whose lease expired; afterwards the record is
	// ambiguous. At most KeyRetention. Default: without a limit.
	ReclaimWithin time.Duration
	// The largest payload of a result. Default: 64 KiB.
	MaxResultBytes int
	// Whether a claim without a fingerprint is refused.
	RequireFingerprint bool
	// What happens to a claim whose key is older than KeyRetention and has no record. Default: it is granted.
	LateKeys LateKeys
}

// LateKeys says what happens to keys that are too old. Unless it is RunLateKeys, records are kept for 10 minutes longer than
// KeyRetention.
type LateKeys string

// What happens to keys that are too old.
const (
	// They are granted.
	RunLateKeys LateKeys = "RUN"
	// They are refused.
	RefuseLateKeys LateKeys = "REFUSE"
	// So they are, and a key whose time is unknown is refused with onceward.ErrInvalidRequest.
	RequireKeyTime LateKeys = "REQUIRE_TIME"
)

func (p Policy) refusesLateKeys() bool {
	return p.LateKeys == RefuseLateKeys || p.LateKeys == RequireKeyTime
}

// resolved returns the policy without gaps. Results are not kept for longer than their key.
func (p Policy) resolved() Policy {
	p.KeyRetention = cmp.Or(p.KeyRetention, limits.DefaultKeyRetention)
	p.ResultRetention = min(cmp.Or(p.ResultRetention, p.KeyRetention), p.KeyRetention)
	p.FailureRetention = min(cmp.Or(p.FailureRetention, p.ResultRetention), p.KeyRetention)
	p.ReclaimWithin = min(p.ReclaimWithin, p.KeyRetention)
	p.MaxLease = cmp.Or(p.MaxLease, limits.DefaultMaxLease)
	p.DefaultLease = min(cmp.Or(p.DefaultLease, limits.DefaultLease), p.MaxLease)
	p.MaxResultBytes = cmp.Or(p.MaxResultBytes, limits.DefaultMaxResultBytes)
	return p
}

// holds tells whether an expired lease is held at an age of the record's first claim.
func (p Policy) holds(age time.Duration) bool {
	return p.Hold || p.ReclaimWithin > 0 && age >= p.ReclaimWithin
}

// Longer than a key may be ahead of the clock, so that a record outlives the time in which its key is accepted.
var lateKeysMargin = 2 * limits.MaxKeyAhead

// kept returns how long a record, or its result, is kept: where late keys are refused, longer than its key is accepted.
func (p Policy) kept(retention time.Duration) time.Duration {
	if p.refusesLateKeys() && retention >= p.KeyRetention {
		return p.KeyRetention + lateKeysMargin
	}
	return retention
}

// Service is an Onceward in memory.
type Service struct {
	// A client of the service. Close is called at the test's end.
	Client *onceward.Client

	oncewardv1.UnimplementedIdempotencyServiceServer
	mu         sync.Mutex
	now        time.Time
	policy     Policy
	namespaces map[string]Policy
	records    map[[2]string]*record
	lastToken  int64
	faults     []*fault
	counts     Counts
	// Closed, and replaced, whenever a record may have changed.
	changed chan struct{}
}

// Counts has the number of claims by their outcome. Recovered: the caller's own claim, whose reply was lost.
type Counts struct {
	Granted, Recovered, InProgress, Replayed, Ambiguous int
}

const bufferBytes = 1 << 20

// New returns a service with no records, which ends with the test.
func New(t testing.TB, options Options) *Service {
	t.Helper()
	service := &Service{
		now: options.Now, policy: options.Policy, namespaces: options.Namespaces,
		records: map[[2]string]*record{}, changed: make(chan struct{}),
	}
	if service.now.IsZero() {
		service.now = time.Now()
	}
	listener := bufconn.Listen(bufferBytes)
	server := grpc.NewServer()
	oncewardv1.RegisterIdempotencyServiceServer(server, service)
	go func() { _ = server.Serve(listener) }() // Ends when the test stops the server.
	connection, err := grpc.NewClient("passthrough:///oncewardtest",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
	)
	if err != nil {
		t.Fatal(err)
	}
	if service.Client, err = onceward.NewWithConn(connection, options.Client); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // Functions that still run are told to end.
		_ = service.Client.Close(ended)
		_ = connection.Close()
		server.Stop()
	})
	return service
}

// Now returns the time of the service's clock. It does not move until the test moves it: leases and retentions end exactly then.
// The client's own waits, heartbeats and retries take real time.
func (s *Service) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Advance advances the clock at once. Calls that wait for a claim whose lease has then expired are answered. Panics for a
// negative duration: time does not go back.
func (s *Service) Advance(by time.Duration) {
	if by < 0 {
		panic("oncewardtest: a clock is not set back")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(by)
	s.notify()
}

// Counts returns the number of claims so far.
func (s *Service) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Record returns a key's record as Lookup does; nil if there is none.
func (s *Service) Record(namespace, key string) *oncewardv1.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(&oncewardv1.LookupRequest{Namespace: namespace, Key: key}).message()
}

// Call names an RPC, alone or as an item of a batch.
type Call string

// The calls that can fail.
const (
	Claim       Call = "Claim"
	Complete    Call = "Complete"
	Release     Call = "Release"
	ExtendLease Call = "ExtendLease"
	Lookup      Call = "Lookup"
)

type fault struct {
	call Call
	// "": the call takes effect, and its reply is lost.
	reason onceward.Reason
}

// FailNext refuses the next call of this kind, which then has no effect. Several faults of one call are used up in order.
//
// If the reason's code is Unavailable or DeadlineExceeded, the client retries until its timeout, so that code under test is safe
// from a single one. Otherwise it gives up at once: with ErrInternal, a Complete has the result of a process that dies between the
// effect and Complete, a claim in progress until its lease expires.
func (s *Service) FailNext(call Call, reason onceward.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{call, reason})
}

// LoseNextReply lets the next call of this kind take effect, but loses its reply: the client is told ErrDatabaseUnavailable, and
// retries.
func (s *Service) LoseNextReply(call Call) { s.FailNext(call, "") }

// ClearFaults removes all faults.
func (s *Service) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}
