//go:build bench

// Bench measures a promotion by Tagboat beside the script that a team would write,
// on real parts and at a distance. bench/run builds what it needs; it prints Markdown.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rtt, err := time.ParseDuration(cmp.Or(os.Getenv("BENCH_RTT"), "40ms"))
	if err != nil {
		return fmt.Errorf("read BENCH_RTT: %w", err)
	}
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("BENCH_ROUNDS"), "5"))
	if err == nil && rounds < 1 {
		err = errors.New("no rounds")
	}
	if err != nil {
		return fmt.Errorf("read BENCH_ROUNDS: %w", err)
	}
	dir, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it lies in bench/run's own
	s, err := start(ctx, dir, rtt)
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return err
	}
	r := report{rtt: rtt, rounds: rounds}
	for _, word := range strings.Fields(cmp.Or(os.Getenv("BENCH_FILES"), "50 5000 50000")) {
		files, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("read BENCH_FILES: %w", err)
		}
		measured, err := s.measure(ctx, dir, files, rounds)
		if err != nil {
			return fmt.Errorf("%d files: %w", files, err)
		}
		r.sizes = append(r.sizes, measured)
	}
	r.print(os.Stdout)
	return nil
}
