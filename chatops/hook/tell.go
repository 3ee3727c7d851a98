package hook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tagboat/chatops"
	"tagboat/config"
)

// metrics are what a server counts.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tagboat_requests_total", Help: "Requests by channel and outcome.",
		}, []string{"channel", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tagboat_acknowledge_seconds", Help: "Time until a request was answered, the forge's own time included.",
			Buckets: []float64{.05, .1, .2, .3, .5, 1, 1.5, 2, 2.5, 3, 5, 10},
		}, []string{"channel"}),
	}
	registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// report is one request, for log and metrics.
type report struct {
	channel, outcome string
	status           int
	took             time.Duration
	accepted         chatops.Accepted
	err              error
}

// tell logs a request and counts it. A line has what was understood, never the raw
// text, a header or an address.
func (s *Server) tell(ctx context.Context, r report) {
	s.metrics.requests.WithLabelValues(r.channel, r.outcome).Inc()
	s.metrics.seconds.WithLabelValues(r.channel).Observe(r.took.Seconds())
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("channel", r.channel), slog.String("outcome", r.outcome), slog.Int("status", r.status), slog.Duration("took", r.took),
	}
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("login", r.accepted.Login)
	add("verb", string(r.accepted.Command.Verb))
	add("app", r.accepted.Command.App)
	add("environment", r.accepted.Command.Environment)
	add("run", r.accepted.Run.URL)
	switch r.outcome {
	case "accepted", "ignored", "ping":
	case "failed", "busy":
		level = slog.LevelError
	default:
		level = slog.LevelWarn
	}
	if r.err != nil && r.outcome != "ignored" && r.outcome != "ping" {
		add("error", r.err.Error())
	}
	s.o.Log.LogAttrs(ctx, level, "request", attrs...)
}

// outcomeOf is what a request came to, in a word.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "accepted"
	case errors.Is(err, errPing):
		return "ping"
	case errors.Is(err, chatops.ErrIgnored), errors.Is(err, chatops.ErrNotCommand):
		return "ignored"
	case errors.Is(err, chatops.ErrNoRight), errors.Is(err, chatops.ErrUnmapped):
		return "refused"
	case errors.Is(err, chatops.ErrSyntax), errors.Is(err, config.ErrUnknown), errors.Is(err, config.ErrNotAllowed):
		return "misused"
	case errors.Is(err, errMalformed):
		return "malformed"
	}
	return "failed"
}
