package onceward

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

func TestTheLeaseClockCountsTheTimeInWhichTheMachineWasSuspended(t *testing.T) {
	clock := &leaseClock{}
	for _, step := range []struct{ monotonic, wall, want time.Duration }{
		{time.Second, time.Second, time.Second},
		{2 * time.Second, 2*time.Second + 10*time.Millisecond, 2 * time.Second},       // Slewed.
		{3 * time.Second, time.Hour, time.Hour - 10*time.Millisecond},                 // Suspended, or set forward.
		{4 * time.Second, time.Minute, time.Hour + time.Second - 10*time.Millisecond}, // Set back.
	} {
		if got := clock.advance(step.monotonic, step.wall); got != step.want {
			t.Errorf("after %s by the monotonic clock and %s by the other it is %s, not %s", step.monotonic, step.wall, got, step.want)
		}
	}
}

func TestAKeyThatNoHeaderCarriesIsRefused(t *testing.T) {
	if _, err := New("http://localhost:1", Options{APIKey: "key\n"}); !errors.Is(err, ErrInvalidRequest) {
		t.Error(err)
	}
}

func TestABatchIsBoundedInBytesAndItems(t *testing.T) {
	gathered := &gatherer{inFlight: maxBatchesInFlight - 1}
	for range limits.MaxBatchItems + 1 {
		gathered.queue = append(gathered.queue, &call{bytes: 1})
	}
	if batch, _ := gathered.takeBatch(); len(batch) != limits.MaxBatchItems {
		t.Errorf("a batch has %d items", len(batch))
	}
	gathered.queue = []*call{{bytes: maxBatchBytes}, {bytes: 1}}
	if batch, bytes := gathered.takeBatch(); len(batch) != 1 || bytes != maxBatchBytes {
		t.Errorf("a batch has %d items of %d bytes", len(batch), bytes)
	}
}

func TestQueuedCallsAreDividedAmongTheBatchesThatMayBeSent(t *testing.T) {
	gathered := &gatherer{}
	for range 100 {
		gathered.queue = append(gathered.queue, &call{bytes: 1})
	}
	if batch, _ := gathered.takeBatch(); len(batch) != 34 {
		t.Errorf("the first of three batches has %d items", len(batch))
	}
}

// A batch costs the service a statement. Without a pause between an answer and the next batch, callers that make one call after
// another would share a batch with those alone that happened to be queued.
func TestCallersThatWereAnsweredJoinTheNextBatch(t *testing.T) {
	// On one processor, the scheduler runs goroutines that are ready before one that gives way, but for one time of 61.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, lone = 100, 2
	joined := 0
	for range rounds {
		batches, answered := make(chan []*call), make(chan struct{})
		gathered := &gatherer{send: func(batch []*call) {
			batches <- batch
			<-answered
			for _, each := range batch {
				each.answer(nil, nil)
			}
		}}
		add := func() *call {
			added := &call{done: make(chan struct{})}
			gathered.add(added)
			return added
		}
		for range lone {
			first := add()
			go func() {
				<-first.done
				add()
			}()
			<-batches
		}
		runtime.Gosched() // The callers wait for their answers.
		add()
		answered <- struct{}{}
		if len(<-batches) == 2 {
			joined++
		}
		for range lone {
			answered <- struct{}{}
		}
		for rest := lone - 1; rest > 0; {
			rest -= len(<-batches)
			answered <- struct{}{}
		}
	}
	if joined < rounds/2 {
		t.Errorf("a caller joined the next batch in %d of %d rounds", joined, rounds)
	}
}

// After a pause of the process, the timer of the lease fires late.
func TestAFunctionDoesNotBeginAfterItsLease(t *testing.T) {
	claim := &Claim{continues: true, lease: &lease{}, earlier: &unknownAttempt{last: &oncewardv1.Ambiguous{}}}
	operation := &Operation{Resolve: func(context.Context, *Claim) (Resolution, error) { return DidNotHappen(), nil }}
	var lost *Error
	if _, err := lookFirst(t.Context(), claim, operation, time.Now(), nil); !errors.As(err, &lost) || lost.Reason != ErrLeaseLost {
		t.Errorf("it may begin: %v", err)
	}
}

func TestEachReasonOfTheCatalogueHasARemedy(t *testing.T) {
	for number, name := range oncewardv1.ErrorReason_name {
		if reason := Reason(strings.TrimPrefix(name, reasonPrefix)); number != 0 && reason.Remedy() == "" {
			t.Errorf("%s has no remedy", reason)
		}
	}
}

func TestNewKeysIncrease(t *testing.T) {
	last := ""
	for range 10_000 {
		key := NewKey()
		if key <= last || len(key) != 36 || key[14] != '7' {
			t.Fatalf("%s comes after %s", key, last)
		}
		last = key
	}
}

func TestATextIsCutBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"ab": "ab", "aé€": "aé", "\xffabc": "\uFFFD"} {
		if got := truncateUTF8(text, 3); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}

func TestBesideTwoBatchesFewCallsWaitAndGather(t *testing.T) {
	gathered := &gatherer{inFlight: 2}
	for range minItemsBesideTwo - 1 {
		gathered.queue = append(gathered.queue, &call{bytes: 1})
		if gathered.beginsToFlush() {
			t.Fatalf("a third batch is sent for %d calls", len(gathered.queue))
		}
	}
	gathered.queue = append(gathered.queue, &call{bytes: 1})
	if !gathered.beginsToFlush() {
		t.Errorf("no third batch is sent for %d calls", len(gathered.queue))
	}
	if gathered = (&gatherer{inFlight: 1, queue: []*call{{bytes: 1}}}); !gathered.beginsToFlush() {
		t.Error("a lone call waits for another batch")
	}
}

func TestTheTextOfAnErrorDoesNotControlATerminal(t *testing.T) {
	failed := inProgress(ClaimRef{"charges", "order-1", 7}, &oncewardv1.InProgress{Attempt: 1, Owner: "\x1b[2Jhost\u009b\u202e\u2028\n\tend"})
	const want = "onceward: IN_PROGRESS: Attempt 1 at \ufffd[2Jhost\ufffd\ufffd\ufffd\n\tend is in progress. " +
		`(namespace charges, key "order-1", fencing token 7)`
	if text := failed.Error(); text != want {
		t.Errorf("it is %q", text)
	}
}

func TestNoCallFollowsToAnotherSchemeNorByASocket(t *testing.T) {
	for configured, address := range map[string]string{
		"https://a:1": "http://b:1", "http://a:1": "https://b:1", "unix:/a": "http://b:1", "unix:/b": "unix:/c",
	} {
		replicas, encrypted, _ := parseAddresses(configured)
		homes, err := newHomes(replicas, encrypted, Options{APIKey: "key"})
		if err != nil || homes.at(address) != nil {
			t.Errorf("calls follow from %s to %s, %v", configured, address, err)
		}
	}
}
