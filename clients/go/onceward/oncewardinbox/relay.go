package oncewardinbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

const (
	// Few enough that the service answers all of them before another relay takes the same rows.
	batchRows = 100
	// Normally Run itself completes the claim; the relay delivers the rest, which can wait this long.
	defaultPoll = time.Second
	// A shorter interval would itself be a load on the database.
	minPoll = 10 * time.Millisecond
	maxPoll = time.Hour
)

// UndeliverableCompletion is a completion that the service will never accept. Its row stays, with the reason:
//
//   - onceward.ErrClaimSuperseded, onceward.ErrAlreadyReleased: the lease expired, or the run failed after its commit, before the
//     completion was delivered. The next attempt that reaches CompleteIn takes the value over, and delivers it.
//   - onceward.ErrAlreadyCompleted: the function passed to Run returned another value than CompleteIn.
//   - onceward.ErrRecordNotFound: the key was forgotten before.
//   - onceward.ErrInvalidRequest: the run was not guarded (onceward.ProceedUnavailable), so that there is no claim to complete; the
//     next attempt takes the value over, too. Or the row was changed.
type UndeliverableCompletion struct {
	Claim  onceward.ClaimRef
	Reason onceward.Reason
}

// Delivery is the outcome of one pass over the completions that are due.
type Delivery struct {
	// How many the service has accepted.
	Delivered int
	// Those that it will never accept; each is returned once, and from then on its row has the reason.
	Undeliverable []UndeliverableCompletion
	// The temporary errors of the others, which will be retried.
	Failed []error
}

// DeliverCompletions delivers up to 100 due completions: one pass of a relay. A scheduled job may call it instead of RunRelay.
//
// A row that a pass takes is due again after 10 s, then after growing delays of up to a minute. So concurrent passes share the
// rows, and a pass that dies leaves nothing to clean up. A completion that is delivered twice counts once at the service.
// Completions of clients in other languages are delivered, too.
//
// The executor is that of a database, as SQL(db) and PGX(pool) are: each statement commits separately. Fails with the driver's
// errors; those of the service are in Delivery.
func DeliverCompletions(ctx context.Context, client *onceward.Client, database Executor) (Delivery, error) {
	taken, err := takeDue(ctx, database)
	if err != nil {
		return Delivery{}, err
	}
	errs := make([]error, len(taken))
	var sent sync.WaitGroup
	for i, each := range taken {
		sent.Go(func() { errs[i] = each.deliver(ctx, client) })
	}
	sent.Wait()
	delivery := Delivery{}
	var settled []outcome
	for i, each := range taken {
		reason, isFinal := undeliverable(errs[i])
		switch {
		case errs[i] == nil:
			delivery.Delivered++
			settled = append(settled, each.outcome(nil))
		case isFinal:
			delivery.Undeliverable = append(delivery.Undeliverable, UndeliverableCompletion{each.claim, reason})
			settled = append(settled, each.outcome(&reason))
		default:
			delivery.Failed = append(delivery.Failed, errs[i])
		}
	}
	if len(settled) > 0 {
		if err := markDelivered(ctx, database, settled); err != nil {
			return Delivery{}, err
		}
	}
	return delivery, nil
}

type completion struct {
	claim onceward.ClaimRef
	// An onceward.v1.Result. Each is parsed separately, so that a corrupted row fails alone.
	result []byte
}

func takeDue(ctx context.Context, database Executor) ([]completion, error) {
	var taken []completion
	err := database.Query(ctx,
		`with due as materialized (
		   select namespace, key
		     from onceward_completions
		    where delivered_at is null and undeliverable is null and next_attempt_at <= now()
		    order by next_attempt_at
		    limit $1::int
		      for update skip locked
		 )
		 update onceward_completions c set
		   attempts = c.attempts + 1,
		   next_attempt_at = now() + least(60, 10 * 2 ^ least(c.attempts, 10)) * interval '1 second'
		 from due
		 where c.namespace = due.namespace and c.key = due.key
		 returning c.namespace, c.key, c.fencing_token, c.result`,
		[]any{batchRows},
		func(scan func(destinations ...any) error) error {
			var row completion
			err := scan(&row.claim.Namespace, &row.claim.Key, &row.claim.FencingToken, &row.result)
			taken = append(taken, row)
			return err
		})
	return taken, err
}

func (c completion) deliver(ctx context.Context, client *onceward.Client) error {
	result, err := parse(c.result)
	if err != nil {
		return err
	}
	return client.CompleteClaim(ctx, c.claim, result)
}

// undeliverable returns why the service will never accept a completion; false for none, and for a temporary error.
func undeliverable(err error) (onceward.Reason, bool) {
	var failed *onceward.Error
	if !errors.As(err, &failed) {
		return "", false
	}
	reason := failed.Reason
	if reason != onceward.ErrInvalidRequest && !reason.Facts().GetClaimIsOver() {
		return "", false
	}
	return reason, true
}

// outcome is what the row of a completion gets; without a reason it was delivered.
type outcome struct {
	Namespace string           `json:"namespace"`
	Key       string           `json:"key"`
	Token     int64            `json:"token"`
	Reason    *onceward.Reason `json:"reason"`
}

func (c completion) outcome(reason *onceward.Reason) outcome {
	return outcome{c.claim.Namespace, c.claim.Key, c.claim.FencingToken, reason}
}

func markDelivered(ctx context.Context, database Executor, settled []outcome) error {
	text, err := json.Marshal(settled)
	if err != nil {
		return err
	}
	// Only rows that are unchanged: an attempt with a newer token may have taken a row over in the meantime.
	_, err = database.Exec(ctx,
		`update onceward_completions c set
		   delivered_at = case when o.reason is null then now() end,
		   undeliverable = o.reason
		 from json_to_recordset($1::text::json) as o (namespace text, key text, token bigint, reason text)
		 where c.namespace = o.namespace and c.key = o.key and c.fencing_token = o.token`,
		string(text))
	return err
}

// RelayOptions are the options of a relay. The hooks must not panic.
type RelayOptions struct {
	// How long to wait after a pass that found nothing due, or failed, 10 ms to 1 h. Default: 1 s.
	Poll time.Duration
	// Called once for each completion that the service will never accept. Default: none.
	OnUndeliverable func(UndeliverableCompletion)
	// Called with a temporary error of the service or the database, once per pass; the delivery is retried. Default: none.
	OnError func(error)
}

// RunRelay delivers to the service the completions that CompleteIn has written and Run could not deliver, until the context ends;
// then it returns nil. Run it in a goroutine, and end its context before Client.Close:
//
//	go oncewardinbox.RunRelay(ctx, client, oncewardinbox.SQL(db), oncewardinbox.RelayOptions{OnError: logError})
//
// Any number of relays may run concurrently; the simplest is one in each process that uses CompleteIn. It continues after outages
// of the service or the database. The end of the context ends the pass in progress, too; its completions are due again after 10 s.
//
// Fails with onceward.ErrInvalidRequest for another Poll, at once.
func RunRelay(ctx context.Context, client *onceward.Client, database Executor, options RelayOptions) error {
	poll := options.Poll
	if poll == 0 {
		poll = defaultPoll
	}
	if poll < minPoll || poll > maxPoll {
		return invalid(onceward.Violation{Field: "Poll", Description: fmt.Sprintf("must be %s to %s", minPoll, maxPoll)})
	}
	for ctx.Err() == nil {
		if deliverSome(ctx, client, database, options) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
	return nil
}

// deliverSome makes one pass. Returns whether more completions may be due now.
func deliverSome(ctx context.Context, client *onceward.Client, database Executor, options RelayOptions) bool {
	delivery, err := DeliverCompletions(ctx, client, database)
	if options.OnUndeliverable != nil {
		for _, each := range delivery.Undeliverable {
			options.OnUndeliverable(each)
		}
	}
	if err == nil && len(delivery.Failed) > 0 {
		err = delivery.Failed[0]
	}
	// The end of the context is not a failure of the service or the database.
	if err != nil && ctx.Err() == nil && options.OnError != nil {
		options.OnError(err)
	}
	return err == nil && delivery.Delivered+len(delivery.Undeliverable) > 0
}
