package oncewardgrpc

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/onceward/onceward/clients/go/onceward/internal/outgoing"
)

// ClientOptions say which keys a client interceptor sends.
type ClientOptions struct {
	// Returns the name of a call among those of one claim, from which its key is derived. Default: its full method.
	Name func(ctx context.Context, method string, request any) string
}

// UnaryClientInterceptor returns an interceptor that sends the current claim's key with each unary call that needs one:
// claim.DeriveKey("/shop.v1.Charges/CreateCharge"), the same in all languages. So a repeat of the call has the same key, also in the
// next attempt after a crash, and the next service answers it without a second effect. The claim is that of the call's context.
//
//   - Calls of one method under one claim are one operation, unless Name tells them apart: the next service refuses the second one if
//     its request differs (FINGERPRINT_MISMATCH), and else answers it with the first one's response.
//   - Methods with an idempotency_level get no key, nor do calls outside of a guarded function or after its end.
//   - A key of your own in the outgoing metadata is kept.
func UnaryClientInterceptor(options ClientOptions) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
		callOptions ...grpc.CallOption,
	) error {
		sent, _ := metadata.FromOutgoingContext(ctx)
		if len(sent.Get(keyHeader)) == 0 && !isIdempotent(method) {
			if key := options.Key(ctx, method, request); key != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, keyHeader, key)
			}
		}
		return invoke(ctx, method, request, reply, connection, callOptions...)
	}
}

// Key returns the key of a call, as its header; "" without a current claim. It is for interceptors of other libraries.
func (o ClientOptions) Key(ctx context.Context, method string, request any) string {
	return outgoing.Key(ctx, func() string {
		if o.Name == nil {
			return method
		}
		return o.Name(ctx, method, request)
	})
}

// isIdempotent returns whether a method's proto file says so; one that no imported package has is not.
func isIdempotent(method string) bool {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return false
	}
	options, _ := found.Options().(*descriptorpb.MethodOptions)
	return options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}
