// Package inboxtest tests oncewardinbox against a Postgres, which INBOX_TEST_DATABASE names. It is a module of its own, because
// the client's does not depend on drivers.
package inboxtest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardinbox"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

// transaction is one of a driver.
type transaction struct {
	inbox  oncewardinbox.Executor
	commit func() error
}

// driver begins transactions, has an executor outside of them, and a service that completions are delivered to.
type driver struct {
	service  *oncewardtest.Service
	begin    func(t *testing.T) transaction
	database oncewardinbox.Executor
}

func drivers(t *testing.T) map[string]driver {
	t.Helper()
	address := os.Getenv("INBOX_TEST_DATABASE")
	if address == "" {
		t.Fatal("INBOX_TEST_DATABASE has no address of a Postgres")
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, statement := range []string{
		oncewardinbox.Migration, "create table if not exists effects (note text)",
		"truncate effects, onceward_inbox, onceward_completions",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]driver{
		"database/sql": {
			begin: func(t *testing.T) transaction {
				tx, err := db.BeginTx(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() }) // Of one that has ended, too.
				return transaction{oncewardinbox.SQL(tx), tx.Commit}
			},
			database: oncewardinbox.SQL(db),
		},
		"pgx": {
			begin: func(t *testing.T) transaction {
				tx, err := pool.Begin(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // Of one that has ended, too.
				return transaction{oncewardinbox.PGX(tx), func() error { return tx.Commit(context.Background()) }}
			},
			database: oncewardinbox.PGX(pool),
		},
	}
}

// queryRow reads the one row of a query.
func (d driver) queryRow(t *testing.T, query string, destinations ...any) {
	t.Helper()
	read := func(scan func(destinations ...any) error) error { return scan(destinations...) }
	if err := d.database.Query(t.Context(), query, nil, read); err != nil {
		t.Fatal(err)
	}
}

func (d driver) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := d.database.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func forEachDriver(t *testing.T, test func(t *testing.T, with driver)) {
	for name := range drivers(t) {
		t.Run(name, func(t *testing.T) {
			with := drivers(t)[name]
			with.service = oncewardtest.New(t, oncewardtest.Options{})
			test(t, with)
		})
	}
}

var message = oncewardinbox.Message{Consumer: "billing", Key: "order-1", Fingerprint: map[string]any{"cents": 100.0}}

// note returns a function that has an effect in the transaction.
func note(with transaction, text string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		_, err := with.inbox.Exec(ctx, "insert into effects values ($1)", text)
		return text, err
	}
}

func effects(t *testing.T, with driver) int {
	t.Helper()
	var count int
	with.queryRow(t, "select count(*) from effects", &count)
	return count
}

func TestASecondDeliveryGetsTheFirstValue(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		for _, replayed := range []bool{false, true} {
			tx := with.begin(t)
			result, err := oncewardinbox.Once(t.Context(), tx.inbox, message, note(tx, "first"))
			if err != nil || result.Value != "first" || result.Replayed != replayed {
				t.Errorf("a delivery got %v, %v", result, err)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
		other := message
		other.Fingerprint = map[string]any{"cents": 200.0}
		tx := with.begin(t)
		if _, err := oncewardinbox.Once(t.Context(), tx.inbox, other, note(tx, "other")); !errors.Is(err, onceward.ErrFingerprintMismatch) {
			t.Errorf("another request got %v", err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		if count := effects(t, with); count != 1 {
			t.Errorf("%d effects", count)
		}
	})
}

func TestAnErrorUndoesTheWritesAlthoughTheTransactionCommits(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		for _, each := range []struct {
			message oncewardinbox.Message
			next    oncewardinbox.Result[string]
		}{
			{message, oncewardinbox.Result[string]{Value: "next"}},
			{oncewardinbox.Message{Consumer: "mails", Key: "order-1", AtMostOnce: true}, oncewardinbox.Result[string]{Replayed: true}},
		} {
			failed := errors.New("declined")
			tx := with.begin(t)
			_, err := oncewardinbox.Once(t.Context(), tx.inbox, each.message, func(ctx context.Context) (string, error) {
				if _, err := note(tx, "lost")(ctx); err != nil {
					return "", err
				}
				return "", failed
			})
			if err != failed {
				t.Errorf("it got %v", err)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
			if count := effects(t, with); count != 0 {
				t.Errorf("%d effects", count)
			}
			tx = with.begin(t)
			if result, err := oncewardinbox.Once(t.Context(), tx.inbox, each.message, note(tx, "next")); err != nil || result != each.next {
				t.Errorf("the next delivery got %v, %v", result, err)
			}
			each.message.Key = "order-2"
			for _, replayed := range []bool{false, true} {
				result, err := oncewardinbox.Once(t.Context(), tx.inbox, each.message, note(tx, "second"))
				if err != nil || result.Value != "second" || result.Replayed != replayed {
					t.Errorf("a delivery of another message got %v, %v", result, err)
				}
			}
		}
	})
}

func TestTwoTransactionsAtOnceRunOne(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		first, second := with.begin(t), with.begin(t)
		if _, err := oncewardinbox.Once(t.Context(), first.inbox, message, note(first, "first")); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error)
		go func() {
			result, err := oncewardinbox.Once(context.Background(), second.inbox, message, note(second, "second"))
			if err == nil && result.Value != "first" {
				err = errors.New("the second got " + result.Value)
			}
			waiting <- err
		}()
		if err := first.commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

func TestOutsideATransactionNothingRuns(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		_, err := oncewardinbox.Once(t.Context(), with.database, message, func(context.Context) (string, error) {
			t.Error("the function ran")
			return "", nil
		})
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "25P01" {
			t.Errorf("it got %v", err)
		}
	})
}

func TestASweepDeletesOldRowsInBatches(t *testing.T) {
	forEachDriver(t, func(t *testing.T, with driver) {
		aged := "insert into onceward_inbox (consumer, key, received_at) " +
			"select 'billing', n::text, now() - interval '2 days' from generate_series(1, 3) n"
		with.exec(t, aged)
		with.exec(t, "insert into onceward_completions (namespace, key, fencing_token, delivered_at) values "+
			"('orders', 'old', 1, now() - interval '2 days'), ('orders', 'new', 1, now()), ('orders', 'due', 1, null)")
		for _, want := range []oncewardinbox.Swept{{Inbox: 2, Completions: 1}, {Inbox: 1}, {}} {
			if swept, err := oncewardinbox.Sweep(t.Context(), with.database, 24*time.Hour, 2); err != nil || swept != want {
				t.Errorf("a sweep deleted %v, %v", swept, err)
			}
		}
		var kept int
		if with.queryRow(t, "select count(*) from onceward_completions", &kept); kept != 2 {
			t.Errorf("%d completions are kept", kept)
		}
	})
}

func TestMessagesWithoutANameAreRefused(t *testing.T) {
	nothing := func(context.Context) (string, error) { return "", nil }
	for _, each := range []oncewardinbox.Message{{}, {Consumer: "a"}, {Consumer: "a", Key: "\n"}} {
		if _, err := oncewardinbox.Once(t.Context(), nil, each, nothing); !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("%v got %v", each, err)
		}
	}
}
