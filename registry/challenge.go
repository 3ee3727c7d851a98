package registry

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// challenge is what a registry asks for in WWW-Authenticate: "" (nothing),
// "basic" or "bearer".
type challenge struct {
	scheme  string
	realm   string // the token server's URL
	service string
	scope   string
}

// readChallenge picks the challenge that can be answered, bearer before basic,
// out of one or more headers (RFC 9110, section 11.6.1). A 401 that names
// neither is taken for basic.
func readChallenge(header http.Header) challenge {
	best := challenge{scheme: "basic"}
	for _, value := range header.Values("WWW-Authenticate") {
		for value != "" {
			var scheme string
			var parameters map[string]string
			scheme, parameters, value = nextChallenge(value)
			if strings.EqualFold(scheme, "bearer") && parameters["realm"] != "" {
				return challenge{"bearer", parameters["realm"], parameters["service"], parameters["scope"]}
			}
		}
	}
	return best
}

// nextChallenge reads one scheme and its parameters, and returns what follows.
func nextChallenge(s string) (scheme string, parameters map[string]string, rest string) {
	parameters = map[string]string{}
	scheme, rest, _ = strings.Cut(strings.TrimLeft(s, " ,"), " ")
	for {
		rest = strings.TrimLeft(rest, " ,")
		equals := strings.IndexByte(rest, '=')
		if equals < 0 || strings.ContainsAny(rest[:equals], " ,") {
			return scheme, parameters, rest // the next scheme, or nothing
		}
		var value string
		key := strings.ToLower(rest[:equals])
		value, rest = readValue(rest[equals+1:])
		parameters[key] = value
	}
}

// readValue reads a token or a quoted string.
func readValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexAny(s, " ,"); end >= 0 {
			return s[:end], s[end:]
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// sameSite says whether two hosts belong to one owner: the same host on any
// port, or two names under one registered domain (registry.gitlab.com and
// gitlab.com, index.docker.io and auth.docker.io).
func sameSite(a, b string) bool {
	a, b = hostname(a), hostname(b)
	if a == b {
		return true
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(a)
	if err != nil || isLiteral(a) || isLiteral(b) {
		return false
	}
	other, err := publicsuffix.EffectiveTLDPlusOne(b)
	return err == nil && domain == other
}

// hostname is a host without its port, in lower case.
func hostname(host string) string {
	if u, err := url.Parse("//" + host); err == nil {
		host = u.Hostname()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLiteral(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isLoopback says whether a host is this machine.
func isLoopback(host string) bool {
	name := hostname(host)
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || (ip != nil && ip.IsLoopback())
}

// isInside says whether a host is an address literal that a registry on the
// internet has no business to send us to: private, loopback or link-local (where
// clouds keep their metadata service).
func isInside(host string) bool {
	ip := net.ParseIP(hostname(host))
	return ip != nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}
