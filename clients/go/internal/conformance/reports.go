package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/onceward/onceward/clients/go/onceward"
)

// The errors of the catalogue that a program can ask for, by the name of the class in other languages.
var classes = map[string]error{
	"ClaimSupersededError":     onceward.ErrClaimSuperseded,
	"CredentialInvalidError":   onceward.ErrCredentialInvalid,
	"FingerprintMismatchError": onceward.ErrFingerprintMismatch,
	"InvalidRequestError":      onceward.ErrInvalidRequest,
	"KeyTooOldError":           onceward.ErrKeyTooOld,
	"NamespaceDeniedError":     onceward.ErrNamespaceDenied,
	"RoleDeniedError":          onceward.ErrRoleDenied,
	"TenantSuspendedError":     onceward.ErrTenantSuspended,
}

// As JavaScript writes times in ISO 8601.
const isoMillis = "2006-01-02T15:04:05.000Z"

type report = map[string]any

// reportResult returns what a run that returned is in an outcome.
func reportResult(result onceward.Result[any]) report {
	written := report{"value": writeValue(result.Value), "replayed": result.Replayed, "guarded": result.Guarded}
	if result.Guarded {
		written["expiresAt"] = result.ExpiresAt.UTC().Format(isoMillis)
	}
	if !result.Replayed {
		written["attempt"], written["fencingToken"] = result.Attempt, tokenText(result.FencingToken)
	}
	return written
}

// reportError returns what an error is in an outcome.
func reportError(err error) report {
	var failed *onceward.Error
	var terminal *onceward.TerminalError
	switch err := err.(type) {
	case *onceward.OutcomeUnknownError:
		return report{"unknown": err.Error()}
	case *onceward.NoEffectError:
		return report{"noEffect": err.Error()}
	case timedOut:
		return report{"timeout": err.Error()}
	case *caused:
		return report{"thrown": err.Error()}
	}
	switch {
	case errors.As(err, &terminal) && !errors.As(err, &failed):
		name := terminal.Name
		if name == "" {
			name = "TerminalError"
		}
		return report{"terminal": report{"name": name, "message": terminal.Message, "details": writeValue(terminal.Details)}}
	case errors.As(err, &failed):
		written := describeError(failed)
		describeKind(written, err)
		return report{"error": written}
	case errors.Is(err, context.Canceled):
		return report{"cancelled": true}
	default:
		return report{"thrown": err.Error()}
	}
}

func describeError(failed *onceward.Error) report {
	fields, violations := []string{}, []report{}
	for _, each := range failed.Violations {
		fields = append(fields, camelCase(each.Field))
		violations = append(violations, report{"field": each.Field, "description": each.Description})
	}
	written := report{
		"class": "OncewardError", "reason": failed.Reason, "metadata": failed.Metadata,
		"fields": fields, "violations": violations,
	}
	for name, class := range classes {
		if errors.Is(failed, class) {
			written["class"] = name
		}
	}
	if remedy := failed.Remedy(); remedy != "" {
		written["remedy"] = remedy
	}
	if failed.Code != codes.OK {
		written["code"] = failed.Code
	}
	if failed.RetryDelay != 0 {
		written["retryDelayMs"] = millis(failed.RetryDelay)
	}
	if failed.RequestID != "" {
		written["requestId"] = failed.RequestID
	}
	if claim := failed.Claim; claim != nil {
		named := report{"namespace": claim.Namespace, "key": claim.Key}
		if claim.FencingToken != 0 {
			named["fencingToken"] = tokenText(claim.FencingToken)
		}
		written["claim"] = named
	}
	return written
}

func describeKind(written report, err error) {
	switch err := err.(type) {
	case *onceward.InProgressError:
		written["class"], written["owner"], written["attempt"] = "InProgressError", err.Owner, err.Attempt
	case *onceward.AmbiguousError:
		written["class"], written["owner"], written["attempt"] = "AmbiguousError", err.Owner, err.Attempt
		if err.Checkpoint != nil {
			written["checkpoint"] = reportCheckpoint(err.Checkpoint)
		}
	case *onceward.ResultUnavailableError:
		written["class"] = "ResultUnavailableError"
	case *onceward.CompletionError:
		written["class"], written["stored"] = "CompletionError", err.Stored
		if err.Effect.Err == nil {
			written["effect"] = report{"value": writeValue(err.Effect.Value)}
		} else {
			written["effect"] = reportError(err.Effect.Err)
		}
	}
}

func reportCheckpoint(checkpoint *onceward.Checkpoint) report {
	return report{"name": checkpoint.Name, "state": writeState(checkpoint.State)}
}

func tokenText(token int64) string { return strconv.FormatInt(token, 10) }

// camelCase returns the name of an option in cases, such as keyCreatedAt: Go's begins with a capital.
func camelCase(field string) string {
	field = strings.Replace(strings.TrimSuffix(field, "Ms"), "ID", "Id", 1)
	if timeFields[field] {
		field += "Ms"
	}
	return strings.ToLower(field[:1]) + field[1:]
}

// The options that are durations here, and milliseconds in cases.
var timeFields = map[string]bool{"Lease": true, "Wait": true, "Timeout": true}
