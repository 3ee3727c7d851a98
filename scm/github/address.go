package github

import (
	"fmt"
	"net/url"
	"strings"
)

// APIURL is the REST address of a GitHub host: github.com, SUB.ghe.com, or the
// host of a GitHub Enterprise Server.
func APIURL(host string) string {
	switch {
	case host == "" || strings.EqualFold(host, "github.com"):
		return "https://api.github.com"
	case strings.HasSuffix(strings.ToLower(host), ".ghe.com"):
		return "https://api." + strings.TrimPrefix(host, "api.")
	}
	return "https://" + host + "/api/v3"
}

type addresses struct {
	rest    *url.URL // with a trailing slash, as go-github wants it
	graphql string
	web     string // without a trailing slash
	host    string // of web
}

// addressesOf derives the GraphQL and web addresses: on GitHub Enterprise Server
// GraphQL is beside /api/v3 and not below it.
func addressesOf(base string) (addresses, error) {
	if base == "" {
		base = APIURL("")
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return addresses{}, fmt.Errorf("github API address %q: not an http(s) URL such as https://api.github.com or https://HOST/api/v3", redactURL(base))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return addresses{}, fmt.Errorf("github API address %q: it must carry no user, query or fragment", u.Redacted())
	}
	if low := strings.ToLower(u.Hostname()); low == "github.com" || (strings.HasSuffix(low, ".ghe.com") && !strings.HasPrefix(low, "api.")) {
		u.Host, u.Path = "api."+u.Host, ""
	}
	root := strings.TrimRight(u.Path, "/")
	web := *u
	web.Host, web.Path = webHost(u.Host), strings.TrimSuffix(root, "/api/v3")
	graphql := *u
	graphql.Path = strings.TrimSuffix(root, "/v3") + "/graphql"
	rest := *u
	rest.Path = root + "/"
	return addresses{rest: &rest, graphql: graphql.String(), web: web.String(), host: web.Host}, nil
}

func webHost(api string) string {
	low := strings.ToLower(api)
	if low == "api.github.com" || (strings.HasPrefix(low, "api.") && strings.HasSuffix(low, ".ghe.com")) {
		return api[len("api."):]
	}
	return api
}

func redactURL(s string) string {
	if _, after, ok := strings.Cut(s, "@"); ok {
		return "…@" + after
	}
	return s
}

func (r *Repository) fullName() string { return r.owner + "/" + r.name }
