package registry

import (
	"fmt"
	"strings"
)

// denied explains a 401 or 403 that no credential mended.
func (s *session) denied(a *answer) error { return s.deniedFor(&repositoryGrant{}, a) }

// deniedFor names every source that was tried for a repository, or that has
// nothing for its registry, and one likely fix.
func (s *session) deniedFor(r *repositoryGrant, a *answer) error {
	var sources []string
	sources = append(sources, r.refused...)
	if empty := append(append([]string{}, r.nothing...), s.absent...); len(empty) > 0 {
		sources = append(sources, "nothing for it in "+strings.Join(empty, ", "))
	}
	text := fmt.Sprintf("%s answered %s; credentials: %s", s.host, s.redact(a), strings.Join(sources, "; "))
	return &problem{kind: ErrDenied, text: text, fix: s.fix()}
}

// fix is the likely cause, by registry.
func (s *session) fix() string {
	switch {
	case s.host == "ghcr.io" || strings.HasPrefix(s.host, "containers."):
		return "GITHUB_TOKEN needs packages: read and the package must be linked to the repository or list it under Manage Actions access; a GitHub App's token cannot read private packages at all"
	case s.host == canonicalHost(s.client.options.Env("CI_REGISTRY")):
		return "a job's token is valid only while the job runs, and for another project only where that project's allowlist names this one"
	case isECR(s.host):
		return "the AWS role needs ecr:GetAuthorizationToken and, in the repository's policy, ecr:BatchGetImage and ecr:GetDownloadUrlForLayer"
	case isGoogle(s.host):
		return "the service account needs roles/artifactregistry.reader"
	case strings.HasSuffix(s.host, ".azurecr.io"):
		return "log in with az acr login; the identity needs the role AcrPull"
	case s.robot():
		return "the user is \"robot\" and no more: in robot$name the shell or CI took $name for a variable, so escape the $"
	}
	return fmt.Sprintf("log in with docker login %s, or set TAGBOAT_REGISTRY_HOST=%s, TAGBOAT_REGISTRY_USER and TAGBOAT_REGISTRY_PASSWORD", s.host, s.host)
}

// robot recognises Harbor's robot accounts after a shell has eaten their names.
func (s *session) robot() bool {
	for _, c := range s.candidates {
		c.mu.Lock()
		user := c.value.Username
		c.mu.Unlock()
		if user == "robot" {
			return true
		}
	}
	return false
}
