package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"tagboat/chatops"
	"tagboat/config"
	"tagboat/scm"
)

// slack is Slack's slash commands: v0 signature over the raw body, not older than
// five minutes.
func (s *Server) slack() channel {
	return channel{name: "slack", limit: chatBodyLimit, time: s.o.ChatTime, check: s.slackSigned, take: s.slackTake, answer: answerSlack}
}

func (s *Server) slackSigned(h http.Header, body []byte) error {
	verifier, err := slack.NewSecretsVerifier(h, s.o.SlackSecret)
	if errors.Is(err, slack.ErrExpiredTimestamp) {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	if err != nil {
		return errSignature // other texts repeat the header, which anybody may have written
	}
	_, _ = verifier.Write(body) // a hash takes all
	if verifier.Ensure() != nil {
		return errSignature
	}
	return nil
}

// slackTake reads the form: /promote ARGS, or /tagboat promote ARGS.
func (s *Server) slackTake(ctx context.Context, _ http.Header, body []byte) (chatops.Accepted, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return chatops.Accepted{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if form.Get("ssl_check") == "1" {
		return chatops.Accepted{}, errPing
	}
	l := chatops.ChatLine{Team: form.Get("team_id"), User: form.Get("user_id"), Reply: form.Get("response_url")}
	if l.Team == "" || l.User == "" || form.Get("command") == "" {
		return chatops.Accepted{}, fmt.Errorf("%w: no command, team_id or user_id", errMalformed)
	}
	text := strings.TrimSpace(form.Get("text"))
	l.Line = strings.TrimSpace(form.Get("command") + " " + text)
	if _, err := chatops.Parse(l.Line); errors.Is(err, chatops.ErrNotCommand) {
		l.Line = "/" + strings.TrimPrefix(text, "/") // the app's command has another name: the verb is in the text
	}
	return s.o.Desk.Slack(ctx, l)
}

// answerSlack tells the person, and nobody else. It is always 200: what has another
// status Slack shows as a fault of its own.
func answerSlack(w http.ResponseWriter, a chatops.Accepted, err error) {
	if errors.Is(err, errPing) || errors.Is(err, errMalformed) {
		answerForge(w, a, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_ = json.NewEncoder(w).Encode(map[string]string{ // who asked has gone: nobody listens
		"response_type": "ephemeral",
		"text":          chatops.SlackText(slackWords(a, err)),
	})
}

// slackWords says what happened and what to do next. Of an error that is not the
// person's it says no detail: that is for the log.
func slackWords(a chatops.Accepted, err error) string {
	var syntax *chatops.SyntaxError
	switch {
	case err == nil && a.Command.Verb == chatops.Help:
		return chatops.HelpText()
	case err == nil:
		text := "Accepted: " + a.Command.String() + "\nThe job answers here."
		if a.Run.URL != "" {
			text += " It runs at " + a.Run.URL
		}
		return text
	case errors.As(err, &syntax):
		return "Not understood: " + syntax.Problem + "\nWrite: " + syntax.Verb.Usage()
	case errors.Is(err, chatops.ErrNotCommand):
		return "Not understood.\n" + chatops.HelpText()
	case errors.Is(err, chatops.ErrUnmapped), errors.Is(err, chatops.ErrNoRight), errors.Is(err, config.ErrUnknown), errors.Is(err, config.ErrNotAllowed):
		return "Refused, nothing was started: " + err.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, scm.ErrUnavailable), errors.Is(err, scm.ErrRateLimited):
		return "The forge did not answer in time. Say it again in a minute: a command that is given twice does no harm."
	case errors.Is(err, config.ErrInvalid):
		return "Nothing was started: tagboat.yaml is not valid. Its errors are in the server's log."
	}
	return "Nothing was started: the forge refused to run the job. The cause is in the server's log."
}
