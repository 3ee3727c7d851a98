// Package hook is the HTTP side of chatops: it checks the signatures of chats and
// forges over the raw bytes, and hands what they say to a Desk. It keeps nothing:
// a request is acknowledged once the forge has accepted the dispatch.
package hook

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tagboat/chatops"
)

// The bounds of a request. An issue_comment carries the text and the
// comment's, 65,536 characters each.
const (
	chatBodyLimit  = 64 << 10
	forgeBodyLimit = 1 << 20
	headerLimit    = 16 << 10
)

// Desk takes what was checked; *chatops.Desk is one.
type Desk interface {
	Comment(ctx context.Context, e chatops.Event) (chatops.Accepted, error)
	Slack(ctx context.Context, l chatops.ChatLine) (chatops.Accepted, error)
}

// Options say what is served. A path whose secret is empty is not.
type Options struct {
	Desk Desk
	// The secrets: Slack's signing secret, those of GitHub's and Gitea's webhooks,
	// GitLab's secret token.
	SlackSecret, GitHubSecret, GiteaSecret, GitLabToken string
	Log                                                 *slog.Logger

	ChatTime  time.Duration // for the forge's answer to a chat; 0 is 2.5 s, Slack waits for 3
	ForgeTime time.Duration // for the forge's answer to a webhook; 0 is 8 s, GitHub waits for 10
	InFlight  int           // signed requests at once; 0 is 64. More are told to come again

	HeaderTime time.Duration // for a request's header to come; 0 is 5 s
	BodyTime   time.Duration // for header and body; 0 is 10 s
}

// Server is the http.Handler of all paths.
type Server struct {
	o        Options
	mux      *http.ServeMux
	slots    chan struct{}
	draining atomic.Bool
	metrics  metrics
}

// New makes a server with its own registry of metrics.
func New(o Options) *Server {
	o.ChatTime, o.ForgeTime = cmp.Or(o.ChatTime, 2500*time.Millisecond), cmp.Or(o.ForgeTime, 8*time.Second)
	o.HeaderTime, o.BodyTime = cmp.Or(o.HeaderTime, 5*time.Second), cmp.Or(o.BodyTime, 10*time.Second)
	o.InFlight = cmp.Or(o.InFlight, 64)
	s := &Server{o: o, mux: http.NewServeMux(), slots: make(chan struct{}, o.InFlight)}
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	s.route(registry)
	return s
}

func (s *Server) route(registry *prometheus.Registry) {
	receive := func(path, secret string, c channel) {
		if secret != "" {
			s.mux.Handle(path, s.receive(c))
		}
	}
	receive("/slack/command", s.o.SlackSecret, s.slack())
	receive("/github/hook", s.o.GitHubSecret, s.github())
	receive("/gitea/hook", s.o.GiteaSecret, s.gitea())
	receive("/gitlab/hook", s.o.GitLabToken, s.gitlab())
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.Handle("GET /metrics", metricsHandler(registry))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Drain makes /readyz say no, so that nothing new is sent here.
func (s *Server) Drain() { s.draining.Store(true) }

// ready is the server's own state alone: were it the forge's too, a forge that is
// down for a minute would take every replica away, and nobody would be told why.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		say(w, http.StatusServiceUnavailable, "shutting down")
		return
	}
	say(w, http.StatusOK, "ok")
}

// channel is one way in.
type channel struct {
	name  string
	limit int64
	time  time.Duration
	// check verifies the signature over the raw body.
	check func(h http.Header, body []byte) error
	// take reads the body and hands it to the desk. A ping is errPing.
	take func(ctx context.Context, h http.Header, body []byte) (chatops.Accepted, error)
	// answer tells the sender.
	answer func(w http.ResponseWriter, a chatops.Accepted, err error)
}

// What a request comes to before the desk sees it.
var (
	errSignature = errors.New("the signature is missing or wrong")
	errMalformed = errors.New("the request does not read")
	errPing      = errors.New("a ping")
)

// receive bounds, reads and verifies a request, and has it taken.
func (s *Server) receive(c channel) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		outcome, a, err := "", chatops.Accepted{}, error(nil)
		recorder := &statusWriter{ResponseWriter: w}
		defer func() { s.tell(r.Context(), report{c.name, outcome, recorder.status, time.Since(began), a, err}) }()
		body, refused := s.read(recorder, r, c.limit)
		if refused != "" {
			outcome = refused
			return
		}
		if err = c.check(r.Header, body); err != nil {
			outcome = "unsigned"
			say(recorder, http.StatusUnauthorized, errSignature.Error()) // not why: that would help to guess
			return
		}
		select { // who has no secret takes no place
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			outcome = "busy"
			recorder.Header().Set("Retry-After", "1")
			say(recorder, http.StatusServiceUnavailable, "too many requests at once: send it again")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), c.time)
		defer cancel()
		a, err = c.take(ctx, r.Header, body)
		outcome = outcomeOf(err)
		c.answer(recorder, a, err)
	})
}

// read gives the body, or has told why not.
func (s *Server) read(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, refused string) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		say(w, http.StatusMethodNotAllowed, "send it with POST")
		return nil, "malformed"
	case r.ContentLength > limit:
		w.Header().Set("Connection", "close") // the rest is not read
		say(w, http.StatusRequestEntityTooLarge, "larger than "+strconv.FormatInt(limit, 10)+" bytes")
		return nil, "too-large"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		say(w, http.StatusRequestEntityTooLarge, "larger than "+strconv.FormatInt(limit, 10)+" bytes")
		return nil, "too-large"
	}
	if err != nil {
		say(w, http.StatusBadRequest, "the body ended early")
		return nil, "malformed"
	}
	return body, ""
}

// say answers with one line of plain text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // who asked has gone: nobody listens
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
