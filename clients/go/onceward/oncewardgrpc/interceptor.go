// Package oncewardgrpc guards unary methods of grpc-go servers: one effect and one answer for all calls with one idempotency key.
//
//	guard, err := oncewardgrpc.UnaryServerInterceptor(client, oncewardgrpc.Options{
//		Namespace: "charges",
//		Methods:   []string{shopv1.Charges_CreateCharge_FullMethodName},
//		Caller:    func(ctx context.Context, _ proto.Message) string { return accountOf(ctx) },
//	})
//	server := grpc.NewServer(grpc.UnaryInterceptor(guard))
//
// Within the method, onceward.ClaimFromContext(ctx) has the claim, for derived keys.
package oncewardgrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Options say how calls are guarded. Namespace, Methods and Caller are required.
type Options struct {
	// See onceward.Operation.
	Namespace     string
	Lease         time.Duration
	Timeout       time.Duration
	Owner         string
	OnUnavailable onceward.OnUnavailable
	OnError       onceward.OnError
	MarksBegin    bool
	// The full names of the guarded methods, such as "/shop.v1.Charges/CreateCharge"; calls of others pass.
	Methods []string
	// Returns the caller, as the server authenticated it: an account's id, never a secret. Each caller has its own keys; otherwise
	// one caller could get another's response. If all callers may see everything, return a constant. Must not be empty.
	Caller func(ctx context.Context, request proto.Message) string
	// Whether a call without a key passes, unguarded. Default: it fails with INVALID_ARGUMENT.
	KeyOptional bool
	// How long a call waits for another one with its key before it fails with ABORTED. Default: not at all.
	Wait time.Duration
	// Finds out what became of an earlier attempt; onceward.Happened takes the response message. See onceward.Operation.
	Resolve func(ctx context.Context, claim *onceward.Claim, request proto.Message) (onceward.Resolution, error)
	// Returns the call's identity, as onceward.Fingerprint takes it. Default: the request message.
	Fingerprint func(ctx context.Context, request proto.Message) any
	// Returns whether an error with this code is the operation's outcome, to be replayed. Default: INVALID_ARGUMENT, NOT_FOUND,
	// ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION and OUT_OF_RANGE: they refuse the request itself. An error of another
	// guard or of the service (its ErrorInfo has the domain "onceward") is never stored.
	Stores func(codes.Code) bool
	// Stores of a response only that it was made, such as of a secret that is shown once; duplicates fail with ALREADY_EXISTS.
	StoresMark bool
	// Gets errors that concern the server's owner, such as a bad credential; the call fails with INTERNAL. Default: slog.Default().
	Logger *slog.Logger
}

const (
	keyHeader      = "idempotency-key"
	replayedHeader = "idempotency-replayed"
	requestIDField = "request_id"
)

// UnaryServerInterceptor returns an interceptor. Fails with onceward.ErrInvalidRequest for options that would guard nothing, and
// for a method that no imported package has.
//
//   - The key comes in the metadata idempotency-key, or else in the request's field request_id (AIP-155), and counts per caller
//     and method.
//   - The first call runs the method; its response is stored before it is sent. Every later call with the key gets that message,
//     with the header "idempotency-replayed: true". Other headers and trailers are only sent the first time.
//   - Errors with a code that Stores accepts are stored as well, with their details. CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, and
//     UNAVAILABLE without RetryInfo, as of a call that was cut, leave the claim to the namespace's policy. After any other error it
//     ends as after an error of a run, except that an *onceward.TerminalError counts as any other. A method that can't know whether
//     it had its effect returns an *onceward.OutcomeUnknownError, which may wrap an error with a code: the caller gets that.
//   - While the first call runs, another one fails with ABORTED and RetryInfo. With the key of a different request, or of a call
//     that may have had its effect: FAILED_PRECONDITION. If the response is no longer available: ALREADY_EXISTS. If the service is
//     unreachable, nothing runs: UNAVAILABLE with RetryInfo. Each has an ErrorInfo of the domain "onceward" with the reason.
//   - A caller that leaves does not end the method's context: its response is stored for the repeat. The caller's deadline does.
func UnaryServerInterceptor(client *onceward.Client, options Options) (grpc.UnaryServerInterceptor, error) {
	guarded, err := newGuard(client, options)
	if err != nil {
		return nil, err
	}
	return guarded.intercept, nil
}

type guard struct {
	Options
	client *onceward.Client
	// The response of each guarded method.
	responses map[string]protoreflect.MessageType
}

func newGuard(client *onceward.Client, options Options) (*guard, error) {
	made := &guard{Options: options, client: client, responses: map[string]protoreflect.MessageType{}}
	if options.Caller == nil {
		return nil, refused("Caller", "must be set")
	}
	if len(options.Methods) == 0 {
		return nil, refused("Methods", "must name a method; without one, nothing is guarded")
	}
	for _, method := range options.Methods {
		response, err := responseOf(method)
		if err != nil {
			return nil, refused("Methods", fmt.Sprintf("must name unary methods such as \"/shop.v1.Charges/CreateCharge\": %v", err))
		}
		made.responses[method] = response
	}
	if made.Stores == nil {
		made.Stores = isOutcome
	}
	if made.Logger == nil {
		made.Logger = slog.Default()
	}
	return made, nil
}

func responseOf(method string) (protoreflect.MessageType, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", method, err)
	}
	descriptor, isMethod := found.(protoreflect.MethodDescriptor)
	if !isMethod || descriptor.IsStreamingClient() || descriptor.IsStreamingServer() {
		return nil, fmt.Errorf("%q is not a unary method", method)
	}
	return protoregistry.GlobalTypes.FindMessageByName(descriptor.Output().FullName())
}

func (g *guard) intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	response, isGuarded := g.responses[info.FullMethod]
	message, isMessage := request.(proto.Message)
	if !isGuarded || !isMessage {
		return handler(ctx, request)
	}
	sent := keyOf(ctx, message)
	if sent == "" && g.KeyOptional {
		return handler(ctx, request)
	}
	operation, err := g.operation(ctx, message, info.FullMethod, sent)
	if err != nil {
		return nil, err
	}
	operation.Codec = messageCodec{response: response}
	var own error
	called := false
	outliving := context.WithoutCancel(ctx)
	if deadline, has := ctx.Deadline(); has {
		var end context.CancelFunc
		outliving, end = context.WithDeadline(outliving, deadline)
		defer end()
	}
	result, err := onceward.RunDetailed(outliving, g.client, operation,
		func(ctx context.Context, _ *onceward.Claim) (proto.Message, error) {
			called = true
			answer, err := handler(ctx, request)
			if err != nil {
				own = ownError(err)
				return nil, g.stored(err)
			}
			answered, isMessage := answer.(proto.Message)
			if !isMessage {
				own = status.Errorf(codes.Internal, "a %T is not a message", answer)
				return nil, own
			}
			return answered, nil
		})
	if !called {
		return g.withoutCall(ctx, result, err)
	}
	// This caller gets the method's outcome even if it could not be stored for repeats.
	var lost *onceward.CompletionError
	switch {
	case own != nil:
		return nil, own
	case errors.As(err, &lost):
		return lost.Effect.Value, nil
	case err != nil:
		// The method marked its claim, and returned a message.
		return nil, ambiguous(onceward.ErrAmbiguous)
	default:
		return result.Value, nil
	}
}

// operation returns the operation of a call, or the error with which it is refused.
func (g *guard) operation(ctx context.Context, request proto.Message, method, sent string) (onceward.Operation, error) {
	key, valid := onceward.ParseIdempotencyKey(sent)
	switch {
	case sent == "":
		return onceward.Operation{}, refusal(codes.InvalidArgument, onceward.ErrInvalidRequest, "This call requires an idempotency key.")
	case !valid:
		return onceward.Operation{}, refusal(codes.InvalidArgument, onceward.ErrInvalidRequest, "The idempotency key is malformed.")
	}
	caller := g.Caller(ctx, request)
	joined, err := onceward.JoinKey(method, caller, key)
	if err != nil || caller == "" {
		return onceward.Operation{}, g.unguardable(ctx, errors.New("oncewardgrpc: Caller must return a text that is not empty"))
	}
	operation := onceward.Operation{
		Namespace: g.Namespace, Key: joined, Lease: g.Lease, Timeout: g.Timeout, Owner: g.Owner, Wait: g.Wait,
		OnUnavailable: g.OnUnavailable, OnError: g.OnError, MarksBegin: g.MarksBegin, StoresMark: g.StoresMark,
		// The codes alone decide.
		IsTerminal: func(error) bool { return false },
	}
	operation.KeyCreatedAt, _ = onceward.KeyTime(key)
	if g.Resolve != nil {
		operation.Resolve = func(ctx context.Context, claim *onceward.Claim) (onceward.Resolution, error) {
			return g.Resolve(ctx, claim, request)
		}
	}
	if g.Wait == 0 {
		operation.OnInProgress = onceward.FailInProgress
	}
	var identity any
	if g.Fingerprint != nil {
		identity = g.Fingerprint(ctx, request)
	} else if identity, err = messageIdentity(request); err != nil {
		return operation, g.unguardable(ctx, err)
	}
	if operation.Fingerprint, err = onceward.Fingerprint(identity); err != nil {
		return operation, refusal(codes.InvalidArgument, onceward.ErrInvalidRequest, "The request can't be identified.")
	}
	return operation, nil
}

// withoutCall returns the answer to a call whose method was not called: a stored response or failure, or a refusal.
func (g *guard) withoutCall(ctx context.Context, result onceward.Result[proto.Message], err error) (any, error) {
	var terminal *onceward.TerminalError
	if err == nil || errors.As(err, &terminal) {
		// Fails only after the header was sent, which no one has done.
		_ = grpc.SetHeader(ctx, metadata.Pairs(replayedHeader, "true"))
	}
	switch {
	case err == nil:
		return result.Value, nil
	case terminal != nil:
		if stored := storedFailure(terminal); stored != nil {
			return nil, stored
		}
		return nil, g.unguardable(ctx, err)
	default:
		if refused := refusalOf(err); refused != nil {
			return nil, refused
		}
		return nil, g.unguardable(ctx, err)
	}
}

func (g *guard) unguardable(ctx context.Context, err error) error {
	g.Logger.ErrorContext(ctx, "A call could not be guarded", slog.Any("error", err))
	return refusal(codes.Internal, onceward.ErrInternal, "The call could not be guarded.")
}

// keyOf returns the key as it was sent; "" if there is none.
func keyOf(ctx context.Context, request proto.Message) string {
	if sent := metadata.ValueFromIncomingContext(ctx, keyHeader); len(sent) > 0 {
		return strings.Join(sent, ",")
	}
	message := request.ProtoReflect()
	field := message.Descriptor().Fields().ByName(requestIDField)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return message.Get(field).String()
}

// messageIdentity returns the message as JSON, whose members are sorted: the entries of a map have no order.
func messageIdentity(request proto.Message) (any, error) {
	if text, err := protojson.Marshal(request); err == nil {
		return json.RawMessage(text), nil
	}
	// A google.protobuf.Any of an unknown type has no JSON.
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	return string(text), err
}

// messageCodec stores messages, and restores those of one type.
type messageCodec struct{ response protoreflect.MessageType }

func (messageCodec) Encode(value any) (onceward.Encoded, error) {
	return onceward.ProtoCodec{}.Encode(value)
}

func (c messageCodec) Decode(stored onceward.Encoded, into any) error {
	message := c.response.New().Interface()
	if err := (onceward.ProtoCodec{}).DecodeMessage(stored, message); err != nil {
		return err
	}
	*into.(*proto.Message) = message
	return nil
}

func isOutcome(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition, codes.OutOfRange:
		return true
	default:
		return false
	}
}
