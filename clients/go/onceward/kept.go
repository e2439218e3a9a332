package onceward

import (
	"context"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// EncodeResult returns a value as the claim's run stores it: a success, by the run's codec. It is for a program that keeps the
// completion in a store of its own before Client.CompleteClaim sends it; oncewardinbox.CompleteIn does so in Postgres.
//
// Fails with ErrResultNotJSON, ErrCodecFailed, and ErrResultTooLarge for a value of more than 1 MiB.
func (c *Claim) EncodeResult(value any) (*oncewardv1.Result, error) {
	result, err := encodeEffect(Effect{Value: value}, c.storedBy())
	if err != nil {
		return nil, codecError(err)
	}
	return result, nil
}

// DecodeResult reads a result of EncodeResult into a pointer, as a duplicate of the run gets its value. Fails with
// ErrResultNotJSON and ErrCodecFailed.
func (c *Claim) DecodeResult(result *oncewardv1.Result, into any) error {
	if err := decodeValue(result, c.storedBy(), into); err != nil {
		return codecError(err)
	}
	return nil
}

func (c *Claim) storedBy() Codec {
	if c.codec == nil {
		return JSONCodec{}
	}
	return c.codec
}

// CompleteClaim completes a claim at the service with a result of Claim.EncodeResult, in one attempt: a program that keeps the
// result repeats the call. The same result twice counts once. A result that the service refuses is stored as done without its
// value, as Run does, and the call succeeds.
//
// Fails with Error, or with the cause of the context's end.
func (c *Client) CompleteClaim(ctx context.Context, claim ClaimRef, result *oncewardv1.Result) error {
	err := c.completeOnce(ctx, claim, result)
	if failed, isOwn := err.(*Error); isOwn && (failed.Reason == ErrResultTooLarge || failed.Reason == ErrInvalidRequest) {
		var withoutValue *oncewardv1.Result
		if withoutValue, err = encodeWithoutValue(Effect{}, failed); err == nil {
			err = c.completeOnce(ctx, claim, withoutValue)
		}
	}
	if failed, isOwn := err.(*Error); isOwn {
		return failed.about(claim)
	}
	return err
}

func (c *Client) completeOnce(ctx context.Context, claim ClaimRef, result *oncewardv1.Result) error {
	_, err := c.calls.do(ctx, completeItem(&oncewardv1.CompleteRequest{
		Namespace: claim.Namespace, Key: claim.Key, FencingToken: claim.FencingToken, Result: result,
	}))
	return err
}
