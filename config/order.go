package config

import (
	"fmt"
	"slices"
	"strings"
)

// Place is where an image runs: an environment, or one ring of it.
type Place struct{ Environment, Ring string }

// String is environment, or environment.ring.
func (p Place) String() string {
	if p.Ring == "" {
		return p.Environment
	}
	return p.Environment + "." + p.Ring
}

// Pair is a promotion that the order has.
type Pair struct{ From, To string }

// Pairs lists the promotions from environment to environment, in order.
func (c *Config) Pairs() []Pair {
	var pairs []Pair
	for _, e := range c.Environments {
		for _, from := range e.From {
			pairs = append(pairs, Pair{from, e.Name})
		}
	}
	return pairs
}

// CheckPair says why nothing is promoted from one environment to another, or
// nothing: an unknown name is ErrUnknown, a pair that the order does not have is
// ErrNotAllowed.
func (c *Config) CheckPair(from, to string) error {
	if _, err := c.Environment(from); err != nil {
		return err
	}
	target, err := c.Environment(to)
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(target.From, from):
		return nil
	case target.From == nil:
		return fmt.Errorf("%w: %s takes what builds push; it has no from in %s", ErrNotAllowed, to, FileName)
	}
	return fmt.Errorf("%w: %s is promoted from %s, not from %s", ErrNotAllowed, to, strings.Join(target.From, " and "), from)
}

// Sources lists where the image of an app comes from that is promoted to an
// environment's ring ("" for an environment without rings): the ring before, or
// the environments in from in which the app is, with all their rings. None means
// that it comes from a build.
func (c *Config) Sources(app, environment, ring string) ([]Place, error) {
	a, err := c.App(app)
	if err != nil {
		return nil, err
	}
	e, err := c.Environment(environment)
	if err != nil {
		return nil, err
	}
	i, err := e.ringIndex(ring)
	if err != nil {
		return nil, err
	}
	if i > 0 {
		return []Place{{environment, e.Rings[i-1].Name}}, nil
	}
	var places []Place
	for _, from := range e.From {
		if !a.In(from) {
			continue
		}
		source, err := c.Environment(from)
		if err != nil {
			return nil, err
		}
		places = append(places, source.Places()...)
	}
	return places, nil
}

// Places lists the environment's rings in their order, or itself where it has none.
func (e Environment) Places() []Place {
	if e.Rings == nil {
		return []Place{{Environment: e.Name}}
	}
	places := make([]Place, len(e.Rings))
	for i, r := range e.Rings {
		places[i] = Place{e.Name, r.Name}
	}
	return places
}

// ringIndex finds a ring; 0 for "" in an environment without rings.
func (e Environment) ringIndex(ring string) (int, error) {
	i := slices.Index(e.RingNames(), ring)
	switch {
	case i >= 0, ring == "" && e.Rings == nil:
		return max(i, 0), nil
	case e.Rings == nil:
		return 0, fmt.Errorf("%w: the environment %s has no rings", ErrUnknown, e.Name)
	}
	return 0, unknown("ring of "+e.Name, ring, e.RingNames())
}
