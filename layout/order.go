package layout

import (
	"slices"
	"strings"

	"tagboat/overlay"
)

// order sorts the environments by the usual order, and promotes each from those
// of the rank before.
func (p *plan) order() {
	slices.SortStableFunc(p.environments, func(a, b Environment) int {
		if a.rank != b.rank {
			return (a.rank+4)%5 - (b.rank+4)%5 // what has no rank comes last
		}
		return strings.Compare(a.Name, b.Name)
	})
	var before, now []string
	rank := unranked
	for i := range p.environments {
		e := &p.environments[i]
		if e.rank == unranked {
			continue
		}
		if e.rank != rank {
			rank = e.rank
			if len(now) > 0 {
				before = now
			}
			now = nil
		}
		e.From = slices.Clone(before)
		now = append(now, e.Name)
	}
	if len(before) > 0 {
		p.remarks.add("the order of environments is guessed from their names")
	}
	var none []string
	for _, e := range p.environments {
		if e.rank == unranked && len(p.environments) > 1 {
			none = append(none, e.Name)
		}
	}
	if len(none) > 0 {
		p.remarks.add("the names %s tell no order of promotion: each takes what builds push until from: says otherwise", some(none))
	}
}

// unpinned says which environments are promoted from and run tags without a digest.
func (p *plan) unpinned() {
	var names []string
	for _, e := range p.environments {
		source := slices.ContainsFunc(p.environments, func(o Environment) bool { return slices.Contains(o.From, e.Name) })
		loose := slices.ContainsFunc(p.targets, func(t *target) bool {
			return (t.environment == e.Name || t.environment == "") && slices.ContainsFunc(t.entries, func(o overlay.Entry) bool { return o.Digest == "" })
		})
		if source && loose {
			names = append(names, e.Name)
		}
	}
	if len(names) > 0 {
		p.remarks.add("tags without a digest run in %s: nothing is promoted from there until a promotion to it has pinned them", strings.Join(names, ", "))
	}
}
