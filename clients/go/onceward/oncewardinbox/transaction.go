package oncewardinbox

import (
	"context"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Executor runs statements in a transaction, or in a database, where each commits separately: SQL and PGX return one.
type Executor interface {
	// Exec runs a statement. Returns how many rows it changed.
	Exec(ctx context.Context, statement string, args ...any) (int64, error)
	// Query calls read for each row of a query; scan reads the row into its destinations. Ends with the first error of read.
	Query(ctx context.Context, query string, args []any, read func(scan func(destinations ...any) error) error) error
}

// A row that disappears between two statements was swept in between, which hardly happens even once.
const entryAttempts = 3

// queryRow reads the one row of a query into its destinations. Returns false if there is none.
func queryRow(ctx context.Context, tx Executor, query string, args []any, destinations ...any) (found bool, err error) {
	err = tx.Query(ctx, query, args, func(scan func(destinations ...any) error) error {
		found = true
		return scan(destinations...)
	})
	return found, err
}

// inSavepoint has the function take effect as a whole, or not at all: if it fails or panics, nothing of it remains, even if the
// caller then commits the rest.
//
// Postgres refuses it outside a transaction, before anything has happened: statements that commit one by one would guarantee
// nothing.
func inSavepoint(ctx context.Context, tx Executor, fn func() error) error {
	if _, err := tx.Exec(ctx, "savepoint onceward"); err != nil {
		return err
	}
	succeeded := false
	defer func() {
		if !succeeded {
			undo(ctx, tx)
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	succeeded = true
	_, err := tx.Exec(ctx, "release savepoint onceward")
	return err
}

// undo undoes the part of the transaction since its savepoint. If this fails, the connection is gone or the transaction can't
// commit: nothing of it remains, and the caller must see the function's error.
func undo(ctx context.Context, tx Executor) {
	ctx = context.WithoutCancel(ctx)
	if _, err := tx.Exec(ctx, "rollback to savepoint onceward"); err == nil {
		_, _ = tx.Exec(ctx, "release savepoint onceward")
	}
}

// notEntered returns the error of a key whose row exists for the unique constraint, but can't be read.
func notEntered() error {
	return &onceward.Error{
		Reason:  onceward.ErrRecordContended,
		Message: "The key's row can't be read: row-level security hides it, or this very transaction is still writing it.",
	}
}
