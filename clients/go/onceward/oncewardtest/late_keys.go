package oncewardtest

import (
	"fmt"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const (
	// How far the clock that stamped a key may be ahead.
	maxAhead = 5 * time.Minute
	// Longer than a key may be ahead, so that a record outlives the time in which its key is accepted.
	lateKeysMargin = 10 * time.Minute
)

// keyTime returns when a claim's key was made, if the policy asks; false if it does not, or the time is unknown.
func keyTime(request *oncewardv1.ClaimRequest, policy Policy) (time.Time, bool) {
	switch {
	case !policy.refusesLateKeys():
		return time.Time{}, false
	case request.GetKeyCreatedAt() != nil:
		return request.GetKeyCreatedAt().AsTime(), true
	default:
		return onceward.KeyTime(request.GetKey())
	}
}

func (v *violations) keyTime(request *oncewardv1.ClaimRequest, policy Policy, now time.Time) {
	made, known := keyTime(request, policy)
	switch {
	case !known && policy.LateKeys == RequireKeyTime:
		v.add("key_created_at", "is required by the namespace's policy, as the key contains no time")
	case known && made.After(now.Add(maxAhead)):
		field := "key"
		if request.GetKeyCreatedAt() != nil {
			field = "key_created_at"
		}
		v.add(field, fmt.Sprintf("must not be created more than %s after the server's time", maxAhead))
	}
}

// checkAge refuses a key that has no record and is too old.
func checkAge(request *oncewardv1.ClaimRequest, policy Policy, now time.Time) error {
	made, known := keyTime(request, policy)
	until := made.Add(policy.KeyRetention)
	if !known || now.Before(until) {
		return nil
	}
	const isoMillis = "2006-01-02T15:04:05.000Z"
	metadata := map[string]string{
		"key_created_at": made.UTC().Format(isoMillis), "accepted_until": until.UTC().Format(isoMillis),
	}
	return refuseWith(onceward.ErrKeyTooOld,
		"The key is older than its retention and has no record: its operation may have happened and been forgotten. "+
			"Find out whether it happened; if it did not, repeat it under a new key.", metadata)
}

// stamped returns the retentions of a claim: where late keys are refused, its record is kept for longer than its policy says, and
// so are results that are kept for as long as their key.
func (p Policy) stamped() Policy {
	kept := p.KeyRetention
	if p.refusesLateKeys() {
		p.KeyRetention += lateKeysMargin
	}
	for _, each := range []*time.Duration{&p.ResultRetention, &p.FailureRetention} {
		if *each >= kept {
			*each = p.KeyRetention
		}
	}
	return p
}
