package onceward

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// A UUID with a time (RFC 9562, section 5), whose version is group 3.
	uuidPattern = regexp.MustCompile(`^(?i)([0-9a-f]{8})-([0-9a-f]{4})-([167])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	// https://github.com/ulid/spec: 26 digits of Crockford's base 32, of which the first ten are the milliseconds.
	ulidPattern = regexp.MustCompile(`^(?i)([0-7][0-9a-hjkmnp-tv-z]{9})[0-9a-hjkmnp-tv-z]{16}$`)
)

const (
	crockford = "0123456789abcdefghjkmnpqrstvwxyz"
	// From 15 October 1582, when the timestamps of versions 1 and 6 begin, to 1970.
	gregorianEpochMillis = 12_219_292_800_000
	// The timestamps of versions 1 and 6 count units of 100 ns.
	ticksPerMilli = 10_000
)

// KeyTime returns when a key was made, to the millisecond, if the key contains it: the whole key is a UUID of version 1, 6 or 7,
// or a ULID. False for every other key, and for a time beyond the year 9999. The service reads keys in the same way.
func KeyTime(key string) (time.Time, bool) {
	millis, known := keyMillis(key)
	made := time.UnixMilli(millis).UTC()
	if !known || made.Year() > 9999 {
		return time.Time{}, false
	}
	return made, true
}

func keyMillis(key string) (int64, bool) {
	if digits := ulidPattern.FindStringSubmatch(key); digits != nil {
		millis := int64(0)
		for _, digit := range strings.ToLower(digits[1]) {
			millis = millis*int64(len(crockford)) + int64(strings.IndexRune(crockford, digit))
		}
		return millis, true
	}
	parts := uuidPattern.FindStringSubmatch(key)
	if parts == nil {
		return 0, false
	}
	first, second, version, third := parts[1], parts[2], parts[3], parts[4]
	switch version {
	case "7":
		return hexNumber(first + second), true
	case "6":
		return hexNumber(first+second+third)/ticksPerMilli - gregorianEpochMillis, true
	default:
		return hexNumber(third+second+first)/ticksPerMilli - gregorianEpochMillis, true
	}
}

// hexNumber returns the number of at most 15 hexadecimal digits.
func hexNumber(digits string) int64 {
	number, _ := strconv.ParseInt(digits, 16, 64)
	return number
}
