package scm

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Dispatcher asks a repository's own CI to run. The credential needs no right to
// write contents: on GitHub actions:write, on Gitea write:repository, on GitLab the
// right to run a pipeline on the branch. Plain git has no CI.
type Dispatcher interface {
	// Dispatch asks for one run. It returns once the forge has accepted that: then
	// the run is not lost. Where the forge does not say which run it became and none
	// with d.Mark is found, the answer is a Run with ID 0 and the URL of where runs
	// are listed; no error.
	//
	// ErrNotFound: no such workflow, branch or repository. ErrRefused: the workflow
	// has no such trigger, is disabled, does not declare an input or refuses its
	// value, or the CI is off. ErrDenied: the credential may not. The text says
	// which. A call that ended without an answer may have started a run: when it is
	// asked again with the same d.Mark, there may be two, whose promotions are one.
	Dispatch(ctx context.Context, d Dispatch) (Run, error)

	// Run tells how a run is getting on. One that is not there is ErrNotFound.
	Run(ctx context.Context, id int64) (Run, error)

	// Output is what the jobs of a run that has ended have printed, job after job in the
	// order in which they began, at most OutputLimit bytes of each (its end). No forge
	// has outputs for a run that was dispatched; its log is where a caller reads what
	// the command printed there. Each line may begin with the forge's time stamp,
	// and text of the request is in it: believe nothing but a line that is a result
	// for your own request.
	Output(ctx context.Context, id int64) (string, error)
}

// OutputLimit is how many bytes of a job's log are read.
const OutputLimit = 1 << 20

// Dispatch says what is asked of a repository's CI.
type Dispatch struct {
	// Workflow is the file's name in .github/workflows (or .gitea/workflows),
	// promote.yml. GitLab has one pipeline a project and does not use it.
	Workflow string
	Branch   string // whose workflow runs; "" is the default branch
	// Inputs are what the workflow declares: GitHub's and Gitea's
	// workflow_dispatch.inputs, GitLab's spec:inputs. Values are string, bool, int or
	// int64: GitLab is told the type, the others text.
	Inputs map[string]any
	// Mark is a text that nobody else's request has and that the run's name shows
	// (run-name: promote ${{ inputs.request }}). It finds the run where the forge
	// does not answer its id: GitHub Enterprise Server and Gitea before they know
	// return_run_details.
	Mark string
}

// Run is one run of a workflow, or a GitLab pipeline.
type Run struct {
	ID    int64
	State RunState
	Word  string // the forge's own: in_progress, timed_out, manual …
	URL   string // for people
	Title string // the run's name; "" where the forge gave none
}

// RunState is how far a run is.
type RunState string

// The states of a run. All that ended otherwise than well is RunFailure, also what
// was cancelled or skipped; what waits for a person is RunQueued. Word tells which.
const (
	RunQueued  RunState = "queued"
	RunRunning RunState = "running"
	RunSuccess RunState = "success"
	RunFailure RunState = "failure"
)

// Ended tells that a run will not change any more.
func (s RunState) Ended() bool { return s == RunSuccess || s == RunFailure }

// Job tells who started the CI job that this process runs in.
type Job interface {
	// Starter asks the forge; no environment variable is believed. ErrDenied: the job
	// is not one of this repository, does not run any more, or the credential does
	// not prove it.
	//
	// On GitLab the job token proves which job this is. On GitHub and Gitea j.Run
	// comes from the environment: that a run of this repository is in progress and
	// who started it is the forge's word; that it is this process's run is not. So it
	// holds only where nobody but the workflow's own steps sets the environment.
	Starter(ctx context.Context, j JobRef) (Starter, error)
}

// JobRef is how a job is named or proves itself.
type JobRef struct {
	Run   int64  // GitHub, Gitea: GITHUB_RUN_ID
	Token string // GitLab: CI_JOB_TOKEN
}

// Starter is who started a job.
type Starter struct {
	// Login of who started it; of a run that was started again, who did that.
	Login string
	Kind  AuthorKind
	// Event is the forge's word for what started it: issue_comment,
	// workflow_dispatch; on GitLab the pipeline's source: chat, trigger, api …
	Event string
	URL   string // of the job or run, for people
	// Since is when the run was asked for, by the forge's clock; on Gitea when it
	// began. A run that was started again has its first time.
	Since time.Time
}

// InputText makes texts of inputs. It is for implementations of Dispatcher.
func InputText(inputs map[string]any) (map[string]string, error) {
	texts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		switch v := inputs[name].(type) {
		case string:
			texts[name] = v
		case bool:
			texts[name] = strconv.FormatBool(v)
		case int:
			texts[name] = strconv.Itoa(v)
		case int64:
			texts[name] = strconv.FormatInt(v, 10)
		default:
			return nil, fmt.Errorf("input %s: a %T is none of string, bool, int", name, v)
		}
	}
	return texts, nil
}

// Tail reads r to its end and keeps the last OutputLimit bytes. It is for
// implementations of Dispatcher.
func Tail(r io.Reader) (string, error) {
	var kept []byte
	part := make([]byte, 64<<10)
	for {
		n, err := r.Read(part)
		kept = append(kept, part[:n]...)
		if len(kept) > 2*OutputLimit {
			kept = append([]byte(nil), kept[len(kept)-OutputLimit:]...)
		}
		if err == io.EOF {
			return string(kept[max(0, len(kept)-OutputLimit):]), nil
		}
		if err != nil {
			return "", fmt.Errorf("read the log: %w", err)
		}
	}
}
