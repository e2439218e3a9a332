package onceward

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

const (
	// The least time of gRPC between the pings that find a connection whose other end is down.
	pingInterval = 10 * time.Second
	pingTimeout  = 5 * time.Second
	// Calls go to each replica in turn that has a connection.
	inTurn = `{"loadBalancingConfig": [{"round_robin": {}}]}`
)

// A path has none of the characters that a URL reads otherwise, so that every language's client means the same file.
var socketAddress = regexp.MustCompile(`^unix:(?://)?(/[^/?#%][^?#%]*)$`)

// connect returns a connection to the replicas, which is opened by its first call.
func connect(replicas replicas, encrypted bool, options Options) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if encrypted {
		transport = credentials.NewTLS(options.TLS)
	}
	settings := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUnaryInterceptor(authorize(options)),
		grpc.WithUserAgent("onceward-go/" + Version),
		// The client retries automatically, under one claim id and within one timeout.
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: attemptTimeout,
		}),
		// Otherwise a call that waits for another holder waits at a host that is down until TCP gives up, after a quarter of an hour.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}),
	}
	if len(replicas) == 1 {
		if strings.HasPrefix(replicas[0], "unix:") {
			return grpc.NewClient(replicas[0], settings...)
		}
		return grpc.NewClient("dns:///"+replicas[0], settings...)
	}
	settings = append(settings, grpc.WithResolvers(replicas), grpc.WithDefaultServiceConfig(inTurn))
	return grpc.NewClient(replicas.Scheme()+":///", settings...)
}

// replicas are hosts with ports, as a resolver of gRPC that knows them all.
type replicas []string

func (replicas) Scheme() string { return "onceward" }

func (r replicas) Build(_ resolver.Target, connection resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	known := make([]resolver.Endpoint, len(r))
	for i, each := range r {
		name := each // That of the certificate.
		if strings.HasPrefix(each, "unix:") {
			name = "localhost" // A path is not a name that HTTP/2 accepts.
		}
		known[i].Addresses = []resolver.Address{{Addr: each, ServerName: name}}
	}
	return neverChanging{}, connection.UpdateState(resolver.State{Endpoints: known})
}

type neverChanging struct{}

func (neverChanging) ResolveNow(resolver.ResolveNowOptions) {}
func (neverChanging) Close()                                {}

// parseAddresses returns the replicas of URLs that are separated by commas, and whether their connections are encrypted.
func parseAddresses(addresses string) (found replicas, encrypted bool, refused *Error) {
	for i, address := range strings.Split(addresses, ",") {
		target, isEncrypted, refused := parseAddress(strings.TrimSpace(address))
		switch {
		case refused != nil:
			return nil, false, refused
		case i > 0 && isEncrypted != encrypted:
			return nil, false, invalidRequest(Violation{"address", "must have either \"http:\" or \"https:\" in all URLs"})
		}
		found, encrypted = append(found, target), isEncrypted
	}
	return found, encrypted, nil
}

// parseAddress returns the host and port of a URL, or a Unix socket, and whether its connection is encrypted.
func parseAddress(address string) (target string, encrypted bool, refused *Error) {
	if path := socketAddress.FindStringSubmatch(address); path != nil {
		return "unix:" + path[1], false, nil
	}
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" {
		description := fmt.Sprintf("must be a URL such as \"http://localhost:50051\", or \"unix:\" and an absolute path without ?, # and %%, is %q", truncateUTF8(address, 256))
		return "", false, invalidRequest(Violation{"address", description})
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" || (parsed.Path != "" && parsed.Path != "/") {
		return "", false, invalidRequest(Violation{"address", "must have a host and a port only"})
	}
	encrypted = parsed.Scheme == "https"
	port := parsed.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[encrypted]
	}
	return net.JoinHostPort(parsed.Hostname(), port), encrypted, nil
}

// authorize returns an interceptor that adds the credential to each call. If the service refuses a token, or a proxy that checks tokens
// and has no reason of the service, makes the call again with another one, if the source has another.
func authorize(options Options) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
		invoke grpc.UnaryInvoker, callOptions ...grpc.CallOption,
	) error {
		call := func(credential string) error {
			ctx := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+credential)
			return invoke(ctx, method, request, reply, connection, callOptions...)
		}
		if options.Token == nil {
			return call(options.APIKey)
		}
		token, unavailable := options.token(ctx)
		if unavailable != nil {
			return unavailable
		}
		err := call(token)
		if status.Code(err) != codes.Unauthenticated {
			return err
		}
		renewed, unavailable := options.token(ctx)
		if unavailable != nil {
			return unavailable
		}
		if renewed == token {
			return err
		}
		return call(renewed)
	}
}

// token asks the source. Its failure may pass: calls are retried.
func (o *Options) token(ctx context.Context) (string, error) {
	token, err := o.Token(ctx)
	if err != nil {
		message := "The function Token failed: " + err.Error()
		return "", &Error{Reason: ErrTokenUnavailable, Code: codes.Unavailable, Message: message, cause: err}
	}
	return token, nil
}
