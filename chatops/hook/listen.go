package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// connections bounds what unsigned bodies can take of the memory.
const connections = 512

// Serve answers on a listener until ctx ends. Then nothing new is taken, and what
// was begun gets as long as grace to be answered. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.o.HeaderTime,
		ReadTimeout:       s.o.BodyTime,
		WriteTimeout:      s.o.BodyTime + max(s.o.ChatTime, s.o.ForgeTime) + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    headerLimit,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(netutil.LimitListener(listener, connections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.Drain()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stop); err != nil && !errors.Is(err, http.ErrServerClosed) {
		_ = server.Close()
		return fmt.Errorf("stop: requests were not answered within %v: %w", grace, err)
	}
	return nil
}
