package oncewardhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
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

// requestTooLarge is a problem of this guard alone, which reads the body itself.
var requestTooLarge = Problem{
	Status: http.StatusRequestEntityTooLarge, Title: "The request is too large.", Detail: "Send a smaller body.",
}

// problemFor returns the problem of a type. A delay is rounded up to whole seconds.
func problemFor(kind ProblemType, retryAfter time.Duration) Problem {
	problem := problems[kind]
	if kind == RequestTooLarge {
		problem = requestTooLarge
	}
	problem.Type = kind
	if kind == InProgress || kind == Unavailable {
		problem.RetryAfter = max(time.Second, (retryAfter + time.Second - 1).Truncate(time.Second))
	}
	return problem
}

// problemOf returns the problem for an error under which the handler was not called; nil for an error that does not concern the
// API's client (a bad credential, a bug) but its owner.
func problemOf(err error) *Problem {
	if err == context.DeadlineExceeded {
		problem := problemFor(Unavailable, 0)
		return &problem
	}
	var failed *onceward.Error
	if !errors.As(err, &failed) {
		return nil
	}
	kind, known := kindOf(failed)
	if !known {
		return nil
	}
	problem := problemFor(kind, failed.RetryDelay)
	return &problem
}

func kindOf(failed *onceward.Error) (ProblemType, bool) {
	if failed.IsAboutKeyTime() {
		return KeyWithoutTime, true
	}
	switch failed.Class() {
	case oncewardv1.ReasonClass_REASON_CLASS_GONE:
		return ResultGone, true
	case oncewardv1.ReasonClass_REASON_CLASS_WAIT:
		return InProgress, true
	case oncewardv1.ReasonClass_REASON_CLASS_ASK:
		return Ambiguous, true
	case oncewardv1.ReasonClass_REASON_CLASS_REUSED:
		return KeyReused, true
	case oncewardv1.ReasonClass_REASON_CLASS_TOO_OLD:
		return KeyTooOld, true
	case oncewardv1.ReasonClass_REASON_CLASS_RETRY:
		return Unavailable, true
	default:
		return "", false
	}
}
