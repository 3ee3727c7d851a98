//go:build bench

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// traffic is what went through a proxy.
type traffic struct {
	connections, requests int64 // of HTTP
	received              int64 // bytes from server to client
	unread                int64 // connections that spoke something else than HTTP/1
}

// meter adds up the traffic of proxies.
type meter struct {
	sync.Mutex
	traffic
	serving time.Duration // in which a server had a request and had not answered it to the end
	open    int           // requests of now
	since   time.Time
}

func (m *meter) add(change func(*traffic)) {
	m.Lock()
	defer m.Unlock()
	change(&m.traffic)
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

// take returns what was added since it was last called.
func (m *meter) take() (traffic, time.Duration) {
	m.Lock()
	defer m.Unlock()
	t, serving := m.traffic, m.serving
	m.traffic, m.serving = traffic{}, 0
	return t, serving
}

// proxy passes TCP connections on to a server as if it were a round-trip time away:
// a connection costs one, and so do a request and its answer. It limits no bandwidth.
type proxy struct {
	address string // HOST:PORT that clients use
	server  string
	rtt     time.Duration
	meter   *meter
}

// newProxy listens on a free port of 127.0.0.1 until the program ends.
func newProxy(ctx context.Context, server string, rtt time.Duration, m *meter) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{address: listener.Addr().String(), server: server, rtt: rtt, meter: m}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(ctx, client.(*net.TCPConn), time.Now())
		}
	}()
	return p, nil
}

func (p *proxy) serve(ctx context.Context, client *net.TCPConn, accepted time.Time) {
	p.meter.add(func(t *traffic) { t.connections++ })
	defer client.Close()
	dialled, err := new(net.Dialer).DialContext(ctx, "tcp", p.server)
	if err != nil {
		return
	}
	server := dialled.(*net.TCPConn)
	defer server.Close()
	asking, ask := io.Pipe()
	answering, answer := io.Pipe()
	asked := make(chan *http.Request, 64)
	go p.readRequests(asking, asked)
	go p.readAnswers(answering, asked)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer answer.Close()
		p.carry(client, io.TeeReader(server, answer), accepted, func(n int) {
			p.meter.add(func(t *traffic) { t.received += int64(n) })
		})
	}()
	p.carry(server, io.TeeReader(client, ask), accepted.Add(p.rtt), func(int) {})
	ask.Close()
	<-answered
}

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
				p.meter.add(func(t *traffic) { t.unread++ })
			}
			return
		}
		p.meter.asked()
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
		p.meter.answered()
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
