// Package oncewardconnect guards unary methods of connect-go servers: one effect and one answer for all calls with one idempotency
// key, over each protocol of Connect.
//
//	guard, err := oncewardconnect.Interceptor(client, oncewardgrpc.Options{
//		Namespace: "charges",
//		Methods:   []string{shopv1connect.ChargesCreateChargeProcedure},
//		Caller:    func(ctx context.Context, _ proto.Message) string { return accountOf(ctx) },
//	})
//	mux.Handle(shopv1connect.NewChargesHandler(charges, connect.WithInterceptors(guard)))
//
// Within the method, onceward.ClaimFromContext(ctx) has the claim, for derived keys.
package oncewardconnect

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	typePrefix     = "type.googleapis.com/"
)

// Interceptor returns an interceptor for handlers, with the options and the promises of oncewardgrpc.UnaryServerInterceptor: keys,
// stored messages and refusals are the same, so that a method can be served by both. Calls of clients, and streams, pass.
//
// Fails with onceward.ErrInvalidRequest for options that would guard nothing, and for a method that no imported package has.
func Interceptor(client *onceward.Client, options oncewardgrpc.Options) (connect.Interceptor, error) {
	guard, err := oncewardgrpc.UnaryServerInterceptor(client, options)
	if err != nil {
		return nil, err
	}
	return interceptor{guard}, nil
}

type interceptor struct{ guard grpc.UnaryServerInterceptor }

func (interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if request.Spec().IsClient {
			return next(ctx, request)
		}
		var response connect.AnyResponse
		var own error
		called := false
		// The guard reads the key from gRPC's metadata, and marks a replay in gRPC's header. The method gets its own context back.
		marks := &marks{method: request.Spec().Procedure}
		guarded := grpc.NewContextWithServerTransportStream(ctx, marks)
		guarded = metadata.NewIncomingContext(guarded, keyOf(request.Header()))
		info := &grpc.UnaryServerInfo{FullMethod: request.Spec().Procedure}
		answer, err := i.guard(guarded, request.Any(), info, func(ctx context.Context, _ any) (any, error) {
			called = true
			response, own = next(ctx, request)
			if own != nil {
				return nil, statusOf(own)
			}
			return response.Any(), nil
		})
		switch {
		case called && own != nil:
			return nil, own
		case called && err == nil:
			return response, nil
		case err != nil:
			return nil, errorOf(err, marks.isReplay)
		default:
			return replayOf(answer), nil
		}
	}
}

func keyOf(header http.Header) metadata.MD {
	sent := metadata.MD{}
	if keys := header.Values(keyHeader); len(keys) > 0 {
		sent.Set(keyHeader, keys...)
	}
	return sent
}

// marks notes whether the guard marks its answer as a replay.
type marks struct {
	method   string
	isReplay bool
}

func (m *marks) Method() string { return m.method }

func (m *marks) SetHeader(header metadata.MD) error {
	m.isReplay = m.isReplay || len(header.Get(replayedHeader)) > 0
	return nil
}

func (m *marks) SendHeader(header metadata.MD) error { return m.SetHeader(header) }

func (m *marks) SetTrailer(metadata.MD) error { return nil }

// replay is a response with a message that was stored, whose type the handler's codec reads from the message.
type replay struct {
	connect.AnyResponse
	message any
}

func (r replay) Any() any { return r.message }

func replayOf(message any) connect.AnyResponse {
	response := connect.NewResponse(&emptypb.Empty{})
	response.Header().Set(replayedHeader, "true")
	return replay{response, message}
}

// coded is a method's error with its code in the form of gRPC.
type coded struct {
	error
	status *status.Status
}

func (c coded) GRPCStatus() *status.Status { return c.status }
func (c coded) Unwrap() error              { return c.error }

// statusOf returns a method's error as one of gRPC, which the guard stores with its details.
func statusOf(err error) error {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	made := &rpcstatus.Status{Code: int32(failed.Code()), Message: failed.Message()}
	for _, detail := range failed.Details() {
		made.Details = append(made.Details, &anypb.Any{TypeUrl: typePrefix + detail.Type(), Value: detail.Bytes()})
	}
	return coded{err, status.FromProto(made)}
}

// errorOf returns an error of gRPC as one of Connect.
func errorOf(err error, isReplay bool) error {
	failed := status.Convert(err)
	if failed.Code() == codes.OK {
		return err
	}
	made := connect.NewError(connect.Code(failed.Code()), errors.New(failed.Message()))
	for _, detail := range failed.Proto().GetDetails() {
		// Fails for a message that can't be marshalled, which an Any can.
		if attached, err := connect.NewErrorDetail(detail); err == nil {
			made.AddDetail(attached)
		}
	}
	if isReplay {
		made.Meta().Set(replayedHeader, "true")
	}
	return made
}
