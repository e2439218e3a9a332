// Package oncewardhttp guards handlers of net/http by the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07):
// one effect and one answer for all requests with one key.
//
//	guard, err := oncewardhttp.New(client, oncewardhttp.Options{
//		Namespace: "charges",
//		Caller:    func(r *http.Request) string { return accountOf(r) },
//	})
//	mux.Handle("POST /charges", guard(createCharge))
//
// Within the handler, onceward.ClaimFromContext(r.Context()) has the claim, for derived keys.
package oncewardhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Options say how requests are guarded. Namespace and Caller are required.
type Options struct {
	// See onceward.Operation.
	Namespace     string
	Lease         time.Duration
	Timeout       time.Duration
	Owner         string
	OnUnavailable onceward.OnUnavailable
	// With onceward.UnknownOnError, a 5xx that is not stored always leaves the claim to the policy.
	OnError onceward.OnError
	// The handler calls Begin of onceward.ClaimFromContext(r.Context()). See onceward.Operation.
	MarksBegin bool
	// Returns the caller, as the API authenticated it: an account's id, never a secret. Each caller has its own keys; otherwise one
	// caller could get another's response. If all callers may see everything, return a constant. Must not be empty.
	Caller func(*http.Request) string
	// The operation's name, such as "refund", in place of method and route: services in several languages behind one route, or two
	// routes of one operation, need a name, because each language writes a route's pattern differently. Not for ProfileStripe, whose
	// keys count for all endpoints. Default: method and route, or as the profile says.
	Operation string
	// The header that has the key, for ProfileOnceward alone: the others name it. Default: Idempotency-Key.
	Header string
	// The protocol that clients expect. A change of it begins new operations. Default: ProfileOnceward.
	Profile Profile
	// The methods that are guarded; requests with others pass. Default: POST and PATCH, or the profile's.
	Methods []string
	// What happens to a request without a key. Default: as the profile says.
	MissingKey MissingKey
	// How long a request waits for another one with its key before it is answered with 409. Default: not at all.
	Wait time.Duration
	// Finds out what became of an earlier attempt; onceward.Happened takes a Response, to be sent and stored. See onceward.Operation.
	Resolve func(r *http.Request, claim *onceward.Claim) (onceward.Resolution, error)
	// Returns the request's identity, as onceward.Fingerprint takes it: the same key with another one is answered with 422.
	// Default: method, path, query and body: JSON by its value, a multipart form by its parts, without the boundary; for ACP, the
	// body alone.
	Fingerprint func(r *http.Request, body []byte) any
	// The largest body of a guarded request, which is read whole for the fingerprint; a larger one is answered with 413. Default:
	// 1 MiB.
	MaxBodyBytes int64
	// Returns what a response says about the operation. Default: Store below 500, but Release for 401, 408, 425 and 429; Release
	// from 500 on, but Unknown for 502, 504, and 503 without Retry-After, with which a time limit answers, such as that of
	// http.TimeoutHandler, while the handler may still run. ACP never stores a 5xx. The refusal of another guard within the
	// handler, or of a service whose response the handler passes on with its header Link, is never stored, and a response
	// whose length is not its Content-Length leaves the claim to the policy.
	Stores func(Response) Verdict
	// Stores of a response below 400 only that it happened, such as of a secret that is shown once; duplicates are answered with
	// 410 (ResultGone).
	StoresMark bool
	// Headers to replay beside those that describe the body, Location, Link, ETag, Last-Modified, Cache-Control and Vary.
	ReplayHeaders []string
	// How long a response is held while the service does not store it; then it is sent, because its effect has happened, and stored
	// as soon as the service can. Default: 10 s.
	AnswerAfter time.Duration
	// A client that disconnects does not end the handler's context, since its response is stored for the duplicate. So long after
	// the disconnect the context ends all the same. If the response is then not stored, the claim is left to the namespace's
	// policy. Default: 15 min.
	AbandonAfter time.Duration
	// The URL of the API's page about keys, to which refusals link, as the draft asks. Default: no link.
	Documentation string
	// Writes a refusal in the API's own format. Default: application/problem+json, or the profile's.
	WriteProblem func(w http.ResponseWriter, r *http.Request, problem Problem)
	// Gets errors that concern the API's owner, such as a bad credential; the request is answered with 500. Default:
	// slog.Default().
	Logger *slog.Logger
}

const (
	keyHeader = "Idempotency-Key"

	defaultMaxBodyBytes = 1 << 20
	// Shorter than the timeouts of load balancers and clients (most are 30 or 60 s), longer than most outages.
	defaultAnswerAfter = 10 * time.Second
	// The longest lease of the default policy: after a crash, other callers wait this long, too.
	defaultAbandonAfter = 15 * time.Minute
)

// New returns middleware. Fails with onceward.ErrInvalidRequest for options that would guard nothing, or replay what must not be.
//
//   - The first request runs the handler. Its response is stored before it is sent; every later request with the key gets its
//     status, body and the headers that describe it, marked "Idempotency-Replayed: true".
//   - The key counts per caller, method and route, unless Operation or the profile says otherwise. The route is the pattern of
//     http.ServeMux, or else the path.
//   - A response larger than the namespace's max_result_bytes is sent, and repeats are answered with 410. From 1 MiB on, it is
//     streamed; a smaller one is sent once it is whole, so this does not suit event streams. Compress outside the guard.
//   - If the service is unreachable, nothing runs: 503 with Retry-After.
//   - A handler that can't know whether it had its effect calls OutcomeUnknown: 409. The claim of a handler that panics is left to
//     the namespace's policy.
//   - A deadline of the request's context is also the handler's.
func New(client *onceward.Client, options Options) (func(http.Handler) http.Handler, error) {
	policy, err := policyOf(options)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return &guard{client: client, policy: policy, next: next}
	}, nil
}

// OutcomeUnknown says that it is unknown whether the handler of the context's request had its effect, such as a handler whose
// provider timed out. The claim is not released: its lease expires, and then the namespace's policy decides, as after an
// onceward.OutcomeUnknownError of a run. Call it before the handler returns:
//
//	charge, err := bank.Charge(r.Context(), key)
//	if isTimeout(err) {
//		oncewardhttp.OutcomeUnknown(r.Context(), err)
//		http.Error(w, "The bank did not answer.", http.StatusGatewayTimeout)
//		return
//	}
//
// The handler's own response is for requests that are not guarded: the client of a guarded one gets 409 (Ambiguous) instead, unless
// the response is so large that it is being sent.
func OutcomeUnknown(ctx context.Context, cause error) {
	if claim, isGuarded := ctx.Value(claimKey{}).(*onceward.Claim); isGuarded {
		_ = claim.OutcomeUnknown(cause)
	}
}

// claimKey is the key of a request's claim in the context of its handler, which may run other operations within it.
type claimKey struct{}

type guard struct {
	client *onceward.Client
	policy *policy
	next   http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	outer, nested := onceward.ClaimFromContext(r.Context())
	if !g.policy.methods[r.Method] || (nested && outer.Namespace == g.policy.Namespace) {
		g.next.ServeHTTP(w, r)
		return
	}
	headers := r.Header.Values(g.policy.Header)
	if len(headers) == 0 {
		if g.policy.MissingKey == MissingKeyPasses {
			g.next.ServeHTTP(w, r)
		} else {
			g.refuse(w, r, problemFor(KeyMissing, 0))
		}
		return
	}
	header := strings.Join(headers, ",")
	if g.policy.wire.echoes {
		w.Header().Set(g.policy.Header, header)
	}
	key, valid := g.policy.wire.parseKey(header)
	if !valid {
		g.refuse(w, r, problemFor(KeyMalformed, 0))
		return
	}
	operation, problem, err := g.operation(w, r, key)
	switch {
	case err != nil:
		g.fail(w, r, err)
	case problem != nil:
		g.refuse(w, r, *problem)
	default:
		g.run(w, r, operation)
	}
}

// operation returns the operation of a request, whose body can be read again; or the problem with it.
func (g *guard) operation(w http.ResponseWriter, r *http.Request, key string) (onceward.Operation, *Problem, error) {
	caller := g.policy.Caller(r)
	if caller == "" {
		return onceward.Operation{}, nil, errors.New("oncewardhttp: Caller must return a text that is not empty")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.policy.MaxBodyBytes))
	if err != nil {
		var tooLarge *http.MaxBytesError
		kind := RequestUnreadable
		if errors.As(err, &tooLarge) {
			kind = RequestTooLarge
		}
		problem := problemFor(kind, 0)
		return onceward.Operation{}, &problem, nil
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	endpoint := []any{g.policy.Operation}
	if g.policy.Operation == "" {
		endpoint = g.policy.wire.endpointOf(r)
	}
	joined, err := onceward.JoinKey(append(endpoint, caller, key)...)
	if err != nil {
		problem := problemFor(RequestUnreadable, 0)
		return onceward.Operation{}, &problem, nil
	}
	operation := g.policy.operation
	operation.Key = joined
	operation.KeyCreatedAt, _ = onceward.KeyTime(key)
	if operation.Fingerprint, err = onceward.Fingerprint(g.policy.Fingerprint(r, body)); err != nil {
		problem := problemFor(RequestUnreadable, 0)
		return operation, &problem, nil
	}
	return operation, nil, nil
}

// routeOf returns the path of the pattern that http.ServeMux matched, or else the path.
func routeOf(r *http.Request) string {
	pattern := r.Pattern
	if _, withoutMethod, has := strings.Cut(pattern, " "); has {
		pattern = withoutMethod
	}
	if slash := strings.Index(pattern, "/"); slash >= 0 {
		return pattern[slash:]
	}
	return r.URL.EscapedPath()
}

// ran is how a run ended: after its handler, or without it.
type ran struct {
	result   onceward.Result[*response]
	err      error
	panicked any
}

func (g *guard) run(w http.ResponseWriter, r *http.Request, operation onceward.Operation) {
	recorder := &recorder{to: w, header: http.Header{}, isHead: r.Method == http.MethodHead}
	handled := make(chan struct{})
	ended := make(chan ran, 1)
	var marked *onceward.OutcomeUnknownError
	ctx, stop := g.outlivingDisconnect(r.Context())
	go func() {
		// Of a handler that ends its goroutine.
		outcome := ran{panicked: http.ErrAbortHandler}
		defer func() {
			if panicked := recover(); panicked != nil {
				outcome.panicked = panicked
			}
			stop()
			ended <- outcome
		}()
		operation.Resolve = g.policy.resolve(r)
		result, err := onceward.RunDetailed(ctx, g.client, operation,
			func(ctx context.Context, claim *onceward.Claim) (*response, error) {
				g.next.ServeHTTP(recorder, r.WithContext(context.WithValue(ctx, claimKey{}, claim)))
				stored, err := recorder.outcome(ctx, g.policy)
				marked = claim.MarkedUnknown()
				close(handled)
				return stored, err
			})
		outcome = ran{result: result, err: err}
	}()
	var outcome ran
	select {
	case outcome = <-ended:
	case <-handled:
		late := time.NewTimer(g.policy.AnswerAfter)
		defer late.Stop()
		select {
		case outcome = <-ended:
		case <-late.C:
			// The run continues to store the response.
		}
	}
	if outcome.panicked != nil {
		panic(outcome.panicked)
	}
	select {
	case <-handled:
		if marked != nil && !recorder.streamed {
			g.policy.Logger.WarnContext(r.Context(), "It is unknown whether a request had its effect", slog.Any("error", marked))
			g.refuse(w, r, problemFor(Ambiguous, 0))
			return
		}
		// This client gets the handler's response even if it could not be stored for repeats.
		recorder.send()
	default:
		g.answer(w, r, outcome)
	}
}

// errAbandoned is the cause of the end of a handler's context AbandonAfter its client left.
var errAbandoned = fmt.Errorf("oncewardhttp: the client has left, and the handler is abandoned: %w", context.Canceled)

// outlivingDisconnect returns the context with its deadline, and an end so long after the client's disconnect.
func (g *guard) outlivingDisconnect(request context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(request))
	release := func() { cancel(nil) }
	if deadline, has := request.Deadline(); has {
		ctx, release = context.WithDeadline(ctx, deadline)
	}
	var timer *time.Timer
	armed := make(chan struct{})
	disarm := context.AfterFunc(request, func() {
		timer = time.AfterFunc(g.policy.AbandonAfter, func() { cancel(errAbandoned) })
		close(armed)
	})
	return ctx, func() {
		if !disarm() {
			<-armed
			timer.Stop()
		}
		release()
	}
}

// answer answers a request whose handler was not called.
func (g *guard) answer(w http.ResponseWriter, r *http.Request, outcome ran) {
	if outcome.err == nil {
		outcome.result.Value.inAcceptedCoding(r.Header).replay(w, g.policy)
		return
	}
	if problem := problemOf(outcome.err); problem != nil {
		g.refuse(w, r, *problem)
		return
	}
	g.fail(w, r, outcome.err)
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, problem Problem) {
	if status, has := g.policy.wire.statuses[problem.Type]; has {
		problem.Status = status
	}
	problem.Title = strings.ReplaceAll(problem.Title, keyHeader, g.policy.Header)
	problem.Detail = strings.ReplaceAll(problem.Detail, keyHeader, g.policy.Header)
	links := fmt.Sprintf("<%s>; rel=\"type\"", problem.Type)
	if g.policy.Documentation != "" {
		links += fmt.Sprintf(", <%s>; rel=\"describedby\"", g.policy.Documentation)
	}
	w.Header().Set("Link", links)
	if problem.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(problem.RetryAfter/time.Second)))
	}
	g.policy.WriteProblem(w, r, problem)
}

// fail answers a request that failed for a reason that concerns the API's owner; nothing ran.
func (g *guard) fail(w http.ResponseWriter, r *http.Request, err error) {
	g.policy.Logger.ErrorContext(r.Context(), "A request could not be guarded", slog.Any("error", err))
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// policy is Options with every field set.
type policy struct {
	Options
	wire      wire
	operation onceward.Operation
	methods   map[string]bool
	replayed  map[string]bool
}

func policyOf(options Options) (*policy, error) {
	wire, known := profiles[orElse(options.Profile, ProfileOnceward)]
	if !known {
		return nil, refused("Profile", fmt.Sprintf("must be one of the profiles, is %q", options.Profile))
	}
	made := &policy{Options: options, wire: wire, methods: map[string]bool{}, replayed: map[string]bool{}}
	if options.Caller == nil {
		return nil, refused("Caller", "must be set")
	}
	if options.Methods == nil {
		made.Methods = wire.methods
	}
	if len(made.Methods) == 0 {
		return nil, refused("Methods", "must name a method; without one, nothing is guarded")
	}
	for _, method := range made.Methods {
		if !slices.Contains(knownMethods, method) {
			return nil, refused("Methods", fmt.Sprintf("must name methods of HTTP in upper case, names %q", method))
		}
		made.methods[method] = true
	}
	for _, name := range slices.Concat(defaultReplayHeaders, options.ReplayHeaders) {
		name = strings.ToLower(name)
		if slices.Contains(neverReplayed, name) {
			return nil, refused("ReplayHeaders", "must not name "+name)
		}
		made.replayed[name] = true
	}
	if options.Operation != "" && wire.isForAllEndpoints {
		return nil, refused("Operation", "must not be set with this profile: its keys count for all endpoints")
	}
	made.Header = orElse(made.Header, keyHeader)
	switch {
	case !headerName.MatchString(made.Header):
		return nil, refused("Header", "must be the name of a header, 1-255 characters")
	case !strings.EqualFold(made.Header, keyHeader) && orElse(options.Profile, ProfileOnceward) != ProfileOnceward:
		return nil, refused("Header", "must be Idempotency-Key with this profile")
	}
	if options.Documentation != "" && !link.MatchString(options.Documentation) {
		return nil, refused("Documentation", "must be an absolute URL of http or https")
	}
	made.MissingKey = orElse(made.MissingKey, wire.missingKey)
	if made.Fingerprint == nil {
		made.Fingerprint = wire.identityOf
	}
	if made.Stores == nil {
		made.Stores = verdictOf
	}
	if stores := made.Stores; wire.dropsServerErrors {
		made.Stores = func(response Response) Verdict {
			verdict := stores(response)
			if verdict == Store && response.Status >= http.StatusInternalServerError {
				return Release
			}
			return verdict
		}
	}
	if made.WriteProblem == nil {
		made.WriteProblem = wire.writeProblem
	}
	if made.Logger == nil {
		made.Logger = slog.Default()
	}
	made.MaxBodyBytes = orElse(made.MaxBodyBytes, defaultMaxBodyBytes)
	made.AnswerAfter = orElse(made.AnswerAfter, defaultAnswerAfter)
	made.AbandonAfter = orElse(made.AbandonAfter, defaultAbandonAfter)
	made.operation = onceward.Operation{
		Namespace: options.Namespace, Lease: options.Lease, Timeout: options.Timeout, Owner: options.Owner,
		OnUnavailable: options.OnUnavailable, OnError: options.OnError, MarksBegin: options.MarksBegin, Wait: options.Wait, Codec: responseCodec{},
		// The response alone decides.
		IsTerminal:    func(error) bool { return false },
		DescribeError: func(err error) string { return err.Error() },
	}
	if options.StoresMark {
		made.operation.Codec = markCodec{}
	}
	if options.Wait == 0 {
		made.operation.OnInProgress = onceward.FailInProgress
	}
	return made, nil
}

var headerName = regexp.MustCompile("^[0-9A-Za-z_!#$%&'*+.^`|~-]{1,255}$")

// The URL is a part of a header's value: it must not end the link.
var link = regexp.MustCompile(`^https?://[\x21-\x3b\x3d\x3f-\x7e]+$`)

func orElse[T comparable](value, otherwise T) T {
	var unset T
	if value == unset {
		return otherwise
	}
	return value
}

func refused(field, description string) error {
	return &onceward.Error{
		Reason: onceward.ErrInvalidRequest, Message: field + " " + description,
		Violations: []onceward.Violation{{Field: field, Description: description}},
	}
}

// The methods of RFC 9110, PATCH (RFC 5789), QUERY, and those of WebDAV that change something (RFC 4918). A misspelt one would
// guard nothing.
var knownMethods = []string{
	"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY",
	"COPY", "LOCK", "MKCOL", "MOVE", "PROPPATCH", "UNLOCK",
}

var defaultReplayHeaders = []string{
	"cache-control", "content-disposition", "content-encoding", "content-language", "content-location", "content-type", "etag",
	"last-modified", "link", "location", "vary",
}

// Headers of one connection (RFC 9110, 7.6.1), one message or one moment: they are not part of an outcome.
var neverReplayed = []string{
	"connection", "content-length", "date", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-connection",
	"set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
}
