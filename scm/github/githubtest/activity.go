package githubtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

// noCommit is what a branch was at that was not there.
const noCommit = "0000000000000000000000000000000000000000"

// listActivities has cursors in place of page numbers: after=ID gives what is
// older than that activity.
func listActivities(s *Server, w http.ResponseWriter, r *request) (int, any) {
	if r.q("page") != "" {
		s.t.Errorf("fake GitHub: %s has no pages with numbers", r.op)
	}
	branch, whole := strings.CutPrefix(r.q("ref"), "refs/heads/")
	if !whole {
		s.t.Errorf("fake GitHub: %s of ref %q: give the whole reference", r.op, r.q("ref"))
	}
	all := slices.DeleteFunc(s.Store.Moves(), func(m scmtest.Move) bool {
		return m.Branch != branch || r.q("activity_type") != "" && m.Kind != r.q("activity_type")
	})
	if r.q("after") != "" {
		after, err := strconv.Atoi(r.q("after"))
		if err != nil {
			return refuse(http.StatusUnprocessableEntity, "Validation Failed", "Invalid cursor")
		}
		all = slices.DeleteFunc(all, func(m scmtest.Move) bool { return m.ID >= after })
	}
	size, _ := strconv.Atoi(r.q("per_page"))
	if size <= 0 {
		size = 30
	}
	size = min(size, 100)
	if len(all) > size {
		all = all[:size]
		next := *r.URL
		q := next.Query()
		q.Set("after", strconv.Itoa(all[size-1].ID))
		next.RawQuery = q.Encode()
		w.Header().Set("Link", "<"+s.base+next.String()+`>; rel="next"`)
	}
	out := []any{}
	for _, m := range all {
		out = append(out, s.activity(m))
	}
	return http.StatusOK, out
}

func (s *Server) activity(m scmtest.Move) map[string]any {
	orNone := func(sha string) string {
		if sha == "" {
			return noCommit
		}
		return sha
	}
	return s.object("activity", map[string]any{
		"id": m.ID, "node_id": "PSH_" + strconv.Itoa(m.ID), "before": orNone(m.Before), "after": orNone(m.After), "ref": "refs/heads/" + m.Branch,
		"timestamp": stamp(m.Time), "activity_type": m.Kind, "actor": nil,
	})
}
