package giteareal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Call does one request below /api/v1 as a user of the package's password ("" is
// the administrator), with in and out as JSON. Its status is returned also with
// an error.
func (s *Server) Call(ctx context.Context, user, method, path string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+"/api/v1"+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if user == "" {
		user = s.Admin
	}
	req.SetBasicAuth(user, Password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err
	}
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	if out == nil || len(answer) == 0 {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(answer, out)
}

// AddUser makes a user, if there is none of that login.
func (s *Server) AddUser(ctx context.Context, login string) error {
	status, err := s.Call(ctx, "", http.MethodPost, "/admin/users", map[string]any{
		"username": login, "email": login + "@acme.example", "password": Password, "must_change_password": false,
	}, nil)
	if status == http.StatusUnprocessableEntity {
		return nil
	}
	return err
}

// AddRepo makes a repository of the administrator's with a README on main, lets
// the collaborators write to it, and waits until Gitea has set it up.
func (s *Server) AddRepo(ctx context.Context, name string, collaborators ...string) error {
	in := map[string]any{"name": name, "auto_init": true, "default_branch": "main"}
	if _, err := s.Call(ctx, "", http.MethodPost, "/user/repos", in, nil); err != nil {
		return err
	}
	for _, c := range collaborators {
		path := "/repos/" + s.Admin + "/" + name + "/collaborators/" + c
		if _, err := s.Call(ctx, "", http.MethodPut, path, map[string]any{"permission": "write"}, nil); err != nil {
			return err
		}
	}
	return s.WaitReady(ctx, name)
}

// RequireCheck makes main of a repository wait for a status that nobody sets, so
// that auto-merge stays pending. Its writers may still push.
func (s *Server) RequireCheck(ctx context.Context, name string) error {
	in := map[string]any{
		"rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": []string{"ci/never"},
	}
	_, err := s.Call(ctx, "", http.MethodPost, "/repos/"+s.Admin+"/"+name+"/branch_protections", in, nil)
	return err
}

// WaitReady waits until Gitea says that a repository of the administrator's is
// not empty: it sets a pushed one up in the background.
func (s *Server) WaitReady(ctx context.Context, name string) error {
	for range 100 {
		var repo struct{ Empty bool }
		if _, err := s.Call(ctx, "", http.MethodGet, "/repos/"+s.Admin+"/"+name, nil, &repo); err != nil {
			return err
		}
		if !repo.Empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("repository %s stays empty", name)
}
