package oncewardhttp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
)

// refusal is what a client reads: the status, and the member of the body that names the reason.
type refusal struct {
	status int
	reason string
}

// expected is written from the sources of the guides' page "Profiles of HTTP", not from the code.
type expected struct {
	missing, otherBody, inFlight refusal
	replayed                     string
	echoes                       bool
	// What the key without its quotes is: "same", "other" or "malformed".
	bareKey      string
	comparesJSON bool
}

var expectations = map[oncewardhttp.Profile]expected{
	oncewardhttp.ProfileOnceward: {
		missing:   refusal{400, `"type":"urn:onceward:problem:key-missing"`},
		otherBody: refusal{422, `"type":"urn:onceward:problem:key-reused"`},
		inFlight:  refusal{409, `"type":"urn:onceward:problem:in-progress"`},
		replayed:  "Idempotency-Replayed", bareKey: "same",
	},
	oncewardhttp.ProfileIETF: {
		missing:   refusal{400, `"type":"urn:onceward:problem:key-missing"`},
		otherBody: refusal{422, `"type":"urn:onceward:problem:key-reused"`},
		inFlight:  refusal{409, `"type":"urn:onceward:problem:in-progress"`},
		bareKey:   "malformed",
	},
	oncewardhttp.ProfileStripe: {
		missing:   refusal{201, ""},
		otherBody: refusal{400, `{"error":{"type":"idempotency_error","message":`},
		inFlight:  refusal{409, `{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use",`},
		replayed:  "Idempotent-Replayed", bareKey: "other",
	},
	oncewardhttp.ProfileACP: {
		missing:   refusal{400, `{"type":"invalid_request","code":"idempotency_key_required",`},
		otherBody: refusal{422, `{"type":"invalid_request","code":"idempotency_conflict",`},
		inFlight:  refusal{409, `{"type":"invalid_request","code":"idempotency_in_flight",`},
		replayed:  "Idempotent-Replayed", echoes: true, bareKey: "other", comparesJSON: true,
	},
	oncewardhttp.ProfileUCP: {
		missing:   refusal{201, ""},
		otherBody: refusal{409, `{"code":"idempotency_key_reused","content":`},
		inFlight:  refusal{409, `{"code":"idempotency_in_progress","content":`},
		bareKey:   "other",
	},
}

func TestThePackageNamesEachProfileAndEachProblemOfTheTable(t *testing.T) {
	text, err := os.ReadFile("profiles.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Profiles map[oncewardhttp.Profile]any
		Problems map[string]any
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	inTable := slices.Sorted(maps.Keys(table.Profiles))
	if tested := slices.Sorted(maps.Keys(expectations)); !slices.Equal(inTable, tested) {
		t.Errorf("the table has the profiles %v, not %v", inTable, tested)
	}
	for _, each := range []oncewardhttp.ProblemType{
		oncewardhttp.KeyMissing, oncewardhttp.KeyMalformed, oncewardhttp.RequestUnreadable, oncewardhttp.KeyReused,
		oncewardhttp.KeyWithoutTime, oncewardhttp.KeyTooOld, oncewardhttp.InProgress, oncewardhttp.Ambiguous,
		oncewardhttp.ResultGone, oncewardhttp.Unavailable,
	} {
		name := strings.TrimPrefix(string(each), "urn:onceward:problem:")
		if _, has := table.Problems[name]; !has {
			t.Errorf("the table does not have %s", name)
		}
		delete(table.Problems, name)
	}
	if len(table.Problems) > 0 {
		t.Errorf("the package does not name %v", table.Problems)
	}
}

const profileKey = `"8e03978e-40d5"`

func charged(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

func (a answer) expect(t *testing.T, want refusal) {
	t.Helper()
	if a.status != want.status || !strings.Contains(a.body, want.reason) || (want.reason != "" && !json.Valid([]byte(a.body))) {
		t.Errorf("got %d %s, not %v", a.status, a.body, want)
	}
}

func marks(got answer) string {
	var found []string
	for _, name := range []string{"Idempotency-Replayed", "Idempotent-Replayed"} {
		if got.header.Get(name) == "true" {
			found = append(found, name)
		}
	}
	return strings.Join(found, ",")
}

func TestEachProfileHasItsStatusesBodiesMarksAndEchoes(t *testing.T) {
	for profile, want := range expectations {
		t.Run(string(profile), func(t *testing.T) {
			started, proceed := make(chan struct{}), make(chan struct{})
			var attempts atomic.Int32
			// No option makes ACP store a 5xx.
			options := oncewardhttp.Options{
				Profile: profile, Documentation: "https://api.example/keys",
				Stores: func(response oncewardhttp.Response) oncewardhttp.Verdict {
					if profile == oncewardhttp.ProfileACP || response.Status < 500 {
						return oncewardhttp.Store
					}
					return oncewardhttp.Release
				},
			}
			api := start(t, options, func(w http.ResponseWriter, r *http.Request) {
				switch attempts.Add(1) {
				case 1:
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				case 2:
					close(started)
					<-proceed
				}
				charged(w, r)
			})
			api.post(t, "/charges/1", "a", profileKey, "1").expect(t, refusal{503, ""})
			first := make(chan answer)
			go func() { first <- api.post(t, "/charges/1", "a", profileKey, "1") }()
			<-started
			inFlight := api.post(t, "/charges/1", "a", profileKey, "1")
			inFlight.expect(t, want.inFlight)
			if inFlight.header.Get("Retry-After") == "" || inFlight.header.Get("Link") != `<urn:onceward:problem:in-progress>; rel="type", <https://api.example/keys>; rel="describedby"` {
				t.Errorf("the refusal has %v", inFlight.header)
			}
			close(proceed)
			if got := <-first; got.status != 201 || marks(got) != "" {
				t.Errorf("the first request got %v", got)
			}
			replay := api.post(t, "/charges/1", "a", profileKey, "1")
			if replay.status != 201 || marks(replay) != want.replayed || attempts.Load() != 2 {
				t.Errorf("the repeat got %v after %d attempts", replay, attempts.Load())
			}
			if echoed := replay.header.Get("Idempotency-Key"); (echoed == profileKey) != want.echoes {
				t.Errorf("the repeat has the key %q", echoed)
			}
			api.post(t, "/charges/1", "a", profileKey, "2").expect(t, want.otherBody)
			if foreign := api.post(t, "/charges/1", "b", profileKey, "1"); foreign.status != 201 || marks(foreign) != "" {
				t.Errorf("another caller got %v", foreign)
			}
		})
	}
}

func TestEachProfileHasItsKeysAndItsIdentity(t *testing.T) {
	for profile, want := range expectations {
		t.Run(string(profile), func(t *testing.T) {
			api := start(t, oncewardhttp.Options{Profile: profile}, charged)
			api.post(t, "/charges/1", "a", "", "1").expect(t, want.missing)
			api.calls.Store(0)
			api.post(t, "/charges/1", "a", profileKey, `{"amount":1,"currency":"EUR"}`)
			rewritten := api.post(t, "/charges/1", "a", profileKey, `{"currency":"EUR", "amount":1.0}`)
			if isSame := rewritten.status == 201; isSame != want.comparesJSON {
				t.Errorf("the same JSON got %v", rewritten)
			}
			bare := api.post(t, "/charges/1", "a", strings.Trim(profileKey, `"`), `{"amount":1,"currency":"EUR"}`)
			if isMalformed := bare.status == 400; isMalformed != (want.bareKey == "malformed") {
				t.Errorf("the key without quotes got %v", bare)
			}
			if isOther := api.calls.Load() == 2; isOther != (want.bareKey == "other") {
				t.Errorf("the handler was called %d times", api.calls.Load())
			}
			if tooLong := api.post(t, "/charges/1", "a", strings.Repeat("k", 256), "1"); tooLong.status != 400 {
				t.Errorf("a key of 256 characters got %v", tooLong)
			}
		})
	}
}

func TestOptionsReplaceWhatAProfileSays(t *testing.T) {
	api := start(t, oncewardhttp.Options{
		Profile: oncewardhttp.ProfileStripe, MissingKey: oncewardhttp.MissingKeyRefused,
	}, charged)
	api.post(t, "/charges/1", "a", "", "1").expect(t, refusal{400, `"code":"idempotency_key_missing"`})
	for name, options := range map[string]oncewardhttp.Options{
		"a profile that does not exist": {Profile: "strip"},
		"a URL that would end its link": {Documentation: "https://api.example/>"},
	} {
		options.Namespace, options.Caller = "charges", func(*http.Request) string { return "a" }
		if _, err := oncewardhttp.New(api.Client, options); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
