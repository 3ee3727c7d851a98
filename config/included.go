package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Included is a team's file, which the root's `include` names. It speaks for the
// apps that it defines and for no others.
type Included struct {
	// The version of this format. There is one: 1.
	Version int `yaml:"version" jsonschema:"required"`
	// The team's apps by name. The environments' paths are taken from the directory of
	// this file: `apps/{app}` of the root is `teams/shop/apps/{app}` for an app of
	// `teams/shop/tagboat.yaml`.
	Apps map[string]App `yaml:"apps,omitempty"`
	// Stricter rules for the team's apps.
	Environments []Tightened `yaml:"environments,omitempty" jsonschema:"minItems=1"`
}

// Tightened is an environment's rules made stricter. A key that is not said stays
// as the root says it; one that would make a rule looser is an error.
type Tightened struct {
	// The name of one of the root's environments.
	Name string `yaml:"name" jsonschema:"required"`
	// A stricter way: direct, auto, review, in this order.
	Merge Merge `yaml:"merge,omitempty" jsonschema:"enum=review,enum=auto,enum=direct"`
	// soak and approvals not below the root's; checks and platforms are added to the
	// root's.
	Gates Gates `yaml:"gates,omitempty"`
	// Windows that are added to the root's.
	Freeze []Window `yaml:"freeze,omitempty"`
	// Some of the root's promoters; anybody where the root names none.
	Promoters []string `yaml:"promoters,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Some of the root's overriders, or none.
	Overriders []string `yaml:"overriders,omitempty" jsonschema:"uniqueItems=true"`
	// Labels and people that are added to the root's; a draft where the root has none.
	PullRequest TightenedPullRequest `yaml:"pull-request,omitempty"`
	// A stricter proof: off, auto, required, in this order.
	Prove Prove `yaml:"prove,omitempty" jsonschema:"enum=off,enum=auto,enum=required"`
	// Overlays that are added to the root's, from the directory of this file.
	ProveWith []string `yaml:"prove-with,omitempty" jsonschema:"uniqueItems=true"`
	// false where the root copies images.
	Copy bool `yaml:"copy,omitempty"`
}

// TightenedPullRequest is what a team may add to a pull request.
type TightenedPullRequest struct {
	// Labels to set.
	Labels []string `yaml:"labels,omitempty" jsonschema:"uniqueItems=true"`
	// Logins that are asked to review.
	Reviewers []string `yaml:"reviewers,omitempty" jsonschema:"uniqueItems=true"`
	// Teams that are asked to review, by slug.
	TeamReviewers []string `yaml:"team-reviewers,omitempty" jsonschema:"uniqueItems=true"`
	// Logins that it is assigned to.
	Assignees []string `yaml:"assignees,omitempty" jsonschema:"uniqueItems=true"`
	// Whether it is opened as a draft.
	Draft bool `yaml:"draft,omitempty"`
}

// untightened is what a team's environment has before its keys are read: what the
// root says, so that a key that is not there changes nothing.
func (c *Config) untightened(n *yaml.Node) Tightened {
	var t Tightened
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; n.Content[i].Value == "name" {
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			t.Name = value.Value
		}
	}
	root, err := c.Environment(t.Name)
	if err != nil {
		return Tightened{}
	}
	p := root.clone()
	return Tightened{
		Merge: p.Merge, Gates: p.Gates, Freeze: p.Freeze, Promoters: p.Promoters, Overriders: p.Overriders, Prove: p.Prove,
		ProveWith: p.ProveWith, Copy: p.Copy, PullRequest: TightenedPullRequest{
			Labels: p.PullRequest.Labels, Reviewers: p.PullRequest.Reviewers, TeamReviewers: p.PullRequest.TeamReviewers,
			Assignees: p.PullRequest.Assignees, Draft: p.PullRequest.Draft,
		},
	}
}

// tighten checks a team's rules against the root's and keeps what holds for the
// team's apps.
func (c *Config) tighten(dir string, environments []Tightened, r *report) {
	policies := map[string]Policy{}
	for i, t := range environments {
		at := fmt.Sprintf("environments[%d]", i)
		root, err := c.Environment(t.Name)
		if err != nil {
			r.wrong(at+".name", "no environment %q in %s%s", t.Name, FileName, Nearest(t.Name, c.EnvironmentNames()))
			continue
		}
		if _, twice := policies[t.Name]; twice {
			r.wrong(at+".name", "the environment %s is there already", t.Name)
			continue
		}
		base := root.Policy
		looser(at, base, t, r)
		root.Policy = t.policy(root.Policy)
		checkPolicy(at, root.Policy, r)
		checkSourced(&root, at, r)
		policies[t.Name] = tightened(base, root.Policy)
	}
	c.tightened[dir] = policies
	for i, t := range environments {
		root, err := c.Environment(t.Name)
		if err != nil {
			continue
		}
		at := fmt.Sprintf("environments[%d]", i)
		as := func(e Environment) Environment {
			if p, ok := policies[e.Name]; ok {
				e.Policy = p
			}
			return e
		}
		sources := c.sourcesOf(root)
		for i, s := range sources {
			sources[i] = as(s)
		}
		checkAskable(at, as(root), sources, r)
		checkGap(at, as(root).Policy, r)
	}
}

// looser reports every rule that a team makes looser than the root has it.
func looser(at string, root Policy, t Tightened, r *report) {
	merges, proofs := []string{string(Direct), string(Auto), string(Review)}, []string{string(ProveOff), string(ProveAuto), string(ProveRequired)}
	stricter := func(key string, order []string, root, team string) {
		if slices.Index(order, team) < slices.Index(order, root) {
			r.wrong(at+"."+key, "%s is looser than the root's %s", team, root)
		}
	}
	stricter("merge", merges, string(root.Merge), string(t.Merge))
	stricter("prove", proofs, string(root.Prove), string(t.Prove))
	if t.Gates.Soak < root.Gates.Soak {
		r.wrong(at+".gates.soak", "%v is looser than the root's %v", t.Gates.Soak, root.Gates.Soak)
	}
	if t.Gates.Approvals < root.Gates.Approvals {
		r.wrong(at+".gates.approvals", "%d is looser than the root's %d", t.Gates.Approvals, root.Gates.Approvals)
	}
	if t.Copy && !root.Copy {
		r.wrong(at+".copy", "the root does not copy images")
	}
	if root.PullRequest.Draft && !t.PullRequest.Draft {
		r.wrong(at+".pull-request.draft", "the root opens drafts")
	}
	some := func(key string, root, team []string) {
		for i, who := range team {
			if !slices.Contains(root, who) {
				r.wrong(fmt.Sprintf("%s.%s[%d]", at, key, i), "%s is looser than the root, which has %s", who, listed(root))
			}
		}
	}
	if root.Promoters != nil {
		some("promoters", root.Promoters, t.Promoters)
	}
	some("overriders", root.Overriders, t.Overriders)
}

func listed(words []string) string {
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, ", ")
}

// policy is what a team says, with the root's rules where it says nothing.
func (t Tightened) policy(root Policy) Policy {
	p := root.clone()
	p.Merge, p.Gates, p.Freeze, p.Promoters, p.Overriders = t.Merge, t.Gates, t.Freeze, t.Promoters, t.Overriders
	p.Prove, p.ProveWith, p.Copy = t.Prove, t.ProveWith, t.Copy
	r := &p.PullRequest
	r.Labels, r.Reviewers, r.TeamReviewers = t.PullRequest.Labels, t.PullRequest.Reviewers, t.PullRequest.TeamReviewers
	r.Assignees, r.Draft = t.PullRequest.Assignees, t.PullRequest.Draft
	return p
}

// tightened is the policy of a team's apps: the team's, with what the root's lists
// have beside it.
func tightened(root, team Policy) Policy {
	p := team.clone()
	p.Gates.Checks, p.Gates.Platforms = union(root.Gates.Checks, team.Gates.Checks), union(root.Gates.Platforms, team.Gates.Platforms)
	p.Freeze, p.ProveWith = union(root.Freeze, team.Freeze), union(root.ProveWith, team.ProveWith)
	was, r := root.PullRequest, &p.PullRequest
	r.Labels, r.Reviewers = union(was.Labels, r.Labels), union(was.Reviewers, r.Reviewers)
	r.TeamReviewers, r.Assignees = union(was.TeamReviewers, r.TeamReviewers), union(was.Assignees, r.Assignees)
	return p
}

// union is a list with what another has beside it.
func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, item := range b {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

// Policy is the rules that hold for an app in an environment: those of the
// environment, stricter where the app's team says so.
func (c *Config) Policy(app, environment string) (Policy, error) {
	a, err := c.App(app)
	if err != nil {
		return Policy{}, err
	}
	e, err := c.Environment(environment)
	if err != nil {
		return Policy{}, err
	}
	if p, ok := c.tightened[a.Dir][environment]; ok {
		return p.clone(), nil
	}
	return e.clone(), nil
}
