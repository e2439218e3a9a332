// Command payments is an endpoint of net/http before a provider that charges again on every call. Its clients leave during their
// first request, and then send two more at once: each order is charged once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
)

const orders = 20

type charge struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Key   string `json:"idempotency_key"`
}

// provider charges again on every call.
type provider struct {
	charges atomic.Int32
	// Told of each charge before its answer.
	began chan string
}

func (p *provider) charge(order, key string) charge {
	made := charge{fmt.Sprintf("ch_%d", p.charges.Add(1)), order, key}
	p.began <- order
	return made
}

func main() {
	client, err := onceward.New(os.Getenv("ONCEWARD_ADDRESS"), onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	guard, err := oncewardhttp.New(client, oncewardhttp.Options{
		Namespace: "example-payments",
		Caller:    func(*http.Request) string { return "account-1" }, // In your API: the account that is logged in.
		Wait:      10 * time.Second,
		OnError:   onceward.UnknownOnError, // After a charge that failed, no one knows: the namespace's policy decides.
	})
	if err != nil {
		log.Fatal(err)
	}
	bank := &provider{began: make(chan string, orders)}
	mux := http.NewServeMux()
	mux.Handle("POST /charges/{order}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claim, _ := onceward.ClaimFromContext(r.Context())
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(bank.charge(r.PathValue("order"), claim.DeriveKey("charge")))
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	statuses := map[int]int{}
	for range orders {
		order := onceward.NewKey()
		ctx, leave := context.WithCancel(context.Background())
		go func() {
			<-bank.began // The charge continues; only its answer is lost.
			leave()
		}()
		_, _ = pay(ctx, server.URL, order, "42.00")
		for _, status := range payTwice(server.URL, order) {
			statuses[status]++
		}
		other, err := pay(context.Background(), server.URL, order, "99.00")
		if err != nil {
			log.Fatal(err)
		}
		statuses[other]++
		leave()
	}
	fmt.Printf("%d orders, %d charges; answers %v\n", orders, bank.charges.Load(), statuses)
}

func payTwice(url, order string) [2]int {
	var statuses [2]int
	var requests sync.WaitGroup
	for i := range statuses {
		requests.Go(func() {
			status, err := pay(context.Background(), url, order, "42.00")
			if err != nil {
				log.Fatal(err)
			}
			statuses[i] = status
		})
	}
	requests.Wait()
	return statuses
}

func pay(ctx context.Context, url, order, amount string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges/"+order, strings.NewReader(amount))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Idempotency-Key", `"`+order+`"`)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
