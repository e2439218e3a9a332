package oncewardinbox

import (
	"context"
	"database/sql"
)

// SQL returns the executor of a *sql.Tx; for Sweep, also of a *sql.DB.
func SQL(tx interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) Executor {
	return executor{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			result, err := tx.ExecContext(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return result.RowsAffected()
		},
		queryRow: func(ctx context.Context, query string, args []any, destinations ...any) error {
			return tx.QueryRowContext(ctx, query, args...).Scan(destinations...)
		},
	}
}

// PGX returns the executor of a pgx.Tx of github.com/jackc/pgx/v5; for Sweep, also of a *pgxpool.Pool. Its type parameters follow
// from the transaction, so that this module does not depend on pgx.
func PGX[Tag interface{ RowsAffected() int64 }, Row interface{ Scan(dest ...any) error }](tx interface {
	Exec(ctx context.Context, statement string, args ...any) (Tag, error)
	QueryRow(ctx context.Context, query string, args ...any) Row
}) Executor {
	return executor{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			tag, err := tx.Exec(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return tag.RowsAffected(), nil
		},
		queryRow: func(ctx context.Context, query string, args []any, destinations ...any) error {
			return tx.QueryRow(ctx, query, args...).Scan(destinations...)
		},
	}
}

type executor struct {
	exec     func(ctx context.Context, statement string, args ...any) (int64, error)
	queryRow func(ctx context.Context, query string, args []any, destinations ...any) error
}

func (e executor) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return e.exec(ctx, statement, args...)
}

func (e executor) QueryRow(ctx context.Context, query string, args []any, destinations ...any) error {
	return e.queryRow(ctx, query, args, destinations...)
}
