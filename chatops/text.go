package chatops

import "strings"

// HelpText lists the commands.
func HelpText() string {
	var b strings.Builder
	for _, v := range verbs() {
		b.WriteString(v.Usage() + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// slackLimit is how many characters of a text Slack shows; it takes 40,000.
const slackLimit = 3000

// SlackText escapes a text for Slack, so that nothing in it is a link, a mention
// or a channel, and cuts it.
func SlackText(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(plain(text))
	return cutText(text, slackLimit)
}

// plain drops what cannot be seen, but for line ends.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || visible(string(r)) == nil || strings.ContainsRune("“”„‟«»‐‑‒–—―−", r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}
