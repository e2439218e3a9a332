// Command bench measures operations a second, one Claim and one Complete of a fresh key each, by the client and by gRPC's
// generated stub alone. It prints a line of JSON for each figure. `npm run bench -- --only P22` runs it.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Connections open, and the server's code is compiled, before a figure is taken.
const warmUp = time.Second

// operate makes one operation under a key.
type operate func(ctx context.Context, key string) error

type figure struct {
	Language            string  `json:"language"`
	Client              string  `json:"client"`
	Callers             int     `json:"callers"`
	OperationsPerSecond float64 `json:"operationsPerSecond"`
}

type settings struct {
	address, apiKey, namespace string
	callers                    []int
	measured                   time.Duration
}

func main() {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench() error {
	given, err := readSettings()
	if err != nil {
		return err
	}
	stop, err := profile(os.Getenv("BENCH_CPU_PROFILE"))
	if err != nil {
		return err
	}
	defer stop()
	for _, callers := range given.callers {
		for _, kind := range []string{"stub", "onceward"} {
			if err := measureKind(given, kind, callers); err != nil {
				return fmt.Errorf("%s with %d callers: %w", kind, callers, err)
			}
		}
	}
	return nil
}

func readSettings() (settings, error) {
	given := settings{
		address: os.Getenv("ONCEWARD_ADDRESS"), apiKey: os.Getenv("ONCEWARD_API_KEY"), namespace: os.Getenv("ONCEWARD_NAMESPACE"),
	}
	seconds, err := strconv.ParseFloat(os.Getenv("BENCH_SECONDS"), 64)
	if err != nil {
		return given, fmt.Errorf("BENCH_SECONDS: %w", err)
	}
	given.measured = time.Duration(seconds * float64(time.Second))
	for text := range strings.SplitSeq(os.Getenv("BENCH_CALLERS"), ",") {
		callers, err := strconv.Atoi(text)
		if err != nil {
			return given, fmt.Errorf("BENCH_CALLERS: %w", err)
		}
		given.callers = append(given.callers, callers)
	}
	return given, nil
}

// profile begins a profile of processor time, if it has a file, and returns how to end it.
func profile(path string) (func(), error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(file)
}

func measureKind(given settings, kind string, callers int) error {
	operation, end, err := given.connect(kind)
	if err != nil {
		return err
	}
	perSecond, err := measure(callers, given.measured, operation)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figure{"go", kind, callers, perSecond})
}

// connect returns how to make an operation by the stub or the client, and how to end.
func (s settings) connect(kind string) (operate, func() error, error) {
	if kind == "stub" {
		connection, err := grpc.NewClient("dns:///"+s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, nil, err
		}
		return s.byStub(oncewardv1.NewIdempotencyServiceClient(connection)), connection.Close, nil
	}
	client, err := onceward.New("http://"+s.address, onceward.Options{APIKey: s.apiKey})
	if err != nil {
		return nil, nil, err
	}
	return s.byClient(client), func() error { return client.Close(context.Background()) }, nil
}

func (s settings) byStub(service oncewardv1.IdempotencyServiceClient) operate {
	return func(ctx context.Context, key string) error {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.apiKey)
		claim, err := service.Claim(ctx, &oncewardv1.ClaimRequest{Namespace: s.namespace, Key: key, ClaimId: key})
		if err != nil {
			return err
		}
		_, err = service.Complete(ctx, &oncewardv1.CompleteRequest{
			Namespace: s.namespace, Key: key, FencingToken: claim.GetClaimed().GetFencingToken(),
			Result: &oncewardv1.Result{Kind: oncewardv1.Result_KIND_SUCCESS, Payload: []byte("null"), ContentType: "application/json"},
		})
		return err
	}
}

func (s settings) byClient(client *onceward.Client) operate {
	return func(ctx context.Context, key string) error {
		_, err := onceward.Run(ctx, client, onceward.Operation{Namespace: s.namespace, Key: key},
			func(context.Context, *onceward.Claim) (any, error) { return nil, nil })
		return err
	}
}

// measure has callers make operations one after another, and returns how many ended per second after the warm-up. The first
// failure ends it.
func measure(callers int, measured time.Duration, operation operate) (float64, error) {
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	var done atomic.Int64
	var stopped atomic.Bool
	var running sync.WaitGroup
	prefix := rand.Text()
	for caller := range callers {
		running.Go(func() {
			for i := 0; !stopped.Load(); i++ {
				if err := operation(ctx, fmt.Sprintf("%s-%04d-%010d", prefix, caller, i)); err != nil {
					fail(err)
					return
				}
				done.Add(1)
			}
		})
	}
	pause(ctx, warmUp)
	before, start := done.Load(), time.Now()
	pause(ctx, measured)
	perSecond := float64(done.Load()-before) / time.Since(start).Seconds()
	stopped.Store(true)
	running.Wait()
	return perSecond, context.Cause(ctx)
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}
