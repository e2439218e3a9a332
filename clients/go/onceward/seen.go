package onceward

import (
	"context"
	"sync"
	"time"
)

// Seen returns whether the operation's key was completed before: false the first time, and true afterwards, for as long as the key
// is remembered. At most once: the key is completed in the same call, so that after a false, the caller alone has to act, and no one
// repeats what then fails. After an error it is unknown whether the key was completed: repeat with the same Operation.ClaimID, which
// gets the first answer again. There is no lease, and no value: AtMostOnce, StoresMark, Lease, Codec, Resolve, MarksBegin
// and what judges errors have no effect.
//
// Fails with the errors of Run from before the function.
func (c *Client) Seen(ctx context.Context, operation Operation) (bool, error) {
	operation.AtMostOnce, operation.Resolve = false, nil
	operation, refused := operation.withDefaults(&c.options)
	if refused != nil {
		return false, refused
	}
	if err := c.enter(ctx, &operation); err != nil {
		return false, err
	}
	defer c.ended()
	operation.AtMostOnce = true
	found, err := c.acquire(ctx, &operation, time.Now().Add(operation.Wait))
	if err != nil {
		return false, err
	}
	return found.done != nil, nil
}

// SeenAll does what Seen does for many keys of one namespace, in few batches. The answers are in the order of the keys; of equal keys,
// the later ones were seen. If one key's call fails, returns its error after all have ended. The operation's own Key has no effect.
func (c *Client) SeenAll(ctx context.Context, operation Operation, keys []string) ([]bool, error) {
	operation.AtMostOnce = false // Refused with Resolve and ClaimID, as of a run.
	for _, key := range keys {
		operation.Key = key
		if _, refused := operation.withDefaults(&c.options); refused != nil {
			return nil, refused
		}
	}
	answers, errs := make([]bool, len(keys)), make([]error, len(keys))
	first := make(map[string]bool, len(keys))
	var calls sync.WaitGroup
	for i, key := range keys {
		if first[key] {
			answers[i] = true
			continue
		}
		first[key] = true
		calls.Add(1)
		go func() {
			defer calls.Done()
			each := operation
			each.Key = key
			answers[i], errs[i] = c.Seen(ctx, each)
		}()
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}
