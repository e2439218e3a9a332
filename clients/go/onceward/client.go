package onceward

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Options configure a client. APIKey or Token is required; Owner, Wait, Timeout, IsTerminal, OnError and DescribeError are
// defaults of its operations.
type Options struct {
	// The credential of every call.
	APIKey string
	// Returns the credential of a call, in place of APIKey: for tokens that expire. Called for every RPC, by many goroutines, and
	// once more if the service refuses the token (ErrCredentialInvalid).
	Token func(context.Context) (string, error)
	// Used for an address with "https:". Default: the authorities of the system.
	TLS *tls.Config
	// See Operation. Default of Owner: host name and process id.
	Owner         string
	Wait          time.Duration
	Timeout       time.Duration
	IsTerminal    func(error) bool
	OnError       OnError
	DescribeError func(error) string
	// Gets a warning of a function that runs without a claim, and of a key that looks like the current time. Default:
	// slog.Default().
	Logger *slog.Logger
}

const (
	// How long functions may take to end once Close has told them to.
	closingGrace = time.Second
	// Each holds a request of at most about 1 KB, so that an outage keeps at most some 10 MB of them.
	maxBackground = 10_000
)

// Client is a client of the service. Create one per process, and share it: it connects at the first call.
type Client struct {
	calls      *calls
	options    Options
	disconnect func() error

	mu         sync.Mutex
	active     int // Runs, and releases in the background.
	background int
	isClosing  bool
	idle       []chan struct{} // Each is closed once nothing is active.
	leases     map[*lease]struct{}
}

// New returns a client of the service at an address such as "http://localhost:50051"; with "https:", over TLS; or at a Unix socket,
// "unix:/run/onceward/onceward.sock". Several replicas are separated by commas, "http://a:50051,http://b:50051": calls go to each in
// turn, but for those that can't be reached, which are tried again beside the calls. Nothing is connected yet.
//
// Fails with ErrInvalidRequest for an invalid address or option.
func New(address string, options Options) (*Client, error) {
	replicas, encrypted, refused := parseAddresses(address)
	if refused == nil && (options.APIKey == "") == (options.Token == nil) {
		refused = invalidRequest(Violation{"APIKey", "or Token must be set, and not both"})
	}
	if refused == nil && strings.ContainsFunc(options.APIKey, func(each rune) bool { return each <= ' ' || each > '~' }) {
		refused = invalidRequest(Violation{"APIKey", "must be an API key (ow_…), visible ASCII without spaces"})
	}
	if refused != nil {
		return nil, refused
	}
	connection, err := newHomes(replicas, encrypted, options)
	if err != nil {
		return nil, &Error{Reason: ErrInvalidRequest, Message: err.Error(), cause: err}
	}
	client, err := NewWithConn(connection, options)
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	client.disconnect = connection.Close
	return client, nil
}

// NewWithConn returns a client that makes its calls on a connection of the caller, which adds the credential and is closed by the
// caller. Of the options, APIKey, Token and TLS do nothing.
func NewWithConn(connection grpc.ClientConnInterface, options Options) (*Client, error) {
	if options.Owner == "" {
		options.Owner = defaultOwner()
	}
	if violations := sharedViolations(options.Wait, options.Timeout, options.Owner, options.OnError); len(violations) > 0 {
		return nil, invalidRequest(violations...)
	}
	return &Client{
		calls:      newCalls(connection),
		options:    options,
		disconnect: func() error { return nil },
		leases:     map[*lease]struct{}{},
	}, nil
}

// Service returns the plain RPCs of the service, one attempt each, with gRPC's errors.
func (c *Client) Service() oncewardv1.IdempotencyServiceClient { return c.calls.api }

// Close refuses new runs with ErrClosed, ends at once with ErrClosed the runs that wait for another holder or for the service
// (their functions did not run), waits for running functions, and closes the connection: calls of Service in flight end with
// gRPC's Canceled. A connection of the caller (NewWithConn) stays open, and so do calls of Service on it.
//
// When the context ends, the contexts of running functions end with ErrClosed. Functions that end within a further second are
// still stored; the runs of functions that end later return a CompletionError.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.isClosing = true
	c.mu.Unlock()
	c.calls.beginClosing(errClosed())
	select {
	case <-c.whenIdle():
	case <-ctx.Done():
		for _, each := range c.kept() {
			each.interrupt(errClosed())
		}
		select {
		case <-c.whenIdle():
		case <-time.After(closingGrace):
		}
	}
	for _, each := range c.kept() {
		each.abandon(errClosed())
	}
	c.calls.disconnect(errClosed())
	return c.disconnect()
}

// begin notes a run, and returns true, unless the client closes.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosing {
		return false
	}
	c.active++
	return true
}

func (c *Client) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active--; c.active == 0 {
		for _, idle := range c.idle {
			close(idle)
		}
		c.idle = nil
	}
}

// inBackground does work that a closing client waits for; skips it if as much is in progress as is kept. It is called by a run.
func (c *Client) inBackground(work func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.background >= maxBackground {
		return
	}
	c.background++
	// Counted before the run ends, so that Close waits for it.
	c.active++
	go func() {
		work()
		c.mu.Lock()
		c.background--
		c.mu.Unlock()
		c.ended()
	}()
}

func (c *Client) whenIdle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := make(chan struct{})
	if c.active == 0 {
		close(idle)
	} else {
		c.idle = append(c.idle, idle)
	}
	return idle
}

func (c *Client) keep(kept *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases[kept] = struct{}{}
}

func (c *Client) forget(kept *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, kept)
}

func (c *Client) kept() []*lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make([]*lease, 0, len(c.leases))
	for each := range c.leases {
		kept = append(kept, each)
	}
	return kept
}

func (c *Client) log() *slog.Logger {
	if c.options.Logger != nil {
		return c.options.Logger
	}
	return slog.Default()
}

// defaultOwner returns the name of this process as a holder.
func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return truncateUTF8(fmt.Sprintf("%s/%d", host, os.Getpid()), limits.MaxOwnerBytes)
}
