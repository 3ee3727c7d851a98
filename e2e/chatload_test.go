//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// The load: commands a second, for so long, over so many replicas, one of which is
// killed every so often.
const (
	loadRate     = 20
	loadTime     = 30 * time.Second
	loadReplicas = 3
	loadKill     = 5 * time.Second
)

// replica is one tagboat serve, which is killed without a word and started again.
type replica struct {
	address string
	start   func() *exec.Cmd

	mu      sync.Mutex
	command *exec.Cmd
}

func (r *replica) run(t *testing.T) {
	command := r.start()
	if err := command.Start(); err != nil {
		t.Error(err)
		return
	}
	r.mu.Lock()
	r.command = command
	r.mu.Unlock()
}

func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
}

// memory is the resident memory of the process, in bytes.
func (r *replica) memory() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.command.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return kb << 10
}

// loadForge is a forge that notes how long its answers take.
type loadForge struct {
	*httptest.Server
	store *scmtest.Store

	mu    sync.Mutex
	times []time.Duration
}

func startLoadForge(t *testing.T) *loadForge {
	t.Helper()
	f := &loadForge{store: scmtest.NewStore("main", map[string]string{
		"tagboat.yaml": "version: 1\napps:\n  todo-api: {images: [{repository: registry.example/acme/todo-api}]}\nenvironments:\n" +
			"  - {name: staging, path: staging}\n  - {name: production, path: production, from: [staging]}\nchat:\n  slack: {T1/U1: mei}\n",
		".gitea/workflows/tagboat-chatops.yml": chatWorkflow(t, ""),
	})}
	f.store.SetPermission("mei", "write")
	fake := giteatest.New(giteatest.Options{Store: f.store, Report: t.Errorf})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		fake.ServeHTTP(w, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.times = append(f.times, time.Since(start))
	}))
	t.Cleanup(f.Close)
	return f
}

func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// TestChatopsLoad: replicas that are killed lose nothing that they acknowledged.
func TestChatopsLoad(t *testing.T) {
	forge := startLoadForge(t)
	var replicas []*replica
	for range loadReplicas {
		r := &replica{address: freeAddress(t)}
		home := t.TempDir()
		r.start = func() *exec.Cmd {
			command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv("TAGBOAT_BIN"), "serve", "--repo", forge.URL+"/acme/config", "--forge", "gitea", "--listen", r.address)
			command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TAGBOAT_TOKEN=token", "TAGBOAT_SLACK_SECRET=" + chatSecret}
			command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			return command
		}
		r.run(t)
		t.Cleanup(r.kill)
		replicas = append(replicas, r)
	}
	for _, r := range replicas {
		waitFor(t, "replica", 20*time.Second, func() bool { return ready(t, r.address) })
	}
	acknowledged, times, tries, memory := load(t, replicas)
	runs := map[string]int{}
	for _, run := range forge.store.Runs() {
		reply, _ := run.Inputs["reply"].(string)
		runs[reply]++
		if run.Inputs["command"] != "/promote todo-api from staging to production" {
			t.Errorf("a run of %v", run.Inputs)
		}
	}
	for _, reply := range acknowledged {
		if runs[reply] == 0 {
			t.Errorf("%s was acknowledged and is lost", reply)
		}
	}
	own := percentile(forge.times, .99)
	p99 := percentile(times, .99)
	t.Logf("%d acknowledged of %d commands, %d tries; acknowledged after p50 %v, p99 %v; one answer of the forge p99 %v; memory MiB %v",
		len(acknowledged), loadRate*int(loadTime.Seconds()), tries, percentile(times, .5), p99, own, memory)
	if len(acknowledged) < loadRate*int(loadTime.Seconds()) {
		t.Errorf("only %d commands came through", len(acknowledged))
	}
	const rounds = 5 // answers of the forge that a command waits for
	// how fast it is depends on the machine: E2E_ALL=1 holds it to a figure
	if os.Getenv("E2E_ALL") != "" && p99 > 300*time.Millisecond+rounds*own {
		t.Errorf("p99 is %v, the forge's own part at most %v", p99, rounds*own)
	}
	if first, last := memory[0], memory[len(memory)-1]; last > first+32 {
		t.Errorf("memory grew from %d to %d MiB", first, last)
	}
}

func ready(t *testing.T, address string) bool {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// load gives the commands, each to the next replica that is there, again where one
// died before it had answered.
func load(t *testing.T, replicas []*replica) (acknowledged []string, times []time.Duration, tries int, memory []int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	tick, kill := time.NewTicker(time.Second/loadRate), time.NewTicker(loadKill)
	defer tick.Stop()
	defer kill.Stop()
	killed := 0
	for n := 0; n < loadRate*int(loadTime.Seconds()); {
		select {
		case <-kill.C:
			r := replicas[killed%(len(replicas)-1)] // the last one lives, so that its memory shows growth
			killed++
			memory = append(memory, replicas[len(replicas)-1].memory()>>20)
			r.kill()
			r.run(t)
		case <-tick.C:
			reply := fmt.Sprintf("https://hooks.slack.com/commands/%d", n)
			first := n
			n++
			all.Go(func() {
				for try := range 50 {
					took, ok := command(t, replicas[(first+try)%len(replicas)].address, reply)
					mu.Lock()
					tries++
					if ok {
						acknowledged, times = append(acknowledged, reply), append(times, took)
					}
					mu.Unlock()
					if ok {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	return acknowledged, times, tries, append(memory, replicas[len(replicas)-1].memory()>>20)
}

// command gives one signed command; false where it was not acknowledged.
func command(t *testing.T, address, reply string) (time.Duration, bool) {
	form := url.Values{"team_id": {"T1"}, "user_id": {"U1"}, "command": {"/promote"}, "text": {"todo-api to production"}, "response_url": {reply}}.Encode()
	stamp := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(chatSecret))
	mac.Write([]byte("v0:" + stamp + ":" + form))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/slack/command", bytes.NewReader([]byte(form)))
	if err != nil {
		return 0, false
	}
	request.Header.Set("X-Slack-Request-Timestamp", stamp)
	request.Header.Set("X-Slack-Signature", fmt.Sprintf("v0=%x", mac.Sum(nil)))
	start := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	var said struct{ Text string }
	if err != nil || json.Unmarshal(body, &said) != nil {
		return 0, false
	}
	return time.Since(start), strings.HasPrefix(said.Text, "Accepted: ")
}
