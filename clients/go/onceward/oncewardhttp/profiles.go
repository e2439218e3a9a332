package oncewardhttp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Profile is the protocol whose keys, statuses, bodies and headers a guard uses: those of the guides' page "Profiles of HTTP",
// which names their sources.
type Profile string

// The profiles.
const (
	// The draft, with keys also without quotes, a mark of replays, and problem+json. The default.
	ProfileOnceward Profile = "onceward"
	// draft-ietf-httpapi-idempotency-key-header-07 alone.
	ProfileIETF Profile = "ietf"
	// As Stripe's API.
	ProfileStripe Profile = "stripe"
	// The Agentic Commerce Protocol, agentic checkout §6.
	ProfileACP Profile = "acp"
	// The Universal Commerce Protocol, checkout over REST.
	ProfileUCP Profile = "ucp"
)

// MissingKey says what happens to a request without a key.
type MissingKey int

const (
	// MissingKeyByProfile does what the profile says: Stripe's and UCP's let it pass, the others refuse it.
	MissingKeyByProfile MissingKey = iota
	// MissingKeyRefused answers with 400.
	MissingKeyRefused
	// MissingKeyPasses calls the handler, unguarded.
	MissingKeyPasses
)

// wire is what a profile prescribes.
type wire struct {
	methods    []string
	missingKey MissingKey
	// Returns the key in a header's value; false if it is malformed.
	parseKey func(header string) (string, bool)
	// Returns the parts of an operation's key that name its endpoint.
	endpointOf func(*http.Request) []any
	// Returns what must be the same in each attempt.
	identityOf func(r *http.Request, body []byte) any
	// The header, with the value "true", that marks a replay; "" for none.
	replayed string
	// Whether responses have the request's Idempotency-Key.
	echoes bool
	// Whether 5xx are not stored even if Stores says so.
	dropsServerErrors bool
	contentType       string
	// Returns the body of a refusal, which is written as JSON.
	bodyOf   func(problem Problem, code string) any
	statuses map[ProblemType]int
	// The codes that the protocol names; the others are made of the problem's type.
	codes map[ProblemType]string
}

var profiles = map[Profile]wire{
	ProfileOnceward: draftWire(onceward.ParseIdempotencyKey, replayedHeader),
	ProfileIETF:     draftWire(parseStructuredKey, ""),
	ProfileStripe: {
		methods: []string{http.MethodPost}, missingKey: MissingKeyPasses, parseKey: parseOpaqueKey, endpointOf: allEndpoints,
		identityOf: wholeRequest, replayed: idempotentReplayed, contentType: plainJSON, bodyOf: stripeBody,
		statuses: map[ProblemType]int{KeyReused: http.StatusBadRequest},
		codes:    map[ProblemType]string{KeyReused: stripeReused, InProgress: "idempotency_key_in_use"},
	},
	ProfileACP: {
		methods: []string{http.MethodPost}, missingKey: MissingKeyRefused, parseKey: parseOpaqueKey, endpointOf: byPath,
		identityOf: jsonBody, replayed: idempotentReplayed, echoes: true, dropsServerErrors: true, contentType: plainJSON,
		bodyOf: acpBody,
		codes: map[ProblemType]string{
			KeyMissing: "idempotency_key_required", KeyReused: "idempotency_conflict", InProgress: "idempotency_in_flight",
		},
	},
	ProfileUCP: {
		methods: []string{http.MethodPost, http.MethodPut}, missingKey: MissingKeyPasses, parseKey: parseOpaqueKey,
		endpointOf: byRoute, identityOf: wholeRequest, contentType: plainJSON, bodyOf: ucpBody,
		statuses: map[ProblemType]int{KeyReused: http.StatusConflict},
	},
}

const (
	idempotentReplayed = "Idempotent-Replayed"
	plainJSON          = "application/json"
	stripeReused       = "idempotency_error"
	typePrefix         = "urn:onceward:problem:"
)

// draftWire returns the draft's profile, with a form of keys and a mark of replays.
func draftWire(parseKey func(string) (string, bool), replayed string) wire {
	return wire{
		methods: []string{http.MethodPost, http.MethodPatch}, missingKey: MissingKeyRefused, parseKey: parseKey,
		endpointOf: byRoute, identityOf: wholeRequest, replayed: replayed, contentType: "application/problem+json",
		bodyOf: problemBody,
	}
}

// parseStructuredKey returns the key in a structured-field string alone.
func parseStructuredKey(header string) (string, bool) {
	key, valid := onceward.ParseIdempotencyKey(header)
	return key, valid && strings.HasPrefix(header, `"`)
}

var opaqueKey = regexp.MustCompile(`^[\x20-\x7e]{1,255}$`)

// parseOpaqueKey returns a text of which quotes are a part.
func parseOpaqueKey(header string) (string, bool) { return header, opaqueKey.MatchString(header) }

func byRoute(r *http.Request) []any    { return []any{r.Method, routeOf(r)} }
func byPath(r *http.Request) []any     { return []any{r.Method, r.URL.EscapedPath()} }
func allEndpoints(*http.Request) []any { return nil }

// wholeRequest is the identity of the other languages' guards for a body of bytes.
func wholeRequest(r *http.Request, body []byte) any {
	query := ""
	if r.URL.RawQuery != "" {
		query = "?" + r.URL.RawQuery
	}
	return map[string]any{"method": r.Method, "path": r.URL.EscapedPath(), "query": query, "body": digestOf(body)}
}

// jsonBody is the body's JSON value; a body that is not JSON counts by its hash.
func jsonBody(_ *http.Request, body []byte) any {
	switch {
	case len(body) == 0:
		return map[string]any{"json": nil}
	case utf8.Valid(body) && json.Valid(body):
		return map[string]any{"json": json.RawMessage(body)}
	default:
		return map[string]any{"bytes": digestOf(body)}
	}
}

func digestOf(body []byte) string {
	digest := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

func problemBody(problem Problem, _ string) any {
	return struct {
		Type   ProblemType `json:"type"`
		Title  string      `json:"title"`
		Status int         `json:"status"`
		Detail string      `json:"detail"`
	}{problem.Type, problem.Title, problem.Status, problem.Detail}
}

func stripeBody(problem Problem, code string) any {
	type failure struct {
		Type    string `json:"type"`
		Code    string `json:"code,omitempty"`
		Message string `json:"message"`
	}
	made := failure{"invalid_request_error", code, problem.Detail}
	switch {
	case code == stripeReused:
		made.Type, made.Code = code, ""
	case problem.Status >= http.StatusInternalServerError:
		made.Type = "api_error"
	}
	return map[string]failure{"error": made}
}

func acpBody(problem Problem, code string) any {
	kind := "invalid_request"
	if problem.Status >= http.StatusInternalServerError {
		kind = "service_unavailable"
	}
	return struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{kind, code, problem.Detail}
}

func ucpBody(problem Problem, code string) any {
	return struct {
		Code    string `json:"code"`
		Content string `json:"content"`
	}{code, problem.Detail}
}

// writeProblem writes a refusal in the profile's format.
func (w wire) writeProblem(to http.ResponseWriter, _ *http.Request, problem Problem) {
	code, known := w.codes[problem.Type]
	if !known {
		code = "idempotency_" + strings.ReplaceAll(strings.TrimPrefix(string(problem.Type), typePrefix), "-", "_")
	}
	body, err := json.Marshal(w.bodyOf(problem, code))
	if err != nil {
		panic(err) // Texts always have a JSON form.
	}
	to.Header().Set("Content-Type", w.contentType)
	to.WriteHeader(problem.Status)
	_, _ = to.Write(body) // The client may have left.
}
