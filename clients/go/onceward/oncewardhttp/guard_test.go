package oncewardhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

type api struct {
	*oncewardtest.Service
	url   string
	calls atomic.Int32
	// The contexts of requests as the server made them.
	received chan context.Context
	// Returns the context that requests have at the guard.
	context func(context.Context) context.Context
	handler http.Handler
}

// start serves a guarded handler at POST /charges/{id}.
func start(t *testing.T, options oncewardhttp.Options, handler http.HandlerFunc, policy ...oncewardtest.Policy) *api {
	t.Helper()
	var settings oncewardtest.Options
	for _, each := range policy {
		settings.Policy = each
	}
	made := &api{Service: oncewardtest.New(t, settings), received: make(chan context.Context, 100)}
	made.context = func(ctx context.Context) context.Context { return ctx }
	options.Namespace = "charges"
	options.Caller = func(r *http.Request) string { return r.Header.Get("Account") }
	options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	guard, err := oncewardhttp.New(made.Client, options)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/charges/{id}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.calls.Add(1)
		handler(w, r)
	})))
	made.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.received <- r.Context()
		mux.ServeHTTP(w, r.WithContext(made.context(r.Context())))
	})
	server := httptest.NewServer(made.handler)
	t.Cleanup(server.Close)
	made.url = server.URL
	return made
}

type answer struct {
	status int
	header http.Header
	body   string
}

// recordKey is the key of the record of account a's request with the key k-1.
const recordKey = "POST:/charges/{id}:a:k-1"

// requestWith returns a request of account a with the key k-1, to be sent or served.
func requestWith(ctx context.Context, method, url, body string) *http.Request {
	request := httptest.NewRequestWithContext(ctx, method, url+"/charges/1", strings.NewReader(body))
	request.RequestURI = "" // As a client needs it.
	request.Header.Set("Account", "a")
	request.Header.Set("Idempotency-Key", "k-1")
	return request
}

func (a *api) post(t *testing.T, account, key, body string) answer {
	t.Helper()
	request := requestWith(t.Context(), http.MethodPost, a.url, body)
	request.Header.Set("Account", account)
	request.Header.Set("Idempotency-Key", key)
	if key == "" {
		request.Header.Del("Idempotency-Key")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(read)}
}

func created(w http.ResponseWriter, r *http.Request) {
	claim, _ := onceward.ClaimFromContext(r.Context())
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/charges/1")
	w.Header().Set("Set-Cookie", "session=1")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"body":%q,"attempt":%d}`, body, claim.Attempt)
}

func TestARepeatGetsTheFirstResponseWithoutItsCookies(t *testing.T) {
	api := start(t, oncewardhttp.Options{}, created)
	first := api.post(t, "a", `"k-1"`, "10")
	second := api.post(t, "a", "k-1", "10")
	if api.calls.Load() != 1 || first.status != 201 || second.status != 201 || first.body != second.body {
		t.Errorf("%d calls; %v; %v", api.calls.Load(), first, second)
	}
	if first.header.Get("Set-Cookie") == "" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the first response has %v", first.header)
	}
	replayed := second.header
	if replayed.Get("Location") != "/charges/1" || replayed.Get("Set-Cookie") != "" || replayed.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the second response has %v", replayed)
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	api := start(t, oncewardhttp.Options{MaxBodyBytes: 10}, created)
	if refused := api.post(t, "a", "k-1", strings.Repeat("x", 11)); refused.status != 413 {
		t.Errorf("it got %v", refused)
	}
}

func TestAResponseThatIsNoOutcomeReleasesTheClaimOrLeavesItToThePolicy(t *testing.T) {
	timeLimit := http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		time.Millisecond, "too slow").ServeHTTP
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	overloaded := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(503)
	}
	cutShort := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "10") }
	money, marks := oncewardhttp.Options{OnError: onceward.UnknownOnError}, oncewardhttp.Options{MarksBegin: true}
	panics := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	exits := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		runtime.Goexit()
	}
	begun := func(handler http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			claim, _ := onceward.ClaimFromContext(r.Context())
			if err := claim.Begin(r.Context()); err != nil {
				t.Error(err)
			}
			handler(w, r)
		}
	}
	neither := oncewardhttp.Options{Stores: func(response oncewardhttp.Response) oncewardhttp.Verdict {
		if strings.Contains(string(response.Body), "errors") {
			return oncewardhttp.Unknown
		}
		return oncewardhttp.Release
	}}
	body := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	const released, unknown = oncewardv1.Record_STATE_RELEASED, oncewardv1.Record_STATE_IN_PROGRESS
	for name, each := range map[string]struct {
		options oncewardhttp.Options
		handler http.HandlerFunc
		status  int
		want    oncewardv1.Record_State
	}{
		"500":                                  {oncewardhttp.Options{}, status(500), 500, released},
		"502":                                  {oncewardhttp.Options{}, status(502), 502, unknown},
		"504":                                  {oncewardhttp.Options{}, status(504), 504, unknown},
		"503":                                  {oncewardhttp.Options{}, status(503), 503, unknown},
		"503 with Retry-After":                 {oncewardhttp.Options{}, overloaded, 503, released},
		"http.TimeoutHandler":                  {oncewardhttp.Options{}, timeLimit, 503, unknown},
		"401":                                  {oncewardhttp.Options{}, status(401), 401, released},
		"500 under UnknownOnError":             {money, status(500), 500, unknown},
		"503 with Retry-After under it":        {money, overloaded, 503, unknown},
		"429 under it":                         {money, status(429), 429, released},
		"a response that Stores releases":      {neither, body(`{}`), 200, released},
		"a response that Stores calls unknown": {neither, body(`{"errors":[]}`), 200, unknown},
		"a response that was cut short":        {oncewardhttp.Options{}, cutShort, 0, unknown},
		"504 before Begin":                     {marks, status(504), 504, released},
		"504 after Begin":                      {marks, begun(status(504)), 504, unknown},
		"a panic":                              {oncewardhttp.Options{}, panics, 0, unknown},
		"runtime.Goexit":                       {oncewardhttp.Options{}, exits, 0, unknown},
		"a panic before Begin":                 {marks, panics, 0, released},
		"a panic after Begin":                  {marks, begun(panics), 0, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			api := start(t, each.options, each.handler)
			response, err := http.DefaultClient.Do(requestWith(t.Context(), http.MethodPost, api.url, ""))
			if err == nil {
				defer response.Body.Close()
				_, err = io.ReadAll(response.Body)
			}
			if (err == nil) != (each.status != 0) || (err == nil && response.StatusCode != each.status) {
				t.Errorf("the client got %v, %v", response, err)
			}
			api.expectState(t, each.want)
		})
	}
}

func (a *api) expectState(t *testing.T, want oncewardv1.Record_State) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		state := a.Record("charges", recordKey).GetState()
		if state == want {
			return
		}
		if state != oncewardv1.Record_STATE_IN_PROGRESS || time.Now().After(deadline) {
			t.Fatalf("the record is %v, not %v", state, want)
		}
	}
}

func TestTheHandlerHasTheDeadlineOfItsRequest(t *testing.T) {
	deadline := time.Now().Add(time.Second)
	api := start(t, oncewardhttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if got, has := r.Context().Deadline(); !has || !got.Equal(deadline) {
			t.Errorf("the handler's deadline is %v", got)
		}
		<-r.Context().Done()
		http.Error(w, r.Context().Err().Error(), http.StatusInternalServerError)
	})
	api.context = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		t.Cleanup(cancel)
		return ctx
	}
	if got := api.post(t, "a", "k-1", ""); got.status != 500 {
		t.Errorf("it got %v", got)
	}
	api.expectState(t, oncewardv1.Record_STATE_IN_PROGRESS)
}

func TestARepeatOfHEADHasNoBody(t *testing.T) {
	api := start(t, oncewardhttp.Options{Methods: []string{"HEAD"}}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "body")
	})
	for range 2 {
		response := httptest.NewRecorder()
		api.handler.ServeHTTP(response, requestWith(t.Context(), http.MethodHead, "", ""))
		if response.Code != 200 || response.Body.Len() > 0 {
			t.Errorf("it got %d, %q", response.Code, response.Body)
		}
	}
	if api.calls.Load() != 1 {
		t.Errorf("%d calls", api.calls.Load())
	}
}

func TestAHandlerThatCannotKnowItsOutcomeLeavesItsClaimToThePolicy(t *testing.T) {
	timesOut := func(w http.ResponseWriter, r *http.Request) {
		oncewardhttp.OutcomeUnknown(r.Context(), errors.New("the bank timed out"))
		http.Error(w, "The bank did not answer.", http.StatusGatewayTimeout)
	}
	api := start(t, oncewardhttp.Options{}, timesOut, oncewardtest.Policy{Hold: true})
	for _, want := range []string{"ambiguous", "in-progress", "ambiguous"} {
		got := api.post(t, "a", "k-1", "10")
		if got.status != 409 || !strings.Contains(got.body, "urn:onceward:problem:"+want) {
			t.Errorf("it got %v, not %s", got, want)
		}
		if want == "in-progress" {
			api.Advance(30 * time.Second)
		}
	}
	if api.calls.Load() != 1 {
		t.Errorf("%d calls", api.calls.Load())
	}
	// Where nothing is guarded, the handler's own response is sent.
	response, err := http.Get(api.url + "/charges/1")
	if err != nil || response.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("an unguarded request got %v, %v", response, err)
	}
}

func TestTheResponseThatResolveFoundIsSentAndReplayed(t *testing.T) {
	resolve := func(r *http.Request, _ *onceward.Claim) (onceward.Resolution, error) {
		header := http.Header{"Location": {r.URL.Path}, "Set-Cookie": {"session=1"}}
		return onceward.Happened(oncewardhttp.Response{Status: 201, Header: header, Body: []byte("found")}), nil
	}
	for storesMark, replay := range map[bool]int{false: 201, true: 410} {
		options := oncewardhttp.Options{Resolve: resolve, StoresMark: storesMark}
		api := start(t, options, func(_ http.ResponseWriter, r *http.Request) {
			oncewardhttp.OutcomeUnknown(r.Context(), nil)
		}, oncewardtest.Policy{Hold: true})
		api.post(t, "a", "k-1", "10")
		api.Advance(30 * time.Second)
		for _, status := range []int{201, replay} {
			got := api.post(t, "a", "k-1", "10")
			isFound := got.body == "found" && got.header.Get("Location") == "/charges/1" && got.header.Get("Set-Cookie") == ""
			if got.status != status || isFound != (status == 201) {
				t.Errorf("it got %v", got)
			}
		}
		if api.calls.Load() != 1 {
			t.Errorf("%d calls", api.calls.Load())
		}
	}
}

func TestOfAResponseBelow400AMarkIsStored(t *testing.T) {
	api := start(t, oncewardhttp.Options{StoresMark: true}, func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"k-1": http.StatusCreated, "k-2": http.StatusPaymentRequired}[r.Header.Get("Idempotency-Key")]
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "secret")
	})
	for _, want := range []struct {
		key    string
		status int
	}{{"k-1", 201}, {"k-1", 410}, {"k-2", 402}, {"k-2", 402}} {
		got := api.post(t, "a", want.key, "")
		if got.status != want.status || (got.body == "secret") != (want.status != 410) || api.calls.Load() > 2 {
			t.Errorf("%s got %v", want.key, got)
		}
	}
}

// startNested serves a handler at POST /charges/{id} with two guards; the outer one's namespace is "charges", the inner one's "nested".
func startNested(t *testing.T, handler http.HandlerFunc, policy oncewardtest.Policy) *api {
	t.Helper()
	var inner http.Handler
	api := start(t, oncewardhttp.Options{}, func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(w, r) }, policy)
	guard, err := oncewardhttp.New(api.Client, oncewardhttp.Options{
		Namespace: "nested", Caller: func(*http.Request) string { return "a" }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	inner = guard(handler)
	return api
}

func TestAGuardStoresNoRefusalOfAGuardWithinIt(t *testing.T) {
	api := startNested(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, oncewardtest.Policy{})
	released := errors.New("released")
	_, err := onceward.Run(t.Context(), api.Client, onceward.Operation{Namespace: "nested", Key: recordKey},
		func(context.Context, *onceward.Claim) (string, error) {
			for range 2 {
				if got := api.post(t, "a", "k-1", ""); got.status != 409 {
					t.Errorf("a request got %v while the inner key was in use", got)
				}
			}
			return "", released
		})
	if !errors.Is(err, released) {
		t.Fatal(err)
	}
	if got := api.post(t, "a", "k-1", ""); got.status != 201 {
		t.Errorf("a request got %v once the inner key was free", got)
	}
}

func TestGuardsWithinEachOtherLeaveTheirClaimsToThePolicy(t *testing.T) {
	timesOut := func(w http.ResponseWriter, r *http.Request) {
		oncewardhttp.OutcomeUnknown(r.Context(), errors.New("the bank timed out"))
	}
	api := startNested(t, timesOut, oncewardtest.Policy{Hold: true})
	if got := api.post(t, "a", "k-1", ""); got.status != 409 {
		t.Errorf("it got %v", got)
	}
	api.Advance(30 * time.Second)
	for _, namespace := range []string{"charges", "nested"} {
		_, err := onceward.Run(t.Context(), api.Client, onceward.Operation{Namespace: namespace, Key: recordKey},
			func(context.Context, *onceward.Claim) (string, error) { return "", nil })
		if !errors.Is(err, onceward.ErrAmbiguous) {
			t.Errorf("the claim in %s is not ambiguous: %v", namespace, err)
		}
	}
}

func TestAClientThatLeavesDoesNotEndTheHandler(t *testing.T) {
	running, disconnected := make(chan struct{}), make(chan struct{})
	api := start(t, oncewardhttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-disconnected
		if err := r.Context().Err(); err != nil {
			t.Errorf("the handler's context ended with %v", err)
		}
		w.WriteHeader(201)
	})
	ctx, leave := context.WithCancel(t.Context())
	request := requestWith(ctx, http.MethodPost, api.url, "")
	answered := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(request)
		answered <- err
	}()
	<-running
	leave()
	<-answered
	<-(<-api.received).Done() // The server has noticed.
	close(disconnected)
	for deadline := time.Now().Add(10 * time.Second); ; {
		got := api.post(t, "a", "k-1", "")
		if got.status == 201 && got.header.Get("Idempotency-Replayed") == "true" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the repeat got %v", got)
		}
	}
}

func TestAHandlerThatIsAbandonedLeavesItsClaimToThePolicy(t *testing.T) {
	running, abandoned := make(chan struct{}), make(chan error, 1)
	api := start(t, oncewardhttp.Options{AbandonAfter: time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-r.Context().Done() // As a call of the bank that gets the context.
		w.WriteHeader(http.StatusBadGateway)
		abandoned <- context.Cause(r.Context())
	}, oncewardtest.Policy{Hold: true})
	ctx, leave := context.WithCancel(t.Context())
	request := requestWith(ctx, http.MethodPost, api.url, "")
	go func() {
		<-running
		leave()
	}()
	if response, err := http.DefaultClient.Do(request); err == nil {
		t.Fatalf("a client that left got %v", response.Status)
	}
	if cause := <-abandoned; !errors.Is(cause, context.Canceled) {
		t.Errorf("the handler's context ended with %v", cause)
	}
	api.Advance(30 * time.Second)
	if got := api.post(t, "a", "k-1", ""); !strings.Contains(got.body, "urn:onceward:problem:ambiguous") {
		t.Errorf("the repeat got %v", got)
	}
}

func TestAResponseThatIsTooLargeIsSentAndThenGone(t *testing.T) {
	large := strings.Repeat("x", 2<<20)
	api := start(t, oncewardhttp.Options{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) })
	if first := api.post(t, "a", "k-1", ""); first.status != 200 || first.body != large {
		t.Errorf("the first request got %d with %d bytes", first.status, len(first.body))
	}
	if second := api.post(t, "a", "k-1", ""); second.status != 410 {
		t.Errorf("the second request got %v", second)
	}
}

func TestAResponseIsSentAlthoughTheServiceDoesNotStoreIt(t *testing.T) {
	api := start(t, oncewardhttp.Options{AnswerAfter: time.Millisecond}, created)
	for range 20 {
		api.FailNext(oncewardtest.Complete, onceward.ErrDatabaseUnavailable)
	}
	if first := api.post(t, "a", "k-1", "10"); first.status != 201 {
		t.Errorf("it got %v", first)
	}
	api.ClearFaults()
}

func TestARefusalOfTheServiceIsAProblemOrTheOwners(t *testing.T) {
	api := start(t, oncewardhttp.Options{Timeout: time.Millisecond}, created)
	for reason, status := range map[onceward.Reason]int{
		onceward.ErrDatabaseUnavailable: 503, onceward.ErrKeyTooOld: 410, onceward.ErrCredentialInvalid: 500,
	} {
		api.FailNext(oncewardtest.Claim, reason)
		if got := api.post(t, "a", string("k-"+reason), "10"); got.status != status {
			t.Errorf("%s got %v", reason, got)
		}
	}
	if refused := api.post(t, "", "k", "10"); refused.status != 500 {
		t.Errorf("a request without a caller got %v", refused)
	}
	if api.calls.Load() != 0 {
		t.Errorf("%d calls", api.calls.Load())
	}
}

func TestOptionsThatGuardNothingAreRefused(t *testing.T) {
	caller := func(*http.Request) string { return "a" }
	for name, options := range map[string]oncewardhttp.Options{
		"no caller":                     {},
		"no method":                     {Caller: caller, Methods: []string{}},
		"a misspelt method":             {Caller: caller, Methods: []string{"POTS"}},
		"a cookie":                      {Caller: caller, ReplayHeaders: []string{"Set-Cookie"}},
		"a scope of Stripe":             {Caller: caller, Profile: oncewardhttp.ProfileStripe, Operation: "refund"},
		"no header":                     {Caller: caller, Header: "Request Id"},
		"another header":                {Caller: caller, Profile: oncewardhttp.ProfileIETF, Header: "X-Request-Id"},
		"an unknown profile":            {Caller: caller, Profile: "strip"},
		"a URL that would end its link": {Caller: caller, Documentation: "https://api.example/>"},
	} {
		if _, err := oncewardhttp.New(nil, options); !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("%s got %v", name, err)
		}
	}
}

// foreign stores a response as a program that does not know the guard's options might.
type foreign struct{ onceward.JSONCodec }

func (foreign) Encode(any) (onceward.Encoded, error) {
	metadata := map[string]string{"http-status": "201", "http-header-set-cookie": "session=1", "http-header-location": "/charges/1"}
	return onceward.Encoded{Payload: []byte("null"), ContentType: "application/json", Metadata: metadata}, nil
}

func TestARecordOfAnotherProgramReplaysOnlyTheAllowedHeaders(t *testing.T) {
	api := start(t, oncewardhttp.Options{}, created)
	operation := onceward.Operation{Namespace: "charges", Key: recordKey, Codec: foreign{}}
	nothing := func(context.Context, *onceward.Claim) (any, error) { return nil, nil }
	if _, err := onceward.Run(t.Context(), api.Client, operation, nothing); err != nil {
		t.Fatal(err)
	}
	got := api.post(t, "a", "k-1", "10")
	if got.status != 201 || got.header.Get("Location") == "" || got.header.Get("Set-Cookie") != "" || api.calls.Load() != 0 {
		t.Errorf("it got %v after %d calls", got, api.calls.Load())
	}
}
