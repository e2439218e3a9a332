// Command webhooks receives events whose effects are rows of its own Postgres (DATABASE_URL), so that it needs no service: the
// inbox marks each event in the transaction of its rows. Each event comes three times, two of them at once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardinbox"
)

const events = 20

type event struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

// book writes an event's row once.
func book(ctx context.Context, pool *pgxpool.Pool, received event) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		message := oncewardinbox.Message{Consumer: "ledger", Key: received.ID, Fingerprint: received}
		_, err := oncewardinbox.Once(ctx, oncewardinbox.PGX(tx), message, func(ctx context.Context) (int64, error) {
			_, err := tx.Exec(ctx, "insert into example_payments (event, cents) values ($1, $2)", received.ID, received.Cents)
			return received.Cents, err
		})
		return err
	})
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	for _, statement := range []string{
		oncewardinbox.Migration, "create table if not exists example_payments (event text, cents bigint)",
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var received event
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&received); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := book(r.Context(), pool, received); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError) // The sender repeats the event.
		}
	}))
	defer server.Close()

	ids := make([]string, events)
	var deliveries sync.WaitGroup
	for i := range ids {
		ids[i] = onceward.NewKey()
		for range 2 {
			deliveries.Go(func() { deliver(server.URL, ids[i]) })
		}
	}
	deliveries.Wait()
	for _, id := range ids {
		deliver(server.URL, id)
	}
	var rows int
	if err := pool.QueryRow(ctx, "select count(*) from example_payments where event = any($1)", ids).Scan(&rows); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d deliveries of %d events, %d rows\n", 3*events, events, rows)
}

func deliver(url, id string) {
	response, err := http.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"id": %q, "cents": 4200}`, id)))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		log.Fatal(response.Status)
	}
}
