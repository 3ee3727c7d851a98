package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"tagboat/registry/registrytest"
)

// The budget of a hundred images of one registry: one ping, one look-up of the
// credential, a token and a GET for each repository, one HEAD for each platform,
// two more for facts.
func TestHundredImages(t *testing.T) {
	for name, test := range map[string]struct {
		options   []registrytest.Option
		tags      bool // of one repository
		platforms []string
		requests  int
		tokens    int
	}{
		"plain":            {requests: 1 + 100},
		"basic":            {options: []registrytest.Option{registrytest.WithBasic("acme", password)}, requests: 1 + 100},
		"bearer":           {options: []registrytest.Option{registrytest.WithToken("acme", password)}, requests: 1 + 200, tokens: 100},
		"bearer, tags":     {options: []registrytest.Option{registrytest.WithToken("acme", password)}, tags: true, requests: 1 + 1 + 100, tokens: 1},
		"with 2 platforms": {options: []registrytest.Option{registrytest.WithToken("acme", password)}, platforms: []string{"linux/amd64", "linux/arm64"}, requests: 1 + 200 + 200, tokens: 100},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t, test.options...)
			c := newClient(t, Options{ConfigDir: dockerConfigDir(t, fmt.Sprintf(`{"credHelpers":{%q:"counted"}}`, r.Host()))})
			asked := 0
			c.keys.helper = func(context.Context, string, string) (login, error) {
				asked++
				return login{Username: "acme", Password: password}, nil
			}
			var qs []Query
			var want []string
			for i := range 100 {
				ref := fmt.Sprintf("acme/app-%d:v1", i)
				if test.tags {
					ref = fmt.Sprintf("acme/app:v%d", i)
				}
				want = append(want, push(t, r, ref, registrytest.ImageSpec{Platforms: test.platforms, Content: ref}))
				qs = append(qs, Query{Reference: reference(t, r.Host()+"/"+ref), Platforms: test.platforms})
			}
			images, errs := c.ResolveAll(context.Background(), qs)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for i := range images {
				if images[i].Reference.Digest != want[i] || images[i].Reference.Tag != qs[i].Reference.Tag || images[i].Reference.Repository != qs[i].Reference.Repository {
					t.Errorf("%d: %s, want the order of the queries", i, images[i].Reference)
				}
			}
			if n := r.Count("", ""); n != test.requests || c.Requests() != n {
				t.Errorf("%d requests arrived, %d counted, want %d", n, c.Requests(), test.requests)
			}
			if pings, tokens := r.Count("GET", "/v2/")-r.Count("GET", "/v2/acme"), r.Count("", "/token"); pings != 1 || tokens != test.tokens {
				t.Errorf("%d pings and %d tokens, want 1 and %d", pings, tokens, test.tokens)
			}
			if len(test.options) > 0 && asked != 1 {
				t.Errorf("the helper was asked %d times, want once", asked)
			}
			before := c.Requests()
			if _, err := c.Facts(context.Background(), images[7].Reference); err != nil || c.Requests()-before > 2 {
				t.Errorf("facts took %d requests: %v", c.Requests()-before, err)
			}
		})
	}
}

// Many workers, and never more than were allowed.
func TestWorkersPerHost(t *testing.T) {
	r, _ := start(t)
	c := newClient(t, Options{Workers: 8})
	var qs []Query
	for i := range 60 {
		ref := fmt.Sprintf("acme/app-%d:v1", i)
		push(t, r, ref, registrytest.ImageSpec{})
		qs = append(qs, Query{Reference: reference(t, r.Host()+"/"+ref)})
	}
	r.Delay(registrytest.Match{Path: "/manifests/"}, 20*time.Millisecond)
	_, errs := c.ResolveAll(context.Background(), qs)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if peak := r.Peak(); peak > 8 || peak < 4 {
		t.Errorf("%d requests at once, want up to 8", peak)
	}
}

// Errors stay with their image.
func TestEachImageItsOwnError(t *testing.T) {
	r, c := start(t)
	there := push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	images, errs := c.ResolveAll(context.Background(), []Query{
		{Reference: reference(t, r.Host()+"/acme/app:v2")},
		{Reference: reference(t, r.Host()+"/acme/app:v1")},
		{Reference: reference(t, r.Host()+"/acme/app:v1"), Platforms: []string{"linux/s390x"}},
	})
	if !errors.Is(errs[0], ErrNotFound) || errs[1] != nil || !errors.Is(errs[2], ErrPlatform) || images[1].Reference.Digest != there {
		t.Errorf("%+v, %v", images, errs)
	}
	if images, errs := c.ResolveAll(context.Background(), nil); len(images) != 0 || len(errs) != 0 {
		t.Errorf("of nothing: %v, %v", images, errs)
	}
}

// A registry that is down is pinged once for all images of a call, not for each.
func TestDownForAll(t *testing.T) {
	r, _ := start(t)
	time := newClock()
	c := newClient(t, Options{Now: time.Now, Sleep: time.Sleep})
	r.Fail(registrytest.Match{}, http.StatusBadGateway, "")
	var qs []Query
	for i := range 50 {
		qs = append(qs, Query{Reference: reference(t, fmt.Sprintf("%s/acme/app-%d:v1", r.Host(), i))})
	}
	_, errs := c.ResolveAll(context.Background(), qs)
	for _, err := range errs {
		if !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%v, want ErrUnavailable", err)
		}
	}
	if n := c.Requests(); n > 12 {
		t.Errorf("%d requests to a registry that is down", n)
	}
	r.Reset() // another call asks anew
	push(t, r, "acme/app-0:v1", registrytest.ImageSpec{})
	if _, err := c.Resolve(context.Background(), qs[0]); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}
