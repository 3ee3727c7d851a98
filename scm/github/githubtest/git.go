package githubtest

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tagboat/scm/scmtest"
)

// handlers are the operations that are served, by the names of route.op.
func handlers() map[string]handler {
	return map[string]handler{
		"GET":                                                     getRepository,
		"GET activity":                                            listActivities,
		"GET branches":                                            listBranches,
		"GET branches/{branch}":                                   getBranch,
		"GET commits":                                             listCommits,
		"GET commits/{ref}":                                       getCommit,
		"GET compare/{basehead}":                                  compare,
		"GET contents/{path}":                                     getContents,
		"GET git/ref/{ref}":                                       getRef,
		"GET git/matching-refs/{ref}":                             matchingRefs,
		"POST git/refs":                                           createRef,
		"PATCH git/refs/{ref}":                                    updateRef,
		"GET git/trees/{tree_sha}":                                getTree,
		"POST git/trees":                                          createTree,
		"GET git/commits/{commit_sha}":                            getGitCommit,
		"POST git/commits":                                        createCommit,
		"GET git/blobs/{file_sha}":                                getBlob,
		"POST git/blobs":                                          createBlob,
		"GET pulls":                                               listPulls,
		"POST pulls":                                              createPull,
		"GET pulls/{pull_number}":                                 getPull,
		"PATCH pulls/{pull_number}":                               updatePull,
		"GET issues/{issue_number}/labels":                        listLabels,
		"POST issues/{issue_number}/labels":                       addLabels,
		"POST issues/{issue_number}/assignees":                    addAssignees,
		"POST issues/{issue_number}/comments":                     addComment,
		"GET issues/{issue_number}/comments":                      listComments,
		"GET issues/comments/{comment_id}":                        getComment,
		"PATCH issues/comments/{comment_id}":                      editComment,
		"POST issues/comments/{comment_id}/reactions":             addReaction,
		"POST actions/workflows/{workflow_id}/dispatches":         dispatchWorkflow,
		"GET actions/workflows/{workflow_id}/runs":                listRuns,
		"GET actions/runs/{run_id}":                               getRun,
		"GET actions/runs/{run_id}/jobs":                          listJobs,
		"GET actions/jobs/{job_id}/logs":                          getJobLogs,
		"POST pulls/{pull_number}/requested_reviewers":            requestReviewers,
		"GET pulls/{pull_number}/reviews":                         listReviews,
		"PUT pulls/{pull_number}/reviews/{review_id}/dismissals":  dismissReview,
		"GET installation":                                        getInstallation,
		"GET commits/{ref}/statuses":                              listStatuses,
		"GET commits/{ref}/check-runs":                            listCheckRuns,
		"GET commits/{commit_sha}/pulls":                          listPullsOfCommit,
		"POST statuses/{sha}":                                     createStatus,
		"PUT pulls/{pull_number}/merge":                           mergePull,
		"GET collaborators/{username}/permission":                 getPermission,
		"GET orgs/{org}/teams/{team_slug}":                        getTeam,
		"GET orgs/{org}/teams/{team_slug}/memberships/{username}": getMembership,
		"GET user": getUser,
		"POST app/installations/{installation_id}/access_tokens": createInstallationToken,
	}
}

func getRepository(s *Server, _ http.ResponseWriter, _ *request) (int, any) {
	return http.StatusOK, s.repository("full-repository", s.fullName())
}

// page cuts a list as GitHub does: 30 unless told, 100 at most, with Link.
func page[T any](w http.ResponseWriter, r *request, all []T, standard int) []T {
	size, _ := strconv.Atoi(r.q("per_page"))
	if size <= 0 {
		size = standard
	}
	size = min(size, 100)
	n, _ := strconv.Atoi(r.q("page"))
	n = max(n, 1)
	start, end := min((n-1)*size, len(all)), min(n*size, len(all))
	if end < len(all) {
		next := *r.URL
		q := next.Query()
		q.Set("page", strconv.Itoa(n+1))
		next.RawQuery = q.Encode()
		w.Header().Set("Link", "<"+r.s.base+next.String()+`>; rel="next"`)
	}
	return all[start:end]
}

func listBranches(s *Server, w http.ResponseWriter, r *request) (int, any) {
	out := []any{}
	for _, b := range s.Store.Branches() {
		sha, ok := s.Store.Branch(b)
		if !ok || (r.q("protected") == "true" && !s.Store.Protected(b)) {
			continue
		}
		out = append(out, s.object("short-branch", map[string]any{
			"name": b, "protected": s.Store.Protected(b), "commit": map[string]any{"sha": sha, "url": s.rest("commits/" + sha)},
		}))
	}
	return http.StatusOK, page(w, r, out, 30)
}

func getBranch(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	name := r.params["branch"]
	sha, ok := s.Store.Branch(name)
	if !ok {
		return refuse(http.StatusNotFound, "Branch not found")
	}
	c, _ := s.Store.Commit(sha)
	return http.StatusOK, s.object("branch-with-protection", map[string]any{
		"name": name, "commit": s.commit(c), "protected": s.Store.Protected(name), "protection_url": s.rest("branches/x/protection"),
		"_links": map[string]any{"html": s.web("tree/" + name), "self": s.rest("branches/" + name)},
	})
}

// resolve finds a commit by HEAD, branch name or SHA.
func (s *Server) resolve(ref string) (scmtest.CommitInfo, bool) {
	if ref == "HEAD" {
		ref = s.Store.DefaultBranch()
	}
	if sha, ok := s.Store.Branch(ref); ok {
		ref = sha
	}
	return s.Store.Commit(ref)
}

func listCommits(s *Server, w http.ResponseWriter, r *request) (int, any) {
	c, ok := s.resolve(r.q("sha"))
	if !ok {
		return refuse(http.StatusNotFound, "Not Found")
	}
	log, err := s.Store.Log(c.SHA, r.q("path"))
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	out := []any{}
	for _, c := range page(w, r, log, 30) {
		out = append(out, s.commit(c))
	}
	return http.StatusOK, out
}

func getCommit(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	if len(s.Store.Branches()) == 0 {
		return refuse(http.StatusConflict, "Git Repository is empty.")
	}
	c, ok := s.resolve(r.params["ref"])
	if !ok {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+r.params["ref"])
	}
	return http.StatusOK, s.commit(c)
}

// compare shows the files on the first page only, and 300 of them at most; the
// commits come oldest first.
func compare(s *Server, w http.ResponseWriter, r *request) (int, any) {
	from, to, _ := strings.Cut(r.params["basehead"], "...")
	base, ok1 := s.resolve(from)
	head, ok2 := s.resolve(to)
	if !ok1 || !ok2 {
		return refuse(http.StatusNotFound, "Not Found")
	}
	merge, ok := s.Store.MergeBase(base.SHA, head.SHA)
	if !ok {
		return refuse(http.StatusNotFound, "No common ancestor between "+from+" and "+to+".")
	}
	ahead, err1 := s.Store.Between(base.SHA, head.SHA)
	behind, err2 := s.Store.Between(head.SHA, base.SHA)
	paths, err3 := s.Store.ChangedPaths(merge, head.SHA)
	if err := errors.Join(err1, err2, err3); err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	slices.Reverse(ahead)
	commits, files := []any{}, []any{}
	for _, c := range page(w, r, ahead, 30) {
		commits = append(commits, s.commit(c))
	}
	if r.q("page") == "" || r.q("page") == "1" {
		for _, p := range paths[:min(len(paths), 300)] {
			files = append(files, s.changedFile(merge, head.SHA, p))
		}
	}
	mergeCommit, _ := s.Store.Commit(merge)
	return http.StatusOK, s.object("commit-comparison", map[string]any{
		"base_commit": s.commit(base), "merge_base_commit": s.commit(mergeCommit), "status": comparison(len(ahead), len(behind)),
		"ahead_by": len(ahead), "behind_by": len(behind), "total_commits": len(ahead), "commits": commits, "files": files,
	})
}

func comparison(ahead, behind int) string {
	switch {
	case ahead > 0 && behind > 0:
		return "diverged"
	case ahead > 0:
		return "ahead"
	case behind > 0:
		return "behind"
	}
	return "identical"
}

func (s *Server) changedFile(from, to, p string) map[string]any {
	status := "modified"
	_, oldErr := s.Store.Entry(from, p)
	e, newErr := s.Store.Entry(to, p)
	switch {
	case oldErr != nil:
		status = "added"
	case newErr != nil:
		status = "removed"
	}
	return s.object("diff-entry", map[string]any{"filename": p, "status": status, "sha": e.SHA})
}

func (s *Server) headsRef(r *request) string { return strings.TrimPrefix(r.params["ref"], "heads/") }

func getRef(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	branch := s.headsRef(r)
	sha, ok := s.Store.Branch(branch)
	if !ok || !strings.HasPrefix(r.params["ref"], "heads/") {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, s.ref(branch, sha)
}

func matchingRefs(s *Server, w http.ResponseWriter, r *request) (int, any) {
	out := []any{}
	for _, b := range s.Store.Branches() {
		if sha, ok := s.Store.Branch(b); ok && strings.HasPrefix("heads/"+b, r.params["ref"]) {
			out = append(out, s.ref(b, sha))
		}
	}
	return http.StatusOK, page(w, r, out, 30)
}

func createRef(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	var in struct{ Ref, SHA string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	branch, ok := strings.CutPrefix(in.Ref, "refs/heads/")
	if !ok {
		return refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/'.")
	}
	if err := s.Store.SetBranch(branch, "", in.SHA, false); err != nil {
		return refusedRef(err)
	}
	return http.StatusCreated, s.ref(branch, in.SHA)
}

// refusedRef are the texts with which git/refs refuses.
func refusedRef(err error) (int, any) {
	const status = http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, scmtest.ErrBranchExists):
		return refuse(status, "Reference already exists")
	case errors.Is(err, scmtest.ErrBranchMissing):
		return refuse(status, "Reference does not exist")
	case errors.Is(err, scmtest.ErrNoObject):
		return refuse(status, "Object does not exist")
	case errors.Is(err, scmtest.ErrNotFastForward):
		return refuse(status, "Update is not a fast forward")
	case errors.Is(err, scmtest.ErrProtected):
		return refuse(status, "Repository rule violations found", "Cannot create ref due to creations being restricted.")
	}
	return refuse(status, "Reference update failed")
}

func updateRef(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	var in struct {
		SHA   string
		Force bool
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	branch := s.headsRef(r)
	if err := s.Store.MoveBranch(branch, in.SHA, in.Force); err != nil {
		return refusedRef(err)
	}
	return http.StatusOK, s.ref(branch, in.SHA)
}

func getGitCommit(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	c, ok := s.Store.Commit(r.params["commit_sha"])
	if !ok {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, s.gitCommit(c, false)
}

// createCommit signs only what a bot writes without naming author or committer.
func createCommit(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	var in struct {
		Message, Tree     string
		Parents           []string
		Author, Committer *struct{ Name, Email string }
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	author := r.login
	if in.Author != nil {
		author = in.Author.Name + " <" + in.Author.Email + ">"
	}
	sha, err := s.Store.WriteCommit(in.Tree, in.Parents, in.Message, author, time.Time{})
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	c, _ := s.Store.Commit(sha)
	bot := strings.HasSuffix(r.login, "[bot]")
	return http.StatusCreated, s.gitCommit(c, bot && in.Author == nil && in.Committer == nil)
}
