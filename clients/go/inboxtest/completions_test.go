package inboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardinbox"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

var order = onceward.Operation{Namespace: "orders", Key: "order-1", Wait: time.Minute}

func orderNamed(key string) onceward.Operation {
	named := order
	named.Key = key
	return named
}

// take writes the effect and the completion in one transaction.
func take(ctx context.Context, t *testing.T, with driver, claim *onceward.Claim, text string) (string, error) {
	tx := with.begin(t)
	value, err := oncewardinbox.CompleteIn(ctx, tx.inbox, claim, note(tx, text))
	if err != nil {
		return "", err
	}
	return value, tx.commit()
}

// taking returns the function of a run whose effect is a row.
func taking(t *testing.T, with driver, text string) func(context.Context, *onceward.Claim) (string, error) {
	return func(ctx context.Context, claim *onceward.Claim) (string, error) {
		return take(ctx, t, with, claim, text)
	}
}

func expectRun(
	t *testing.T, with driver, operation onceward.Operation,
	fn func(context.Context, *onceward.Claim) (string, error), want string,
) {
	t.Helper()
	if got, err := onceward.Run(t.Context(), with.service.Client, operation, fn); err != nil || got != want {
		t.Errorf("the run returned %q, %v, not %q", got, err, want)
	}
}

// crashAfterCommit commits a completion that does not reach the service, as if the process died. Returns its claim.
func crashAfterCommit(
	t *testing.T, with driver, operation onceward.Operation, text string,
) *onceward.Claim {
	t.Helper()
	with.service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	var held *onceward.Claim
	_, err := onceward.Run(t.Context(), with.service.Client, operation,
		func(ctx context.Context, claim *onceward.Claim) (string, error) {
			held = claim
			return take(ctx, t, with, claim, text)
		})
	var lost *onceward.CompletionError
	if !errors.As(err, &lost) {
		t.Fatal(err)
	}
	return held
}

// counts are the numbers of a Delivery.
type counts struct{ delivered, undeliverable, failed int }

func expectDelivery(t *testing.T, with driver, want counts) oncewardinbox.Delivery {
	t.Helper()
	delivery, err := oncewardinbox.DeliverCompletions(t.Context(), with.service.Client, with.database)
	got := counts{delivery.Delivered, len(delivery.Undeliverable), len(delivery.Failed)}
	if err != nil || got != want {
		t.Errorf("a pass had %+v (%v), %v, not %+v", got, delivery, err, want)
	}
	return delivery
}

func expectEffects(t *testing.T, with driver, want ...string) {
	t.Helper()
	var notes string
	with.queryRow(t, "select coalesce(string_agg(note, ',' order by note), '') from effects", &notes)
	if notes != strings.Join(want, ",") {
		t.Errorf("the effects are %s, not %v", notes, want)
	}
}

func never(t *testing.T) func(context.Context, *onceward.Claim) (string, error) {
	return func(context.Context, *onceward.Claim) (string, error) {
		t.Error("the function ran")
		return "", nil
	}
}

func TestARunAndItsDuplicateReturnTheWrittenValue(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		expectRun(t, with, order, taking(t, with, "first"), "first")
		expectRun(t, with, order, taking(t, with, "second"), "first")
		expectEffects(t, with, "first")
		// The relay's completion is the one that Run has stored.
		expectDelivery(t, with, counts{delivered: 1})
	})
}

func TestATransactionThatHasNotCommittedIsNotDelivered(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		expectRun(t, with, order, func(ctx context.Context, claim *onceward.Claim) (string, error) {
			tx := with.begin(t)
			value, err := oncewardinbox.CompleteIn(ctx, tx.inbox, claim, note(tx, "taken"))
			if err != nil {
				return "", err
			}
			expectDelivery(t, with, counts{})
			return value, tx.commit()
		}, "taken")
	})
}

func TestAnAttemptThatTakesOverACommittedEffectDeliversIt(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		first := crashAfterCommit(t, with, order, "before the crash")
		with.service.Advance(30 * time.Second)
		expectRun(t, with, order, func(ctx context.Context, claim *onceward.Claim) (string, error) {
			delivery := expectDelivery(t, with, counts{undeliverable: 1})
			refused := oncewardinbox.UndeliverableCompletion{
				Claim:  onceward.ClaimRef{Namespace: "orders", Key: "order-1", FencingToken: first.FencingToken},
				Reason: onceward.ErrClaimSuperseded,
			}
			if !slices.Contains(delivery.Undeliverable, refused) {
				t.Errorf("refused are %v", delivery.Undeliverable)
			}
			with.exec(t, "update onceward_completions set next_attempt_at = now()")
			expectDelivery(t, with, counts{})
			return take(ctx, t, with, claim, "after the crash")
		}, "before the crash")
		expectDelivery(t, with, counts{delivered: 1})
		expectEffects(t, with, "before the crash")
	})
}

func TestAStalledHolderWritesNothingAfterAnotherOneHasFinished(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		var stalled *onceward.Claim
		with.service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
		_, err := onceward.Run(t.Context(), with.service.Client, order,
			func(_ context.Context, claim *onceward.Claim) (string, error) {
				stalled = claim
				return "", nil
			})
		if err == nil {
			t.Fatal("the completion was not lost")
		}
		with.service.Advance(30 * time.Second)
		expectRun(t, with, order, taking(t, with, "by the second"), "by the second")
		expectDelivery(t, with, counts{delivered: 1})
		if value, err := take(t.Context(), t, with, stalled, "by the first"); err != nil || value != "by the second" {
			t.Errorf("the stalled holder got %q, %v", value, err)
		}
		expectEffects(t, with, "by the second")
	})
}

func TestAnEffectThatWasWrittenUnguardedIsTakenOverByTheFirstClaim(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		unguarded := &onceward.Claim{Namespace: order.Namespace, Key: order.Key}
		for range 2 {
			if value, err := take(t.Context(), t, with, unguarded, "unguarded"); err != nil || value != "unguarded" {
				t.Errorf("it got %q, %v", value, err)
			}
		}
		expectDelivery(t, with, counts{undeliverable: 1})
		expectRun(t, with, order, taking(t, with, "guarded"), "unguarded")
		expectDelivery(t, with, counts{delivered: 1})
		expectEffects(t, with, "unguarded")
	})
}

func TestConcurrentHoldersCommitOneEffect(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		// No more than the connections of a pool.
		values := make([]string, 4)
		var holders sync.WaitGroup
		for i := range values {
			tx := with.begin(t)
			holders.Go(func() {
				claim := &onceward.Claim{Namespace: order.Namespace, Key: order.Key, FencingToken: int64(i + 1)}
				value, err := oncewardinbox.CompleteIn(context.Background(), tx.inbox, claim, note(tx, fmt.Sprint("by ", i)))
				if err == nil {
					err = tx.commit()
				}
				if values[i] = value; err != nil {
					t.Error(err)
				}
			})
		}
		holders.Wait()
		expectEffects(t, with, values[0])
		if same := slices.Compact(slices.Clone(values)); len(same) != 1 {
			t.Errorf("the holders got %v", values)
		}
	})
}

func TestAnErrorAndAValueThatCannotBeStoredUndoTheWrites(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		failed := errors.New("no printer")
		for _, each := range []struct {
			value any
			err   error
			want  error
		}{
			{nil, failed, failed},
			{make(chan int), nil, onceward.ErrResultNotJSON},
			{strings.Repeat("x", 1_100_000), nil, onceward.ErrResultTooLarge},
		} {
			_, err := onceward.Run(t.Context(), with.service.Client, order,
				func(ctx context.Context, claim *onceward.Claim) (any, error) {
					tx := with.begin(t)
					value, err := oncewardinbox.CompleteIn(ctx, tx.inbox, claim, func(ctx context.Context) (any, error) {
						if _, err := note(tx, "undone")(ctx); err != nil {
							return nil, err
						}
						return each.value, each.err
					})
					// The caller commits all the same.
					return value, errors.Join(err, tx.commit())
				})
			if !errors.Is(err, each.want) {
				t.Errorf("it got %v, not %v", err, each.want)
			}
		}
		expectEffects(t, with)
		expectDelivery(t, with, counts{})
		expectRun(t, with, order, taking(t, with, "done"), "done")
	})
}

func TestNothingRunsWithinAnotherCompletionOrOutsideATransaction(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		claim := &onceward.Claim{Namespace: order.Namespace, Key: order.Key, FencingToken: 7}
		ran := func(context.Context) (string, error) {
			t.Error("the function ran")
			return "", nil
		}
		tx := with.begin(t)
		_, err := oncewardinbox.CompleteIn(t.Context(), tx.inbox, claim, func(ctx context.Context) (string, error) {
			return oncewardinbox.CompleteIn(ctx, tx.inbox, claim, ran)
		})
		if !errors.Is(err, onceward.ErrRecordContended) {
			t.Errorf("it got %v", err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		_, err = oncewardinbox.CompleteIn(t.Context(), with.database, claim, ran)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "25P01" {
			t.Errorf("it got %v", err)
		}
	})
}

func TestACodecsBytesAreDeliveredAndAValueOverThePolicysLimitIsNot(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		inBytes := orderNamed("order-in-bytes")
		inBytes.Codec = onceward.BytesCodec{}
		stored := []byte{0xff}
		with.service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
		_, err := onceward.Run(t.Context(), with.service.Client, inBytes,
			func(ctx context.Context, claim *onceward.Claim) ([]byte, error) {
				tx := with.begin(t)
				value, err := oncewardinbox.CompleteIn(ctx, tx.inbox, claim,
					func(context.Context) ([]byte, error) { return stored, nil })
				return value, errors.Join(err, tx.commit())
			})
		if !errors.As(err, new(*onceward.CompletionError)) {
			t.Fatal(err)
		}
		crashAfterCommit(t, with, orderNamed("too-large"), strings.Repeat("x", 70_000))
		expectDelivery(t, with, counts{delivered: 2})
		replayed, err := onceward.Run(t.Context(), with.service.Client, inBytes,
			func(context.Context, *onceward.Claim) ([]byte, error) { return nil, errors.New("it ran") })
		if err != nil || !bytes.Equal(replayed, stored) {
			t.Errorf("it got %v, %v", replayed, err)
		}
		if _, err := onceward.Run(t.Context(), with.service.Client, orderNamed("too-large"), never(t)); !errors.Is(err, onceward.ErrResultLost) {
			t.Errorf("it got %v", err)
		}
	})
}

func TestACorruptedRowDoesNotAffectTheOthersOfItsPass(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		crashAfterCommit(t, with, order, "taken")
		crashAfterCommit(t, with, orderNamed("order-2"), "lost")
		with.exec(t, `update onceward_completions set result = '\xff' where key = 'order-2'`)
		expectDelivery(t, with, counts{delivered: 1, failed: 1})
	})
}

func TestARowThatIsTakenOverDuringItsDeliveryIsDeliveredAgain(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		crashAfterCommit(t, with, order, "taken")
		// The pass reads its rows with Query, and marks them with Exec.
		takenOver := onExec{with.database, func() error {
			_, err := with.database.Exec(t.Context(), "update onceward_completions set fencing_token = fencing_token + 1")
			return err
		}}
		delivery, err := oncewardinbox.DeliverCompletions(t.Context(), with.service.Client, takenOver)
		if err != nil || delivery.Delivered != 1 {
			t.Errorf("the pass had %v, %v", delivery, err)
		}
		var open int
		with.queryRow(t, "select count(*) from onceward_completions where delivered_at is null and undeliverable is null", &open)
		if open != 1 {
			t.Error("the newer holder's row counts as delivered")
		}
	})
}

// onExec is an executor that does something before each Exec.
type onExec struct {
	oncewardinbox.Executor
	before func() error
}

func (e onExec) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	if err := e.before(); err != nil {
		return 0, err
	}
	return e.Executor.Exec(ctx, statement, args...)
}

func TestADeliveryThatFailsIsDueAgainAfterGrowingDelays(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		crashAfterCommit(t, with, order, "taken")
		for _, want := range []int{10, 20, 40, 60} {
			with.service.FailNext(oncewardtest.Complete, onceward.ErrDatabaseUnavailable)
			delivery := expectDelivery(t, with, counts{failed: 1})
			if len(delivery.Failed) == 1 && !errors.Is(delivery.Failed[0], onceward.ErrDatabaseUnavailable) {
				t.Errorf("it failed with %v", delivery.Failed)
			}
			var delay int
			with.queryRow(t, `select round(extract(epoch from next_attempt_at - now()), -1)::int from onceward_completions`, &delay)
			if delay != want {
				t.Errorf("the delay is %d s, not %d s", delay, want)
			}
			with.exec(t, "update onceward_completions set next_attempt_at = now()")
		}
		expectDelivery(t, with, counts{delivered: 1})
	})
}

func TestARelaySurvivesOutagesOfBothSidesAndEndsWithItsContext(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		crashAfterCommit(t, with, order, "taken")
		with.service.FailNext(oncewardtest.Complete, onceward.ErrDatabaseUnavailable)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		unreachable := errors.New("the database is unreachable")
		var seen []error // Of the relay's goroutine, until it has ended.
		failing := outage{with.database, func() error {
			if len(seen) < 2 {
				return unreachable
			}
			return nil
		}}
		ended := make(chan error)
		go func() {
			ended <- oncewardinbox.RunRelay(ctx, with.service.Client, failing, oncewardinbox.RelayOptions{
				Poll: 10 * time.Millisecond,
				OnError: func(err error) {
					seen = append(seen, err)
					if _, err := with.database.Exec(ctx, "update onceward_completions set next_attempt_at = now()"); err != nil {
						t.Error(err)
					}
				},
			})
		}()
		// Waits for the relay: the claim is held until then.
		expectRun(t, with, order, never(t), "taken")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if seen[0] != unreachable || !slices.ContainsFunc(seen, isUnavailable) {
			t.Errorf("the relay reported %v", seen)
		}
		crashAfterCommit(t, with, orderNamed("order-2"), "taken")
		// The ended relay may not have marked the completion that it had delivered.
		with.exec(t, "delete from onceward_completions where key = 'order-1'")
		expectDelivery(t, with, counts{delivered: 1})
	})
}

func isUnavailable(err error) bool { return errors.Is(err, onceward.ErrDatabaseUnavailable) }

// outage is an executor whose queries may fail.
type outage struct {
	oncewardinbox.Executor
	failure func() error
}

func (o outage) Query(
	ctx context.Context, query string, args []any, read func(scan func(destinations ...any) error) error,
) error {
	if err := o.failure(); err != nil {
		return err
	}
	return o.Executor.Query(ctx, query, args, read)
}

func TestARelayThatWouldPollTooOftenIsRefused(t *testing.T) {
	for _, poll := range []time.Duration{-1, 9 * time.Millisecond, time.Hour + 1} {
		err := oncewardinbox.RunRelay(t.Context(), nil, nil, oncewardinbox.RelayOptions{Poll: poll})
		if !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("%s got %v", poll, err)
		}
	}
}
