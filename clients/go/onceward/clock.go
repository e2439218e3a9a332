package onceward

import (
	"sync"
	"time"
)

// A jump of the wall clock against the monotonic one counts as a suspension of the machine from this length on: shorter than
// the margin of the shortest lease (100 ms of 1 s), and longer than clocks are slewed between two readings.
const minSuspension = 50 * time.Millisecond

// leaseClock is the monotonic clock plus the time during which the machine was suspended: the monotonic clock stops
// then, but leases expire at the service. A clock that is set forward looks the same; a lease then counts as over, which is the
// safe mistake. A clock that is set back changes nothing.
type leaseClock struct {
	mu         sync.Mutex
	start      time.Time
	suspended  time.Duration
	lastOffset time.Duration
}

var processClock = &leaseClock{start: time.Now()}

// leaseNow returns the time by which this process judges leases.
func leaseNow() time.Duration { return processClock.now() }

func (c *leaseClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(c.start)
	// Without its monotonic reading, a difference is one of wall clocks.
	return c.advance(elapsed, now.Round(0).Sub(c.start.Round(0)))
}

// advance returns the time, of so much elapsed time by either clock since the start.
func (c *leaseClock) advance(monotonic, wall time.Duration) time.Duration {
	offset := wall - monotonic
	if jump := offset - c.lastOffset; jump >= minSuspension {
		c.suspended += jump
	}
	c.lastOffset = offset
	return monotonic + c.suspended
}
