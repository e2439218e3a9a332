package onceward

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
)

// More than a tenant leaves in one client's life: answers open no more connections.
const maxFollowed = 4

// homes makes calls at the home of the client's tenant. A call that is refused because the tenant has moved, with its new address, is
// made there at once, and so are later calls, until that home gives no answer.
//
// Only the scheme of the configured addresses is followed: never from TLS to plain text, and never from or to a socket. A call asks no
// home twice, so that homes that name each other end it. An address at which the tenant is not known, or no service is, leaves the old
// home's refusal in force, which is retried.
type homes struct {
	open       func(replicas) (*channel, error)
	encrypted  bool
	configured *channel

	mu      sync.Mutex
	current *channel
	// By the addresses of their replicas.
	known    map[string]*channel
	followed []*channel
}

func newHomes(configured replicas, encrypted bool, options Options) (*homes, error) {
	open := func(to replicas) (*channel, error) {
		return newChannel(func() (*grpc.ClientConn, error) { return connect(to, encrypted, options) })
	}
	first, err := open(configured)
	known := map[string]*channel{}
	for _, each := range configured {
		known[each] = first
	}
	return &homes{open: open, encrypted: encrypted, configured: first, current: first, known: known}, err
}

// Invoke implements grpc.ClientConnInterface.
func (h *homes) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	var refusal error
	home := h.move(nil, nil)
	for asked := []*channel{home}; ; asked = append(asked, home) {
		err := home.Invoke(ctx, method, request, reply, options...)
		if err == nil {
			h.move(asked[0], home)
			return nil
		}
		failed := errorFromCall(err)
		isLost := failed.Reason == ErrNoAnswer && !errors.Is(ctx.Err(), context.Canceled)
		isUnknown := failed.Reason == ErrCredentialInvalid || (isLost && !failed.IsRetryable())
		if isLost || isUnknown {
			h.move(home, h.configured)
		}
		var next *channel
		switch {
		case isUnknown && refusal != nil:
			return refusal
		case isUnknown:
			next = h.configured
		case failed.Reason == ErrTenantMoving:
			next, refusal = h.at(failed.Metadata["address"]), err
		}
		if next == nil || slices.Contains(asked, next) {
			return err
		}
		home = next
	}
}

// NewStream implements grpc.ClientConnInterface.
func (h *homes) NewStream(
	ctx context.Context, description *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return h.move(nil, nil).NewStream(ctx, description, method, options...)
}

// move has later calls made at another home, if they are made at this one. Returns the home of later calls.
func (h *homes) move(from, to *channel) *channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == from {
		h.current = to
	}
	return h.current
}

// at returns the home at an address; nil if it is not followed.
func (h *homes) at(address string) *channel {
	target, encrypted, refused := parseAddress(address)
	h.mu.Lock()
	defer h.mu.Unlock()
	isSocket := strings.HasPrefix(target, "unix:")
	for each := range h.known {
		isSocket = isSocket || strings.HasPrefix(each, "unix:")
	}
	if refused != nil || encrypted != h.encrypted || isSocket {
		return nil
	}
	if h.known[target] == nil && len(h.followed) < maxFollowed {
		if opened, err := h.open(replicas{target}); err == nil {
			h.known[target], h.followed = opened, append(h.followed, opened)
		}
	}
	return h.known[target]
}

// Close ends all calls.
func (h *homes) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, each := range h.followed {
		_ = each.Close()
	}
	return h.configured.Close()
}
