package onceward

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// timeoutKey is the key of a call's own timeout in its context, which may end sooner, with its caller's.
type timeoutKey struct{}

// silenceOf returns how long a call is without an answer if it has found a silent connection, unless another call on it was answered
// meanwhile. A little shorter than the timeout of an attempt, which begins before its call.
func silenceOf(ctx context.Context) time.Duration {
	timeout, isSet := ctx.Value(timeoutKey{}).(time.Duration)
	if !isSet {
		timeout = attemptTimeout
	}
	return min(attemptTimeout, timeout) * 4 / 5
}

// channel makes calls on one connection, and on a new one after a call without an answer: a connection that its other end has
// forgotten, or a stuck proxy keeps open, would make every attempt fail until keepalive closes it, as long as the default Timeout.
type channel struct {
	open func() (*grpc.ClientConn, error)

	mu       sync.Mutex
	current  *line
	retired  map[*line]struct{}
	isClosed bool
}

// line is a connection of a channel. Once it is replaced, it is closed after its last call.
type line struct {
	*grpc.ClientConn
	calls    int
	answered time.Time
}

func newChannel(open func() (*grpc.ClientConn, error)) (*channel, error) {
	first, err := open()
	if err != nil {
		return nil, err
	}
	return &channel{open: open, current: &line{ClientConn: first}, retired: map[*line]struct{}{}}, nil
}

// Invoke implements grpc.ClientConnInterface.
func (c *channel) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	used := c.begin()
	began := time.Now()
	err := used.Invoke(ctx, method, request, reply, options...)
	c.end(used, began, silenceOf(ctx), err)
	return err
}

// NewStream implements grpc.ClientConnInterface.
func (c *channel) NewStream(
	ctx context.Context, description *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	used := c.begin()
	began := time.Now()
	ended := grpc.OnFinish(func(err error) { c.end(used, began, silenceOf(ctx), err) })
	return used.NewStream(ctx, description, method, append(options, ended)...)
}

func (c *channel) begin() *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.calls++
	return c.current
}

func (c *channel) end(used *line, began time.Time, silence time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used.calls--
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		if used == c.current && !c.isClosed && time.Since(began) >= silence && used.answered.Before(began) {
			c.replace()
		}
	case codes.Canceled, codes.Unavailable:
	default:
		used.answered = time.Now()
	}
	if _, isRetired := c.retired[used]; isRetired && used.calls == 0 {
		delete(c.retired, used)
		_ = used.Close() // Without calls, nothing fails.
	}
}

// replace retires the current connection, unless there is no other.
func (c *channel) replace() {
	opened, err := c.open()
	if err != nil {
		return
	}
	c.retired[c.current] = struct{}{}
	c.current = &line{ClientConn: opened}
}

// Close ends all calls.
func (c *channel) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	for each := range c.retired {
		_ = each.Close()
	}
	return c.current.Close()
}
