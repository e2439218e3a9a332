package onceward

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Resolution is what Operation.Resolve found out about the effect of an earlier attempt: made by Happened, DidNotHappen, StillOpen
// or Unknown. The zero value is Unknown.
type Resolution struct {
	kind       resolutionKind
	value      any
	retryAfter time.Duration
}

type resolutionKind int

const (
	unknownOutcome resolutionKind = iota
	effectHappened
	noEffectHappened
	outcomeOpen
)

// Happened says that the effect happened: the value is stored and returned, as if the function had returned it, which does not run.
// A value that can't be encoded means the same as an error.
func Happened(value any) Resolution { return Resolution{kind: effectHappened, value: value} }

// Value returns the value of Happened; false for another resolution. It is for middleware, which stores another form.
func (r Resolution) Value() (any, bool) { return r.value, r.kind == effectHappened }

// DidNotHappen says that the effect did not happen, and will not: the function runs.
func DidNotHappen() Resolution { return Resolution{kind: noEffectHappened} }

// StillOpen says that it will be known later: the record stays as it is, and the run asks again after this time, at least 100 ms,
// if it may wait so long, or fails with an InProgressError with it. A negative time means the same as an error.
func StillOpen(retryAfter time.Duration) Resolution {
	return Resolution{kind: outcomeOpen, retryAfter: retryAfter}
}

// Each search claims the key and asks a provider.
const minRetryAfter = 100 * time.Millisecond

// Unknown says that it can't be found out: the record stays as it is, and the run fails with an AmbiguousError. An error means the
// same.
func Unknown() Resolution { return Resolution{} }

// unknownAttempt is an earlier attempt whose outcome had been unknown for so long at a time of the lease clock.
type unknownAttempt struct {
	last *oncewardv1.Ambiguous
	age  time.Duration
	at   time.Duration
}

// unknownAttemptOf returns the attempt that a claim took over and whose outcome is unknown; nil without one.
func (a *acquisition) unknownAttemptOf(response *oncewardv1.ClaimResponse) *unknownAttempt {
	claimed := response.GetClaimed()
	if claimed.GetUnknown() == nil {
		return nil
	}
	last := proto.CloneOf(claimed.GetUnknown())
	last.Checkpoint = claimed.GetCheckpoint()
	earlier := &unknownAttempt{last: last, at: leaseNow()}
	// With the caller's ClaimID, an earlier process may have begun another effect since.
	if a.operation.ClaimID == "" {
		earlier.age = max(0, response.GetServerTime().AsTime().Sub(last.GetLeaseExpiredAt().AsTime()))
	}
	return earlier
}

// SinceEffectMayHaveBegun returns, for Operation.Resolve, the time since the lease of the earlier attempt ended, by the service's
// clock: an effect that it had began before then. A provider whose search lags may not show it for some time after. With
// Operation.ClaimID, the time since this claim was granted. 0 if the outcome of no earlier attempt is unknown.
func (c *Claim) SinceEffectMayHaveBegun() time.Duration {
	if c.earlier == nil {
		return 0
	}
	return c.earlier.age + leaseNow() - c.earlier.at
}

// lookFirst asks Operation.Resolve, if the outcome of an earlier attempt is unknown, and gives the record back unless the outcome is
// known now. Returns a resolution of another kind than Unknown; that of DidNotHappen if there is nothing to ask. Then the begin of the
// function is marked, if the operation has Resolve.
func lookFirst(
	ctx context.Context, claim *Claim, operation *Operation, waitUntil time.Time, into any,
) (Resolution, error) {
	if operation.Resolve == nil {
		return DidNotHappen(), nil
	}
	if operation.AcceptAmbiguous || claim.earlier == nil {
		return DidNotHappen(), claim.beginOrGiveBack(ctx)
	}
	found, err := look(ctx, claim, operation, into)
	if err == nil && found.kind == effectHappened {
		return found, nil
	}
	ref, last := operation.ref(), claim.earlier.last
	switch {
	case ctx.Err() != nil:
		claim.giveBack("interrupted")
		return found, context.Cause(ctx)
	case err != nil:
		claim.giveBack(describe(err, operation))
		failed := ambiguous(ref, last)
		failed.Cause = err
		return found, failed
	case found.kind == noEffectHappened:
		return found, claim.beginOrGiveBack(ctx)
	case found.kind == outcomeOpen:
		claim.giveBack("still open")
		found.retryAfter = max(minRetryAfter, found.retryAfter)
		if time.Now().Add(found.retryAfter).After(waitUntil) {
			return found, stillOpen(ref, last, found.retryAfter)
		}
		return found, nil
	default:
		claim.giveBack("unknown")
		return found, ambiguous(ref, last)
	}
}

// beginOrGiveBack marks the begin of a function that may run; it gives the record back if that fails, or the context or the lease
// has ended.
func (c *Claim) beginOrGiveBack(ctx context.Context) error {
	err := cmp.Or(c.Begin(ctx), context.Cause(ctx))
	if err == nil && c.lease != nil && c.lease.isOver() {
		err = leaseLost(c.ref()) // Its timer has not fired yet.
	}
	if err != nil {
		c.giveBack("not begun")
	}
	return err
}

// look calls Operation.Resolve. A panic of it gives the record back. Fails also if the value of what happened can't be stored.
func look(ctx context.Context, claim *Claim, operation *Operation, into any) (Resolution, error) {
	value, err := claim.call(ctx, func(ctx context.Context, claim *Claim) (any, error) {
		found, err := operation.Resolve(ctx, claim)
		if err == nil && found.kind == effectHappened {
			_, err = encodeAndRead(Effect{Value: found.value}, operation.Codec, into)
		}
		if err == nil && found.retryAfter < 0 {
			err = invalidRequest(Violation{"RetryAfter", "must not be negative"})
		}
		return found, err
	}, func() { claim.giveBack("panic") })
	found, _ := value.(Resolution)
	return found, err
}

func stillOpen(claim ClaimRef, last *oncewardv1.Ambiguous, retryAfter time.Duration) *InProgressError {
	return inProgress(claim, &oncewardv1.InProgress{
		Owner: last.GetOwner(), Attempt: last.GetAttempt(), LeaseExpiresAt: last.GetLeaseExpiredAt(),
		RetryAfter: durationpb.New(retryAfter),
	})
}
