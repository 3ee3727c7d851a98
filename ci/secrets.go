package ci

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// secretNames are the variables whose value is a secret: ours, those of the
// forges' CI, and those of the registries' credential sources.
func secretNames() []string {
	return []string{
		"TAGBOAT_TOKEN", "TAGBOAT_APP_KEY", "TAGBOAT_REGISTRY_PASSWORD",
		"GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN",
		"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		"CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD", "CI_DEPLOY_PASSWORD", "CI_DEPENDENCY_PROXY_PASSWORD",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET",
	}
}

// Secrets returns the secrets that the environment holds, each once, for the
// redactor and the runner's masks: the values of the known names, the parts of
// DOCKER_AUTH_CONFIG, and a proxy's password. env is os.Getenv or a stand-in.
func Secrets(env func(string) string) []string {
	var found []string
	seen := map[string]bool{"": true}
	add := func(secret string) {
		if secret = strings.TrimSpace(secret); !seen[secret] {
			seen[secret] = true
			found = append(found, secret)
		}
	}
	for _, name := range secretNames() {
		add(env(name))
	}
	for line := range strings.Lines(env("TAGBOAT_TOKENS")) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			add(fields[len(fields)-1])
		}
	}
	for _, secret := range dockerSecrets(env("DOCKER_AUTH_CONFIG")) {
		add(secret)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		add(proxyPassword(env(name)))
	}
	return found
}

// dockerSecrets leaves the user's name readable: it belongs into errors.
func dockerSecrets(config string) []string {
	var file struct {
		Auths map[string]struct{ Auth, Password, IdentityToken, RegistryToken string }
	}
	if json.Unmarshal([]byte(config), &file) != nil {
		return nil // no secret that anybody could use; the registry reports the broken file
	}
	var found []string
	for _, auth := range file.Auths {
		found = append(found, auth.Auth, auth.Password, auth.IdentityToken, auth.RegistryToken)
		if plain, err := base64.StdEncoding.DecodeString(auth.Auth); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			found = append(found, strings.Trim(password, "\x00"))
		}
	}
	return found
}

func proxyPassword(proxy string) string {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy // as net/http reads it
	}
	address, err := url.Parse(proxy)
	if err != nil || address.User == nil {
		return ""
	}
	password, _ := address.User.Password()
	return password
}
