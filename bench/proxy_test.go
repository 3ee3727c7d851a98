//go:build bench

package bench

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// traffic is what went through the proxies.
type traffic struct {
	connections, requests, received int64 // HTTP requests; bytes from server to client
	// serving is for how long a server had a request and had not answered it to the end.
	serving time.Duration
}

// meter adds up the traffic of the proxies.
type meter struct {
	sync.Mutex
	traffic
	open  int // requests of now
	since time.Time
}

func (m *meter) asked() {
	m.Lock()
	defer m.Unlock()
	if m.requests++; m.open == 0 {
		m.since = time.Now()
	}
	m.open++
}

func (m *meter) answered() {
	m.Lock()
	defer m.Unlock()
	if m.open--; m.open == 0 {
		m.serving += time.Since(m.since)
	}
}

func (m *meter) add(connections, received int) {
	m.Lock()
	defer m.Unlock()
	m.connections += int64(connections)
	m.received += int64(received)
}

// take returns what was added since it was last called.
func (m *meter) take() traffic {
	m.Lock()
	defer m.Unlock()
	t := m.traffic
	m.traffic = traffic{}
	return t
}

// proxy passes TCP connections on to a server as if it were a round-trip time away:
// a connection costs one, and so do a request and its answer. It limits no bandwidth.
type proxy struct {
	*meter
	t       *testing.T
	address string // HOST:PORT that clients use
	server  string
	rtt     time.Duration
}

func newProxy(t *testing.T, server string, rtt time.Duration, m *meter) *proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(listener) })
	p := &proxy{meter: m, t: t, address: listener.Addr().String(), server: server, rtt: rtt}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client.(*net.TCPConn), time.Now())
		}
	}()
	return p
}

func (p *proxy) serve(client *net.TCPConn, accepted time.Time) {
	p.add(1, 0)
	defer shut(client)
	dialled, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.server)
	if err != nil {
		return
	}
	server := dialled.(*net.TCPConn)
	defer shut(server)
	asking, ask := io.Pipe()
	answering, answer := io.Pipe()
	asked := make(chan *http.Request, 64)
	go p.readRequests(asking, asked)
	go p.readAnswers(answering, asked)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer shut(answer)
		p.carry(client, io.TeeReader(server, answer), accepted, func(n int) { p.add(0, n) })
	}()
	p.carry(server, io.TeeReader(client, ask), accepted.Add(p.rtt), func(int) {})
	shut(ask)
	<-answered
}

// shut closes what has no news to tell any more.
func shut(c io.Closer) { c.Close() }

func (p *proxy) readRequests(from io.Reader, asked chan<- *http.Request) {
	defer func() { _, _ = io.Copy(io.Discard, from) }() // or the client would wait
	defer close(asked)
	for in := bufio.NewReader(from); ; {
		request, err := http.ReadRequest(in)
		if err == nil {
			_, err = io.Copy(io.Discard, request.Body)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.t.Errorf("what was sent to %s is no HTTP/1: %v", p.server, err)
			}
			return
		}
		p.asked()
		asked <- request
	}
}

func (p *proxy) readAnswers(from io.Reader, asked <-chan *http.Request) {
	defer func() { _, _ = io.Copy(io.Discard, from) }()
	in := bufio.NewReader(from)
	for request := range asked {
		answer, err := http.ReadResponse(in, request)
		for err == nil && answer.StatusCode == http.StatusContinue {
			answer, err = http.ReadResponse(in, request)
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		p.answered()
	}
}

// carry passes on what comes, half a round trip after it came or after the
// connection is open, and then the end of it.
func (p *proxy) carry(to *net.TCPConn, from io.Reader, open time.Time, sent func(n int)) {
	type piece struct {
		due  time.Time
		data []byte
	}
	way := make(chan piece, 1<<12)
	go func() {
		defer close(way)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if came := time.Now(); n > 0 {
				if came.Before(open) {
					came = open
				}
				way <- piece{came.Add(p.rtt / 2), data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for piece := range way {
		time.Sleep(time.Until(piece.due))
		n, _ := to.Write(piece.data) // a reader that is gone is seen by the other direction
		sent(n)
	}
	_ = to.CloseWrite()
}
