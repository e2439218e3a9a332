// Package outgoing makes the keys of calls to other services.
package outgoing

import (
	"context"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Key returns the header Idempotency-Key of a call with this name; "" without a current claim.
func Key(ctx context.Context, name func() string) string {
	claim, found := onceward.ClaimFromContext(ctx)
	if !found {
		return ""
	}
	header, _ := onceward.FormatIdempotencyKey(claim.DeriveKey(name())) // Of a derived key, always valid.
	return header
}
