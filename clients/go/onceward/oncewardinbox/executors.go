package oncewardinbox

import (
	"context"
	"database/sql"
)

// SQL returns the executor of a *sql.Tx; for Sweep, DeliverCompletions and RunRelay, that of a *sql.DB.
func SQL(tx interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) Executor {
	return executor{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			result, err := tx.ExecContext(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return result.RowsAffected()
		},
		query: func(ctx context.Context, query string, args []any, read readRow) error {
			rows, err := tx.QueryContext(ctx, query, args...)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }() // Its error is that of Err.
			return readRows(rows, read)
		},
	}
}

// PGX returns the executor of a pgx.Tx of github.com/jackc/pgx/v5; for Sweep, DeliverCompletions and RunRelay, that of a
// *pgxpool.Pool. Its type parameters follow from the transaction, so that this module does not depend on pgx.
func PGX[Tag interface{ RowsAffected() int64 }, Rows interface {
	rows
	Close()
}](tx interface {
	Exec(ctx context.Context, statement string, args ...any) (Tag, error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
}) Executor {
	return executor{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			tag, err := tx.Exec(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return tag.RowsAffected(), nil
		},
		query: func(ctx context.Context, query string, args []any, read readRow) error {
			rows, err := tx.Query(ctx, query, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			return readRows(rows, read)
		},
	}
}

type readRow = func(scan func(destinations ...any) error) error

// rows are those of a query in any driver.
type rows interface {
	Next() bool
	Scan(destinations ...any) error
	Err() error
}

func readRows(rows rows, read readRow) error {
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type executor struct {
	exec  func(ctx context.Context, statement string, args ...any) (int64, error)
	query func(ctx context.Context, query string, args []any, read readRow) error
}

func (e executor) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return e.exec(ctx, statement, args...)
}

func (e executor) Query(ctx context.Context, query string, args []any, read readRow) error {
	return e.query(ctx, query, args, read)
}
