package onceward

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
)

// Never changed within a major version: it changes every derived key, and downstreams would repeat effects.
const derivedKeyScheme = "onceward.derived-key.v1"

// JoinKey returns a key made of several parts: JoinKey("refund", "tx-12", 3) is "refund:tx-12:3".
//
// Two different lists of parts never share a key: ":" and "%" within a part are escaped. A key longer than 255 bytes becomes
// "%sha256:" and 43 characters of its hash. The same in every language and version. A part is a text, an integer or a *big.Int.
//
// Fails with ErrInvalidRequest for no parts, for a text that is not UTF-8, and for any other part, but for a float that is a
// whole number.
func JoinKey(parts ...any) (string, error) {
	if len(parts) == 0 {
		return "", invalidRequest(Violation{"key", "must have parts"})
	}
	escaped := make([]string, len(parts))
	for i, part := range parts {
		text, refused := keyPart(part)
		if refused != nil {
			return "", refused
		}
		escaped[i] = strings.NewReplacer("%", "%25", ":", "%3A").Replace(text)
	}
	key := strings.Join(escaped, ":")
	if len(key) <= limits.MaxKeyBytes {
		return key, nil
	}
	// In the readable form a "%" is never followed by an "s".
	return "%sha256:" + digestText(key), nil
}

const maxSafeFloat = 1<<53 - 1

func keyPart(part any) (string, *Error) {
	if number, isBig := part.(*big.Int); isBig && number != nil {
		return number.String(), nil
	}
	switch value := reflect.ValueOf(part); {
	case value.Kind() == reflect.String:
		if !utf8.ValidString(value.String()) {
			return "", invalidRequest(Violation{"key", "must be well-formed UTF-8"})
		}
		return value.String(), nil
	case value.CanInt():
		return strconv.FormatInt(value.Int(), 10), nil
	case value.CanUint():
		return strconv.FormatUint(value.Uint(), 10), nil
	case value.CanFloat():
		number := value.Float()
		if number != math.Trunc(number) || math.Abs(number) > maxSafeFloat {
			return "", invalidRequest(Violation{"key", "must have whole numbers only"})
		}
		return strconv.FormatInt(int64(number), 10), nil
	default:
		return "", invalidRequest(Violation{"key", fmt.Sprintf("must have texts and whole numbers only, has a %T", part)})
	}
}

// DeriveKey returns an idempotency key for a downstream: opaque, 43 characters, the same on every attempt, different for every
// label. A downstream that honours such keys absorbs the repeat after a crash. Within a run, Claim.DeriveKey is shorter.
func DeriveKey(namespace, key, label string) string {
	text := ""
	for _, part := range []string{derivedKeyScheme, namespace, key, label} {
		// Each part has its length before it, so that no two ways of dividing a text give the same key.
		text += strconv.Itoa(len(part)) + ":" + part
	}
	return digestText(text)
}

func digestText(text string) string {
	digest := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

var (
	// RFC 8941, 3.3.3: printable ASCII in quotes, where a backslash comes before a quote or another backslash.
	quotedKey = regexp.MustCompile(`^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$`)
	// Visible ASCII without quotes, commas and semicolons, as many deployed clients send it.
	bareKey   = regexp.MustCompile(`^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$`)
	keyEscape = regexp.MustCompile(`\\(.)`)
)

// ParseIdempotencyKey returns the key in an Idempotency-Key header, quoted or not; false if it has neither form, or is longer
// than 255 characters.
func ParseIdempotencyKey(header string) (string, bool) {
	key := header
	if quoted := quotedKey.FindStringSubmatch(header); quoted != nil {
		key = keyEscape.ReplaceAllString(quoted[1], "$1")
	} else if !bareKey.MatchString(header) {
		return "", false
	}
	return key, len(key) <= limits.MaxKeyBytes
}

// FormatIdempotencyKey returns a key as the header's structured-field string; false if it is empty or not printable ASCII.
func FormatIdempotencyKey(key string) (string, bool) {
	header := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
	return header, quotedKey.MatchString(header)
}

const (
	counterBits = 12 // rand_a of RFC 9562, 5.7.
	// A counter begins in its lower half, so that at least 2,048 keys of a millisecond need no later time.
	firstCounterBits = counterBits - 1
	// A clock that is set back by more is followed: a key's time then matters more than the order of keys.
	maxAheadMillis = 10_000
)

var newKeys struct {
	mu         sync.Mutex
	lastMillis int64
	counter    uint16
}

// NewKey returns a new key: a UUID of version 7 (RFC 9562). Make it once, where the operation is created, and store it with the
// operation: every retry has the same key. Later keys of this process are larger. A reader of a key can tell when it was made.
func NewKey() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // Never fails.
	millis, counter := nextKeyTime(time.Now().UnixMilli(), uint16(id[6])<<8|uint16(id[7]))
	for i := range 6 {
		id[i] = byte(millis >> (8 * (5 - i)))
	}
	id[6], id[7] = 0x70|byte(counter>>8), byte(counter)
	id[8] = 0x80 | id[8]&0x3F
	text := hex.EncodeToString(id[:])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// nextKeyTime advances the time, or else the counter, beyond those of the last key (RFC 9562, 6.2, method 1).
func nextKeyTime(nowMillis int64, random uint16) (int64, uint16) {
	newKeys.mu.Lock()
	defer newKeys.mu.Unlock()
	isLater := nowMillis > newKeys.lastMillis || newKeys.lastMillis-nowMillis > maxAheadMillis
	if !isLater && newKeys.counter+1 < 1<<counterBits {
		newKeys.counter++
		return newKeys.lastMillis, newKeys.counter
	}
	if isLater {
		newKeys.lastMillis = nowMillis
	} else {
		newKeys.lastMillis++
	}
	newKeys.counter = random % (1 << firstCounterBits)
	return newKeys.lastMillis, newKeys.counter
}
