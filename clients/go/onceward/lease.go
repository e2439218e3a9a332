package onceward

import (
	"sync"
	"time"

	"github.com/onceward/onceward/clients/go/internal/timing"
)

const (
	// Two heartbeats may fail before the lease is at risk.
	heartbeatsPerLease = 3
	// The delay after a failed heartbeat, as a part of the lease.
	retryPart = 10
	// A heartbeat without an answer within this part of the lease is repeated, on another connection, while the lease lasts; at least
	// a second, which a busy service may take.
	answerPart           = 4
	minAnswer            = time.Second
	minHeartbeatInterval = 20 * time.Millisecond
	// Timers may stop while a machine is suspended: a lease that ended meanwhile is noticed within this time.
	maxLookInterval = time.Second
)

// lease keeps a claim's lease alive by heartbeats, and reports its loss.
//
// A granted lease counts from when its call was sent, minus a margin, so that this process never relies on a lease that has
// expired at the service. A heartbeat is also sent after the loss: until another holder has taken over, it renews the lease.
type lease struct {
	claim  ClaimRef
	extend func() (remaining time.Duration, err *Error)
	onLost func(*Error)

	mu            sync.Mutex
	length        time.Duration
	endsAt        time.Duration
	nextHeartbeat time.Duration
	heartbeating  bool
	ended         bool
	lost          bool
	timer         *time.Timer
}

// granted notes that the service granted the lease to a call that was sent at this time. The first grant starts the heartbeats.
func (l *lease) granted(sentAt, remaining time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant(sentAt, remaining)
}

func (l *lease) grant(sentAt, remaining time.Duration) {
	l.length = remaining
	// Replies may overtake each other; no call shortens a lease.
	l.endsAt = max(l.endsAt, timing.LeaseEnd(sentAt, remaining))
	l.nextHeartbeat = sentAt + max(minHeartbeatInterval, remaining/heartbeatsPerLease)
	l.arm()
}

// isOver returns whether another holder may have taken over.
func (l *lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return leaseNow() >= l.endsAt
}

// left returns how long the lease lasts unless it is prolonged, and its length as last granted.
func (l *lease) left() (left, length time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.endsAt-leaseNow()), l.length
}

// heartbeatTimeout returns how long a heartbeat may be without an answer.
func (l *lease) heartbeatTimeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(attemptTimeout, max(minAnswer, l.length/answerPart))
}

// arm sets the timer for the next heartbeat, or the end of the lease.
func (l *lease) arm() {
	if l.ended {
		return
	}
	delay := maxLookInterval
	now := leaseNow()
	if !l.heartbeating {
		delay = min(delay, l.nextHeartbeat-now)
	}
	if !l.lost {
		delay = min(delay, l.endsAt-now)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(max(0, delay), l.tick)
	} else {
		l.timer.Reset(max(0, delay))
	}
}

func (l *lease) tick() {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	now := leaseNow()
	if now >= l.endsAt {
		l.lose(leaseLost(l.claim))
	}
	due := now >= l.nextHeartbeat && !l.heartbeating
	l.heartbeating = l.heartbeating || due
	l.arm()
	l.mu.Unlock()
	if due {
		l.heartbeat(now)
	}
}

func (l *lease) heartbeat(sentAt time.Duration) {
	remaining, err := l.extend()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heartbeating = false
	switch {
	case l.ended:
		// The claim was completed or released in the meantime, so the answer no longer matters.
	case err == nil:
		l.grant(sentAt, remaining)
	case err.isClaimGone():
		l.stop()
		l.lose(err)
	default:
		l.nextHeartbeat = leaseNow() + max(minHeartbeatInterval, l.length/retryPart)
		l.arm()
	}
}

// interrupt tells the function to end. The heartbeats continue: it may still have its effect.
func (l *lease) interrupt(why *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(why)
}

// abandon stops the heartbeats without an outcome: the lease will expire. Tells the function now, before others may start.
func (l *lease) abandon(why *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.stop()
		l.lose(why)
	}
}

// end stops the heartbeats: the claim is completed or released.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
}

func (l *lease) stop() {
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *lease) lose(why *Error) {
	if !l.lost {
		l.lost = true
		l.onLost(why)
	}
}

func leaseLost(claim ClaimRef) *Error {
	return &Error{Reason: ErrLeaseLost, Message: "The lease expired before a heartbeat was answered.", Claim: &claim}
}
