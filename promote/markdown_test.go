package promote

import (
	"regexp"
	"strings"
	"testing"

	"tagboat/scm"
)

// closes is what ends an issue when the text that has it is merged. GitLab looks for
// it in a description as it is written, code or not, and so does every forge in the
// message of a commit, which a squash may make of the description
// (docs.gitlab.com/administration/issue_closing_pattern). With Jira its keys count.
var closes = regexp.MustCompile(`(?i)\b(clos(e[sd]?|ing)|fix(e[sd]|ing)?|resolv(e[sd]?|ing)|implement(s|ed|ing)?)(:? +(issues? +)?([\w./-]*#\d|https?://|\[[a-z_]+:)|(?-i:(:? +)[A-Z][A-Z0-9_]*-\d))`)

func TestCodeClosesNothing(t *testing.T) {
	for text, want := range map[string]string{
		"Fix login (#12)":                                 "`Fix login (#12)`",
		"closes #12":                                      "`closes` `#12`",
		"Fixes: #12, #13 and #14":                         "`Fixes:` `#12, #13 and` `#14`",
		"resolves issue   acme/todo#12":                   "`resolves issue` `acme/todo#12`",
		"fix https://forge.example/acme/config/issues/12": "`fix` `https://forge.example/acme/config/issues/12`",
		"Implements GL-12":                                "`Implements` `GL-12`",
		"closing [work_item:12]":                          "`closing` `[work_item:12]`",
		"fixed  OPS-12":                                   "`fixed` `OPS-12`",
		"closes `#12`":                                    "`` closes `#12` ``",
		"` fixes #12 `":                                   "`` ` fixes `` `` #12 ` ``",
		"reads UTF-8":                                     "`reads UTF-8`",
		"#12":                                             "`#12`",
	} {
		if want != Code(text) {
			t.Errorf("%s: %s, want %s", text, Code(text), want)
		}
		if found := closes.FindString(Code(text)); found != "" {
			t.Errorf("%s: %q closes an issue", Code(text), found)
		}
	}
	items := listCommits(scm.Span{Count: 1, Commits: []scm.Commit{{SHA: strings.Repeat("a", 40), Message: "Fix it, closes #12", Author: "closes #13"}}}, 1)
	if found := closes.FindString(items[0]); found != "" {
		t.Errorf("%s: %q closes an issue", items[0], found)
	}
}
