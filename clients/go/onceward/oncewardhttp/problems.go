package oncewardhttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Problem is a refusal of the guard, without a call of the handler (RFC 9457).
type Problem struct {
	Type   ProblemType
	Status int
	// The same for every problem of the type.
	Title string
	// What the client can do about it.
	Detail string
	// The header Retry-After, in whole seconds; 0 for none.
	RetryAfter time.Duration
}

// ProblemType is a URI that names a problem.
type ProblemType string

// The problems of the guard.
const (
	KeyMissing        ProblemType = "urn:onceward:problem:key-missing"
	KeyMalformed      ProblemType = "urn:onceward:problem:key-malformed"
	RequestUnreadable ProblemType = "urn:onceward:problem:request-unreadable"
	RequestTooLarge   ProblemType = "urn:onceward:problem:request-too-large"
	KeyReused         ProblemType = "urn:onceward:problem:key-reused"
	KeyWithoutTime    ProblemType = "urn:onceward:problem:key-without-time"
	KeyTooOld         ProblemType = "urn:onceward:problem:key-too-old"
	InProgress        ProblemType = "urn:onceward:problem:in-progress"
	Ambiguous         ProblemType = "urn:onceward:problem:ambiguous"
	ResultGone        ProblemType = "urn:onceward:problem:result-gone"
	Unavailable       ProblemType = "urn:onceward:problem:unavailable"
)

var problems = map[ProblemType]Problem{
	KeyMissing: {
		Status: http.StatusBadRequest,
		Title:  "This operation requires an Idempotency-Key.",
		Detail: "Send the header Idempotency-Key: new for each operation, the same for each of its attempts.",
	},
	KeyMalformed: {
		Status: http.StatusBadRequest,
		Title:  "The Idempotency-Key is malformed.",
		Detail: `The header Idempotency-Key is 1-255 characters, with or without quotes, such as "8e03978e-40d5".`,
	},
	RequestUnreadable: {
		Status: http.StatusBadRequest,
		Title:  "The request can't be identified.",
		Detail: "A part that identifies the request is missing, or is not well-formed Unicode.",
	},
	RequestTooLarge: {
		Status: http.StatusRequestEntityTooLarge,
		Title:  "The request is too large.",
		Detail: "Send a smaller body.",
	},
	KeyReused: {
		Status: http.StatusUnprocessableEntity,
		Title:  "The Idempotency-Key was used for another request.",
		Detail: "Send this request with a new key, or repeat the first request as it was.",
	},
	KeyWithoutTime: {
		Status: http.StatusBadRequest,
		Title:  "The Idempotency-Key must contain the time at which it was made.",
		Detail: "Send a UUID of version 7, or a ULID, made when the operation begins by a clock that is right.",
	},
	KeyTooOld: {
		Status: http.StatusGone,
		Title:  "Too old to retry: find out what happened.",
		Detail: "The request may have been carried out, and its record is gone. Read the resource, and use a new key only if it was not.",
	},
	InProgress: {
		Status: http.StatusConflict,
		Title:  "A request with this Idempotency-Key is in progress.",
		Detail: "Repeat the same request later.",
	},
	Ambiguous: {
		Status: http.StatusConflict,
		Title:  "It is not known whether an earlier request had its effect.",
		Detail: "The owner of this API must find out. A new key could repeat the effect.",
	},
	ResultGone: {
		Status: http.StatusGone,
		Title:  "The request was carried out; its response is gone.",
		Detail: "Read the resource instead. A new key would repeat the effect.",
	},
	Unavailable: {
		Status: http.StatusServiceUnavailable,
		Title:  "It is unknown whether the request was carried out.",
		Detail: "Nothing was carried out now. Repeat the same request later.",
	},
}

// problemFor returns the problem of a type. A delay is rounded up to whole seconds.
func problemFor(kind ProblemType, retryAfter time.Duration) Problem {
	problem := problems[kind]
	problem.Type = kind
	if kind == InProgress || kind == Unavailable {
		problem.RetryAfter = max(time.Second, (retryAfter + time.Second - 1).Truncate(time.Second))
	}
	return problem
}

// problemOf returns the problem for an error under which the handler was not called; nil for an error that does not concern the
// API's client (a bad credential, a bug) but its owner.
func problemOf(err error) *Problem {
	var failed *onceward.Error
	if !errors.As(err, &failed) {
		return nil
	}
	kind, known := kindOf(err, failed)
	if !known {
		return nil
	}
	problem := problemFor(kind, failed.RetryDelay)
	return &problem
}

func kindOf(err error, failed *onceward.Error) (ProblemType, bool) {
	var unavailable *onceward.ResultUnavailableError
	switch {
	case errors.As(err, &unavailable):
		return ResultGone, true
	case failed.Reason == onceward.ErrInProgress:
		return InProgress, true
	case failed.Reason == onceward.ErrAmbiguous:
		return Ambiguous, true
	case failed.Reason == onceward.ErrFingerprintMismatch:
		return KeyReused, true
	case failed.Reason == onceward.ErrKeyTooOld:
		return KeyTooOld, true
	case failed.IsAboutKeyTime():
		return KeyWithoutTime, true
	case failed.Reason == onceward.ErrClosed, failed.IsRetryable():
		return Unavailable, true
	default:
		return "", false
	}
}
