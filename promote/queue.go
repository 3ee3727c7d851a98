package promote

import (
	"context"
	"sync"
)

// queue keeps the writes of promotions in their order while they read side by side:
// each waits for all before it, which have written by then or have nothing to write.
type queue []chan struct{}

func newQueue(n int) queue {
	q := make(queue, n)
	for i := range q {
		q[i] = make(chan struct{})
	}
	return q
}

// place gives the nth its turn, which waits for it, and done, which ends it and may
// be called again. Who is before must have begun, else turn waits for ever.
func (q queue) place(n int) (turn func(context.Context) error, done func()) {
	turn = func(ctx context.Context) error {
		for _, before := range q[:n] {
			select {
			case <-before:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	return turn, sync.OnceFunc(func() { close(q[n]) })
}

// inTurn waits until the run may write.
func (r *run) inTurn(ctx context.Context) error {
	if r.q.turn == nil || r.q.DryRun {
		return nil
	}
	return r.q.turn(ctx)
}
