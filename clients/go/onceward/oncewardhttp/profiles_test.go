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

// refusal is what a client reads: the status, and members of the body. A request that is not refused has no body.
type refusal struct {
	Status int
	Body   map[string]any
}

// expected is what the guards of all languages do under a profile.
type expected struct {
	Missing             *refusal
	OtherBody, InFlight refusal
	Replayed            string
	Echoes              bool
	BareKey             string
	ComparesJSON        bool
}

func readExpectations(t *testing.T) (expectations map[oncewardhttp.Profile]expected) {
	t.Helper()
	text, err := os.ReadFile("../../../conformance/http-profiles.json")
	if err == nil {
		err = json.Unmarshal(text, &expectations)
	}
	if err != nil {
		t.Fatal(err)
	}
	return expectations
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
	if tested := slices.Sorted(maps.Keys(readExpectations(t))); !slices.Equal(inTable, tested) {
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
	var body any
	if a.status != want.Status || (want.Body != nil && json.Unmarshal([]byte(a.body), &body) != nil) || !has(body, want.Body) {
		t.Errorf("got %d %s, not %v", a.status, a.body, want)
	}
}

// has returns whether the members of want are in a JSON value.
func has(value, want any) bool {
	members, isObject := want.(map[string]any)
	if !isObject {
		return value == want
	}
	of, _ := value.(map[string]any)
	for name, each := range members {
		if !has(of[name], each) {
			return false
		}
	}
	return true
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
	for profile, want := range readExpectations(t) {
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
			api.post(t, "a", profileKey, "1").expect(t, refusal{Status: 503})
			first := make(chan answer)
			go func() { first <- api.post(t, "a", profileKey, "1") }()
			<-started
			inFlight := api.post(t, "a", profileKey, "1")
			inFlight.expect(t, want.InFlight)
			if inFlight.header.Get("Retry-After") != "1" || inFlight.header.Get("Link") != `<urn:onceward:problem:in-progress>; rel="type", <https://api.example/keys>; rel="describedby"` {
				t.Errorf("the refusal has %v", inFlight.header)
			}
			close(proceed)
			if got := <-first; got.status != 201 || marks(got) != "" {
				t.Errorf("the first request got %v", got)
			}
			replay := api.post(t, "a", profileKey, "1")
			if replay.status != 201 || !strings.EqualFold(marks(replay), want.Replayed) || attempts.Load() != 2 {
				t.Errorf("the repeat got %v after %d attempts", replay, attempts.Load())
			}
			if echoed := replay.header.Get("Idempotency-Key"); (echoed == profileKey) != want.Echoes {
				t.Errorf("the repeat has the key %q", echoed)
			}
			api.post(t, "a", profileKey, "2").expect(t, want.OtherBody)
			if foreign := api.post(t, "b", profileKey, "1"); foreign.status != 201 || marks(foreign) != "" {
				t.Errorf("another caller got %v", foreign)
			}
		})
	}
}

func TestEachProfileHasItsKeysAndItsIdentity(t *testing.T) {
	for profile, want := range readExpectations(t) {
		t.Run(string(profile), func(t *testing.T) {
			api := start(t, oncewardhttp.Options{Profile: profile}, charged)
			missing := refusal{Status: 201}
			if want.Missing != nil {
				missing = *want.Missing
			}
			api.post(t, "a", "", "1").expect(t, missing)
			api.calls.Store(0)
			api.post(t, "a", profileKey, `{"amount":1,"currency":"EUR"}`)
			rewritten := api.post(t, "a", profileKey, `{"currency":"EUR", "amount":1.0}`)
			if isSame := rewritten.status == 201; isSame != want.ComparesJSON {
				t.Errorf("the same JSON got %v", rewritten)
			}
			bare := api.post(t, "a", strings.Trim(profileKey, `"`), `{"amount":1,"currency":"EUR"}`)
			if isMalformed := bare.status == 400; isMalformed != (want.BareKey == "malformed") {
				t.Errorf("the key without quotes got %v", bare)
			}
			if isOther := api.calls.Load() == 2; isOther != (want.BareKey == "other") {
				t.Errorf("the handler was called %d times", api.calls.Load())
			}
			if tooLong := api.post(t, "a", strings.Repeat("k", 256), "1"); tooLong.status != 400 {
				t.Errorf("a key of 256 characters got %v", tooLong)
			}
		})
	}
}

func TestOptionsReplaceWhatAProfileSays(t *testing.T) {
	api := start(t, oncewardhttp.Options{
		Profile: oncewardhttp.ProfileStripe, MissingKey: oncewardhttp.MissingKeyRefused,
	}, charged)
	api.post(t, "a", "", "1").expect(t, refusal{400, map[string]any{"error": map[string]any{"code": "idempotency_key_missing"}}})
}
