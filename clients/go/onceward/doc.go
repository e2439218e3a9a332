// Package onceward is the client of Onceward, idempotency as a service: an operation runs once, however often its request is
// delivered, and every repeat gets the value of the first run.
//
//	client, err := onceward.New("http://127.0.0.1:50051", onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
//	charge, err := onceward.Run(ctx, client, onceward.Operation{Namespace: "charges", Key: order.ID},
//		func(ctx context.Context, claim *onceward.Claim) (Charge, error) { return bank.Charge(ctx, order) })
//
// Read [Run] first. [Error] and [Reason] explain what can fail.
package onceward
