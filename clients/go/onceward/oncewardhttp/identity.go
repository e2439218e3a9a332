package oncewardhttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"unicode/utf8"
)

// wholeRequest is the identity of a request in each language.
func wholeRequest(r *http.Request, body []byte) any {
	query := ""
	if r.URL.RawQuery != "" {
		query = "?" + r.URL.RawQuery
	}
	identity := contentOf(body, r.Header.Get("Content-Type"), false)
	identity["method"], identity["path"], identity["query"] = r.Method, r.URL.EscapedPath(), query
	return identity
}

// bodyAlone reads a body of any type as JSON if it is JSON.
func bodyAlone(r *http.Request, body []byte) any {
	return contentOf(body, r.Header.Get("Content-Type"), true)
}

var (
	jsonType          = regexp.MustCompile(`(?i)^\s*application/([^\s;]+\+)?json\s*(;|$)`)
	multipartBoundary = regexp.MustCompile(`(?i)^\s*multipart/.*;\s*boundary=(?:"([^"]+)"|([^\s;"]+))`)
	lineEnd           = regexp.MustCompile(`^[ \t]*\r\n`)
	byteOrderMark     = []byte("\ufeff")
)

// contentOf returns what a body counts as: JSON by its value, a multipart form by its parts, and anything else by its bytes. Nothing
// counts as the JSON value null.
func contentOf(body []byte, contentType string, readsAsJSON bool) map[string]any {
	if len(body) == 0 {
		return map[string]any{"json": nil}
	}
	if readsAsJSON || jsonType.MatchString(contentType) {
		if text := bytes.TrimPrefix(body, byteOrderMark); utf8.Valid(text) && json.Valid(text) {
			return map[string]any{"json": json.RawMessage(text)}
		}
	} else if parts, isWhole := partsOf(body, contentType); isWhole {
		return map[string]any{"parts": parts}
	}
	return map[string]any{"bytes": digestOf(body)}
}

// partsOf returns the hashes of a multipart body's parts (RFC 2046, 5.1.1), each of its headers and content as sent: clients choose the
// new boundary for each attempt. False for a body that is not multipart, or breaks off before its last delimiter.
func partsOf(body []byte, contentType string) ([]any, bool) {
	found := multipartBoundary.FindStringSubmatch(contentType)
	if found == nil {
		return nil, false
	}
	delimiter := []byte("\r\n--" + found[1] + found[2])
	// The first delimiter may begin the body, without the line break that belongs to every other one.
	_, rest, isFound := bytes.Cut(append([]byte("\r\n"), body...), delimiter)
	parts := []any{}
	for isFound {
		if bytes.HasPrefix(rest, []byte("--")) {
			return parts, true
		}
		end := lineEnd.FindIndex(rest)
		if end == nil {
			break
		}
		var part []byte
		if part, rest, isFound = bytes.Cut(rest[end[1]:], delimiter); isFound {
			parts = append(parts, digestOf(part))
		}
	}
	return nil, false
}

func digestOf(body []byte) string {
	digest := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(digest[:])
}
