// Package oncewardinbox handles a message once in the caller's own Postgres: the key's row and the rows of its effects commit
// together. Once needs no service of Onceward.
//
//	tx, err := db.BeginTx(ctx, nil)
//	result, err := oncewardinbox.Once(ctx, oncewardinbox.SQL(tx), oncewardinbox.Message{Consumer: "billing", Key: event.ID},
//		func(ctx context.Context) (int64, error) { return insertInvoice(ctx, tx, event) })
//	err = tx.Commit() // Acknowledge the message only now.
//
// CompleteIn writes the completion of a run in the caller's transaction, and RunRelay delivers it to the service, despite crashes.
//
// The tables are those of the TypeScript and Python clients, so that programs in all languages share them: run Migration first.
package oncewardinbox

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
)

// Migration creates the tables, version 1, in the caller's Postgres (15 or later): one statement, for any migration tool, which
// may be run again.
//
//go:embed inbox.sql
var Migration string

// Message identifies a message that is handled once.
type Message struct {
	// The name of the consumer, such as the consumer group: each consumer handles the same key once. 1-255 bytes.
	Consumer string
	// The operation's key, the same on every delivery: 1-255 bytes of UTF-8 without control characters.
	Key string
	// The request that the key stands for, as onceward.Fingerprint takes it; nil for none.
	Fingerprint any
	// After an error of the function, the transaction may commit the key's row without its writes, so that the message is not handled
	// again, and a repeat gets the zero value. Default: an error undoes the row, too.
	AtMostOnce bool
}

// Result is the outcome of a message.
type Result[T any] struct {
	// What the function returned, now or before, read from its JSON.
	Value T
	// Whether the message was handled before.
	Replayed bool
}

// Once runs the function unless this consumer has handled the key before, in the transaction that the caller began and will
// commit.
//
//   - While another transaction handles the key, this one waits for it to end, and then replays its value or runs the function.
//     (At the isolation levels above READ COMMITTED, Postgres fails the later one with 40001: repeat the transaction.)
//   - An error of the function is returned unchanged, and its writes are undone, even if the transaction commits.
//   - The value is JSON. Small values, such as an id, are better.
//   - Effects outside this database are repeated if the transaction is: pass them a derived key, or use onceward.Run.
//
// Fails with onceward.ErrInvalidRequest, onceward.ErrFingerprintMismatch, onceward.ErrResultNotJSON, and the driver's errors;
// outside a transaction, with Postgres' 25P01. Then nothing of the function remains.
func Once[T any](
	ctx context.Context, tx Executor, message Message, fn func(ctx context.Context) (T, error),
) (result Result[T], err error) {
	fingerprint, err := message.check()
	if err != nil {
		return Result[T]{}, err
	}
	run := func() error {
		result.Value, err = handle(ctx, tx, message, fn)
		return err
	}
	isNew := false
	err = inSavepoint(ctx, tx, func() error {
		if result, isNew, err = enterMessage[T](ctx, tx, message, fingerprint); isNew && !message.AtMostOnce {
			return run()
		}
		return err
	})
	if err == nil && isNew && message.AtMostOnce {
		err = inSavepoint(ctx, tx, run) // It does not undo the row.
	}
	if err != nil {
		return Result[T]{}, err
	}
	return result, nil
}

// enterMessage inserts the key's row. Returns what it has if the key was handled before; true if it is to be handled.
func enterMessage[T any](ctx context.Context, tx Executor, message Message, fingerprint []byte) (Result[T], bool, error) {
	for range entryAttempts {
		entered, err := tx.Exec(ctx,
			`insert into onceward_inbox (consumer, key, fingerprint)
			 values ($1::text, $2::text, $3::bytea)
			 on conflict (consumer, key) do nothing`,
			message.Consumer, message.Key, fingerprint)
		if err != nil || entered == 1 {
			return Result[T]{}, err == nil, err
		}
		var bound []byte
		var stored sql.NullString
		found, err := queryRow(ctx, tx,
			"select fingerprint, result from onceward_inbox where consumer = $1::text and key = $2::text",
			[]any{message.Consumer, message.Key}, &bound, &stored)
		switch {
		case err != nil:
			return Result[T]{}, false, err
		case !found:
			continue // The row was swept between the two statements.
		case bound != nil && fingerprint != nil && !bytes.Equal(bound, fingerprint):
			return Result[T]{}, false, &onceward.Error{
				Reason: onceward.ErrFingerprintMismatch, Message: "The key was handled before, for another request.",
			}
		}
		result := Result[T]{Replayed: true}
		if stored.Valid {
			err = decode(stored.String, &result.Value)
		}
		return result, false, err
	}
	return Result[T]{}, false, notEntered()
}

func handle[T any](ctx context.Context, tx Executor, message Message, fn func(ctx context.Context) (T, error)) (T, error) {
	var stored T
	value, err := fn(ctx)
	if err != nil {
		return stored, err
	}
	encoded, err := onceward.JSONCodec{}.Encode(value)
	if err != nil {
		return stored, err
	}
	if err := decode(string(encoded.Payload), &stored); err != nil {
		return stored, err
	}
	_, err = tx.Exec(ctx, "update onceward_inbox set result = $3::text where consumer = $1::text and key = $2::text",
		message.Consumer, message.Key, string(encoded.Payload))
	return stored, err
}

func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return &onceward.Error{Reason: onceward.ErrResultNotJSON, Message: "The stored value can't be read: " + err.Error()}
	}
	return nil
}

// check returns the message's fingerprint; nil for none.
func (m Message) check() ([]byte, error) {
	var violations []onceward.Violation
	for _, field := range []struct{ name, value string }{{"Consumer", m.Consumer}, {"Key", m.Key}} {
		if size := len(field.value); size < 1 || size > limits.MaxKeyBytes {
			description := fmt.Sprintf("must be 1-%d bytes of UTF-8, is %d", limits.MaxKeyBytes, size)
			violations = append(violations, onceward.Violation{Field: field.name, Description: description})
		} else if !utf8.ValidString(field.value) || strings.ContainsFunc(field.value, unicode.IsControl) {
			description := "must be well-formed UTF-8 without control characters"
			violations = append(violations, onceward.Violation{Field: field.name, Description: description})
		}
	}
	if len(violations) > 0 {
		return nil, invalid(violations...)
	}
	if m.Fingerprint == nil {
		return nil, nil
	}
	return onceward.Fingerprint(m.Fingerprint)
}

func invalid(violations ...onceward.Violation) error {
	texts := make([]string, len(violations))
	for i, each := range violations {
		texts[i] = each.Field + " " + each.Description
	}
	return &onceward.Error{Reason: onceward.ErrInvalidRequest, Message: strings.Join(texts, "; "), Violations: violations}
}
