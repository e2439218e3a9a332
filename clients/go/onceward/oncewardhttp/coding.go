package oncewardhttp

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
)

const contentEncoding = "content-encoding"

// inAcceptedCoding returns a stored response in a coding that the client accepts: the body as it is stored, or decoded. So the answer
// to a first client, compressed within the guard, also suits one that takes no compression. A body that can't be decoded is returned
// as it is stored, as RFC 9110, 12.5.3 allows: one in several codings, in one that Go does not know, such as brotli, one of damaged
// bytes, and one that is larger than 1 MiB when decoded.
func (r *response) inAcceptedCoding(request http.Header) *response {
	coding := strings.ToLower(r.header[contentEncoding])
	if coding == "" || accepts(request, coding) {
		return r
	}
	body, err := decoded(r.body, coding)
	if err != nil || len(body) > limits.MaxResultBytes {
		return r
	}
	header := maps.Clone(r.header)
	delete(header, contentEncoding)
	// A strong ETag names the bytes of one coding (RFC 9110, 8.8.3.3).
	if strings.HasPrefix(header["etag"], `"`) {
		header["etag"] = "W/" + header["etag"]
	}
	return &response{r.status, header, body}
}

// accepts returns whether Accept-Encoding (RFC 9110, 12.5.3) allows a coding. Without the header, every coding is accepted.
func accepts(request http.Header, coding string) bool {
	sent := request.Values("Accept-Encoding")
	if len(sent) == 0 {
		return true
	}
	weights := map[string]float64{}
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(sent, ",")), ",") {
		name, parameters, _ := strings.Cut(part, ";")
		weight := 1.0
		for parameter := range strings.SplitSeq(parameters, ";") {
			if text, isWeight := strings.CutPrefix(strings.TrimSpace(parameter), "q="); isWeight {
				weight, _ = strconv.ParseFloat(text, 64) // 0 for another text.
			}
		}
		weights[strings.TrimSpace(name)] = weight
	}
	if weight, isNamed := weights[coding]; isNamed {
		return weight > 0
	}
	return weights["*"] > 0
}

// decoded returns the decoded bytes, at most one more than 1 MiB.
func decoded(body []byte, coding string) ([]byte, error) {
	var decoder io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		decoder, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		decoder, err = zlib.NewReader(bytes.NewReader(body))
	default:
		err = http.ErrNotSupported
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(decoder, int64(limits.MaxResultBytes)+1))
}
