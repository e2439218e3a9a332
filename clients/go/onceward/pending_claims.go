package onceward

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/internal/timing"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// pendingClaims has the Claim calls of one run, which all have one claim id: whether the service may hold a claim for it.
type pendingClaims struct {
	held      bool
	abandoned []*call
}

// await waits for a call, and notes its answer.
func (s *pendingClaims) await(ctx context.Context, claim *call) (*oncewardv1.BatchResponseItem, error) {
	reply, err := claim.wait(ctx)
	select {
	case <-claim.done:
		s.answered(claim)
	default:
		s.abandoned = append(s.abandoned, claim)
	}
	return reply, err
}

func (s *pendingClaims) answered(claim *call) {
	switch {
	case claim.err == nil:
		// The answer is about all earlier calls, too: their claim id is the same.
		s.held = claim.reply.GetClaim().GetClaimed() != nil
	case claim.err.mayHaveHappened():
		// A definite refusal had no effect, and says nothing about earlier calls.
		s.held = true
	}
}

// mayBeHeld returns whether a call was granted, or may have been: its answer is lost, or not there yet.
func (s *pendingClaims) mayBeHeld() bool { return s.held || len(s.abandoned) > 0 }

// releaseUnusedClaim releases the claim of a run whose function will not begin. Otherwise it would block other callers until its
// lease expires, or make the record ambiguous although nothing ran. Retries until the lease is over; while the client closes,
// makes one more attempt.
func (a *acquisition) releaseUnusedClaim() {
	// Otherwise the last call might be granted after the release.
	for _, abandoned := range a.sent.abandoned {
		<-abandoned.done
		a.sent.answered(abandoned)
	}
	if !a.sent.held {
		return
	}
	giveUpAt := time.Now().Add(firstSet(a.operation.Lease, limits.DefaultLease))
	for failures := 0; ; failures++ {
		isLast := a.calls.closing.Err() != nil
		err := a.releaseOnce()
		if err == nil {
			return
		}
		failed := errorFromCall(err)
		delay := timing.RetryDelay(failures, failed.RetryDelay)
		if isLast || !failed.isToBeRepeated() || time.Now().Add(delay).After(giveUpAt) {
			return
		}
		// A client that closes ends the pause, and the next attempt is the last.
		_ = sleep(a.calls.closing, delay)
	}
}

func (a *acquisition) releaseOnce() error {
	ctx := context.Background()
	namespace, key := a.request.GetNamespace(), a.request.GetKey()
	reply, err := a.calls.do(ctx, lookupItem(&oncewardv1.LookupRequest{Namespace: namespace, Key: key}))
	if err != nil {
		return err
	}
	// Another Claim returns this run's own one. Without one it would be granted, and keep the next delivery away.
	record := reply.GetLookup().GetRecord()
	if record.GetState() != oncewardv1.Record_STATE_IN_PROGRESS || record.GetOwner() != a.request.GetOwner() {
		return nil
	}
	request := proto.CloneOf(a.request)
	request.AcceptAmbiguous = false
	if reply, err = a.calls.do(ctx, claimItem(request)); err != nil {
		return err
	}
	claimed := reply.GetClaim().GetClaimed()
	if claimed == nil {
		return nil
	}
	_, err = a.calls.do(ctx, releaseItem(&oncewardv1.ReleaseRequest{
		Namespace: namespace, Key: key, FencingToken: claimed.GetFencingToken(),
		Reason: "The caller left before the operation began.", GiveBack: true,
	}))
	return err
}

func attemptText(attempt int32, owner string) string {
	if owner == "" {
		owner = "an unnamed owner"
	}
	return strconv.Itoa(int(attempt)) + " at " + owner
}
