package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onceward/onceward/clients/go/internal/timing"
	"github.com/onceward/onceward/clients/go/onceward"
)

// arguments are those of all actions that call no service.
type arguments struct {
	JSON        *string           `json:"json"`
	Value       json.RawMessage   `json:"value"`
	Omit        []string          `json:"omit"`
	Parts       []json.RawMessage `json:"parts"`
	Namespace   string            `json:"namespace"`
	Key         string            `json:"key"`
	Label       string            `json:"label"`
	Header      string            `json:"header"`
	Failures    int               `json:"failures"`
	AtLeastMs   float64           `json:"atLeastMs"`
	SentAtMs    float64           `json:"sentAtMs"`
	RemainingMs float64           `json:"remainingMs"`
}

// performAction performs an action that calls no service. Returns its outcome.
func performAction(do string, line []byte) (any, error) {
	var given arguments
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	switch do {
	case "fingerprint":
		return fingerprint(given)
	case "joinKey":
		parts := make([]any, len(given.Parts))
		for i, part := range given.Parts {
			var err error
			if parts[i], err = readValue(part); err != nil {
				return nil, err
			}
		}
		key, err := onceward.JoinKey(parts...)
		return outcome("key", key, err), nil
	case "deriveKey":
		return outcome("key", onceward.DeriveKey(given.Namespace, given.Key, given.Label), nil), nil
	case "keyTime":
		if made, known := onceward.KeyTime(given.Key); known {
			return outcome("createdAt", made.Format(isoMillis), nil), nil
		}
		return outcome("createdAt", nil, nil), nil
	case "looksLikeTimestamp":
		return outcome("looksLikeTimestamp", timing.LooksLikeTimestamp(given.Key), nil), nil
	case "parseKeyHeader":
		if key, valid := onceward.ParseIdempotencyKey(restored(given.Header)); valid {
			return outcome("key", key, nil), nil
		}
		return outcome("key", nil, nil), nil
	case "formatKeyHeader":
		header, _ := onceward.FormatIdempotencyKey(given.Key)
		return outcome("header", header, nil), nil
	case "retryDelay":
		delay := timing.RetryDelay(given.Failures, duration(given.AtLeastMs))
		return outcome("delayMs", millis(delay), nil), nil
	case "leaseEnd":
		end := timing.LeaseEnd(duration(given.SentAtMs), duration(given.RemainingMs))
		return outcome("endsAtMs", millis(end), nil), nil
	default:
		return nil, fmt.Errorf("there is no action %q", do)
	}
}

func fingerprint(given arguments) (any, error) {
	var value any
	if given.JSON != nil {
		value = json.RawMessage(*given.JSON)
	} else {
		var err error
		if value, err = readValue(given.Value); err != nil {
			return nil, err
		}
	}
	digest, err := onceward.Fingerprint(plain(value), given.Omit...)
	return outcome("fingerprint", hex.EncodeToString(digest), err), nil
}

func outcome(name string, value any, err error) any {
	if err != nil {
		return reportError(err)
	}
	return report{name: value}
}

func duration(millis float64) time.Duration { return time.Duration(millis * float64(time.Millisecond)) }

func millis(duration time.Duration) float64 { return float64(duration) / float64(time.Millisecond) }
