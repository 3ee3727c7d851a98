package overlay

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

const (
	stagingDir  = "apps/todo/overlays/staging"
	stagingFile = stagingDir + "/kustomization.yaml"
)

const (
	a16, b16  = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	oldDigest = "sha256:" + a16 + a16 + a16 + a16
	newDigest = "sha256:" + b16 + b16 + b16 + b16
)

// expand writes the digests where a fixture has OLD and NEW.
func expand(s string) string {
	return strings.NewReplacer("OLD", oldDigest, "NEW", newDigest).Replace(s)
}

func oneFile(content string) fstest.MapFS {
	return fstest.MapFS{stagingFile: {Data: []byte(expand(content))}}
}

// setApp is the usual promotion: the entry app to v2.
func setApp(change func(*Set)) Set {
	s := Set{Entry: Entry{Dir: stagingDir, File: stagingFile, Line: 1, Name: "app"}, To: image.Reference{Repository: "app", Tag: "v2", Digest: newDigest}}
	if change != nil {
		change(&s)
	}
	return s
}

func digestOnly(s *Set) { s.Pin = PinDigest }

// runEdit gives the file after the edit, as it was where nothing changed. It
// demands that a second run changes nothing.
func runEdit(t *testing.T, content string, sets ...Set) (string, Edited) {
	t.Helper()
	e, err := Edit(oneFile(content), sets)
	if err != nil {
		t.Fatalf("Edit: %v\nof:\n%s", err, expand(content))
	}
	if len(e.Files) == 0 {
		return expand(content), e
	}
	again, err := Edit(fstest.MapFS{stagingFile: {Data: e.Files[0].After}}, sets)
	if err != nil || len(again.Files) > 0 || len(again.Changes) > 0 {
		t.Errorf("a second run: %v, %+v; want no change", err, again)
	}
	return string(e.Files[0].After), e
}

// TestEditKeeps edits newTag: v1 of the entry app and demands that nothing but
// the shown bytes changes. The cases are those of the measurements that the
// design rests on: what other tools' edits lose.
func TestEditKeeps(t *testing.T) {
	const entry = "images:\n- name: app\n  newTag: v1\n"
	for name, c := range map[string]struct {
		in       string
		from, to string // "" for newTag: v1 and a digest below it
	}{
		"canonical compact":             {in: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- ../base\n" + entry},
		"header comment":                {in: "# staging\nresources:\n- ../base\n" + entry},
		"header comment and blank line": {in: "# staging\n\nresources:\n- ../base\n" + entry},
		"licence before ---":            {in: "# Licence\n---\nresources:\n- ../base\n" + entry},
		"--- then comment":              {in: "---\n# staging\n" + entry},
		"leading ---":                   {in: "---\n" + entry},
		"trailing ...":                  {in: entry + "...\n"},
		"trailing ---":                  {in: entry + "---\n"},
		"trailing --- and comment":      {in: entry + "---\n# nothing\n"},
		"comment above images":          {in: "resources:\n- a\n# pinned\n" + entry},
		"comment on the images key":     {in: "images: # pinned\n- name: app\n  newTag: v1\n"},
		"comment above the first entry": {in: "images:\n# the app\n- name: app\n  newTag: v1\n"},
		"indented comment above it":     {in: "images:\n  # the app\n- name: app\n  newTag: v1\n"},
		"comment on name":               {in: "images:\n- name: app # reviewed\n  newTag: v1\n"},
		"comment on newTag": {in: "images:\n- name: app\n  newTag: v1 # {\"$imagepolicy\": \"flux-system:app:tag\"}\n",
			from: "newTag: v1 # {\"$imagepolicy\": \"flux-system:app:tag\"}", to: "newTag: v2 # {\"$imagepolicy\": \"flux-system:app:tag\"}\n  digest: NEW"},
		"three spaces before the comment": {in: "images:\n- name: app\n  newTag: v1   # bot\n", from: "newTag: v1   # bot", to: "newTag: v2   # bot\n  digest: NEW"},
		"comment between fields":          {in: "images:\n- name: app\n  # mirror of upstream\n  newTag: v1\n"},
		"comment below the last entry":    {in: entry + "  # more to come\n"},
		"comment at the end, column 0":    {in: entry + "# end\n"},
		"blank and comment at the end":    {in: entry + "\n# end\n"},
		"comment inside resources":        {in: "resources:\n- a\n# b is off\n- c\n" + entry},
		"indented comment in resources":   {in: "resources:\n- a\n    # b is off\n- c\n" + entry},
		"commented-out tail of a list":    {in: "resources:\n  - a\n  #- b\n  #- c\n" + entry},
		"blank line between sections":     {in: "resources:\n- a\n\n" + entry},
		"two blank lines":                 {in: "resources:\n- a\n\n\n" + entry},
		"blank line inside the entry":     {in: "images:\n- name: app\n\n  newTag: v1\n"},
		"blank line between items":        {in: "images:\n- name: web\n  newTag: w1\n\n- name: app\n  newTag: v1\n"},
		"whitespace-only line":            {in: "resources:\n- a\n   \n" + entry},
		"trailing blank lines":            {in: entry + "\n\n"},
		"no final newline":                {in: strings.TrimSuffix(entry, "\n")},
		"wide sequence (2)":               {in: "images:\n  - name: app\n    newTag: v1\n", from: "    newTag: v1", to: "    newTag: v2\n    digest: NEW"},
		"wide sequence (4)":               {in: "images:\n    - name: app\n      newTag: v1\n", from: "      newTag: v1", to: "      newTag: v2\n      digest: NEW"},
		"sequence by one space":           {in: "images:\n - name: app\n   newTag: v1\n", from: "   newTag: v1", to: "   newTag: v2\n   digest: NEW"},
		"wide first, images compact":      {in: "resources:\n  - a\n" + entry},
		"compact first, images wide":      {in: "resources:\n- a\nimages:\n  - name: app\n    newTag: v1\n", from: "    newTag: v1", to: "    newTag: v2\n    digest: NEW"},
		"four-space maps":                 {in: "configMapGenerator:\n-   name: c\n    options:\n        labels:\n            a: b\n" + entry},
		"spaces after the dash":           {in: "images:\n-   name: app\n    newTag: v1\n", from: "    newTag: v1", to: "    newTag: v2\n    digest: NEW"},
		"dash on its own line":            {in: "images:\n-\n  name: app\n  newTag: v1\n"},
		"aligned values":                  {in: "images:\n- name:    app\n  newName: r/app\n  newTag:  v1\n", from: "newTag:  v1", to: "newTag:  v2\n  digest:  NEW"},
		"trailing space after the value":  {in: "images:\n- name: app\n  newTag: v1 \n", from: "newTag: v1 ", to: "newTag: v2 \n  digest: NEW"},
		"trailing space after a key":      {in: "images: \n- name: app\n  newTag: v1\n"},
		"tab after the value":             {in: "images:\n- name: app\n  newTag: v1\t\n", from: "newTag: v1\t", to: "newTag: v2\t\n  digest: NEW"},
		"tab before the comment":          {in: "images:\n- name: app\n  newTag: v1\t# c\n", from: "newTag: v1\t# c", to: "newTag: v2\t# c\n  digest: NEW"},
		"tab after the colon":             {in: "images:\n- name: app\n  newTag:\tv1\n", from: "newTag:\tv1", to: "newTag:\tv2\n  digest: NEW"},
		"double quotes":                   {in: "images:\n- name: app\n  newTag: \"v1\"\n", from: `newTag: "v1"`, to: "newTag: \"v2\"\n  digest: NEW"},
		"single quotes":                   {in: "images:\n- name: app\n  newTag: 'v1'\n", from: `newTag: 'v1'`, to: "newTag: 'v2'\n  digest: NEW"},
		"all values quoted":               {in: "images:\n- name: 'app'\n  newTag: 'v1'\n", from: `newTag: 'v1'`, to: "newTag: 'v2'\n  digest: 'NEW'"},
		"numeric tag in quotes":           {in: "images:\n- name: app\n  newTag: \"1.10\"\n", from: `newTag: "1.10"`, to: "newTag: \"v2\"\n  digest: NEW"},
		"numeric tag without quotes":      {in: "images:\n- name: app\n  newTag: 1.10\n", from: `newTag: 1.10`, to: "newTag: v2\n  digest: NEW"},
		"exponent without quotes":         {in: "images:\n- name: app\n  newTag: 553640e6\n", from: `newTag: 553640e6`, to: "newTag: v2\n  digest: NEW"},
		"leading zero without quotes":     {in: "images:\n- name: app\n  newTag: 0123456\n", from: `newTag: 0123456`, to: "newTag: v2\n  digest: NEW"},
		"quoted keys":                     {in: "images:\n- name: app\n  \"newTag\": v1\n", from: `"newTag": v1`, to: "\"newTag\": v2\n  digest: NEW"},
		"all keys quoted":                 {in: "images:\n- 'name': app\n  'newTag': v1\n", from: `'newTag': v1`, to: "'newTag': v2\n  'digest': NEW"},
		"quoted resource":                 {in: "resources:\n- \"a\"\n" + entry},
		"long plain value with spaces":    {in: "commonAnnotations:\n  note: " + strings.Repeat("word ", 30) + "end\n" + entry},
		"long quoted value with spaces":   {in: "commonAnnotations:\n  note: \"" + strings.Repeat("word ", 30) + "end\"\n" + entry},
		"long plain value":                {in: "resources:\n- " + strings.Repeat("x", 120) + "\n" + entry},
		"long line comment":               {in: "resources:\n- a # " + strings.Repeat("word ", 30) + "\n" + entry},
		"literal patch":                   {in: "patches:\n- patch: |-\n    - op: replace\n      path: /a\n\n    # data\n" + entry},
		"literal with a deep body":        {in: "patches:\n- patch: |\n          - op: replace\n            path: /a\n" + entry},
		"literal with trailing spaces":    {in: "patches:\n- patch: |\n    - op: replace \n      path: /a \n" + entry},
		"literal with keep":               {in: entry + "configMapGenerator:\n- name: c\n  literals:\n  - |+\n    a=b\n\n\n"},
		"folded":                          {in: "commonAnnotations:\n  note: >\n    one\n    two\n\n    three\n" + entry},
		"multi-line plain":                {in: "commonAnnotations:\n  note: one\n    two\n    three\n" + entry},
		"multi-line quoted":               {in: "commonAnnotations:\n  note: \"one\n    two \\\n    three\"\n" + entry},
		"mixed line ends":                 {in: "resources:\r\n- a\nimages:\r\n- name: app\n  newTag: v1\r\n", from: "newTag: v1", to: "newTag: v2\r\n  digest: NEW"},
		"flow entry":                      {in: "images:\n- {name: app, newTag: v1}\n", from: "newTag: v1", to: "newTag: v2, digest: NEW"},
		"flow entry with spaces":          {in: "images:\n- { name: app, newTag: v1 }\n", from: "newTag: v1", to: "newTag: v2, digest: NEW"},
		"flow list":                       {in: "images: [{name: web, newTag: w1}, {name: app, newTag: v1}, {name: api, newTag: x}]\n", from: "newTag: v1", to: "newTag: v2, digest: NEW"},
		"flow over lines": {in: "images: [\n  {\n    name: app,\n    newTag: v1, # bot\n  },\n]\n",
			from: "newTag: v1", to: "newTag: v2,\n    digest: NEW"},
		"JSON": {in: "{\n  \"images\": [\n    {\n      \"name\": \"app\",\n      \"newTag\": \"v1\"\n    }\n  ]\n}\n",
			from: `"newTag": "v1"`, to: "\"newTag\": \"v2\",\n      \"digest\": \"NEW\""},
		"JSON without blanks": {in: `{"images":[{"name":"app","newTag":"v1"}]}`, from: `"newTag":"v1"`, to: `"newTag":"v2","digest":"NEW"`},
		"unicode comment":     {in: "# Größe 本\nresources:\n- a # 🚀\n" + entry},
		"unicode value":       {in: "commonAnnotations:\n  note: Größe 本\n" + entry},
		"escaped unicode":     {in: "commonAnnotations:\n  note: \"\\u00e9\"\n" + entry},
		"emoji":               {in: "commonAnnotations:\n  note: 🚀 away\n" + entry},
		"kind last":           {in: entry + "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n"},
		"component":           {in: "kind: Component\n" + entry},
		"bases":               {in: "bases:\n- ../base\n" + entry},
		"env":                 {in: "configMapGenerator:\n- name: c\n  env: .env\n" + entry},
		"unsorted images":     {in: "images:\n- name: web\n  newTag: w\n- name: app\n  newTag: v1\n- name: api\n  newTag: a\n"},
		"newTag before name":  {in: "images:\n- newTag: v1\n  name: app\n", from: "newTag: v1\n", to: "newTag: v2\n  digest: NEW\n"},
		"digest before newTag": {in: "images:\n- digest: OLD\n  name: app\n  newTag: v1\n",
			from: "digest: OLD\n  name: app\n  newTag: v1", to: "digest: NEW\n  name: app\n  newTag: v2"},
		"digest first, no tag": {in: "images:\n- digest: OLD\n  name: app\n", from: "digest: OLD\n  name: app\n", to: "digest: NEW\n  name: app\n  newTag: v2\n"},
		"digest and newTag":    {in: "images:\n- name: app\n  newTag: v1\n  digest: OLD\n", from: "newTag: v1\n  digest: OLD", to: "newTag: v2\n  digest: NEW"},
		"newName":              {in: "images:\n- name: app\n  newName: mirror.example:5000/acme/app\n  newTag: v1\n"},
		"newName alone":        {in: "images:\n- name: app\n  newName: r.example/app\n", from: "r.example/app\n", to: "r.example/app\n  newTag: v2\n  digest: NEW\n"},
		"name alone":           {in: "images:\n- name: app\n- name: web\n", from: "name: app\n", to: "name: app\n  newTag: v2\n  digest: NEW\n"},
		"tag and digest in newTag": {in: "images:\n- name: app\n  newTag: v1@OLD\n",
			from: "v1@OLD", to: "v2@NEW"},
		"tagSuffix on another entry":  {in: "images:\n- name: web\n  tagSuffix: -alpine\n- name: app\n  newTag: v1\n"},
		"tagSuffix on the entry":      {in: "images:\n- name: app\n  tagSuffix: -alpine\n  newTag: v1\n"},
		"unknown top-level field":     {in: "x-owner: todo\n" + entry},
		"unknown field in the entry":  {in: "images:\n- name: app\n  newTag: v1\n  x-owner: {team: todo}\n"},
		"empty list elsewhere":        {in: "resources: []\n" + entry},
		"null elsewhere":              {in: "patches:\n" + entry},
		"replicas":                    {in: "replicas:\n- name: app\n  count: 3\ngeneratorOptions:\n  disableNameSuffixHash: true\n" + entry},
		"words that YAML 1.1 types":   {in: "commonAnnotations:\n  a: 'yes'\n  b: \"0123\"\n  c: on\n" + entry},
		"helm values":                 {in: "helmCharts:\n- name: c\n  valuesInline:\n    a: 1.50\n    b: 12345678901234567890\n" + entry},
		"explicit tag":                {in: "images:\n- name: app\n  newTag: !!str v1\n", from: "!!str v1", to: "!!str v2\n  digest: NEW"},
		"explicit tag and digits":     {in: "images:\n- name: app\n  newTag: !!str 1.10\n", from: "!!str 1.10", to: "!!str v2\n  digest: NEW"},
		"placeholder in another":      {in: "images:\n- name: web\n  newTag: ${TAG}\n- name: app\n  newTag: v1\n"},
		"map placeholder in another":  {in: "images:\n- name: web\n  newTag: {{ TAG }}\n- name: app\n  newTag: v1\n"},
		"annotations":                 {in: "metadata:\n  name: todo\n  annotations: {a: b}\n" + entry},
		"empty metadata":              {in: "metadata: {}\n" + entry},
		"unsorted keys":               {in: "labels:\n- pairs:\n    z: a\n    a: z\n" + entry},
		"comment before the list":     {in: "images:\n\n# all of them\n- name: app\n  newTag: v1\n"},
		"keys in another case":        {in: "Images:\n- Name: app\n  newtag: v1\n", from: "newtag: v1", to: "newtag: v2\n  digest: NEW"},
		"value on the next line":      {in: "images:\n- name: app\n  newTag:\n    v1\n", from: "    v1", to: "    v2\n  digest: NEW"},
		"question mark keys":          {in: "images:\n- ? name\n  : app\n  ? newTag\n  : v1\n", from: "  : v1", to: "  : v2\n  digest: NEW"},
		"empty newTag":                {in: "images:\n- name: app\n  newTag:\n", from: "newTag:", to: "newTag: v2\n  digest: NEW"},
		"empty newTag with a comment": {in: "images:\n- name: app\n  newTag: # none\n", from: "newTag: # none", to: "newTag: v2 # none\n  digest: NEW"},
		"null newTag":                 {in: "images:\n- name: app\n  newTag: ~\n", from: "newTag: ~", to: "newTag: v2\n  digest: NEW"},
		"empty in flow":               {in: "images:\n- {name: app, newTag: }\n", from: "newTag: }", to: "newTag: v2, digest: NEW }"},
		"anchor that nothing repeats": {in: "images:\n- &entry\n  name: app\n  newTag: &tag v1\n", from: "&tag v1", to: "&tag v2\n  digest: NEW"},
		"anchor elsewhere":            {in: "commonLabels: &l\n  a: b\ncommonAnnotations: *l\n" + entry},
	} {
		t.Run(name, func(t *testing.T) {
			if c.from == "" {
				c.from, c.to = "newTag: v1", "newTag: v2\n  digest: NEW"
			}
			if n := strings.Count(c.in, c.from); n != 1 {
				t.Fatalf("the fixture has %q %d times", c.from, n)
			}
			for _, v := range variants() {
				if strings.HasPrefix(v.name, "leading") && strings.Contains(c.in, "---") {
					continue // that would be a second document
				}
				if name == "mixed line ends" && v.name != "as is" {
					continue // the variants make them one
				}
				in, want := v.of(expand(c.in)), v.of(expand(strings.Replace(c.in, c.from, c.to, 1)))
				got, e := runEdit(t, in, setApp(nil))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", v.name, diff)
				}
				if len(e.Changes) != 1 {
					t.Errorf("%s: changes %+v; want one", v.name, e.Changes)
				}
			}
		})
	}
}
