package config

import "slices"

// Environment is a place where apps run.
type Environment struct {
	// The environment's name: a-z, 0-9 and `-`.
	Name string `yaml:"name" jsonschema:"required"`
	// The directory in which an app's image is set, from the top of the repository
	// (for an app of an included file, from that file's directory). `{app}`,
	// `{environment}` and `{ring}` stand for the names, `*`, `?` and `[…]` for any text
	// within one path element. A path that ends in .yaml, .yml or .json is a file: a
	// Flux Kustomization or an Argo CD Application; FILE#NAME is the one of that
	// metadata.name among several.
	Path string `yaml:"path,omitempty"`
	// Several directories, as in `path`. All of them are one promotion.
	Paths []string `yaml:"paths,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// The branch that is promoted to; without the key, the default branch.
	Branch string `yaml:"branch,omitempty"`
	// The repository of the environment's files, where it is another than that of
	// `tagboat.yaml`: a name or URL as in `--repo`.
	Repository string `yaml:"repository,omitempty"`
	// Which forge `repository` is on, where its host does not tell.
	Forge string `yaml:"forge,omitempty" jsonschema:"enum=github,enum=gitlab,enum=gitea,enum=git"`
	// The earlier environments whose images are promoted to this one. All of them
	// must agree on one digest per image. Without the key, the environment takes
	// what builds push.
	From []string `yaml:"from,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// The parts of the environment that are promoted one after the other. A path
	// belongs to the first ring that matches; the gates of a ring look at the ring
	// before it.
	Rings []Ring `yaml:"rings,omitempty" jsonschema:"minItems=1"`

	Policy `yaml:",inline"`
}

// Ring is a part of an environment.
type Ring struct {
	// The ring's name: a-z, 0-9 and `-`.
	Name string `yaml:"name" jsonschema:"required"`
	// The ring's directories, as in the environment's `path`. Without the key, the
	// environment's own, which then has `{ring}`.
	Paths []string `yaml:"paths,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
}

// Policy is the rules of an environment.
type Policy struct {
	// How a promotion gets to the base branch. review: a person merges the pull request.
	// auto: the forge merges it when its own conditions are met. direct: a commit on
	// the branch, without a pull request.
	Merge Merge `yaml:"merge,omitempty" jsonschema:"enum=review,enum=auto,enum=direct,default=review"`
	// What must be true before a promotion.
	Gates Gates `yaml:"gates,omitempty"`
	// When nothing is promoted.
	Freeze []Window `yaml:"freeze,omitempty"`
	// When a promotion is allowed although a freeze is on.
	FreezeExceptions []Window `yaml:"freeze-exceptions,omitempty"`
	// Who may promote: `user:LOGIN` and `team:SLUG`. Without the key, whoever may write to
	// the repository. Only identities that the forge vouches for count.
	Promoters []string `yaml:"promoters,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Who may pass a gate, freeze or hold with a reason: `user:LOGIN` and `team:SLUG`.
	// Without the key, nobody.
	Overriders []string `yaml:"overriders,omitempty" jsonschema:"uniqueItems=true"`
	// How the pull request looks and who is asked to review it.
	PullRequest PullRequest `yaml:"pull-request,omitempty"`
	// The first line of the commit message. `{app}`, `{environment}`, `{ring}`, `{tag}` and
	// `{digest}` stand for what is promoted.
	CommitMessage string `yaml:"commit-message,omitempty"`
	// Whether the commit asks CI not to run, so that a repository that holds both the
	// source and the overlays does not build again. A required status then never comes.
	SkipCI bool `yaml:"skip-ci,omitempty"`
	// How an image is written: newTag and digest, or the digest alone.
	Pin Pin `yaml:"pin,omitempty" jsonschema:"enum=tag-and-digest,enum=digest,default=tag-and-digest"`
	// Whether the overlay is built before and after. auto goes on, and says so, where
	// it cannot be built; required refuses; off does not build.
	Prove Prove `yaml:"prove,omitempty" jsonschema:"enum=off,enum=auto,enum=required,default=auto"`
	// Overlays that prove what is built elsewhere (a Component, an Argo CD or Flux
	// object), as in `path`.
	ProveWith []string `yaml:"prove-with,omitempty" jsonschema:"uniqueItems=true"`
	// Whether an image that the environment's registry does not have is copied there.
	Copy bool `yaml:"copy,omitempty"`
}

// SkipCI asks CI not to run, for Policy.SkipCI. GitHub, GitLab and Gitea all have it
// among their words, in the message of the newest commit of a push. Where a promotion
// is merged with a merge commit, the merge's own message counts, and that takes up
// the pull request's title on all three unless somebody has changed its template: so
// it stands in both.
const SkipCI = "[skip ci]"

// Merge is how a promotion gets to the base branch.
type Merge string

// The merge policies.
const (
	Review Merge = "review"
	Auto   Merge = "auto"
	Direct Merge = "direct"
)

// Pin is how an image reference is written.
type Pin string

// The pins.
const (
	PinTagAndDigest Pin = "tag-and-digest"
	PinDigest       Pin = "digest"
)

// Prove says what to do about the proof.
type Prove string

// The modes of the proof.
const (
	ProveOff      Prove = "off"
	ProveAuto     Prove = "auto"
	ProveRequired Prove = "required"
)

// Gates are the conditions of a promotion. All of them must be met.
type Gates struct {
	// How long the digest must have been in the source, for example `24h` or `2d`.
	Soak Duration `yaml:"soak,omitempty"`
	// Commit statuses and check runs that must have succeeded on the source's commit, by
	// name; `*` stands for any text without `/`, `{app}`, `{environment}` and `{ring}` for the
	// names of the source: `argocd/{app}-{environment}`.
	Checks []string `yaml:"checks,omitempty" jsonschema:"uniqueItems=true"`
	// Platforms that the image must have, for example `linux/arm64`.
	Platforms []string `yaml:"platforms,omitempty" jsonschema:"uniqueItems=true"`
	// How many people must have approved the source's pull request, not counting its
	// author, who asked for the promotion, and authors of the source change.
	Approvals int `yaml:"approvals,omitempty" jsonschema:"minimum=0,maximum=100"`
}

// Window is a span of time that comes again.
type Window struct {
	// When it begins: minute, hour, day of the month, month and day of the week.
	Cron string `yaml:"cron" jsonschema:"required"`
	// How long it lasts, for example `60h`.
	Duration Duration `yaml:"duration" jsonschema:"required"`
	// The IANA time zone of `cron`, for example `Asia/Taipei`.
	Timezone string `yaml:"timezone,omitempty" jsonschema:"default=UTC"`
	// What is said to who is stopped by it.
	Reason string `yaml:"reason,omitempty"`
}

// PullRequest is how a promotion is proposed.
type PullRequest struct {
	// The title. `{app}`, `{environment}`, `{ring}`, `{tag}` and `{digest}` stand for what is
	// promoted.
	Title string `yaml:"title,omitempty"`
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

// builtIn is the policy where nothing is said.
func builtIn() Policy { return Policy{Merge: Review, Pin: PinTagAndDigest, Prove: ProveAuto} }

// clone gives a policy whose lists are its own.
func (p Policy) clone() Policy {
	p.Gates.Checks, p.Gates.Platforms = slices.Clone(p.Gates.Checks), slices.Clone(p.Gates.Platforms)
	p.Freeze, p.FreezeExceptions = slices.Clone(p.Freeze), slices.Clone(p.FreezeExceptions)
	p.Promoters, p.Overriders, p.ProveWith = slices.Clone(p.Promoters), slices.Clone(p.Overriders), slices.Clone(p.ProveWith)
	r := &p.PullRequest
	r.Labels, r.Reviewers = slices.Clone(r.Labels), slices.Clone(r.Reviewers)
	r.TeamReviewers, r.Assignees = slices.Clone(r.TeamReviewers), slices.Clone(r.Assignees)
	return p
}

// patterns is where the environment's files are, before names are filled in.
func (e Environment) patterns() []string {
	if e.Path != "" {
		return []string{e.Path}
	}
	return e.Paths
}

// RingNames lists the rings in their order; none for an environment without rings.
func (e Environment) RingNames() []string {
	var names []string
	for _, r := range e.Rings {
		names = append(names, r.Name)
	}
	return names
}
