package guides

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardinbox"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

// The declarations that the guides' snippets use, and the checks of what their pages say. test/commands/go-client.test.ts writes
// each page's snippets beside this file, as files of one package.

type (
	Receipt struct {
		ID  string
		Key string
	}
	Order struct {
		ID    string
		Cents int
		Email string
	}
	Purchase struct {
		ID    string
		Cents int
	}
	Transfer struct{ ID string }
	Payout   struct {
		ID        string
		CreatedAt time.Time
	}
	Body struct {
		Amount   int
		Currency string
	}
	Invoice struct {
		ID        string
		Cents     int
		CreatedAt time.Time
	}
	Row struct {
		File        string
		Line, Cents int
	}
	Report     struct{ Day, Key string }
	OrderEvent struct {
		OrderID string
		Amount  int
	}
	Message struct {
		OrderID string
		Body    Order
		Ack     func(context.Context) error
	}
	Mail struct {
		To, Template string
		Data         any
		MessageID    string
	}
	EventData struct{ Amount int }
	Event     struct {
		ID   string
		Data EventData
	}
)

var (
	client    *onceward.Client
	unguarded atomic.Int32
	// Reset by start.
	effects  atomic.Int32
	mails    []Mail
	reviewed []error
	paid     map[string]bool
	locks    map[string]bool
	isDown   bool

	order    = Order{ID: "order-1", Cents: 4200, Email: "ada@example.com"}
	event    = Event{ID: "event-1", Data: EventData{4200}}
	errDown  = errors.New("down")
	exported []string
)

type (
	fakeProvider struct{}
	fakeBank     struct{}
	fakeMailer   struct{}
	fakeLedger   struct{}
	fakeAccounts struct{}
	fakeReviews  struct{}
	fakeRedis    struct{}
	fakeStripe   struct{}
)

var (
	provider fakeProvider
	bank     fakeBank
	mailer   fakeMailer
	ledger   fakeLedger
	accounts fakeAccounts
	reviews  fakeReviews
	redis    fakeRedis
	stripe   fakeStripe
)

func happen(key string) (Receipt, error) {
	effects.Add(1)
	return Receipt{"ch_1", key}, nil
}

func (fakeProvider) Charge(context.Context, int) (Receipt, error)   { return happen("") }
func (fakeProvider) Refund(context.Context, Order) (Receipt, error) { return happen("") }
func (fakeProvider) ChargeWithKey(_ context.Context, _ int, key string) (Receipt, error) {
	return happen(key)
}
func (fakeStripe) CreateCharge(_ context.Context, _ Order, key string) (string, error) {
	made, err := happen(key)
	return made.ID, err
}
func (fakeBank) Debit(context.Context, Transfer, string) error { _, err := happen(""); return err }
func (fakeBank) Credit(context.Context, Transfer, string) error {
	if isDown {
		return errDown
	}
	_, err := happen("")
	return err
}
func (fakeBank) FindPayout(_ context.Context, id string) (string, bool) { return id, paid[id] }
func (fakeBank) PayOut(_ context.Context, id, _ string) (string, error) {
	paid[id] = true
	_, err := happen("")
	return id, err
}
func (fakeMailer) Send(_ context.Context, mail Mail) (string, error) {
	mails = append(mails, mail)
	return mail.MessageID, nil
}
func (fakeLedger) Settle(context.Context, string) error { _, err := happen(""); return err }
func (fakeLedger) Report(_ context.Context, day, key string) (Report, error) {
	if isDown {
		return Report{}, errDown
	}
	return Report{day, key}, nil
}
func (fakeAccounts) Credit(_ context.Context, row Row) error {
	if isDown && row.Line == 120 {
		return errDown
	}
	_, err := happen("")
	return err
}
func (fakeReviews) Add(_ context.Context, _ Invoice, why error) error {
	reviewed = append(reviewed, why)
	return nil
}
func (fakeRedis) SetNX(_ context.Context, key string, _ int, _ time.Duration) (bool, error) {
	isFirst := !locks[key]
	locks[key] = true
	return isFirst, nil
}
func index(context.Context, Order) error              { _, err := happen(""); return err }
func exportPage(_ context.Context, page string) error { exported = append(exported, page); return nil }
func hashOf(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
func findProcessed(context.Context, string) (Receipt, bool) { return Receipt{}, false }
func insertInvoice(ctx context.Context, tx *sql.Tx, event Event) (int64, error) {
	_, err := tx.ExecContext(ctx, "insert into invoices (amount) values ($1)", event.Data.Amount)
	return 1, err
}

// start begins a page's test, with a service that has no records.
func start(t *testing.T) *oncewardtest.Service {
	t.Helper()
	service := oncewardtest.New(t, oncewardtest.Options{Namespaces: map[string]oncewardtest.Policy{
		"payouts": {Hold: true}, "invoices": {LateKeys: oncewardtest.RequireKeyTime},
	}})
	client = service.Client
	effects.Store(0)
	mails, reviewed, exported, isDown = nil, nil, nil, false
	paid, locks = map[string]bool{}, map[string]bool{}
	return service
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func expect[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v is not %v", got, want)
	}
}

// twice makes two deliveries, which succeed and have so many effects together.
func twice(t *testing.T, wantEffects int32, deliver func() error) {
	t.Helper()
	for range 2 {
		if err := deliver(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, effects.Load(), wantEffects)
}

func TestKeys(t *testing.T) {
	start(t)
	expect(t, len(purchase.ID), 36)
	twice(t, 1, func() error { _, err := refundOnce(t.Context(), order); return err })
}

func TestFingerprints(t *testing.T) {
	start(t)
	twice(t, 1, func() error { _, err := charge(t.Context(), Body{4200, "EUR"}); return err })
	_, err := charge(t.Context(), Body{9900, "EUR"})
	expect(t, errors.Is(err, onceward.ErrFingerprintMismatch), true)
	first := must(fingerprintOf(map[string]any{"amount": 4200, "sentAt": "09:30"}))(t)
	second := must(fingerprintOf(map[string]any{"amount": 4200, "sentAt": "09:31"}))(t)
	expect(t, string(first), string(second))
}

func TestCrashes(t *testing.T) {
	service := start(t)
	isDown = true
	expect(t, transferOnce(t.Context(), Transfer{"transfer-1"}), errDown)
	isDown = false
	twice(t, 2, func() error { return transferOnce(t.Context(), Transfer{"transfer-1"}) })

	// A holder that paid, and died before its completion.
	service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	payout := Payout{"payout-7", service.Now()}
	_, err := payOut(t.Context(), payout)
	expect(t, errors.Is(err, onceward.ErrInternal), true)
	service.Advance(time.Minute)
	twice(t, 3, func() error { _, err := payOut(t.Context(), payout); return err })
}

func TestLateRetries(t *testing.T) {
	service := start(t)
	invoice := Invoice{"invoice-1", 4200, service.Now()}
	twice(t, 1, func() error { return payInvoice(t.Context(), invoice) })
	expect(t, len(reviewed), 0)
	service.Advance(72*time.Hour + 10*time.Minute)
	expect(t, payInvoice(t.Context(), invoice), nil)
	expect(t, len(reviewed), 1)
	expect(t, effects.Load(), 1)
}

func TestEmails(t *testing.T) {
	start(t)
	for _, to := range []string{"ada@example.com", "ada@example.com", "bob@example.com"} {
		expect(t, len(must(sendReceipt(t.Context(), order, to))(t)), 43)
	}
	expect(t, len(mails), 2)
}

func TestCron(t *testing.T) {
	service := start(t)
	twice(t, 1, func() error { _, err := closeDay(t.Context(), "2026-03-01"); return err })
	// A machine that dies after its checkpoint.
	isDown = true
	service.FailNext(oncewardtest.Release, onceward.ErrInternal)
	_, err := closeDay(t.Context(), "2026-03-02")
	expect(t, err, errDown)
	_, err = closeDay(t.Context(), "2026-03-02")
	expect(t, errors.Is(err, onceward.ErrInProgress), true)
	isDown = false
	service.Advance(time.Minute)
	expect(t, must(closeDay(t.Context(), "2026-03-02"))(t).Day, "2026-03-02")
	expect(t, effects.Load(), 2)
}

func TestImports(t *testing.T) {
	start(t)
	rows := make([]Row, 250)
	for i := range rows {
		rows[i] = Row{"f1", i, i}
	}
	isDown = true
	expect(t, errors.Is(importFile(t.Context(), rows), errDown), true)
	expect(t, effects.Load(), 249)
	isDown = false
	twice(t, 250, func() error { return importFile(t.Context(), rows) })
	err := importFile(t.Context(), []Row{{"f1", 0, 99}})
	expect(t, errors.Is(err, onceward.ErrFingerprintMismatch), true)
}

func TestQueues(t *testing.T) {
	start(t)
	acknowledged := 0
	message := Message{order.ID, order, func(context.Context) error { acknowledged++; return nil }}
	twice(t, 1, func() error { return handle(t.Context(), message) })
	expect(t, acknowledged, 2)
}

func TestFromStripe(t *testing.T) {
	start(t)
	twice(t, 1, func() error { _, err := chargeAndMail(t.Context(), order); return err })
	expect(t, len(mails), 1)
}

func TestOutages(t *testing.T) {
	service := start(t)
	service.FailNext(oncewardtest.Claim, onceward.ErrDatabaseUnavailable)
	twice(t, 2, func() error { return payThenRefresh(t.Context(), order) })

	unreachable := must(onceward.New("http://127.0.0.1:1", onceward.Options{APIKey: "key"}))(t)
	defer unreachable.Close(t.Context())
	client = unreachable
	refresh := onceward.Operation{
		Namespace: "search-index", Key: order.ID, Timeout: time.Millisecond, OnUnavailable: onceward.ProceedUnavailable,
	}
	twice(t, 4, func() error { return refreshAndCount(t.Context(), refresh, order) })
	expect(t, unguarded.Load(), 2)
}

func TestFromPowertools(t *testing.T) {
	start(t)
	twice(t, 1, func() error { _, err := handler(t.Context(), OrderEvent{"1", 1}); return err })
}

func TestFromATable(t *testing.T) {
	start(t)
	db := must(sql.Open("pgx", os.Getenv("DATABASE_URL")))(t)
	defer db.Close()
	must(db.Exec(oncewardinbox.Migration))(t)
	must(db.Exec("create table invoices (amount int)"))(t)
	twice(t, 0, func() error { return billOnce(t.Context(), db, event) })
	var invoices int
	expect(t, db.QueryRow("select count(*) from invoices").Scan(&invoices), nil)
	expect(t, invoices, 1)
	twice(t, 1, func() error {
		_, err := mailOnce(t.Context(), event)
		_, failed := chargeUnlessProcessed(t.Context(), event)
		return errors.Join(err, failed)
	})
	expect(t, len(mails), 1)
}

func TestFromRedis(t *testing.T) {
	start(t)
	twice(t, 1, func() error { _, err := chargeOrder(t.Context(), order); return err })
	other := Order{ID: "order-2"}
	twice(t, 2, func() error { _, err := chargeUnlessLocked(t.Context(), other); return err })
}

func TestKubernetes(t *testing.T) {
	start(t)
	expect(t, export(t.Context(), []string{"1", "2"}), nil)
	expect(t, len(exported), 2)
	listening := make(chan struct{})
	server := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(net.Listener) context.Context {
		close(listening)
		return context.Background()
	}}
	stopped := make(chan error)
	go func() { stopped <- serveUntilStopped(server, client) }()
	<-listening
	expect(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM), nil)
	expect(t, <-stopped, nil)
	_, err := chargeOrder(t.Context(), order)
	expect(t, errors.Is(err, onceward.ErrClosed), true)
}
