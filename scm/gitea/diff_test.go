package gitea

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffPaths(t *testing.T) {
	cases := map[string]struct {
		diff string
		want []string
		err  bool
	}{
		"empty":                      {diff: "", want: []string{}},
		"plain":                      {diff: "diff --git a/k.yaml b/k.yaml\nindex 1..2\n--- a/k.yaml\n+++ b/k.yaml\n@@ -1 +1 @@\n-x\n+diff --git a/no b/no\n", want: []string{"k.yaml"}},
		"a name that looks like two": {diff: "diff --git a/x b/y b/x b/y\n", want: []string{"x b/y"}},
		"rename":                     {diff: "diff --git a/old name b/new\nsimilarity index 100%\nrename from old name\nrename to new\n", want: []string{"new", "old name"}},
		"rename, quoted": {
			diff: "diff --git \"a/\\303\\274.txt\" b/u.txt\nrename from \"\\303\\274.txt\"\nrename to u.txt\n", want: []string{"u.txt", "ü.txt"},
		},
		"rename to a quoted name": {diff: "diff --git a/u.txt \"b/\\tt.txt\"\nrename from u.txt\nrename to \"\\tt.txt\"\n", want: []string{"\tt.txt", "u.txt"}},
		"a name with a quote":     {diff: "diff --git \"a/a b\\\"é.txt\" \"b/a b\\\"é.txt\"\nnew file mode 100644\n", want: []string{"a b\"é.txt"}},
		"a file becomes a symlink": {
			diff: "diff --git a/run.sh b/run.sh\ndeleted file mode 100755\n--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/run.sh b/run.sh\nnew file mode 120000\n",
			want: []string{"run.sh"},
		},
		"mode only":         {diff: "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", want: []string{"x"}},
		"not understood":    {diff: "diff --git a/x b/y\nindex 1..2\ndiff --git a/z b/z\n", err: true},
		"cut off":           {diff: "diff --git a/x b/yy\n", err: true},
		"no closing quote":  {diff: "diff --git \"a/x b/x\n", err: true},
		"a bad escape":      {diff: "diff --git \"a/\\9\" \"b/\\9\"\n", err: true},
		"rename, bad quote": {diff: "diff --git a/x b/yy\nrename from \"x\nrename to y\n", err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := diffPaths(tc.diff)
			if (err != nil) != tc.err || tc.err && !errors.Is(err, errDiff) {
				t.Fatalf("error %v, want one: %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && !tc.err {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseFeatures(t *testing.T) {
	for version, want := range map[string]features{
		"1.26.0":                         {swap: true, runs: true, strict: true},
		"1.27.0+dev-12-gabc":             {swap: true, runs: true, strict: true},
		"2.0.0":                          {swap: true, runs: true, strict: true},
		"1.25.3":                         {runs: true, strict: true},
		"1.24.7":                         {strict: true},
		"1.22.6":                         {},
		"11.0.1+gitea-1.22.0":            {},
		"11.0.1-99-c504062+gitea-1.22.0": {},
		"":                               {swap: true, runs: true, unknown: true},
		"development":                    {swap: true, runs: true, unknown: true},
	} {
		if got := parseFeatures(version); got != want {
			t.Errorf("%q: %+v, want %+v", version, got, want)
		}
	}
}

func TestBlobIDIsGits(t *testing.T) {
	for _, tc := range []struct {
		content string
		length  int
		want    string
	}{
		{"", 40, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
		{"x: 1\n", 40, "d508cf756344aaf9123c531122a9d2d410c4ecfa"},
		{"", 64, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"},
	} {
		if got := blobID([]byte(tc.content), tc.length); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.content, got, tc.want)
		}
	}
}
