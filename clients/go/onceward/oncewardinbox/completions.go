package oncewardinbox

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// CompleteIn runs the function and writes its value as the claim's completion, in the transaction that the caller began and will
// commit: the effect's rows and the completion commit together. Call it inside onceward.Run, which keeps the claim's lease alive:
//
//		order, err := onceward.Run(ctx, client, operation, func(ctx context.Context, claim *onceward.Claim) (Order, error) {
//			tx, err := db.BeginTx(ctx, nil)
//			if err != nil {
//				return Order{}, err
//			}
//			defer tx.Rollback()
//			order, err := oncewardinbox.CompleteIn(ctx, oncewardinbox.SQL(tx), claim,
//				func(ctx context.Context) (Order, error) { return insertOrder(ctx, tx, body) })
//			if err != nil {
//				return Order{}, err
//			}
//			return order, tx.Commit()
//		})
//
//	  - Return its value from the function passed to Run, which then completes the claim at the service. If the process crashes
//	    between the commit and that, the relay (RunRelay) completes it, so that a committed completion is never lost.
//	  - The row's unique constraint holds even if the lease is lost. If an earlier attempt has committed and the service does not
//	    know yet, CompleteIn returns that attempt's value instead of running the function; so it does for a holder that stalled until
//	    another one had finished, and for a run that is not guarded. The rows are written once, also if leases end.
//	  - With the policy HOLD, AcceptAmbiguous is safe: the row says whether the effect happened.
//	  - An error of the function is returned unchanged, and its writes are undone, even if the transaction commits.
//	  - Put everything that must happen once inside the function, and commit afterwards.
//	  - The value is stored by the run's codec, and returned as a duplicate gets it.
//	  - All completions in one database must be of one tenant.
//
// Fails with onceward.ErrResultNotJSON, onceward.ErrCodecFailed, onceward.ErrResultTooLarge (over 1 MiB),
// onceward.ErrRecordContended within the function of another CompleteIn for the claim, and the driver's errors; outside a
// transaction, with Postgres' 25P01. Then nothing of the function remains.
func CompleteIn[T any](
	ctx context.Context, tx Executor, claim *onceward.Claim, fn func(ctx context.Context) (T, error),
) (T, error) {
	var value, none T
	err := inSavepoint(ctx, tx, func() error {
		result, err := enter(ctx, tx, claim)
		if err == nil && result == nil {
			result, err = write(ctx, tx, claim, fn)
		}
		if err != nil {
			return err
		}
		return claim.DecodeResult(result, &value)
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// enter inserts the completion's row. Returns an earlier completion that is valid; nil if the caller must write it.
func enter(ctx context.Context, tx Executor, claim *onceward.Claim) (*oncewardv1.Result, error) {
	for range entryAttempts {
		var stored []byte
		// A newer token takes the row over. If the completion was delivered, the service has forgotten it since (else it would have
		// replayed it), and this is a new operation. If not, it stays valid, and is delivered with the newer token.
		entered, err := queryRow(ctx, tx,
			`insert into onceward_completions as c (namespace, key, fencing_token)
			 values ($1::text, $2::text, $3::bigint)
			 on conflict (namespace, key) do update set
			   fencing_token = excluded.fencing_token,
			   result = case when c.delivered_at is null then c.result end,
			   written_at = now(),
			   attempts = 0,
			   next_attempt_at = now(),
			   delivered_at = null,
			   undeliverable = null
			 where c.fencing_token < excluded.fencing_token
			 returning result`,
			[]any{claim.Namespace, claim.Key, claim.FencingToken}, &stored)
		if err != nil {
			return nil, err
		}
		if entered {
			if stored == nil {
				return nil, nil
			}
			return parse(stored)
		}
		// Written with this token, by a commit whose reply was lost, or with a newer token.
		_, err = queryRow(ctx, tx,
			"select result from onceward_completions where namespace = $1::text and key = $2::text",
			[]any{claim.Namespace, claim.Key}, &stored)
		if err != nil {
			return nil, err
		}
		if stored != nil {
			return parse(stored)
		}
		// The row was swept between the two statements.
	}
	return nil, notEntered()
}

func write[T any](
	ctx context.Context, tx Executor, claim *onceward.Claim, fn func(ctx context.Context) (T, error),
) (*oncewardv1.Result, error) {
	value, err := fn(ctx)
	if err != nil {
		return nil, err
	}
	result, err := claim.EncodeResult(value)
	if err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(result)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx,
		"update onceward_completions set result = $3::bytea where namespace = $1::text and key = $2::text",
		claim.Namespace, claim.Key, encoded)
	return result, err
}

func parse(stored []byte) (*oncewardv1.Result, error) {
	result := &oncewardv1.Result{}
	if err := proto.Unmarshal(stored, result); err != nil {
		return nil, &onceward.Error{
			Reason: onceward.ErrInternal, Message: "The completion's row can't be read: " + err.Error(),
		}
	}
	return result, nil
}
