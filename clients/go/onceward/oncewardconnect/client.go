package oncewardconnect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
)

// ClientInterceptor returns an interceptor for clients, which sends the current claim's key with each unary call that needs one, as
// oncewardgrpc.UnaryClientInterceptor does. Calls of handlers, and streams, pass.
func ClientInterceptor(options oncewardgrpc.ClientOptions) connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
			spec := request.Spec()
			needed := spec.IsClient && spec.IdempotencyLevel == connect.IdempotencyUnknown
			if needed && len(request.Header().Values(keyHeader)) == 0 {
				if key := options.Key(ctx, spec.Procedure, request.Any()); key != "" {
					request.Header().Set(keyHeader, key)
				}
			}
			return next(ctx, request)
		}
	})
}
