package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tagboat/registry/registrytest"
	"tagboat/scm/scmtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tagboat": func() { os.Exit(run(context.Background(), os.Args, os.Stdout, os.Stderr, os.Getenv)) },
	})
}

// TestScripts runs testdata/*.txt. Beside testscript's own commands a script has:
//
//	push NAME IMAGE [platform=A,B] [day=N] [revision=R] [source=S]   push an image; $NAME is its digest
//	forge github|github-rest|gitlab|gitea [...]                      serve the files below config/ as acme/config
//	person push|merge|squash|close|update|revert ...                 do what people do there
//	pulls                                                            print the pull requests
//	body NUMBER                                                      print a pull request's body
//	tip NAME BRANCH                                                  $NAME is the branch's newest commit
//	show BRANCH PATH                                                 print a file of a branch
//	second FORGE DIR                                                 serve the files below DIR as another repository, $SECOND; `other` does a command there
//	other COMMAND ARGS...                                            person, show, tip, pulls, body or statuses of the second repository
//	refused CODE [COMMAND] ARGS...                                   the command (promote, where none is named) must exit with CODE and change nothing
//	expand FILE...                                                   put the variables into files
//	clock DURATION|TIME                                              let time pass on the forge
//	statuses BRANCH                                                  print the statuses of the branch's newest commit
//	registry fail|limit|untag|delete ...                             make the registry do what registries do
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:         setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"push": push, "forge": forge, "person": person, "pulls": pulls, "body": body, "show": show, "tip": tip, "registry": registryKnob, "expand": expand, "clock": clock, "statuses": statuses, "refused": refused,
			"second": secondForge, "other": other,
		},
	})
}

// yard is what a script works on.
type yard struct {
	t        testing.TB
	registry *registrytest.Registry
	store    *scmtest.Store
	second   *scmtest.Store
}

type yardKey struct{}

func setup(e *testscript.Env) error {
	y := &yard{t: e.T().(testing.TB), registry: registrytest.New()}
	e.Defer(y.registry.Close)
	e.Values[yardKey{}] = y
	e.Setenv("REGISTRY", y.registry.Host())
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("DOLLAR", "$")
	return nil
}

func yardOf(ts *testscript.TestScript) *yard { return ts.Value(yardKey{}).(*yard) }

func push(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: push NAME IMAGE [platform=A,B] [day=N] [revision=R] [source=S]")
	}
	y := yardOf(ts)
	spec := registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}, Attested: true, Content: args[0] + args[1], Labels: map[string]string{}}
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "platform":
			spec.Platforms = strings.Split(value, ",")
		case "day":
			day, err := time.Parse("2", value)
			ts.Check(err)
			spec.Created = time.Date(2026, 3, day.Day(), 12, 0, 0, 0, time.UTC)
		case "revision", "source":
			spec.Labels["org.opencontainers.image."+key] = value
		default:
			ts.Fatalf("push: unknown %s", arg)
		}
	}
	digest, err := y.registry.PushImage(args[1], spec)
	ts.Check(err)
	ts.Setenv(args[0], digest)
}

// forge serves config/ and sets REPO and the credential.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: forge KIND")
	}
	files := filesBelow(ts, "config")
	y := yardOf(ts)
	if args[0] == "git" {
		bare, err := scmtest.NewBare(ts.MkAbs("config.git"), files)
		ts.Check(err)
		y.store = bare.Store
		ts.Setenv("REPO", bare.URL)
		ts.Setenv("FORGE", "git")
		return
	}
	y.store = scmtest.NewStore("main", files)
	serve, known := forges()[args[0]]
	if !known {
		ts.Fatalf("forge: unknown %s", args[0])
	}
	for key, value := range serve(y.t, y.store, ts.Defer) {
		ts.Setenv(key, value)
	}
}

// filesBelow reads files, with the script's variables put in.
func filesBelow(ts *testscript.TestScript, dir string) map[string]string {
	files := map[string]string{}
	root := ts.MkAbs(dir)
	ts.Check(filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, relErr := filepath.Rel(root, path)
		if relErr != nil {
			return relErr
		}
		files[filepath.ToSlash(name)] = os.Expand(string(content), ts.Getenv)
		return err
	}))
	return files
}

// secondForge serves another repository on a host of its own, with a line of
// TAGBOAT_TOKENS for it. It comes before forge, whose files may name it.
func secondForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: second FORGE DIR")
	}
	y := yardOf(ts)
	files := filesBelow(ts, args[1])
	if args[0] == "git" {
		bare, err := scmtest.NewBare(ts.MkAbs("second.git"), files)
		ts.Check(err)
		y.second = bare.Store
		ts.Setenv("SECOND", bare.URL)
		return
	}
	y.second = scmtest.NewStore("main", files)
	env := forges()[args[0]](y.t, y.second, ts.Defer)
	ts.Setenv("SECOND", env["REPO"])
	host, _, _ := strings.Cut(strings.TrimPrefix(env["REPO"], "http://"), "/")
	for _, name := range []string{"TAGBOAT_TOKEN", "GITEA_TOKEN"} {
		if env[name] != "" {
			ts.Setenv("TAGBOAT_TOKENS", host+" "+env[name])
		}
	}
}

// other does a command on the second repository.
func other(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	first := y.store
	y.store = y.second
	defer func() { y.store = first }()
	commands := map[string]func(*testscript.TestScript, bool, []string){"person": person, "show": show, "pulls": pulls, "body": body, "statuses": statuses, "tip": tip}
	command, known := commands[args[0]]
	if !known {
		ts.Fatalf("other: unknown %s", args[0])
	}
	command(ts, neg, args[1:])
}

func person(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	number := func() (n int) {
		_, err := fmt.Sscan(args[1], &n)
		ts.Check(err)
		return n
	}
	var err error
	switch args[0] {
	case "push": // push BRANCH PATH FILE
		_, err = y.store.Push(args[1], "mei", "Change "+args[2], map[string]string{args[2]: os.Expand(ts.ReadFile(args[3]), ts.Getenv)})
	case "fill": // fill BRANCH PATH BYTES
		var size int
		_, err = fmt.Sscan(args[3], &size)
		ts.Check(err)
		_, err = y.store.Push(args[1], "mei", "Fill "+args[2], map[string]string{args[2]: strings.Repeat("# no end to it\n", size/15+1)[:size]})
	case "merge":
		_, err = y.store.MergePullRequest(number(), "merge")
	case "squash":
		_, err = y.store.MergePullRequest(number(), "squash")
	case "close":
		err = y.store.ClosePullRequest(number(), "mei")
	case "update":
		_, err = y.store.UpdateBranch(number())
	case "revert": // revert BRANCH
		sha, _ := y.store.Branch(args[1])
		_, err = y.store.Revert(args[1], sha)
	case "mergebranch": // mergebranch FROM INTO
		_, err = y.store.MergeBranch(args[1], args[2])
	case "protect": // protect PATTERN
		y.store.Protect(args[1])
	case "status": // status BRANCH CONTEXT STATE, on the branch's newest commit
		sha, _ := y.store.Branch(args[1])
		_, err = y.store.PostStatus(sha, scmtest.Status{Context: args[2], State: args[3], Creator: "argocd", Description: args[2] + " says " + args[3]})
	case "approve": // approve NUMBER LOGIN
		_, err = y.store.Review(number(), args[2], "approved")
	case "may": // may LOGIN PERMISSION
		y.store.SetPermission(args[1], args[2])
	case "team": // team NAME LOGIN...
		y.store.SetTeam(args[1], "", args[2:]...)
	default:
		ts.Fatalf("person: unknown %s", args[0])
	}
	ts.Check(err)
}

// clock lets time pass on the forge: clock DURATION, or clock TIME (RFC 3339).
func clock(ts *testscript.TestScript, neg bool, args []string) {
	store := yardOf(ts).store
	if to, err := time.Parse(time.RFC3339, args[0]); err == nil {
		store.Advance(to.Sub(store.Clock()))
		return
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	store.Advance(d)
}

// statuses prints the statuses of a branch's newest commit, oldest first.
func statuses(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	sha, _ := y.store.Branch(args[0])
	var b strings.Builder
	for _, s := range y.store.Statuses(sha) {
		fmt.Fprintf(&b, "%s %s: %s\n", s.Context, s.State, s.Description)
	}
	print(ts, b.String())
}

func pulls(ts *testscript.TestScript, neg bool, _ []string) {
	all := yardOf(ts).store.Pulls(func(scmtest.Pull) bool { return true })
	slices.SortFunc(all, func(a, b scmtest.Pull) int { return a.Number - b.Number })
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%d %s %s -> %s: %s", p.Number, p.State, p.Head, p.Base, p.Title)
		for _, l := range p.Labels {
			fmt.Fprintf(&b, " [%s]", l)
		}
		b.WriteString("\n")
	}
	print(ts, b.String())
}

func body(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	_, err := fmt.Sscan(args[0], &n)
	ts.Check(err)
	p, err := yardOf(ts).store.Pull(n)
	ts.Check(err)
	print(ts, p.Body)
}

func tip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tip NAME BRANCH")
	}
	sha, ok := yardOf(ts).store.Branch(args[1])
	if !ok {
		ts.Fatalf("no branch %s", args[1])
	}
	ts.Setenv(args[0], sha)
}

func show(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	sha, ok := y.store.Branch(args[0])
	if !ok {
		if !neg {
			ts.Fatalf("no branch %s", args[0])
		}
		return
	}
	content, _, err := y.store.ReadFile(sha, args[1])
	ts.Check(err)
	print(ts, string(content))
}

func print(ts *testscript.TestScript, text string) {
	_, err := ts.Stdout().Write([]byte(text))
	ts.Check(err)
}

// refused demands that a command ends with an exit code and leaves branches and pull
// requests as they were.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	before := y.state()
	command, rest := "promote", args[1:]
	if slices.Contains([]string{"promote", "rollback", "verify", "hold", "release"}, rest[0]) {
		command, rest = rest[0], rest[1:]
	}
	full := append([]string{command, "--repo", ts.Getenv("REPO"), "--forge", ts.Getenv("FORGE")}, rest...)
	err := ts.Exec("tagboat", full...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || fmt.Sprint(exit.ExitCode()) != args[0] {
		ts.Fatalf("exit %v, want %s", err, args[0])
	}
	if after := y.state(); after != before {
		ts.Fatalf("not left alone:\n%s\nthen\n%s", before, after)
	}
}

func (y *yard) state() string {
	var b strings.Builder
	for _, store := range []*scmtest.Store{y.store, y.second} {
		if store == nil {
			continue
		}
		for _, name := range store.Branches() {
			sha, _ := store.Branch(name)
			fmt.Fprintln(&b, name, sha)
		}
		for _, p := range store.Pulls(func(scmtest.Pull) bool { return true }) {
			fmt.Fprintf(&b, "%+v\n", p)
		}
	}
	return b.String()
}

// expand puts the script's variables into files.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o644))
	}
}

// registryKnob makes the registry misbehave: fail STATUS CODE, limit RETRY-AFTER,
// untag REPOSITORY TAG, delete REPOSITORY DIGEST.
func registryKnob(ts *testscript.TestScript, neg bool, args []string) {
	y := yardOf(ts)
	switch args[0] {
	case "fail":
		var status int
		_, err := fmt.Sscan(args[1], &status)
		ts.Check(err)
		y.registry.Fail(registrytest.Match{}, status, args[2])
	case "limit":
		y.registry.Limit(registrytest.Match{}, args[1])
	case "untag":
		ts.Check(y.registry.Untag(args[1], args[2]))
	case "delete":
		ts.Check(y.registry.Delete(args[1], args[2]))
	case "reset":
		y.registry.Reset()
	default:
		ts.Fatalf("registry: unknown %s", args[0])
	}
}
