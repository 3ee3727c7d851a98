package chatops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// SlackHosts are where Slack takes answers.
func SlackHosts() []string { return []string{"hooks.slack.com", "hooks.slack-gov.com"} }

// Post gives an answer to a chat at an address that CheckReply took. In the channel
// is seen what was done; what was refused is for the one who asked. The address is
// a secret, so no error repeats it.
func Post(ctx context.Context, address, text string, inChannel bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	kind := "ephemeral"
	if inChannel {
		kind = "in_channel"
	}
	body, err := json.Marshal(map[string]string{"response_type": kind, "text": SlackText(text)})
	if err != nil {
		return fmt.Errorf("answer the chat: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("answer the chat: the address is no lawful URL")
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("answer the chat at %s: no answer", r.URL.Host) // url.Error repeats the address
	}
	defer func() { _ = response.Body.Close() }() // nothing is read
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("answer the chat at %s: status %d: Slack takes answers for 30 minutes, five at most", r.URL.Host, response.StatusCode)
	}
	return nil
}
