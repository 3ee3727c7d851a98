package gitlab_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// TestFakeAnswersAsGitLabDoes compares the fields of the fake's answers with those
// of real ones, which lie beside the repository where there are any. Both are
// decoded with the SDK's type.
func TestFakeAnswersAsGitLabDoes(t *testing.T) {
	const samples = "../../../shared/gitlab-samples"
	if _, err := os.Stat(samples); err != nil {
		t.Skipf("NOT CHECKED: no real answers at %s", samples)
	}
	w, pr := opened(t)
	w.push("main", "base/other.txt", "y")
	if _, err := w.store.EditPull(pr.Number, func(p *scmtest.Pull) error { p.Labels = []string{"promotion"}; return nil }); err != nil {
		t.Fatal(err)
	}
	project := "projects/" + strings.ReplaceAll(gitlabtest.Project, "/", "%2F") + "/"
	sha := w.at("main")
	cases := []struct {
		sample, method, path string
		body                 string
		into                 any
		// gone are fields that newer versions do not give, or only on request.
		gone []string
	}{
		{"branch.json", "GET", project + "repository/branches/main", "", new(gl.Branch), nil},
		{"branch_create.json", "GET", project + "repository/branches/main", "", new(gl.Branch), nil},
		{"commit.json", "POST", project + "repository/commits",
			`{"branch":"x","start_sha":"` + sha + `","commit_message":"m","actions":[{"action":"create","file_path":"x","content":"x"}]}`, new(gl.Commit), nil},
		{"compare.json", "GET", project + "repository/compare?from=" + sha + "&to=tagboat%2Fstaging%2Fapp", "", new(gl.Compare), nil},
		{"content.json", "GET", project + "repository/files/base%2Fapp.yaml?ref=" + sha, "", new(gl.File), nil},
		{"merge.json", "GET", project + "merge_requests/1", "", new(gl.MergeRequest), nil},
		{"merges.json", "GET", project + "merge_requests?state=all", "", new([]*gl.MergeRequest),
			[]string{"[].subscribed", "[].changes_count"}}, // the list's sample is of a single one
		{"merge_note.json", "POST", project + "merge_requests/1/notes", `{"body":"b"}`, new(gl.Note), []string{"author.email", "author.created_at"}},
	}
	for _, c := range cases {
		t.Run(c.sample, func(t *testing.T) {
			real, err := os.ReadFile(filepath.Join(samples, c.sample))
			if err != nil {
				t.Fatal(err)
			}
			fake := ask(t, c.method, w.url+"/api/v4/"+c.path, c.body)
			for what, raw := range map[string][]byte{"real": real, "fake": fake} {
				if err := json.Unmarshal(raw, c.into); err != nil {
					t.Errorf("decode the %s answer: %v", what, err)
				}
			}
			have := fields(t, fake)
			for name, kind := range fields(t, real) {
				got, ok := have[name]
				if !ok && !slices.Contains(c.gone, name) && !belowNull(have, name) {
					t.Errorf("the fake does not give %s", name)
				}
				if ok && kind != got && kind != "null" && got != "null" {
					t.Errorf("%s is %s, the fake gives %s", name, kind, got)
				}
			}
		})
	}
}

func ask(t *testing.T, method, url, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("PRIVATE-TOKEN", gitlabtest.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v %s", method, url, resp.Status, err, raw)
	}
	return raw
}

// fields are the names of all fields of a JSON value, with the kind of each.
func fields(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&v); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	walk("", v, all)
	return all
}

// belowNull: the field's object is absent altogether, as GitLab leaves it now and
// then.
func belowNull(all map[string]string, name string) bool {
	i := strings.LastIndex(name, ".")
	return i > 0 && all[name[:i]] == "null"
}

func walk(at string, v any, all map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		all[at] = "object"
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(strings.TrimPrefix(at+"."+k, "."), v[k], all)
		}
	case []any:
		all[at] = "list"
		for _, x := range v {
			walk(at+"[]", x, all)
		}
	case nil:
		all[at] = "null"
	case string:
		all[at] = "string"
	case float64:
		all[at] = "number"
	case bool:
		all[at] = "bool"
	}
}
