package oncewardhttp

import (
	"net/http"
	"strings"

	"github.com/onceward/onceward/clients/go/onceward/internal/outgoing"
)

// Transport sends the current claim's key with each request: claim.DeriveKey("POST bank.example.com/v1/charges"), the same in all
// languages. So a repeat of the call has the same key, also in the next attempt after a crash, and the next service answers it without
// a second effect.
//
//	bank := http.Client{Transport: &oncewardhttp.Transport{}}
//	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example.com/v1/charges", body)
//
// The claim is that of the request's context.
//
//   - Calls of one method and path under one claim are one operation, unless Name tells them apart: the next service refuses the second
//     one if its body differs (422), and else answers it with the first one's response.
//   - Safe methods get no key, nor do requests outside of a guarded function or after its end.
//   - A header Idempotency-Key of your own is kept.
//   - Only requests through this transport get a key, whichever host they go to: use it for hosts that may see one.
type Transport struct {
	// Sends the requests. Default: http.DefaultTransport.
	Base http.RoundTripper
	// Returns the name of a request among those of one claim, from which its key is derived. Default: "METHOD host/path", without
	// the query.
	Name func(*http.Request) string
}

// RoundTrip sends a request, with a key if it needs one.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if isSafe(r.Method) || len(r.Header.Values(keyHeader)) > 0 {
		return base.RoundTrip(r)
	}
	nameOf := t.Name
	if nameOf == nil {
		nameOf = callName
	}
	key := outgoing.Key(r.Context(), func() string { return nameOf(r) })
	if key == "" {
		return base.RoundTrip(r)
	}
	keyed := r.Clone(r.Context())
	if keyed.Header == nil {
		keyed.Header = http.Header{}
	}
	keyed.Header.Set(keyHeader, key)
	return base.RoundTrip(keyed)
}

// isSafe returns whether a method changes nothing (RFC 9110, 9.2.1), so that a repeat needs no key.
func isSafe(method string) bool {
	switch strings.ToUpper(method) {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	default:
		return false
	}
}

// callName returns the name of a request as each language writes it: without the scheme's own port.
func callName(r *http.Request) string {
	host := strings.ToLower(r.URL.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[r.URL.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	return strings.ToUpper(r.Method) + " " + host + path
}
