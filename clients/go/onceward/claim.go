package onceward

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Claim is the claim that a guarded function runs under.
type Claim struct {
	// False if the service was unreachable and Operation.OnUnavailable is ProceedUnavailable: no claim keeps others away.
	Guarded   bool
	Namespace string
	Key       string
	// Strictly increasing per key. Pass it to a downstream that refuses older holders. 0 if not guarded.
	FencingToken int64
	// 1 for the key's first claim. Above 1, an earlier effect may have happened. 0 if not guarded.
	Attempt int
	// The last checkpoint of an earlier attempt; nil if none was saved.
	Checkpoint *Checkpoint

	calls      *calls
	lease      *lease                       // nil if not guarded, and at most once.
	recorded   *oncewardv1.CompleteResponse // With Operation.AtMostOnce.
	timeout    time.Duration
	codec      Codec // The run's; nil of a claim that a program made: JSONCodec.
	earlier    *unknownAttempt
	unknown    atomic.Pointer[OutcomeUnknownError]
	continues  bool // With the id of an earlier process, which may have begun the effect under the same claim.
	marksBegin bool
	isMarked   atomic.Bool
	phase      atomic.Int32

	around    *Claim // That of the function which started the run; nil outside of one.
	isRunning atomic.Bool
}

// The phases of a claim.
const (
	mayHaveBegun int32 = iota
	// The mark of Begin can't be stored, and the claim took over no unknown outcome.
	notBegun
	// The claim ends without an effect.
	neverBegins
)

// DeriveKey returns an idempotency key for a downstream: opaque, 43 characters, the same on every attempt, different for every
// label. A downstream that honours such keys absorbs the repeat after a crash.
func (c *Claim) DeriveKey(label string) string { return DeriveKey(c.Namespace, c.Key, label) }

// OutcomeUnknown says that it is unknown whether the function had its effect: regardless of what it then returns, nothing is stored or
// released, and the claim is left to its lease and the namespace's policy. Returns an *OutcomeUnknownError with the cause, for the
// function to return; Run returns the first one in place of a value.
func (c *Claim) OutcomeUnknown(cause error) error {
	unknown := &OutcomeUnknownError{Cause: cause}
	c.unknown.CompareAndSwap(nil, unknown)
	return unknown
}

// MarkedUnknown returns what OutcomeUnknown returned first; nil if it was not called. It is for middleware, which answers in place
// of a function that did not return it.
func (c *Claim) MarkedUnknown() *OutcomeUnknownError { return c.unknown.Load() }

// Begin marks that the effect begins, with Operation.MarksBegin, and prolongs the lease: call it right before the effect. It does
// nothing without the option, if it has succeeded before, or if not guarded.
//
// Fails as SaveCheckpoint does; then the effect must not begin.
func (c *Claim) Begin(ctx context.Context) error {
	if !c.marksBegin || c.isMarked.Load() {
		return nil
	}
	isFirst := c.phase.CompareAndSwap(notBegun, mayHaveBegun)
	if c.phase.Load() == neverBegins {
		return leaseLost(c.ref()) // A function that was abandoned before it began may still run.
	}
	err := c.renew(ctx, &oncewardv1.ExtendLeaseRequest{Begin: true})
	if err == nil {
		c.isMarked.Store(true)
	} else if refused, isOwn := err.(*Error); isFirst && isOwn && !refused.mayHaveHappened() && !c.isMarked.Load() {
		c.phase.Store(notBegun) // A mark whose answer is lost may be stored.
	}
	return err
}

// SaveCheckpoint saves this attempt's progress for a later attempt that takes over, and prolongs the lease, which lasts when
// this returns. name has 1-128 bytes, such as "charged"; state is a JSON value of at most 16 KiB, or nil. The end of the context
// ends the wait for the service.
//
// Fails with ErrClaimSuperseded if another holder has taken over; return the error then.
func (c *Claim) SaveCheckpoint(ctx context.Context, name string, state any) error {
	checkpoint, err := writeCheckpoint(name, state)
	if err != nil || c.lease == nil {
		return err
	}
	return c.renew(ctx, &oncewardv1.ExtendLeaseRequest{Checkpoint: checkpoint})
}

// renew prolongs the lease, which lasts when this returns, and saves what the request has.
func (c *Claim) renew(ctx context.Context, saved *oncewardv1.ExtendLeaseRequest) error {
	// An answer that comes late shows nothing: another holder may have taken over in the meantime.
	for answers := 0; answers == 0 || c.lease.isOver(); answers++ {
		if answers > maxLateAnswers {
			return leaseLost(c.ref())
		}
		err := retryHeld(ctx, time.Now().Add(c.timeout), func() error {
			sentAt := leaseNow()
			reply, err := c.extendLease(ctx, saved, attemptTimeout)
			if err == nil {
				c.lease.granted(sentAt, reply)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// extendLease prolongs the lease, and saves what the request has. Its errors name this claim.
func (c *Claim) extendLease(
	ctx context.Context, request *oncewardv1.ExtendLeaseRequest, timeout time.Duration,
) (time.Duration, error) {
	request.Namespace, request.Key, request.FencingToken = c.Namespace, c.Key, c.FencingToken
	reply, err := c.calls.startWithin(extendLeaseItem(request), timeout).wait(ctx)
	if failed, isOwn := err.(*Error); isOwn {
		return 0, failed.about(c.ref())
	}
	return reply.GetExtendLease().GetLeaseRemaining().AsDuration(), err
}

func (c *Claim) heartbeat() (time.Duration, *Error) {
	remaining, err := c.extendLease(context.Background(), &oncewardv1.ExtendLeaseRequest{}, c.lease.heartbeatTimeout())
	if err != nil {
		return 0, errorFromCall(err)
	}
	return remaining, nil
}

// complete stores the outcome, unless the claim has completed the key. Returns nil if the claim is not guarded, and nothing is
// stored. Retries until the service answers, or until the lease has been over for as long as it lasted: by then another caller that
// wants the key has taken over.
func (c *Claim) complete(result *oncewardv1.Result) (*oncewardv1.CompleteResponse, *Error) {
	if c.lease == nil {
		return c.recorded, nil
	}
	c.phase.CompareAndSwap(notBegun, neverBegins)
	left, length := c.lease.left()
	request := &oncewardv1.CompleteRequest{
		Namespace: c.Namespace, Key: c.Key, FencingToken: c.FencingToken, Result: result,
	}
	var response *oncewardv1.CompleteResponse
	err := retryHeld(context.Background(), time.Now().Add(left+max(c.timeout, length)), func() error {
		reply, err := c.calls.do(context.Background(), completeItem(request))
		response = reply.GetComplete()
		return err
	})
	if err != nil {
		return nil, errorFromCall(err)
	}
	return response, nil
}

// release releases the claim, so that a retry runs at once. It never fails: the caller must see the function's error, and a
// claim that can't be released ends with its lease.
func (c *Claim) release(reason string) { c.end(reason, false) }

// giveBack gives the record back as it was before the claim. It never fails: a claim that can't be given back, or that an earlier
// process may have begun, ends with its lease, and the outcome is unknown again.
func (c *Claim) giveBack(reason string) {
	if !c.continues {
		c.end(reason, true)
	}
}

func (c *Claim) end(reason string, givesBack bool) {
	if c.lease == nil {
		return
	}
	text := truncateUTF8(strings.ReplaceAll(reason, "\x00", ""), limits.MaxReleaseReasonBytes)
	request := &oncewardv1.ReleaseRequest{
		Namespace: c.Namespace, Key: c.Key, FencingToken: c.FencingToken, Reason: text, GiveBack: givesBack,
	}
	_ = retryHeld(context.Background(), time.Now().Add(c.timeout), func() error {
		_, err := c.calls.do(context.Background(), releaseItem(request))
		return err
	})
}

func (c *Claim) ref() ClaimRef { return ClaimRef{c.Namespace, c.Key, c.FencingToken} }

// writeCheckpoint returns a checkpoint with its state as JSON; nil becomes no bytes.
func writeCheckpoint(name string, state any) (*oncewardv1.Checkpoint, error) {
	var text []byte
	if state != nil {
		var err error
		if text, err = encodeJSON(state); err != nil {
			return nil, err
		}
	}
	violations := textViolations("checkpoint.name", name, 1, limits.MaxCheckpointNameBytes)
	if len(text) > limits.MaxCheckpointStateBytes {
		description := fmt.Sprintf("must be at most %d bytes as JSON, is %d", limits.MaxCheckpointStateBytes, len(text))
		violations = append(violations, Violation{"checkpoint.state", description})
	}
	if len(violations) > 0 {
		return nil, invalidRequest(violations...)
	}
	return &oncewardv1.Checkpoint{Name: name, State: text}, nil
}

func readCheckpoint(saved *oncewardv1.Checkpoint) *Checkpoint {
	if saved == nil {
		return nil
	}
	return &Checkpoint{Name: saved.GetName(), State: saved.GetState()}
}

type claimKey struct{}

// ClaimFromContext returns the claim of the guarded function that this context belongs to; false outside of one, and once the
// function has ended. It is for code behind middleware, which does not pass the claim.
func ClaimFromContext(ctx context.Context) (*Claim, bool) {
	if claim := enclosing(ctx); claim != nil && claim.isRunning.Load() {
		return claim, true
	}
	return nil, false
}

// enclosing returns the claim of the function whose context this is, also once it has ended; nil outside of one.
func enclosing(ctx context.Context) *Claim {
	claim, _ := ctx.Value(claimKey{}).(*Claim)
	return claim
}
