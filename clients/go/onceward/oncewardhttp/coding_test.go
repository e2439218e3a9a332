package oncewardhttp_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
)

func coded(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var written bytes.Buffer
	var coder io.WriteCloser = gzip.NewWriter(&written)
	if coding == "deflate" {
		coder = zlib.NewWriter(&written)
	}
	if _, err := coder.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := coder.Close(); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func TestAReplayIsInACodingThatItsClientAccepts(t *testing.T) {
	charged := []byte("charged")
	gzipped := coded(t, "gzip", charged)
	for name, each := range map[string]struct {
		coding  string
		stored  []byte
		accepts []string
		want    []byte
	}{
		"another client's":         {"gzip", gzipped, []string{"identity"}, charged},
		"in capitals":              {"GZIP", gzipped, []string{"identity"}, charged},
		"x-gzip":                   {"x-gzip", gzipped, []string{"identity"}, charged},
		"deflate":                  {"deflate", coded(t, "deflate", charged), []string{"gzip"}, charged},
		"an empty header":          {"gzip", gzipped, []string{""}, charged},
		"a weight of 0":            {"gzip", gzipped, []string{"*", "gzip; q=0"}, charged},
		"a weight of no number":    {"gzip", gzipped, []string{"gzip;q=none"}, charged},
		"any but gzip":             {"gzip", gzipped, []string{"gzip;q=0, *"}, charged},
		"none but gzip":            {"gzip", gzipped, []string{"br, GZIP;q=0.1"}, gzipped},
		"any":                      {"gzip", gzipped, []string{"deflate;q=0, *;q=0.5"}, gzipped},
		"without the header":       {"gzip", gzipped, nil, gzipped},
		"several codings":          {"gzip, gzip", gzipped, []string{"identity"}, gzipped},
		"an unknown coding":        {"br", gzipped, []string{"identity"}, gzipped},
		"damaged bytes":            {"gzip", gzipped[:len(gzipped)-5], []string{"identity"}, gzipped[:len(gzipped)-5]},
		"no gzip":                  {"gzip", charged, []string{"identity"}, charged},
		"more than 1 MiB, decoded": {"gzip", coded(t, "gzip", make([]byte, 1<<20+1)), []string{"identity"}, coded(t, "gzip", make([]byte, 1<<20+1))},
	} {
		api := start(t, oncewardhttp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", each.coding)
			w.Header().Set("Etag", `"v1"`)
			_, _ = w.Write(each.stored)
		})
		var answer *httptest.ResponseRecorder
		for range 2 {
			answer = httptest.NewRecorder()
			request := requestWith(t.Context(), http.MethodPost, "", "{}")
			for _, value := range each.accepts {
				request.Header.Add("Accept-Encoding", value)
			}
			api.handler.ServeHTTP(answer, request)
		}
		if api.calls.Load() != 1 || !bytes.Equal(answer.Body.Bytes(), each.want) {
			t.Errorf("%s: %d bytes after %d calls", name, answer.Body.Len(), api.calls.Load())
		}
		isDecoded := !bytes.Equal(each.stored, each.want)
		wantCoding, wantTag := each.coding, `"v1"`
		if isDecoded {
			wantCoding, wantTag = "", `W/"v1"`
		}
		got := answer.Header()
		if got.Get("Content-Encoding") != wantCoding || got.Get("Etag") != wantTag || got.Get("Content-Type") == "application/x-gzip" {
			t.Errorf("%s: the headers are %v", name, got)
		}
	}
}
