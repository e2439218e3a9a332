package onceward

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
)

// maxDepth is that of encoding/json: a deeper value is taken for a circular one.
const maxDepth = 10_000

// Fingerprint returns the 32 bytes that bind a key to one request: the SHA-256 of the value's canonical JSON (RFC 8785). The
// same value has the same fingerprint in the client of every language.
//
//   - A []byte or [32]byte of 32 bytes is returned unchanged, as a hash made elsewhere; other lengths are refused.
//   - A json.RawMessage is the JSON that it holds: pass a request's body so.
//   - Texts, numbers, booleans, nil, map[string]any and []any are themselves. A time.Time is its ISO text in UTC, with
//     milliseconds or as many more digits as it has.
//   - Anything else, such as a struct, is what encoding/json makes of it. A time.Time within a struct is then the text of
//     time.Time.MarshalJSON, with its zone: keep such times in UTC.
//
// A whole number beyond ±(2⁵³-1) is refused, because another language would read another number: pass it as a text. So is a
// float64 from 2⁵³ to 10²¹, which would be written with digits that are not its own; and a type with a field that is not exported,
// unless it has the tag `json:"-"`.
//
// omit names members that differ between deliveries of one operation, as JSON Pointers (RFC 6901), such as "/sentAt". Pointers
// lead through objects only.
//
// Fails with ErrInvalidRequest, for the field "fingerprint" or "omit".
func Fingerprint(value any, omit ...string) ([]byte, error) {
	switch digest := value.(type) {
	case json.RawMessage:
	case []byte:
		if len(digest) != limits.FingerprintBytes {
			description := fmt.Sprintf("as bytes, must be the 32 of a SHA-256, is %d; hash them first", len(digest))
			return nil, invalidRequest(Violation{"fingerprint", description})
		}
		return bytes.Clone(digest), nil
	case [sha256.Size]byte:
		return digest[:], nil
	}
	omissions, refused := parseOmissions(omit)
	if refused != nil {
		return nil, refused
	}
	plain, unusable := plainValue(value, place{omissions: omissions})
	if unusable != nil {
		return nil, invalidRequest(Violation{"fingerprint", "must be a JSON value or bytes, " + unusable.text})
	}
	digest := sha256.Sum256(appendCanonical(nil, plain))
	return digest[:], nil
}

// omissions are the members that JSON Pointers name, as a tree; nil stands for a whole member.
type omissions map[string]omissions

func parseOmissions(pointers []string) (omissions, *Error) {
	root := omissions{}
	for _, pointer := range pointers {
		if !strings.HasPrefix(pointer, "/") {
			return nil, invalidRequest(Violation{"omit", fmt.Sprintf("must be JSON Pointers such as \"/sentAt\", has %q", pointer)})
		}
		names := strings.Split(pointer[1:], "/")
		node := root
		for i, escaped := range names {
			name := strings.NewReplacer("~1", "/", "~0", "~").Replace(escaped)
			next, known := node[name]
			if known && next == nil {
				break // A whole member that contains this one is omitted.
			}
			if i == len(names)-1 {
				node[name] = nil
				break
			}
			if next == nil {
				next = omissions{}
				node[name] = next
			}
			node = next
		}
	}
	return root, nil
}

// place is the path of a value within the whole.
type place struct {
	path      string
	depth     int
	omissions omissions
}

func (p place) member(name string, of omissions) place {
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return place{p.path + "/" + escaped, p.depth + 1, of}
}

// plainValue returns the value as nil, bool, string, float64, []any and map[string]any.
func plainValue(value any, at place) (any, *unusableValue) {
	if at.depth > maxDepth {
		return nil, &unusableValue{"is nested too deeply"}
	}
	switch value := value.(type) {
	case nil, bool:
		return value, nil
	case string:
		if !utf8.ValidString(value) {
			return nil, unusable("a text that is not UTF-8", at, "")
		}
		return value, nil
	case float64:
		return plainNumber(value, strconv.FormatFloat(value, 'g', -1, 64), at)
	case json.Number:
		return numberOfText(string(value), at)
	case time.Time:
		return isoText(value), nil
	case json.RawMessage:
		return plainJSON(value, false, at)
	case map[string]any:
		return plainMembers(value, at)
	case []any:
		plain := make([]any, len(value))
		for i, element := range value {
			var refused *unusableValue
			if plain[i], refused = plainValue(element, at.member(strconv.Itoa(i), nil)); refused != nil {
				return nil, refused
			}
		}
		return plain, nil
	default:
		if flaw := (shape{kind: reflect.TypeOf(value)}).flaw(); flaw != "" {
			return nil, unusable("a value without a JSON form ("+flaw+")", at, "")
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, unusable(fmt.Sprintf("a %T, which has no JSON form", value), at, ": "+err.Error())
		}
		return plainJSON(text, true, at)
	}
}

func plainMembers(value map[string]any, at place) (any, *unusableValue) {
	plain := make(map[string]any, len(value))
	for name, member := range value {
		if !utf8.ValidString(name) {
			return nil, unusable("a member whose name is not UTF-8", at, "")
		}
		omitted, named := at.omissions[name]
		if named && omitted == nil {
			continue
		}
		var refused *unusableValue
		if plain[name], refused = plainValue(member, at.member(name, omitted)); refused != nil {
			return nil, refused
		}
	}
	return plain, nil
}

// plainJSON reads JSON. marshalled says that encoding/json wrote it, which writes \ufffd for bytes that are not UTF-8.
func plainJSON(text []byte, marshalled bool, at place) (any, *unusableValue) {
	if !utf8.Valid(text) || !hasWholeCharacters(text, marshalled) {
		return nil, unusable("a text that is not well-formed Unicode", at, "")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, unusable("JSON that can't be read", at, ": "+err.Error())
	}
	if decoder.More() {
		return nil, unusable("more than one JSON value", at, "")
	}
	return plainValue(value, at)
}

// hasWholeCharacters returns whether the escapes of a JSON text hold no lone surrogate, and none that stands for bytes that
// encoding/json could not write.
func hasWholeCharacters(text []byte, marshalled bool) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, isUnit := codeUnit(text[i:])
		if !isUnit {
			i++ // Also of an escaped backslash.
			continue
		}
		i += 5
		switch {
		case marshalled && unit == utf8.RuneError:
			return false
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return false
		case unit >= 0xD800 && unit <= 0xDBFF:
			low, isLow := codeUnit(text[i+1:])
			if !isLow || low < 0xDC00 || low > 0xDFFF {
				return false
			}
			i += 6
		}
	}
	return true
}

// codeUnit returns the UTF-16 code unit that a text begins with as an escape.
func codeUnit(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}

const (
	maxSafeInteger = 1<<53 - 1
	// From here on, canonical JSON has an exponent.
	minExponential = 1e21
)

// numberOfText returns a number of JSON as a float64.
func numberOfText(text string, at place) (any, *unusableValue) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, unusable("a number beyond the range of a float64", at, "")
	}
	if !strings.ContainsAny(text, ".eE") && math.Abs(number) > maxSafeInteger {
		return nil, unsafeNumber(at)
	}
	return plainNumber(number, text, at)
}

func plainNumber(number float64, text string, at place) (any, *unusableValue) {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil, unusable("the number "+text, at, "")
	}
	if size := math.Abs(number); size > maxSafeInteger && size < minExponential {
		return nil, unsafeNumber(at)
	}
	return number, nil
}

func unsafeNumber(at place) *unusableValue {
	return unusable("a number beyond 9007199254740991", at, "; pass it as a text")
}

// isoText returns a time as other languages print it, unless that would drop digits.
func isoText(value time.Time) string {
	utc := value.UTC()
	switch {
	case utc.Nanosecond()%int(time.Millisecond) == 0:
		return utc.Format("2006-01-02T15:04:05.000Z")
	case utc.Nanosecond()%int(time.Microsecond) == 0:
		return utc.Format("2006-01-02T15:04:05.000000Z")
	default:
		return utc.Format("2006-01-02T15:04:05.000000000Z")
	}
}

// unusableValue says why a value is not one of JSON that every language reads the same.
type unusableValue struct{ text string }

func unusable(what string, at place, remedy string) *unusableValue {
	if at.path == "" {
		return &unusableValue{"is " + what + remedy}
	}
	return &unusableValue{"has " + what + " at " + truncateUTF8(at.path, 256) + remedy}
}
