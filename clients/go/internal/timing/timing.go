// Package timing has the arithmetic of leases and retries, and looks at keys that look like times.
package timing

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

const (
	// A tenth of the lease, for clock drift and for the function to stop in time; more than a second is of no use.
	marginPart = 10
	maxMargin  = time.Second
	// Long enough for a dropped connection to be opened again.
	firstDelay = 50 * time.Millisecond
	// Short enough to notice the end of a restart soon.
	maxDelay = 2 * time.Second
	// So many doublings of the first delay are more than the longest one.
	maxDoublings = 6
	// Longer than any wait of the service. A damaged reply may ask for more, or for less than nothing.
	maxAsked = 24 * time.Hour
)

// LeaseEnd returns when a lease ends for the client: counted from when its call was sent, minus a margin. The service counts
// from the arrival of the call, which is later.
func LeaseEnd(sentAt, remaining time.Duration) time.Duration {
	return sentAt + remaining - min(maxMargin, remaining/marginPart)
}

// RetryDelay returns the time the service asks for, and between half and the whole of a doubling delay, so that callers that
// failed together retry apart.
func RetryDelay(failures int, atLeast time.Duration) time.Duration {
	delay := min(maxDelay, firstDelay<<min(failures, maxDoublings))
	return max(0, min(atLeast, maxAsked)) + time.Duration(float64(delay)*(0.5+rand.Float64()/2))
}

var (
	epochMillis = regexp.MustCompile(`^[0-9]{13}$`)
	isoTime     = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.([0-9]+)(Z|[+-][0-9]{2}:?[0-9]{2})$`)
	onlyZeros   = regexp.MustCompile(`^0+$`)
)

// LooksLikeTimestamp returns whether a key looks like the current time, which differs on each delivery. A time on a full second
// may be meant: a job that is due at midnight.
func LooksLikeTimestamp(key string) bool {
	if epochMillis.MatchString(key) {
		millis, err := strconv.ParseInt(key, 10, 64)
		return err == nil && time.Since(time.UnixMilli(millis)).Abs() < 24*time.Hour
	}
	parts := isoTime.FindStringSubmatch(key)
	return parts != nil && !onlyZeros.MatchString(parts[1])
}
