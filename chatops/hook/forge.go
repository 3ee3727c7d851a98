package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tagboat/chatops"
)

// github is GitHub's webhook: HMAC-SHA256 of the body in X-Hub-Signature-256.
func (s *Server) github() channel {
	return s.forge("github", signed("X-Hub-Signature-256", "sha256=", s.o.GitHubSecret), event("X-GitHub-Event", chatops.GitHubEvent))
}

// gitea is Gitea's and Forgejo's: the same, as plain hex digits in
// X-Gitea-Signature.
func (s *Server) gitea() channel {
	return s.forge("gitea", signed("X-Gitea-Signature", "", s.o.GiteaSecret), event("X-Gitea-Event", chatops.GitHubEvent))
}

// gitlab is GitLab's: a secret token in X-Gitlab-Token, no signature.
func (s *Server) gitlab() channel {
	check := func(h http.Header, _ []byte) error {
		// Hashed first, so that not even the length shows.
		got, want := sha256.Sum256([]byte(h.Get("X-Gitlab-Token"))), sha256.Sum256([]byte(s.o.GitLabToken))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return errSignature
		}
		return nil
	}
	return s.forge("gitlab", check, func(h http.Header, body []byte) (chatops.Event, error) {
		if h.Get("X-Gitlab-Event") != "Note Hook" && h.Get("X-Gitlab-Event") != "Confidential Note Hook" {
			return chatops.Event{}, chatops.ErrIgnored
		}
		return chatops.GitLabEvent(body)
	})
}

// signed verifies an HMAC-SHA256 of the raw body.
func signed(header, prefix, secret string) func(http.Header, []byte) error {
	return func(h http.Header, body []byte) error {
		digits, found := strings.CutPrefix(h.Get(header), prefix)
		got, err := hex.DecodeString(digits)
		if !found || err != nil {
			return errSignature
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if !hmac.Equal(got, mac.Sum(nil)) {
			return errSignature
		}
		return nil
	}
}

// event reads the one event that is for us.
func event(header string, read func([]byte) (chatops.Event, error)) func(http.Header, []byte) (chatops.Event, error) {
	return func(h http.Header, body []byte) (chatops.Event, error) {
		switch h.Get(header) {
		case "issue_comment":
			return read(body)
		case "ping":
			return chatops.Event{}, errPing
		}
		return chatops.Event{}, chatops.ErrIgnored
	}
}

func (s *Server) forge(name string, check func(http.Header, []byte) error, read func(http.Header, []byte) (chatops.Event, error)) channel {
	take := func(ctx context.Context, h http.Header, body []byte) (chatops.Accepted, error) {
		e, err := read(h, body)
		switch {
		case errors.Is(err, errPing), errors.Is(err, chatops.ErrIgnored):
			return chatops.Accepted{}, err
		case err != nil:
			return chatops.Accepted{}, fmt.Errorf("%w: %w", errMalformed, err)
		}
		return s.o.Desk.Comment(ctx, e)
	}
	return channel{name: name, limit: forgeBodyLimit, time: s.o.ForgeTime, check: check, take: take, answer: answerForge}
}

// answerForge answers a webhook. What will never be otherwise is 2xx, or the forge
// would show a fault and, in time, turn the hook off; what may go well when the
// delivery is sent again is 5xx.
func answerForge(w http.ResponseWriter, a chatops.Accepted, err error) {
	switch outcomeOf(err) {
	case "accepted":
		say(w, http.StatusAccepted, "accepted: the job answers in the conversation")
	case "ping":
		say(w, http.StatusOK, "pong")
	case "ignored":
		say(w, http.StatusOK, "ignored: not a command")
	case "refused":
		say(w, http.StatusOK, "refused: its author may not ask for that")
	case "malformed":
		say(w, http.StatusBadRequest, "the event does not read")
	default:
		w.Header().Set("Retry-After", "30")
		say(w, http.StatusServiceUnavailable, "the forge did not take it: send the delivery again")
	}
}
