package timing

import (
	"math"
	"testing"
	"time"
)

func TestADelayOfADamagedReplyIsBounded(t *testing.T) {
	for _, asked := range []time.Duration{math.MinInt64, math.MaxInt64} {
		if delay := RetryDelay(0, asked); delay <= 0 || delay > 25*time.Hour {
			t.Errorf("a reply that asks for %s delays by %s", asked, delay)
		}
	}
}
