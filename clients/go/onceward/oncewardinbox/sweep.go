package oncewardinbox

import (
	"context"
	"fmt"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

const maxSweepLimit = 10_000

// Swept is how many rows a sweep deleted: handled messages, and completions that were delivered.
type Swept struct {
	Inbox, Completions int64
}

// Sweep deletes the oldest handled messages, and the oldest delivered completions, that are older than the given age, at most
// limit (1-10,000) of each. Call it again while either number is the limit. A delivery that comes later runs again, so choose an
// age longer than the longest retry or redrive of any queue, and longer than any holder of a claim may stall. Concurrent sweeps
// share the rows, and never wait for a handler in progress.
//
// Each statement commits separately if the executor is that of a database, as SQL(db) and PGX(pool) are. Fails with
// onceward.ErrInvalidRequest, and with the driver's errors.
func Sweep(ctx context.Context, database Executor, olderThan time.Duration, limit int) (Swept, error) {
	if olderThan <= 0 {
		return Swept{}, invalid(onceward.Violation{Field: "olderThan", Description: "must be more than 0"})
	}
	if limit < 1 || limit > maxSweepLimit {
		return Swept{}, invalid(onceward.Violation{Field: "limit", Description: fmt.Sprintf("must be 1-%d", maxSweepLimit)})
	}
	inbox, err := database.Exec(ctx,
		`with old as materialized (
		   select consumer, key
		     from onceward_inbox
		    where received_at < now() - $1::float8 * interval '1 second'
		    order by received_at
		    limit $2::int
		      for update skip locked
		 )
		 delete from onceward_inbox i using old
		  where i.consumer = old.consumer and i.key = old.key`,
		olderThan.Seconds(), limit)
	if err != nil {
		return Swept{}, err
	}
	completions, err := database.Exec(ctx,
		`with old as materialized (
		   select namespace, key
		     from onceward_completions
		    where delivered_at < now() - $1::float8 * interval '1 second'
		    order by delivered_at
		    limit $2::int
		      for update skip locked
		 )
		 delete from onceward_completions c using old
		  where c.namespace = old.namespace and c.key = old.key`,
		olderThan.Seconds(), limit)
	return Swept{Inbox: inbox, Completions: completions}, err
}
