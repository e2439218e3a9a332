package oncewardhttp

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
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

// wire is a row of the table in the form that the guard uses.
type wire struct {
	methods    []string
	missingKey MissingKey
	// Returns the key in a header's value; false if it is malformed.
	parseKey func(header string) (string, bool)
	// Returns the parts of an operation's key that name its endpoint.
	endpointOf        func(*http.Request) []any
	isForAllEndpoints bool
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

//go:embed profiles.json
var tableText []byte

// The profiles and the problems of the table, which is generated from the TypeScript client's.
var profiles, problems = readTable(tableText)

// row is what the table says of a profile.
type row struct {
	Methods                      []string
	Required                     bool
	Key, Scope, Compares, Format string
	Replayed                     string
	Echoes, DropsServerErrors    bool
	Statuses                     map[string]int
	Codes                        map[string]string
}

var keyForms = map[string]func(header string) (string, bool){
	"string or bare": onceward.ParseIdempotencyKey,
	"string":         parseStructuredKey,
	"opaque":         parseOpaqueKey,
}

var scopes = map[string]func(*http.Request) []any{"route": byRoute, "path": byPath, everywhere: allEndpoints}

var identities = map[string]func(r *http.Request, body []byte) any{"request": wholeRequest, "JSON body": bodyAlone}

var formats = map[string]func(problem Problem, code string) any{
	draftFormat: problemBody, "Stripe": stripeBody, "ACP": acpBody, "UCP": ucpBody,
}

const (
	everywhere   = "all endpoints"
	draftFormat  = "RFC 9457"
	stripeReused = "idempotency_error"
	typePrefix   = "urn:onceward:problem:"
)

// readTable panics for a table with a word that this package does not know, which every test finds.
func readTable(text []byte) (map[Profile]wire, map[ProblemType]Problem) {
	var table struct {
		Profiles map[Profile]row
		Problems map[string]Problem
	}
	if err := json.Unmarshal(text, &table); err != nil {
		panic(err)
	}
	wires := make(map[Profile]wire, len(table.Profiles))
	for name, each := range table.Profiles {
		wires[name] = each.wire()
	}
	return wires, byType(table.Problems)
}

func (r row) wire() wire {
	made := wire{
		methods: r.Methods, missingKey: MissingKeyPasses, parseKey: known(keyForms, r.Key), endpointOf: known(scopes, r.Scope), isForAllEndpoints: r.Scope == everywhere,
		identityOf: known(identities, r.Compares), replayed: r.Replayed, echoes: r.Echoes, dropsServerErrors: r.DropsServerErrors,
		contentType: "application/json", bodyOf: known(formats, r.Format), statuses: byType(r.Statuses), codes: byType(r.Codes),
	}
	if r.Required {
		made.missingKey = MissingKeyRefused
	}
	if r.Format == draftFormat {
		made.contentType = "application/problem+json"
	}
	return made
}

func known[T any](words map[string]T, word string) T {
	value, found := words[word]
	if !found {
		panic(fmt.Sprintf("oncewardhttp: the table of profiles has %q", word))
	}
	return value
}

// byType returns the values of problems, which the table names without the prefix of their types.
func byType[T any](byName map[string]T) map[ProblemType]T {
	typed := make(map[ProblemType]T, len(byName))
	for name, value := range byName {
		typed[ProblemType(typePrefix+name)] = value
	}
	return typed
}

// parseStructuredKey returns the key in a structured-field string alone.
func parseStructuredKey(header string) (string, bool) {
	key, valid := onceward.ParseIdempotencyKey(header)
	return key, valid && strings.HasPrefix(header, `"`)
}

var opaqueKey = regexp.MustCompile(fmt.Sprintf(`^[\x20-\x7e]{1,%d}$`, limits.MaxKeyBytes))

// parseOpaqueKey returns a text of which quotes are a part.
func parseOpaqueKey(header string) (string, bool) { return header, opaqueKey.MatchString(header) }

func byRoute(r *http.Request) []any    { return []any{r.Method, routeOf(r)} }
func byPath(r *http.Request) []any     { return []any{r.Method, r.URL.EscapedPath()} }
func allEndpoints(*http.Request) []any { return nil }

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
