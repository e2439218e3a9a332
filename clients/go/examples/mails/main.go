// Command mails is a worker that sends e-mails of a queue, which delivers each message twice. The mail server is down at first,
// and one address does not exist: each mail is sent once, and the wrong address is tried once.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

type message struct {
	Order string `json:"order"`
	To    string `json:"to"`
}

var errDown = errors.New("the mail server is down")

// mailServer fails its first call.
type mailServer struct {
	calls, sent int
}

func (s *mailServer) send(to, messageID string) (string, error) {
	s.calls++
	switch {
	case s.calls == 1:
		return "", errDown
	case to == "nobody@example.com":
		// No later attempt succeeds: the failure is stored.
		return "", &onceward.TerminalError{Message: "there is no " + to}
	default:
		s.sent++
		return messageID, nil
	}
}

func sendOnce(ctx context.Context, client *onceward.Client, server *mailServer, received message) (string, error) {
	key, err := onceward.JoinKey("receipt", received.Order)
	if err != nil {
		return "", err
	}
	operation := onceward.Operation{Namespace: "example-mails", Key: key, Fingerprint: received}
	return onceward.Run(ctx, client, operation, func(ctx context.Context, claim *onceward.Claim) (string, error) {
		return server.send(received.To, claim.DeriveKey("mail"))
	})
}

func main() {
	client, err := onceward.New(os.Getenv("ONCEWARD_ADDRESS"), onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer client.Close(ctx)

	first, second := onceward.NewKey(), onceward.NewKey()
	queue := []message{
		{first, "ada@example.com"}, {first, "ada@example.com"},
		{second, "nobody@example.com"}, {second, "nobody@example.com"},
	}
	server := &mailServer{}
	acknowledged, dead := 0, 0
	for len(queue) > 0 {
		received := queue[0]
		queue = queue[1:]
		_, err := sendOnce(ctx, client, server, received)
		var terminal *onceward.TerminalError
		switch {
		case err == nil:
			acknowledged++
		case errors.As(err, &terminal):
			dead++
		case errors.Is(err, errDown):
			queue = append(queue, received) // It is not acknowledged, and comes again.
		default:
			log.Fatal(err)
		}
	}
	fmt.Printf("%d mails sent in %d calls; %d messages acknowledged, %d dead letters\n",
		server.sent, server.calls, acknowledged, dead)
}
