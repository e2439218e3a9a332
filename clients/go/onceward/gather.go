package onceward

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const (
	// Four, so that client, server and database are busy at the same time: each works on another batch.
	maxBatchesInFlight = 4
	// Beside two batches, a further one is worth its statements only for so many calls; fewer wait for an answer, and gather.
	minItemsBesideTwo = 8
	// Queued calls are divided among the batches that may be sent, but not into smaller parts: each batch costs a statement.
	minDividedItems = 32
	// The framing of an item within a batch, at most.
	itemFramingBytes = 16
	// Few beside a batch, and enough to find the one call that made the batch invalid soon.
	maxAloneAtOnce = 16
)

// A request message minus the batch's own framing.
var maxBatchBytes = limits.MaxMessageBytes - 1024

// gatherer gathers calls that are made at one time, or while batches are in flight, into few batches. A single call is sent at
// once, with an RPC of its own. Order is kept within a batch, not between batches.
type gatherer struct {
	send          func([]*call)
	mu            sync.Mutex
	queue         []*call
	inFlight      int
	bytesInFlight int
	flushing      bool
}

func (g *gatherer) add(added *call) {
	added.bytes = proto.Size(added.item) + itemFramingBytes
	g.mu.Lock()
	g.queue = append(g.queue, added)
	flush := g.beginsToFlush()
	g.mu.Unlock()
	if flush {
		go g.flush()
	}
}

// beginsToFlush notes that the caller flushes, and returns true, if a batch may be sent.
func (g *gatherer) beginsToFlush() bool {
	isWorthIt := g.inFlight < 2 || (g.inFlight < maxBatchesInFlight && len(g.queue) >= minItemsBesideTwo)
	// At most about two full batches are in flight.
	mayFlush := isWorthIt && g.bytesInFlight <= maxBatchBytes
	if g.flushing || len(g.queue) == 0 || !mayFlush {
		return false
	}
	g.flushing = true
	return true
}

func (g *gatherer) flush() {
	for again := true; again; {
		// Goroutines that are ready to make a call join the batch: after an answer, the callers that got it.
		runtime.Gosched()
		g.mu.Lock()
		batch, bytes := g.takeBatch()
		g.inFlight++
		g.bytesInFlight += bytes
		g.flushing = false
		another := g.beginsToFlush()
		g.mu.Unlock()
		if another {
			go g.flush()
		}
		g.send(batch)
		g.mu.Lock()
		g.inFlight--
		g.bytesInFlight -= bytes
		again = g.beginsToFlush()
		g.mu.Unlock()
	}
}

func (g *gatherer) takeBatch() ([]*call, int) {
	free := maxBatchesInFlight - g.inFlight
	parts := max(1, min(free, len(g.queue)/minDividedItems))
	most := min((len(g.queue)+parts-1)/parts, limits.MaxBatchItems)
	items, bytes := 0, 0
	for _, queued := range g.queue {
		// The first call is sent with any size: if it is too large, the service refuses it alone.
		if items > 0 && (items == most || bytes+queued.bytes > maxBatchBytes) {
			break
		}
		items++
		bytes += queued.bytes
	}
	batch := g.queue[:items:items]
	g.queue = g.queue[items:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
	return batch, bytes
}

// sendBatch sends the calls together, and answers each: with its response, or with the error it would have failed with alone.
// Calls that a batch can't carry are repeated one by one: their reply did not fit, or an item made the batch invalid.
func (c *calls) sendBatch(batch []*call) {
	if len(batch) == 1 {
		c.sendAlone(batch[0])
		return
	}
	items := make([]*oncewardv1.BatchRequestItem, len(batch))
	for i, each := range batch {
		items[i] = each.item
	}
	ctx, cancel := context.WithTimeout(c.open, attemptTimeout)
	defer cancel()
	response, err := c.api.Batch(ctx, &oncewardv1.BatchRequest{Items: items})
	if err != nil {
		failed := errorFromCall(err)
		if failed.isAboutContent() {
			c.sendOneByOne(batch)
			return
		}
		for _, each := range batch {
			each.answer(nil, failed)
		}
		return
	}
	for i, each := range batch {
		if i < len(response.GetItems()) {
			c.settle(each, response.GetItems()[i])
		} else {
			each.answer(nil, &Error{Reason: ErrInternal, Message: "The batch was answered with too few items."})
		}
	}
}

func (c *calls) settle(each *call, reply *oncewardv1.BatchResponseItem) {
	failure := reply.GetError()
	switch {
	case failure == nil && isAnswerTo(each.item, reply):
		each.answer(reply, nil)
	case failure == nil:
		message := fmt.Sprintf("A %T was answered with a %T.", each.item.GetRequest(), reply.GetResponse())
		each.answer(nil, &Error{Reason: ErrInternal, Message: message})
	case failure.GetReason() == oncewardv1.ErrorReason_ERROR_REASON_RESPONSE_TOO_LARGE:
		go c.sendAlone(each)
	default:
		each.answer(nil, errorFromItem(failure))
	}
}

// isAnswerTo returns whether the reply is of the item's call: the fields of both have one name.
func isAnswerTo(item *oncewardv1.BatchRequestItem, reply *oncewardv1.BatchResponseItem) bool {
	asked, answered := item.ProtoReflect(), reply.ProtoReflect()
	request := asked.WhichOneof(asked.Descriptor().Oneofs().ByName("request"))
	response := answered.WhichOneof(answered.Descriptor().Oneofs().ByName("response"))
	return response != nil && response.Name() == request.Name()
}

func (c *calls) sendOneByOne(batch []*call) {
	free := make(chan struct{}, maxAloneAtOnce)
	var sent sync.WaitGroup
	for _, each := range batch {
		free <- struct{}{}
		sent.Go(func() {
			c.sendAlone(each)
			<-free
		})
	}
	sent.Wait()
}

func (c *calls) sendAlone(each *call) { each.answer(c.sendWithin(c.open, each.item, attemptTimeout)) }
